//! Counting the records of a CSV file, piece by piece.
//!
//! A record may have line breaks inside quotes, so lines are not enough. The first record is the
//! header, which Exa does not count; empty lines are no records.

use std::hash::Hasher;

use csv_core::ReadRecordResult;
use fnv::FnvHasher;

/// What is known of a file after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Survey {
    /// Bytes.
    pub(super) size: u64,
    /// Records without the header.
    pub(super) records: u64,
    /// A hash of the content, by which a file that is still being written is noticed.
    pub(super) fingerprint: u64,
}

/// Reads a file in pieces of any size.
pub(super) struct Counter {
    size: u64,
    fingerprint: FnvHasher,
    reader: csv_core::Reader,
    rows: u64,
    /// The beginning of a character whose end is in the next piece.
    cut: Vec<u8>,
    is_text: bool,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self {
            size: 0,
            fingerprint: FnvHasher::default(),
            reader: csv_core::Reader::new(),
            rows: 0,
            cut: Vec::new(),
            is_text: true,
        }
    }

    /// Takes the next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.size += piece.len() as u64;
        self.fingerprint.write(piece);
        self.is_text &= !piece.contains(&0) && self.is_utf8(piece);
        self.count(piece);
    }

    /// Counts the rows that end in these bytes. What they hold is of no interest.
    fn count(&mut self, mut bytes: &[u8]) {
        let (mut field, mut field_ends) = ([0; 1024], [0; 64]);
        while !bytes.is_empty() {
            let read = self.reader.read_record(bytes, &mut field, &mut field_ends);
            self.rows += u64::from(read.0 == ReadRecordResult::Record);
            bytes = bytes.get(read.1..).unwrap_or_default();
        }
    }

    fn is_utf8(&mut self, piece: &[u8]) -> bool {
        self.cut.extend_from_slice(piece);
        let valid = match std::str::from_utf8(&self.cut) {
            Ok(_) => self.cut.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return false,
        };
        self.cut.drain(..valid);
        true
    }

    /// What the file has, or why it cannot be imported.
    pub(super) fn finish(mut self) -> Result<Survey, String> {
        if !self.is_text || !self.cut.is_empty() {
            return Err("is not UTF-8 text; save it as CSV in UTF-8".to_owned());
        }
        // Ends the last row, and adds one more, which disappears in a quote that is still open.
        self.count(b"\n");
        let rows = self.rows;
        self.count(b"-\n");
        if self.rows == rows {
            return Err(format!(
                "has a quoted field that is never closed, in its last record ({})",
                rows + 1
            ));
        }
        match rows {
            0 => Err("is empty".to_owned()),
            1 => Err("has a header row but no records".to_owned()),
            rows => Ok(Survey {
                size: self.size,
                records: rows - 1,
                fingerprint: self.fingerprint.finish(),
            }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<u64, String> {
        let whole = survey(&[text.as_bytes()]).map(|survey| survey.records);
        for at in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let cut = survey(&[first, second]).map(|survey| survey.records);
            assert_eq!(cut, whole, "{text:?} cut at {at}");
        }
        whole
    }

    fn survey(pieces: &[&[u8]]) -> Result<Survey, String> {
        let mut counter = Counter::new();
        pieces.iter().for_each(|piece| counter.feed(piece));
        counter.finish()
    }

    #[test]
    fn records_are_counted_without_the_header() {
        for (text, records) in [
            ("name\nA", 1),
            ("name\nA\n", 1),
            ("name\r\nA\r\nB\r\n", 2),
            ("name\rA\rB\r", 2),
            ("name\n\n\nA\n\n", 1),
            (
                "name,note\n\"two\nlines\",x\n\"a, \"\"b\"\"\n\",\"\r\n\"\nlast,",
                3,
            ),
            ("name\n\"\"\"quoted\"\"\"\n\"\"\nx\"y\nz\"\n", 4),
            ("name\n,\n,,\n", 2),
            ("naïve\n漢字\n🙂", 2),
            ("\"a\nb\"\n1\n", 1),
        ] {
            assert_eq!(count(text), Ok(records), "{text:?}");
        }
        let marked = survey(&[b"\xef\xbb\xbf\"a\nb\"\n1\n"]).unwrap();
        assert_eq!((marked.records, marked.size), (1, 11));
    }

    #[test]
    fn what_cannot_be_imported_is_told() {
        for (text, part) in [
            ("", "is empty"),
            ("\r\n\n", "is empty"),
            ("name,url\n", "no records"),
            ("name\nA\n\"never closed\n", "record (3)"),
            ("a\0b\nc\n", "UTF-8"),
        ] {
            let problem = count(text).unwrap_err();
            assert!(problem.contains(part), "{text:?}: {problem}");
        }
        for bytes in [
            b"name\n\xff\n".as_slice(),
            b"\xff\xfea\0\n\0b\0",
            b"a\nb\xc3",
        ] {
            assert!(survey(&[bytes]).unwrap_err().contains("UTF-8"), "{bytes:?}");
        }
    }

    #[test]
    fn another_content_has_another_fingerprint() {
        let number = |text: &str| survey(&[text.as_bytes()]).unwrap().fingerprint;
        assert_eq!(number("a\nb"), number("a\nb"));
        assert_ne!(number("a\nb"), number("a\nc"));
    }
}

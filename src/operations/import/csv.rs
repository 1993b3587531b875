//! Counts the records of a CSV file, chunk by chunk.
//!
//! A record may have line breaks inside quotes, so counting lines is not enough. The first record is the
//! header, which Exa does not count; empty lines are not records.

use std::hash::Hasher;

use csv_core::ReadRecordResult;
use fnv::FnvHasher;

/// The size and the number of records of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CsvStats {
    /// Size in bytes.
    pub(super) size: u64,
    /// Records without the header.
    pub(super) records: u64,
    /// A hash of the content, which detects a file that is still being written.
    pub(super) fingerprint: u64,
}

/// Counts the records of a file that is fed in chunks of any size.
pub(super) struct CsvCounter {
    size: u64,
    fingerprint: FnvHasher,
    reader: csv_core::Reader,
    rows: u64,
    /// The first bytes of a character that continues in the next chunk.
    partial_character: Vec<u8>,
    is_text: bool,
}

impl CsvCounter {
    pub(super) fn new() -> Self {
        Self {
            size: 0,
            fingerprint: FnvHasher::default(),
            reader: csv_core::Reader::new(),
            rows: 0,
            partial_character: Vec::new(),
            is_text: true,
        }
    }

    /// Processes the next chunk.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.size += chunk.len() as u64;
        self.fingerprint.write(chunk);
        self.is_text &= !chunk.contains(&0) && self.is_utf8(chunk);
        self.count(chunk);
    }

    /// Counts the rows that end in these bytes; discards their fields.
    fn count(&mut self, mut bytes: &[u8]) {
        let (mut field, mut field_ends) = ([0; 1024], [0; 64]);
        while !bytes.is_empty() {
            let read = self.reader.read_record(bytes, &mut field, &mut field_ends);
            self.rows += u64::from(read.0 == ReadRecordResult::Record);
            bytes = bytes.get(read.1..).unwrap_or_default();
        }
    }

    fn is_utf8(&mut self, chunk: &[u8]) -> bool {
        self.partial_character.extend_from_slice(chunk);
        let valid = match std::str::from_utf8(&self.partial_character) {
            Ok(_) => self.partial_character.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return false,
        };
        self.partial_character.drain(..valid);
        true
    }

    /// Returns the counts, or why the file cannot be imported.
    pub(super) fn finish(mut self) -> Result<CsvStats, String> {
        if !self.is_text || !self.partial_character.is_empty() {
            return Err("is not UTF-8 text; save it as CSV in UTF-8".to_owned());
        }
        // The first line break ends the last row. The row after it is swallowed by a quoted field that is still open.
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
            rows => Ok(CsvStats {
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
        let whole = count_chunks(&[text.as_bytes()]).map(|stats| stats.records);
        for at in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let split = count_chunks(&[first, second]).map(|stats| stats.records);
            assert_eq!(split, whole, "{text:?} split at {at}");
        }
        whole
    }

    fn count_chunks(chunks: &[&[u8]]) -> Result<CsvStats, String> {
        let mut counter = CsvCounter::new();
        chunks.iter().for_each(|chunk| counter.feed(chunk));
        counter.finish()
    }

    #[test]
    fn counts_records_without_the_header() {
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
        let marked = count_chunks(&[b"\xef\xbb\xbf\"a\nb\"\n1\n"]).unwrap();
        assert_eq!((marked.records, marked.size), (1, 11));
    }

    #[test]
    fn explains_why_a_file_cannot_be_imported() {
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
            assert!(
                count_chunks(&[bytes]).unwrap_err().contains("UTF-8"),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn fingerprint_depends_on_the_content() {
        let fingerprint = |text: &str| count_chunks(&[text.as_bytes()]).unwrap().fingerprint;
        assert_eq!(fingerprint("a\nb"), fingerprint("a\nb"));
        assert_ne!(fingerprint("a\nb"), fingerprint("a\nc"));
    }
}

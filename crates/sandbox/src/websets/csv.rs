//! CSV as RFC 4180 describes it; line ends may be LF or CR alone.

use csv::ReaderBuilder;

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is no CSV at all.
    Format(String),
    /// It is CSV, but its rows do not fit together.
    Content(String),
}

/// Header and records of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) header: Vec<String>,
    pub(super) records: Vec<Vec<String>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<Sheet, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::Format("The file is not UTF-8 text".into()))?;
    if text.contains('\0') {
        return Err(Problem::Format("The file holds binary data".into()));
    }
    let mut rows = rows(text)?.into_iter();
    let header = rows
        .next()
        .ok_or_else(|| Problem::Content("The file is empty".into()))?;
    let records: Vec<Vec<String>> = rows.collect();
    if records.is_empty() {
        return Err(Problem::Content(
            "The file has a header row but no records".into(),
        ));
    }
    for (number, record) in records.iter().enumerate() {
        if record.len() != header.len() {
            let message = format!(
                "Record {} has {} columns, the header has {}",
                number + 1,
                record.len(),
                header.len()
            );
            return Err(Problem::Content(message));
        }
    }
    Ok(Sheet { header, records })
}

/// All rows; empty lines are left out.
fn rows(text: &str) -> Result<Vec<Vec<String>>, Problem> {
    // A quote that is never closed hides this row. No other row is like it: text has no zero bytes.
    let closed = format!("{text}\n\0");
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(closed.as_bytes());
    let mut rows = reader
        .deserialize()
        .collect::<Result<Vec<Vec<String>>, _>>()
        .map_err(|error| Problem::Format(error.to_string()))?;
    match rows.pop() {
        Some(last) if last == ["\0"] => Ok(rows),
        _ => Err(Problem::Format("A quoted field is never closed".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_quotes_and_line_ends() {
        let sheet = read(b"\xef\xbb\xbfname,note\r\n\"A, \"\"B\"\"\",\"two\nlines\"\r\nC,\n\n");
        let expected = Sheet {
            header: vec!["name".into(), "note".into()],
            records: vec![
                vec!["A, \"B\"".into(), "two\nlines".into()],
                vec!["C".into(), String::new()],
            ],
        };
        assert_eq!(sheet, Ok(expected));
    }

    #[test]
    fn tells_what_is_wrong() {
        assert!(matches!(read(b"\xff\xfe"), Err(Problem::Format(_))));
        assert!(matches!(read(b"a,b\n\"c,d\n"), Err(Problem::Format(_))));
        assert!(matches!(read(b"a,b\n1\n"), Err(Problem::Content(_))));
        assert!(matches!(read(b"a,b\n"), Err(Problem::Content(_))));
        assert!(matches!(read(b""), Err(Problem::Content(_))));
    }
}

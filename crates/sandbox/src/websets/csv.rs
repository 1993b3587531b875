//! CSV as RFC 4180 describes it; lines may also end in LF or CR alone.

use csv::ReaderBuilder;

/// The reason why a file is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CsvError {
    /// The file is not CSV.
    Format(String),
    /// The file is CSV, but its rows are inconsistent.
    Content(String),
}

/// Header and records of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvTable {
    pub(super) header: Vec<String>,
    pub(super) records: Vec<Vec<String>>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<CsvTable, CsvError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| CsvError::Format("The file is not UTF-8 text".into()))?;
    if text.contains('\0') {
        return Err(CsvError::Format("The file holds binary data".into()));
    }
    let mut rows = parse_rows(text)?.into_iter();
    let header = rows
        .next()
        .ok_or_else(|| CsvError::Content("The file is empty".into()))?;
    let records: Vec<Vec<String>> = rows.collect();
    if records.is_empty() {
        return Err(CsvError::Content(
            "The file has a header row but no records".into(),
        ));
    }
    for (index, record) in records.iter().enumerate() {
        if record.len() != header.len() {
            return Err(CsvError::Content(format!(
                "Record {} has {} columns, the header has {}",
                index + 1,
                record.len(),
                header.len()
            )));
        }
    }
    Ok(CsvTable { header, records })
}

/// Parses all rows; empty lines are skipped.
fn parse_rows(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
    // An unclosed quote swallows this sentinel row. No other row equals it: the text has no zero bytes.
    let with_sentinel = format!("{text}\n\0");
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(with_sentinel.as_bytes());
    let mut rows = reader
        .deserialize()
        .collect::<Result<Vec<Vec<String>>, _>>()
        .map_err(|error| CsvError::Format(error.to_string()))?;
    match rows.pop() {
        Some(last) if last == ["\0"] => Ok(rows),
        _ => Err(CsvError::Format("A quoted field is never closed".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_quotes_and_line_endings() {
        let table = parse(b"\xef\xbb\xbfname,note\r\n\"A, \"\"B\"\"\",\"two\nlines\"\r\nC,\n\n");
        let expected = CsvTable {
            header: vec!["name".into(), "note".into()],
            records: vec![
                vec!["A, \"B\"".into(), "two\nlines".into()],
                vec!["C".into(), String::new()],
            ],
        };
        assert_eq!(table, Ok(expected));
    }

    #[test]
    fn distinguishes_format_and_content_errors() {
        assert!(matches!(parse(b"\xff\xfe"), Err(CsvError::Format(_))));
        assert!(matches!(parse(b"a,b\n\"c,d\n"), Err(CsvError::Format(_))));
        assert!(matches!(parse(b"a,b\n1\n"), Err(CsvError::Content(_))));
        assert!(matches!(parse(b"a,b\n"), Err(CsvError::Content(_))));
        assert!(matches!(parse(b""), Err(CsvError::Content(_))));
    }
}

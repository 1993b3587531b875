//! CSV as RFC 4180 describes it; line ends may be LF alone.

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
    let mut rows = rows(text.strip_prefix('\u{feff}').unwrap_or(text))?.into_iter();
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
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (quoted, char) {
            (true, '"') if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            (true, '"') => quoted = false,
            (true, other) => field.push(other),
            (false, '"') if field.is_empty() => quoted = true,
            (false, ',') => row.push(std::mem::take(&mut field)),
            (false, '\r') if chars.peek() == Some(&'\n') => {}
            (false, '\n') => end_row(&mut rows, &mut row, &mut field),
            (false, other) => field.push(other),
        }
    }
    if quoted {
        return Err(Problem::Format("A quoted field is never closed".into()));
    }
    end_row(&mut rows, &mut row, &mut field);
    Ok(rows)
}

fn end_row(rows: &mut Vec<Vec<String>>, row: &mut Vec<String>, field: &mut String) {
    if row.is_empty() && field.is_empty() {
        return;
    }
    row.push(std::mem::take(field));
    rows.push(std::mem::take(row));
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

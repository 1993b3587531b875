//! Results as CSV: one row each, with a column for every field.

use serde_json::Value;

use super::shape::ShapedResult;

/// Separates the values of a list in one cell.
const SEPARATOR: &str = "; ";

/// Appends the results with a header row.
pub(super) fn push_rows(out: &mut String, results: &[ShapedResult]) {
    let rows: Vec<Vec<(String, String)>> = results.iter().map(cells).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    out.push('#');
    for column in &columns {
        out.push(',');
        push_csv_cell(out, column);
    }
    for (result, row) in results.iter().zip(&rows) {
        out.push_str(&format!("\n{}", result.index + 1));
        for column in &columns {
            out.push(',');
            if let Some((_, text)) = row.iter().find(|(name, _)| name == column) {
                push_csv_cell(out, text);
            }
        }
    }
}

/// Appends one row with all its cells, to estimate its size.
pub(super) fn push_row(out: &mut String, result: &ShapedResult) {
    out.push_str(&(result.index + 1).to_string());
    for (_, text) in cells(result) {
        out.push(',');
        push_csv_cell(out, &text);
    }
}

/// Returns the columns of a result and their texts.
fn cells(result: &ShapedResult) -> Vec<(String, String)> {
    csv_cells(&result.value)
}

/// Returns the columns of a value and their texts.
pub(crate) fn csv_cells(value: &Value) -> Vec<(String, String)> {
    let mut cells = Vec::new();
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                flatten(name, value, &mut cells);
            }
        }
        other => flatten("value", other, &mut cells),
    }
    cells
}

/// Adds the cells of a value: the fields of an object have columns of their own.
fn flatten(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (inner, value) in map {
                flatten(&format!("{name}.{inner}"), value, cells);
            }
        }
        other => cells.push((name.to_owned(), csv_text(other))),
    }
}

/// Returns the text of a cell.
pub(crate) fn csv_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(list)
            if list
                .iter()
                .any(|entry| entry.is_object() || entry.is_array()) =>
        {
            value.to_string()
        }
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(SEPARATOR),
        other => text(other),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Appends a cell, in quotes if it contains a separator.
pub(crate) fn push_csv_cell(out: &mut String, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        out.push('"');
        out.push_str(&text.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_one_row_per_result() {
        let shaped = |index: usize, value: Value| ShapedResult {
            index,
            value,
            ..ShapedResult::default()
        };
        let results = [
            shaped(
                0,
                json!({"title": "A, \"B\"", "company": {"name": "Acme"}, "tags": ["x", 1]}),
            ),
            shaped(
                2,
                json!({"title": "C", "new": true, "none": null, "list": [{"a": 1}]}),
            ),
        ];
        let mut text = String::new();
        push_rows(&mut text, &results);
        let expected = [
            "#,title,company.name,tags,new,list",
            "1,\"A, \"\"B\"\"\",Acme,x; 1,,",
            "3,C,,,true,\"[{\"\"a\"\":1}]\"",
        ];
        assert_eq!(text, expected.join("\n"));
    }
}

//! Results as CSV: one row each, with a column for every field.

use serde_json::Value;

use super::inline::push_cell;
use super::shape::ShapedResult;

/// Separates the values of a list in one cell.
const SEPARATOR: &str = "; ";

/// The results as rows, and the columns that at least one of them has.
struct Table {
    columns: Vec<String>,
    rows: Vec<(usize, Vec<(String, String)>)>,
}

impl Table {
    fn new(results: &[ShapedResult]) -> Self {
        let rows: Vec<_> = results
            .iter()
            .map(|result| (result.index + 1, cells(result)))
            .collect();
        let mut columns: Vec<String> = Vec::new();
        for (name, _) in rows.iter().flat_map(|(_, row)| row) {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        Self { columns, rows }
    }

    /// Returns the cells of a row in the order of the columns.
    fn cells<'a>(&'a self, row: &'a [(String, String)]) -> impl Iterator<Item = &'a str> {
        self.columns.iter().map(|column| {
            let cell = row.iter().find(|(name, _)| name == column);
            cell.map_or("", |(_, text)| text.as_str())
        })
    }
}

/// Appends the results with a header row.
pub(super) fn push_rows(out: &mut String, results: &[ShapedResult]) {
    let table = Table::new(results);
    out.push('#');
    for column in &table.columns {
        out.push(',');
        push_csv_cell(out, column);
    }
    for (number, row) in &table.rows {
        out.push_str(&format!("\n{number}"));
        for cell in table.cells(row) {
            out.push(',');
            push_csv_cell(out, cell);
        }
    }
}

/// Appends the results as a Markdown table, whose cells show their texts literally.
pub(super) fn push_table(out: &mut String, results: &[ShapedResult]) {
    let table = Table::new(results);
    out.push_str("| # |");
    for column in &table.columns {
        push_table_cell(out, column);
    }
    out.push_str(&format!("\n|{}", "---|".repeat(table.columns.len() + 1)));
    for (number, row) in &table.rows {
        out.push_str(&format!("\n| {number} |"));
        for text in table.cells(row) {
            push_table_cell(out, text);
        }
    }
}

fn push_table_cell(out: &mut String, text: &str) {
    out.push(' ');
    push_cell(out, text);
    out.push_str(" |");
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

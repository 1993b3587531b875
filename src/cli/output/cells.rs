//! The cells of tables and of CSV.

use serde_json::Value;

use super::at;
use crate::render::{csv_cells, csv_text, push_csv_cell};

/// Returns rows as CSV with a header row: the requested fields, or all fields in the order of their appearance.
pub(super) fn csv(rows: &[&Value], fields: &[String]) -> String {
    let cells: Vec<Vec<(String, String)>> = rows
        .iter()
        .map(|row| {
            if fields.is_empty() {
                return csv_cells(row);
            }
            let cell = |name: &String| {
                let value = row.get(name).or_else(|| at(row, name))?;
                Some((name.clone(), csv_text(value)))
            };
            fields.iter().filter_map(cell).collect()
        })
        .collect();
    let mut columns: Vec<&str> = fields.iter().map(String::as_str).collect();
    for (name, _) in cells.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = String::new();
    push_line(&mut text, columns.iter().map(|column| Some(*column)));
    for row in &cells {
        text.push('\n');
        let cell = |column: &&str| {
            let found = row.iter().find(|(name, _)| name == column);
            found.map(|(_, text)| text.as_str())
        };
        push_line(&mut text, columns.iter().map(cell));
    }
    text
}

fn push_line<'a>(text: &mut String, cells: impl Iterator<Item = Option<&'a str>>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_csv_cell(text, cell.unwrap_or_default());
    }
}

//! Formats the changes as Markdown for a reviewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::markdown::{code, escape_stray};
use super::{ApiChange, Impact};

/// Impact, schema, definition path and text. Changes that agree on all of them are one change of a
/// definition that several operations use.
type SharedChange<'a> = (Impact, &'a str, &'a str, &'a str);

/// One line of the report, ready to print.
struct ReportLine {
    impact: Impact,
    /// Empty for lines about several operations, so that they are sorted first.
    operation: String,
    text: String,
}

/// Returns the changes as Markdown, breaking ones first.
///
/// Every line starts with its impact. A change of a definition that several operations use is one
/// line. The summary counts lines.
#[must_use]
pub fn report(changes: &[ApiChange]) -> String {
    if changes.is_empty() {
        return "# API changes\n\nNo changes.\n".to_owned();
    }
    let mut lines = report_lines(changes);
    // The sort is stable, so the changes of one operation stay in order.
    lines.sort_by(|left, right| left.operation.cmp(&right.operation));
    let count = |impact| lines.iter().filter(|line| line.impact == impact).count();
    let mut text = format!(
        "# API changes\n\n**{} breaking**, {} compatible, {} documentation\n",
        count(Impact::Breaking),
        count(Impact::Compatible),
        count(Impact::Documentation),
    );
    for (impact, title) in [
        (Impact::Breaking, "Breaking"),
        (Impact::Compatible, "Compatible"),
        (Impact::Documentation, "Documentation"),
    ] {
        write_section(&mut text, impact, title, &lines);
    }
    text
}

fn write_section(text: &mut String, impact: Impact, title: &str, lines: &[ReportLine]) {
    let mut lines = lines.iter().filter(|line| line.impact == impact).peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- **{impact}** {}", line.text);
    }
}

fn report_lines(changes: &[ApiChange]) -> Vec<ReportLine> {
    let mut users: BTreeMap<SharedChange<'_>, BTreeSet<&str>> = BTreeMap::new();
    for change in changes {
        if let Some(shared) = shared_change(change) {
            users.entry(shared).or_default().insert(&change.operation);
        }
    }
    let mut written = BTreeSet::new();
    let mut lines = Vec::new();
    for change in changes {
        let group = shared_change(change)
            .and_then(|shared| Some((shared, users.get(&shared)?)))
            .filter(|(_, operations)| operations.len() > 1);
        match group {
            None => lines.push(operation_line(change)),
            Some((shared, operations)) if written.insert(shared) => {
                lines.push(shared_line(shared, operations));
            }
            Some(_) => {}
        }
    }
    lines
}

fn shared_change(change: &ApiChange) -> Option<SharedChange<'_>> {
    let path = change.definition_path.as_deref()?;
    let (schema, _) = split_location(&change.location);
    Some((change.impact, schema, path, &change.text))
}

fn operation_line(change: &ApiChange) -> ReportLine {
    let mut text = code(&change.operation);
    let (schema, path) = split_location(&change.location);
    for part in [schema.to_owned(), path.map(code).unwrap_or_default()] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&part);
        }
    }
    let _ = write!(text, ": {}", escape_stray(&change.text));
    ReportLine {
        impact: change.impact,
        operation: change.operation.clone(),
        text,
    }
}

fn shared_line(
    (impact, schema, path, text): SharedChange<'_>,
    operations: &BTreeSet<&str>,
) -> ReportLine {
    let names: Vec<String> = operations.iter().map(|name| code(name)).collect();
    ReportLine {
        impact,
        operation: String::new(),
        text: format!(
            "{schema} {}: {} — in {} operations: {}",
            code(path),
            escape_stray(text),
            names.len(),
            names.join(", "),
        ),
    }
}

/// Splits a location into the schema and the path in it.
fn split_location(location: &str) -> (&str, Option<&str>) {
    match location.split_once(' ') {
        Some((schema, path)) => (schema, Some(path)),
        None => (location, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ApiChange, Impact};
    use super::report;

    fn change(
        impact: Impact,
        operation: &str,
        location: &str,
        definition_path: &str,
        text: &str,
    ) -> ApiChange {
        ApiChange {
            impact,
            operation: operation.to_owned(),
            location: location.to_owned(),
            definition_path: (!definition_path.is_empty()).then(|| definition_path.to_owned()),
            text: text.to_owned(),
        }
    }

    #[test]
    fn reports_no_changes() {
        assert_eq!(report(&[]), "# API changes\n\nNo changes.\n");
    }

    #[test]
    fn omits_empty_sections() {
        let text = report(&[change(Impact::Compatible, "a.get", "", "", "added")]);
        assert_eq!(
            text,
            "# API changes\n\n**0 breaking**, 1 compatible, 0 documentation\n\n\
             ## Compatible\n\n- **compatible** `a.get`: added\n"
        );
    }

    #[test]
    fn groups_changes_of_a_shared_definition() {
        let of = |name, place| change(Impact::Breaking, name, place, "Item.id", "removed");
        let text = report(&[
            change(Impact::Breaking, "a.get", "", "", "removed"),
            of("b.get", "output id"),
            of("c.get", "output data[].id"),
            of("d.get", "argument id"),
        ]);
        assert_eq!(
            text,
            "# API changes\n\n**3 breaking**, 0 compatible, 0 documentation\n\n## Breaking\n\n\
             - **breaking** output `Item.id`: removed — in 2 operations: `b.get`, `c.get`\n\
             - **breaking** `a.get`: removed\n\
             - **breaking** `d.get` argument `id`: removed\n"
        );
    }

    #[test]
    fn escapes_markdown_in_unescaped_texts() {
        let text = report(&[change(
            Impact::Documentation,
            "a|b",
            "output x`y",
            "",
            "p | q\n`",
        )]);
        assert!(
            text.ends_with("- **documentation** a\\|b output x\\`y: p \\| q \\`\n"),
            "{text}"
        );
    }
}

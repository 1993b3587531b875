//! Formats the changes as Markdown for a reviewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::markdown::{code, escape_stray};
use super::{ApiChange, Impact, Subject};

/// Impact, schema, definition path and text. Changes that agree on all of them are one change of a
/// definition that several operations use.
type SharedChange<'a> = (Impact, &'a str, &'a str, &'a str);

/// One line of the report, ready to print.
struct ReportLine {
    impact: Impact,
    subject: Subject,
    /// Empty for lines about several operations.
    operation: String,
    text: String,
}

/// Returns the changes as Markdown, grouped by operation, tool, set and command.
///
/// Groups with breaking changes come first, and breaking changes come first in their group. Every line starts with
/// its impact. A change of a definition that several operations use is one line. The summary counts lines.
#[must_use]
pub fn report(changes: &[ApiChange]) -> String {
    if changes.is_empty() {
        return "# API changes\n\nNo changes.\n".to_owned();
    }
    let lines = report_lines(changes);
    let count = |impact| lines.iter().filter(|line| line.impact == impact).count();
    let mut text = format!(
        "# API changes\n\n**{} breaking**, {} compatible, {} documentation\n",
        count(Impact::Breaking),
        count(Impact::Compatible),
        count(Impact::Documentation),
    );
    let mut groups: BTreeMap<(Subject, &str), Vec<&ReportLine>> = BTreeMap::new();
    for line in &lines {
        let group = groups.entry((line.subject, &line.operation)).or_default();
        group.push(line);
    }
    let mut groups: Vec<((Subject, &str), Vec<&ReportLine>)> = groups.into_iter().collect();
    for (_, lines) in &mut groups {
        // The sort is stable, so that changes of the same impact stay in order.
        lines.sort_by_key(|line| line.impact);
    }
    groups.sort_by_key(|(_, lines)| lines.first().map(|line| line.impact));
    for ((subject, name), lines) in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n## {}\n", title(subject, name));
        for line in lines {
            let _ = writeln!(text, "- **{}** {}", line.impact, line.text);
        }
    }
    text
}

fn title(subject: Subject, name: &str) -> String {
    match subject {
        Subject::Operation if name.is_empty() => "Several operations".to_owned(),
        Subject::Operation => code(name),
        Subject::Tool => format!("Tool {}", code(name)),
        Subject::Set => format!("Set {}", code(name)),
        Subject::Command => format!("Command {}", code(name)),
        Subject::Wording => "Wording".to_owned(),
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
    if change.subject != Subject::Operation {
        return None;
    }
    let path = change.definition_path.as_deref()?;
    let (schema, _) = split_location(&change.location);
    Some((change.impact, schema, path, &change.text))
}

fn operation_line(change: &ApiChange) -> ReportLine {
    let mut text = match change.subject {
        Subject::Wording => String::new(),
        _ => code(&change.operation),
    };
    let (schema, path) = split_location(&change.location);
    for part in [schema.to_owned(), path.map(code).unwrap_or_default()] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&part);
        }
    }
    let _ = write!(text, ": {}", escape_stray(&change.text));
    let text = text.trim_start().to_owned();
    ReportLine {
        impact: change.impact,
        subject: change.subject,
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
        subject: Subject::Operation,
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
    use super::super::{ApiChange, Impact, Subject};
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
            subject: Subject::Operation,
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
    fn groups_by_operation() {
        let text = report(&[change(Impact::Compatible, "a.get", "", "", "added")]);
        assert_eq!(
            text,
            "# API changes\n\n**0 breaking**, 1 compatible, 0 documentation\n\n\
             ## `a.get`\n\n- **compatible** `a.get`: added\n"
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
            "# API changes\n\n**3 breaking**, 0 compatible, 0 documentation\n\n## Several operations\n\n\
             - **breaking** output `Item.id`: removed — in 2 operations: `b.get`, `c.get`\n\n## `a.get`\n\n\
             - **breaking** `a.get`: removed\n\n## `d.get`\n\n\
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

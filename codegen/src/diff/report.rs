//! The Markdown a reviewer reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::markdown::{code, intact};
use super::{Change, Class};

/// Changes that share these are one change of a definition that several operations use.
type Identity<'a> = (Class, &'a str, &'a str, &'a str);

/// One line of the report, ready to print.
struct Line {
    class: Class,
    /// Empty for lines about several operations, which therefore come first.
    operation: String,
    text: String,
}

/// Prints the changes as Markdown, the breaking ones first.
///
/// Every line of a change carries the word of its class. A change of a definition that reaches
/// several operations is one line, and the counts in the summary are counts of lines.
#[must_use]
pub fn report(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "# API changes\n\nNo changes.\n".to_owned();
    }
    let mut lines = lines(changes);
    // The sort is stable, so changes of one operation keep the order they were found in.
    lines.sort_by(|left, right| left.operation.cmp(&right.operation));
    let count = |class| lines.iter().filter(|line| line.class == class).count();
    let mut text = format!(
        "# API changes\n\n**{} breaking**, {} compatible, {} documentation\n",
        count(Class::Breaking),
        count(Class::Compatible),
        count(Class::Documentation),
    );
    for (class, title) in [
        (Class::Breaking, "Breaking"),
        (Class::Compatible, "Compatible"),
        (Class::Documentation, "Documentation"),
    ] {
        section(&mut text, class, title, &lines);
    }
    text
}

fn section(text: &mut String, class: Class, title: &str, lines: &[Line]) {
    let mut lines = lines.iter().filter(|line| line.class == class).peekable();
    if lines.peek().is_none() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- **{class}** {}", line.text);
    }
}

fn lines(changes: &[Change]) -> Vec<Line> {
    let mut users: BTreeMap<Identity<'_>, BTreeSet<&str>> = BTreeMap::new();
    for change in changes {
        if let Some(identity) = identity(change) {
            users.entry(identity).or_default().insert(&change.operation);
        }
    }
    let mut told = BTreeSet::new();
    let mut lines = Vec::new();
    for change in changes {
        let group = identity(change)
            .and_then(|identity| Some((identity, users.get(&identity)?)))
            .filter(|(_, operations)| operations.len() > 1);
        match group {
            None => lines.push(single(change)),
            Some((identity, operations)) if told.insert(identity) => {
                lines.push(several(identity, operations));
            }
            Some(_) => {}
        }
    }
    lines
}

fn identity(change: &Change) -> Option<Identity<'_>> {
    let shared = change.shared.as_deref()?;
    let (side, _) = split(&change.place);
    Some((change.class, side, shared, &change.text))
}

fn single(change: &Change) -> Line {
    let mut text = code(&change.operation);
    let (side, path) = split(&change.place);
    for part in [side.to_owned(), path.map(code).unwrap_or_default()] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(&part);
        }
    }
    let _ = write!(text, ": {}", intact(&change.text));
    Line {
        class: change.class,
        operation: change.operation.clone(),
        text,
    }
}

fn several((class, side, shared, text): Identity<'_>, operations: &BTreeSet<&str>) -> Line {
    let names: Vec<String> = operations.iter().map(|name| code(name)).collect();
    Line {
        class,
        operation: String::new(),
        text: format!(
            "{side} {}: {} — in {} operations: {}",
            code(shared),
            intact(text),
            names.len(),
            names.join(", "),
        ),
    }
}

/// Parts a place into the side of the operation and the path there.
fn split(place: &str) -> (&str, Option<&str>) {
    match place.split_once(' ') {
        Some((side, path)) => (side, Some(path)),
        None => (place, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Class};
    use super::report;

    fn change(class: Class, operation: &str, place: &str, shared: &str, text: &str) -> Change {
        Change {
            class,
            operation: operation.to_owned(),
            place: place.to_owned(),
            shared: (!shared.is_empty()).then(|| shared.to_owned()),
            text: text.to_owned(),
        }
    }

    #[test]
    fn no_changes_are_said_so() {
        assert_eq!(report(&[]), "# API changes\n\nNo changes.\n");
    }

    #[test]
    fn empty_sections_are_left_out() {
        let text = report(&[change(Class::Compatible, "a.get", "", "", "added")]);
        assert_eq!(
            text,
            "# API changes\n\n**0 breaking**, 1 compatible, 0 documentation\n\n\
             ## Compatible\n\n- **compatible** `a.get`: added\n"
        );
    }

    #[test]
    fn one_definition_in_several_operations_is_one_line() {
        let of = |name, place| change(Class::Breaking, name, place, "Item.id", "removed");
        let text = report(&[
            change(Class::Breaking, "a.get", "", "", "removed"),
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
    fn careless_texts_do_not_break_the_list() {
        let text = report(&[change(
            Class::Documentation,
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

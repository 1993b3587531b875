//! Edits JSON documents and leaves everything else as it is: comments, order, indentation and line ends.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value};

use super::json_tree::{Container, Dialect, Kind, Node, Part, parse};
use super::redaction::{self, Position};
use super::{EditError, Problem};

/// A JSON document that can be edited.
#[derive(Debug, Clone)]
pub(super) struct JsonDocument {
    text: String,
    dialect: Dialect,
}

/// How a document is written.
struct Style {
    newline: &'static str,
    indent: String,
    /// The whole document is one line.
    compact: bool,
}

impl JsonDocument {
    /// Creates a document from a text that may be empty.
    pub(super) fn new(text: &str, dialect: Dialect) -> Result<Self, Problem> {
        let document = Self {
            text: text.to_owned(),
            dialect,
        };
        let root = parse(text, dialect)?;
        match root {
            Some(root) if !matches!(root.kind, Kind::Object(_)) => {
                Err(Problem::at(text, root.span.start, "expected an object"))
            }
            _ => Ok(document),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn to_value(&self) -> Value {
        let root = parse(&self.text, self.dialect).ok().flatten();
        root.map_or_else(|| Value::Object(Map::new()), |root| root.to_value())
    }

    /// Returns the text with secrets hidden, line by line.
    pub(super) fn redacted(&self) -> String {
        let mut replacements = Vec::new();
        if let Ok(Some(root)) = parse(&self.text, self.dialect) {
            find_secrets(&root, Position::default(), &mut replacements);
        }
        redaction::replace(&self.text, replacements)
    }

    /// Sets the value at a path. Missing objects on the way are created.
    pub(super) fn set(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        let Some(root) = parse(&self.text, self.dialect)? else {
            self.text = self.text.trim_end().to_owned();
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str("{}\n");
            return self.set(path, value);
        };
        let style = Style::of(&self.text, &root);
        let mut node = &root;
        let mut rest = path;
        while let [key, deeper @ ..] = rest {
            let Kind::Object(object) = &node.kind else {
                return Err(self.not_an_object(path, rest, node));
            };
            let Some(member) = node.member(key) else {
                let value = deeper.iter().rev().fold(value.clone(), |value, key| {
                    Value::Object(Map::from_iter([((*key).to_owned(), value)]))
                });
                let key = Value::from(*key).to_string();
                self.insert(node, object, Some(&key), &value, &style);
                return Ok(());
            };
            node = member;
            rest = deeper;
        }
        if node.to_value() != *value {
            let indent = indent_before(&self.text, node.span.start);
            let formatted = style.format(value, indent);
            self.text.replace_range(node.span.clone(), &formatted);
        }
        Ok(())
    }

    /// Appends a value to the array at a path, which is created if it does not exist.
    pub(super) fn push(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        let root = parse(&self.text, self.dialect)?;
        let found = root.as_ref().and_then(|root| find(root, path));
        let (Some(root), Some(node)) = (&root, found) else {
            return self.set(path, &Value::Array(vec![value.clone()]));
        };
        let Kind::Array(array) = &node.kind else {
            return Err(EditError::Unexpected {
                path: path.join("."),
                expected: "an array",
                line: Problem::at(&self.text, node.span.start, "").line,
            });
        };
        let style = Style::of(&self.text, root);
        self.insert(node, array, None, value, &style);
        Ok(())
    }

    /// Removes the member at a path.
    pub(super) fn remove(&mut self, path: &[&str]) -> Result<(), EditError> {
        let Some((key, parents)) = path.split_last() else {
            return Ok(());
        };
        let root = parse(&self.text, self.dialect)?;
        let Some(node) = root.as_ref().and_then(|root| find(root, parents)) else {
            return Ok(());
        };
        let Kind::Object(object) = &node.kind else {
            return Ok(());
        };
        if let Some(index) = object
            .parts
            .iter()
            .rposition(|part| part.key.as_deref() == Some(*key))
        {
            let removed = cut(&self.text, node, object, index);
            self.apply(removed);
        }
        Ok(())
    }

    /// Removes the elements of an array that match.
    pub(super) fn remove_elements(
        &mut self,
        path: &[&str],
        matches: impl Fn(&Value) -> bool,
    ) -> Result<(), EditError> {
        let root = parse(&self.text, self.dialect)?;
        let Some(node) = root.as_ref().and_then(|root| find(root, path)) else {
            return Ok(());
        };
        let Kind::Array(array) = &node.kind else {
            return Ok(());
        };
        let matching = |part: &Part| matches(&part.value.to_value());
        let Some(index) = array.parts.iter().position(matching) else {
            return Ok(());
        };
        let removed = cut(&self.text, node, array, index);
        self.apply(removed);
        self.remove_elements(path, matches)
    }

    /// Deletes places of the text, which come in ascending order.
    fn apply(&mut self, removed: Vec<std::ops::Range<usize>>) {
        for range in removed.into_iter().rev() {
            self.text.replace_range(range, "");
        }
    }

    fn not_an_object(&self, path: &[&str], rest: &[&str], node: &Node) -> EditError {
        let parents = path.len().saturating_sub(rest.len());
        EditError::Unexpected {
            path: path.get(..parents).unwrap_or_default().join("."),
            expected: "an object",
            line: Problem::at(&self.text, node.span.start, "").line,
        }
    }

    /// Inserts a part at the end of a container.
    fn insert(
        &mut self,
        node: &Node,
        container: &Container,
        key: Option<&str>,
        value: &Value,
        style: &Style,
    ) {
        let text = &self.text;
        let (Some(first), Some(last)) = (container.parts.first(), container.parts.last()) else {
            self.fill(node, container.content_end, key, value, style);
            return;
        };
        let lead = slice(text, node.span.start + 1, first.start);
        let after_comment = is_after_line_comment(text, container.content_end);
        let (separator, entry) = if lead.contains('\n') || after_comment {
            let indent = indent_before(text, first.start).to_owned();
            let entry = style.entry(key, value, &indent);
            (format!("{}{indent}", style.newline), entry)
        } else {
            // The members share a line.
            let separator = if lead.trim().is_empty() && style.compact {
                lead
            } else {
                " "
            };
            (separator.to_owned(), compact_entry(key, value, lead))
        };
        let trailing = if last.comma.is_some() { "," } else { "" };
        let insertion = format!("{separator}{entry}{trailing}");
        self.text.insert_str(container.content_end, &insertion);
        if last.comma.is_none() {
            self.text.insert(last.value.span.end, ',');
        }
    }

    /// Inserts the first part of a container.
    fn fill(
        &mut self,
        node: &Node,
        content_end: usize,
        key: Option<&str>,
        value: &Value,
        style: &Style,
    ) {
        let close = node.span.end - 1;
        if style.compact {
            let entry = compact_entry(key, value, "");
            self.text.insert_str(content_end, &entry);
            return;
        }
        let outer = indent_before(&self.text, node.span.start);
        let indent = format!("{outer}{}", style.indent);
        let newline = style.newline;
        let entry = style.entry(key, value, &indent);
        let replacement = format!("{newline}{indent}{entry}{newline}{outer}");
        self.text.replace_range(content_end..close, &replacement);
    }
}

impl Style {
    fn of(text: &str, root: &Node) -> Self {
        let newline = match text.find('\n') {
            Some(end) if slice(text, 0, end).ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let first = match &root.kind {
            Kind::Object(object) => object.parts.first().map(|part| part.start),
            _ => None,
        };
        let indent = first.map(|start| indent_before(text, start));
        let own_line =
            first.is_some_and(|start| slice(text, root.span.start, start).contains('\n'));
        let indent = indent.filter(|indent| own_line && !indent.is_empty());
        Self {
            newline,
            indent: indent.unwrap_or("  ").to_owned(),
            compact: first.is_some() && !slice(text, root.span.start, root.span.end).contains('\n'),
        }
    }

    fn format(&self, value: &Value, indent: &str) -> String {
        if self.compact {
            return value.to_string();
        }
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.indent.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        if value.serialize(&mut serializer).is_err() {
            return value.to_string();
        }
        // Line ends inside of strings are escaped.
        String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", self.newline))
    }

    fn entry(&self, key: Option<&str>, value: &Value, indent: &str) -> String {
        let value = self.format(value, indent);
        key.map_or_else(|| value.clone(), |key| format!("{key}: {value}"))
    }
}

/// Collects the places of secrets, and what is shown instead of them.
fn find_secrets(
    node: &Node,
    position: Position<'_>,
    replacements: &mut Vec<(std::ops::Range<usize>, String)>,
) {
    match &node.kind {
        Kind::Object(object) => {
            for part in &object.parts {
                let key = part.key.as_deref().unwrap_or_default();
                find_secrets(&part.value, position.member(key), replacements);
            }
        }
        Kind::Array(array) => {
            let mut previous = None;
            for part in &array.parts {
                find_secrets(&part.value, position.element(previous), replacements);
                previous = part.value.as_str();
            }
        }
        Kind::Scalar(Value::String(text)) => {
            let shown = redaction::redact(text, position);
            replacements.extend(shown.map(|shown| (node.span.clone(), shown)));
        }
        Kind::Scalar(_) => {}
    }
}

/// Returns a part without line ends. A document without spaces stays so.
fn compact_entry(key: Option<&str>, value: &Value, lead: &str) -> String {
    let space = if lead.is_empty() { "" } else { " " };
    key.map_or_else(|| value.to_string(), |key| format!("{key}:{space}{value}"))
}

/// Returns the places to delete in order to remove a part of a container.
fn cut(
    text: &str,
    node: &Node,
    container: &Container,
    index: usize,
) -> Vec<std::ops::Range<usize>> {
    let parts = &container.parts;
    let Some(part) = parts.get(index) else {
        return Vec::new();
    };
    let before = slice(text, 0, part.start).trim_end().len();
    let rest = slice(text, part.end(), text.len()).trim_start_matches([' ', '\t', '\r']);
    let start = if is_after_line_comment(text, before) && !rest.starts_with('\n') {
        // The comment must not swallow what follows.
        part.start
    } else {
        before
    };
    let close = node.span.end - 1;
    let mut removed = Vec::new();
    let is_last = index + 1 == parts.len();
    let is_alone = parts.len() == 1 && before == node.span.start + 1;
    if is_alone && slice(text, part.end(), close).trim().is_empty() {
        removed.push(before..close);
        return removed;
    }
    let previous = index.checked_sub(1).and_then(|index| parts.get(index));
    if let Some(comma) = previous.and_then(|previous| previous.comma)
        && is_last
        && part.comma.is_none()
    {
        removed.push(comma..comma + 1);
    }
    let from = removed.last().map_or(start, |comma| start.max(comma.end));
    removed.push(from..part.end());
    removed
}

/// Returns whether the line that ends here ends with a comment.
fn is_after_line_comment(text: &str, position: usize) -> bool {
    let line = slice(text, 0, position)
        .rsplit('\n')
        .next()
        .unwrap_or_default();
    let mut rest = line.chars().peekable();
    let (mut in_string, mut in_block) = (false, false);
    while let Some(character) = rest.next() {
        match (character, rest.peek()) {
            ('\\', _) if in_string => {
                rest.next();
            }
            ('"', _) if !in_block => in_string = !in_string,
            ('*', Some('/')) if in_block => in_block = false,
            ('/', Some('*')) if !in_string => in_block = true,
            ('/', Some('/')) if !in_string && !in_block => return true,
            _ => {}
        }
    }
    false
}

fn find<'a>(root: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(root, |node, key| node.member(key))
}

/// Returns the whitespace at the start of the line of a position.
fn indent_before(text: &str, position: usize) -> &str {
    let before = slice(text, 0, position);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let end = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..end).unwrap_or_default()
}

fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

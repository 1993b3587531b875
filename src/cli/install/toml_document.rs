//! Edits TOML documents and leaves everything else as it is.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::redaction::{self, Position};
use super::{EditError, Problem};

/// A TOML document that can be edited.
#[derive(Debug, Clone)]
pub(super) struct TomlDocument {
    text: String,
}

impl TomlDocument {
    pub(super) fn new(text: &str) -> Result<Self, Problem> {
        parse(text)?;
        Ok(Self {
            text: text.to_owned(),
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn to_value(&self) -> Value {
        parse(&self.text).map_or(Value::Null, |document| table_value(document.as_table()))
    }

    /// Returns the text with secrets hidden, line by line.
    pub(super) fn redacted(&self) -> String {
        let mut replacements = Vec::new();
        // The editable form of a document does not know where its parts are.
        if let Ok(document) = toml_edit::Document::parse(self.text.as_str()) {
            find_secrets(document.as_table(), Position::default(), &mut replacements);
        }
        redaction::replace(&self.text, replacements)
    }

    /// Sets the value at a path. Missing tables on the way are created.
    pub(super) fn set(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        let document = parse(&self.text)?;
        if let ([servers, name], Value::Object(_)) = (path, value)
            && self.append_table(&document, servers, name, value)
        {
            return Ok(());
        }
        self.edit(path, |table| {
            let (key, parents) = path.split_last()?;
            let table = descend(table, parents)?;
            match table.get_mut(key) {
                // The decoration of the value that is replaced: a comment after it, for example.
                Some(Item::Value(old)) => {
                    let mut new = toml_value(value)?;
                    *new.decor_mut() = old.decor().clone();
                    *old = new;
                }
                _ => {
                    table.insert(key, Item::Value(toml_value(value)?));
                }
            }
            Some(())
        })
    }

    /// Removes the value or table at a path.
    pub(super) fn remove(&mut self, path: &[&str]) -> Result<(), EditError> {
        if let [servers, name] = path
            && let Some(block) = find_block(&self.text, servers, name)
        {
            self.text = without_block(&self.text, block);
            return Ok(());
        }
        self.edit(path, |table| {
            let (key, parents) = path.split_last()?;
            let parent = descend(table, parents)?;
            parent.remove(key);
            Some(())
        })
    }

    /// Appends a table to the text, which changes nothing before it. Returns whether that is possible.
    fn append_table(
        &mut self,
        document: &DocumentMut,
        servers: &str,
        name: &str,
        value: &Value,
    ) -> bool {
        let existing = document.get(servers).and_then(Item::as_table_like);
        if existing.is_some_and(|table| table.contains_key(name)) {
            return false;
        }
        let newline = newline(&self.text);
        let mut text = self.text.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(newline);
        }
        if !text.trim().is_empty() {
            text.push_str(newline);
        }
        let mut table = Table::new();
        for (key, value) in value.as_object().into_iter().flatten() {
            let Some(value) = toml_value(value) else {
                return false;
            };
            table.insert(key, Item::Value(value));
        }
        let mut tables = Table::new();
        tables.set_implicit(true);
        tables.insert(name, Item::Table(table));
        let mut block = DocumentMut::new();
        block.insert(servers, Item::Table(tables));
        text.push_str(&block.to_string().replace('\n', newline));
        let possible = parse(&text).is_ok();
        if possible {
            self.text = text;
        }
        possible
    }

    /// Changes the parsed document, and takes over the lines that changed. If the table of a server is on its own, the
    /// rest of the document is not even formatted.
    fn edit(
        &mut self,
        path: &[&str],
        change: impl FnOnce(&mut Table) -> Option<()>,
    ) -> Result<(), EditError> {
        let block = match path {
            [servers, name, ..] => find_block(&self.text, servers, name),
            _ => None,
        };
        let block = block.unwrap_or(0..self.text.len());
        let original = self.text.get(block.clone()).unwrap_or_default();
        let plain = original.replace("\r\n", "\n");
        let mut document = parse(&plain)?;
        let unchanged = document.to_string();
        if unchanged != plain && unchanged != format!("{plain}\n") {
            return Err(EditError::Formatting);
        }
        change(document.as_table_mut()).ok_or(EditError::Formatting)?;
        let edited = splice_lines(original, &unchanged, &document.to_string());
        self.text.replace_range(block, &edited);
        Ok(())
    }
}

/// Returns where the tables of a server are, if they follow each other and have headers of their own.
fn find_block(text: &str, servers: &str, name: &str) -> Option<Range<usize>> {
    let mut block: Option<Range<usize>> = None;
    let (mut position, mut inside) = (0, false);
    for line in text.split_inclusive('\n') {
        let end = position + line.len();
        let content = line.trim();
        if content.starts_with('[')
            && let Ok(header) = content.parse::<DocumentMut>()
        {
            let table = header.get(servers).and_then(|servers| servers.get(name));
            let is_own = table.is_some_and(Item::is_table);
            if is_own && block.is_some() && !inside {
                return None;
            }
            inside = is_own;
        }
        if inside && !content.is_empty() && !content.starts_with('#') {
            let start = block.as_ref().map_or(position, |block| block.start);
            block = Some(start..end);
        }
        position = end;
    }
    let block = block?;
    // What looks like a header may be inside of a string; then the parts are not valid by themselves.
    parse(text.get(block.clone())?).is_ok().then_some(block)
}

/// Removes a block, and the blank line that separates it from what is before it.
fn without_block(text: &str, block: Range<usize>) -> String {
    let before = text.get(..block.start).unwrap_or_default();
    let after = text.get(block.end..).unwrap_or_default();
    let blank = ["\n\r\n", "\n\n"]
        .into_iter()
        .find(|end| before.ends_with(end));
    let is_separated = after.is_empty() || after.starts_with('\n') || after.starts_with("\r\n");
    let before = match blank {
        Some(blank) if is_separated => {
            let blank_line = blank.len() - 1;
            before.get(..before.len() - blank_line).unwrap_or_default()
        }
        _ => before,
    };
    format!("{before}{after}")
}

/// Returns the original text with those lines replaced that differ between `before` and `after`. The original may have
/// other line ends than the two.
fn splice_lines(original: &str, before: &str, after: &str) -> String {
    let newline = newline(original);
    let original: Vec<&str> = original.split_inclusive('\n').collect();
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let pairs = before.iter().zip(&after);
    let head = pairs.take_while(|(old, new)| old == new).count();
    let pairs = before.iter().rev().zip(after.iter().rev());
    let longest = before.len().min(after.len()) - head;
    let tail = pairs
        .take(longest)
        .take_while(|(old, new)| old == new)
        .count();
    let middle = after.get(head..after.len() - tail).unwrap_or_default();
    let mut text = original.get(..head).unwrap_or_default().concat();
    text.push_str(&middle.concat().replace('\n', newline));
    let rest = original.len().saturating_sub(tail);
    text.push_str(&original.get(rest..).unwrap_or_default().concat());
    text
}

fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn parse(text: &str) -> Result<DocumentMut, Problem> {
    text.parse::<DocumentMut>().map_err(|error| {
        let position = error.span().map_or(0, |span| span.start);
        Problem::at(text, position, error.message())
    })
}

fn descend<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut dyn TableLike> {
    let mut current: &mut dyn TableLike = table;
    for key in path {
        current = current.get_mut(key)?.as_table_like_mut()?;
    }
    Some(current)
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Array(values) => {
            let values = values.iter().map(toml_value).collect::<Option<Vec<_>>>()?;
            toml_edit::Value::Array(Array::from_iter(values))
        }
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (key, value) in members {
                table.insert(key, toml_value(value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
        Value::Number(number) => number.as_i64()?.into(),
        Value::Null => return None,
    })
}

fn table_value(table: &dyn TableLike) -> Value {
    let members = table.iter();
    let members = members.map(|(key, item)| (key.to_owned(), item_value(item)));
    Value::Object(members.collect())
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| table_value(table)).collect(),
    }
}

type Replacements = Vec<(Range<usize>, String)>;

/// Collects the places of secrets, and what is shown instead of them.
fn find_secrets(table: &dyn TableLike, position: Position<'_>, replacements: &mut Replacements) {
    for (key, item) in table.iter() {
        let position = position.member(key);
        match item {
            Item::None => {}
            Item::Value(value) => find_secrets_of_value(value, position, replacements),
            Item::Table(table) => find_secrets(table, position, replacements),
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    find_secrets(table, position, replacements);
                }
            }
        }
    }
}

fn find_secrets_of_value(
    value: &toml_edit::Value,
    position: Position<'_>,
    replacements: &mut Replacements,
) {
    match value {
        toml_edit::Value::String(text) => {
            let shown = redaction::redact(text.value(), position);
            replacements.extend(value.span().zip(shown));
        }
        toml_edit::Value::Array(values) => {
            let mut previous = None;
            for value in values {
                find_secrets_of_value(value, position.element(previous), replacements);
                previous = value.as_str();
            }
        }
        toml_edit::Value::InlineTable(table) => find_secrets(table, position, replacements),
        _ => {}
    }
}

/// Converts a value. Numbers and dates keep their spelling, because they are only compared.
fn plain_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Boolean(flag) => Value::from(*flag.value()),
        toml_edit::Value::Array(values) => values.iter().map(plain_value).collect(),
        toml_edit::Value::InlineTable(table) => table_value(table),
        other => Value::from(other.to_string().trim()),
    }
}

//! A configuration file's text, in any of the formats.

use serde_json::Value;

use super::clients::Format;
use super::entry::Entry;
use super::json_document::JsonDocument;
use super::toml_document::TomlDocument;
use super::{EditError, Problem};

/// A document that can be edited.
#[derive(Debug, Clone)]
pub(super) enum Document {
    Json(JsonDocument),
    Toml(TomlDocument),
}

impl Document {
    pub(super) fn new(text: &str, format: Format) -> Result<Self, Problem> {
        Ok(match format {
            Format::Json(dialect) => Self::Json(JsonDocument::new(text, dialect)?),
            Format::Toml => Self::Toml(TomlDocument::new(text)?),
        })
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Json(document) => document.text(),
            Self::Toml(document) => document.text(),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Json(document) => document.to_value(),
            Self::Toml(document) => document.to_value(),
        }
    }

    /// Returns the text with secrets hidden, line by line.
    pub(super) fn redacted(&self) -> String {
        match self {
            Self::Json(document) => document.redacted(),
            Self::Toml(document) => document.redacted(),
        }
    }

    /// Returns whether the text consists of nothing but its containers: there are no comments in it.
    pub(super) fn is_bare(&self) -> bool {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        match self {
            Self::Json(document) => {
                let text = bare(document.text());
                text.is_empty() || text == bare(&document.to_value().to_string())
            }
            Self::Toml(document) => document.text().trim().is_empty(),
        }
    }

    /// Returns a server's entry.
    pub(super) fn entry(&self, servers: &str, name: &str) -> Option<Value> {
        self.to_value().get(servers)?.get(name).cloned()
    }

    /// Adds an entry, or changes the parts of an existing one that differ.
    pub(super) fn set_entry(
        &mut self,
        servers: &str,
        name: &str,
        entry: &Entry,
    ) -> Result<(), EditError> {
        let inputs = self.to_value();
        let inputs = inputs.get("inputs").and_then(Value::as_array);
        let ids = inputs.into_iter().flatten();
        let ids: Vec<Value> = ids.filter_map(|input| input.get("id").cloned()).collect();
        for input in &entry.inputs {
            let known = input.get("id").is_some_and(|id| ids.contains(id));
            if let Self::Json(document) = self
                && !known
            {
                document.push(&["inputs"], input)?;
            }
        }
        let old = self.entry(servers, name);
        self.change(&[servers, name], old.as_ref(), &entry.value)
    }

    /// Removes an entry, and the inputs with these identifiers that nothing refers to any more.
    pub(super) fn remove_entry(
        &mut self,
        servers: &str,
        name: &str,
        inputs: &[&str],
    ) -> Result<(), EditError> {
        self.remove(&[servers, name])?;
        self.remove_unused_inputs(inputs)
    }

    /// Removes the inputs with these identifiers that nothing refers to.
    pub(super) fn remove_unused_inputs(&mut self, ids: &[&str]) -> Result<(), EditError> {
        let Self::Json(document) = self else {
            return Ok(());
        };
        let text = document.to_value().to_string();
        let unused = |input: &Value| {
            let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
            ids.contains(&id) && !text.contains(&format!("${{input:{id}}}"))
        };
        document.remove_elements(&["inputs"], unused)
    }

    fn set(&mut self, path: &[&str], value: &Value) -> Result<(), EditError> {
        match self {
            Self::Json(document) => document.set(path, value),
            Self::Toml(document) => document.set(path, value),
        }
    }

    pub(super) fn remove(&mut self, path: &[&str]) -> Result<(), EditError> {
        match self {
            Self::Json(document) => document.remove(path),
            Self::Toml(document) => document.remove(path),
        }
    }

    /// Changes what differs between two values.
    fn change(&mut self, path: &[&str], old: Option<&Value>, new: &Value) -> Result<(), EditError> {
        if old == Some(new) {
            return Ok(());
        }
        let (Some(Value::Object(old)), Value::Object(new)) = (old, new) else {
            return self.set(path, new);
        };
        for key in old.keys().filter(|key| !new.contains_key(*key)) {
            self.remove(&[path, &[key]].concat())?;
        }
        for (key, value) in new {
            self.change(&[path, &[key]].concat(), old.get(key), value)?;
        }
        Ok(())
    }
}

//! Building blocks of messages: values, paths and expectations.

use std::fmt;

use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::schema::Node;

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 80;

/// A path in the arguments, such as `search.criteria[0].description`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ArgumentPath(String);

impl ArgumentPath {
    /// Returns the path of the property `name`.
    pub(super) fn property(&self, name: &str) -> Self {
        let name = short(name);
        if self.0.is_empty() {
            Self(name)
        } else {
            Self(format!("{}.{name}", self.0))
        }
    }

    /// Returns the path of the entry `index`.
    pub(super) fn entry(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Returns whether this is the path of the arguments as a whole.
    pub(super) fn is_top(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&Location> for ArgumentPath {
    fn from(location: &Location) -> Self {
        location
            .into_iter()
            .fold(Self::default(), |path, segment| match segment {
                LocationSegment::Property(name) => path.property(&name),
                LocationSegment::Index(index) => path.entry(index),
            })
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_top() { "arguments" } else { &self.0 })
    }
}

/// Shortens `text` to at most 80 characters on one line.
pub(super) fn short(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_SHOWN)
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Formats a given value inside a sentence.
pub(super) fn given(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => format!("`{}`", short(text)),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => format!("the list `{}`", short(&value.to_string())),
        Value::Object(_) => format!("the object `{}`", short(&value.to_string())),
        other => other.to_string(),
    }
}

/// Formats a given value inside a sentence about its type.
pub(super) fn given_with_type(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => format!("the string {}", given(value)),
        Value::Number(number) => format!("the number {number}"),
        other => given(other),
    }
}

/// Formats the values that a schema accepts.
pub(super) fn expected(node: &Node<'_>) -> String {
    let choices = node.choices();
    if !choices.is_empty() {
        return one_of(choices.into_iter());
    }
    let mut forms: Vec<String> = Vec::new();
    let branches = node.branches();
    let mut types = node.types();
    if types != ["null"] {
        // A value that may be null may also be omitted, which needs no advice.
        types.retain(|kind| *kind != "null");
    }
    let all = types.iter().map(|kind| describe_type(node, kind));
    for form in all.chain(branches.iter().map(expected)) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    if forms.is_empty() {
        return "any value".to_owned();
    }
    forms.join(" or ")
}

fn describe_type(node: &Node<'_>, kind: &str) -> String {
    match kind {
        "string" if node.keyword("format").is_some_and(|it| it == "date-time") => {
            "a date-time".to_owned()
        }
        "string" => "a string".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => match node.items().map(|items| items.types()).as_deref() {
            Some(["string"]) => "a list of strings".to_owned(),
            Some(["object"]) => "a list of objects".to_owned(),
            Some(["integer" | "number"]) => "a list of numbers".to_owned(),
            _ => "a list".to_owned(),
        },
        "object" => {
            let required: Vec<String> =
                node.required().iter().map(|it| format!("`{it}`")).collect();
            if required.is_empty() {
                "an object".to_owned()
            } else {
                format!("an object with {}", required.join(" and "))
            }
        }
        other => other.to_owned(),
    }
}

/// Formats a list of allowed values inside a sentence.
pub(super) fn one_of<'v>(choices: impl Iterator<Item = &'v Value>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for choice in choices {
        let text = match choice {
            Value::String(text) => text.clone(),
            // A value that may be null may also be omitted, which needs no advice.
            Value::Null => continue,
            other => other.to_string(),
        };
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [only] => format!("`{only}`"),
        _ => format!("one of {}", texts.join(", ")),
    }
}

/// Formats a number with its noun: `1 entry`, `2 entries`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns whether `text` is an HTTP or HTTPS URL.
pub(super) fn is_web_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("https://")
        .or_else(|| lower.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with(['/', '?', '#', ':'])
            && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}

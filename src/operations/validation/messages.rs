//! How values, places and wishes are put into words.

use std::fmt;

use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use super::schema::Node;

/// Given values are shown up to this many characters.
const SHOWN: usize = 80;

/// A place in the arguments, written `search.criteria[0].description`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place(String);

impl Place {
    /// The property `name` of this place.
    pub(super) fn property(&self, name: &str) -> Self {
        let name = short(name);
        if self.0.is_empty() {
            Self(name)
        } else {
            Self(format!("{}.{name}", self.0))
        }
    }

    /// The entry `index` of this place.
    pub(super) fn entry(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Whether it is the arguments as a whole.
    pub(super) fn is_top(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&Location> for Place {
    fn from(location: &Location) -> Self {
        location
            .into_iter()
            .fold(Self::default(), |place, segment| match segment {
                LocationSegment::Property(name) => place.property(&name),
                LocationSegment::Index(index) => place.entry(index),
            })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_top() { "arguments" } else { &self.0 })
    }
}

/// At most 80 characters of `text`, on one line.
pub(super) fn short(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A given value inside a sentence.
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

/// A given value inside a sentence that is about kinds.
pub(super) fn given_kind(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => format!("the string {}", given(value)),
        Value::Number(number) => format!("the number {number}"),
        other => given(other),
    }
}

/// What may be given at a place.
pub(super) fn wanted(node: &Node<'_>) -> String {
    let choices = node.choices();
    if !choices.is_empty() {
        return one_of(choices.into_iter());
    }
    let mut forms: Vec<String> = Vec::new();
    let branches = node.branches();
    let kinds = node.kinds();
    let all = kinds.iter().map(|kind| of_kind(node, kind));
    for form in all.chain(branches.iter().map(wanted)) {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    if forms.is_empty() {
        return "any value".to_owned();
    }
    forms.join(" or ")
}

fn of_kind(node: &Node<'_>, kind: &str) -> String {
    match kind {
        "string" if node.keyword("format").is_some_and(|it| it == "date-time") => {
            "a date-time".to_owned()
        }
        "string" => "a string".to_owned(),
        "integer" => "a whole number".to_owned(),
        "number" => "a number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => match node.items().map(|items| items.kinds()).as_deref() {
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

/// The allowed values inside a sentence.
pub(super) fn one_of<'v>(choices: impl Iterator<Item = &'v Value>) -> String {
    let mut texts: Vec<String> = Vec::new();
    for choice in choices {
        let text = match choice {
            Value::String(text) => text.clone(),
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

/// `1 entry`, `2 entries`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Whether `text` is an address that a browser could open.
pub(super) fn is_web_address(text: &str) -> bool {
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

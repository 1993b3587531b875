//! Corrects single values of the wrong type or spelling.

use serde_json::{Map, Number, Value};

use super::super::input_schema;
use super::super::messages::{self, ArgumentPath, short};
use super::super::names;
use super::super::schema::Node;
use super::super::synonyms;

/// A corrected value.
pub(super) struct Coerced {
    /// The corrected value.
    pub(super) value: Value,
    /// A description of the correction.
    pub(super) how: String,
}

impl Coerced {
    fn some(value: Value, how: String) -> Option<Self> {
        Some(Self { value, how })
    }

    fn read(text: &str, value: Value) -> Option<Self> {
        let shown = short(&value.to_string());
        let kind = if value.is_number() { "the number " } else { "" };
        Self::some(value, format!("read \"{}\" as {kind}{shown}", short(text)))
    }
}

/// Returns the integer for a number such as 5.0 if only integers are accepted.
pub(super) fn to_integer(node: &Node<'_>, value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|_| value.is_f64())?;
    let wanted = node.accepts_type("integer") && !node.accepts_type("number");
    exact_integer(float).filter(|_| wanted)
}

/// Beyond 2^53, neighboring integers share one float, so there is no telling which was meant.
fn exact_integer(float: f64) -> Option<Value> {
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    exact.then(|| Value::from(float as i64))
}

/// Returns the listed value that a string was meant to be, where other texts are accepted too.
pub(super) fn listed_spelling(node: &Node<'_>, value: &Value) -> Option<Coerced> {
    let text = value.as_str()?;
    let choices = node.open_choices();
    if choices.contains(&value) {
        return None;
    }
    let meant = names::variant(text, choices.iter().filter_map(|choice| choice.as_str()))?;
    Coerced::read(text, meant.into())
}

/// Returns the enum value or the date-time that a string was meant to be. `is_end` is whether a date stands for its end.
pub(super) fn spelling(node: &Node<'_>, value: &Value, is_end: bool) -> Option<Coerced> {
    let text = value.as_str()?;
    let mut choices = node.choices();
    let is_closed = !choices.is_empty();
    if !is_closed {
        // The listed values of a union that also accepts other texts.
        choices = node.branches().iter().flat_map(Node::choices).collect();
    }
    if !choices.is_empty() {
        if choices.contains(&value) {
            return None;
        }
        let listed = choices.iter().filter_map(|choice| choice.as_str());
        let other = || synonyms::meant_value(text, listed.clone()).filter(|_| is_closed);
        let meant = names::variant(text, listed.clone()).or_else(other)?;
        return Coerced::read(text, meant.into());
    }
    if node.keyword("format").is_some_and(|it| it == "date-time") {
        return date_time(text, is_end).and_then(|right| Coerced::read(text, right.into()));
    }
    None
}

/// Completes a date-time: a date stands for its start or its end, and a time without a zone is in UTC.
fn date_time(text: &str, is_end: bool) -> Option<String> {
    if input_schema::is_date_time(text) {
        return None;
    }
    let text = text.trim().replacen(' ', "T", 1);
    let forms = [
        text.clone(),
        format!("{text}Z"),
        format!("{text}:00Z"),
        format!(
            "{text}T{}Z",
            if is_end { "23:59:59.999" } else { "00:00:00" }
        ),
    ];
    forms
        .into_iter()
        .find(|form| input_schema::is_date_time(form))
}

/// Converts `value` to an accepted type. `entry_fits` decides whether a value can be an entry of an accepted list.
pub(super) fn convert(
    node: &Node<'_>,
    value: &Value,
    path: &ArgumentPath,
    entry_fits: &dyn Fn(&Value) -> bool,
) -> Option<Coerced> {
    node.types()
        .into_iter()
        .find_map(|kind| match (kind, value) {
            ("integer" | "number", Value::String(text)) => {
                number(text, kind == "integer").and_then(|right| Coerced::read(text, right))
            }
            ("boolean", Value::String(text)) => {
                boolean(text).and_then(|right| Coerced::read(text, right.into()))
            }
            ("string", Value::Number(number)) => Coerced::some(
                number.to_string().into(),
                format!("read the number {number} as the string \"{number}\""),
            ),
            ("object", Value::String(text)) => object(node, text),
            ("array", Value::String(text)) => list(node, text, path, entry_fits),
            ("array", Value::Null) => None,
            ("array", single) => wrap(single, entry_fits),
            _ => None,
        })
}

fn number(text: &str, whole: bool) -> Option<Value> {
    let number: Number = serde_json::from_str(text.trim()).ok()?;
    match number.as_f64() {
        Some(float) if whole && number.is_f64() => exact_integer(float),
        _ => Some(Value::Number(number)),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Converts a string to an object: parses its JSON, or uses it as the shorthand of a property.
fn object(node: &Node<'_>, text: &str) -> Option<Coerced> {
    if let Ok(parsed @ Value::Object(_)) = serde_json::from_str(text) {
        return Coerced::some(parsed, "read the JSON text as an object".to_owned());
    }
    if is_empty_or_broken_json(text) {
        return None;
    }
    let (name, value) = shorthand(node, text)?;
    let object = Value::Object(Map::from_iter([(name, value)]));
    let shown = short(&object.to_string());
    Coerced::some(object, format!("read \"{}\" as {shown}", short(text)))
}

/// Returns the property that a string is the shorthand of: the one whose enum contains it, or the only required one.
fn shorthand(node: &Node<'_>, text: &str) -> Option<(String, Value)> {
    let required = node.required();
    for name in &required {
        let choices = node.property(name)?.choices();
        let listed = choices.iter().filter_map(|choice| choice.as_str());
        if let Some(choice) = names::variant(text, listed) {
            return Some(((*name).to_owned(), choice.into()));
        }
    }
    let [name] = required.as_slice() else {
        return None;
    };
    let property = node.property(name)?;
    let free = property.types() == ["string"] && property.choices().is_empty();
    free.then(|| ((*name).to_owned(), text.into()))
}

/// Converts a string to a list: parses its JSON, splits it at commas, or wraps it.
fn list(
    node: &Node<'_>,
    text: &str,
    path: &ArgumentPath,
    entry_fits: &dyn Fn(&Value) -> bool,
) -> Option<Coerced> {
    if let Ok(parsed @ Value::Array(_)) = serde_json::from_str(text) {
        return Coerced::some(parsed, "read the JSON text as a list".to_owned());
    }
    if let Ok(entry @ Value::Object(_)) = serde_json::from_str(text) {
        return wrap(&entry, entry_fits);
    }
    if is_empty_or_broken_json(text) {
        return None;
    }
    let entries: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .collect();
    if entries.len() > 1 && may_split(node, &entries, path) {
        let how = format!("split \"{}\" at the commas", short(text));
        return Coerced::some(entries.into_iter().map(Value::from).collect(), how);
    }
    wrap(&Value::from(text), entry_fits)
}

/// Returns whether commas separate entries. They may be part of a text, but not of an enum value, a domain or a token;
/// between web URLs they are separators.
fn may_split(node: &Node<'_>, entries: &[&str], path: &ArgumentPath) -> bool {
    let listed = node
        .items()
        .is_some_and(|items| !items.choices().is_empty());
    let name = names::normalize(&path.to_string());
    let tokens = name.ends_with("domains") || name.ends_with("betas");
    let all = |test: &dyn Fn(&str) -> bool| entries.iter().all(|entry| test(entry));
    listed
        || (tokens && all(&|entry| !entry.contains(char::is_whitespace)))
        || all(&|entry| messages::is_web_url(entry))
}

fn wrap(single: &Value, entry_fits: &dyn Fn(&Value) -> bool) -> Option<Coerced> {
    if !entry_fits(single) {
        return None;
    }
    let how = "put the single value into a list".to_owned();
    Coerced::some(Value::Array(vec![single.clone()]), how)
}

/// Returns whether `text` is empty or truncated JSON, which is neither an entry nor a shorthand.
fn is_empty_or_broken_json(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['{', '['])
}

//! Single values of the wrong kind or spelling, and what they were meant to be.

use serde_json::{Map, Number, Value};

use super::super::messages::{self, Place, short};
use super::super::names;
use super::super::schema::Node;
use super::super::validate;

/// A value put right.
pub(super) struct Coerced {
    /// What it was meant to be.
    pub(super) value: Value,
    /// What was done to it.
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

/// The whole number behind a number like 5.0 where only whole ones are wanted.
pub(super) fn whole(node: &Node<'_>, value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|_| value.is_f64())?;
    let wanted = node.wants("integer") && !node.wants("number");
    as_whole(float).filter(|_| wanted)
}

/// Beyond 2^53 neighbouring whole numbers share one float: nothing says which was meant.
fn as_whole(float: f64) -> Option<Value> {
    let exact = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    exact.then(|| Value::from(float as i64))
}

/// The listed value or the date that a text of the right kind was meant to be.
pub(super) fn spelling(node: &Node<'_>, value: &Value) -> Option<Coerced> {
    let text = value.as_str()?;
    let choices = node.choices();
    if !choices.is_empty() {
        if choices.contains(&value) {
            return None;
        }
        let listed = choices.iter().filter_map(|choice| choice.as_str());
        let meant = names::variant(text, listed)?;
        return Coerced::read(text, meant.into());
    }
    if node.keyword("format").is_some_and(|it| it == "date-time") {
        return date_time(text).and_then(|right| Coerced::read(text, right.into()));
    }
    None
}

/// A date stands for its first moment; a time without a zone is read in UTC.
fn date_time(text: &str) -> Option<String> {
    if validate::is_date_time(text) {
        return None;
    }
    let text = text.trim().replacen(' ', "T", 1);
    let forms = [
        text.clone(),
        format!("{text}Z"),
        format!("{text}:00Z"),
        format!("{text}T00:00:00Z"),
    ];
    forms.into_iter().find(|form| validate::is_date_time(form))
}

/// The value of a wanted kind that `value` was meant to be. `entry_fits` says whether a value can
/// be an entry of the list that is wanted.
pub(super) fn kind(
    node: &Node<'_>,
    value: &Value,
    place: &Place,
    entry_fits: &dyn Fn(&Value) -> bool,
) -> Option<Coerced> {
    node.kinds()
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
            ("array", Value::String(text)) => list(node, text, place, entry_fits),
            ("array", Value::Null) => None,
            ("array", single) => wrap(single, entry_fits),
            _ => None,
        })
}

fn number(text: &str, whole: bool) -> Option<Value> {
    let number: Number = serde_json::from_str(text.trim()).ok()?;
    match number.as_f64() {
        Some(float) if whole && number.is_f64() => as_whole(float),
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

/// An object that was sent as text: its JSON, or the one thing that matters in it.
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

/// The property that a text alone stands for: the one whose listed values contain it, or the only
/// required one.
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
    let free = property.kinds() == ["string"] && property.choices().is_empty();
    free.then(|| ((*name).to_owned(), text.into()))
}

/// A list that was sent as text: its JSON, its entries with commas between, or its only entry.
fn list(
    node: &Node<'_>,
    text: &str,
    place: &Place,
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
    if entries.len() > 1 && may_split(node, &entries, place) {
        let how = format!("split \"{}\" at the commas", short(text));
        return Coerced::some(entries.into_iter().map(Value::from).collect(), how);
    }
    wrap(&Value::from(text), entry_fits)
}

/// A comma may be part of a text; it cannot be part of a listed value, a domain or a token, and
/// before `https://` it ends an address.
fn may_split(node: &Node<'_>, entries: &[&str], place: &Place) -> bool {
    let listed = node
        .items()
        .is_some_and(|items| !items.choices().is_empty());
    let name = names::normalize(&place.to_string());
    let tokens = name.ends_with("domains") || name.ends_with("betas");
    let all = |test: &dyn Fn(&str) -> bool| entries.iter().all(|entry| test(entry));
    listed
        || (tokens && all(&|entry| !entry.contains(char::is_whitespace)))
        || all(&|entry| messages::is_web_address(entry))
}

fn wrap(single: &Value, entry_fits: &dyn Fn(&Value) -> bool) -> Option<Coerced> {
    if !entry_fits(single) {
        return None;
    }
    let how = "put the single value into a list".to_owned();
    Coerced::some(Value::Array(vec![single.clone()]), how)
}

/// Nothing, or JSON that was cut off: neither is an entry or a property of its own.
fn is_empty_or_broken_json(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['{', '['])
}

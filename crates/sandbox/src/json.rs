//! Lenient access to JSON values: a missing or mistyped field reads as empty.

use serde_json::Value;

/// Returns the elements of an array; empty for any other value.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the list in a field.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).map(items).unwrap_or_default()
}

/// Returns the text in a field, if there is one.
pub(crate) fn opt_text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// Returns the text in a field.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    opt_text(value, name).unwrap_or_default()
}

/// Returns the texts in a list field.
pub(crate) fn texts(value: &Value, name: &str) -> Vec<String> {
    let texts = list(value, name).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Returns the metadata of a request body, or an empty object.
pub(crate) fn metadata(value: &Value) -> Value {
    let metadata = value.get("metadata").cloned();
    metadata.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Whether a field is present, and neither null nor false.
pub(crate) fn is_given(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

/// Converts a JSON number to a count; fractions are cut off.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // A float-to-int cast saturates, which suits a count.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (number >= 0.0).then_some(number as u64)
    })
}

/// Sets a field of an object; other values stay as they are.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

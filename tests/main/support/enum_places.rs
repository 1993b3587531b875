//! Finds the enums in a schema, each with a value that reaches it.

use serde_json::{Map, Value, json};

use super::sample;
use super::schema::{requires, resolve};

/// No schema nests enums deeper; the limit ends the search in recursive schemas.
const MAX_DEPTH: usize = 12;

/// An enum in a schema of arguments.
pub(crate) struct EnumPlace {
    /// Its path, such as `search.entity.type`; `[]` for the entries of a list.
    pub(crate) path: String,
    /// The texts that it lists.
    pub(crate) texts: Vec<String>,
    /// Whether any other text is allowed as well.
    pub(crate) is_open: bool,
    /// Arguments with a gap for the value.
    arguments: Value,
}

impl EnumPlace {
    /// Returns the arguments with this value.
    pub(crate) fn with(&self, value: &str) -> Value {
        fill(&self.arguments, value)
    }

    /// Returns a listed text with a letter missing, for every one that is long enough to be recognized.
    pub(crate) fn misspelled(&self) -> Vec<String> {
        let long = self.texts.iter().filter(|text| text.chars().count() >= 5);
        let shortened = long.map(|text| {
            let letters = text.chars().enumerate();
            letters
                .filter(|(index, _)| *index != 2)
                .map(|(_, letter)| letter)
                .collect::<String>()
        });
        shortened
            .filter(|text| !self.texts.contains(text))
            .collect()
    }
}

/// The text that marks the gap.
const GAP: &str = "\u{0}";

fn fill(value: &Value, text: &str) -> Value {
    match value {
        Value::String(gap) if gap == GAP => json!(text),
        Value::Array(items) => items.iter().map(|item| fill(item, text)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let filled = fields.map(|(name, field)| (name.clone(), fill(field, text)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// Returns the enums of a schema. What surrounds them is taken from `example`, or required and sampled.
pub(crate) fn enum_places(root: &Value, example: &Value) -> Vec<EnumPlace> {
    let mut places = find(root, root, example, 0);
    for place in &mut places {
        place.path = place.path.trim_start_matches('.').to_owned();
    }
    places
}

fn find(root: &Value, schema: &Value, example: &Value, depth: usize) -> Vec<EnumPlace> {
    let schema = resolve(root, schema);
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    let mut places = Vec::new();
    let texts = texts(schema);
    if !texts.is_empty() {
        places.push(EnumPlace {
            path: String::new(),
            texts,
            is_open: false,
            arguments: json!(GAP),
        });
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let branches = schema.get(keyword).and_then(Value::as_array);
        let branches: Vec<&Value> = branches.into_iter().flatten().collect();
        let is_open = keyword != "allOf" && branches.iter().any(|branch| is_text(root, branch));
        for branch in branches {
            let mut inner = find(root, branch, example, depth + 1);
            for place in inner.iter_mut().filter(|place| place.path.is_empty()) {
                place.is_open |= is_open;
            }
            places.extend(inner);
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, part) in properties.into_iter().flatten() {
        for mut place in find(root, part, &example[name], depth + 1) {
            let mut fields = surroundings(root, schema, example);
            fields.insert(name.clone(), place.arguments);
            place.arguments = Value::Object(fields);
            place.path = format!(".{name}{}", place.path);
            places.push(place);
        }
    }
    if let Some(items) = schema.get("items") {
        for mut place in find(root, items, &example[0], depth + 1) {
            place.arguments = json!([place.arguments]);
            place.path = format!("[]{}", place.path);
            places.push(place);
        }
    }
    places
}

/// Returns the texts of an enum or a constant.
fn texts(schema: &Value) -> Vec<String> {
    let values = schema.get("enum").and_then(Value::as_array);
    let values = values.into_iter().flatten().chain(schema.get("const"));
    values
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

fn is_text(root: &Value, schema: &Value) -> bool {
    let schema = resolve(root, schema);
    schema["type"] == "string" && texts(schema).is_empty()
}

/// Returns the fields of the example and those that the schema requires.
fn surroundings(root: &Value, schema: &Value, example: &Value) -> Map<String, Value> {
    let mut fields = example.as_object().cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, part) in properties.into_iter().flatten() {
        if requires(schema, name) && !fields.contains_key(name) {
            let value = match name.as_str() {
                "period" => json!("1d"),
                _ => sample::minimal(root, part),
            };
            fields.insert(name.clone(), value);
        }
    }
    fields
}

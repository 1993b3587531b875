//! The types of a response: its results, and the fields next to them.

use serde_json::{Map, Value, json};

use super::flatten::flatten;
use super::lower::Lowering;
use super::types::{Declarations, Field, Side, Type};
use exa_mcp_model::envelope::{METADATA_FIELDS, results_field};

/// The types of a response.
pub(super) struct ResponseTypes {
    /// The type of one result.
    pub(super) result: Type,
    /// The other fields.
    pub(super) rest: Vec<Field>,
}

impl ResponseTypes {
    /// Splits the response schema in the same way as the server splits a response.
    pub(super) fn new(out: &mut Declarations, prefix: &str, schema: &Value) -> Self {
        let flat = join_variants(schema, flatten(schema, schema));
        let hint = format!("{prefix}Result");
        let mut lowering = Lowering::new(schema, Side::Output, out, &[]);
        let Some(list) = list_of(&flat) else {
            let whole = match flat.get("type") {
                Some(kind) if kind == "array" => flat.get("items").unwrap_or(&Value::Null),
                _ => schema,
            };
            return Self {
                result: lowering.lower(whole, &hint),
                rest: Vec::new(),
            };
        };
        let properties = flat.get("properties");
        let results = properties.and_then(|found| found.get(list));
        let items = results.map(|found| flatten(schema, found));
        let item = items.as_ref().and_then(|found| found.get("items"));
        let result = lowering.lower(item.unwrap_or(&Value::Null), &hint);
        let mut others = flat.clone();
        if let Some(Value::Object(properties)) = others.get_mut("properties") {
            properties.retain(|name, _| name != list && !METADATA_FIELDS.contains(&name.as_str()));
        }
        if let Some(Value::Array(required)) = others.get_mut("required") {
            required
                .retain(|name| name != list && !METADATA_FIELDS.iter().any(|moved| name == moved));
        }
        Self {
            result,
            rest: lowering.fields(&others, &format!("{prefix}Answer")),
        }
    }
}

/// Joins the variants of a response to one object with the fields of all; it requires what all variants require.
fn join_variants(root: &Value, flat: Value) -> Value {
    let variants = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| flat.get(key)?.as_array());
    let variants = variants.into_iter().flatten();
    let variants: Vec<Value> = variants.map(|variant| flatten(root, variant)).collect();
    let of = |variant: &Value| {
        variant
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
    };
    let properties: Option<Vec<_>> = variants.iter().map(of).collect();
    let Some(properties) = properties.filter(|found| !found.is_empty()) else {
        return flat;
    };
    let requires = |variant: &Value, name: &str| {
        let required = variant.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|found| found == name))
    };
    let mut joined = Map::new();
    for (name, schema) in properties.into_iter().flatten() {
        joined.entry(name).or_insert(schema);
    }
    let required: Vec<&String> = joined
        .keys()
        .filter(|name| variants.iter().all(|variant| requires(variant, name)))
        .collect();
    json!({"type": "object", "required": required, "properties": joined})
}

/// Returns the field that holds the results, unless the response is itself a result.
fn list_of(flat: &Value) -> Option<&'static str> {
    let properties = flat.get("properties")?;
    let kind = |name: &str| properties.get(name)?.get("type");
    results_field(
        |name| properties.get(name).is_some(),
        |name| kind(name).is_some_and(|kind| kind == "array"),
    )
}

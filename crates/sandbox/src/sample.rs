//! Generates a value that matches a JSON Schema: for operations without a handler and for structured
//! outputs. Clients supply schemas too, so depth and size are bounded.

use serde_json::{Map, Number, Value, json};

use crate::corpus::{truncate, value};
use crate::json::{items, text};
use crate::rng::Rng;
use crate::time::iso;

/// Depth below which optional parts are left out.
const MAX_OPTIONAL_DEPTH: usize = 5;
/// Maximum depth; only a recursive schema reaches it.
const MAX_DEPTH: usize = 16;
/// Maximum number of values per sample.
const MAX_VALUES: usize = 5_000;
const MAX_ARRAY: u64 = 50;
const MAX_TEXT: u64 = 5_000;

/// Returns a value that matches the schema.
pub(crate) fn generate(schema: &Value, seed: u64) -> Value {
    let mut sampler = Sampler {
        root: schema,
        rng: Rng::new(seed, &["sample"]),
        remaining: MAX_VALUES,
    };
    sampler.value(schema, "", 0)
}

struct Sampler<'a> {
    root: &'a Value,
    rng: Rng,
    remaining: usize,
}

impl<'a> Sampler<'a> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > MAX_DEPTH || self.remaining == 0 {
            return Value::Null;
        }
        self.remaining -= 1;
        let schema = self.merge(schema, depth);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(values);
        }
        match type_of(&schema) {
            "object" => self.object(&schema, depth),
            "array" => self.array(&schema, name, depth),
            "integer" => self.number(&schema, true),
            "number" => self.number(&schema, false),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => self.text(&schema, name),
        }
    }

    fn one_of(&mut self, values: &[Value]) -> Value {
        let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let index = self.rng.index(values.len());
        values.get(index).copied().cloned().unwrap_or_default()
    }

    /// Merges `$ref`, `allOf` and one alternative of `oneOf` and `anyOf` into the schema.
    fn merge(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut merged = Map::new();
        let Value::Object(own) = schema else {
            return merged;
        };
        if depth > MAX_DEPTH || self.remaining == 0 {
            return merged;
        }
        self.remaining -= 1;
        let reference = own.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|reference| self.resolve(reference)) {
            merge_keywords(&mut merged, self.merge(target, depth + 1));
        }
        for part in own.get("allOf").map(items).unwrap_or_default() {
            merge_keywords(&mut merged, self.merge(part, depth + 1));
        }
        for keyword in ["oneOf", "anyOf"] {
            let alternatives = own.get(keyword).map(items).unwrap_or_default();
            if let Some(alternative) = first_non_null(alternatives) {
                merge_keywords(&mut merged, self.merge(alternative, depth + 1));
            }
        }
        let others = own.iter().filter(|(keyword, _)| {
            !["$ref", "allOf", "oneOf", "anyOf", "$defs"].contains(&keyword.as_str())
        });
        let others = others.map(|(keyword, value)| (keyword.clone(), value.clone()));
        merge_keywords(&mut merged, others.collect());
        merged
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let mut object = Map::new();
        let required = schema.get("required").map(items).unwrap_or_default();
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if required.contains(&name.as_str()) || depth < MAX_OPTIONAL_DEPTH {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        let additional = schema
            .get("additionalProperties")
            .filter(|additional| additional.is_object())
            .unwrap_or(&Value::Bool(true));
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), self.value(additional, name, depth + 1));
            }
        }
        let min = limit(schema, "minProperties").unwrap_or(0).min(MAX_ARRAY);
        for number in object.len() as u64..min {
            object.insert(
                format!("key{number}"),
                self.value(additional, "", depth + 1),
            );
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Map<String, Value>, name: &str, depth: usize) -> Value {
        let default = if depth < MAX_OPTIONAL_DEPTH { 2 } else { 0 };
        let min = limit(schema, "minItems").unwrap_or(0);
        let max = limit(schema, "maxItems").unwrap_or(u64::MAX);
        let count = default.max(min).min(max).min(MAX_ARRAY);
        let prefix = schema.get("prefixItems").map(items).unwrap_or_default();
        let others = schema.get("items").unwrap_or(&Value::Bool(true));
        let schemas = prefix.iter().chain(std::iter::repeat(others));
        schemas
            .take(usize::try_from(count).unwrap_or(0))
            .map(|schema| self.value(schema, name, depth + 1))
            .collect()
    }

    fn number(&mut self, schema: &Map<String, Value>, integer: bool) -> Value {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let step = bound("multipleOf")
            .filter(|step| *step > 0.0)
            .unwrap_or(1.0);
        let low =
            bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + step.min(1.0)));
        let high =
            bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - step.min(1.0)));
        let low = low
            .or_else(|| high.map(|high| high.min(1.0)))
            .unwrap_or(1.0);
        let high = high.unwrap_or(low + 99.0);
        let width = ((high - low) / step).floor().clamp(0.0, 1_000.0);
        // Between 0 and 1000 after the clamp.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let steps = self.rng.between(0, width as u64);
        let start = (low / step).ceil() * step;
        let value = start + step * f64::from(u32::try_from(steps).unwrap_or(0));
        let value = if value > high { start } else { value };
        // Whole numbers become integers if they fit.
        #[allow(clippy::cast_possible_truncation)]
        if integer || value.fract() == 0.0 && value.abs() < 9e15 {
            return Value::from(value as i64);
        }
        Number::from_f64(value).map_or(Value::Null, Value::Number)
    }

    fn text(&mut self, schema: &Map<String, Value>, name: &str) -> Value {
        let text = match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => iso(1_750_000_000_000),
            Some("date") => "2025-06-15".to_owned(),
            Some("time") => "15:06:40Z".to_owned(),
            Some("uri" | "url" | "iri" | "uri-reference") => {
                "https://field-notes.example/sample".to_owned()
            }
            Some("email") => "contact@field-notes.example".to_owned(),
            Some("uuid") => "00000000-0000-4000-8000-000000000000".to_owned(),
            Some("hostname") => "field-notes.example".to_owned(),
            Some("ipv4") => "192.0.2.1".to_owned(),
            _ => value::text_for(&mut self.rng, name),
        };
        let text = match_pattern(schema.get("pattern"), text);
        let min = limit(schema, "minLength").unwrap_or(0).min(MAX_TEXT);
        let max = limit(schema, "maxLength").unwrap_or(MAX_TEXT);
        let missing = usize::try_from(min)
            .unwrap_or(0)
            .saturating_sub(text.chars().count());
        let padded = text + &"x".repeat(missing);
        truncate(&padded, usize::try_from(max).unwrap_or(usize::MAX)).into()
    }
}

/// Returns the text, or a common value if only that matches the pattern. Other patterns get a text
/// that does not match: generating strings for any regular expression is not worth it here.
fn match_pattern(pattern: Option<&Value>, text: String) -> String {
    const COMMON: [&str; 10] = [
        "sample",
        "Sample",
        "SAMPLE",
        "US",
        "123",
        "12h",
        "2025-06-15",
        "a1",
        "#a1b2c3",
        "1.0.0",
    ];
    let Some(validator) =
        pattern.and_then(|pattern| jsonschema::validator_for(&json!({ "pattern": pattern })).ok())
    else {
        return text;
    };
    let matches = |text: &&str| validator.is_valid(&Value::from(*text));
    let common = COMMON
        .into_iter()
        .find(matches)
        .filter(|_| !matches(&text.as_str()));
    common.map_or(text, str::to_owned)
}

/// Adds keywords to a schema: `properties` and `required` are combined, other keywords replaced.
fn merge_keywords(schema: &mut Map<String, Value>, keywords: Map<String, Value>) {
    for (keyword, value) in keywords {
        match (keyword.as_str(), schema.get_mut(&keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            ("required", Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, _, value) => {
                schema.insert(keyword, value);
            }
        }
    }
}

/// Returns the first alternative that is not null.
fn first_non_null(alternatives: &[Value]) -> Option<&Value> {
    let mut non_null = alternatives.iter().filter(|it| text(it, "type") != "null");
    non_null.next().or_else(|| alternatives.first())
}

/// Returns the type to generate: the first that is not null, or the one the keywords suggest.
fn type_of(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.contains_key("properties") || schema.contains_key("required") => "object",
        _ if schema.contains_key("items") => "array",
        _ => "string",
    }
}

fn limit(schema: &Map<String, Value>, keyword: &str) -> Option<u64> {
    schema.get(keyword).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value) {
        let generated = generate(schema, 7);
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(schema);
        assert!(
            validator.is_ok_and(|validator| validator.is_valid(&generated)),
            "{schema} gave {generated}"
        );
    }

    #[test]
    fn samples_match_their_schemas() {
        check(
            &json!({"type": "object", "required": ["a", "b"], "properties": {
                "a": {"type": ["null", "integer"], "minimum": 3, "maximum": 4},
                "b": {"type": "string", "minLength": 40, "maxLength": 60},
                "c": {"type": "array", "minItems": 3, "items": {"enum": ["x", "y"]}},
                "d": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                "e": {"type": "string", "format": "date-time"},
                "f": {"oneOf": [{"type": "null"}, {"type": "string", "format": "uri"}]},
                "g": {"type": "integer", "multipleOf": 5, "minimum": 7, "maximum": 12},
            }}),
        );
        check(
            &json!({"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"}),
        );
        check(
            &json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}}, {"required": ["b"]}]}),
        );
        check(
            &json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "boolean"}}),
        );
        check(&json!({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}));
        check(&json!({"type": "string", "pattern": "^[A-Z]{2}$"}));
        check(&json!({}));
    }

    #[test]
    fn hostile_schemas_terminate() {
        let endless = json!({"$defs": {"N": {"type": "object", "required": ["l", "r"], "properties": {
            "l": {"$ref": "#/$defs/N"}, "r": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"});
        generate(&endless, 1);
        generate(
            &json!({"type": "array", "minItems": 4_000_000_000_u64, "items": {"type": "string", "minLength": 4_000_000_000_u64}}),
            1,
        );
        generate(&json!({"$ref": "#"}), 1);
        generate(
            &json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}),
            1,
        );
        generate(
            &json!({"type": "number", "minimum": 1e300, "maximum": 1e308}),
            1,
        );
        generate(&json!({"enum": []}), 1);
    }
}

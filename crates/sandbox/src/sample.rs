//! A value that fits a JSON Schema: the answer of operations nobody wrote behaviour for, and the
//! content of structured outputs. Schemas come from anywhere, so every part is bounded.

use serde_json::{Map, Number, Value, json};

use crate::corpus::{start_of, value};
use crate::random::Dice;
use crate::time::iso;

/// Depth from which on only required parts are filled in.
const DEPTH_OF_OPTIONAL: usize = 5;
/// Depth at which sampling gives up; only a schema that demands itself comes this far.
const DEEPEST: usize = 16;
/// Values made for one sample.
const MOST_VALUES: usize = 5_000;
const LONGEST_ARRAY: u64 = 50;
const LONGEST_TEXT: u64 = 5_000;

/// A value that fits the schema.
pub(crate) fn of(schema: &Value, seed: u64) -> Value {
    let mut sampler = Sampler {
        root: schema,
        dice: Dice::new(seed, &["sample"]),
        left: MOST_VALUES,
    };
    sampler.value(schema, "", 0)
}

struct Sampler<'a> {
    root: &'a Value,
    dice: Dice,
    left: usize,
}

impl<'a> Sampler<'a> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEEPEST || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        let schema = self.merged(schema, depth);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(values);
        }
        match kind(&schema) {
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
        let real: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let at = usize::try_from(self.dice.below(real.len() as u64)).unwrap_or(0);
        real.get(at).map_or(Value::Null, |value| (*value).clone())
    }

    /// The schema with `$ref`, `allOf` and one alternative of `oneOf` and `anyOf` folded in.
    fn merged(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut all = Map::new();
        let Value::Object(own) = schema else {
            return all;
        };
        if depth > DEEPEST || self.left == 0 {
            return all;
        }
        self.left -= 1;
        if let Some(target) = own
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|text| self.target(text))
        {
            fold(&mut all, self.merged(target, depth + 1));
        }
        for part in own
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            fold(&mut all, self.merged(part, depth + 1));
        }
        for word in ["oneOf", "anyOf"] {
            let alternatives = own.get(word).and_then(Value::as_array);
            if let Some(one) = alternatives.and_then(|list| pick(list)) {
                fold(&mut all, self.merged(one, depth + 1));
            }
        }
        let rest = own.iter().filter(|(word, _)| {
            !["$ref", "allOf", "oneOf", "anyOf", "$defs"].contains(&word.as_str())
        });
        fold(
            &mut all,
            rest.map(|(word, value)| (word.clone(), value.clone()))
                .collect(),
        );
        all
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let mut object = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if required.contains(&name.as_str()) || depth < DEPTH_OF_OPTIONAL {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        let further = schema
            .get("additionalProperties")
            .filter(|further| further.is_object())
            .cloned()
            .unwrap_or(Value::Bool(true));
        let unnamed: Vec<&str> = required
            .into_iter()
            .filter(|name| !object.contains_key(*name))
            .collect();
        for name in unnamed {
            object.insert(name.to_owned(), self.value(&further, name, depth + 1));
        }
        let least = limit(schema, "minProperties")
            .unwrap_or(0)
            .min(LONGEST_ARRAY);
        for number in object.len() as u64..least {
            object.insert(format!("key{number}"), self.value(&further, "", depth + 1));
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Map<String, Value>, name: &str, depth: usize) -> Value {
        let usual = if depth < DEPTH_OF_OPTIONAL { 2 } else { 0 };
        let least = limit(schema, "minItems").unwrap_or(0);
        let most = limit(schema, "maxItems").unwrap_or(u64::MAX);
        let count = usual.max(least).min(most).min(LONGEST_ARRAY);
        let fixed = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let items = schema.get("items").cloned().unwrap_or(Value::Bool(true));
        (0..count)
            .map(|at| {
                let one = usize::try_from(at).ok().and_then(|at| fixed.get(at));
                self.value(one.unwrap_or(&items), name, depth + 1)
            })
            .collect()
    }

    fn number(&mut self, schema: &Map<String, Value>, integer: bool) -> Value {
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
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
        let steps = self.dice.between(0, width as u64);
        let start = (low / step).ceil() * step;
        let value = start + step * f64::from(u32::try_from(steps).unwrap_or(0));
        let value = if value > high { start } else { value };
        // Whole numbers are written without a fraction where they fit.
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
            _ => value::text_for(&mut self.dice, name),
        };
        let text = matching(schema.get("pattern"), text);
        let least = limit(schema, "minLength").unwrap_or(0).min(LONGEST_TEXT);
        let most = limit(schema, "maxLength").unwrap_or(LONGEST_TEXT);
        let missing =
            usize::try_from(least.saturating_sub(text.chars().count() as u64)).unwrap_or(0);
        let padded = text + &"x".repeat(missing);
        start_of(&padded, usize::try_from(most).unwrap_or(usize::MAX)).into()
    }
}

/// The text, or a plainer one that a pattern likes better. Patterns that want something special get
/// the text all the same: making up strings for any regular expression is not worth it here.
fn matching(pattern: Option<&Value>, text: String) -> String {
    const PLAIN: [&str; 10] = [
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
    let fits = |text: &&str| validator.is_valid(&Value::from(*text));
    let plain = PLAIN
        .into_iter()
        .find(fits)
        .filter(|_| !fits(&text.as_str()));
    plain.map_or(text, str::to_owned)
}

/// Adds a schema's words to another's: properties and requirements unite, other words replace.
fn fold(all: &mut Map<String, Value>, part: Map<String, Value>) {
    for (word, value) in part {
        match (word.as_str(), all.get_mut(&word), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            ("required", Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, _, value) => {
                all.insert(word, value);
            }
        }
    }
}

/// The first alternative that is not null.
fn pick(alternatives: &[Value]) -> Option<&Value> {
    let real = alternatives
        .iter()
        .find(|one| one.get("type").and_then(Value::as_str) != Some("null"));
    real.or_else(|| alternatives.first())
}

/// The type to make: the first that is not null, or what the other words suggest.
fn kind(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one,
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .find(|one| *one != "null")
            .unwrap_or("null"),
        _ if schema.contains_key("properties") || schema.contains_key("required") => "object",
        _ if schema.contains_key("items") => "array",
        _ => "string",
    }
}

fn limit(schema: &Map<String, Value>, word: &str) -> Option<u64> {
    schema.get(word).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value) {
        let made = of(schema, 7);
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(schema);
        assert!(
            validator.is_ok_and(|validator| validator.is_valid(&made)),
            "{schema} gave {made}"
        );
    }

    #[test]
    fn samples_fit_their_schemas() {
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
    fn hostile_schemas_end() {
        let endless = json!({"$defs": {"N": {"type": "object", "required": ["l", "r"], "properties": {
            "l": {"$ref": "#/$defs/N"}, "r": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"});
        of(&endless, 1);
        of(
            &json!({"type": "array", "minItems": 4_000_000_000_u64, "items": {"type": "string", "minLength": 4_000_000_000_u64}}),
            1,
        );
        of(&json!({"$ref": "#"}), 1);
        of(
            &json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}),
            1,
        );
        of(
            &json!({"type": "number", "minimum": 1e300, "maximum": 1e308}),
            1,
        );
        of(&json!({"enum": []}), 1);
    }
}

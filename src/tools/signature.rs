//! Typed signatures: the arguments of a call in a form shorter than their JSON Schema.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use exa_mcp_text::tokens::estimate;

/// How deep nested objects are shown at most.
const MAX_DEPTH: usize = 5;

/// How many references may follow each other.
const MAX_REFERENCES: usize = 8;

/// Returns the signature of a call with as many nested fields as fit into `max_tokens`.
pub(super) fn typed_signature(name: &str, schema: &Value, max_tokens: usize) -> String {
    let write = |(with_deprecated, depth)| {
        let writer = Writer {
            root: schema,
            with_deprecated,
        };
        let fields = writer.fields(schema, depth);
        format!("{name}({})", fields.unwrap_or_default())
    };
    // The fields of objects are worth more than what is deprecated.
    let deep = (2..=MAX_DEPTH).rev().map(|depth| (true, depth));
    let shallow = (1..=MAX_DEPTH).rev().map(|depth| (false, depth));
    let mut texts = deep.chain(shallow).map(write);
    let fitting = texts.find(|text| estimate(&json!(text).to_string()) <= max_tokens);
    fitting.unwrap_or_else(|| write((false, 1)))
}

/// Returns the types and enumerated values of the arguments, without nested fields and descriptions.
pub(super) fn compact_schema(schema: &Value) -> Value {
    let writer = Writer {
        root: schema,
        with_deprecated: false,
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties
        .into_iter()
        .flatten()
        .filter(|(_, property)| !writer.is_deprecated(property));
    let compact = |(name, property): (&String, &Value)| (name.clone(), writer.compact(property));
    let properties: Map<String, Value> = properties.map(compact).collect();
    let required = schema.get("required").cloned();
    json!({"type": "object", "properties": properties, "required": required.unwrap_or(json!([]))})
}

struct Writer<'a> {
    root: &'a Value,
    with_deprecated: bool,
}

impl<'a> Writer<'a> {
    /// Returns the fields of an object with their types; `None` if it has no declared fields.
    fn fields(&self, object: &'a Value, depth: usize) -> Option<String> {
        let properties = object.get("properties").and_then(Value::as_object)?;
        let required: HashSet<&str> = names(object.get("required")).collect();
        let field = |(name, property): (&String, &'a Value)| {
            let optional = if required.contains(name.as_str()) {
                ""
            } else {
                "?"
            };
            let default = property.get("default").filter(|value| !value.is_null());
            let default = default.map_or(String::new(), |value| format!(" = {value}"));
            let mark = if self.is_deprecated(property) {
                " (deprecated)"
            } else {
                ""
            };
            let kind = self.kind(property, depth.saturating_sub(1));
            format!("{name}{optional}: {kind}{default}{mark}")
        };
        let shown = properties
            .iter()
            .filter(|(_, property)| self.with_deprecated || !self.is_deprecated(property));
        let (first, later): (Vec<_>, Vec<_>) =
            shown.partition(|(name, _)| required.contains(name.as_str()));
        let fields = first.into_iter().chain(later).map(field);
        Some(fields.collect::<Vec<_>>().join(", "))
    }

    fn is_deprecated(&self, property: &'a Value) -> bool {
        let flagged = |schema: &Value| schema.get("deprecated") == Some(&json!(true));
        flagged(property) || flagged(self.resolve(property))
    }

    /// Returns the type of a value.
    fn kind(&self, schema: &'a Value, depth: usize) -> String {
        let schema = self.resolve(schema);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let values = values.iter().filter(|value| !value.is_null());
            return values.map(Value::to_string).collect::<Vec<_>>().join("|");
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        let branches = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name));
        if let Some(branches) = branches.and_then(Value::as_array) {
            let mut kinds: Vec<String> = Vec::new();
            for branch in branches.iter().filter(|branch| !is_null(branch)) {
                let kind = self.kind(branch, depth);
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return kinds.join("|");
        }
        match type_name(schema) {
            Some("array") => {
                let items = schema.get("items");
                let items = items.map_or("any".to_owned(), |items| self.kind(items, depth));
                if items.contains('|') && !items.starts_with('{') {
                    format!("({items})[]")
                } else {
                    format!("{items}[]")
                }
            }
            Some("string") => match schema.get("format").and_then(Value::as_str) {
                Some(format @ ("date-time" | "date" | "uri" | "email")) => format.to_owned(),
                _ => "string".to_owned(),
            },
            Some("object") | None => self.object(schema, depth),
            Some(other) => other.to_owned(),
        }
    }

    fn object(&self, schema: &'a Value, depth: usize) -> String {
        let all = schema.get("allOf").and_then(Value::as_array);
        let parts = all.into_iter().flatten().map(|part| self.resolve(part));
        let mut candidates = [schema].into_iter().chain(parts);
        let fields = candidates.find_map(|part| self.fields(part, depth));
        match fields {
            Some(fields) if depth > 0 => format!("{{{fields}}}"),
            Some(_) => "object".to_owned(),
            None if type_name(schema).is_some() => "object".to_owned(),
            None => "any".to_owned(),
        }
    }

    fn compact(&self, property: &'a Value) -> Value {
        let schema = self.resolve(property);
        let mut compact = Map::new();
        let kind = schema.get("type").cloned().or_else(|| {
            let branches = ["anyOf", "oneOf"]
                .iter()
                .find_map(|name| schema.get(*name))?;
            let branches = branches
                .as_array()?
                .iter()
                .map(|branch| self.resolve(branch));
            let mut kinds: Vec<Value> = branches
                .filter_map(|branch| branch.get("type").cloned())
                .collect();
            kinds.dedup();
            Some(match kinds.as_slice() {
                [one] => one.clone(),
                _ => Value::Array(kinds),
            })
        });
        let kind = kind.map(without_null);
        compact.extend(kind.map(|kind| ("type".to_owned(), kind)));
        if let Some(Value::Array(values)) = schema.get("enum") {
            let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
            compact.insert("enum".to_owned(), json!(values));
        }
        Value::Object(compact)
    }

    /// Follows references, and unwraps unions of one schema and null.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_REFERENCES {
            if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
                let target = self.root.pointer(reference.trim_start_matches('#'));
                let Some(target) = target else { break };
                schema = target;
                continue;
            }
            let branches = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name));
            let branches = branches.and_then(Value::as_array);
            let mut real = branches.into_iter().flatten().filter(|it| !is_null(it));
            match (real.next(), real.next()) {
                (Some(single), None) => schema = single,
                _ => break,
            }
        }
        schema
    }
}

/// Returns one or several types without null.
fn without_null(kinds: Value) -> Value {
    let Value::Array(kinds) = kinds else {
        return kinds;
    };
    let mut left: Vec<Value> = Vec::new();
    for kind in kinds.into_iter().flat_map(|kind| match kind {
        Value::Array(inner) => inner,
        one => vec![one],
    }) {
        if kind != "null" && !left.contains(&kind) {
            left.push(kind);
        }
    }
    match left.as_slice() {
        [one] => one.clone(),
        _ => Value::Array(left),
    }
}

/// Returns the type of a schema, without null.
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn shows_types_and_values() {
        let schema = json!({
            "type": "object", "required": ["query"],
            "properties": {
                "count": {"type": "integer", "default": 10},
                "query": {"type": "string"},
                "kind": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]},
                "since": {"type": "string", "format": "date-time", "deprecated": true},
                "parts": {"type": "array", "items": {"type": "object", "required": ["a"],
                    "properties": {"a": {"type": "string"}, "b": {"type": ["boolean", "null"]}}}},
            },
            "$defs": {"Kind": {"type": "string", "enum": ["x", "y"]}},
        });
        assert_eq!(
            typed_signature("f", &schema, 1_000),
            "f(query: string, count?: integer = 10, kind?: \"x\"|\"y\", since?: date-time (deprecated), \
             parts?: {a: string, b?: boolean}[])"
        );
        let short = typed_signature("f", &schema, 1);
        assert!(
            short.ends_with("parts?: object[])") && !short.contains("since"),
            "{short}"
        );
        let compact = compact_schema(&schema);
        assert_eq!(compact["properties"]["kind"]["enum"], json!(["x", "y"]));
        assert_eq!(compact["required"], json!(["query"]));
    }
}

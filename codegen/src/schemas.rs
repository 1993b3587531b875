//! Publishes schemas for clients of the server, as JSON Schema 2020-12 from the original spec.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::body;
use crate::error::Result;
use crate::load::{Document, escape};
use crate::publish_rules;
use crate::references::local_pointer;

/// The dialect of every published schema.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that JSON Schema does not have, or that are resolved here.
const DROPPED: &[&str] = &[
    "discriminator",
    "xml",
    "externalDocs",
    "nullable",
    "example",
    "$comment",
    "$defs",
    "definitions",
    "$schema",
];

const SCHEMA_MAPS: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
const SCHEMA_LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const SCHEMAS: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const TYPES: &[&str] = &[
    "string", "number", "integer", "boolean", "object", "array", "null",
];

/// Converts schemas of one document to JSON Schema and collects the definitions that they use.
pub struct SchemaPublisher<'a> {
    document: &'a Document,
    names: BTreeMap<String, String>,
    definitions: BTreeMap<String, Value>,
    for_requests: bool,
}

impl<'a> SchemaPublisher<'a> {
    /// Creates a publisher without definitions.
    pub fn new(document: &'a Document) -> Self {
        Self {
            document,
            names: BTreeMap::new(),
            definitions: BTreeMap::new(),
            for_requests: false,
        }
    }

    /// Creates a publisher for arguments: without read-only properties, and with files in base64.
    pub fn for_requests(document: &'a Document) -> Self {
        Self {
            for_requests: true,
            ..Self::new(document)
        }
    }

    /// Returns the collected definitions, for `$defs`.
    pub fn into_definitions(self) -> Map<String, Value> {
        self.definitions.into_iter().collect()
    }

    /// Returns the published form of the schema at `pointer`.
    pub fn publish(&mut self, schema: &Value, pointer: &str) -> Result<Value> {
        let Value::Object(source) = schema else {
            return match schema {
                Value::Bool(_) => Ok(schema.clone()),
                _ => Err(self
                    .document
                    .error(pointer, "a schema must be an object".to_owned())),
            };
        };
        self.reject_unsupported(source, pointer)?;
        let rewritten = self
            .for_requests
            .then(|| self.request_form(source))
            .flatten();
        let source = rewritten.as_ref().unwrap_or(source);
        let mut out = Map::new();
        for (key, value) in source {
            let place = format!("{pointer}/{}", escape(key));
            if DROPPED.contains(&key.as_str()) || key.starts_with("x-") {
                continue;
            }
            let published = match key.as_str() {
                "$ref" => self.publish_reference(value, pointer)?,
                "type" => single_type(value),
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => continue,
                key if SCHEMA_MAPS.contains(&key) => self.publish_map(value, &place)?,
                key if SCHEMA_LISTS.contains(&key) => self.publish_list(value, &place)?,
                key if SCHEMAS.contains(&key) => self.publish(value, &place)?,
                _ => value.clone(),
            };
            out.insert(key.clone(), published);
        }
        publish_rules::simplify(&mut out);
        convert_exclusive_bounds(source, &mut out);
        if let (Some(example), false) = (source.get("example"), out.contains_key("examples")) {
            out.insert("examples".to_owned(), json!([example]));
        }
        if source.get("nullable") == Some(&Value::Bool(true)) {
            // A type beside a reference would contradict the null.
            if out.contains_key("$ref") {
                out.shift_remove("type");
            }
            Ok(with_null(out))
        } else {
            Ok(Value::Object(out))
        }
    }

    /// Returns a schema as callers fill it, if it differs.
    fn request_form(&self, source: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut changed = source.clone();
        if source.get("format") == Some(&json!("binary")) {
            changed.shift_remove("format");
            changed.insert("contentEncoding".to_owned(), json!("base64"));
        }
        if let Some(Value::Object(properties)) = changed.get_mut("properties") {
            let mut removed = Vec::new();
            properties.retain(|name, schema| {
                let is_read_only = body::is_read_only(self.document, schema);
                removed.extend(is_read_only.then(|| json!(name)));
                !is_read_only
            });
            if let Some(Value::Array(required)) = changed.get_mut("required") {
                required.retain(|name| !removed.contains(name));
            }
        }
        (changed != *source).then_some(changed)
    }

    fn publish_map(&mut self, value: &Value, pointer: &str) -> Result<Value> {
        let Value::Object(map) = value else {
            return Err(self
                .document
                .error(pointer, "must be a map of schemas".to_owned()));
        };
        let mut out = Map::new();
        for (name, schema) in map {
            let place = format!("{pointer}/{}", escape(name));
            out.insert(name.clone(), self.publish(schema, &place)?);
        }
        Ok(Value::Object(out))
    }

    fn publish_list(&mut self, value: &Value, pointer: &str) -> Result<Value> {
        let Value::Array(list) = value else {
            return Err(self
                .document
                .error(pointer, "must be a list of schemas".to_owned()));
        };
        let out = list
            .iter()
            .enumerate()
            .map(|(index, schema)| self.publish(schema, &format!("{pointer}/{index}")))
            .collect::<Result<Vec<_>>>()?;
        Ok(Value::Array(out))
    }

    /// Rewrites a reference to `$defs` and adds the definition.
    fn publish_reference(&mut self, reference: &Value, pointer: &str) -> Result<Value> {
        let target = reference
            .as_str()
            .and_then(local_pointer)
            .filter(|target| self.document.root.pointer(target).is_some());
        let Some(target) = target else {
            let construct = format!("`$ref: {reference}`");
            return Err(self.document.unsupported(pointer, "reference", construct));
        };
        if let Some(name) = self.names.get(&target) {
            return Ok(Value::String(format!("#/$defs/{}", escape(name))));
        }
        let name = self.definition_name(&target);
        self.names.insert(target.clone(), name.clone());
        // The entry exists before its content is published, so that recursive schemas terminate.
        self.definitions.insert(name.clone(), Value::Bool(true));
        if let Some(schema) = self.document.root.pointer(&target) {
            let published = self.publish(schema, &target)?;
            self.definitions.insert(name.clone(), published);
        }
        Ok(Value::String(format!("#/$defs/{}", escape(&name))))
    }

    fn definition_name(&self, target: &str) -> String {
        let component = target.strip_prefix("/components/schemas/");
        let base = component
            .unwrap_or(target)
            .trim_start_matches('/')
            .replace("~1", ".")
            .replace("~0", "~")
            .replace('/', ".");
        let mut name = base.clone();
        let mut number = 2;
        while self.definitions.contains_key(&name) {
            name = format!("{base}{number}");
            number += 1;
        }
        name
    }

    fn reject_unsupported(&self, schema: &Map<String, Value>, pointer: &str) -> Result<()> {
        for keyword in ["$dynamicRef", "$recursiveRef", "$id", "$anchor"] {
            if schema.contains_key(keyword) {
                let construct = format!("`{keyword}` in a schema");
                return Err(self.document.unsupported(pointer, "reference", construct));
            }
        }
        let types: Vec<&Value> = match schema.get("type") {
            None => vec![],
            Some(Value::Array(list)) => list.iter().collect(),
            Some(single) => vec![single],
        };
        match types
            .iter()
            .find(|t| !t.as_str().is_some_and(|name| TYPES.contains(&name)))
        {
            Some(unknown) => {
                let construct = format!("`type: {unknown}`");
                Err(self.document.unsupported(pointer, "type", construct))
            }
            None => Ok(()),
        }
    }
}

/// Unwraps a list of one type.
fn single_type(value: &Value) -> Value {
    match value {
        Value::Array(list) if list.len() == 1 => list.first().cloned().unwrap_or_default(),
        other => other.clone(),
    }
}

/// Converts the exclusive bounds of OpenAPI 3.0, which are flags next to the bound.
fn convert_exclusive_bounds(source: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (flag, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if source.get(flag) == Some(&Value::Bool(true))
            && let Some(limit) = out.shift_remove(bound)
        {
            out.insert(flag.to_owned(), limit);
        }
    }
}

/// Converts `nullable: true` of OpenAPI 3.0, which some 3.1 documents still use.
fn with_null(mut schema: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match schema.get("type").cloned() {
        Some(Value::String(name)) if name != "null" => {
            schema.insert("type".to_owned(), json!([name, "null"]));
            Value::Object(schema)
        }
        Some(Value::Array(mut list)) => {
            if !list.contains(&json!("null")) {
                list.push(json!("null"));
            }
            schema.insert("type".to_owned(), Value::Array(list));
            Value::Object(schema)
        }
        _ => {
            let description = schema.shift_remove("description");
            let mut union = Map::new();
            union.insert("anyOf".to_owned(), json!([schema, {"type": "null"}]));
            union.extend(description.map(|text| ("description".to_owned(), text)));
            Value::Object(union)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(components: Value, schema: Value) -> Result<(Value, Value)> {
        let document = Document {
            file: "spec.yaml".into(),
            root: json!({"components": {"schemas": components}}),
        };
        let mut publisher = SchemaPublisher::new(&document);
        let published = publisher.publish(&schema, "/s")?;
        Ok((published, publisher.into_definitions().into()))
    }

    #[test]
    fn references_and_their_siblings_point_into_defs() {
        let (schema, defs) = publish(
            json!({"A": {"type": ["object"], "properties": {"next": {"$ref": "#/components/schemas/A"}}}}),
            json!({"$ref": "#/components/schemas/A", "description": "an A"}),
        )
        .unwrap();
        assert_eq!(schema, json!({"$ref": "#/$defs/A", "description": "an A"}));
        assert_eq!(
            defs,
            json!({"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}})
        );
    }

    #[test]
    fn a_reference_into_a_schema_gets_its_own_definition() {
        let (schema, defs) = publish(
            json!({"A": {"properties": {"b": {"type": "string"}}}}),
            json!({"$ref": "#/components/schemas/A/properties/b"}),
        )
        .unwrap();
        assert_eq!(schema, json!({"$ref": "#/$defs/A.properties.b"}));
        assert_eq!(defs, json!({"A.properties.b": {"type": "string"}}));
    }

    #[test]
    fn converts_openapi_3_0_keywords() {
        let cases = [
            (
                json!({"type": "string", "nullable": true}),
                json!({"type": ["string", "null"]}),
            ),
            (
                json!({"oneOf": [{"type": "string"}], "nullable": true}),
                json!({"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]}),
            ),
            (
                json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
                json!({"type": "number", "exclusiveMinimum": 0}),
            ),
            (
                json!({"type": "string", "example": "x"}),
                json!({"type": "string", "examples": ["x"]}),
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(publish(json!({}), source).unwrap().0, expected);
        }
    }

    #[test]
    fn properties_may_be_named_like_keywords() {
        let schema = json!({"type": "object", "properties": {
            "nullable": {"type": "boolean"}, "example": {"type": "string"}, "x-y": {"type": "string"},
            "type": {"type": "string"}, "$ref": {"type": "string"}, "properties": {"type": "object"}}});
        assert_eq!(publish(json!({}), schema.clone()).unwrap().0, schema);
    }

    #[test]
    fn reports_unsupported_keywords_with_their_location() {
        let error = publish(json!({}), json!({"type": "file"}))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("spec.yaml#/s") && error.contains("family `type`"),
            "{error}"
        );
        let error = publish(json!({}), json!({"items": {"$dynamicRef": "#n"}})).unwrap_err();
        assert!(error.to_string().contains("#/s/items"), "{error}");
    }
}

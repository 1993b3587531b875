//! Finds operations and fields that have no description after all overlays are applied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::prose::Texts;
use super::split::methods_of;
use crate::load::{Document, escape};

/// Longer chains of wrappers around a described schema are not followed.
const MAX_HOPS: usize = 8;

/// What lacks a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordingKind {
    /// An operation.
    Operation,
    /// A parameter or a field of a request.
    RequestField,
    /// A field of a response.
    ResponseField,
}

/// A part of the API that lacks a description.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingWording {
    /// What it is.
    pub kind: WordingKind,
    /// Its place, as `FILE#POINTER`.
    pub location: String,
    /// Upstream's own text, which is shown on request and never written.
    pub upstream: Option<String>,
}

/// Returns what lacks a description, most important first. `texts` are those of upstream, by spec.
pub fn missing(documents: &[&Document], texts: &BTreeMap<String, Texts>) -> Vec<MissingWording> {
    let mut found = Vec::new();
    for document in documents {
        let mut search = WordingSearch {
            document,
            visited: BTreeSet::new(),
            found: Vec::new(),
        };
        search.search();
        let texts = texts.get(&document.file);
        found.extend(
            search
                .found
                .into_iter()
                .map(|(kind, pointer)| MissingWording {
                    kind,
                    location: format!("{}#{pointer}", document.file),
                    upstream: texts.and_then(|texts| text_of(texts, &pointer)),
                }),
        );
    }
    found.sort();
    found
}

fn text_of(texts: &Texts, pointer: &str) -> Option<String> {
    let text = |key: &str| texts.get(&format!("{pointer}/{key}")).cloned();
    text("description").or_else(|| text("summary"))
}

struct WordingSearch<'a> {
    document: &'a Document,
    /// Pointers of schemas that were searched.
    visited: BTreeSet<String>,
    found: Vec<(WordingKind, String)>,
}

impl<'a> WordingSearch<'a> {
    fn search(&mut self) {
        let document = self.document;
        let Some(paths) = document.root.get("paths").and_then(Value::as_object) else {
            return;
        };
        let mut operations = Vec::new();
        for (path, item) in paths {
            let item_pointer = format!("/paths/{}", escape(path));
            self.search_parameters(item, &item_pointer);
            for (method, operation) in methods_of(item) {
                operations.push((operation, format!("{item_pointer}/{method}")));
            }
        }
        for (operation, pointer) in &operations {
            if !has_text(operation, "description") && !has_text(operation, "summary") {
                self.found.push((WordingKind::Operation, pointer.clone()));
            }
            self.search_parameters(operation, pointer);
            if let Some(body) = operation.get("requestBody") {
                let pointer = format!("{pointer}/requestBody");
                self.search_content(body, &pointer, WordingKind::RequestField);
            }
        }
        // After all requests, so that a schema of both is one of requests.
        for (operation, pointer) in &operations {
            let responses = operation.get("responses").and_then(Value::as_object);
            for (status, response) in responses.into_iter().flatten() {
                if status.starts_with('2') {
                    let pointer = format!("{pointer}/responses/{}", escape(status));
                    self.search_content(response, &pointer, WordingKind::ResponseField);
                }
            }
        }
    }

    fn search_parameters(&mut self, owner: &'a Value, pointer: &str) {
        let parameters = owner.get("parameters").and_then(Value::as_array);
        for (index, parameter) in parameters.into_iter().flatten().enumerate() {
            let (parameter, pointer) =
                self.resolve(parameter, format!("{pointer}/parameters/{index}"));
            if !self.visited.insert(pointer.clone()) {
                continue;
            }
            let schema = parameter.get("schema");
            let is_described = has_text(parameter, "description")
                || schema.is_some_and(|schema| self.is_described(schema, MAX_HOPS));
            if !is_described {
                self.found
                    .push((WordingKind::RequestField, pointer.clone()));
            }
            if let Some(schema) = schema {
                let pointer = format!("{pointer}/schema");
                self.search_schema(schema, pointer, WordingKind::RequestField);
            }
        }
    }

    fn search_content(&mut self, owner: &'a Value, pointer: &str, kind: WordingKind) {
        let (owner, pointer) = self.resolve(owner, pointer.to_owned());
        let content = owner.get("content").and_then(Value::as_object);
        for (media_type, media) in content.into_iter().flatten() {
            if let Some(schema) = media.get("schema") {
                let pointer = format!("{pointer}/content/{}/schema", escape(media_type));
                self.search_schema(schema, pointer, kind);
            }
        }
    }

    fn search_schema(&mut self, schema: &'a Value, pointer: String, kind: WordingKind) {
        let (schema, pointer) = self.resolve(schema, pointer);
        if !self.visited.insert(pointer.clone()) {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let pointer = format!("{pointer}/properties/{}", escape(name));
            if !self.is_described(property, MAX_HOPS) && !has_one_value(property) {
                self.found.push((kind, pointer.clone()));
            }
            self.search_schema(property, pointer, kind);
        }
        for key in ["items", "additionalProperties", "then", "else"] {
            if let Some(part) = schema.get(key).filter(|part| part.is_object()) {
                self.search_schema(part, format!("{pointer}/{key}"), kind);
            }
        }
        for key in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            let parts = schema.get(key).and_then(Value::as_array);
            for (index, part) in parts.into_iter().flatten().enumerate() {
                self.search_schema(part, format!("{pointer}/{key}/{index}"), kind);
            }
        }
    }

    /// Returns whether a schema, or a schema that it wraps, has a description.
    fn is_described(&self, schema: &'a Value, hops: usize) -> bool {
        if has_text(schema, "description") {
            return true;
        }
        if hops == 0 {
            return false;
        }
        if schema.get("$ref").is_some() {
            let (target, _) = self.resolve(schema, String::new());
            return target.get("$ref").is_none() && self.is_described(target, hops - 1);
        }
        ["allOf", "anyOf", "oneOf"].iter().any(|key| {
            let parts = schema.get(*key).and_then(Value::as_array);
            let mut parts = parts.into_iter().flatten();
            parts.any(|part| self.is_described(part, hops - 1))
        })
    }

    /// Follows references; one that does not resolve is its own target.
    fn resolve(&self, node: &'a Value, pointer: String) -> (&'a Value, String) {
        let document: &'a Document = self.document;
        match document.resolve(node, &pointer) {
            Ok(target) => target,
            Err(_) => (node, pointer),
        }
    }
}

fn has_text(node: &Value, key: &str) -> bool {
    let text = node.get(key).and_then(Value::as_str);
    text.is_some_and(|text| !text.trim().is_empty())
}

/// Returns whether a field can have one value only, which needs no words.
fn has_one_value(schema: &Value) -> bool {
    let values = schema.get("enum").and_then(Value::as_array);
    schema.get("const").is_some() || values.is_some_and(|values| values.len() == 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_operations_then_request_fields_then_response_fields() {
        let document = Document {
            file: "s.yaml".into(),
            root: json!({
                "paths": {"/a": {"get": {
                    "parameters": [
                        {"name": "q", "in": "query", "schema": {"description": "Q."}},
                        {"name": "r", "in": "query", "schema": {}}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
                    "responses": {
                        "200": {"content": {"application/json": {"schema": {"properties": {
                            "out": {}, "body": {"$ref": "#/components/schemas/Body"}}}}}},
                        "400": {"content": {"application/json": {"schema": {"properties": {"error": {}}}}}}}},
                    "post": {"summary": "Known"}}},
                "components": {"schemas": {
                    "Body": {"properties": {
                        "described": {"anyOf": [{"$ref": "#/components/schemas/Word"}, {"type": "null"}]},
                        "object": {"const": "a"},
                        "bare": {"type": "array", "items": {"properties": {"deep": {"$ref": "#/gone"}}}},
                        "again": {"$ref": "#/components/schemas/Body", "description": "Recursive."}}},
                    "Word": {"description": "A word."}}}}),
        };
        let upstream = Texts::from([("/paths/~1a/get/summary".to_owned(), "Theirs".to_owned())]);
        let texts = BTreeMap::from([("s.yaml".to_owned(), upstream)]);
        let found = missing(&[&document], &texts);
        let locations: Vec<&str> = found.iter().map(|m| m.location.as_str()).collect();
        assert_eq!(
            locations,
            [
                "s.yaml#/paths/~1a/get",
                "s.yaml#/components/schemas/Body/properties/bare",
                "s.yaml#/components/schemas/Body/properties/bare/items/properties/deep",
                "s.yaml#/paths/~1a/get/parameters/1",
                "s.yaml#/paths/~1a/get/responses/200/content/application~1json/schema/properties/body",
                "s.yaml#/paths/~1a/get/responses/200/content/application~1json/schema/properties/out",
            ]
        );
        assert_eq!(found[0].upstream.as_deref(), Some("Theirs"));
    }
}

//! Removes texts and examples from a document and records the hashes of the texts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::position::Position;
use crate::load::escape;

/// Keywords that contain a text for people.
const TEXT_KEYS: &[&str] = &["description", "summary", "$comment"];
/// Keywords that contain examples.
const EXAMPLE_KEYS: &[&str] = &["example", "examples"];
/// A longer title is a sentence rather than a name.
const MAX_TITLE_WORDS: usize = 4;

/// Texts by JSON pointer.
pub type Texts = BTreeMap<String, String>;

/// Returns all texts of a document.
pub fn texts(document: &Value) -> Texts {
    let mut copy = document.clone();
    strip(&mut copy)
}

/// Removes all texts and examples, and returns the texts.
///
/// Removed are descriptions, summaries, titles that are sentences, comments, examples, and
/// extensions with examples or texts, such as code samples. Everything else is structure:
/// properties of any name, enums, defaults, and the title of the document.
pub fn strip(document: &mut Value) -> Texts {
    let mut texts = Texts::new();
    if let Value::Object(root) = document {
        // The title identifies the document.
        let title = root.get_mut("info").and_then(|info| info.get_mut("title"));
        let title = title.map(Value::take);
        strip_object(root, Position::Keywords, "", &mut texts);
        if let Some(title) = title
            && let Some(slot) = root.get_mut("info").and_then(|info| info.get_mut("title"))
        {
            *slot = title;
        }
    }
    texts
}

fn strip_value(node: &mut Value, position: Position, pointer: &str, texts: &mut Texts) {
    match node {
        Value::Object(map) => strip_object(map, position, pointer, texts),
        Value::Array(list) => {
            for (index, entry) in list.iter_mut().enumerate() {
                strip_value(entry, position, &format!("{pointer}/{index}"), texts);
            }
        }
        _ => {}
    }
}

fn strip_object(
    map: &mut Map<String, Value>,
    position: Position,
    pointer: &str,
    texts: &mut Texts,
) {
    if position == Position::Data {
        return;
    }
    if position == Position::Keywords {
        remove_prose(map, pointer, texts);
        blank_scopes(map, pointer, texts);
    }
    for (key, value) in map.iter_mut() {
        let child = position.child(key, value);
        strip_value(value, child, &format!("{pointer}/{}", escape(key)), texts);
    }
}

fn remove_prose(map: &mut Map<String, Value>, pointer: &str, texts: &mut Texts) {
    map.retain(|key, value| {
        if !is_prose(key, value) {
            return true;
        }
        if let Value::String(text) = value
            && !key.starts_with("x-")
            && !EXAMPLE_KEYS.contains(&key.as_str())
        {
            texts.insert(format!("{pointer}/{}", escape(key)), text.clone());
        }
        false
    });
}

fn is_prose(key: &str, value: &Value) -> bool {
    match key {
        // Media types, parameters and schemas have examples of any form.
        _ if EXAMPLE_KEYS.contains(&key) => true,
        _ if TEXT_KEYS.contains(&key) => value.is_string(),
        "title" => value.as_str().is_some_and(is_sentence),
        _ if key.starts_with("x-") => key.contains("example") || has_text(value),
        _ => false,
    }
}

fn is_sentence(title: &str) -> bool {
    title.split_whitespace().count() > MAX_TITLE_WORDS
        || title.trim_end().ends_with(['.', '!', '?'])
}

/// Returns whether an extension contains a text: names and codes have no spaces.
fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().contains(char::is_whitespace),
        Value::Array(list) => list.iter().any(has_text),
        Value::Object(map) => map.values().any(has_text),
        _ => false,
    }
}

/// The scopes of OAuth flows map names to descriptions, which must be present.
fn blank_scopes(map: &mut Map<String, Value>, pointer: &str, texts: &mut Texts) {
    let Some(Value::Object(scopes)) = map.get_mut("scopes") else {
        return;
    };
    for (name, description) in scopes {
        if let Value::String(text) = description
            && !text.is_empty()
        {
            let text = std::mem::take(text);
            texts.insert(format!("{pointer}/scopes/{}", escape(name)), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "openapi": "3.1.0",
            "info": {"title": "The API of a company with a long name.", "version": "1", "description": "About."},
            "tags": [{"name": "Search", "description": "Group.", "x-displayName": "Search the web"}],
            "servers": [{"url": "https://x", "description": "Main.", "variables": {"description": {"default": "a", "description": "V."}}}],
            "paths": {"/a": {
                "summary": "Item.",
                "get": {
                    "summary": "Get", "description": "Gets.", "x-codeSamples": [{"lang": "sh", "source": "curl x"}],
                    "x-exa-lifecycle": "deprecated", "x-payment-info": {"price": {"max": "0.010"}},
                    "parameters": [{"name": "description", "in": "query", "description": "P.", "example": "e",
                                    "examples": {"one": {"value": 1}}}],
                    "responses": {"200": {"description": "Fine.", "content": {"application/json": {
                        "example": {"a": 1}, "schema": {"$ref": "#/components/schemas/A"}}}}}}}},
            "components": {
                "examples": {"E": {"value": 1}},
                "schemas": {"A": {
                    "title": "WebsetItem", "$comment": "c", "type": "object",
                    "required": ["description", "title"],
                    "default": {"description": "stays", "example": 1},
                    "properties": {
                        "description": {"type": "string", "description": "D.", "examples": ["x"]},
                        "title": {"type": "string", "title": "This title says rather a lot"},
                        "summary": {"enum": ["a sentence that is a value"]},
                        "example": {"const": {"example": 1}},
                        "examples": {"type": "array", "items": {"description": "I.", "type": "string"}},
                        "x-y": {"type": "string", "description": "X."}}}},
                "securitySchemes": {"o": {"type": "oauth2", "description": "S.", "flows": {"implicit": {"scopes": {"read": "May read."}}}}}}
        })
    }

    #[test]
    fn removes_texts_and_examples_but_no_structure() {
        let mut stripped = document();
        strip(&mut stripped);
        assert_eq!(
            stripped,
            json!({
                "openapi": "3.1.0",
                "info": {"title": "The API of a company with a long name.", "version": "1"},
                "tags": [{"name": "Search"}],
                "servers": [{"url": "https://x", "variables": {"description": {"default": "a"}}}],
                "paths": {"/a": {"get": {
                    "x-exa-lifecycle": "deprecated", "x-payment-info": {"price": {"max": "0.010"}},
                    "parameters": [{"name": "description", "in": "query"}],
                    "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
                "components": {
                    "schemas": {"A": {
                        "title": "WebsetItem", "type": "object",
                        "required": ["description", "title"],
                        "default": {"description": "stays", "example": 1},
                        "properties": {
                            "description": {"type": "string"},
                            "title": {"type": "string"},
                            "summary": {"enum": ["a sentence that is a value"]},
                            "example": {"const": {"example": 1}},
                            "examples": {"type": "array", "items": {"type": "string"}},
                            "x-y": {"type": "string"}}}},
                    "securitySchemes": {"o": {"type": "oauth2", "flows": {"implicit": {"scopes": {"read": ""}}}}}}
            })
        );
    }

    #[test]
    fn records_each_text_by_its_pointer() {
        let texts = texts(&document());
        for (pointer, text) in [
            ("/info/description", "About."),
            ("/servers/0/variables/description/description", "V."),
            ("/paths/~1a/get/parameters/0/description", "P."),
            (
                "/components/schemas/A/properties/examples/items/description",
                "I.",
            ),
            (
                "/components/securitySchemes/o/flows/implicit/scopes/read",
                "May read.",
            ),
        ] {
            assert_eq!(
                texts.get(pointer).map(String::as_str),
                Some(text),
                "{pointer}"
            );
        }
        assert_eq!(texts.get("/info/title"), None);
    }

    /// Makes a document with random nesting of keywords, names and data.
    fn random_document(seed: &mut u64, depth: u32) -> Value {
        let mut next = |bound: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed >> 33) % bound
        };
        if depth == 0 {
            return [json!("a text"), json!(1), json!(null), json!("x")][next(4) as usize].clone();
        }
        let keys = [
            "description",
            "title",
            "examples",
            "properties",
            "items",
            "x-note",
            "scopes",
            "enum",
            "default",
            "allOf",
            "parameters",
            "content",
            "$ref",
        ];
        let count = next(5);
        let chosen: Vec<(usize, bool)> = (0..count)
            .map(|_| (next(keys.len() as u64) as usize, next(4) == 0))
            .collect();
        let mut map = Map::new();
        for (key, in_list) in chosen {
            let value = random_document(seed, depth - 1);
            let value = if in_list { json!([value]) } else { value };
            map.insert(keys[key].to_owned(), value);
        }
        Value::Object(map)
    }

    #[test]
    fn stripping_twice_is_stripping_once() {
        let mut seed = 7;
        for _ in 0..500 {
            let mut once = random_document(&mut seed, 6);
            strip(&mut once);
            let mut twice = once.clone();
            let texts = strip(&mut twice);
            assert_eq!(once, twice);
            assert!(texts.is_empty(), "{texts:?}");
        }
    }
}

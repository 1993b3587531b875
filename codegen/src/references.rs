//! Stage 3: finds references that do not resolve.
//!
//! The check follows the overlays, so that an overlay can fix what upstream broke. A schema or response that is
//! missing is replaced by one that accepts any value, with a notice.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::error::{Error, Findings, Result};
use crate::load::{Document, escape};

/// What to do about a reference to another file.
const BUNDLE: &str = "only references within the same file are supported: bundle the spec";

/// What to do about a reference to nothing.
const REFERENCE_ADVICE: &str = "add the target with an overlay, or use another version of the spec";

/// Longer chains of references are treated as a cycle.
const MAX_HOPS: usize = 32;

/// Keys whose value is data and not part of the schema.
const DATA_KEYS: &[&str] = &["example", "examples", "default", "const", "enum"];

/// Keys whose children have names chosen by the author, so a child may be called `default` or `enum`.
const NAME_MAPS: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "schemas",
    "responses",
    "headers",
    "requestBodies",
    "pathItems",
    "paths",
    "content",
    "links",
    "callbacks",
];

/// Replaces dangling references by a schema that accepts any value.
///
/// The reference to a request body stays: an operation would send the wrong request without its body, so it is
/// left out when it is read.
pub fn replace_dangling(document: &mut Document, findings: &mut Findings) {
    let mut places: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for (pointer, reference, advice) in dangling(document) {
        if pointer.ends_with("/requestBody") {
            continue;
        }
        if let Some(node) = document.root.pointer_mut(&pointer) {
            *node = Value::Object(Map::new());
        }
        let all = places.entry((reference, advice)).or_default();
        all.push(pointer);
    }
    for ((reference, advice), pointers) in places {
        let Some(pointer) = pointers.first() else {
            continue;
        };
        let what = match (is_parameter(pointer), pointers.len() - 1) {
            (true, 0) => "parameter omitted".to_owned(),
            (true, more) => format!("parameter omitted, as at {more} more places"),
            (false, 0) => "any value is accepted here".to_owned(),
            (false, more) => format!("any value is accepted here and at {more} more places"),
        };
        let error = Error::Reference {
            file: document.file.clone(),
            pointer: pointer.clone(),
            reference,
            advice,
        };
        findings.omit(&document.file, format!("#{pointer}"), &what, error);
    }
}

/// Returns whether the node at `pointer` is a parameter.
fn is_parameter(pointer: &str) -> bool {
    let mut segments = pointer.rsplit('/');
    segments.next();
    segments.next() == Some("parameters")
}

/// Returns the pointer, the reference and what to do about it.
fn dangling(document: &Document) -> Vec<(String, String, &'static str)> {
    let mut references = Vec::new();
    collect(&document.root, String::new(), false, &mut references);
    let problem = |reference: &str| match local_pointer(reference) {
        None => Some(BUNDLE),
        Some(target) if document.root.pointer(&target).is_none() => Some(REFERENCE_ADVICE),
        Some(_) => None,
    };
    references
        .into_iter()
        .filter_map(|(pointer, reference)| {
            let advice = problem(&reference)?;
            Some((pointer, reference, advice))
        })
        .collect()
}

fn collect(node: &Value, pointer: String, is_name_map: bool, found: &mut Vec<(String, String)>) {
    match node {
        Value::Object(map) => {
            if !is_name_map && let Some(Value::String(reference)) = map.get("$ref") {
                found.push((pointer.clone(), reference.clone()));
            }
            for (key, value) in map {
                let is_data =
                    !is_name_map && (DATA_KEYS.contains(&key.as_str()) || key.starts_with("x-"));
                if is_data {
                    continue;
                }
                let child_is_name_map = !is_name_map && NAME_MAPS.contains(&key.as_str());
                collect(
                    value,
                    format!("{pointer}/{}", escape(key)),
                    child_is_name_map,
                    found,
                );
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{pointer}/{index}"), false, found);
            }
        }
        _ => {}
    }
}

/// Returns the JSON pointer of a reference within the same document.
pub fn local_pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    Some(
        percent_decode_str(fragment)
            .decode_utf8_lossy()
            .into_owned(),
    )
}

impl Document {
    /// Follows `$ref` to a node that is not a reference. Siblings of a reference are ignored.
    ///
    /// Returns the node with its pointer.
    pub fn resolve<'a>(&'a self, node: &'a Value, pointer: &str) -> Result<(&'a Value, String)> {
        let mut node = node;
        let mut pointer = pointer.to_owned();
        for _ in 0..MAX_HOPS {
            let Some(Value::String(reference)) = node.get("$ref") else {
                return Ok((node, pointer));
            };
            let target = local_pointer(reference)
                .and_then(|target| Some((self.root.pointer(&target)?, target)));
            let Some((found, target)) = target else {
                return Err(Error::Reference {
                    file: self.file.clone(),
                    pointer,
                    reference: reference.clone(),
                    advice: REFERENCE_ADVICE,
                });
            };
            node = found;
            pointer = target;
        }
        Err(self.error(&pointer, "cyclic references".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(root: Value) -> Document {
        Document {
            file: "spec.yaml".into(),
            root,
        }
    }

    /// Replaces dangling references and returns the document with the notices.
    fn replaced(root: Value) -> (Value, Vec<String>) {
        let mut spec = document(root);
        let mut findings = Findings::default();
        replace_dangling(&mut spec, &mut findings);
        assert_eq!(findings.notices.len(), findings.omissions.len());
        let notices = findings.notices.iter().map(ToString::to_string);
        (spec.root, notices.collect())
    }

    #[test]
    fn replaces_dangling_references_and_names_their_location() {
        let (root, notices) =
            replaced(json!({"paths": {"/a": {"get": {"x": {"$ref": "#/components/schemas/No"}}}}}));
        assert_eq!(root, json!({"paths": {"/a": {"get": {"x": {}}}}}));
        let [notice] = notices.as_slice() else {
            panic!("{notices:?}")
        };
        assert!(notice.contains("spec.yaml #/paths/~1a/get/x"), "{notice}");
        assert!(notice.contains("#/components/schemas/No"), "{notice}");
    }

    #[test]
    fn replaces_references_to_other_files() {
        let (root, notices) = replaced(json!({"a": {"$ref": "other.yaml#/x"}}));
        assert_eq!(root, json!({"a": {}}));
        assert!(notices[0].contains("bundle"), "{notices:?}");
    }

    #[test]
    fn retains_a_dangling_request_body() {
        let spec = json!({"post": {"requestBody": {"$ref": "#/nowhere"}}});
        assert_eq!(replaced(spec.clone()), (spec, vec![]));
    }

    #[test]
    fn ignores_data_that_looks_like_a_reference() {
        for spec in [
            json!({"a": {"example": {"$ref": "#/nowhere"}}}),
            json!({"properties": {"$ref": {"type": "string"}}}),
        ] {
            assert_eq!(replaced(spec.clone()), (spec, vec![]));
        }
        // A property may be called `default`; its value is a schema, not data.
        let (_, notices) = replaced(json!({"properties": {"default": {"$ref": "#/nowhere"}}}));
        assert_eq!(notices.len(), 1);
    }

    #[test]
    fn resolves_escaped_and_encoded_references() {
        let spec =
            document(json!({"a/b": {"c d": {"type": "string"}}, "x": {"$ref": "#/a~1b/c%20d"}}));
        assert_eq!(dangling(&spec), vec![]);
        let (node, pointer) = spec.resolve(spec.root.get("x").unwrap(), "/x").unwrap();
        assert_eq!(
            (node, pointer.as_str()),
            (&json!({"type": "string"}), "/a~1b/c d")
        );
    }

    #[test]
    fn rejects_cyclic_references() {
        let spec = document(json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}));
        assert!(spec.resolve(spec.root.get("a").unwrap(), "/a").is_err());
    }
}

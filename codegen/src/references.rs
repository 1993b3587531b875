//! Stage 3: checks that every `$ref` resolves.
//!
//! A dangling reference in upstream's spec is an error; one in our overlay is replaced and reported.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::error::{Error, Notice, Result};
use crate::load::{Document, escape};

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

/// Fails at the first dangling reference of upstream's spec.
pub fn check(document: &Document) -> Result<()> {
    match dangling(document)?.into_iter().next() {
        None => Ok(()),
        Some((pointer, reference)) => Err(Error::Reference {
            file: document.file.clone(),
            pointer,
            reference,
            advice: "the spec is broken here: fix it or use a newer version",
        }),
    }
}

/// Replaces references of the overlay to something that upstream no longer has by a schema that
/// accepts any value.
pub fn replace_dangling(document: &mut Document) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    for (pointer, reference) in dangling(document)? {
        if let Some(node) = document.root.pointer_mut(&pointer) {
            *node = Value::Object(Map::new());
        }
        notices.push(Notice {
            file: document.file.clone(),
            location: format!("#{pointer}"),
            message: format!(
                "the overlay uses `{reference}`, which upstream no longer has; any value is accepted here"
            ),
        });
    }
    Ok(notices)
}

fn dangling(document: &Document) -> Result<Vec<(String, String)>> {
    let mut references = Vec::new();
    collect(&document.root, String::new(), false, &mut references);
    let mut dangling = Vec::new();
    for (pointer, reference) in references {
        let Some(target) = local_pointer(&reference) else {
            return Err(Error::Reference {
                file: document.file.clone(),
                pointer,
                reference,
                advice: "only references within the same file are supported: bundle the spec",
            });
        };
        if document.root.pointer(&target).is_none() {
            dangling.push((pointer, reference));
        }
    }
    Ok(dangling)
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
                    advice: "the spec is broken here: fix it or use a newer version",
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

    #[test]
    fn reports_a_dangling_reference_with_file_and_pointer() {
        let spec =
            document(json!({"paths": {"/a": {"get": {"x": {"$ref": "#/components/schemas/No"}}}}}));
        let error = check(&spec).unwrap_err().to_string();
        assert!(error.contains("spec.yaml#/paths/~1a/get/x"), "{error}");
        assert!(error.contains("#/components/schemas/No"), "{error}");
    }

    #[test]
    fn rejects_references_to_other_files() {
        let error = check(&document(json!({"a": {"$ref": "other.yaml#/x"}}))).unwrap_err();
        assert!(error.to_string().contains("bundle"), "{error}");
    }

    #[test]
    fn ignores_data_that_looks_like_a_reference() {
        check(&document(json!({"a": {"example": {"$ref": "#/nowhere"}}}))).unwrap();
        check(&document(
            json!({"properties": {"$ref": {"type": "string"}}}),
        ))
        .unwrap();
        // A property may be called `default`; its value is a schema, not data.
        let spec = document(json!({"properties": {"default": {"$ref": "#/nowhere"}}}));
        assert!(check(&spec).is_err());
    }

    #[test]
    fn resolves_escaped_and_encoded_references() {
        let spec =
            document(json!({"a/b": {"c d": {"type": "string"}}, "x": {"$ref": "#/a~1b/c%20d"}}));
        check(&spec).unwrap();
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

    #[test]
    fn replaces_and_reports_dangling_references_of_the_overlay() {
        let mut spec = document(json!({"a": {"$ref": "#/gone"}}));
        let notices = replace_dangling(&mut spec).unwrap();
        assert_eq!(spec.root, json!({"a": {}}));
        assert!(notices[0].to_string().contains("#/gone"), "{notices:?}");
    }
}

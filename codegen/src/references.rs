//! Stage 3: every `$ref` leads somewhere, or generation stops (upstream) or goes on without it
//! (ours).

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::error::{Error, Notice, Result};
use crate::load::{Document, escape};

/// Chains of references longer than this are taken for a loop.
const MAX_HOPS: usize = 32;

/// Keys whose value is data, not part of the description.
const DATA_KEYS: &[&str] = &["example", "examples", "default", "const", "enum"];

/// Keys whose children are named by the author, so a child may be called `default` or `enum`.
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

/// Stops at the first reference of upstream's own file that leads nowhere.
pub fn check(document: &Document) -> Result<()> {
    match dangling(document)?.into_iter().next() {
        None => Ok(()),
        Some((pointer, reference)) => Err(Error::Reference {
            file: document.file.clone(),
            pointer,
            reference,
            advice: "the spec is broken here, so mend it or take a newer one",
        }),
    }
}

/// After the overlay: opens up what refers to something that upstream no longer has.
pub fn open_dangling(document: &mut Document) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    for (pointer, reference) in dangling(document)? {
        if let Some(node) = document.root.pointer_mut(&pointer) {
            *node = Value::Object(Map::new());
        }
        notices.push(Notice {
            file: document.file.clone(),
            place: format!("#{pointer}"),
            text: format!(
                "the overlay uses `{reference}`, which upstream no longer has; any value is accepted here"
            ),
        });
    }
    Ok(notices)
}

fn dangling(document: &Document) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    collect(&document.root, String::new(), false, &mut found);
    let mut dangling = Vec::new();
    for (pointer, reference) in found {
        let Some(target) = local_pointer(&reference) else {
            return Err(Error::Reference {
                file: document.file.clone(),
                pointer,
                reference,
                advice: "only references inside the same file are supported, so bundle the spec",
            });
        };
        if document.root.pointer(&target).is_none() {
            dangling.push((pointer, reference));
        }
    }
    Ok(dangling)
}

fn collect(node: &Value, pointer: String, names: bool, found: &mut Vec<(String, String)>) {
    match node {
        Value::Object(map) => {
            if !names && let Some(Value::String(reference)) = map.get("$ref") {
                found.push((pointer.clone(), reference.clone()));
            }
            for (key, value) in map {
                let data = !names && (DATA_KEYS.contains(&key.as_str()) || key.starts_with("x-"));
                if data {
                    continue;
                }
                let child_names = !names && NAME_MAPS.contains(&key.as_str());
                collect(
                    value,
                    format!("{pointer}/{}", escape(key)),
                    child_names,
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

/// The JSON pointer of a reference into the same document.
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
    /// Follows `$ref` until something that is no reference; siblings of a reference are dropped.
    ///
    /// Gives the node with the pointer where it stands.
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
                    advice: "the spec is broken here, so mend it or take a newer one",
                });
            };
            node = found;
            pointer = target;
        }
        Err(self.error(&pointer, "references lead in a circle".to_owned()))
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
    fn a_reference_to_nothing_names_file_and_place() {
        let spec =
            document(json!({"paths": {"/a": {"get": {"x": {"$ref": "#/components/schemas/No"}}}}}));
        let error = check(&spec).unwrap_err().to_string();
        assert!(error.contains("spec.yaml#/paths/~1a/get/x"), "{error}");
        assert!(error.contains("#/components/schemas/No"), "{error}");
    }

    #[test]
    fn a_reference_to_another_file_is_refused() {
        let error = check(&document(json!({"a": {"$ref": "other.yaml#/x"}}))).unwrap_err();
        assert!(error.to_string().contains("bundle"), "{error}");
    }

    #[test]
    fn data_that_looks_like_a_reference_is_left_alone() {
        check(&document(json!({"a": {"example": {"$ref": "#/nowhere"}}}))).unwrap();
        check(&document(
            json!({"properties": {"$ref": {"type": "string"}}}),
        ))
        .unwrap();
        // A property may be called `default`; what it says is description, not data.
        let spec = document(json!({"properties": {"default": {"$ref": "#/nowhere"}}}));
        assert!(check(&spec).is_err());
    }

    #[test]
    fn escaped_and_encoded_references_resolve() {
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
    fn a_circle_of_references_is_an_error() {
        let spec = document(json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}));
        assert!(spec.resolve(spec.root.get("a").unwrap(), "/a").is_err());
    }

    #[test]
    fn what_the_overlay_refers_to_in_vain_is_opened_and_reported() {
        let mut spec = document(json!({"a": {"$ref": "#/gone"}}));
        let notices = open_dangling(&mut spec).unwrap();
        assert_eq!(spec.root, json!({"a": {}}));
        assert!(notices[0].to_string().contains("#/gone"), "{notices:?}");
    }
}

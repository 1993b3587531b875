//! Unwraps schemas from wrappers that add no constraints, and recognizes plain references.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keyword_groups::{is_documentation, is_metadata};
use super::merge::add_inner_docs;
use super::normalize::{documentation, list};

/// A schema without the wrappers that add no constraints to it.
#[derive(Debug, PartialEq)]
pub(super) struct UnwrappedSchema<'a> {
    /// The wrapped schema.
    pub(super) core: &'a Value,
    /// Whether a wrapper also allows `null`.
    pub(super) nullable: bool,
    /// The documentation of the wrappers and the core; the outermost takes precedence.
    pub(super) docs: BTreeMap<String, Value>,
}

/// Removes documentation, an `allOf` with one element, and a union with only `null`.
pub(super) fn unwrap_schema(schema: &Value) -> UnwrappedSchema<'_> {
    let bare = UnwrappedSchema {
        core: schema,
        nullable: false,
        docs: BTreeMap::new(),
    };
    let Some(keywords) = schema.as_object() else {
        return bare;
    };
    let mut found = match only_constraint(schema) {
        Some((key @ ("allOf" | "anyOf" | "oneOf"), _)) => {
            let options = list(keywords, key);
            let (nulls, others): (Vec<&Value>, Vec<&Value>) = options
                .iter()
                .partition(|option| key != "allOf" && is_null(option));
            match others.as_slice() {
                [inner] => {
                    let mut inner = unwrap_schema(inner);
                    inner.nullable |= !nulls.is_empty();
                    inner
                }
                _ => bare,
            }
        }
        _ => bare,
    };
    found.nullable |= allows_null(schema);
    let inner = std::mem::replace(&mut found.docs, documentation(keywords));
    add_inner_docs(&mut found.docs, &inner);
    found
}

/// Returns the reference, such as `#/$defs/Webset`, if the schema consists of nothing else.
pub(super) fn sole_reference<'a>(unwrapped: &UnwrappedSchema<'a>) -> Option<&'a str> {
    match only_constraint(unwrapped.core)? {
        ("$ref", target) => target.as_str(),
        _ => None,
    }
}

/// Returns the types next to a reference. They usually repeat those of the definition.
pub(super) fn types_beside_reference<'a>(unwrapped: &UnwrappedSchema<'a>) -> Vec<&'a str> {
    let kinds = unwrapped.core.get("type").into_iter().flat_map(type_names);
    kinds.filter(|kind| *kind != "null").collect()
}

/// Returns the only constraint of a schema, ignoring a type next to a reference.
fn only_constraint(schema: &Value) -> Option<(&str, &Value)> {
    let keywords = schema.as_object()?;
    let is_reference = keywords.contains_key("$ref");
    let mut constraints = keywords.iter().filter(|(key, _)| {
        let ignored = key.as_str() == "nullable" || (is_reference && key.as_str() == "type");
        !ignored && !is_documentation(key) && !is_metadata(key)
    });
    let (key, value) = constraints.next()?;
    constraints.next().is_none().then_some((key, value))
}

/// Returns whether a schema itself allows `null`. Specs often do so next to a reference or an enum
/// that does not list `null`; that counts as allowed.
pub(super) fn allows_null(schema: &Value) -> bool {
    let listed = schema.get("type").is_some_and(|kinds| {
        let mut found = type_names(kinds);
        kinds.is_array() && found.len() > 1 && found.any(|kind| kind == "null")
    });
    listed || schema.get("nullable") == Some(&Value::Bool(true))
}

/// Returns the types that the keyword `type` lists.
fn type_names(kinds: &Value) -> std::vec::IntoIter<&str> {
    let found: Vec<&str> = match kinds {
        Value::Array(listed) => listed.iter().filter_map(Value::as_str).collect(),
        single => single.as_str().into_iter().collect(),
    };
    found.into_iter()
}

fn is_null(schema: &Value) -> bool {
    let null = |key: &str, value: Value| schema.get(key) == Some(&value);
    null("type", "null".into()) || null("type", vec!["null"].into()) || null("const", Value::Null)
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, UnwrappedSchema, sole_reference, unwrap_schema};
    use serde_json::json;

    #[test]
    fn removes_wrappers() {
        let inner = json!({"$ref": "#/$defs/A", "description": "inner", "title": "T"});
        let schema = json!({
            "description": "outer",
            "anyOf": [{"allOf": [inner]}, {"type": "null"}],
        });
        let expected = UnwrappedSchema {
            core: &inner,
            nullable: true,
            docs: BTreeMap::from([
                ("description".to_owned(), json!("outer")),
                ("inner description".to_owned(), json!("inner")),
                ("title".to_owned(), json!("T")),
            ]),
        };
        assert_eq!(unwrap_schema(&schema), expected);
        assert_eq!(sole_reference(&expected), Some("#/$defs/A"));
    }

    #[test]
    fn schemas_with_constraints_are_not_plain_references() {
        for schema in [
            json!({"$ref": "#/$defs/A", "minLength": 1}),
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}),
            json!({"type": "string"}),
            json!({}),
            json!(true),
        ] {
            assert_eq!(sole_reference(&unwrap_schema(&schema)), None, "{schema}");
        }
    }
}

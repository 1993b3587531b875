//! Schemas without their wrapping, and those that are a definition and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

use super::merge::underlay;
use super::normalise::{documentation, list};
use super::vocabulary::{is_documentation, says_nothing};

/// A schema without the wrapping that adds no demands to it.
#[derive(Debug, PartialEq)]
pub(super) struct Peeled<'a> {
    /// What was inside.
    pub(super) core: &'a Value,
    /// Whether the wrapping allows `null` besides what the core allows.
    pub(super) nullable: bool,
    /// What the wrapping and the core say about this place, the outermost words first.
    pub(super) docs: BTreeMap<String, Value>,
}

/// Takes off descriptions, an `allOf` of one element and a union with nothing but `null`.
pub(super) fn peel(schema: &Value) -> Peeled<'_> {
    let bare = Peeled {
        core: schema,
        nullable: false,
        docs: BTreeMap::new(),
    };
    let Some(keywords) = schema.as_object() else {
        return bare;
    };
    let mut found = match only_demand(schema) {
        Some((key @ ("allOf" | "anyOf" | "oneOf"), _)) => {
            let options = list(keywords, key);
            let (nulls, others): (Vec<&Value>, Vec<&Value>) = options
                .iter()
                .partition(|option| key != "allOf" && is_null(option));
            match others.as_slice() {
                [inner] => {
                    let mut inner = peel(inner);
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
    underlay(&mut found.docs, &inner);
    found
}

/// The definition that a schema is, if it is one: such as `#/$defs/Webset`.
pub(super) fn plain_reference<'a>(peeled: &Peeled<'a>) -> Option<&'a str> {
    match only_demand(peeled.core)? {
        ("$ref", target) => target.as_str(),
        _ => None,
    }
}

/// The types written next to a reference. They mostly repeat those of the definition.
pub(super) fn kinds_beside<'a>(peeled: &Peeled<'a>) -> Vec<&'a str> {
    let kinds = peeled.core.get("type").into_iter().flat_map(names);
    kinds.filter(|kind| *kind != "null").collect()
}

/// The keyword that is all a schema demands, apart from a type next to a reference.
fn only_demand(schema: &Value) -> Option<(&str, &Value)> {
    let keywords = schema.as_object()?;
    let refers = keywords.contains_key("$ref");
    let mut demands = keywords.iter().filter(|(key, _)| {
        let beside = key.as_str() == "nullable" || (refers && key.as_str() == "type");
        !beside && !is_documentation(key) && !says_nothing(key)
    });
    let (key, value) = demands.next()?;
    demands.next().is_none().then_some((key, value))
}

/// Whether a schema says in its own words that `null` is allowed. Many that do so next to a
/// reference or a list of values forget to allow it there as well; they are taken at their word.
pub(super) fn allows_null(schema: &Value) -> bool {
    let listed = schema.get("type").is_some_and(|kinds| {
        let mut found = names(kinds);
        kinds.is_array() && found.len() > 1 && found.any(|kind| kind == "null")
    });
    listed || schema.get("nullable") == Some(&Value::Bool(true))
}

/// The types that the keyword `type` names.
fn names(kinds: &Value) -> std::vec::IntoIter<&str> {
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
    use super::{BTreeMap, Peeled, peel, plain_reference};
    use serde_json::json;

    #[test]
    fn wrappings_are_taken_off() {
        let inner = json!({"$ref": "#/$defs/A", "description": "inner", "title": "T"});
        let schema = json!({
            "description": "outer",
            "anyOf": [{"allOf": [inner]}, {"type": "null"}],
        });
        let expected = Peeled {
            core: &inner,
            nullable: true,
            docs: BTreeMap::from([
                ("description".to_owned(), json!("outer")),
                ("further description".to_owned(), json!("inner")),
                ("title".to_owned(), json!("T")),
            ]),
        };
        assert_eq!(peel(&schema), expected);
        assert_eq!(plain_reference(&expected), Some("#/$defs/A"));
    }

    #[test]
    fn demands_make_more_than_a_reference() {
        for schema in [
            json!({"$ref": "#/$defs/A", "minLength": 1}),
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}),
            json!({"type": "string"}),
            json!({}),
            json!(true),
        ] {
            assert_eq!(plain_reference(&peel(&schema)), None, "{schema}");
        }
    }
}

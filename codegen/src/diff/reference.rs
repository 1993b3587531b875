//! Schemas without their wrapping, and those that are a definition and nothing else.

use std::collections::BTreeMap;

use serde_json::Value;

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
    found.nullable |= keywords.get("nullable") == Some(&Value::Bool(true));
    found.docs.extend(documentation(keywords));
    found
}

/// The definition that a schema is, if it is one: `target` is such as `#/$defs/Webset`.
pub(super) fn plain_reference<'a>(peeled: &Peeled<'a>) -> Option<&'a str> {
    match only_demand(peeled.core)? {
        ("$ref", target) => target.as_str(),
        _ => None,
    }
}

/// The keyword that is all a schema demands.
fn only_demand(schema: &Value) -> Option<(&str, &Value)> {
    let mut demands = schema
        .as_object()?
        .iter()
        .filter(|(key, _)| !is_documentation(key) && !says_nothing(key) && *key != "nullable");
    let (key, value) = demands.next()?;
    demands.next().is_none().then_some((key, value))
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

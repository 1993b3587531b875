//! Places that are a definition and nothing else.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::normalise::{documentation, is_documentation, list};

/// A schema that refers to a definition, however wrapped, and adds no demands of its own.
#[derive(Debug, PartialEq)]
pub(super) struct Reference<'a> {
    /// Such as `#/$defs/Webset`.
    pub(super) target: &'a str,
    /// Whether the place allows `null` besides what the definition allows.
    pub(super) nullable: bool,
    /// What is written at the place itself.
    pub(super) docs: BTreeMap<String, Value>,
}

/// Sees through descriptions, an `allOf` of one element and a union with nothing but `null`.
pub(super) fn plain_reference(schema: &Value) -> Option<Reference<'_>> {
    let keywords = schema.as_object()?;
    let nullable = keywords.get("nullable") == Some(&Value::Bool(true));
    let mut demands = keywords
        .iter()
        .filter(|(key, _)| !is_documentation(key) && *key != "nullable");
    let (Some((key, value)), None) = (demands.next(), demands.next()) else {
        return None;
    };
    let mut found = match key.as_str() {
        "$ref" => Reference {
            target: value.as_str()?,
            nullable: false,
            docs: BTreeMap::new(),
        },
        "allOf" => plain_reference(only(list(keywords, key).iter())?)?,
        "anyOf" | "oneOf" => nullable_reference(keywords, key)?,
        _ => return None,
    };
    found.nullable |= nullable;
    found.docs.extend(documentation(keywords));
    Some(found)
}

fn nullable_reference<'a>(keywords: &'a Map<String, Value>, key: &str) -> Option<Reference<'a>> {
    let options = list(keywords, key);
    let mut found = plain_reference(only(options.iter().filter(|option| !is_null(option)))?)?;
    found.nullable |= options.iter().any(is_null);
    Some(found)
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

fn only<'a>(mut found: impl Iterator<Item = &'a Value>) -> Option<&'a Value> {
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, Reference, plain_reference};
    use serde_json::json;

    #[test]
    fn wrappings_are_seen_through() {
        let schema = json!({
            "description": "outer",
            "anyOf": [
                {"allOf": [{"$ref": "#/$defs/A", "description": "inner", "title": "T"}]},
                {"type": "null"},
            ],
        });
        let expected = Reference {
            target: "#/$defs/A",
            nullable: true,
            docs: BTreeMap::from([
                ("description".to_owned(), json!("outer")),
                ("title".to_owned(), json!("T")),
            ]),
        };
        assert_eq!(plain_reference(&schema), Some(expected));
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
            assert_eq!(plain_reference(&schema), None, "{schema}");
        }
    }
}

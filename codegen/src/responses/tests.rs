//! What responses are read as.

use serde_json::{Value, json};

use super::{ResponseTypes, Shape, reader::ResponseReader};
use crate::load::Document;

/// Reads a field with this schema and returns the source of the types, without the header.
fn source(schema: Value, components: Value) -> (Shape, String) {
    let document = Document {
        file: "spec.yaml".into(),
        root: json!({"components": {"schemas": components}}),
    };
    let mut reader = ResponseReader::new(&document);
    let shape = reader.read(&schema, "/x", "Thing");
    reader.read_pending();
    let types: ResponseTypes = reader.finish();
    let text = types.source("API");
    let start = text.find("serde_json::Value;").unwrap() + "serde_json::Value;".len();
    let text = text[start..].split_whitespace().collect::<Vec<_>>();
    (shape, text.join(" "))
}

fn shape(schema: Value) -> Shape {
    source(schema, json!({})).0
}

#[test]
fn reads_simple_types() {
    let list = |item| Shape::List(Box::new(item));
    let cases = [
        (json!({"type": "string"}), Shape::Text),
        (json!({"type": ["string", "null"]}), Shape::Text),
        (json!({"type": ["string", "integer"]}), Shape::Any),
        (json!({"type": "integer"}), Shape::Integer),
        (
            json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
            Shape::Number,
        ),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "number"}]}),
            Shape::Number,
        ),
        (
            json!({"anyOf": [{"enum": ["a", "b"]}, {"type": "string"}]}),
            Shape::Text,
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
            Shape::Any,
        ),
        (json!({"const": "x"}), Shape::Text),
        (json!({"enum": [1, 2, null]}), Shape::Number),
        (json!({"enum": ["a", 1]}), Shape::Any),
        (json!({"type": "boolean"}), Shape::Boolean),
        (json!({"type": "file"}), Shape::Any),
        (json!(true), Shape::Any),
        (json!({}), Shape::Any),
        (json!({"$ref": "#/gone"}), Shape::Any),
        (
            json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
            list(list(Shape::Number)),
        ),
        (json!({"type": "array"}), list(Shape::Any)),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Shape::Entries(Box::new(Shape::Text)),
        ),
        (
            json!({"type": "object"}),
            Shape::Entries(Box::new(Shape::Any)),
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(shape(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn every_field_and_value_has_a_name_of_its_own() {
    let (_, text) = source(
        json!({"type": "object", "properties": {
            "fooBar": {"type": "string"}, "foo_bar": {"type": "string"}, "FooBar": {"type": "string"},
            "type": {"type": "string"}, "self": {"type": "string"}, "$ref ": {"type": "string"},
            "": {"type": "string"}, "+1": {"type": "string"}, "é²": {"type": "string"}, "as_json": {"type": "string"},
            "odd": {"enum": ["a", "A", "", "1", "self", "other", "a b", "a", null]},
            "secret": {"type": "string", "writeOnly": true}, "id": {"type": "string", "readOnly": true}}}),
        json!({}),
    );
    for expected in [
        "foo_bar: &'a str = \"fooBar\"",
        "foo_bar2: &'a str = \"foo_bar\"",
        "foo_bar3: &'a str = \"FooBar\"",
        "type_: &'a str = \"type\"",
        "self_: &'a str = \"self\"",
        "as_json: &'a str = \"as_json\"",
        "id: &'a str = \"id\"",
        "_1: &'a str = \"+1\"",
        "A = \"a\", A2 = \"A\", Value = \"\", Value1 = \"1\", Self2 = \"self\", Other2 = \"other\", Ab = \"a b\", }",
    ] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn recursive_types_end() {
    let (shape, text) = source(
        json!({"$ref": "#/components/schemas/Tree"}),
        json!({
            "Tree": {"type": "object", "properties": {
                "parent": {"anyOf": [{"$ref": "#/components/schemas/Tree"}, {"type": "null"}]},
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
                "json": {"$ref": "#/components/schemas/Json"}}},
            "Json": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/components/schemas/Json"}}]},
        }),
    );
    assert_eq!(shape, Shape::Object("Tree".to_owned()));
    assert!(text.contains("parent: Tree<&'a Value>"), "{text}");
    assert!(
        text.contains("children: List<'a, Tree<&'a Value>>"),
        "{text}"
    );
    assert!(text.contains("json: &'a Value"), "{text}");
}

#[test]
fn a_field_with_listed_values_tells_objects_apart() {
    let branch = |kind: &str, field: &str| {
        json!({"type": "object", "properties": {"object": {"const": "event"}, "type": {"const": kind},
            field: {"type": "string"}}})
    };
    let (shape, text) = source(
        json!({"oneOf": [branch("a.made", "x"), branch("a.gone", "y"), {"type": "null"}]}),
        json!({}),
    );
    assert_eq!(shape, Shape::Union("Thing".to_owned()));
    assert!(text.contains("Thing<'a> by \"type\" {"), "{text}");
    assert!(
        text.contains("AMade(ThingAMade<&'a Value>) = \"a.made\","),
        "{text}"
    );
    let (_, text) = source(
        json!({"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}],
            "discriminator": {"propertyName": "kind", "mapping": {"one": "#/components/schemas/A", "uno": "A"}}}),
        json!({
            "A": {"type": "object", "properties": {"kind": {"type": "string"}}},
            "B": {"type": "object", "properties": {"kind": {"type": "string"}}},
        }),
    );
    assert!(text.contains("Thing<'a> by \"kind\" { One(A<&'a Value>) = \"one\" | \"uno\", B(B<&'a Value>) = \"B\", }"), "{text}");
}

#[test]
fn objects_without_a_tag_become_one_object() {
    let (shape, text) = source(
        json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}},
            {"$ref": "#/components/schemas/B"}]}),
        json!({"B": {"type": "object", "properties": {"b": {"type": "boolean"}, "n": {"type": "number"}}}}),
    );
    assert_eq!(shape, Shape::Object("Thing".to_owned()));
    for field in ["a: &'a str", "b: bool", "n: f64"] {
        assert!(text.contains(field), "{field} is missing in {text}");
    }
}

#[test]
fn components_keep_their_names() {
    let (_, text) = source(
        json!({"type": "object", "properties": {
            "item": {"type": "object", "properties": {"x": {"type": "string"}}},
            "list": {"$ref": "#/components/schemas/List"},
            "other": {"$ref": "#/components/schemas/ThingItem"}}}),
        json!({
            "ThingItem": {"type": "object", "properties": {"y": {"type": "string"}}},
            "List": {"type": "object", "properties": {"z": {"type": "string"}}},
        }),
    );
    for field in [
        "item: ThingItem2<&'a Value>",
        "other: ThingItem<&'a Value>",
        "list: List2<&'a Value>",
    ] {
        assert!(text.contains(field), "{field} is missing in {text}");
    }
}

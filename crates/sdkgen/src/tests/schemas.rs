//! Types generated from schemas.

use serde_json::{Value, json};

use super::{operation, text_of};
use crate::{Language, generate};

/// Generates the file of one operation in both languages.
fn both(input: Value, output: Value) -> (String, String) {
    let make = |language, path| {
        let source = operation("things.make", input.clone(), output.clone());
        text_of(&generate(language, vec![source]), path)
    };
    (
        make(Language::Typescript, "things.ts"),
        make(Language::Python, "things.py"),
    )
}

/// Extracts the type of the field `it` in both languages.
fn field((typescript, python): (String, String)) -> (String, String) {
    let line = |text: &str| {
        let found = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("it: "));
        found.unwrap().trim_end_matches(';').to_owned()
    };
    (line(&typescript), line(&python))
}

/// Returns the type of a schema in arguments.
fn argument(schema: Value) -> (String, String) {
    let input = json!({"type": "object", "properties": {"it": schema}, "required": ["it"]});
    field(both(input, json!({})))
}

/// Returns the type of a schema in results.
fn result(schema: Value) -> (String, String) {
    let output = json!({"type": "object", "properties": {"it": schema}, "required": ["it"]});
    field(both(json!({"type": "object"}), output))
}

fn pair(typescript: &str, python: &str) -> (String, String) {
    (typescript.to_owned(), python.to_owned())
}

#[test]
fn maps_scalars_and_lists() {
    assert_eq!(argument(json!({"type": "string"})), pair("string", "str"));
    assert_eq!(argument(json!({"type": "integer"})), pair("number", "int"));
    assert_eq!(argument(json!({"type": "number"})), pair("number", "float"));
    assert_eq!(
        argument(json!({"type": "boolean"})),
        pair("boolean", "bool")
    );
    assert_eq!(
        argument(json!({"type": ["string", "null"]})),
        pair("string | null", "str | None")
    );
    assert_eq!(
        argument(json!({"type": "string", "nullable": true})),
        pair("string | null", "str | None")
    );
    assert_eq!(
        argument(json!({"type": "array", "items": {"type": "string"}})),
        pair("string[]", "list[str]")
    );
    assert_eq!(
        argument(json!({"items": {"oneOf": [{"type": "string"}, {"type": "integer"}]}})),
        pair("Array<string | number>", "list[str | int]")
    );
}

#[test]
fn maps_constants_and_enums_to_literals() {
    assert_eq!(
        argument(json!({"const": "a"})),
        pair("\"a\"", "Literal[\"a\"]")
    );
    assert_eq!(
        argument(json!({"enum": ["a", 1, true, null]})),
        pair("\"a\" | 1 | true | null", "Literal[\"a\", 1, True] | None")
    );
    assert_eq!(
        argument(json!({"enum": [0.5, 1.5]})),
        pair("0.5 | 1.5", "float")
    );
    assert_eq!(
        argument(json!({"enum": [{"a": 1}]})),
        pair("unknown", "object")
    );
}

#[test]
fn response_enums_and_objects_are_open() {
    assert_eq!(
        result(json!({"type": "string", "enum": ["a", "b"]})),
        pair(
            "\"a\" | \"b\" | (string & {})",
            "Literal[\"a\", \"b\"] | str"
        )
    );
    assert_eq!(result(json!({"enum": [1, 2]})), pair("number", "int"));
    assert_eq!(
        result(json!({"const": "a"})),
        pair("\"a\"", "Literal[\"a\"]")
    );
    let (typescript, _) = both(
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"id": {"type": "string"}}}),
    );
    assert!(typescript.contains("  id?: string;\n  [field: string]: unknown;\n}"));
}

#[test]
fn arguments_are_exact_unless_the_schema_is_open() {
    let closed = json!({"type": "object", "properties": {"it": {"type": "object", "properties": {"a": {}}}}});
    let (typescript, python) = both(closed, json!({}));
    assert!(typescript.contains("  it?: MakeArgsIt;\n"));
    assert!(typescript.contains("export interface MakeArgsIt {\n  a?: unknown;\n}"));
    assert!(python.contains("    it: NotRequired[MakeArgsIt]\n"));
    let open = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {}});
    assert_eq!(
        argument(open),
        pair("MakeArgsIt", "MakeArgsIt | Mapping[str, object]")
    );
}

#[test]
fn arguments_are_always_objects() {
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": "string"}),
    ] {
        let (typescript, python) = both(schema, json!({}));
        assert!(typescript.contains("export type MakeArgs = { [key: string]: unknown };"));
        assert!(python.contains("MakeArgs: TypeAlias = Mapping[str, \"object\"]"));
    }
    let none = json!({"type": "object", "additionalProperties": false});
    let (typescript, python) = both(none, json!({}));
    assert!(typescript.contains("export type MakeArgs = { [field: string]: never };"));
    assert!(python.contains("def make(self, args: MakeArgs = {},"));
}

#[test]
fn maps_objects_with_arbitrary_keys() {
    assert_eq!(
        argument(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        pair("{ [key: string]: string }", "Mapping[str, str]")
    );
    assert_eq!(
        result(json!({"type": "object"})),
        pair("{ [key: string]: unknown }", "dict[str, Any]")
    );
    assert_eq!(
        argument(
            json!({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": false})
        ),
        pair("{ [key: string]: number }", "Mapping[str, int]")
    );
}

#[test]
fn merges_all_of_and_extended_references() {
    let input = json!({
        "type": "object",
        "properties": {
            "both": {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
            "more": {"$ref": "#/$defs/A", "required": ["a"]},
            "same": {"$ref": "#/$defs/A", "description": "Only words."}
        },
        "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}}}
    });
    let (typescript, _) = both(input, json!({}));
    assert!(typescript.contains("interface MakeArgsBoth {\n  a?: string;\n  b: number;\n}"));
    assert!(typescript.contains("interface MakeArgsMore {\n  a: string;\n}"));
    assert!(typescript.contains("  /** Only words. */\n  same?: A;\n"));
    assert!(typescript.contains("interface A {\n  a?: string;\n}"));
}

#[test]
fn names_union_members_by_their_discriminant() {
    let branch =
        |kind: &str| json!({"properties": {"object": {"const": "x"}, "kind": {"const": kind}}});
    let choice = json!({"oneOf": [branch("cron"), branch("interval"), {"type": "null"}]});
    assert_eq!(
        argument(choice),
        pair(
            "MakeArgsItCron | MakeArgsItInterval | null",
            "MakeArgsItCron | MakeArgsItInterval | None"
        )
    );
    let beside = json!({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}, "title": "with b"}, {"required": ["c"]}]});
    assert_eq!(
        argument(beside),
        pair(
            "MakeArgsItWithB | MakeArgsIt",
            "MakeArgsItWithB | MakeArgsIt"
        )
    );
    let conditions =
        json!({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]});
    assert_eq!(argument(conditions), pair("MakeArgsIt", "MakeArgsIt"));
}

#[test]
fn handles_recursive_schemas() {
    let input = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "json": {"$ref": "#/$defs/Json"}, "loop": {"$ref": "#/$defs/Loop"}},
        "$defs": {
            "Tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
            "Json": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}}]},
            "Loop": {"oneOf": [{"$ref": "#/$defs/Loop"}, {"type": "string"}]},
            "All": {"allOf": [{"$ref": "#/$defs/All"}]}
        }
    });
    let (typescript, python) = both(
        input,
        json!({"$ref": "#/$defs/All", "$defs": {"All": {"allOf": [{"$ref": "#/$defs/All"}]}}}),
    );
    assert!(typescript.contains("interface Tree {\n  below?: Tree[];\n}"));
    assert!(typescript.contains("type Json = string | Json[] | { [key: string]: Json };"));
    assert!(typescript.contains("type Loop = unknown;"));
    assert!(python.contains("Json: TypeAlias = Union[\n    \"str\",\n    \"list[Json]\",\n    \"Mapping[str, Json]\",\n]"));
}

#[test]
fn unsupported_schemas_are_unknown() {
    for schema in [
        json!(true),
        json!({}),
        json!({"type": "decimal"}),
        json!({"$ref": "other.json#/x"}),
        json!({"$ref": "#/$defs/Missing"}),
        json!({"$dynamicRef": "#it"}),
        json!({"not": {"type": "string"}}),
        json!({"if": {}, "then": {"type": "string"}}),
    ] {
        assert_eq!(
            argument(schema.clone()),
            pair("unknown", "object"),
            "{schema}"
        );
        assert_eq!(result(schema.clone()), pair("unknown", "Any"), "{schema}");
    }
}

#[test]
fn shared_definitions_get_an_input_and_an_output_type() {
    let defs = json!({"Kind": {"enum": ["a", "b"]}});
    let input =
        json!({"type": "object", "properties": {"kind": {"$ref": "#/$defs/Kind"}}, "$defs": defs});
    let output = json!({"type": "object", "properties": {"id": {}, "kind": {"$ref": "#/$defs/Kind"}}, "$defs": defs});
    let (typescript, _) = both(input, output);
    assert!(typescript.contains("export type KindInput = \"a\" | \"b\";"));
    assert!(typescript.contains("export type Kind = \"a\" | \"b\" | (string & {});"));
}

#[test]
fn splits_responses_as_the_server_does() {
    let list = json!({"type": "object", "required": ["data", "hasMore"], "properties": {
        "data": {"type": "array", "items": {"$ref": "#/$defs/Thing"}},
        "hasMore": {"type": "boolean"}, "nextCursor": {"type": ["string", "null"]}, "requestId": {"type": "string"}
    }, "$defs": {"Thing": {"type": "object", "properties": {"id": {"type": "string"}}}}});
    let cursor = json!({"type": "object", "properties": {"cursor": {"type": "string"}}});
    let (typescript, python) = both(cursor, list.clone());
    assert!(typescript.contains(
        "export interface MakeAnswer extends Answer<Thing> {\n  hasMore: boolean;\n  nextCursor?: string | null;\n}"
    ));
    assert!(typescript.contains(
        "makeAll(args: MakeArgs = {}, options: PageOptions = {}): AsyncGenerator<Thing, void>"
    ));
    assert!(python.contains("def make_all(self, args: MakeArgs = {}, options: PageOptions = {}) -> AsyncIterator[Thing]:"));
    assert!(python.contains("    results: list[Thing]\n\n    hasMore: bool\n"));
    // Without a cursor argument, no further page can be requested.
    let (typescript, _) = both(json!({"type": "object"}), list);
    assert!(!typescript.contains("makeAll"));
    let single = json!({"type": "object", "properties": {"id": {}, "data": {"type": "array"}}});
    let (typescript, _) = both(json!({"type": "object"}), single);
    assert!(typescript.contains("export type MakeAnswer = Answer<MakeResult>;"));
    let array = json!({"type": "array", "items": {"type": "string"}});
    let (typescript, _) = both(json!({"type": "object"}), array);
    assert!(typescript.contains("export type MakeAnswer = Answer<string>;"));
}

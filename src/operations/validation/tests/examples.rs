//! Examples and hints.

use serde_json::{Value, json};

use exa_mcp_model::ExampleCall;

use super::super::super::find;
use super::super::example as example_of;
use super::{run, schema, schemas};

fn example(operation: &str, schema: &Value) -> Value {
    match find(operation) {
        Some(operation) => example_of(&operation.behavior.example, schema),
        None => example_of(&ExampleCall::EMPTY, schema),
    }
}

fn hints(operation: &str) -> &'static [String] {
    &find(operation).unwrap().behavior.hints
}

#[test]
fn every_example_is_valid() {
    for (operation, schema) in schemas() {
        let example = example(operation, schema);
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required {
            assert!(!example[name.as_str().unwrap()].is_null(), "{operation}");
        }
        match run(operation, example.clone()) {
            Ok(checked) => {
                assert_eq!(
                    checked.corrections,
                    Vec::<String>::new(),
                    "{operation}: {example}"
                );
                assert_eq!(Value::Object(checked.arguments), example, "{operation}");
            }
            Err(error) => panic!("{operation}: {example}: {error}"),
        }
    }
}

#[test]
fn examples_are_minimal_and_realistic() {
    let cases = [
        (
            "items.get",
            json!({"websetId": "ws_123", "itemId": "item_123"}),
        ),
        ("get_contents", json!({"urls": ["https://exa.ai"]})),
        (
            "searches.create",
            json!({
                "websetId": "ws_123",
                "count": 10,
                "query": "AI startups in Berlin with under 50 employees"
            }),
        ),
        (
            "monitors.create",
            json!({
                "websetId": "ws_123",
                "cadence": {"cron": "0 9 * * 1"},
                "behavior": {"type": "search", "config": {"count": 10}}
            }),
        ),
        (
            "imports.create",
            json!({"entity": {"type": "company"}, "csvContent": "name,url\nExa,https://exa.ai"}),
        ),
        ("websets.list", json!({})),
        (
            "agent.monitors.entities.add",
            json!({"monitorId": "monitor_123", "entities": [{"name": "Exa", "domain": "exa.ai"}]}),
        ),
    ];
    for (operation, wanted) in cases {
        assert_eq!(example(operation, schema(operation)), wanted);
    }
}

#[test]
fn prefers_values_from_the_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "examples": ["first", "second"]},
            "b": {"type": "string", "enum": ["x", "y"], "default": "y"},
            "c": {"type": "string", "minLength": 7, "maxLength": 8},
            "d": {"type": "integer", "minimum": 50, "maximum": 60},
            "e": {"type": "number", "exclusiveMaximum": 3},
            "f": {"properties": {"g": {"type": "boolean"}}, "required": ["g"]}
        },
        "required": ["a", "b", "c", "d", "e", "f"]
    });
    let wanted =
        json!({"a": "first", "b": "y", "c": "text tex", "d": 50, "e": 2, "f": {"g": true}});
    assert_eq!(example("any", &schema), wanted);
}

#[test]
fn creates_an_example_for_a_recursive_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
        "required": ["next"]
    });
    assert!(example("any", &schema)["next"].is_object());
}

#[test]
fn hints_belong_to_operations() {
    for operation in [
        "searches.create",
        "websets.create",
        "monitors.create",
        "enrichments.create",
        "imports.create",
    ] {
        assert!(!hints(operation).is_empty(), "{operation}");
        assert!(schemas().contains_key(operation));
    }
    assert!(hints("items.get").is_empty());
    let error = run("searches.create", json!({})).unwrap_err();
    assert_eq!(error.hints, hints("searches.create"));
    let example = example("searches.create", schema("searches.create"));
    assert_eq!(*error.example, example);
}

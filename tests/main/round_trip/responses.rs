//! Responses arrive unchanged, whatever they contain.

use std::sync::atomic::{AtomicUsize, Ordering};

use exa_mcp_model::ArgumentLocation;
use exa_mcp_server::operations::all;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::support::{InProcessClient, Recorder, Response, assert_no_problems, sample, schema};

/// The responses of each operation: every second one is altered so that it contradicts its schema.
const RESPONSES: usize = 24;

/// Values below this depth are scalars, because schemas may be recursive.
const MAX_DEPTH: usize = 7;

#[test]
fn every_response_round_trips() {
    let mut random = Rng::with_seed(16);
    let mut problems = Vec::new();
    for operation in all() {
        let output: Value = serde_json::from_str(operation.output_schema).expect("a schema");
        let input: Value = serde_json::from_str(operation.input_schema).expect("a schema");
        let bodies: Vec<Value> = (0..RESPONSES)
            .map(|number| {
                let mut body = generate(&mut random, &output, &output, 0);
                for _ in 0..number % 2 * 3 {
                    alter(&mut random, &mut body);
                }
                body
            })
            .collect();
        // Counted here, because the client takes the recorded requests after each call.
        let (sent, next) = (bodies.clone(), AtomicUsize::new(0));
        let recorder = Recorder::start(move |_, _| {
            let index = next.fetch_add(1, Ordering::Relaxed);
            Response::json(200, &sent[index % sent.len()])
        });
        let client = InProcessClient::with_recorder(recorder);
        let mut arguments = sample::required(&input);
        for argument in operation.arguments {
            if argument.location == ArgumentLocation::Path {
                arguments.insert(argument.name.to_owned(), json!("id_1"));
            } else if argument.required {
                let value = sample::full(&input, &input["properties"][argument.name], 0);
                arguments.insert(argument.name.to_owned(), value);
            }
        }
        let arguments = Value::Object(arguments);
        for body in &bodies {
            let (result, _) = client.call(operation, arguments.clone());
            let name = operation.name;
            match result {
                // Equal text, so that the order of fields and the form of numbers count.
                Ok(response) => {
                    let (sent, received) = (body.to_string(), response.value.to_string());
                    if sent != received {
                        problems.push(format!("{name}: {sent} became {received}"));
                    }
                }
                Err(error) => problems.push(format!("{name} refused {body}: {error}")),
            }
        }
    }
    assert_no_problems(&problems);
}

/// Returns a random value that fits a schema.
fn generate(random: &mut Rng, root: &Value, part: &Value, depth: usize) -> Value {
    let part = schema::resolve(root, part);
    if depth > MAX_DEPTH {
        return scalar(random);
    }
    if let Some(branches) = schema::branches(part)
        && let Some(branch) = random.choice(branches)
    {
        return generate(random, root, branch, depth + 1);
    }
    if let Some(value) = part.get("const") {
        return value.clone();
    }
    let values = part.get("enum").and_then(Value::as_array);
    if let Some(value) = values.and_then(|values| random.choice(values)) {
        return value.clone();
    }
    let kinds = match part.get("type") {
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(kind) => vec![kind.clone()],
        None => Vec::new(),
    };
    match random.choice(&kinds).and_then(Value::as_str) {
        Some("object") => {
            let mut fields = Map::new();
            let properties = part.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if random.u8(0..10) > 1 {
                    let value = generate(random, root, property, depth + 1);
                    fields.insert(name.clone(), value);
                }
            }
            if let Some(further) = part.get("additionalProperties") {
                fields.insert(
                    "further é".to_owned(),
                    generate(random, root, further, depth + 1),
                );
            }
            Value::Object(fields)
        }
        Some("array") => {
            let items = part.get("items").unwrap_or(&Value::Null);
            let count = random.usize(0..3);
            (0..count)
                .map(|_| generate(random, root, items, depth + 1))
                .collect()
        }
        Some("string") => json!("text ✓"),
        Some("integer") => json!(random.i64(..)),
        Some("number") => json!(random.f64() * 1e6),
        Some("boolean") => json!(random.bool()),
        Some("null") => Value::Null,
        _ => scalar(random),
    }
}

/// Returns any value without parts.
fn scalar(random: &mut Rng) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.005),
        json!(1e-7),
        json!(""),
        json!("no such value ✓"),
        json!([]),
        json!({}),
    ];
    random.choice(values).unwrap_or_default()
}

/// Replaces a random part of a value, or adds a field.
fn alter(random: &mut Rng, value: &mut Value) {
    let stops = random.u8(0..4) == 0;
    match value {
        Value::Object(fields) if !stops && !fields.is_empty() => {
            let index = random.usize(0..fields.len());
            if let Some(field) = fields.values_mut().nth(index) {
                alter(random, field);
            }
        }
        Value::Array(items) if !stops && !items.is_empty() => {
            let index = random.usize(0..items.len());
            alter(random, &mut items[index]);
        }
        Value::Object(fields) if random.bool() => {
            fields.insert("unknownField ü".to_owned(), json!({"a": [null, u64::MAX]}));
        }
        other => *other = scalar(random),
    }
}

//! Identifiers stay inside their path segment, whatever they contain.

use exa_mcp_exa_client::CallError;
use exa_mcp_model::{ArgumentLocation, Operation};
use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{
    InProcessClient, Program, RecordedRequest, Recorder, Response, assert_no_problems,
    percent_decode, sample,
};

/// Returns values that could escape from their path segment, or are not identifiers at all.
fn hostile() -> Vec<Value> {
    let mut values = vec![json!(7), json!(true), Value::Null, json!([]), json!({})];
    values.extend(
        [
            "",
            " ",
            "\u{a0}",
            ".",
            "..",
            "a/b",
            "../x",
            "x/..",
            "/",
            "//evil.example",
            "..%2f",
            "%2e%2e",
            "%2E",
            "a%00b",
            "%",
            "%zz",
            "a\0b",
            "a\\b",
            "..\\..\\x",
            "a?b",
            "?",
            "a#b",
            "a;b",
            "a&b=c",
            "a:b@c",
            "é/ü",
            "\u{202e}x",
            "．．",
            "\n",
            "a\tb",
            "a\r\nx-api-key: b",
            "{id}",
            "+",
            "\"'<>`^|",
        ]
        .map(|text| json!(text)),
    );
    values.push(json!("x".repeat(5_000)));
    values.push(json!("é".repeat(1_700)));
    values
}

/// A path argument and the index of its path segment.
struct Parameter {
    operation: &'static Operation,
    argument: &'static str,
    segment: usize,
}

fn parameters() -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for operation in all() {
        for argument in operation
            .arguments
            .iter()
            .filter(|argument| argument.location == ArgumentLocation::Path)
        {
            let placeholder = format!("{{{}}}", argument.wire);
            let segment = operation
                .path
                .split('/')
                .position(|segment| segment == placeholder);
            parameters.push(Parameter {
                operation,
                argument: argument.name,
                segment: segment.expect("the placeholder of the argument"),
            });
        }
    }
    parameters
}

impl Parameter {
    /// Returns the minimal arguments of the operation with this value for the parameter.
    fn arguments(&self, value: &Value) -> Value {
        let schema = serde_json::from_str(self.operation.input_schema).expect("a schema");
        let mut arguments = sample::required(&schema);
        for parameter in self
            .operation
            .arguments
            .iter()
            .filter(|other| other.location == ArgumentLocation::Path)
        {
            arguments.insert(parameter.name.to_owned(), json!("other"));
        }
        arguments.insert(self.argument.to_owned(), value.clone());
        Value::Object(arguments)
    }

    /// Returns what is wrong with the requests of a call with this value.
    fn problem(
        &self,
        value: &Value,
        refused: bool,
        requests: &[RecordedRequest],
    ) -> Option<String> {
        let request = match (refused, requests) {
            (true, []) => return None,
            (false, [request]) => request,
            _ => return Some(format!("{} requests, refused: {refused}", requests.len())),
        };
        let given = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Some(format!("{} was sent", request.target)),
        };
        let template: Vec<&str> = self.operation.path.split('/').collect();
        let sent: Vec<&str> = request.target.split('/').collect();
        let in_place = sent.len() == template.len()
            && template
                .iter()
                .zip(&sent)
                .enumerate()
                .all(|(index, (wanted, sent))| {
                    if index == self.segment {
                        percent_decode(sent) == given && !sent.contains(['?', '#', '\\'])
                    } else {
                        sent == wanted || (wanted.starts_with('{') && *sent == "other")
                    }
                });
        (!in_place).then(|| format!("{} was sent", request.target))
    }
}

#[test]
fn every_path_placeholder_is_a_parameter() {
    let placeholders: usize = all()
        .iter()
        .map(|operation| operation.path.matches('{').count())
        .sum();
    assert_eq!(parameters().len(), placeholders);
}

#[test]
fn hostile_identifiers_are_rejected_or_escaped() {
    let client = InProcessClient::new();
    let mut problems = Vec::new();
    for parameter in parameters() {
        for value in hostile() {
            let (result, requests) = client.call(parameter.operation, parameter.arguments(&value));
            // Only invalid arguments prevent the call.
            let refused = matches!(result, Err(CallError::Arguments(_)));
            if let Some(problem) = parameter.problem(&value, refused, &requests) {
                let (name, argument) = (parameter.operation.name, parameter.argument);
                problems.push(format!("{name}, {argument} = {value}: {problem}"));
            }
        }
    }
    assert_no_problems(&problems);
}

/// A validation that rejects everything would pass the test above.
#[test]
fn valid_identifiers_are_sent() {
    let client = InProcessClient::new();
    for parameter in parameters() {
        for value in [
            "webset_01k3abc",
            "my-own id/7",
            "größe",
            "a.b",
            "...",
            "%2e%2e",
            "x".repeat(300).as_str(),
        ] {
            let value = json!(value);
            let (result, requests) = client.call(parameter.operation, parameter.arguments(&value));
            let problem = parameter.problem(&value, false, &requests);
            let name = parameter.operation.name;
            assert_eq!(
                problem, None,
                "{name}, {} = {value}: {result:?}",
                parameter.argument
            );
        }
    }
}

#[test]
fn invalid_identifier_sends_nothing() {
    let server = Recorder::always(Response::json(200, &json!({})));
    for value in [
        json!(""),
        json!(".."),
        json!("a\\b"),
        json!("a\0b"),
        json!("\n"),
        json!([]),
        Value::Null,
    ] {
        let arguments = json!({"websetId": "w", "itemId": value});
        let output = Program::call(&server, "items.get", &arguments).run();
        output.assert_failed(2, &["itemId"]);
        assert!(server.take().is_empty(), "{value} was sent");
    }
}

#[test]
fn slashes_and_dots_are_escaped() {
    let server = Recorder::always(Response::json(200, &json!({})));
    for (value, path) in [
        ("../x", "/websets/v0/websets/..%2Fx"),
        ("%2e%2e", "/websets/v0/websets/%252e%252e"),
        ("é/ü", "/websets/v0/websets/%C3%A9%2F%C3%BC"),
    ] {
        let output = Program::call(&server, "websets.get", &json!({"websetId": value})).run();
        assert_eq!(output.code, Some(0), "{output:#?}");
        assert_eq!(server.only_request().target, path);
    }
}

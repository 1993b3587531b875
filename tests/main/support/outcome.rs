//! Results of tool calls, with checks that text and structured content agree.

use serde_json::{Map, Value};

/// The result of `tools/call`.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) structured: Option<Value>,
    /// Links to resources with the full content.
    pub(crate) links: Vec<Value>,
}

/// The result of a failed call.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `structuredContent.error`.
    pub(crate) error: Value,
    pub(crate) text: String,
}

/// Fields of an error that need not appear in the text.
const STRUCTURED_ONLY: [&str; 3] = ["name", "operation", "didYouMean"];

impl Outcome {
    /// Parses the response to `tools/call`, which must have a result.
    #[track_caller]
    pub(crate) fn from_response(response: &Value) -> Self {
        let result = response.get("result");
        let result = result.unwrap_or_else(|| panic!("no result: {response}"));
        let content = result["content"].as_array().expect("a list of content");
        assert_eq!(content[0]["type"], "text", "{result}");
        // Only links may follow the text.
        let links: Vec<Value> = content.iter().skip(1).cloned().collect();
        for link in &links {
            assert_eq!(link["type"], "resource_link", "{result}");
        }
        Self {
            is_error: result["isError"].as_bool().expect("isError"),
            text: content[0]["text"].as_str().expect("a string").to_owned(),
            structured: result.get("structuredContent").cloned(),
            links,
        }
    }

    /// Returns the text and the structured content of a successful call.
    #[track_caller]
    pub(crate) fn into_parts(self) -> (String, Value) {
        assert!(!self.is_error, "{}", self.text);
        (self.text, self.structured.expect("structured content"))
    }

    /// Returns the structured content of a successful call with JSON output.
    #[track_caller]
    pub(crate) fn envelope(self) -> Value {
        assert!(!self.is_error, "{}", self.text);
        let structured = self.structured.expect("structured content");
        assert!(structured.is_object(), "{structured}");
        let text: Value = serde_json::from_str(&self.text).expect("JSON text");
        assert_eq!(text, structured);
        structured
    }

    /// Returns Exa's response from the envelope of a successful call.
    #[track_caller]
    pub(crate) fn success(self) -> Value {
        match self.envelope() {
            Value::Object(envelope) if envelope.contains_key("metadata") => {
                unwrap_envelope(envelope)
            }
            other => other,
        }
    }

    /// Returns the error of a failed call.
    #[track_caller]
    pub(crate) fn failure(self) -> Failure {
        assert!(self.is_error, "expected a failure: {}", self.text);
        let structured = self.structured.expect("structured content");
        let fields: Vec<&String> = structured.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["error"], "{structured}");
        // A call that asks for JSON gets JSON, whatever its outcome.
        let is_json = serde_json::from_str(&self.text).is_ok_and(|text: Value| text == structured);
        let text = if is_json {
            readable(&structured["error"])
        } else {
            self.text
        };
        let failure = Failure {
            error: structured["error"].clone(),
            text,
        };
        failure.assert_text_is_complete();
        failure
    }
}

impl Failure {
    /// Asserts that the text contains everything in the structured content.
    #[track_caller]
    fn assert_text_is_complete(&self) {
        let Self { error, text } = self;
        assert!(error["code"].is_i64(), "{error}");
        for (name, part) in error.as_object().expect("an object") {
            if STRUCTURED_ONLY.contains(&name.as_str()) {
                continue;
            }
            let expected: Vec<String> = match part {
                Value::String(text) => vec![text.clone()],
                Value::Array(list) => list.iter().flat_map(leaf_texts).collect(),
                // Objects appear in the text as JSON.
                Value::Object(_) => vec![part.to_string()],
                Value::Number(number) if name == "retryAfter" => vec![number.to_string()],
                _ => Vec::new(),
            };
            for value in expected {
                assert!(text.contains(&value), "`{name}`: no {value:?} in {text:?}");
            }
        }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i64, name: &str) {
        assert_eq!(self.error["code"], code, "{self:#?}");
        assert_eq!(self.error["name"], name, "{self:#?}");
    }

    /// Asserts that the text contains all these parts; [`Outcome::failure`] has checked the structured content.
    #[track_caller]
    pub(crate) fn assert_contains(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "no {part:?} in {}", self.text);
        }
    }

    /// Returns the names of the invalid fields, sorted.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let problems = self.error["problems"].as_array().expect("problems");
        let mut fields: Vec<&str> = problems
            .iter()
            .map(|problem| problem["field"].as_str().expect("a field"))
            .collect();
        fields.sort_unstable();
        fields
    }
}

/// Rebuilds Exa's response from an envelope, and adds the request id, corrections and warnings.
fn unwrap_envelope(mut envelope: Map<String, Value>) -> Value {
    let metadata = envelope.remove("metadata").expect("metadata");
    let results = ["results", "data", "citations", "items"]
        .into_iter()
        .find_map(|name| envelope.remove(name))
        .expect("results");
    let operation_fields = [
        "operationId",
        "status",
        "message",
        "checkWith",
        "cancelWith",
        "isComplete",
        "progress",
        "itemsFound",
    ];
    let is_operation = envelope.contains_key("operationId");
    let operation_fields: Vec<(String, Value)> = operation_fields
        .iter()
        .filter(|_| is_operation)
        .filter_map(|name| envelope.remove_entry(*name))
        .collect();
    let operation = metadata["operation"].as_str().expect("an operation");
    let response = match list_name(operation) {
        Some(name) => {
            envelope.insert(name.to_owned(), results);
            Value::Object(envelope)
        }
        None => {
            let mut one = match results.as_array().and_then(|list| list.first()) {
                Some(Value::Object(one)) => one.clone(),
                _ => Map::from_iter([("results".to_owned(), results)]),
            };
            one.extend(envelope);
            Value::Object(one)
        }
    };
    let mut response = if operation_fields.is_empty() {
        response
    } else {
        let result = [("result".to_owned(), response)];
        Value::Object(operation_fields.into_iter().chain(result).collect())
    };
    for name in ["requestId", "warnings", "corrections"] {
        let part = &metadata[name];
        if !part.is_null() && part.as_array().is_none_or(|list| !list.is_empty()) {
            response[name] = part.clone();
        }
    }
    response
}

/// Returns the name of the list in an operation's response.
fn list_name(operation: &str) -> Option<&'static str> {
    match operation {
        "search" | "find_similar" | "get_contents" => Some("results"),
        "answer" => Some("citations"),
        "websets.preview" => Some("items"),
        name if name.ends_with(".list") || name.ends_with(".list_attempts") => Some("data"),
        _ => None,
    }
}

/// Returns the fields of an error in the lines that its text has.
fn readable(error: &Value) -> String {
    let texts = |list: &Value| {
        let entries = list.as_array().into_iter().flatten();
        entries.flat_map(leaf_texts).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for (name, part) in error.as_object().into_iter().flatten() {
        match (name.as_str(), part) {
            ("problems", Value::Array(list)) => lines.extend(list.iter().map(|problem| {
                let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
                format!("- {}: {}", text("field"), text("problem"))
            })),
            ("missing", Value::Array(_)) => {
                lines.push(format!("input_required: {}", texts(part).join(", ")));
            }
            ("hints", Value::Array(_)) => {
                lines.push("Common issues:".to_owned());
                lines.extend(texts(part).iter().map(|hint| format!("- {hint}")));
            }
            ("example", _) => lines.push(format!("A minimal valid call: {part}")),
            (_, Value::String(text)) => lines.push(text.clone()),
            (_, Value::Array(_)) => lines.extend(texts(part)),
            _ => lines.push(format!("{name}: {part}")),
        }
    }
    lines.join("\n")
}

fn leaf_texts(part: &Value) -> Vec<String> {
    match part {
        Value::String(text) => vec![text.clone()],
        Value::Object(fields) => fields.values().flat_map(leaf_texts).collect(),
        other => vec![other.to_string()],
    }
}

//! The result of a tool call, checked for saying the same to clients that read text and to clients
//! that read data.

use serde_json::{Map, Value};

/// A result as it came.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) structured: Option<Value>,
    /// Resources that hold more.
    pub(crate) links: Vec<Value>,
}

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// `structuredContent.error`.
    pub(crate) error: Value,
    pub(crate) text: String,
}

/// Parts of an error that are for programs and have no place in a sentence.
const FOR_PROGRAMS: [&str; 3] = ["name", "operation", "didYouMean"];

impl Outcome {
    /// Reads the answer to `tools/call`, which must be a result.
    #[track_caller]
    pub(crate) fn of(answer: &Value) -> Self {
        let result = answer.get("result");
        let result = result.unwrap_or_else(|| panic!("no result: {answer}"));
        let content = result["content"].as_array().expect("a list of content");
        assert_eq!(content[0]["type"], "text", "{result}");
        // Whatever follows the text points to more.
        let links: Vec<Value> = content.iter().skip(1).cloned().collect();
        for link in &links {
            assert_eq!(link["type"], "resource_link", "{result}");
        }
        Self {
            is_error: result["isError"].as_bool().expect("isError"),
            text: content[0]["text"].as_str().expect("a text").to_owned(),
            structured: result.get("structuredContent").cloned(),
            links,
        }
    }

    /// The text and the data of a call that succeeded.
    #[track_caller]
    pub(crate) fn shown(self) -> (String, Value) {
        assert!(!self.is_error, "{}", self.text);
        (self.text, self.structured.expect("structured content"))
    }

    /// The data of a call that succeeded and was asked for as JSON.
    #[track_caller]
    pub(crate) fn envelope(self) -> Value {
        assert!(!self.is_error, "{}", self.text);
        let structured = self.structured.expect("structured content");
        assert!(structured.is_object(), "{structured}");
        let text: Value = serde_json::from_str(&self.text).expect("the same as JSON text");
        assert_eq!(text, structured);
        structured
    }

    /// The API's own answer out of the envelope of a call that succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> Value {
        match self.envelope() {
            Value::Object(envelope) if envelope.contains_key("metadata") => unwrapped(envelope),
            other => other,
        }
    }

    /// The error of a call that failed.
    #[track_caller]
    pub(crate) fn failure(self) -> Failure {
        assert!(self.is_error, "this should have failed: {}", self.text);
        let structured = self.structured.expect("structured content");
        let fields: Vec<&String> = structured.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["error"], "{structured}");
        let failure = Failure {
            error: structured["error"].clone(),
            text: self.text,
        };
        failure.check_words();
        failure
    }
}

impl Failure {
    /// Everything that the data says stands in the text as well.
    #[track_caller]
    fn check_words(&self) {
        let Self { error, text } = self;
        assert!(error["code"].is_i64(), "{error}");
        for (name, part) in error.as_object().expect("an object") {
            if FOR_PROGRAMS.contains(&name.as_str()) {
                continue;
            }
            let words: Vec<String> = match part {
                Value::String(word) => vec![word.clone()],
                Value::Array(list) => list.iter().flat_map(words_of).collect(),
                // Whole values stand in the text as JSON.
                Value::Object(_) => vec![part.to_string()],
                Value::Number(number) if name == "retryAfter" => vec![number.to_string()],
                _ => Vec::new(),
            };
            for word in words {
                assert!(text.contains(&word), "`{name}`: no {word:?} in {text:?}");
            }
        }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i64, name: &str) {
        assert_eq!(self.error["code"], code, "{self:#?}");
        assert_eq!(self.error["name"], name, "{self:#?}");
    }

    /// Checks that the text has all these parts; the data says the same, as was checked before.
    #[track_caller]
    pub(crate) fn assert_says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "no {part:?} in {}", self.text);
        }
    }

    /// The fields that are said to be wrong, sorted.
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

/// Puts an answer together again, as the API gave it; corrections and warnings stand beside it.
fn unwrapped(mut envelope: Map<String, Value>) -> Value {
    let metadata = envelope.remove("metadata").expect("metadata");
    let results = envelope.remove("results").expect("results");
    let told = [
        "operationId",
        "status",
        "message",
        "checkWith",
        "cancelWith",
        "isComplete",
        "progress",
    ];
    let is_told = envelope.contains_key("operationId");
    let told = told.iter().filter(|_| is_told);
    let told: Vec<(String, Value)> = told
        .filter_map(|name| envelope.remove_entry(*name))
        .collect();
    let operation = metadata["operation"].as_str().expect("an operation");
    let answer = match list_name(operation) {
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
    let mut answer = match told.is_empty() {
        true => answer,
        false => Value::Object(
            told.into_iter()
                .chain([("result".to_owned(), answer)])
                .collect(),
        ),
    };
    for name in ["requestId", "warnings", "corrections"] {
        let part = &metadata[name];
        if !part.is_null() && part.as_array().is_none_or(|list| !list.is_empty()) {
            answer[name] = part.clone();
        }
    }
    answer
}

/// The name of the list that an operation answers with.
fn list_name(operation: &str) -> Option<&'static str> {
    match operation {
        "search" | "find_similar" | "get_contents" => Some("results"),
        "answer" => Some("citations"),
        "websets.preview" => Some("items"),
        name if name.ends_with(".list") || name.ends_with(".list_attempts") => Some("data"),
        _ => None,
    }
}

fn words_of(part: &Value) -> Vec<String> {
    match part {
        Value::String(word) => vec![word.clone()],
        Value::Object(fields) => fields.values().flat_map(words_of).collect(),
        other => vec![other.to_string()],
    }
}

//! Questions to the client that the suite wants to be asked, in the ways of both eras.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::RoleServer;
#[expect(deprecated)]
use rmcp::model::CreateMessageRequestParams;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ElicitRequestParams, ErrorData, InputRequiredResult,
    RequestStateCodec,
};
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Seals what a client carries from one round to the next.
static CODEC: LazyLock<Option<RequestStateCodec>> =
    LazyLock::new(|| RequestStateCodec::try_new(b"the suite knows no secret of this").ok());

/// What a step of a tool comes to.
pub(super) enum Step {
    /// It is done, with this text.
    Done(String),
    /// The client is asked first.
    Ask(Box<InputRequiredResult>),
}

/// Reads what was written as JSON into a type of the protocol.
pub(super) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Asks the model of a client with a session.
#[expect(deprecated)]
pub(super) async fn sample(
    prompt: &str,
    context: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params: CreateMessageRequestParams =
        typed(json!({"messages": [message], "maxTokens": 100}))?;
    let answer = context.peer.create_message(params).await.map_err(failed)?;
    let answer = serde_json::to_value(answer).map_err(failed)?;
    Ok(format!("LLM response: {}", text_of(&answer)))
}

fn text_of(answer: &Value) -> String {
    let text = answer
        .pointer("/content/text")
        .or_else(|| answer.pointer("/content/0/text"));
    text.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Asks the user of a client with a session.
pub(super) async fn elicit(
    message: &str,
    schema: Value,
    context: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let params: ElicitRequestParams = typed(params)?;
    let answer = context
        .peer
        .create_elicitation(params)
        .await
        .map_err(failed)?;
    let answer = serde_json::to_value(answer).map_err(failed)?;
    let action = answer
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = answer.get("content").cloned().unwrap_or_default();
    Ok(format!("action={action}, content={content}"))
}

/// A form with one field.
pub(super) fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn sampling(prompt: &str, most: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": most});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Asks these questions; `state` comes back with the answers.
fn step(questions: Value, state: Option<&str>) -> Result<Step, ErrorData> {
    ask(questions, state).map(|asked| Step::Ask(Box::new(asked)))
}

/// What asks these questions.
pub(super) fn ask(questions: Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": questions});
    if let (Some(state), Some(codec), Value::Object(result)) = (state, &*CODEC, &mut result) {
        let sealed = codec.seal(state.as_bytes());
        result.insert("requestState".to_owned(), json!(sealed));
    }
    typed(result)
}

/// What an earlier round left with the client.
fn state(request: &CallToolRequestParams) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = &request.request_state else {
        return Ok(None);
    };
    let codec = CODEC.as_ref().ok_or_else(|| failed("there is no codec"))?;
    let opened = codec.open(sealed);
    let opened =
        opened.map_err(|_| ErrorData::invalid_params("The request state was changed", None))?;
    Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
}

/// The answer to a question, if it is one: accepted content, a message, or roots.
pub(super) fn answer<'a>(answers: &'a BTreeMap<String, Value>, name: &str) -> Option<&'a Value> {
    let answer = answers.get(name)?;
    let fits = ["content", "roots", "action"];
    fits.iter()
        .any(|field| answer.get(field).is_some())
        .then_some(answer)
}

/// One round of a tool that asks without a session.
pub(super) fn round(
    request: &CallToolRequestParams,
    client: &ClientCapabilities,
) -> Result<Step, ErrorData> {
    let empty = BTreeMap::new();
    let answers = request.input_responses.as_ref().unwrap_or(&empty);
    let name = request.name.strip_prefix("test_input_required_result_");
    match name.unwrap_or_default() {
        "sampling" => match answer(answers, "capital_question") {
            Some(answer) => Ok(Step::Done(text_of(answer))),
            None => step(
                json!({"capital_question": sampling("What is the capital of France?", 100)}),
                None,
            ),
        },
        "list_roots" => match answer(answers, "client_roots") {
            Some(roots) => Ok(Step::Done(format!("The roots are {roots}"))),
            None => step(json!({"client_roots": roots()}), None),
        },
        "request_state" | "tampered_state" => match (state(request)?, answer(answers, "confirm")) {
            (Some(_), Some(_)) => Ok(Step::Done("state-ok".to_owned())),
            _ => step(
                json!({"confirm": form("Please confirm", "ok", "boolean")}),
                Some("asked"),
            ),
        },
        "multiple_inputs" => several(request, answers),
        "multi_round" => rounds(request, answers),
        "capabilities" => step(allowed(client), None),
        _ => match answer(answers, "user_name") {
            Some(answer) => {
                let name = answer.pointer("/content/name").and_then(Value::as_str);
                Ok(Step::Done(format!(
                    "Hello, {}!",
                    name.unwrap_or("stranger")
                )))
            }
            None => step(
                json!({"user_name": form("What is your name?", "name", "string")}),
                None,
            ),
        },
    }
}

fn several(
    request: &CallToolRequestParams,
    answers: &BTreeMap<String, Value>,
) -> Result<Step, ErrorData> {
    let names = ["user_name", "greeting", "client_roots"];
    if state(request)?.is_some() && names.iter().all(|name| answer(answers, name).is_some()) {
        return Ok(Step::Done("Everything was answered.".to_owned()));
    }
    let questions = json!({
        "user_name": form("What is your name?", "name", "string"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    });
    step(questions, Some("asked"))
}

fn rounds(
    request: &CallToolRequestParams,
    answers: &BTreeMap<String, Value>,
) -> Result<Step, ErrorData> {
    let state = state(request)?;
    match (
        state.as_deref(),
        answer(answers, "step1"),
        answer(answers, "step2"),
    ) {
        (Some("second"), _, Some(_)) => Ok(Step::Done("Both steps are done.".to_owned())),
        (Some("first"), Some(_), _) => {
            let question = form("Step 2: What is your favorite color?", "color", "string");
            step(json!({"step2": question}), Some("second"))
        }
        _ => {
            let question = form("Step 1: What is your name?", "name", "string");
            step(json!({"step1": question}), Some("first"))
        }
    }
}

/// Only what the client said it can be asked.
fn allowed(client: &ClientCapabilities) -> Value {
    let mut questions = serde_json::Map::new();
    if client.sampling.is_some() {
        questions.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
    }
    if client.elicitation.is_some() {
        let question = form("What is your name?", "name", "string");
        questions.insert("user_name".to_owned(), question);
    }
    if client.roots.is_some() {
        questions.insert("client_roots".to_owned(), roots());
    }
    questions.into()
}

/// A form with a default for every kind of value.
pub(super) fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }, "required": []})
}

/// A form with every kind of choice.
pub(super) fn choices() -> Value {
    let titled = |first: &str| {
        json!([
            {"const": "value1", "title": first},
            {"const": "value2", "title": "Second Option"},
            {"const": "value3", "title": "Third Option"},
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("First Option")},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("First Choice")}},
    }, "required": []})
}

/// A form for a name and an address.
pub(super) fn contact() -> Value {
    json!({"type": "object", "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }, "required": ["username", "email"]})
}

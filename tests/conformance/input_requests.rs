//! Sampling, elicitation and roots requests, both as requests of a session and in multiple round trips.

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

/// Seals the request state that a client returns in the next round.
static CODEC: LazyLock<Option<RequestStateCodec>> = LazyLock::new(|| {
    RequestStateCodec::try_new(b"not a secret, only for the conformance suite").ok()
});

/// The result of one round of a tool.
pub(super) enum Round {
    /// The tool is done, with this text.
    Done(String),
    /// The client has to answer input requests first.
    InputRequired(Box<InputRequiredResult>),
}

/// Converts JSON into a type of the protocol.
pub(super) fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn internal_error(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Sends a sampling request in a session.
#[expect(deprecated)]
pub(super) async fn sample(
    prompt: &str,
    context: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params: CreateMessageRequestParams =
        from_json(json!({"messages": [message], "maxTokens": 100}))?;
    let response = context
        .peer
        .create_message(params)
        .await
        .map_err(internal_error)?;
    let response = serde_json::to_value(response).map_err(internal_error)?;
    Ok(format!("LLM response: {}", text_of(&response)))
}

fn text_of(response: &Value) -> String {
    let text = response
        .pointer("/content/text")
        .or_else(|| response.pointer("/content/0/text"));
    text.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sends an elicitation request in a session.
pub(super) async fn elicit(
    message: &str,
    schema: Value,
    context: &RequestContext<RoleServer>,
) -> Result<String, ErrorData> {
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let params: ElicitRequestParams = from_json(params)?;
    let response = context
        .peer
        .create_elicitation(params)
        .await
        .map_err(internal_error)?;
    let response = serde_json::to_value(response).map_err(internal_error)?;
    let action = response
        .get("action")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = response.get("content").cloned().unwrap_or_default();
    Ok(format!("action={action}, content={content}"))
}

/// Returns an elicitation request with one field.
pub(super) fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": max_tokens});
    json!({"method": "sampling/createMessage", "params": params})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// Ends a round with these input requests.
fn input_required(requests: Value, state: Option<&str>) -> Result<Round, ErrorData> {
    input_required_result(requests, state).map(|result| Round::InputRequired(Box::new(result)))
}

/// Returns a result with these input requests; the client sends `state` back with its responses.
pub(super) fn input_required_result(
    requests: Value,
    state: Option<&str>,
) -> Result<InputRequiredResult, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let (Some(state), Some(codec), Value::Object(result)) = (state, &*CODEC, &mut result) {
        let sealed = codec.seal(state.as_bytes());
        result.insert("requestState".to_owned(), json!(sealed));
    }
    from_json(result)
}

/// Returns the state of an earlier round, if there was one.
fn request_state(request: &CallToolRequestParams) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = &request.request_state else {
        return Ok(None);
    };
    let codec = CODEC
        .as_ref()
        .ok_or_else(|| internal_error("there is no codec"))?;
    let opened = codec.open(sealed);
    let opened =
        opened.map_err(|_| ErrorData::invalid_params("the request state was changed", None))?;
    Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
}

/// Returns the response to an input request, if it is one: accepted content, a message, or roots.
pub(super) fn response<'a>(
    responses: &'a BTreeMap<String, Value>,
    name: &str,
) -> Option<&'a Value> {
    let response = responses.get(name)?;
    let fields = ["content", "roots", "action"];
    fields
        .iter()
        .any(|field| response.get(field).is_some())
        .then_some(response)
}

/// Runs one round of a tool that asks its client without a session.
pub(super) fn run_round(
    request: &CallToolRequestParams,
    client: &ClientCapabilities,
) -> Result<Round, ErrorData> {
    let empty = BTreeMap::new();
    let responses = request.input_responses.as_ref().unwrap_or(&empty);
    let name = request.name.strip_prefix("test_input_required_result_");
    match name.unwrap_or_default() {
        "sampling" => match response(responses, "capital_question") {
            Some(response) => Ok(Round::Done(text_of(response))),
            None => input_required(
                json!({"capital_question": sampling("What is the capital of France?", 100)}),
                None,
            ),
        },
        "list_roots" => match response(responses, "client_roots") {
            Some(roots) => Ok(Round::Done(format!("The roots are {roots}"))),
            None => input_required(json!({"client_roots": roots()}), None),
        },
        "request_state" | "tampered_state" => {
            match (request_state(request)?, response(responses, "confirm")) {
                (Some(_), Some(_)) => Ok(Round::Done("state-ok".to_owned())),
                _ => input_required(
                    json!({"confirm": form("Please confirm", "ok", "boolean")}),
                    Some("asked"),
                ),
            }
        }
        "multiple_inputs" => multiple_inputs(request, responses),
        "multi_round" => multi_round(request, responses),
        "capabilities" => input_required(supported(client), None),
        _ => match response(responses, "user_name") {
            Some(response) => {
                let name = response.pointer("/content/name").and_then(Value::as_str);
                Ok(Round::Done(format!(
                    "Hello, {}!",
                    name.unwrap_or("stranger")
                )))
            }
            None => input_required(
                json!({"user_name": form("What is your name?", "name", "string")}),
                None,
            ),
        },
    }
}

fn multiple_inputs(
    request: &CallToolRequestParams,
    responses: &BTreeMap<String, Value>,
) -> Result<Round, ErrorData> {
    let names = ["user_name", "greeting", "client_roots"];
    if request_state(request)?.is_some()
        && names.iter().all(|name| response(responses, name).is_some())
    {
        return Ok(Round::Done("All input requests were answered.".to_owned()));
    }
    let requests = json!({
        "user_name": form("What is your name?", "name", "string"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    });
    input_required(requests, Some("asked"))
}

fn multi_round(
    request: &CallToolRequestParams,
    responses: &BTreeMap<String, Value>,
) -> Result<Round, ErrorData> {
    let state = request_state(request)?;
    match (
        state.as_deref(),
        response(responses, "step1"),
        response(responses, "step2"),
    ) {
        (Some("second"), _, Some(_)) => Ok(Round::Done("Both steps are done.".to_owned())),
        (Some("first"), Some(_), _) => {
            let request = form("Step 2: What is your favorite color?", "color", "string");
            input_required(json!({"step2": request}), Some("second"))
        }
        _ => {
            let request = form("Step 1: What is your name?", "name", "string");
            input_required(json!({"step1": request}), Some("first"))
        }
    }
}

/// Returns only the input requests that the client declares to support.
fn supported(client: &ClientCapabilities) -> Value {
    let mut requests = serde_json::Map::new();
    if client.sampling.is_some() {
        requests.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
    }
    if client.elicitation.is_some() {
        let request = form("What is your name?", "name", "string");
        requests.insert("user_name".to_owned(), request);
    }
    if client.roots.is_some() {
        requests.insert("client_roots".to_owned(), roots());
    }
    requests.into()
}

/// Returns a schema with a default for every kind of value.
pub(super) fn defaults_schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }, "required": []})
}

/// Returns a schema with every kind of enum.
pub(super) fn enums_schema() -> Value {
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

/// Returns a schema for a name and an email address.
pub(super) fn contact_schema() -> Value {
    json!({"type": "object", "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }, "required": ["username", "email"]})
}

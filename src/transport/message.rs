//! Decodes JSON-RPC messages and reports precisely why a message is invalid.
//!
//! rmcp's decoder tries all message types in turn. It treats a known method with invalid parameters as an
//! unknown method, and rejects unusual ids without naming them. This module therefore decodes the envelope
//! itself.

use exa_mcp_text::surrogates;
use rmcp::model::{
    CallToolRequest, CancelTaskRequest, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    CompleteRequest, CustomRequest, DiscoverRequest, ErrorCode, ErrorData, GetPromptRequest,
    GetTaskRequest, InitializeRequest, JsonObject, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PingRequest,
    ReadResourceRequest, SubscriptionsListenRequest, UpdateTaskRequest,
};
// Removed in 2026-07-28, but used by earlier clients.
#[expect(deprecated)]
use rmcp::model::{SetLevelRequest, SubscribeRequest, UnsubscribeRequest};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::compat;

/// The byte order mark that some Windows programs write before text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The maximum length of a parser error, which may quote whole values.
const MAX_DETAIL_CHARS: usize = 300;

/// The methods that take a cursor.
const PAGINATED_METHODS: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

/// The methods that 2026-07-28 removed.
const REMOVED_METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// From 2^53 on, integers are not exact as floating-point numbers.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// A decoded JSON-RPC message.
#[derive(Debug)]
pub(super) enum IncomingMessage {
    /// A request, with the id of its response.
    Request {
        id: Value,
        request: Box<ClientRequest>,
    },
    /// The client cancels an earlier request.
    Cancelled { id: Value, reason: Option<String> },
    /// Another notification.
    Notification(Box<ClientNotification>),
    /// The client's response to a request of the server.
    Response(Box<ClientJsonRpcMessage>),
    /// An invalid message, with the error to return.
    Invalid { id: Value, error: ErrorData },
    /// A message that needs no response and cannot be used.
    Ignored,
}

/// Parses the JSON of one line. Returns `None` for a blank line.
pub(super) fn parse_json(line: &[u8]) -> Option<Result<Value, ErrorData>> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    if line.iter().all(|byte| b" \t\r".contains(byte)) {
        return None;
    }
    let parsed = serde_json::from_slice(line).or_else(|error| {
        let repaired = surrogates::repair(line).ok_or(error)?;
        serde_json::from_slice(&repaired)
    });
    Some(parsed.map_err(|error| {
        ErrorData::parse_error(format!("Parse error: {}", summarize(&error)), None)
    }))
}

/// Decodes one message that is not a batch.
pub(super) fn decode(value: Value) -> IncomingMessage {
    let Value::Object(mut message) = value else {
        return invalid(Value::Null, "a message is a JSON object");
    };
    let is_response = message.contains_key("result") || message.contains_key("error");
    if is_response && !message.contains_key("method") {
        return response(message);
    }
    let id = match message.remove("id").map(request_id).transpose() {
        Ok(id) => id,
        Err(echo) => return invalid(echo, "an id is a string or an integer of at most 64 bits"),
    };
    let echo = id.clone().unwrap_or(Value::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(echo, "\"jsonrpc\" must be \"2.0\"");
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return invalid(echo, "\"method\" must be a string");
    };
    if is_response {
        return invalid(echo, "a message has either a method or a result");
    }
    let params = message.remove("params").filter(|params| !params.is_null());
    match id {
        None => notification(method, params),
        Some(id) => match request(method, params) {
            Ok(request) => IncomingMessage::Request {
                id,
                request: Box::new(request),
            },
            Err(error) => IncomingMessage::Invalid { id, error },
        },
    }
}

fn invalid(id: Value, reason: &str) -> IncomingMessage {
    let error = ErrorData::invalid_request(format!("Invalid request: {reason}"), None);
    IncomingMessage::Invalid { id, error }
}

/// Validates an id. The error carries the id for the error response: a fraction as it is, anything else as
/// null.
fn request_id(id: Value) -> Result<Value, Value> {
    let Value::Number(number) = &id else {
        return if id.is_string() {
            Ok(id)
        } else {
            Err(Value::Null)
        };
    };
    if number.is_i64() || number.is_u64() {
        return Ok(id);
    }
    match number.as_f64() {
        Some(number) if number.fract() != 0.0 => Err(id),
        Some(number) if number.abs() < MAX_EXACT_FLOAT => Ok(id),
        _ => Err(Value::Null),
    }
}

/// Decodes a request. Methods not listed here become custom requests, which the handler rejects as unknown
/// regardless of their parameters.
#[expect(deprecated)]
fn request(method: String, params: Option<Value>) -> Result<ClientRequest, ErrorData> {
    // Checked before the parameters: the method is unknown even if they are invalid.
    if REMOVED_METHODS.contains(&method.as_str()) && compat::is_stateless(params.as_ref()) {
        let text = format!("Method not found: protocol 2026-07-28 has no {method}");
        return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None));
    }
    if PAGINATED_METHODS.contains(&method.as_str()) {
        check_cursor(&method, params.as_ref())?;
    }
    if compat::is_legacy_task(&method, params.as_ref()) {
        return typed::<CustomRequest>(&method, params);
    }
    match method.as_str() {
        "initialize" => typed::<InitializeRequest>(&method, params),
        "server/discover" => typed::<DiscoverRequest>(&method, params),
        "ping" => typed::<PingRequest>(&method, params),
        "logging/setLevel" => typed::<SetLevelRequest>(&method, params),
        "tools/list" => typed::<ListToolsRequest>(&method, params),
        "tools/call" => typed::<CallToolRequest>(&method, params),
        "resources/list" => typed::<ListResourcesRequest>(&method, params),
        "resources/templates/list" => typed::<ListResourceTemplatesRequest>(&method, params),
        "resources/read" => typed::<ReadResourceRequest>(&method, params),
        "resources/subscribe" => typed::<SubscribeRequest>(&method, params),
        "resources/unsubscribe" => typed::<UnsubscribeRequest>(&method, params),
        "subscriptions/listen" => typed::<SubscriptionsListenRequest>(&method, params),
        "prompts/list" => typed::<ListPromptsRequest>(&method, params),
        "prompts/get" => typed::<GetPromptRequest>(&method, params),
        "completion/complete" => typed::<CompleteRequest>(&method, params),
        "tasks/get" => typed::<GetTaskRequest>(&method, params),
        "tasks/update" => typed::<UpdateTaskRequest>(&method, params),
        "tasks/cancel" => typed::<CancelTaskRequest>(&method, params),
        _ => Ok(CustomRequest::new(method, params).into()),
    }
}

/// rmcp ignores optional parameters of the wrong type, so a cursor that is not a string would restart the
/// list forever.
fn check_cursor(method: &str, params: Option<&Value>) -> Result<(), ErrorData> {
    match params.and_then(|params| params.get("cursor")) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => Err(invalid_params(method, "cursor must be a string")),
    }
}

fn typed<T>(method: &str, params: Option<Value>) -> Result<ClientRequest, ErrorData>
where
    T: DeserializeOwned + Into<ClientRequest>,
{
    let request: Result<T, _> = serde_json::from_value(envelope(method, params));
    request
        .map(Into::into)
        .map_err(|error| invalid_params(method, &summarize(&error)))
}

fn invalid_params(method: &str, reason: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Invalid params for {method}: {reason}"), None)
}

/// Builds the method and parameters as rmcp reads them. The `json!` macro would copy the parameters.
fn envelope(method: &str, params: Option<Value>) -> Value {
    let mut message = JsonObject::new();
    message.insert("method".to_owned(), method.into());
    if let Some(params) = params {
        message.insert("params".to_owned(), params);
    }
    Value::Object(message)
}

/// Decodes a notification. An invalid one is ignored, because notifications have no response.
fn notification(method: String, params: Option<Value>) -> IncomingMessage {
    if method == "notifications/cancelled" {
        return cancellation(params).unwrap_or(IncomingMessage::Ignored);
    }
    match serde_json::from_value(envelope(&method, params)) {
        Ok(notification) => IncomingMessage::Notification(Box::new(notification)),
        Err(_) => IncomingMessage::Ignored,
    }
}

fn cancellation(params: Option<Value>) -> Option<IncomingMessage> {
    let Value::Object(mut params) = params? else {
        return None;
    };
    let reason = params.get("reason").and_then(Value::as_str);
    Some(IncomingMessage::Cancelled {
        reason: reason.map(str::to_owned),
        id: params.remove("requestId")?,
    })
}

/// Decodes a response. An invalid one is ignored: errors about responses could bounce back and forth
/// forever.
fn response(message: JsonObject) -> IncomingMessage {
    match serde_json::from_value(Value::Object(message)) {
        Ok(response) => IncomingMessage::Response(Box::new(response)),
        Err(_) => IncomingMessage::Ignored,
    }
}

/// Returns the parser's error message in JSON terms, truncated.
fn summarize(error: &serde_json::Error) -> String {
    let text = error
        .to_string()
        .replace("expected a map", "expected an object");
    match text.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;

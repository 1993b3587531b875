//! Decodes JSON-RPC messages and says precisely what is wrong with those that are none.
//!
//! rmcp's own decoder tries all message types in turn. It reads a known method with unfit parameters
//! as an unknown method and refuses unusual ids without naming them, so the envelope is read here.

use exa_mcp_text::surrogates;
use rmcp::model::{
    CallToolRequest, CancelTaskRequest, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    CompleteRequest, CustomRequest, DiscoverRequest, ErrorCode, ErrorData, GetPromptRequest,
    GetTaskRequest, InitializeRequest, JsonObject, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PingRequest,
    ReadResourceRequest, SubscriptionsListenRequest, UpdateTaskRequest,
};
// These are gone as of 2026-07-28, but earlier clients rely on them.
#[expect(deprecated)]
use rmcp::model::{SetLevelRequest, SubscribeRequest, UnsubscribeRequest};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shims;

/// The mark that some Windows programs put before their text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The longest explanation taken from the parser, which quotes values in full.
const LONGEST_DETAIL: usize = 300;

/// The methods that take a cursor.
const PAGED: [&str; 4] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
];

/// The methods that 2026-07-28 has no more.
const GONE: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Whole numbers from here on are not exact as floating-point numbers: 2^53.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// What one JSON value means as a message.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A request with the id that its answer must carry.
    Request {
        id: Value,
        request: Box<ClientRequest>,
    },
    /// The client wants no answer to an earlier request.
    Cancelled { id: Value, reason: Option<String> },
    /// Another notification.
    Notification(Box<ClientNotification>),
    /// The client's answer to a request of ours.
    Reply(Box<ClientJsonRpcMessage>),
    /// Not a message that can be served; the client is told why.
    Refused { id: Value, error: ErrorData },
    /// Something that must not be answered.
    Ignored,
}

/// Reads the JSON of one line; `None` for a blank line.
pub(super) fn parse(line: &[u8]) -> Option<Result<Value, ErrorData>> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    if line.iter().all(|byte| b" \t\r".contains(byte)) {
        return None;
    }
    let parsed = serde_json::from_slice(line).or_else(|error| {
        let repaired = surrogates::repair(line).ok_or(error)?;
        serde_json::from_slice(&repaired)
    });
    Some(
        parsed.map_err(|error| {
            ErrorData::parse_error(format!("Parse error: {}", brief(&error)), None)
        }),
    )
}

/// Reads one message that is not a batch.
pub(super) fn read(value: Value) -> Incoming {
    let Value::Object(mut message) = value else {
        return refuse(Value::Null, "a message is a JSON object");
    };
    let answers = message.contains_key("result") || message.contains_key("error");
    if answers && !message.contains_key("method") {
        return reply(message);
    }
    let id = match message.remove("id").map(request_id).transpose() {
        Ok(id) => id,
        Err(echo) => return refuse(echo, "an id is a string or an integer of at most 64 bits"),
    };
    let echo = id.clone().unwrap_or(Value::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(echo, "\"jsonrpc\" must be \"2.0\"");
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return refuse(echo, "\"method\" must be a string");
    };
    if answers {
        return refuse(echo, "a message has either a method or a result");
    }
    let params = message.remove("params").filter(|params| !params.is_null());
    match id {
        None => notification(method, params),
        Some(id) => match request(method, params) {
            Ok(request) => Incoming::Request {
                id,
                request: Box::new(request),
            },
            Err(error) => Incoming::Refused { id, error },
        },
    }
}

fn refuse(id: Value, why: &str) -> Incoming {
    let error = ErrorData::invalid_request(format!("Invalid request: {why}"), None);
    Incoming::Refused { id, error }
}

/// Checks an id. Where it is unfit the error carries what the answer can name: a fraction itself, which
/// the client may know again, else null.
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
        Some(number) if number.abs() < INEXACT => Ok(id),
        _ => Err(Value::Null),
    }
}

/// Decodes a request. Methods that are not listed here go on as custom requests, which the handler
/// refuses as unknown whatever their parameters.
#[expect(deprecated)]
fn request(method: String, params: Option<Value>) -> Result<ClientRequest, ErrorData> {
    // Whether their parameters fit must not matter.
    if GONE.contains(&method.as_str()) && shims::is_stateless(params.as_ref()) {
        let text = format!("Method not found: protocol 2026-07-28 has no {method}");
        return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None));
    }
    if PAGED.contains(&method.as_str()) {
        check_cursor(&method, params.as_ref())?;
    }
    if shims::is_legacy_task(&method, params.as_ref()) {
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

/// rmcp drops optional parameters that it cannot read, so that a cursor of another type would start
/// the list again, for ever.
fn check_cursor(method: &str, params: Option<&Value>) -> Result<(), ErrorData> {
    match params.and_then(|params| params.get("cursor")) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => Err(unfit(method, "cursor must be a string")),
    }
}

fn typed<T>(method: &str, params: Option<Value>) -> Result<ClientRequest, ErrorData>
where
    T: DeserializeOwned + Into<ClientRequest>,
{
    let request: Result<T, _> = serde_json::from_value(envelope(method, params));
    request
        .map(Into::into)
        .map_err(|error| unfit(method, &brief(&error)))
}

fn unfit(method: &str, why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Invalid params for {method}: {why}"), None)
}

/// The message without its envelope, as rmcp reads it. Built by hand, because the macro would copy the
/// parameters.
fn envelope(method: &str, params: Option<Value>) -> Value {
    let mut message = JsonObject::new();
    message.insert("method".to_owned(), method.into());
    if let Some(params) = params {
        message.insert("params".to_owned(), params);
    }
    Value::Object(message)
}

/// Reads a notification. One that cannot be read is ignored: nobody waits for an answer to it.
fn notification(method: String, params: Option<Value>) -> Incoming {
    if method == "notifications/cancelled" {
        return cancellation(params).unwrap_or(Incoming::Ignored);
    }
    match serde_json::from_value(envelope(&method, params)) {
        Ok(notification) => Incoming::Notification(Box::new(notification)),
        Err(_) => Incoming::Ignored,
    }
}

fn cancellation(params: Option<Value>) -> Option<Incoming> {
    let Value::Object(mut params) = params? else {
        return None;
    };
    let reason = params.get("reason").and_then(Value::as_str);
    Some(Incoming::Cancelled {
        reason: reason.map(str::to_owned),
        id: params.remove("requestId")?,
    })
}

/// Reads an answer. One that cannot be read is ignored: an error in reply to an answer could go back
/// and forth without end.
fn reply(message: JsonObject) -> Incoming {
    match serde_json::from_value(Value::Object(message)) {
        Ok(reply) => Incoming::Reply(Box::new(reply)),
        Err(_) => Incoming::Ignored,
    }
}

/// The parser's explanation in JSON's words, cut to a length that fits a message.
fn brief(error: &serde_json::Error) -> String {
    let text = error
        .to_string()
        .replace("expected a map", "expected an object");
    match text.char_indices().nth(LONGEST_DETAIL) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;

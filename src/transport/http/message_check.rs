//! Checks messages received over HTTP before rmcp reads them.
//!
//! rmcp treats a known method with invalid parameters as an unknown method, reports broken JSON as an
//! unsupported media type, and does not support the tasks of 2025-11-25.

use bytes::Bytes;
use http::StatusCode;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde_json::Value;

use crate::mcp::request;
use crate::transport::compat;
use crate::transport::message::{self, IncomingMessage};

/// A valid message.
pub(super) struct CheckedMessage {
    pub(super) body: MessageBody,
    /// Set if the message is a request.
    pub(super) request: Option<RequestInfo>,
}

/// The body of a message.
pub(super) enum MessageBody {
    /// A decoded request for a running session.
    Decoded(RequestId, Box<ClientRequest>),
    /// JSON for rmcp to decode.
    Json(Bytes),
}

/// The relevant properties of a request.
pub(super) struct RequestInfo {
    pub(super) id: Value,
    pub(super) method: String,
    /// The log level that the client sets for its session, to be shared with other servers.
    pub(super) level: Option<String>,
}

/// The reason that a message is not passed on.
pub(super) enum MessageRejection {
    /// The client gets this error response.
    Invalid {
        status: StatusCode,
        id: Value,
        error: Box<ErrorData>,
    },
    /// It needs no response and cannot be used.
    Ignored,
}

/// Parses the JSON of a body.
pub(super) fn parse_body(body: &[u8]) -> Result<Value, ErrorData> {
    let empty_body = || ErrorData::parse_error("Parse error: the body is empty", None);
    message::parse_json(body).unwrap_or_else(|| Err(empty_body()))
}

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageTarget {
    /// A running session, which takes decoded requests.
    Session,
    /// rmcp, which finds the session itself.
    Stateful,
    /// rmcp, with headers that name a protocol version without a handshake.
    Stateless,
}

/// Checks one message.
pub(super) fn check(
    mut value: Value,
    target: MessageTarget,
) -> Result<CheckedMessage, MessageRejection> {
    if let Some(id) = value.get_mut("id") {
        normalize_id(id)?;
    }
    let stateless = target == MessageTarget::Stateless;
    let level = requested_level(&value);
    let json = (target != MessageTarget::Session || needs_rmcp(&value)).then(|| value.clone());
    let (info, request) = match message::decode(value) {
        IncomingMessage::Request { id, request } => {
            let method = request.method().to_owned();
            (RequestInfo { id, method, level }, request)
        }
        IncomingMessage::Invalid { id, error } => return Err(rejection(id, error, stateless)),
        IncomingMessage::Ignored => return Err(MessageRejection::Ignored),
        IncomingMessage::Cancelled { .. }
        | IncomingMessage::Notification(_)
        | IncomingMessage::Response(_) => {
            let body = MessageBody::from_value(json.unwrap_or_default());
            return Ok(CheckedMessage {
                body,
                request: None,
            });
        }
    };
    if request::strip_prefix(&info.method).is_some() {
        let reason = format!("Method not found: {}", info.method);
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None);
        return Err(rejection(info.id, error, stateless));
    }
    let body = match json {
        None => match RequestId::deserialize(&info.id) {
            Ok(id) => MessageBody::Decoded(id, request),
            Err(_) => return Err(invalid_id()),
        },
        Some(mut value) => {
            if !stateless && compat::is_legacy_task(&info.method, value.get("params")) {
                let marked = request::add_prefix(&info.method);
                if let Value::Object(value) = &mut value {
                    value.insert("method".to_owned(), Value::String(marked));
                }
            }
            MessageBody::from_value(value)
        }
    };
    Ok(CheckedMessage {
        body,
        request: Some(info),
    })
}

impl MessageBody {
    /// Serializes the value again: repaired text and duplicate keys are settled by now.
    fn from_value(value: Value) -> Self {
        Self::Json(serde_json::to_vec(&value).unwrap_or_default().into())
    }
}

/// Returns whether rmcp must decode the message, because it is not an ordinary request of a session.
fn needs_rmcp(value: &Value) -> bool {
    let method = value.get("method").and_then(Value::as_str);
    let method = method.filter(|_| value.get("id").is_some());
    let starts_session = |method| ["initialize", "server/discover"].contains(&method);
    method.is_none_or(starts_session) || compat::declares_version(value.get("params"))
}

fn requested_level(value: &Value) -> Option<String> {
    let sets_level = value.get("method")?.as_str()? == "logging/setLevel";
    let level = value.get("params").filter(|_| sets_level)?.get("level")?;
    level.as_str().map(str::to_owned)
}

fn rejection(id: Value, error: ErrorData, stateless: bool) -> MessageRejection {
    let status = match error.code {
        ErrorCode::METHOD_NOT_FOUND if stateless => StatusCode::NOT_FOUND,
        // The message is well-formed, so the error is an ordinary response.
        ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let error = Box::new(error);
    MessageRejection::Invalid { status, id, error }
}

/// Converts integral floats such as `1.0` to integers. rmcp accepts no ids beyond signed 64-bit integers.
fn normalize_id(id: &mut Value) -> Result<(), MessageRejection> {
    let Value::Number(number) = &*id else {
        return Ok(());
    };
    if number.is_i64() {
        return Ok(());
    }
    match number.as_f64().filter(|_| !number.is_u64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
            *id = Value::from(float as i64);
            Ok(())
        }
        // Fractions are rejected later.
        Some(_) => Ok(()),
        None => Err(invalid_id()),
    }
}

fn invalid_id() -> MessageRejection {
    let reason = "Invalid request: an id is a string or an integer below 2^63";
    let error = ErrorData::invalid_request(reason, None);
    rejection(Value::Null, error, false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Value, target: MessageTarget) -> Value {
        match check(value, target).map(|message| message.body) {
            Ok(MessageBody::Json(body)) => serde_json::from_slice(&body).unwrap(),
            Ok(MessageBody::Decoded(..)) | Err(_) => Value::Null,
        }
    }

    fn code(value: Value) -> (u16, i32) {
        match check(value, MessageTarget::Stateful) {
            Err(MessageRejection::Invalid { status, error, .. }) => (status.as_u16(), error.code.0),
            Err(MessageRejection::Ignored) => (202, 0),
            Ok(_) => (200, 0),
        }
    }

    fn request(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    #[test]
    fn reports_errors_with_the_right_code() {
        assert_eq!(
            code(request("tools/call", json!({"name": 5}))),
            (200, -32602)
        );
        assert_eq!(
            code(json!({"jsonrpc": "1.0", "id": 1, "method": "ping"})),
            (400, -32600)
        );
        assert_eq!(code(json!(5)), (400, -32600));
        assert_eq!(
            code(json!({"jsonrpc": "2.0", "id": u64::MAX, "method": "ping"})),
            (400, -32600)
        );
        assert_eq!(
            code(json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"})),
            (400, -32600)
        );
        assert_eq!(code(request("ping", json!({}))), (200, 0));
        let marked = request::add_prefix("tasks/list");
        assert_eq!(code(request(&marked, json!({}))), (200, -32601));
        assert_eq!(parse_body(b"{").unwrap_err().code.0, -32700);
        assert_eq!(parse_body(b" ").unwrap_err().code.0, -32700);
    }

    #[test]
    fn marks_tasks_of_the_older_protocol() {
        let params = json!({"taskId": "x"});
        let marked = sent(
            request("tasks/get", params.clone()),
            MessageTarget::Stateful,
        );
        assert_eq!(marked["method"], request::add_prefix("tasks/get"));
        assert_eq!(marked["params"], params);
        let stateless = sent(request("tasks/get", params), MessageTarget::Stateless);
        assert_eq!(stateless["method"], "tasks/get");
        let call = sent(
            request("tools/call", json!({"name": "t"})),
            MessageTarget::Stateful,
        );
        assert_eq!(call["method"], "tools/call");
        let call = json!({"name": "t", "task": {}});
        let call = sent(request("tools/call", call), MessageTarget::Stateful);
        assert_eq!(call["method"], request::add_prefix("tools/call"));
    }

    #[test]
    fn passes_decoded_requests_to_sessions() {
        let read = |value: Value| {
            let message = check(value, MessageTarget::Session).ok().unwrap();
            matches!(message.body, MessageBody::Decoded(..))
        };
        assert!(read(request("tools/call", json!({"name": "t"}))));
        assert!(read(request("tasks/get", json!({"taskId": "x"}))));
        assert!(read(request("anything", json!({}))));
        let version = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        assert!(!read(request("tools/list", json!({"_meta": version}))));
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": 1}});
        assert!(!read(cancelled));
        assert!(!read(json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    }

    #[test]
    fn converts_integral_floats_in_ids() {
        let ping = json!({"jsonrpc": "2.0", "id": 7.0, "method": "ping"});
        assert_eq!(sent(ping, MessageTarget::Stateful)["id"].to_string(), "7");
    }
}

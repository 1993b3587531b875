//! A message as it came over HTTP, checked before rmcp reads it.
//!
//! rmcp takes a known method with unfit parameters for an unknown one, answers broken JSON as a wrong
//! kind of content, and knows no tasks of 2025-11-25.

use bytes::Bytes;
use http::StatusCode;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde_json::Value;

use crate::mcp::request;
use crate::transport::message::{self, Incoming};
use crate::transport::shims;

/// A message that rmcp may have.
pub(super) struct Message {
    pub(super) content: Content,
    /// The id and method of a request; nothing waits for an answer otherwise.
    pub(super) request: Option<Asked>,
}

/// What a message says.
pub(super) enum Content {
    /// A request for a session.
    Read(RequestId, Box<ClientRequest>),
    /// Anything for rmcp to read.
    Written(Bytes),
}

/// What is asked.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) method: String,
    /// The level that the client chooses for its session; other servers must hear of it.
    pub(super) level: Option<String>,
}

/// Why a message goes no further.
pub(super) enum Stopped {
    /// It is answered by this.
    Refused {
        status: StatusCode,
        id: Value,
        error: Box<ErrorData>,
    },
    /// It wants no answer and cannot be used.
    Ignored,
}

/// Reads the JSON of a body.
pub(super) fn parse(body: &[u8]) -> Result<Value, ErrorData> {
    let nothing = || ErrorData::parse_error("Parse error: the body is empty", None);
    message::parse(body).unwrap_or_else(|| Err(nothing()))
}

/// For whom a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A session, which takes requests as they were read.
    Session,
    /// rmcp, which finds out itself where a message belongs.
    Legacy,
    /// The same, with headers that name a version without a handshake.
    Modern,
}

/// Checks one message.
pub(super) fn check(mut value: Value, reader: Reader) -> Result<Message, Stopped> {
    if let Some(id) = value.get_mut("id") {
        plain_id(id)?;
    }
    let modern = reader == Reader::Modern;
    let level = chosen_level(&value);
    let written = (reader != Reader::Session || is_special(&value)).then(|| value.clone());
    let (asked, request) = match message::read(value) {
        Incoming::Request { id, request } => {
            let method = request.method().to_owned();
            (Asked { id, method, level }, request)
        }
        Incoming::Refused { id, error } => return Err(refused(id, error, modern)),
        Incoming::Ignored => return Err(Stopped::Ignored),
        Incoming::Cancelled { .. } | Incoming::Notification(_) | Incoming::Reply(_) => {
            let content = Content::of(written.unwrap_or_default());
            return Ok(Message {
                content,
                request: None,
            });
        }
    };
    if request::unmarked(&asked.method).is_some() {
        let why = format!("Method not found: {}", asked.method);
        let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
        return Err(refused(asked.id, error, modern));
    }
    let content = match written {
        None => match RequestId::deserialize(&asked.id) {
            Ok(id) => Content::Read(id, request),
            Err(_) => return Err(unfit_id()),
        },
        Some(mut value) => {
            if !modern && shims::is_legacy_task(&asked.method, value.get("params")) {
                let marked = request::marked(&asked.method);
                if let Value::Object(value) = &mut value {
                    value.insert("method".to_owned(), Value::String(marked));
                }
            }
            Content::of(value)
        }
    };
    Ok(Message {
        content,
        request: Some(asked),
    })
}

impl Content {
    /// Written anew: what was mended on reading, and names that came twice, are settled now.
    fn of(value: Value) -> Self {
        Self::Written(serde_json::to_vec(&value).unwrap_or_default().into())
    }
}

/// Whether a message is not simply a request of the session that it came to.
fn is_special(value: &Value) -> bool {
    let method = value.get("method").and_then(Value::as_str);
    let method = method.filter(|_| value.get("id").is_some());
    let begins = |method| ["initialize", "server/discover"].contains(&method);
    method.is_none_or(begins) || shims::introduces(value.get("params"))
}

fn chosen_level(value: &Value) -> Option<String> {
    let chooses = value.get("method")?.as_str()? == "logging/setLevel";
    let level = value.get("params").filter(|_| chooses)?.get("level")?;
    level.as_str().map(str::to_owned)
}

fn refused(id: Value, error: ErrorData, modern: bool) -> Stopped {
    let status = match error.code {
        ErrorCode::METHOD_NOT_FOUND if modern => StatusCode::NOT_FOUND,
        // The message is one, and its answer an ordinary answer.
        ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let error = Box::new(error);
    Stopped::Refused { status, id, error }
}

/// Writes a whole number as one: some clients write `1.0`. rmcp reads no larger ones than 64 bits with
/// a sign.
fn plain_id(id: &mut Value) -> Result<(), Stopped> {
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
        // What is no whole number is refused with the rest.
        Some(_) => Ok(()),
        None => Err(unfit_id()),
    }
}

fn unfit_id() -> Stopped {
    let why = "Invalid request: an id is a string or an integer below 2^63";
    let error = ErrorData::invalid_request(why, None);
    refused(Value::Null, error, false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Value, reader: Reader) -> Value {
        match check(value, reader).map(|message| message.content) {
            Ok(Content::Written(body)) => serde_json::from_slice(&body).unwrap(),
            Ok(Content::Read(..)) | Err(_) => Value::Null,
        }
    }

    fn code(value: Value) -> (u16, i32) {
        match check(value, Reader::Legacy) {
            Err(Stopped::Refused { status, error, .. }) => (status.as_u16(), error.code.0),
            Err(Stopped::Ignored) => (202, 0),
            Ok(_) => (200, 0),
        }
    }

    fn request(method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    #[test]
    fn what_is_wrong_is_said_with_the_right_code() {
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
        let marked = request::marked("tasks/list");
        assert_eq!(code(request(&marked, json!({}))), (200, -32601));
        assert_eq!(parse(b"{").unwrap_err().code.0, -32700);
        assert_eq!(parse(b" ").unwrap_err().code.0, -32700);
    }

    #[test]
    fn tasks_of_the_older_era_are_marked() {
        let params = json!({"taskId": "x"});
        let marked = sent(request("tasks/get", params.clone()), Reader::Legacy);
        assert_eq!(marked["method"], request::marked("tasks/get"));
        assert_eq!(marked["params"], params);
        let modern = sent(request("tasks/get", params), Reader::Modern);
        assert_eq!(modern["method"], "tasks/get");
        let call = sent(request("tools/call", json!({"name": "t"})), Reader::Legacy);
        assert_eq!(call["method"], "tools/call");
        let call = json!({"name": "t", "task": {}});
        let call = sent(request("tools/call", call), Reader::Legacy);
        assert_eq!(call["method"], request::marked("tools/call"));
    }

    #[test]
    fn a_session_takes_its_requests_as_they_were_read() {
        let read = |value: Value| {
            let message = check(value, Reader::Session).ok().unwrap();
            matches!(message.content, Content::Read(..))
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
    fn an_id_that_is_whole_is_written_so() {
        let ping = json!({"jsonrpc": "2.0", "id": 7.0, "method": "ping"});
        assert_eq!(sent(ping, Reader::Legacy)["id"].to_string(), "7");
    }
}

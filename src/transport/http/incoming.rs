//! A message as it came over HTTP, checked before rmcp reads it.
//!
//! rmcp takes a known method with unfit parameters for an unknown one, answers broken JSON as a wrong
//! kind of content, and knows no tasks of 2025-11-25.

use bytes::Bytes;
use http::StatusCode;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::transport::message::{self, Incoming};
use crate::transport::shims;

/// A message that rmcp may read.
pub(super) struct Message {
    pub(super) body: Bytes,
    /// The id and method of a request; nothing waits for an answer otherwise.
    pub(super) request: Option<Asked>,
}

/// What is asked.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) method: String,
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

/// Checks one message; `modern` says that its headers name a version without a handshake.
pub(super) fn check(mut value: Value, modern: bool) -> Result<Message, Stopped> {
    if let Some(id) = value.get_mut("id") {
        plain_id(id)?;
    }
    let request = match message::read(value.clone()) {
        Incoming::Request { id, request } => Some(Asked {
            id,
            method: request.method().to_owned(),
        }),
        Incoming::Refused { id, error } => return Err(refused(id, error, modern)),
        Incoming::Ignored => return Err(Stopped::Ignored),
        Incoming::Cancelled { .. } | Incoming::Notification(_) | Incoming::Reply(_) => None,
    };
    if let Some(asked) = &request {
        if shims::unmarked(&asked.method).is_some() {
            let why = format!("Method not found: {}", asked.method);
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
            return Err(refused(asked.id.clone(), error, modern));
        }
        if !modern && shims::is_legacy_task(&asked.method, value.get("params")) {
            let marked = shims::marked(&asked.method);
            if let Value::Object(value) = &mut value {
                value.insert("method".to_owned(), Value::String(marked));
            }
        }
    }
    // Written anew: what was mended on reading, and names that came twice, are settled now.
    let body = serde_json::to_vec(&value).unwrap_or_default().into();
    Ok(Message { body, request })
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
        None => {
            let why = "Invalid request: an id is a string or an integer below 2^63";
            let error = ErrorData::invalid_request(why, None);
            Err(refused(Value::Null, error, false))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Value, modern: bool) -> Value {
        match check(value, modern) {
            Ok(message) => serde_json::from_slice(&message.body).unwrap(),
            Err(_) => Value::Null,
        }
    }

    fn code(value: Value) -> (u16, i32) {
        match check(value, false) {
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
        let marked = shims::marked("tasks/list");
        assert_eq!(code(request(&marked, json!({}))), (200, -32601));
        assert_eq!(parse(b"{").unwrap_err().code.0, -32700);
        assert_eq!(parse(b" ").unwrap_err().code.0, -32700);
    }

    #[test]
    fn tasks_of_the_older_era_are_marked() {
        let params = json!({"taskId": "x"});
        let marked = sent(request("tasks/get", params.clone()), false);
        assert_eq!(marked["method"], shims::marked("tasks/get"));
        assert_eq!(marked["params"], params);
        let modern = sent(request("tasks/get", params), true);
        assert_eq!(modern["method"], "tasks/get");
        let call = sent(request("tools/call", json!({"name": "t"})), false);
        assert_eq!(call["method"], "tools/call");
        let call = json!({"name": "t", "task": {}});
        let call = sent(request("tools/call", call), false);
        assert_eq!(call["method"], shims::marked("tools/call"));
    }

    #[test]
    fn an_id_that_is_whole_is_written_so() {
        let ping = json!({"jsonrpc": "2.0", "id": 7.0, "method": "ping"});
        assert_eq!(sent(ping, false)["id"].to_string(), "7");
    }
}

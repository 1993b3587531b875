//! HTTP responses that do not come from the MCP handler: JSON, and errors in the form of JSON-RPC.

use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use exa_mcp_accounts::AuthError;
use exa_mcp_model::LimitExceeded;

/// The code of whoever shows no token that is known.
const UNAUTHORIZED: i32 = -32000;
/// The code of whoever may not do this, and of what is not there.
pub(crate) const FORBIDDEN: i32 = -32001;

/// An answer of JSON.
pub(crate) fn json_answer(status: StatusCode, body: &Value) -> Response<Body> {
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

/// What a handler tells as JSON.
pub(crate) struct Told(pub(crate) StatusCode, pub(crate) Value);

impl IntoResponse for Told {
    fn into_response(self) -> Response<Body> {
        json_answer(self.0, &self.1)
    }
}

/// The answer of a handler that has nothing to tell.
pub(crate) struct TurnedAway(Box<Response<Body>>);

impl From<Box<Response<Body>>> for TurnedAway {
    fn from(answer: Box<Response<Body>>) -> Self {
        Self(answer)
    }
}

impl IntoResponse for TurnedAway {
    fn into_response(self) -> Response<Body> {
        *self.0
    }
}

/// An answer without content.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

/// The JSON-RPC error to a request, or to what was none.
pub(crate) fn refusal(status: StatusCode, id: &Value, error: &ErrorData) -> Response<Body> {
    json_answer(status, &json!({"jsonrpc": "2.0", "error": error, "id": id}))
}

/// A JSON-RPC error that answers no request in particular.
pub(crate) fn refuse(status: StatusCode, code: i32, why: impl Into<String>) -> Response<Body> {
    let error = ErrorData::new(ErrorCode(code), why.into(), None);
    refusal(status, &Value::Null, &error)
}

/// What was sent cannot be served.
pub(crate) fn bad_request(why: &str) -> Response<Body> {
    let code = ErrorCode::INVALID_REQUEST.0;
    refuse(
        StatusCode::BAD_REQUEST,
        code,
        format!("Invalid request: {why}"),
    )
}

/// The parameters of a request cannot be used.
pub(crate) fn bad_parameters(why: &str) -> Response<Body> {
    let why = format!("Invalid request: {why}");
    refuse(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS.0, why)
}

/// There is too much to do now.
pub(crate) fn busy(status: StatusCode, why: &str, wait: Duration) -> Response<Body> {
    let answer = refuse(status, ErrorCode::INTERNAL_ERROR.0, why);
    with_wait(answer, wait)
}

/// A limit of a token is reached.
pub(crate) fn over_limit(id: &Value, over: &LimitExceeded) -> Response<Body> {
    let answer = refusal(StatusCode::TOO_MANY_REQUESTS, id, &limit_error(over));
    with_wait(answer, over.retry_after)
}

/// The same as an error alone.
pub(crate) fn limit_error(over: &LimitExceeded) -> ErrorData {
    let data = json!({"limit": over.limit, "retryAfter": over.retry_after_seconds()});
    ErrorData::new(ErrorCode(FORBIDDEN), over.message.clone(), Some(data))
}

fn with_wait(mut answer: Response<Body>, wait: Duration) -> Response<Body> {
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    set(&mut answer, header::RETRY_AFTER, &seconds.to_string());
    answer
}

/// Whoever shows a token that does not let them in. All tokens that are not known are the same.
pub(crate) fn denied(denied: AuthError, shown: bool) -> Response<Body> {
    let realm = "Bearer realm=\"exa-mcp-server\"";
    let (mut answer, challenge) = match denied {
        AuthError::Unknown => {
            let why = "Unauthorized: Invalid or missing authentication token";
            let answer = refuse(StatusCode::UNAUTHORIZED, UNAUTHORIZED, why);
            let problem = if shown {
                ", error=\"invalid_token\""
            } else {
                ""
            };
            (answer, format!("{realm}{problem}"))
        }
        AuthError::Expired => {
            let answer = refuse(
                StatusCode::FORBIDDEN,
                FORBIDDEN,
                "Forbidden: Token has expired",
            );
            (answer, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::Revoked => {
            let why = "Forbidden: Token has been revoked";
            let answer = refuse(StatusCode::FORBIDDEN, FORBIDDEN, why);
            (answer, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::NotAdmin => {
            let why = "Forbidden: Admin token required";
            let answer = refuse(StatusCode::FORBIDDEN, FORBIDDEN, why);
            (answer, format!("{realm}, error=\"insufficient_scope\""))
        }
        AuthError::Throttled(wait) => {
            let why = "Too many wrong tokens came from this address; wait, then try again";
            let answer = refuse(StatusCode::TOO_MANY_REQUESTS, UNAUTHORIZED, why);
            return with_wait(answer, wait);
        }
    };
    set(&mut answer, header::WWW_AUTHENTICATE, &challenge);
    answer
}

/// Sets a header; a value that no header can hold is left out.
pub(crate) fn set<B>(answer: &mut Response<B>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

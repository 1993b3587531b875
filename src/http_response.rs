//! HTTP responses that do not come from the MCP handler: JSON bodies and JSON-RPC errors.

use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use exa_mcp_accounts::AuthError;
use exa_mcp_model::LimitExceeded;

/// The error response to a rejected request. Boxed, because a response is large.
pub(crate) type HttpRejection = Box<Response<Body>>;

/// The error code for a missing or unknown token.
const UNAUTHORIZED: i32 = -32000;
/// The error code for forbidden requests and unknown sessions.
pub(crate) const FORBIDDEN: i32 = -32001;

/// Returns a JSON response.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A JSON response of a handler.
pub(crate) struct JsonResponse(pub(crate) StatusCode, pub(crate) Value);

impl IntoResponse for JsonResponse {
    fn into_response(self) -> Response<Body> {
        json_response(self.0, &self.1)
    }
}

/// An error response of a handler.
pub(crate) struct RejectionResponse(HttpRejection);

impl From<HttpRejection> for RejectionResponse {
    fn from(response: HttpRejection) -> Self {
        Self(response)
    }
}

impl IntoResponse for RejectionResponse {
    fn into_response(self) -> Response<Body> {
        *self.0
    }
}

/// Returns a response without a body.
pub(crate) fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns a JSON-RPC error response.
pub(crate) fn error_response(status: StatusCode, id: &Value, error: &ErrorData) -> Response<Body> {
    json_response(status, &json!({"jsonrpc": "2.0", "error": error, "id": id}))
}

/// Returns a JSON-RPC error response without a request id.
pub(crate) fn error_without_id(
    status: StatusCode,
    code: i32,
    reason: impl Into<String>,
) -> Response<Body> {
    let error = ErrorData::new(ErrorCode(code), reason.into(), None);
    error_response(status, &Value::Null, &error)
}

/// Returns an error response for an invalid request.
pub(crate) fn bad_request(reason: &str) -> Response<Body> {
    let code = ErrorCode::INVALID_REQUEST.0;
    error_without_id(
        StatusCode::BAD_REQUEST,
        code,
        format!("Invalid request: {reason}"),
    )
}

/// Returns an error response for invalid parameters.
pub(crate) fn invalid_params(reason: &str) -> Response<Body> {
    let reason = format!("Invalid request: {reason}");
    error_without_id(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS.0, reason)
}

/// Returns an error response for an overloaded server.
pub(crate) fn busy(status: StatusCode, reason: &str, wait: Duration) -> Response<Body> {
    let response = error_without_id(status, ErrorCode::INTERNAL_ERROR.0, reason);
    with_retry_after(response, wait)
}

/// Returns an error response for an exceeded limit.
pub(crate) fn limit_exceeded(id: &Value, exceeded: &LimitExceeded) -> Response<Body> {
    let response = error_response(StatusCode::TOO_MANY_REQUESTS, id, &limit_error(exceeded));
    with_retry_after(response, exceeded.retry_after)
}

/// Returns the JSON-RPC error for an exceeded limit.
pub(crate) fn limit_error(exceeded: &LimitExceeded) -> ErrorData {
    let data = json!({"limit": exceeded.limit, "retryAfter": exceeded.retry_after_seconds()});
    ErrorData::new(ErrorCode(FORBIDDEN), exceeded.message.clone(), Some(data))
}

fn with_retry_after(mut response: Response<Body>, wait: Duration) -> Response<Body> {
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    set_header(&mut response, header::RETRY_AFTER, &seconds.to_string());
    response
}

/// Returns the response to a rejected token. Unknown tokens are indistinguishable.
pub(crate) fn denied(denied: AuthError, has_token: bool) -> Response<Body> {
    let realm = "Bearer realm=\"exa-mcp-server\"";
    let (mut response, challenge) = match denied {
        AuthError::Unknown => {
            let reason = "Unauthorized: Invalid or missing authentication token";
            let response = error_without_id(StatusCode::UNAUTHORIZED, UNAUTHORIZED, reason);
            let error = if has_token {
                ", error=\"invalid_token\""
            } else {
                ""
            };
            (response, format!("{realm}{error}"))
        }
        AuthError::Expired => {
            let response = error_without_id(
                StatusCode::FORBIDDEN,
                FORBIDDEN,
                "Forbidden: Token has expired",
            );
            (response, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::Revoked => {
            let reason = "Forbidden: Token has been revoked";
            let response = error_without_id(StatusCode::FORBIDDEN, FORBIDDEN, reason);
            (response, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::NotAdmin => {
            let reason = "Forbidden: Admin token required";
            let response = error_without_id(StatusCode::FORBIDDEN, FORBIDDEN, reason);
            (response, format!("{realm}, error=\"insufficient_scope\""))
        }
        AuthError::Throttled(wait) => {
            let reason = "Too many invalid tokens from this address; try again later";
            let response = error_without_id(StatusCode::TOO_MANY_REQUESTS, UNAUTHORIZED, reason);
            return with_retry_after(response, wait);
        }
    };
    set_header(&mut response, header::WWW_AUTHENTICATE, &challenge);
    response
}

/// Sets a header. A value that is not a valid header value is ignored.
pub(crate) fn set_header<B>(response: &mut Response<B>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

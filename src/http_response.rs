//! HTTP responses that do not come from the MCP handler: JSON bodies and JSON-RPC errors.

use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use exa_mcp_accounts::AuthError;
use exa_mcp_model::LimitExceeded;

/// JSON-RPC error code for a missing or unknown token.
const UNAUTHORIZED: i32 = -32000;
/// JSON-RPC error code for a forbidden request or an unknown object.
pub(crate) const FORBIDDEN: i32 = -32001;

/// Returns a response with a JSON body.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The JSON response of a handler.
pub(crate) struct JsonResponse(pub(crate) StatusCode, pub(crate) Value);

impl IntoResponse for JsonResponse {
    fn into_response(self) -> Response<Body> {
        json_response(self.0, &self.1)
    }
}

/// The error response of a handler.
pub(crate) struct HttpRejection(Box<Response<Body>>);

impl From<Box<Response<Body>>> for HttpRejection {
    fn from(response: Box<Response<Body>>) -> Self {
        Self(response)
    }
}

impl IntoResponse for HttpRejection {
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

/// Returns a JSON-RPC error for a request; `id` is null if the request could not be parsed.
pub(crate) fn rpc_error(status: StatusCode, id: &Value, error: &ErrorData) -> Response<Body> {
    json_response(status, &json!({"jsonrpc": "2.0", "error": error, "id": id}))
}

/// Returns a JSON-RPC error that belongs to no particular request.
pub(crate) fn error_response(
    status: StatusCode,
    code: i32,
    why: impl Into<String>,
) -> Response<Body> {
    let error = ErrorData::new(ErrorCode(code), why.into(), None);
    rpc_error(status, &Value::Null, &error)
}

/// Returns the response to a malformed request.
pub(crate) fn bad_request(why: &str) -> Response<Body> {
    let code = ErrorCode::INVALID_REQUEST.0;
    error_response(
        StatusCode::BAD_REQUEST,
        code,
        format!("Invalid request: {why}"),
    )
}

/// Returns the response to a request with invalid parameters.
pub(crate) fn invalid_params(why: &str) -> Response<Body> {
    let why = format!("Invalid request: {why}");
    error_response(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS.0, why)
}

/// Returns the response of an overloaded server, with `Retry-After`.
pub(crate) fn busy(status: StatusCode, why: &str, wait: Duration) -> Response<Body> {
    let response = error_response(status, ErrorCode::INTERNAL_ERROR.0, why);
    with_retry_after(response, wait)
}

/// Returns the response to a request that exceeds a limit of its token.
pub(crate) fn limit_exceeded(id: &Value, over: &LimitExceeded) -> Response<Body> {
    let response = rpc_error(StatusCode::TOO_MANY_REQUESTS, id, &limit_error(over));
    with_retry_after(response, over.retry_after)
}

/// Returns the JSON-RPC error for an exceeded limit.
pub(crate) fn limit_error(over: &LimitExceeded) -> ErrorData {
    let data = json!({"limit": over.limit, "retryAfter": over.retry_after_seconds()});
    ErrorData::new(ErrorCode(FORBIDDEN), over.message.clone(), Some(data))
}

fn with_retry_after(mut response: Response<Body>, wait: Duration) -> Response<Body> {
    let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
    set_header(&mut response, header::RETRY_AFTER, &seconds.to_string());
    response
}

/// Returns the response to a rejected token. Unknown and missing tokens are indistinguishable.
pub(crate) fn denied(denied: AuthError, shown: bool) -> Response<Body> {
    let realm = "Bearer realm=\"exa-mcp-server\"";
    let (mut response, challenge) = match denied {
        AuthError::Unknown => {
            let why = "Unauthorized: Invalid or missing authentication token";
            let response = error_response(StatusCode::UNAUTHORIZED, UNAUTHORIZED, why);
            let error = if shown {
                ", error=\"invalid_token\""
            } else {
                ""
            };
            (response, format!("{realm}{error}"))
        }
        AuthError::Expired => {
            let response = error_response(
                StatusCode::FORBIDDEN,
                FORBIDDEN,
                "Forbidden: Token has expired",
            );
            (response, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::Revoked => {
            let why = "Forbidden: Token has been revoked";
            let response = error_response(StatusCode::FORBIDDEN, FORBIDDEN, why);
            (response, format!("{realm}, error=\"invalid_token\""))
        }
        AuthError::NotAdmin => {
            let why = "Forbidden: Admin token required";
            let response = error_response(StatusCode::FORBIDDEN, FORBIDDEN, why);
            (response, format!("{realm}, error=\"insufficient_scope\""))
        }
        AuthError::Throttled(wait) => {
            let why = "Too many invalid tokens from this address; wait, then try again";
            let response = error_response(StatusCode::TOO_MANY_REQUESTS, UNAUTHORIZED, why);
            return with_retry_after(response, wait);
        }
    };
    set_header(&mut response, header::WWW_AUTHENTICATE, &challenge);
    response
}

/// Sets a header, unless the value is not a valid header value.
pub(crate) fn set_header<B>(response: &mut Response<B>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

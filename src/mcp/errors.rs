//! Protocol errors.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use exa_mcp_model::LimitExceeded;

/// The longest name that is quoted in an error, in characters.
pub(super) const MAX_NAME: usize = 100;

/// JSON-RPC error code for a call that exceeds a limit.
const LIMIT_EXCEEDED: i32 = -32001;

/// Returns the error for an exceeded limit.
pub(super) fn limit_error(exceeded: &LimitExceeded) -> ErrorData {
    let data = exceeded.detail();
    let data = data
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let data = Value::Object(data.collect());
    ErrorData::new(
        ErrorCode(LIMIT_EXCEEDED),
        exceeded.message.clone(),
        Some(data),
    )
}

/// Returns the error for an unknown method.
pub(super) fn unknown_method(method: &str) -> ErrorData {
    let shown: String = method.chars().take(MAX_NAME).collect();
    let text = format!("Method not found: {shown}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

//! The span fields of a request: HTTP request id, user, session, and JSON-RPC id.
//!
//! In passthrough mode a session id grants access to an anonymous session, so only a short digest of it is
//! logged.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing::field::Empty;

use exa_mcp_model::{Identity, to_hex};
use exa_mcp_text::is_identifier;

/// The length of a session digest in bytes: enough to distinguish sessions, too short to reveal the id.
const DIGEST_BYTES: usize = 4;

/// The fields that are known when a request reaches its handler.
#[derive(Debug, Default)]
pub(crate) struct RequestFields<'a> {
    /// The id of the HTTP request.
    pub(crate) id: Option<&'a str>,
    /// The user.
    pub(crate) user: Option<&'a str>,
    /// The digest of the session id.
    pub(crate) session: Option<&'a str>,
    /// The JSON-RPC id.
    pub(crate) rpc_id: Option<&'a str>,
}

impl RequestFields<'_> {
    /// Creates the span of a request whose handler runs in a separate task.
    pub(crate) fn span(&self) -> Span {
        let Self {
            id,
            user,
            session,
            rpc_id,
        } = *self;
        tracing::error_span!("request", id, user, session, rpc_id)
    }
}

/// Creates the span of an HTTP request. Further fields are recorded later.
pub(crate) fn http_span(id: &str) -> Span {
    tracing::error_span!("request", id, user = Empty, session = Empty, rpc_id = Empty)
}

/// Records the user of the current request.
pub(crate) fn record_user(user: &Identity) {
    Span::current().record("user", user.as_str());
}

/// Records the session of the current request.
pub(crate) fn record_session(id: &str) {
    let span = Span::current();
    if !span.is_disabled() {
        span.record("session", session_digest(id));
    }
}

/// Records the JSON-RPC id of the current request.
pub(crate) fn record_rpc_id(id: &Value) {
    Span::current().record("rpc_id", loggable_rpc_id(id));
}

/// Returns a JSON-RPC id if it is a number or a short name. Other ids may contain user input.
pub(crate) fn loggable_rpc_id(id: &Value) -> String {
    match id {
        Value::Number(number) => number.to_string(),
        Value::String(text) if is_identifier(text) => text.clone(),
        _ => "-".to_owned(),
    }
}

/// Returns a short digest of a session id: the first eight hexadecimal digits of its SHA-256 hash.
pub(crate) fn session_digest(id: &str) -> String {
    to_hex(Sha256::digest(id.as_bytes()).iter().take(DIGEST_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_distinguish_sessions() {
        let (one, other) = (session_digest("session-1"), session_digest("session-2"));
        assert_eq!((one.len(), one == other), (8, false));
        assert_eq!(one, session_digest("session-1"));
    }
}

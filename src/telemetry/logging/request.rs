//! What every log line of a request says of it: the id of the HTTP request, the user, the session, and
//! the id that the client gave the request.
//!
//! Over HTTP the id of a session lets its holder in where nobody needs a token, so only a short digest of
//! it stands in the log.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tracing::Span;
use tracing::field::Empty;

use exa_mcp_model::{Identity, to_hex};
use exa_mcp_text::is_identifier;

/// Bytes of the digest of a session: enough to tell sessions apart, too few to find one.
const DIGEST_BYTES: usize = 4;

/// The fields of a request that are known when it reaches its handler.
#[derive(Debug, Default)]
pub(crate) struct RequestFields<'a> {
    /// The id of the HTTP request.
    pub(crate) id: Option<&'a str>,
    /// Whoever makes it.
    pub(crate) user: Option<&'a str>,
    /// The digest of its session.
    pub(crate) session: Option<&'a str>,
    /// The id that the client gave it.
    pub(crate) rpc_id: Option<&'a str>,
}

impl RequestFields<'_> {
    /// The span of a request whose handler runs in a task of its own.
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

/// The span of an HTTP request, of which more becomes known while it is read.
pub(crate) fn http_span(id: &str) -> Span {
    tracing::error_span!("request", id, user = Empty, session = Empty, rpc_id = Empty)
}

/// Adds who makes the request at hand.
pub(crate) fn record_user(user: &Identity) {
    Span::current().record("user", user.as_str());
}

/// Adds to which session the request at hand belongs.
pub(crate) fn record_session(id: &str) {
    let span = Span::current();
    if !span.is_disabled() {
        span.record("session", session_digest(id));
    }
}

/// Adds the id that the client gave the request at hand.
pub(crate) fn record_rpc_id(id: &Value) {
    Span::current().record("rpc_id", plain_rpc_id(id));
}

/// The id of a request as it can be shown: a number, or a short name. Any other may hold what people ask.
pub(crate) fn plain_rpc_id(id: &Value) -> String {
    match id {
        Value::Number(number) => number.to_string(),
        Value::String(text) if is_identifier(text) => text.clone(),
        _ => "-".to_owned(),
    }
}

/// A short digest of the id of a session: eight hexadecimal digits of its SHA-256.
pub(crate) fn session_digest(id: &str) -> String {
    to_hex(Sha256::digest(id.as_bytes()).iter().take(DIGEST_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_told_apart_but_not_told() {
        let (one, other) = (session_digest("session-1"), session_digest("session-2"));
        assert_eq!((one.len(), one == other), (8, false));
        assert_eq!(one, session_digest("session-1"));
    }
}

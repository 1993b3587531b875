//! What transports and the handler share: header names, method markers, and request extensions.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderName;
use http::request::Parts;
use serde_json::Value;

use super::idle::ClientConnection;
use exa_mcp_accounts::Requester;

/// The header with the session id.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// The header with which proxies and clients correlate a request with the log.
pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The metadata key with which a stateless request declares its protocol version.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A prefix that makes a method unknown to rmcp, for HTTP, where rmcp itself parses the requests. Clients cannot use
/// it.
const UNKNOWN_TO_RMCP: &str = "exa-mcp-server/unknown-to-rmcp/";

/// Adds the prefix that makes a method unknown to rmcp.
pub(crate) fn add_prefix(method: &str) -> String {
    format!("{UNKNOWN_TO_RMCP}{method}")
}

/// Removes that prefix, if there is one.
pub(crate) fn strip_prefix(method: &str) -> Option<&str> {
    method.strip_prefix(UNKNOWN_TO_RMCP)
}

/// Returns the protocol version that a stateless request declares.
pub(crate) fn declared_version(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")?.get(VERSION_KEY)
}

/// The request id of the client, as an extension of a request that has an id of ours.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequestId(pub(crate) Value);

/// An extension of requests that another server received and that are replayed here.
#[derive(Clone, Copy)]
pub(crate) struct Replayed;

/// Shares the subscriptions of sessions with other servers.
pub(crate) trait SharedSubscriptions: Send + Sync {
    /// Records that the client of a session subscribed to a resource, or unsubscribed.
    fn record<'a>(&'a self, session: &'a str, uri: &'a str, subscribed: bool) -> BoxFuture<'a, ()>;

    /// Records that the client of a session has listed resources.
    fn record_list<'a>(&'a self, session: &'a str) -> BoxFuture<'a, ()>;
}

/// An extension of requests of sessions that are shared with other servers.
#[derive(Clone)]
pub(crate) struct SharedSessions(pub(crate) Arc<dyn SharedSubscriptions>);

/// An extension of requests of a session: the stream on which its client receives messages outside of requests.
#[derive(Clone)]
pub(crate) struct SessionConnection(pub(crate) Arc<dyn ClientConnection>);

/// Returns whether a request is a replay of one that another server received.
pub(super) fn is_replayed(parts: &Parts) -> bool {
    parts.extensions.get::<Replayed>().is_some()
}

/// Returns whether a request comes with the token or key of its client, if it has one. A replay that another server
/// asked for does not.
pub(super) fn is_from_client(parts: &Parts) -> bool {
    let requester = parts.extensions.get::<Requester>();
    let is_authenticated =
        |requester: &Requester| requester.credential.is_some() || requester.key.is_some();
    !is_replayed(parts) || requester.is_some_and(is_authenticated)
}

/// Shares with other servers that the client of a session subscribed to a resource, or unsubscribed.
pub(super) async fn share_subscription(parts: &Parts, uri: &str, subscribed: bool) {
    if let Some((sessions, session)) = shared_session(parts) {
        sessions.record(session, uri, subscribed).await;
    }
}

/// Shares with other servers that the client of a session has listed resources.
pub(super) async fn share_list_interest(parts: &Parts) {
    if let Some((sessions, session)) = shared_session(parts) {
        sessions.record_list(session).await;
    }
}

/// Returns the session of a request, and the sessions to record it in, if other servers should know about the request.
fn shared_session(parts: &Parts) -> Option<(&dyn SharedSubscriptions, &str)> {
    let session = parts.headers.get(SESSION_HEADER)?.to_str().ok()?;
    let SharedSessions(sessions) = parts.extensions.get::<SharedSessions>()?;
    (!is_replayed(parts)).then_some((&**sessions, session))
}

//! What transports and the handler agree on: the names of headers and marks, and what travels with a
//! request.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderName;
use http::request::Parts;
use serde_json::Value;

/// The header that names a session.
pub(crate) const SESSION_HEADER: &str = "mcp-session-id";

/// The header by which proxies and clients find a request in the log.
pub(crate) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Where a request names its version, if it makes no handshake.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Marks a method as one that rmcp must take for unknown, over HTTP, where rmcp itself reads the
/// requests. Clients cannot use it.
const MARK: &str = "exa-mcp-server/unknown-to-rmcp/";

/// Returns the method with a mark that makes it unknown to rmcp.
pub(crate) fn marked(method: &str) -> String {
    format!("{MARK}{method}")
}

/// Returns the method behind the mark.
pub(crate) fn unmarked(method: &str) -> Option<&str> {
    method.strip_prefix(MARK)
}

/// Returns the version that a request names, if it makes no handshake.
pub(crate) fn named_version(params: Option<&Value>) -> Option<&Value> {
    params?.get("_meta")?.get(VERSION_KEY)
}

/// The id that the client gave a request. It travels with the request, whose own number is ours.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequestId(pub(crate) Value);

/// Travels with a request that was made at another server and is played again here.
#[derive(Clone, Copy)]
pub(crate) struct Replayed;

/// Lets other servers know what the client of a session is subscribed to.
pub(crate) trait SharedSubscriptions: Send + Sync {
    /// Notes that the client of a session subscribes to a resource, or no longer.
    fn record<'a>(&'a self, session: &'a str, uri: &'a str, subscribed: bool) -> BoxFuture<'a, ()>;
}

/// Travels with the requests of sessions that other servers know, too.
#[derive(Clone)]
pub(crate) struct SharedSessions(pub(crate) Arc<dyn SharedSubscriptions>);

/// Returns whether a request was made at another server and is played again here.
pub(super) fn is_replayed(parts: &Parts) -> bool {
    parts.extensions.get::<Replayed>().is_some()
}

/// Lets other servers know that the client of a session subscribes to a resource, or no longer.
pub(super) async fn share_subscription(parts: &Parts, uri: &str, subscribed: bool) {
    let session = parts.headers.get(SESSION_HEADER);
    let session = session.and_then(|session| session.to_str().ok());
    let sessions = parts.extensions.get::<SharedSessions>();
    if let (Some(SharedSessions(sessions)), Some(session)) = (sessions, session)
        && !is_replayed(parts)
    {
        sessions.record(session, uri, subscribed).await;
    }
}

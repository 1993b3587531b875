//! Authenticates requests to `/mcp` and finds their session.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, header};
use rmcp::model::ProtocolVersion;

use super::McpBackend;
use super::auth::Authentication;
use super::fair_slots::{Activity, ActivityKind};
use super::message_check::MessageTarget;
use super::peer::Peer;
use super::response::AcceptedFormat;
use super::session_requests;
use super::session_restore::apply_delta;
use super::sessions::{SessionDelta, SessionError, SessionGuard, SessionLimit};
use super::state::HttpState;
use crate::http_response::{
    FORBIDDEN, HttpRejection, bad_request, busy, error_without_id, set_header,
};
use crate::mcp::request::SESSION_HEADER;
use crate::telemetry::logging;
use exa_mcp_accounts::Requester;

/// The header that names the protocol version.
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";

/// The maximum length of a session id.
const MAX_SESSION_ID_LEN: usize = 128;

/// The `Retry-After` value when the server is full or shutting down.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// An authenticated request.
pub(super) struct AdmittedRequest {
    pub(super) parts: Parts,
    pub(super) auth: Authentication,
    /// The session of the request, which stays alive while the guard exists.
    pub(super) session: Option<(String, SessionGuard)>,
    /// Whether the request names a protocol version without a handshake.
    pub(super) is_stateless: bool,
    pub(super) accepts: AcceptedFormat,
}

impl AdmittedRequest {
    /// Returns who reads the messages of this request.
    pub(super) async fn target(&self) -> MessageTarget {
        match &self.session {
            _ if self.is_stateless => MessageTarget::Stateless,
            Some((_, guard))
                if session_requests::supports_version(&self.parts) && guard.is_running().await =>
            {
                MessageTarget::Session
            }
            _ => MessageTarget::Stateful,
        }
    }
}

/// Authenticates a request and restores its session on this server if necessary.
pub(super) async fn admit<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    parts: Parts,
) -> Result<AdmittedRequest, HttpRejection> {
    let (admitted, delta) = authenticate(state, parts).await?;
    if let Some((id, _)) = &admitted.session {
        apply_delta(state, id, &admitted.auth.requester, delta).await;
    }
    Ok(admitted)
}

/// Authenticates a request and finds its session.
pub(super) async fn authenticate<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    parts: Parts,
) -> Result<(AdmittedRequest, SessionDelta), HttpRejection> {
    if state.draining.is_cancelled() {
        return Err(Box::new(shutting_down()));
    }
    let mut auth = state
        .auth_mode
        .authenticate(&parts, client_address(state, &parts))?;
    mark_verified(&parts, &auth);
    auth.requester.tools = requested_tools(state, &parts, &auth.requester)?;
    let is_stateless = names_stateless_version(&parts.headers)?;
    let mut delta = SessionDelta::default();
    let session = match single_header(&parts.headers, SESSION_HEADER)?.filter(|_| !is_stateless) {
        Some(id) if id.len() > MAX_SESSION_ID_LEN => return Err(Box::new(session_not_found())),
        Some(id) => {
            logging::record_session(id);
            let admitted = state.sessions.admit(id, &mut auth).await;
            logging::record_user(&auth.requester.owner);
            let (guard, missing) = admitted.map_err(session_rejection)?;
            delta = missing;
            Some((id.to_owned(), guard))
        }
        None => {
            logging::record_user(&auth.requester.owner);
            None
        }
    };
    let admitted = AdmittedRequest {
        accepts: AcceptedFormat::from_headers(&parts.headers),
        parts,
        auth,
        session,
        is_stateless,
    };
    Ok((admitted, delta))
}

pub(super) fn session_rejection(reason: SessionError) -> HttpRejection {
    let reason = match reason {
        SessionError::NotFound => return Box::new(session_not_found()),
        SessionError::LimitReached(SessionLimit::Total) => {
            "Too many sessions; end some, or try again later"
        }
        SessionError::LimitReached(SessionLimit::Owner) => {
            "Too many active sessions for this user (EXA_MCP_MAX_SESSIONS_PER_USER); end some"
        }
        SessionError::LimitReached(SessionLimit::Address) => {
            "Too many active sessions from your address \
             (EXA_MCP_MAX_SESSIONS_PER_ADDRESS); end some, or try again later"
        }
        SessionError::StoreUnavailable => {
            "The shared session store is unavailable; try again later"
        }
    };
    Box::new(busy(StatusCode::SERVICE_UNAVAILABLE, reason, RETRY_AFTER))
}

/// Marks the connection as serving a verified client.
pub(super) fn mark_verified(parts: &Parts, auth: &Authentication) {
    let activity = parts.extensions.get::<Arc<Activity>>();
    if let Some(activity) = activity.filter(|_| auth.requester.guest_address.is_none()) {
        activity.set(ActivityKind::Verified);
    }
}

/// Returns the address of the client.
pub(super) fn client_address<M>(state: &HttpState<M>, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
    state.config.proxies.client_address(peer, &parts.headers)
}

/// Returns the tool selection in the query string, if there is one.
pub(super) fn requested_tools<M: McpBackend>(
    state: &HttpState<M>,
    parts: &Parts,
    requester: &Requester,
) -> Result<Option<Arc<str>>, HttpRejection> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let Some((_, list)) = pairs.find(|(name, _)| name == "tools") else {
        return Ok(None);
    };
    let checked = state.mcp.check_tools(&list, requester.is_admin);
    checked
        .map_err(|reason| Box::new(bad_request(&format!("query parameter `tools`: {reason}"))))?;
    Ok(Some(Arc::from(&*list)))
}

fn names_stateless_version(headers: &HeaderMap) -> Result<bool, HttpRejection> {
    let version = single_header(headers, VERSION_HEADER)?;
    Ok(version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str()))
}

/// Returns a header that must not be repeated.
fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, HttpRejection> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Box::new(bad_request(&format!(
                "the header {name} is not valid text"
            )))),
        },
        _ => Err(Box::new(bad_request(&format!(
            "the header {name} must not be repeated"
        )))),
    }
}

fn session_not_found() -> Response<Body> {
    error_without_id(StatusCode::NOT_FOUND, FORBIDDEN, "Session not found")
}

fn shutting_down() -> Response<Body> {
    let reason = "The server is shutting down; try again later";
    let mut response = busy(StatusCode::SERVICE_UNAVAILABLE, reason, RETRY_AFTER);
    set_header(&mut response, header::CONNECTION, "close");
    response
}

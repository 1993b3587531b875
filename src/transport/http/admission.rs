//! Who makes a request to `/mcp`, and for which session.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, header};
use rmcp::model::ProtocolVersion;

use super::Mcp;
use super::fair_places::{Activity, Use};
use super::gate::Entry;
use super::in_session;
use super::incoming::Reader;
use super::outgoing::Accepts;
use super::peer::Peer;
use super::restoring::catch_up;
use super::sessions::{Behind, Held, NoRoom, NotAdmitted};
use super::state::Shared;
use crate::http_response::{FORBIDDEN, bad_request, busy, error_response, set_header};
use crate::mcp::request::SESSION_HEADER;
use crate::telemetry::logging;

/// The header that names a version.
pub(super) const VERSION: &str = "mcp-protocol-version";

/// The length of the longest header value that is looked at.
const LONGEST_SESSION: usize = 128;

/// When to come back to a server that is full or about to end.
const COME_BACK: Duration = Duration::from_secs(5);

type Refused = Box<Response<Body>>;

/// A request with what is known about it.
pub(super) struct Visit {
    pub(super) parts: Parts,
    pub(super) entry: Entry,
    /// The session that it belongs to, which stays while it is served.
    pub(super) session: Option<(String, Held)>,
    /// It names a version without a handshake.
    pub(super) modern: bool,
    pub(super) accepts: Accepts,
}

impl Visit {
    /// For whom its messages are.
    pub(super) async fn reader(&self) -> Reader {
        match &self.session {
            _ if self.modern => Reader::Modern,
            Some((_, held)) if in_session::suits(&self.parts) && held.is_running().await => {
                Reader::Session
            }
            _ => Reader::Legacy,
        }
    }
}

/// Finds out who visits, and for which session; that one runs here then.
pub(super) async fn visit<M: Mcp>(shared: &Arc<Shared<M>>, parts: Parts) -> Result<Visit, Refused> {
    let (visit, behind) = admit(shared, parts).await?;
    if let Some((id, _)) = &visit.session {
        catch_up(shared, id, &visit.entry.requester, behind).await;
    }
    Ok(visit)
}

/// Finds out who visits, and for which session.
pub(super) async fn admit<M: Mcp>(
    shared: &Arc<Shared<M>>,
    parts: Parts,
) -> Result<(Visit, Behind), Refused> {
    if shared.draining.is_cancelled() {
        return Err(Box::new(ending()));
    }
    let mut entry = shared.gate.admit(&parts, address(shared, &parts))?;
    mark_known(&parts, &entry);
    entry.requester.tools = tools(shared, &parts)?;
    let modern = is_modern(&parts.headers)?;
    let mut behind = Behind::default();
    let session = match only(&parts.headers, SESSION_HEADER)?.filter(|_| !modern) {
        Some(id) if id.len() > LONGEST_SESSION => return Err(Box::new(no_session())),
        Some(id) => {
            logging::record_session(id);
            let admitted = shared.sessions.admit(id, &mut entry).await;
            logging::record_user(&entry.requester.owner);
            let (held, missing) = admitted.map_err(not_admitted)?;
            behind = missing;
            Some((id.to_owned(), held))
        }
        None => {
            logging::record_user(&entry.requester.owner);
            None
        }
    };
    let visit = Visit {
        accepts: Accepts::of(&parts.headers),
        parts,
        entry,
        session,
        modern,
    };
    Ok((visit, behind))
}

pub(super) fn not_admitted(why: NotAdmitted) -> Refused {
    let why = match why {
        NotAdmitted::Unknown => return Box::new(no_session()),
        NotAdmitted::NoRoom(NoRoom::AtAll) => {
            "There are too many sessions; end some, or come back later"
        }
        NotAdmitted::NoRoom(NoRoom::OfOwner) => {
            "All sessions that one user may have are in use (EXA_MCP_MAX_SESSIONS_PER_USER); end some"
        }
        NotAdmitted::NoRoom(NoRoom::OfAddress) => {
            "All sessions that clients of one address may have are in use \
             (EXA_MCP_MAX_SESSIONS_PER_ADDRESS); end some, or come back later"
        }
        NotAdmitted::Unavailable => {
            "The store that knows the sessions of all servers cannot be used now; come back later"
        }
    };
    Box::new(busy(StatusCode::SERVICE_UNAVAILABLE, why, COME_BACK))
}

/// Notes that a connection works for somebody who is known.
pub(super) fn mark_known(parts: &Parts, entry: &Entry) {
    let activity = parts.extensions.get::<Arc<Activity>>();
    if let Some(activity) = activity.filter(|_| entry.requester.guest_address.is_none()) {
        activity.set(Use::Known);
    }
}

/// Where the request comes from.
pub(super) fn address<M>(shared: &Shared<M>, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
    shared.config.proxies.client(peer, &parts.headers)
}

/// The tools to which the address narrows the visit down.
pub(super) fn tools<M: Mcp>(
    shared: &Shared<M>,
    parts: &Parts,
) -> Result<Option<Arc<str>>, Refused> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let Some((_, list)) = pairs.find(|(name, _)| name == "tools") else {
        return Ok(None);
    };
    let checked = shared.mcp.check_tools(&list);
    checked.map_err(|why| Box::new(bad_request(&format!("`tools` in the address: {why}"))))?;
    Ok(Some(Arc::from(&*list)))
}

fn is_modern(headers: &HeaderMap) -> Result<bool, Refused> {
    let version = only(headers, VERSION)?;
    Ok(version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str()))
}

/// A header that must not be there twice.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refused> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Box::new(bad_request(&format!(
                "the header {name} is no text"
            )))),
        },
        _ => Err(Box::new(bad_request(&format!(
            "the header {name} is there more than once"
        )))),
    }
}

fn no_session() -> Response<Body> {
    error_response(StatusCode::NOT_FOUND, FORBIDDEN, "Session not found")
}

fn ending() -> Response<Body> {
    let why = "The server is about to end; come back to the next one";
    let mut answer = busy(StatusCode::SERVICE_UNAVAILABLE, why, COME_BACK);
    set_header(&mut answer, header::CONNECTION, "close");
    answer
}

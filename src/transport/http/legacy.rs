//! `/sse` and `/messages`: the transport of 2024-11-05.
//!
//! A client opens one stream for everything that comes, and posts everything that goes. Behind it runs
//! the same connection as over standard input and output: one message a line.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use rmcp::model::ErrorCode;
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
};
use tokio::time::timeout;

use super::Mcp;
use super::admission::{address, mark_known, tools};
use super::body::{self, until, while_placed, while_valid};
use super::fair_places::{Activity, Use};
use super::gate::KEY_IN_URL;
use super::mcp::LARGEST_BATCH;
use super::parsing;
use super::state::Shared;
use crate::http_response::{
    FORBIDDEN, bad_request, busy, error_response, limit_exceeded, rpc_error,
};
use crate::telemetry::logging;
use crate::transport::Backlog;
use exa_mcp_accounts::usage::UsageMeter;
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::ids;
use exa_mcp_model::{Identity, lock};

/// What fits between a connection and the handler before one waits for the other.
const BUFFER: usize = 64 * 1024;

/// The most requests without a response and messages that wait to be read, on one connection.
const MAX_WAITING_MESSAGES: usize = 256;

/// From so many bytes of messages that wait to be read on, a connection takes no more requests.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// How long the handler may take to take a message.
const PATIENCE: Duration = Duration::from_secs(30);

/// When to come back to a server that is full.
const COME_BACK: Duration = Duration::from_secs(5);

type Refused = Box<Response<Body>>;

/// The connections of the oldest era, by their ids.
#[derive(Default)]
pub(super) struct Streams(Mutex<HashMap<String, Arc<Connection>>>);

struct Connection {
    owner: Identity,
    input: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    meter: Option<UsageMeter>,
    backlog: Arc<Backlog>,
    /// Idle until the first call of a tool.
    activity: Arc<Activity>,
}

impl Streams {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    /// To whom they belong, one by one.
    pub(super) fn owners(&self) -> Vec<Identity> {
        let open = lock(&self.0);
        open.values()
            .map(|connection| connection.owner.clone())
            .collect()
    }
}

/// Takes a connection off the list when its stream ends.
struct Listed {
    streams: Arc<Streams>,
    id: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.streams.0).remove(&self.id);
    }
}

/// `GET /sse`: opens a connection.
pub(super) async fn connect<M: Mcp>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let opened = (|| {
        let mut entry = shared.gate.admit(&parts, address(&shared, &parts))?;
        logging::record_user(&entry.requester.owner);
        entry.requester.tools = tools(&shared, &parts)?;
        mark_known(&parts, &entry);
        let credential = entry.requester.credential.clone();
        let activity = Arc::new(Activity::default());
        let place = shared.guest_stream(&entry.requester, &activity)?;
        let limits = &shared.config.limits;
        if shared.draining.is_cancelled() || shared.streams.count() >= limits.sessions {
            let why = "There are too many connections, or the server is about to end";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(Box::new(busy(status, why, COME_BACK)));
        }
        let id = ids::random_id().map_err(|error| Box::new(bad_request(&error.to_string())))?;
        let (ours, theirs) = duplex(BUFFER);
        let (output, input) = tokio::io::split(ours);
        let backlog = Arc::new(Backlog::default());
        let connection = Arc::new(Connection {
            owner: entry.requester.owner.clone(),
            input: tokio::sync::Mutex::new(input),
            meter: entry.requester.meter.clone(),
            backlog: Arc::clone(&backlog),
            activity: Arc::clone(&activity),
        });
        lock(&shared.streams.0).insert(id.clone(), connection);
        let key = entry.requester.key.clone().filter(|_| entry.key_from_url);
        tokio::spawn(shared.mcp.connect(entry.requester, &id, theirs, backlog));
        let endpoint = endpoint(&id, key.as_ref());
        let listed = Listed {
            streams: Arc::clone(&shared.streams),
            id,
        };
        let events = events(listed, endpoint, output, limits.keep_alive);
        Ok((events, credential, place))
    })();
    match opened {
        Ok((events, credential, place)) => {
            let body = Body::new(StreamBody::new(events));
            let body = until(body, shared.draining.clone());
            stream_of(while_placed(while_valid(body, credential), place))
        }
        Err(refused) => {
            let refused: Refused = refused;
            *refused
        }
    }
}

fn stream_of(body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    let stream = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, stream);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// Where a client posts. One whose key stands in the address that it opened sends no other, so the key
/// stands in this address, too.
fn endpoint(id: &str, key: Option<&ApiKey>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("sessionId", id);
    if let Some(key) = key {
        query.append_pair(KEY_IN_URL, key.expose());
    }
    format!("/messages?{}", query.finish())
}

/// What the client is sent: where to post, then every message of the handler.
fn events(
    listed: Listed,
    endpoint: String,
    output: ReadHalf<DuplexStream>,
    keep_alive: Duration,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
    let endpoint = format!("event: endpoint\ndata: {endpoint}\n\n");
    let lines = BufReader::new(output).lines();
    let state = (listed, lines);
    let messages = stream::unfold(state, move |(listed, mut lines)| async move {
        let event = next_event(&mut lines, keep_alive).await?;
        Some((event, (listed, lines)))
    });
    let events = stream::iter([endpoint]).chain(messages);
    events.map(|event| Ok(Frame::data(Bytes::from(event))))
}

async fn next_event(
    lines: &mut Lines<BufReader<ReadHalf<DuplexStream>>>,
    keep_alive: Duration,
) -> Option<String> {
    match timeout(keep_alive, lines.next_line()).await {
        // Silence would look like a connection that is gone.
        Err(_) => Some(": ping\n\n".to_owned()),
        Ok(Ok(Some(line))) => Some(format!("event: message\ndata: {line}\n\n")),
        Ok(_) => None,
    }
}

/// `POST /messages?sessionId=…`: takes a message.
pub(super) async fn post<M: Mcp>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    match take(&shared, request).await {
        Ok(answer) => answer,
        Err(refused) => *refused,
    }
}

async fn take<M: Mcp>(
    shared: &Arc<Shared<M>>,
    request: Request<Body>,
) -> Result<Response<Body>, Refused> {
    let (parts, body) = request.into_parts();
    let entry = shared.gate.admit(&parts, address(shared, &parts))?;
    if !entry.guest {
        logging::record_user(&entry.requester.owner);
    }
    mark_known(&parts, &entry);
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let id = pairs.find(|(name, _)| name == "sessionId" || name == "session_id");
    if let Some((_, id)) = &id {
        logging::record_session(id);
    }
    let connection = id.and_then(|(_, id)| lock(&shared.streams.0).get(&*id).cloned());
    // The id of a connection stands in addresses, which others may read: it lets nobody spend the key with
    // which the connection was opened. Only one that was opened without a key has nothing else to show.
    let own = |connection: &Arc<Connection>| {
        connection.owner == entry.requester.owner || entry.guest && connection.owner.is_anonymous()
    };
    let connection = connection.filter(own);
    let lost = || error_response(StatusCode::NOT_FOUND, FORBIDDEN, "Session not found");
    let connection = connection.ok_or_else(|| Box::new(lost()))?;
    if entry.guest {
        logging::record_user(&connection.owner);
    }
    let body = body::read(shared, &parts, body).await?;
    let message = parsing::parse(body.bytes, shared.config.limits.body).await;
    let message = message
        .map_err(|error| Box::new(rpc_error(StatusCode::BAD_REQUEST, &Value::Null, &error)))?;
    if message
        .as_array()
        .is_some_and(|batch| batch.len() > LARGEST_BATCH)
    {
        let why = format!("a batch has at most {LARGEST_BATCH} messages");
        return Err(Box::new(bad_request(&why)));
    }
    if calls_tool(&message) {
        connection.activity.set(Use::Guest);
    }
    if let Some(allowance) = &entry.requester.allowance {
        let allowed = allowance.count_requests(requests(&message) as u64).await;
        allowed.map_err(|over| {
            tracing::info!(limit = over.limit, "denied: over a limit");
            Box::new(limit_exceeded(&Value::Null, &over))
        })?;
    }
    deliver(&connection, &message).await?;
    let mut answer = Response::new(Body::from("Accepted"));
    *answer.status_mut() = StatusCode::ACCEPTED;
    Ok(answer)
}

async fn deliver(connection: &Connection, message: &Value) -> Result<(), Refused> {
    let requests = requests(message);
    let mut input = connection.input.lock().await;
    let backlog = &connection.backlog;
    let is_full = backlog.messages().saturating_add(requests) > MAX_WAITING_MESSAGES
        || backlog.bytes() > MAX_WAITING_BYTES;
    // A client must always be able to cancel what it waits for, and to answer what the server asks.
    if requests > 0 && is_full {
        let why = "Too many requests wait for their answers; read those first";
        return Err(Box::new(busy(
            StatusCode::TOO_MANY_REQUESTS,
            why,
            COME_BACK,
        )));
    }
    if let Some(meter) = &connection.meter {
        (0..requests).for_each(|_| meter.record_request());
        meter.commit().await;
    }
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    match timeout(PATIENCE, input.write_all(&line)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => {
            let why = "Session not found: its connection has ended";
            Err(Box::new(error_response(
                StatusCode::NOT_FOUND,
                FORBIDDEN,
                why,
            )))
        }
        Err(_) => {
            let why = "The server is too busy to take this message";
            let code = ErrorCode::INTERNAL_ERROR.0;
            Err(Box::new(error_response(
                StatusCode::SERVICE_UNAVAILABLE,
                code,
                why,
            )))
        }
    }
}

/// Whether a message, or one in a batch, calls a tool.
fn calls_tool(message: &Value) -> bool {
    let calls = |message: &Value| {
        message
            .get("method")
            .is_some_and(|method| method == "tools/call")
    };
    match message {
        Value::Array(members) => members.iter().any(calls),
        single => calls(single),
    }
}

/// How many answers a message wants.
fn requests(message: &Value) -> usize {
    let is_request =
        |message: &Value| message.get("id").is_some() && message.get("method").is_some();
    match message {
        Value::Array(members) => members.iter().filter(|member| is_request(member)).count(),
        single => usize::from(is_request(single)),
    }
}

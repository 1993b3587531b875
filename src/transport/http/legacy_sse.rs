//! `/sse` and `/messages`: the HTTP+SSE transport of protocol 2024-11-05.
//!
//! The client receives all messages on one stream and posts its own. The connection itself is
//! line-delimited, as over standard input and output.

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

use super::McpBackend;
use super::admission::{client_address, mark_verified, requested_tools};
use super::auth::KEY_QUERY_PARAMETER;
use super::body::{self, until_cancelled, until_credential_ends, with_slot};
use super::body_json;
use super::fair_slots::{Activity, ActivityKind};
use super::state::HttpState;
use super::streamable::MAX_BATCH_SIZE;
use crate::http_response::{
    FORBIDDEN, HttpRejection, bad_request, busy, error_response, error_without_id, limit_exceeded,
};
use crate::telemetry::logging;
use crate::transport::Backlog;
use exa_mcp_accounts::usage::UsageMeter;
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::{Identity, ids, lock};

/// The buffer size between a connection and the handler.
const BUFFER: usize = 64 * 1024;

/// The maximum number of pending requests and unread messages of a connection.
const MAX_WAITING_MESSAGES: usize = 256;

/// A connection with this many bytes of unread messages accepts no more requests.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// How long the handler may take to accept a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The `Retry-After` value when the server is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The open connections by id.
#[derive(Default)]
pub(super) struct SseConnections(Mutex<HashMap<String, Arc<SseConnection>>>);

struct SseConnection {
    owner: Identity,
    input: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    meter: Option<UsageMeter>,
    backlog: Arc<Backlog>,
    /// Idle until the first tool call.
    activity: Arc<Activity>,
}

impl SseConnections {
    /// Returns the number of connections.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    /// Returns the owner of each connection.
    pub(super) fn owners(&self) -> Vec<Identity> {
        let open = lock(&self.0);
        open.values()
            .map(|connection| connection.owner.clone())
            .collect()
    }
}

/// Removes a connection from the table when its stream ends.
struct Registration {
    connections: Arc<SseConnections>,
    id: String,
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.connections.0).remove(&self.id);
    }
}

/// Handles `GET /sse`: opens a connection.
pub(super) async fn connect<M: McpBackend>(
    State(state): State<Arc<HttpState<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let opened = (|| {
        let mut auth = state
            .auth_mode
            .authenticate(&parts, client_address(&state, &parts))?;
        logging::record_user(&auth.requester.owner);
        auth.requester.tools = requested_tools(&state, &parts, &auth.requester)?;
        mark_verified(&parts, &auth);
        let credential = auth.requester.credential.clone();
        let activity = Arc::new(Activity::default());
        let slot = state.reserve_stream(&auth.requester, &activity)?;
        let limits = &state.config.limits;
        if state.draining.is_cancelled() || state.sse_connections.count() >= limits.sessions {
            let reason = "Too many connections, or the server is shutting down";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(Box::new(busy(status, reason, RETRY_AFTER)));
        }
        let id = ids::random_id().map_err(|error| Box::new(bad_request(&error.to_string())))?;
        let (ours, theirs) = duplex(BUFFER);
        let (output, input) = tokio::io::split(ours);
        let backlog = Arc::new(Backlog::default());
        let connection = Arc::new(SseConnection {
            owner: auth.requester.owner.clone(),
            input: tokio::sync::Mutex::new(input),
            meter: auth.requester.meter.clone(),
            backlog: Arc::clone(&backlog),
            activity: Arc::clone(&activity),
        });
        lock(&state.sse_connections.0).insert(id.clone(), connection);
        let key = auth.requester.key.clone().filter(|_| auth.key_from_url);
        tokio::spawn(
            state
                .mcp
                .serve_connection(auth.requester, &id, theirs, backlog),
        );
        let endpoint = endpoint(&id, key.as_ref());
        let registration = Registration {
            connections: Arc::clone(&state.sse_connections),
            id,
        };
        let events = events(registration, endpoint, output, limits.keep_alive);
        Ok((events, credential, slot))
    })();
    match opened {
        Ok((events, credential, slot)) => {
            let body = Body::new(StreamBody::new(events));
            let body = until_cancelled(body, state.draining.clone());
            sse_response(with_slot(until_credential_ends(body, credential), slot))
        }
        Err(rejection) => {
            let rejection: HttpRejection = rejection;
            *rejection
        }
    }
}

fn sse_response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let stream = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, stream);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Returns the URL for posting messages. A client whose key is in the URL sends it nowhere else, so this
/// URL contains the key too.
fn endpoint(id: &str, key: Option<&ApiKey>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("sessionId", id);
    if let Some(key) = key {
        query.append_pair(KEY_QUERY_PARAMETER, key.expose());
    }
    format!("/messages?{}", query.finish())
}

/// Returns the event stream: the endpoint URL, then all messages of the handler.
fn events(
    registration: Registration,
    endpoint: String,
    output: ReadHalf<DuplexStream>,
    keep_alive: Duration,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
    let endpoint = format!("event: endpoint\ndata: {endpoint}\n\n");
    let lines = BufReader::new(output).lines();
    let state = (registration, lines);
    let messages = stream::unfold(state, move |(registration, mut lines)| async move {
        let event = next_event(&mut lines, keep_alive).await?;
        Some((event, (registration, lines)))
    });
    let events = stream::iter([endpoint]).chain(messages);
    events.map(|event| Ok(Frame::data(Bytes::from(event))))
}

async fn next_event(
    lines: &mut Lines<BufReader<ReadHalf<DuplexStream>>>,
    keep_alive: Duration,
) -> Option<String> {
    match timeout(keep_alive, lines.next_line()).await {
        // A silent connection would look dead.
        Err(_) => Some(": ping\n\n".to_owned()),
        Ok(Ok(Some(line))) => Some(format!("event: message\ndata: {line}\n\n")),
        Ok(_) => None,
    }
}

/// Handles `POST /messages?sessionId=…`: receives a message.
pub(super) async fn post<M: McpBackend>(
    State(state): State<Arc<HttpState<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    match handle_post(&state, request).await {
        Ok(response) => response,
        Err(rejection) => *rejection,
    }
}

async fn handle_post<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    request: Request<Body>,
) -> Result<Response<Body>, HttpRejection> {
    let (parts, body) = request.into_parts();
    let auth = state
        .auth_mode
        .authenticate(&parts, client_address(state, &parts))?;
    if !auth.is_anonymous {
        logging::record_user(&auth.requester.owner);
    }
    mark_verified(&parts, &auth);
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let id = pairs.find(|(name, _)| name == "sessionId" || name == "session_id");
    if let Some((_, id)) = &id {
        logging::record_session(id);
    }
    let connection = id.and_then(|(_, id)| lock(&state.sse_connections.0).get(&*id).cloned());
    // Connection ids appear in URLs, which others may read. The id alone must not allow anyone to use the
    // key of the connection, unless the connection was opened without a key.
    let is_owner = |connection: &Arc<SseConnection>| {
        connection.owner == auth.requester.owner
            || auth.is_anonymous && connection.owner.is_anonymous()
    };
    let connection = connection.filter(is_owner);
    let not_found = || error_without_id(StatusCode::NOT_FOUND, FORBIDDEN, "Session not found");
    let connection = connection.ok_or_else(|| Box::new(not_found()))?;
    if auth.is_anonymous {
        logging::record_user(&connection.owner);
    }
    let body = body::read_json_body(state, &parts, body).await?;
    let message = body_json::parse(body.bytes, state.config.limits.body).await;
    let message = message.map_err(|error| {
        Box::new(error_response(
            StatusCode::BAD_REQUEST,
            &Value::Null,
            &error,
        ))
    })?;
    if message
        .as_array()
        .is_some_and(|batch| batch.len() > MAX_BATCH_SIZE)
    {
        let reason = format!("a batch has at most {MAX_BATCH_SIZE} messages");
        return Err(Box::new(bad_request(&reason)));
    }
    if calls_tool(&message) {
        connection.activity.set(ActivityKind::Anonymous);
    }
    if let Some(allowance) = &auth.requester.allowance {
        let allowed = allowance
            .count_requests(count_requests(&message) as u64)
            .await;
        allowed.map_err(|exceeded| {
            tracing::info!(limit = exceeded.limit, "denied: limit exceeded");
            Box::new(limit_exceeded(&Value::Null, &exceeded))
        })?;
    }
    deliver(&connection, &message).await?;
    let mut response = Response::new(Body::from("Accepted"));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

async fn deliver(connection: &SseConnection, message: &Value) -> Result<(), HttpRejection> {
    let requests = count_requests(message);
    let mut input = connection.input.lock().await;
    let backlog = &connection.backlog;
    let is_full = backlog.messages().saturating_add(requests) > MAX_WAITING_MESSAGES
        || backlog.bytes() > MAX_WAITING_BYTES;
    // A client must always be able to cancel requests and to respond to the server.
    if requests > 0 && is_full {
        let reason = "Too many pending requests; read their responses first";
        return Err(Box::new(busy(
            StatusCode::TOO_MANY_REQUESTS,
            reason,
            RETRY_AFTER,
        )));
    }
    if let Some(meter) = &connection.meter {
        (0..requests).for_each(|_| meter.record_request());
        meter.commit().await;
    }
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    match timeout(WRITE_TIMEOUT, input.write_all(&line)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => {
            let reason = "Session not found: its connection is closed";
            Err(Box::new(error_without_id(
                StatusCode::NOT_FOUND,
                FORBIDDEN,
                reason,
            )))
        }
        Err(_) => {
            let reason = "The server is too busy to accept this message";
            let code = ErrorCode::INTERNAL_ERROR.0;
            Err(Box::new(error_without_id(
                StatusCode::SERVICE_UNAVAILABLE,
                code,
                reason,
            )))
        }
    }
}

/// Returns whether a message, or any message of a batch, calls a tool.
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

/// Returns the number of requests in a message or batch.
fn count_requests(message: &Value) -> usize {
    let is_request =
        |message: &Value| message.get("id").is_some() && message.get("method").is_some();
    match message {
        Value::Array(members) => members.iter().filter(|member| is_request(member)).count(),
        single => usize::from(is_request(single)),
    }
}

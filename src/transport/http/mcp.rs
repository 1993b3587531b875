//! `/mcp`: Streamable HTTP.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use futures_util::future::join_all;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::Value;

use super::Mcp;
use super::admission::{Visit, admit, not_admitted, visit};
use super::body::{self, holding, until, while_placed, while_valid};
use super::fair_places::Use;
use super::gate::strip;
use super::in_session;
use super::incoming::{self, Content, Stopped};
use super::outgoing::{Accepts, Answer, finish, only_answer};
use super::parsing;
use super::request_ids::Turn;
use super::sessions::NotAdmitted;
use super::state::Shared;
use crate::http_response::{
    bad_request, denied, empty_response, error_response, json_response, limit_error,
    limit_exceeded, rpc_error,
};
use crate::mcp::request::SESSION_HEADER;
use crate::telemetry::logging;
use exa_mcp_accounts::{Credential, daily};
use exa_mcp_model::LimitExceeded;

/// The header that names the last event that came of a stream.
const LAST_EVENT: &str = "last-event-id";

/// The most messages in one batch.
pub(super) const LARGEST_BATCH: usize = 100;

type Refused = Box<Response<Body>>;

/// Answers a request to `/mcp`.
pub(super) async fn serve<M: Mcp>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let answer = match parts.method {
        Method::POST => post(&shared, parts, body).await,
        Method::GET => get(&shared, parts).await,
        Method::DELETE => delete(&shared, parts).await,
        _ => {
            let mut answer = Response::new(Body::from("Method not allowed"));
            *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let allow = HeaderValue::from_static("GET, POST, DELETE");
            answer.headers_mut().insert(header::ALLOW, allow);
            Ok(answer)
        }
    };
    answer.unwrap_or_else(|refused| *refused)
}

async fn post<M: Mcp>(
    shared: &Arc<Shared<M>>,
    parts: Parts,
    body: Body,
) -> Result<Response<Body>, Refused> {
    let visit = visit(shared, parts).await?;
    let flight = shared.flights.enter();
    let body = body::read(shared, &visit.parts, body).await?;
    if visit.accepts == Accepts::Nothing {
        let why = "Invalid request: accept application/json and text/event-stream";
        let code = ErrorCode::INVALID_REQUEST.0;
        return Err(Box::new(error_response(
            StatusCode::NOT_ACCEPTABLE,
            code,
            why,
        )));
    }
    let _memory = body.memory;
    let parsed = parsing::parse(body.bytes, shared.config.limits.body).await;
    let value = parsed
        .map_err(|error| Box::new(rpc_error(StatusCode::BAD_REQUEST, &Value::Null, &error)))?;
    let credential = visit.entry.requester.credential.clone();
    let served = async {
        match value {
            Value::Array(members) => batch(shared, &visit, members).await,
            value => single(shared, &visit, value).await,
        }
    };
    let answer = while_admitted(credential.as_ref(), served).await?;
    let held = (visit.session, flight);
    Ok(answer.map(|body| holding(while_valid(body, credential), held)))
}

/// Waits for an answer as long as the credential of its request is valid.
async fn while_admitted(
    credential: Option<&Credential>,
    served: impl Future<Output = Result<Response<Body>, Refused>>,
) -> Result<Response<Body>, Refused> {
    let Some(credential) = credential else {
        return served.await;
    };
    tokio::select! {
        // The handler stops with the credential, too; the status says so only if this is looked at first.
        biased;
        why = credential.wait_until_invalid() => Err(Box::new(denied(why, true))),
        answer = served => answer,
    }
}

async fn single<M: Mcp>(
    shared: &Arc<Shared<M>>,
    visit: &Visit,
    value: Value,
) -> Result<Response<Body>, Refused> {
    let message = match incoming::check(value, visit.reader().await) {
        Ok(message) => message,
        Err(Stopped::Ignored) => return Ok(empty_response(StatusCode::ACCEPTED)),
        Err(Stopped::Refused { status, id, error }) => {
            count_refused(visit, &id).await;
            return Ok(rpc_error(status, &id, &error));
        }
    };
    let Some(asked) = message.request else {
        let answer = forward(shared, visit, message.content).await;
        return Ok(finish(answer, None, visit.accepts).await);
    };
    logging::record_rpc_id(&asked.id);
    within_limits(visit, &asked.id).await?;
    let turn = turn(shared, visit, &asked.id).await;
    if asked.method == "initialize" {
        begin(shared, visit, &asked.id).await?;
    }
    note_call(shared, visit, &asked.method);
    let place = match asked.method.as_str() {
        "subscriptions/listen" => shared.guest_stream(&visit.entry.requester, &Arc::default())?,
        _ => None,
    };
    let meter = visit.entry.requester.meter.as_ref();
    if let Some(meter) = meter {
        meter.record_request();
    }
    let started = Instant::now();
    let answer = forward(shared, visit, message.content).await;
    let answer = finish(answer, Some(&asked.id), visit.accepts).await;
    super::observe::served(&asked.method, answer.status(), started.elapsed());
    if let (Some(level), Some((id, _))) = (asked.level, &visit.session) {
        shared.sessions.note_level(id, &level).await;
    }
    // A call counts itself at its end, with what it came to; everything else is counted here, before
    // the answer leaves.
    if let Some(meter) = meter {
        let counts_itself = asked.method == "tools/call" && !is_json(&answer);
        if !counts_itself {
            meter.commit().await;
        }
    }
    Ok(answer.map(|body| while_placed(holding(body, turn), place)))
}

/// Waits for other requests of the session with the same id.
async fn turn<M: Mcp>(shared: &Shared<M>, visit: &Visit, id: &Value) -> Option<Turn> {
    let (session, _) = visit.session.as_ref()?;
    Some(shared.request_ids.enter(session, id).await)
}

/// Counts a request that is refused before anybody could serve it. What has no id is no request.
async fn count_refused(visit: &Visit, id: &Value) {
    if let Some(meter) = visit
        .entry
        .requester
        .meter
        .as_ref()
        .filter(|_| !id.is_null())
    {
        meter.record_request();
        meter.add(daily::ERRORS, 1);
        meter.commit().await;
    }
}

/// Counts a request towards what its token may make a minute.
async fn within_limits(visit: &Visit, id: &Value) -> Result<(), Refused> {
    let Some(allowance) = &visit.entry.requester.allowance else {
        return Ok(());
    };
    let allowed = allowance.count_requests(1).await;
    allowed.map_err(|over| {
        note_limited(&over);
        Box::new(limit_exceeded(id, &over))
    })
}

/// Says in the log that a limit is reached; whose it is, every line of the request says.
fn note_limited(over: &LimitExceeded) {
    tracing::info!(limit = over.limit, "denied: over a limit");
}

fn is_json(answer: &Response<Body>) -> bool {
    let content = answer.headers().get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/json"))
}

/// Whether a session may begin.
async fn begin<M: Mcp>(shared: &Shared<M>, visit: &Visit, id: &Value) -> Result<(), Refused> {
    if visit.session.is_some() {
        let why = "Invalid request: this session is already initialized";
        let error = ErrorData::invalid_request(why, None);
        return Err(Box::new(rpc_error(StatusCode::BAD_REQUEST, id, &error)));
    }
    let room = shared.sessions.make_room(&visit.entry.requester).await;
    room.map_err(|why| not_admitted(NotAdmitted::NoRoom(why)))
}

/// Notes that a session calls a tool: it ends later than one that never did.
fn note_call<M: Mcp>(shared: &Shared<M>, visit: &Visit, method: &str) {
    let session = visit.session.as_ref().filter(|_| method == "tools/call");
    if let Some(activity) = session.and_then(|(id, _)| shared.sessions.activity(id))
        && activity.get() == Use::Idle
    {
        activity.set(Use::Guest);
    }
}

/// Hands a message to rmcp, without what it need not know.
async fn forward<M: Mcp>(shared: &Shared<M>, visit: &Visit, content: Content) -> Answer {
    let mut parts = visit.parts.clone();
    strip(&mut parts);
    parts.extensions.insert(visit.entry.requester.clone());
    let body = match (content, &visit.session) {
        (Content::Read(id, request), Some((session, _))) => {
            let keep_alive = shared.config.limits.keep_alive;
            let asked = in_session::ask(&shared.sessions, session, id, *request, parts, keep_alive);
            return asked.await;
        }
        // Without a session nothing is read for one.
        (Content::Read(..), None) => Bytes::new(),
        (Content::Written(body), _) => body,
    };
    let both = HeaderValue::from_static("application/json, text/event-stream");
    parts.headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    parts.headers.insert(header::CONTENT_TYPE, json);
    parts.headers.remove(header::CONTENT_LENGTH);
    if visit.modern {
        parts.headers.remove(SESSION_HEADER);
    }
    let request = Request::from_parts(parts, Full::new(body));
    shared.mcp.answer(request).await
}

/// Several messages as one array: 2025-03-26 has that.
async fn batch<M: Mcp>(
    shared: &Arc<Shared<M>>,
    visit: &Visit,
    members: Vec<Value>,
) -> Result<Response<Body>, Refused> {
    let version = visit
        .session
        .as_ref()
        .and_then(|(id, _)| shared.sessions.version(id));
    let begins =
        |member: &Value| member.get("method").and_then(Value::as_str) == Some("initialize");
    let why = if members.is_empty() {
        "a batch must not be empty"
    } else if version != Some(ProtocolVersion::V_2025_03_26) {
        "batches belong to protocol 2025-03-26 alone, after initialize"
    } else if members.len() > LARGEST_BATCH {
        "a batch has at most 100 messages"
    } else if members.iter().any(begins) {
        "initialize must not be in a batch"
    } else {
        let members = members
            .into_iter()
            .map(|member| member_answer(shared, visit, member));
        let answers: Vec<Value> = join_all(members).await.into_iter().flatten().collect();
        return Ok(match answers.is_empty() {
            true => empty_response(StatusCode::ACCEPTED),
            false => json_response(StatusCode::OK, &Value::Array(answers)),
        });
    };
    Err(Box::new(bad_request(why)))
}

/// The answer to one message of a batch, if it wants one.
async fn member_answer<M: Mcp>(
    shared: &Arc<Shared<M>>,
    visit: &Visit,
    member: Value,
) -> Option<Value> {
    let message = match incoming::check(member, visit.reader().await) {
        Ok(message) => message,
        Err(Stopped::Ignored) => return None,
        Err(Stopped::Refused { id, error, .. }) => {
            count_refused(visit, &id).await;
            return Some(serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    let Some(asked) = message.request else {
        forward(shared, visit, message.content).await;
        return None;
    };
    if let Some(allowance) = &visit.entry.requester.allowance
        && let Err(over) = allowance.count_requests(1).await
    {
        note_limited(&over);
        let error = limit_error(&over);
        return Some(serde_json::json!({"jsonrpc": "2.0", "id": asked.id, "error": error}));
    }
    if let Some(meter) = &visit.entry.requester.meter {
        meter.record_request();
        meter.commit().await;
    }
    let _turn = turn(shared, visit, &asked.id).await;
    note_call(shared, visit, &asked.method);
    let answer = forward(shared, visit, message.content).await;
    let answer = only_answer(answer.into_body(), &asked.id).await;
    serde_json::from_slice(&answer).ok()
}

/// A stream for what the server has to say by itself, or the rest of one that was cut.
async fn get<M: Mcp>(shared: &Arc<Shared<M>>, parts: Parts) -> Result<Response<Body>, Refused> {
    let visit = visit(shared, parts).await?;
    let credential = visit.entry.requester.credential.clone();
    let session = visit.session.as_ref();
    let activity = session.and_then(|(id, _)| shared.sessions.activity(id));
    let place = shared.guest_stream(&visit.entry.requester, &activity.unwrap_or_default())?;
    let answer = match listened(shared, &visit).await {
        Some(answer) => answer,
        None => {
            let mut parts = visit.parts;
            strip(&mut parts);
            parts.extensions.insert(visit.entry.requester);
            let request = Request::from_parts(parts, Full::default());
            shared.mcp.answer(request).await
        }
    };
    let answer = finish(answer, None, Accepts::Streams).await;
    let (held, end) = (visit.session, shared.draining.clone());
    Ok(answer.map(|body| {
        let body = holding(while_valid(until(body, end), credential), held);
        while_placed(body, place)
    }))
}

/// The stream of a session that runs, or the rest of one that was cut. What else is asked for is for rmcp
/// to refuse.
async fn listened<M: Mcp>(shared: &Shared<M>, visit: &Visit) -> Option<Answer> {
    let (session, held) = visit.session.as_ref()?;
    let suits = visit.accepts == Accepts::Streams && in_session::suits(&visit.parts);
    if !suits || !held.is_running().await {
        return None;
    }
    let last = visit.parts.headers.get(LAST_EVENT);
    let last = last.and_then(|last| last.to_str().ok());
    let keep_alive = shared.config.limits.keep_alive;
    Some(in_session::listen(&shared.sessions, session, last, keep_alive).await)
}

/// Ends a session.
async fn delete<M: Mcp>(shared: &Arc<Shared<M>>, parts: Parts) -> Result<Response<Body>, Refused> {
    let (visit, _) = admit(shared, parts).await?;
    if let Some((id, _)) = &visit.session {
        let owner = &visit.entry.requester.owner;
        let forgotten = shared.sessions.forget(id, owner).await;
        forgotten.map_err(not_admitted)?;
    }
    let mut parts = visit.parts;
    strip(&mut parts);
    let request = Request::from_parts(parts, Full::default());
    let answer = shared.mcp.answer(request).await;
    if answer.status().is_success() {
        return Ok(empty_response(StatusCode::NO_CONTENT));
    }
    Ok(finish(answer, None, Accepts::Streams).await)
}

//! Streamable HTTP at `/mcp`.

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

use super::McpBackend;
use super::admission::{AdmittedRequest, admit, authenticate, session_rejection};
use super::auth::strip_credentials;
use super::body::{self, until_cancelled, until_credential_ends, with_guard, with_slot};
use super::body_json;
use super::fair_slots::ActivityKind;
use super::message_check::{self, MessageBody, MessageRejection};
use super::request_ids::RequestIdGuard;
use super::response::{AcceptedFormat, McpResponse, convert, extract_response};
use super::session_requests;
use super::sessions::{SessionError, SessionStream};
use super::state::HttpState;
use crate::http_response::{
    HttpRejection, bad_request, denied, empty_response, error_response, error_without_id,
    json_response, limit_error, limit_exceeded,
};
use crate::mcp::request::{SESSION_HEADER, SessionConnection};
use crate::telemetry::logging;
use exa_mcp_accounts::{Credential, daily};
use exa_mcp_model::LimitExceeded;

/// The header with the id of the last event that the client received.
const LAST_EVENT_ID: &str = "last-event-id";

/// The maximum number of messages in a batch.
pub(super) const MAX_BATCH_SIZE: usize = 100;

/// Handles a request to `/mcp`.
pub(super) async fn serve<M: McpBackend>(
    State(state): State<Arc<HttpState<M>>>,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let response = match parts.method {
        Method::POST => post(&state, parts, body).await,
        Method::GET => get(&state, parts).await,
        Method::DELETE => delete(&state, parts).await,
        _ => {
            let mut response = Response::new(Body::from("Method not allowed"));
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            let allow = HeaderValue::from_static("GET, POST, DELETE");
            response.headers_mut().insert(header::ALLOW, allow);
            Ok(response)
        }
    };
    response.unwrap_or_else(|rejection| *rejection)
}

async fn post<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    parts: Parts,
    body: Body,
) -> Result<Response<Body>, HttpRejection> {
    let admitted = admit(state, parts).await?;
    let in_flight = state.in_flight.start();
    let body = body::read_json_body(state, &admitted.parts, body).await?;
    if admitted.accepts == AcceptedFormat::Unsupported {
        let reason = "Invalid request: accept application/json and text/event-stream";
        let code = ErrorCode::INVALID_REQUEST.0;
        return Err(Box::new(error_without_id(
            StatusCode::NOT_ACCEPTABLE,
            code,
            reason,
        )));
    }
    let _memory = body.memory;
    let parsed = body_json::parse(body.bytes, state.config.limits.body).await;
    let value = parsed.map_err(|error| {
        Box::new(error_response(
            StatusCode::BAD_REQUEST,
            &Value::Null,
            &error,
        ))
    })?;
    let credential = admitted.auth.requester.credential.clone();
    let response = async {
        match value {
            Value::Array(members) => serve_batch(state, &admitted, members).await,
            value => serve_single(state, &admitted, value).await,
        }
    };
    let response = while_credential_valid(credential.as_ref(), response).await?;
    let guards = (admitted.session, in_flight);
    Ok(response.map(|body| with_guard(until_credential_ends(body, credential), guards)))
}

/// Waits for a response while the credential of the request is valid.
async fn while_credential_valid(
    credential: Option<&Credential>,
    response: impl Future<Output = Result<Response<Body>, HttpRejection>>,
) -> Result<Response<Body>, HttpRejection> {
    let Some(credential) = credential else {
        return response.await;
    };
    tokio::select! {
        // The handler stops with the credential too, but only this branch returns the right status.
        biased;
        reason = credential.wait_until_invalid() => Err(Box::new(denied(reason, true))),
        response = response => response,
    }
}

async fn serve_single<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    admitted: &AdmittedRequest,
    value: Value,
) -> Result<Response<Body>, HttpRejection> {
    let message = match message_check::check(value, admitted.target().await) {
        Ok(message) => message,
        Err(MessageRejection::Ignored) => return Ok(empty_response(StatusCode::ACCEPTED)),
        Err(MessageRejection::Invalid { status, id, error }) => {
            count_rejected(admitted, &id).await;
            return Ok(error_response(status, &id, &error));
        }
    };
    let Some(info) = message.request else {
        let response = forward(state, admitted, message.body).await;
        return Ok(convert(response, None, admitted.accepts).await);
    };
    logging::record_rpc_id(&info.id);
    check_rate_limit(admitted, &info.id).await?;
    let id_guard = reserve_request_id(state, admitted, &info.id).await;
    if info.method == "initialize" {
        check_initialize(state, admitted, &info.id).await?;
    }
    mark_tool_call(state, admitted, &info.method);
    let slot = match info.method.as_str() {
        "subscriptions/listen" => {
            state.reserve_stream(&admitted.auth.requester, &Arc::default())?
        }
        _ => None,
    };
    let meter = admitted.auth.requester.meter.as_ref();
    if let Some(meter) = meter {
        meter.record_request();
    }
    let started = Instant::now();
    let response = forward(state, admitted, message.body).await;
    let response = convert(response, Some(&info.id), admitted.accepts).await;
    super::request_metrics::record_rpc(&info.method, response.status(), started.elapsed());
    if let (Some(level), Some((id, _))) = (info.level, &admitted.session) {
        state.sessions.record_level(id, &level).await;
    }
    // A tool call records its usage when it ends. Everything else is recorded here, before the response is
    // sent.
    if let Some(meter) = meter {
        let counts_itself = info.method == "tools/call" && !is_json(&response);
        if !counts_itself {
            meter.commit().await;
        }
    }
    Ok(response.map(|body| with_slot(with_guard(body, id_guard), slot)))
}

/// Waits for other requests of the session with the same id.
async fn reserve_request_id<M: McpBackend>(
    state: &HttpState<M>,
    admitted: &AdmittedRequest,
    id: &Value,
) -> Option<RequestIdGuard> {
    let (session, _) = admitted.session.as_ref()?;
    Some(state.request_ids.acquire(session, id).await)
}

/// Records a rejected request. A message without an id is not a request.
async fn count_rejected(admitted: &AdmittedRequest, id: &Value) {
    if let Some(meter) = admitted
        .auth
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

/// Counts a request against the rate limit of its token.
async fn check_rate_limit(admitted: &AdmittedRequest, id: &Value) -> Result<(), HttpRejection> {
    let Some(allowance) = &admitted.auth.requester.allowance else {
        return Ok(());
    };
    let allowed = allowance.count_requests(1).await;
    allowed.map_err(|exceeded| {
        log_limit(&exceeded);
        Box::new(limit_exceeded(id, &exceeded))
    })
}

/// Logs an exceeded limit. The span of the request names the user.
fn log_limit(exceeded: &LimitExceeded) {
    tracing::info!(limit = exceeded.limit, "denied: limit exceeded");
}

fn is_json(response: &Response<Body>) -> bool {
    let content = response.headers().get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/json"))
}

/// Checks whether a new session may start.
async fn check_initialize<M: McpBackend>(
    state: &HttpState<M>,
    admitted: &AdmittedRequest,
    id: &Value,
) -> Result<(), HttpRejection> {
    if admitted.session.is_some() {
        let reason = "Invalid request: this session is already initialized";
        let error = ErrorData::invalid_request(reason, None);
        return Err(Box::new(error_response(
            StatusCode::BAD_REQUEST,
            id,
            &error,
        )));
    }
    let capacity = state
        .sessions
        .ensure_capacity(&admitted.auth.requester)
        .await;
    capacity.map_err(|reason| session_rejection(SessionError::LimitReached(reason)))
}

/// Records that a session calls a tool. Such sessions are evicted later than others.
fn mark_tool_call<M: McpBackend>(state: &HttpState<M>, admitted: &AdmittedRequest, method: &str) {
    let session = admitted.session.as_ref().filter(|_| method == "tools/call");
    if let Some(activity) = session.and_then(|(id, _)| state.sessions.activity(id))
        && activity.get() == ActivityKind::Idle
    {
        activity.set(ActivityKind::Anonymous);
    }
}

/// Passes a message on without credentials.
async fn forward<M: McpBackend>(
    state: &HttpState<M>,
    admitted: &AdmittedRequest,
    body: MessageBody,
) -> McpResponse {
    let mut parts = admitted.parts.clone();
    strip_credentials(&mut parts);
    parts.extensions.insert(admitted.auth.requester.clone());
    let body = match (body, &admitted.session) {
        (MessageBody::Decoded(id, request), Some((session, _))) => {
            let keep_alive = state.config.limits.keep_alive;
            let response = session_requests::send_request(
                &state.sessions,
                session,
                id,
                *request,
                parts,
                keep_alive,
            );
            return response.await;
        }
        // Without a session nothing is decoded for one.
        (MessageBody::Decoded(..), None) => Bytes::new(),
        (MessageBody::Json(body), _) => body,
    };
    let session = admitted.session.as_ref();
    if let Some(stream) = session.and_then(|(id, _)| SessionStream::new(&state.sessions, id)) {
        let connection = SessionConnection(Arc::new(stream));
        parts.extensions.insert(connection);
    }
    let both = HeaderValue::from_static("application/json, text/event-stream");
    parts.headers.insert(header::ACCEPT, both);
    let json = HeaderValue::from_static("application/json");
    parts.headers.insert(header::CONTENT_TYPE, json);
    parts.headers.remove(header::CONTENT_LENGTH);
    if admitted.is_stateless {
        parts.headers.remove(SESSION_HEADER);
    }
    let request = Request::from_parts(parts, Full::new(body));
    state.mcp.handle(request).await
}

/// Serves a batch, which only 2025-03-26 has.
async fn serve_batch<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    admitted: &AdmittedRequest,
    members: Vec<Value>,
) -> Result<Response<Body>, HttpRejection> {
    let version = admitted
        .session
        .as_ref()
        .and_then(|(id, _)| state.sessions.version(id));
    let is_initialize =
        |member: &Value| member.get("method").and_then(Value::as_str) == Some("initialize");
    let reason = if members.is_empty() {
        "a batch must not be empty"
    } else if version != Some(ProtocolVersion::V_2025_03_26) {
        "batches are only supported by protocol 2025-03-26, after initialize"
    } else if members.len() > MAX_BATCH_SIZE {
        "a batch has at most 100 messages"
    } else if members.iter().any(is_initialize) {
        "initialize must not be in a batch"
    } else {
        let members = members
            .into_iter()
            .map(|member| serve_batch_member(state, admitted, member));
        let responses: Vec<Value> = join_all(members).await.into_iter().flatten().collect();
        return Ok(if responses.is_empty() {
            empty_response(StatusCode::ACCEPTED)
        } else {
            json_response(StatusCode::OK, &Value::Array(responses))
        });
    };
    Err(Box::new(bad_request(reason)))
}

/// Returns the response to one message of a batch, if it is a request.
async fn serve_batch_member<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    admitted: &AdmittedRequest,
    member: Value,
) -> Option<Value> {
    let message = match message_check::check(member, admitted.target().await) {
        Ok(message) => message,
        Err(MessageRejection::Ignored) => return None,
        Err(MessageRejection::Invalid { id, error, .. }) => {
            count_rejected(admitted, &id).await;
            return Some(serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    let Some(info) = message.request else {
        forward(state, admitted, message.body).await;
        return None;
    };
    if let Some(allowance) = &admitted.auth.requester.allowance
        && let Err(exceeded) = allowance.count_requests(1).await
    {
        log_limit(&exceeded);
        let error = limit_error(&exceeded);
        return Some(serde_json::json!({"jsonrpc": "2.0", "id": info.id, "error": error}));
    }
    if let Some(meter) = &admitted.auth.requester.meter {
        meter.record_request();
        meter.commit().await;
    }
    let _id_guard = reserve_request_id(state, admitted, &info.id).await;
    mark_tool_call(state, admitted, &info.method);
    let response = forward(state, admitted, message.body).await;
    let response = extract_response(response.into_body(), &info.id).await;
    serde_json::from_slice(&response).ok()
}

/// Opens the standalone stream of a session, or resumes a stream.
async fn get<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    parts: Parts,
) -> Result<Response<Body>, HttpRejection> {
    let admitted = admit(state, parts).await?;
    let credential = admitted.auth.requester.credential.clone();
    let session = admitted.session.as_ref();
    let activity = session.and_then(|(id, _)| state.sessions.activity(id));
    let slot = state.reserve_stream(&admitted.auth.requester, &activity.unwrap_or_default())?;
    let response = match session_stream(state, &admitted).await {
        Some(response) => response,
        None => {
            let mut parts = admitted.parts;
            strip_credentials(&mut parts);
            parts.extensions.insert(admitted.auth.requester);
            let request = Request::from_parts(parts, Full::default());
            state.mcp.handle(request).await
        }
    };
    let response = convert(response, None, AcceptedFormat::Stream).await;
    let (guard, end) = (admitted.session, state.draining.clone());
    Ok(response.map(|body| {
        let body = with_guard(
            until_credential_ends(until_cancelled(body, end), credential),
            guard,
        );
        with_slot(body, slot)
    }))
}

/// Returns the stream of a running session. rmcp rejects all other cases.
async fn session_stream<M: McpBackend>(
    state: &HttpState<M>,
    admitted: &AdmittedRequest,
) -> Option<McpResponse> {
    let (session, guard) = admitted.session.as_ref()?;
    let is_supported = admitted.accepts == AcceptedFormat::Stream
        && session_requests::supports_version(&admitted.parts);
    if !is_supported || !guard.is_running().await {
        return None;
    }
    let last = admitted.parts.headers.get(LAST_EVENT_ID);
    let last = last.and_then(|last| last.to_str().ok());
    let keep_alive = state.config.limits.keep_alive;
    Some(session_requests::open_event_stream(&state.sessions, session, last, keep_alive).await)
}

/// Ends a session.
async fn delete<M: McpBackend>(
    state: &Arc<HttpState<M>>,
    parts: Parts,
) -> Result<Response<Body>, HttpRejection> {
    let (admitted, _) = authenticate(state, parts).await?;
    if let Some((id, _)) = &admitted.session {
        let owner = &admitted.auth.requester.owner;
        let removed = state.sessions.remove_stored(id, owner).await;
        removed.map_err(session_rejection)?;
    }
    let mut parts = admitted.parts;
    strip_credentials(&mut parts);
    let request = Request::from_parts(parts, Full::default());
    let response = state.mcp.handle(request).await;
    if response.status().is_success() {
        return Ok(empty_response(StatusCode::NO_CONTENT));
    }
    Ok(convert(response, None, AcceptedFormat::Stream).await)
}

//! `/sandbox/…`: inspection and control of the sandbox, and the upload URLs of imports.

use axum::response::Response;
use serde_json::{Value, json};

use super::incoming::IncomingRequest;
use super::{ServerContext, response};
use crate::MARKER;
use crate::api_error::ApiError;
use crate::batches;
use crate::state::{LinkTarget, SandboxState};
use crate::time::{DAY, iso};
use crate::websets::imports;

/// Maximum step of the clock: ten years.
const MAX_CLOCK_STEP: u64 = 3_650 * DAY;

/// Handles a request to `/sandbox/{path}`.
pub(super) fn handle(
    context: &ServerContext,
    request: &IncomingRequest,
    path: &str,
    body: &[u8],
) -> Result<Response, ApiError> {
    let mut state = context.state();
    if let Some(token) = path.strip_prefix("uploads/") {
        upload(&mut state, request, token, body)?;
        // Storage services respond to an upload without a body.
        return Ok(Response::default());
    }
    if let Some(token) = path.strip_prefix("results/") {
        let lines = download(&mut state, request, token)?;
        return Ok(response::text("application/jsonl", lines));
    }
    let value = match (request.method(), path) {
        ("GET", "state") => describe_state(&mut state, context.routes.len()),
        ("POST", "reset") => {
            state.reset();
            json!({ "reset": true })
        }
        ("GET", "clock") => describe_clock(&state),
        ("POST", "clock") => set_clock(&mut state, &parse_body(body)?)?,
        ("GET", "faults") => json!({ "faults": state.faults.list() }),
        ("POST", "faults") => {
            let rule = parse_body(body)?;
            state.faults.add(&rule).map_err(ApiError::invalid)?
        }
        ("DELETE", "faults") => {
            state.faults.clear();
            json!({ "faults": [] })
        }
        ("GET", "requests") => json!({ "requests": state.log.last(parse_limit(request)?) }),
        ("DELETE", "requests") => {
            state.log.clear();
            json!({ "requests": [] })
        }
        (_, path) => return Err(unknown_path_or_method(path)),
    };
    Ok(response::json(200, value))
}

/// Accepts the file of an import.
fn upload(
    state: &mut SandboxState,
    request: &IncomingRequest,
    token: &str,
    file: &[u8],
) -> Result<(), ApiError> {
    if request.method() != "PUT" {
        return Err(method_not_allowed("PUT"));
    }
    refuse_key(request)?;
    match state.links.get(token).cloned() {
        Some((key, LinkTarget::Upload(import))) => {
            let uploaded =
                imports::upload(state.account(&key), &import, file, request.is_lenient());
            uploaded.ok_or_else(unknown_link)?
        }
        _ => Err(unknown_link()),
    }
}

/// Returns the results of a batch. The link works for a limited time.
fn download(
    state: &mut SandboxState,
    request: &IncomingRequest,
    token: &str,
) -> Result<String, ApiError> {
    if request.method() != "GET" {
        return Err(method_not_allowed("GET"));
    }
    refuse_key(request)?;
    let now = state.now();
    match state.links.get(token).cloned() {
        Some((key, LinkTarget::Results { batch, expires })) if now < expires => {
            batches::results(state.account(&key), &batch, MARKER).ok_or_else(unknown_link)
        }
        Some((_, LinkTarget::Results { .. })) => {
            let message = "This link has expired; get the batch again";
            Err(ApiError::new(403, "LINK_EXPIRED", message))
        }
        _ => Err(unknown_link()),
    }
}

/// Rejects a request with a key: at Exa, files are in a storage service that must not see API keys.
fn refuse_key(request: &IncomingRequest) -> Result<(), ApiError> {
    let headers = &request.parts.headers;
    if headers.contains_key("x-api-key") || headers.contains_key("authorization") {
        return Err(ApiError::invalid(
            "An API key was sent to a storage URL; it belongs to the API alone",
        ));
    }
    Ok(())
}

fn unknown_link() -> ApiError {
    ApiError::new(404, "NOT_FOUND", "This link is not known")
}

fn describe_state(state: &mut SandboxState, operations: usize) -> Value {
    let counts = state.counts();
    json!({
        "now": iso(state.now()),
        "operations": operations,
        "requests": state.log.count(),
        "faults": state.faults.list().len(),
        "keys": counts.len(),
        "objects": counts,
    })
}

fn describe_clock(state: &SandboxState) -> Value {
    json!({ "now": iso(state.now()), "frozen": state.clock.is_frozen() })
}

/// Advances the clock by `advanceMs`; `freeze` stops or restarts it. Only `advanceMs` moves a frozen
/// clock, so that tests do not depend on how fast they run.
fn set_clock(state: &mut SandboxState, body: &Value) -> Result<Value, ApiError> {
    let (advance, freeze) = (body.get("advanceMs"), body.get("freeze"));
    if advance.is_none() && freeze.is_none() {
        return Err(ApiError::invalid("advanceMs or freeze must be given"));
    }
    if let Some(freeze) = freeze {
        let freeze = freeze.as_bool();
        let freeze = freeze.ok_or_else(|| ApiError::invalid("freeze must be true or false"))?;
        state.clock.set_frozen(freeze);
    }
    if let Some(advance) = advance {
        let step = advance.as_u64().filter(|step| *step <= MAX_CLOCK_STEP);
        let step = step.ok_or_else(|| {
            ApiError::invalid(format!(
                "advanceMs must be a whole number up to {MAX_CLOCK_STEP}"
            ))
        })?;
        state.clock.advance(step);
    }
    Ok(describe_clock(state))
}

fn parse_body(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("The body is not JSON: {error}")))
}

fn parse_limit(request: &IncomingRequest) -> Result<usize, ApiError> {
    match request.query.iter().find(|(key, _)| key == "limit") {
        None => Ok(100),
        Some((_, value)) => value
            .parse()
            .map_err(|_| ApiError::invalid("limit must be a whole number")),
    }
}

fn unknown_path_or_method(path: &str) -> ApiError {
    method_not_allowed(match path {
        "state" => "GET",
        "reset" => "POST",
        "clock" => "GET, POST",
        "faults" => "GET, POST, DELETE",
        "requests" => "GET, DELETE",
        _ => {
            let known = "state, reset, clock, faults, requests, uploads/{token}, results/{token}";
            let message = format!("Nothing at /sandbox/{path}; there are: {known}");
            return ApiError::new(404, "NOT_FOUND", message);
        }
    })
}

fn method_not_allowed(allowed: &str) -> ApiError {
    ApiError::method_not_allowed(allowed, format!("Use {allowed} here"))
}

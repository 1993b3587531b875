//! `/sandbox/…`: what tests and people use to look into the sandbox and to steer it.

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::{Shared, uploads};
use crate::failure::Failure;
use crate::state::World;
use crate::time::{DAY, iso};

/// The clock moves by at most ten years at a time.
const LONGEST_JUMP: u64 = 3_650 * DAY;

/// A request to a path below `/sandbox/`.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// The path after `/sandbox/`.
    pub(super) path: &'a str,
    pub(super) query: &'a [(String, String)],
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) lenient: bool,
}

pub(super) fn answer(shared: &Shared, request: &Request<'_>) -> Result<Response, Failure> {
    let mut world = shared.world();
    if let Some(token) = request.path.strip_prefix("uploads/") {
        return upload(&mut world, token, request);
    }
    let value = match (request.method, request.path) {
        ("GET", "state") => state(&mut world, shared.routes.len()),
        ("POST", "reset") => {
            world.reset();
            json!({ "reset": true })
        }
        ("GET", "clock") => clock(&world),
        ("POST", "clock") => set_clock(&mut world, &body(request)?)?,
        ("GET", "faults") => json!({ "faults": world.faults.list() }),
        ("POST", "faults") => {
            let rule = body(request)?;
            world.faults.add(&rule).map_err(Failure::invalid)?
        }
        ("DELETE", "faults") => {
            world.faults.clear();
            json!({ "faults": [] })
        }
        ("GET", "requests") => json!({ "requests": world.log.last(limit(request)?) }),
        ("DELETE", "requests") => {
            world.log.clear();
            json!({ "requests": [] })
        }
        (_, path) => return Err(unknown(path)),
    };
    Ok(answer::json(200, value))
}

fn upload(world: &mut World, token: &str, request: &Request<'_>) -> Result<Response, Failure> {
    if request.method != "PUT" {
        return Err(other_method("PUT"));
    }
    let (headers, body) = (request.headers, request.body);
    uploads::put(world, token, headers, body, request.lenient)?;
    // Storage services answer an upload without a body.
    Ok(Response::default())
}

fn state(world: &mut World, operations: usize) -> Value {
    let counts = world.counts();
    json!({
        "now": iso(world.now()),
        "operations": operations,
        "requests": world.log.count(),
        "faults": world.faults.list().len(),
        "keys": counts.len(),
        "objects": counts,
    })
}

fn clock(world: &World) -> Value {
    json!({ "now": iso(world.now()), "frozen": world.clock.is_frozen() })
}

/// `advanceMs` moves the clock on, `freeze` stops it or lets it go: a frozen clock moves by
/// `advanceMs` alone, so that tests do not depend on how fast they run.
fn set_clock(world: &mut World, body: &Value) -> Result<Value, Failure> {
    let (advance, freeze) = (body.get("advanceMs"), body.get("freeze"));
    if advance.is_none() && freeze.is_none() {
        return Err(Failure::invalid("advanceMs or freeze must be given"));
    }
    if let Some(freeze) = freeze {
        let freeze = freeze.as_bool();
        let freeze = freeze.ok_or_else(|| Failure::invalid("freeze must be true or false"))?;
        world.clock.freeze(freeze);
    }
    if let Some(advance) = advance {
        let by = advance.as_u64().filter(|by| *by <= LONGEST_JUMP);
        let message = format!("advanceMs must be a whole number up to {LONGEST_JUMP}");
        world
            .clock
            .advance(by.ok_or_else(|| Failure::invalid(message))?);
    }
    Ok(clock(world))
}

fn body(request: &Request<'_>) -> Result<Value, Failure> {
    serde_json::from_slice(request.body)
        .map_err(|error| Failure::invalid(format!("The body is not JSON: {error}")))
}

fn limit(request: &Request<'_>) -> Result<usize, Failure> {
    match request.query.iter().find(|(key, _)| key == "limit") {
        None => Ok(100),
        Some((_, value)) => value
            .parse()
            .map_err(|_| Failure::invalid("limit must be a whole number")),
    }
}

fn unknown(path: &str) -> Failure {
    let allowed = match path {
        "state" => "GET",
        "reset" => "POST",
        "clock" => "GET, POST",
        "faults" => "GET, POST, DELETE",
        "requests" => "GET, DELETE",
        _ => {
            let known = "state, reset, clock, faults, requests, uploads/{token}";
            return Failure::new(
                404,
                "NOT_FOUND",
                format!("Nothing at /sandbox/{path}; there are: {known}"),
            );
        }
    };
    other_method(allowed)
}

fn other_method(allowed: &str) -> Failure {
    let mut failure = Failure::new(405, "METHOD_NOT_ALLOWED", format!("Use {allowed} here"));
    failure.headers.push(("allow", allowed.to_owned()));
    failure
}

//! One request from beginning to end.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value};

use super::arguments::{self, Raw};
use super::faults::{Cut, Fault, Shape, Target};
use super::log::Seen;
use super::routes::{Found, Operation};
use super::wire::Wire;
use super::{Shared, answer, control, query, stream};
use crate::call::{Call, Reply};
use crate::failure::{Circumstances, Failure, Form};
use crate::sample;
use crate::time::iso;

/// Largest body taken.
const LARGEST_BODY: usize = 64 * 1024 * 1024;
/// Account of requests without a key, when none is needed.
const NO_KEY: &str = "";

/// A request that has been read.
struct Received {
    parts: Parts,
    path: String,
    /// Decoded query without the sandbox's own parameter.
    query: Vec<(String, String)>,
    fault: Option<String>,
    key: Option<String>,
    body: Result<Bytes, Failure>,
    request_id: String,
    now: u64,
}

pub(super) async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let wire = request
        .extensions()
        .get::<ConnectInfo<Wire>>()
        .map(|info| info.0.clone());
    let received = receive(&shared, request).await;
    let number = note(&shared, &received);
    let mut response = match fault_of(&shared, &received) {
        Err(message) => refuse(
            &received,
            &Failure::invalid(format!("x-sandbox-fault: {message}")),
        ),
        Ok(None) => work(&shared, &received),
        Ok(Some(fault)) => with_fault(&shared, &received, &fault, wire).await,
    };
    answer::set(&mut response, "x-sandbox", "synthetic");
    answer::set(&mut response, "x-request-id", &received.request_id);
    if let Some(number) = number {
        shared
            .world()
            .log
            .answered(number, response.status().as_u16());
    }
    response
}

async fn receive(shared: &Shared, request: Request) -> Received {
    let (parts, body) = request.into_parts();
    let body = read(&parts.headers, body).await;
    let mut query = query::pairs(parts.uri.query().unwrap_or_default());
    let mut fault = text(&parts.headers, "x-sandbox-fault").map(str::to_owned);
    query.retain(|(key, value)| {
        let own = key == "sandboxFault";
        if own {
            fault = Some(value.clone());
        }
        !own
    });
    let key = key_of(&parts.headers);
    let path = parts.uri.path().to_owned();
    let mut world = shared.world();
    Received {
        path,
        query,
        fault,
        key,
        body,
        request_id: world.request_id(),
        now: world.now(),
        parts,
    }
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Failure> {
    let announced = text(headers, "content-length").and_then(|length| length.parse::<u64>().ok());
    let too_large = || {
        Failure::new(
            413,
            "PAYLOAD_TOO_LARGE",
            format!("A body may have {LARGEST_BODY} bytes at most"),
        )
    };
    if announced.is_some_and(|length| length > LARGEST_BODY as u64) {
        return Err(too_large());
    }
    axum::body::to_bytes(body, LARGEST_BODY)
        .await
        .map_err(|_| too_large())
}

/// The key, from either of the two headers the API takes.
fn key_of(headers: &HeaderMap) -> Option<String> {
    let bearer = || text(headers, "authorization")?.strip_prefix("Bearer ");
    let key = text(headers, "x-api-key").or_else(bearer)?.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

impl Received {
    fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    /// The path below `/sandbox/`, unless it is an upload, which behaves like a part of the API.
    fn control(&self) -> Option<&str> {
        self.path.strip_prefix("/sandbox/")
    }

    fn is_steering(&self) -> bool {
        self.control()
            .is_some_and(|path| !path.starts_with("uploads/"))
    }

    fn lenient(&self) -> bool {
        text(&self.parts.headers, "x-sandbox-lenient") == Some("true")
    }

    fn operation<'a>(&self, shared: &'a Shared) -> Option<&'a str> {
        match shared.routes.find(self.method(), &self.path) {
            Found::Operation(operation, _) => Some(&operation.spec.name),
            _ => None,
        }
    }
}

/// Remembers the request, unless it only steers the sandbox.
fn note(shared: &Shared, received: &Received) -> Option<u64> {
    if received.is_steering() {
        return None;
    }
    let seen = Seen {
        method: received.method(),
        path: &received.path,
        query: &received.query,
        headers: &received.parts.headers,
        body: received.body.as_deref().unwrap_or_default(),
        operation: received.operation(shared),
        has_key: received.key.is_some(),
        request_id: &received.request_id,
        at: iso(received.now),
    };
    Some(shared.world().log.push(&seen))
}

/// The fault the request asks for itself, or the one a rule has for it.
fn fault_of(shared: &Shared, received: &Received) -> Result<Option<Fault>, String> {
    if received.is_steering() {
        return Ok(None);
    }
    if let Some(text) = &received.fault {
        return Fault::from_text(text).map(Some);
    }
    let target = Target {
        method: received.method(),
        path: &received.path,
        operation: received.operation(shared),
        key: received.key.as_deref(),
    };
    Ok(shared.world().faults.take(&target))
}

async fn with_fault(
    shared: &Arc<Shared>,
    received: &Received,
    fault: &Fault,
    wire: Option<Wire>,
) -> Response {
    tokio::time::sleep(Duration::from_millis(fault.delay)).await;
    let usual = fault.lets_work().then(|| work(shared, received));
    tokio::time::sleep(Duration::from_millis(fault.hold)).await;
    match (usual, &fault.shape) {
        (Some(response), Shape::Cut(Cut::Body)) => answer::broken(response).await,
        (_, Shape::Cut(_)) => match wire {
            Some(wire) => {
                wire.cut();
                Response::default()
            }
            None => answer::nothing(),
        },
        (Some(response), _) => response,
        (None, _) => answer::of_fault(fault, Form::of(&received.path), &circumstances(received)),
    }
}

/// What the API would do.
fn work(shared: &Arc<Shared>, received: &Received) -> Response {
    carry_out(shared, received).unwrap_or_else(|failure| refuse(received, &failure))
}

fn refuse(received: &Received, failure: &Failure) -> Response {
    let form = if failure.always_flat {
        Form::Flat
    } else {
        Form::of(&received.path)
    };
    answer::failure(failure, form, &circumstances(received))
}

fn circumstances(received: &Received) -> Circumstances<'_> {
    Circumstances {
        request_id: &received.request_id,
        path: &received.path,
        now: received.now,
    }
}

fn carry_out(shared: &Arc<Shared>, received: &Received) -> Result<Response, Failure> {
    let body = received.body.as_ref().map_err(Clone::clone)?;
    if let Some(path) = received.control() {
        return control::answer(
            shared,
            &control::Request {
                method: received.method(),
                path,
                query: &received.query,
                headers: &received.parts.headers,
                body,
                lenient: received.lenient(),
            },
        );
    }
    match shared.routes.find(received.method(), &received.path) {
        Found::Operation(operation, variables) => {
            operate(shared, received, operation, variables, body)
        }
        Found::OtherMethods(methods) => Err(other_methods(received, &methods)),
        Found::Nothing => {
            let message = format!("Cannot {} {}", received.method(), received.path);
            Err(Failure::new(404, "NOT_FOUND", message).flat())
        }
    }
}

fn operate(
    shared: &Arc<Shared>,
    received: &Received,
    operation: &Operation,
    variables: Vec<(String, String)>,
    body: &[u8],
) -> Result<Response, Failure> {
    let key = key(shared, received)?;
    let headers = &received.parts.headers;
    let raw = Raw {
        variables,
        query: &received.query,
        headers,
        body,
        lenient: received.lenient(),
    };
    let call = Call {
        args: arguments::gather(operation, raw)?,
        host: text(headers, "host").unwrap_or("localhost").to_owned(),
        wants_events: text(headers, "accept")
            .is_some_and(|accept| accept.trim_start().starts_with("text/event-stream")),
        request_id: received.request_id.clone(),
    };
    let reply = match operation.behaviour {
        Some(behaviour) => shared.world().run(&key, behaviour, &call)?,
        None => Reply::Json {
            status: 200,
            value: unwritten(&operation.spec.output_schema),
        },
    };
    Ok(send(shared, key, reply))
}

/// The answer of an operation nobody has written behaviour for.
fn unwritten(schema: &Value) -> Value {
    match schema {
        Value::Object(_) => sample::of(schema, 0),
        _ => Value::Object(Map::new()),
    }
}

fn key(shared: &Shared, received: &Received) -> Result<String, Failure> {
    match &received.key {
        Some(key) => Ok(key.clone()),
        None if shared.require_key => {
            Err(Failure::new(401, "INVALID_API_KEY", "Missing or invalid API key").flat())
        }
        None => Ok(NO_KEY.to_owned()),
    }
}

fn other_methods(received: &Received, methods: &[&str]) -> Failure {
    let allowed = methods.join(", ");
    let message = format!(
        "{} is not allowed on {}; use {allowed}",
        received.method(),
        received.path
    );
    let mut failure = Failure::new(405, "METHOD_NOT_ALLOWED", message).flat();
    failure.headers.push(("allow", allowed));
    failure
}

fn send(shared: &Arc<Shared>, key: String, reply: Reply) -> Response {
    match reply {
        Reply::Json { status, value } => answer::json(status, value),
        Reply::Events(events) => answer::events(stream::known(events)),
        Reply::Follow(what) => answer::events(stream::live(Arc::clone(shared), key, what)),
    }
}

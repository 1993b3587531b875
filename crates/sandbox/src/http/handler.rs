//! Handling of one request from start to end.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use serde_json::{Map, Value};

use super::connection::CutHandle;
use super::faults::{CutPoint, Fault, FaultEffect, FaultTarget};
use super::incoming::IncomingRequest;
use super::routes::{Route, RouteMatch};
use super::{ServerContext, arguments, control, journal, response, stream};
use crate::api_error::{ApiError, ErrorFormat};
use crate::call::{ApiResponse, Call};
use crate::error_tags::payment_required;
use crate::handlers::is_payable;
use crate::sample;
use crate::team_keys::invalid_key;

/// Account of requests without a key, if the sandbox requires none.
const NO_KEY: &str = "";

pub(super) async fn handle(
    State(context): State<Arc<ServerContext>>,
    request: Request,
) -> Response {
    let connection = request.extensions().get::<ConnectInfo<CutHandle>>();
    let connection = connection.map(|info| info.0.clone());
    let mut request = IncomingRequest::read(&context, request).await;
    let logged = log_request(&context, &request);
    let recorded = journal::record(&context, &mut request);
    let mut response = match find_fault(&context, &request) {
        Err(message) => {
            let error = ApiError::invalid(format!("x-sandbox-fault: {message}"));
            error_response(&request, &error)
        }
        Ok(None) => execute(&context, &request),
        Ok(Some(fault)) => execute_with_fault(&context, &request, &fault, connection).await,
    };
    drop(recorded);
    response::set_header(&mut response, "x-sandbox", "synthetic");
    response::set_header(&mut response, "x-request-id", &request.request_id);
    if let Some(number) = logged {
        let status = response.status().as_u16();
        context.state().log.set_status(number, status);
    }
    response
}

/// Repeats a request of an earlier process. Its response is not needed.
pub(super) async fn repeat(context: &Arc<ServerContext>, request: Request, salt: Option<String>) {
    let mut request = IncomingRequest::read_again(context, request).await;
    request.salt = salt;
    drop(execute(context, &request));
}

/// Logs the request, unless it only controls the sandbox.
fn log_request(context: &ServerContext, request: &IncomingRequest) -> Option<u64> {
    let operation = request.operation(context);
    (!request.is_control()).then(|| context.state().log.push(request, operation))
}

/// Returns the fault that the request names, or the one of a matching rule.
fn find_fault(context: &ServerContext, request: &IncomingRequest) -> Result<Option<Fault>, String> {
    if request.is_control() {
        return Ok(None);
    }
    if let Some(text) = &request.fault {
        return Fault::from_text(text).map(Some);
    }
    let target = FaultTarget {
        method: request.method(),
        path: request.path(),
        operation: request.operation(context),
        key: request.key.as_deref(),
    };
    Ok(context.state().faults.take(&target))
}

async fn execute_with_fault(
    context: &Arc<ServerContext>,
    request: &IncomingRequest,
    fault: &Fault,
    connection: Option<CutHandle>,
) -> Response {
    tokio::time::sleep(Duration::from_millis(fault.delay)).await;
    let response = fault.executes_request().then(|| execute(context, request));
    tokio::time::sleep(Duration::from_millis(fault.hold)).await;
    match (response, &fault.effect) {
        (Some(response), FaultEffect::Cut(CutPoint::Body)) => response::truncated(response).await,
        (_, FaultEffect::Cut(_)) => match connection {
            Some(connection) => {
                connection.cut();
                Response::default()
            }
            None => response::aborted(),
        },
        (Some(response), _) => response,
        (None, _) => {
            let format = ErrorFormat::for_path(request.path());
            response::from_fault(fault, format, &request.error_context())
        }
    }
}

/// Executes the request without faults.
fn execute(context: &Arc<ServerContext>, request: &IncomingRequest) -> Response {
    dispatch(context, request).unwrap_or_else(|error| error_response(request, &error))
}

fn error_response(request: &IncomingRequest, error: &ApiError) -> Response {
    let format = match ErrorFormat::for_path(request.path()) {
        ErrorFormat::Agent | ErrorFormat::Websets if error.from_gateway => ErrorFormat::Standard,
        format => format,
    };
    response::from_error(error, format, &request.error_context())
}

fn dispatch(context: &Arc<ServerContext>, request: &IncomingRequest) -> Result<Response, ApiError> {
    let body = request.body.as_ref().map_err(Clone::clone)?;
    if let Some(path) = request.sandbox_path() {
        return control::handle(context, request, path, body);
    }
    let (method, path) = (request.method(), request.path());
    match context.routes.find(method, path) {
        RouteMatch::Route(route, variables) => {
            call_operation(context, request, route, variables, body)
        }
        RouteMatch::MethodNotAllowed(methods) => {
            let allowed = methods.join(", ");
            let message = format!("{method} is not allowed on {path}; use {allowed}");
            Err(ApiError::method_not_allowed(&allowed, message).at_gateway())
        }
        RouteMatch::NotFound => {
            let message = format!("Cannot {method} {path}");
            Err(ApiError::new(404, "NOT_FOUND", message).at_gateway())
        }
    }
}

fn call_operation(
    context: &Arc<ServerContext>,
    request: &IncomingRequest,
    route: &Route,
    variables: Vec<(String, String)>,
    body: &[u8],
) -> Result<Response, ApiError> {
    let key = require_key(context, request, route)?;
    let accepts_events = |accept: &str| accept.trim_start().starts_with("text/event-stream");
    let call = Call {
        args: arguments::parse(route, request, variables, body)?,
        host: request.header("host").unwrap_or("localhost").to_owned(),
        wants_events: request.header("accept").is_some_and(accepts_events),
        betas: request.betas(),
        last_event_id: request.header("last-event-id").map(str::to_owned),
        request_id: request.request_id.clone(),
        salt: request.salt.clone(),
    };
    let parse_nested = |path: &str, body: &Map<String, Value>| {
        let RouteMatch::Route(route, _) = context.routes.find("POST", path) else {
            return Err(ApiError::invalid(format!(
                "There is no operation POST {path}"
            )));
        };
        arguments::parse_body(route, body)
    };
    let result = match route.handler {
        Some(handler) => context.state().run(&key, handler, &call, &parse_nested)?,
        None => ApiResponse::Json {
            status: 200,
            value: sample_response(&route.spec.output_schema),
        },
    };
    Ok(match result {
        ApiResponse::Json { status, value } => response::json(status, value),
        ApiResponse::Events(events) => response::events(stream::from_events(events)),
        ApiResponse::Live(live) => {
            response::events(stream::from_live(Arc::clone(context), key, live))
        }
    })
}

/// Generates the response of an operation without a handler.
fn sample_response(schema: &Value) -> Value {
    match schema {
        Value::Object(_) => sample::generate(schema, 0),
        _ => Value::Object(Map::new()),
    }
}

/// Returns the key, which must be of the kind that the operation takes.
fn require_key(
    context: &ServerContext,
    request: &IncomingRequest,
    route: &Route,
) -> Result<String, ApiError> {
    let Some(key) = &request.key else {
        return match context.require_key {
            true if is_payable(&route.spec.name) => Err(payment_required()),
            true => Err(invalid_key("Missing or invalid API key")),
            false => Ok(NO_KEY.to_owned()),
        };
    };
    let for_team = ErrorFormat::for_path(request.path()) == ErrorFormat::Team;
    context.state().check_key(key, for_team)?;
    Ok(key.clone())
}

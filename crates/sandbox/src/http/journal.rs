//! A file with the requests that have changed the state. Repeating them at the same times leads to the same state, because
//! everything that the sandbox makes up depends on its seed, the order of requests and the clock.
//!
//! Several processes may append to the file at the same time without seeing each other's requests. Therefore the ids that
//! a request issues depend on its own salt instead of the requests before it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use exa_mcp_model::ids::random_id;
use exa_mcp_model::lock;
use serde_json::{Value, json};

use super::incoming::IncomingRequest;
use super::{ServerContext, handler};

/// The headers that influence a response.
const HEADERS: [&str; 6] = [
    "x-api-key",
    "authorization",
    "exa-beta",
    "idempotency-key",
    "content-type",
    "accept",
];

/// Appends requests to a file.
pub(crate) struct Journal(Mutex<File>);

/// Repeats the requests of a file, and appends further ones.
pub(crate) async fn open(context: &Arc<ServerContext>, path: &Path) -> std::io::Result<()> {
    match File::open(path) {
        Ok(file) => {
            for entry in entries(file)? {
                repeat(context, &entry).await;
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    context.state().clock.start_at(exa_mcp_model::time::now());
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let _ = context.journal.set(Journal(Mutex::new(file)));
    Ok(())
}

/// Returns the entries of a file in the order of their times, from which processes that write at the same time may deviate.
fn entries(file: File) -> std::io::Result<Vec<Value>> {
    let mut entries: Vec<Value> = Vec::new();
    for line in BufReader::new(file).lines() {
        // A line that was cut off is not repeated.
        entries.extend(serde_json::from_str::<Value>(&line?));
    }
    entries.sort_by_key(|entry| entry.get("at").and_then(Value::as_u64));
    Ok(entries)
}

/// Stops the clock while a request is handled, so that it sees a single time, which can be repeated.
pub(super) struct StoppedClock<'a>(Option<&'a ServerContext>);

impl<'a> StoppedClock<'a> {
    /// Stops the clock until the value is dropped.
    pub(super) fn new(context: &'a ServerContext) -> Self {
        let mut state = context.state();
        let was_running = !state.clock.is_frozen();
        state.clock.set_frozen(true);
        Self(was_running.then_some(context))
    }
}

impl Drop for StoppedClock<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.0 {
            context.state().clock.set_frozen(false);
        }
    }
}

/// Records a request, if it may change something and the state is stored. The clock is stopped until its end.
pub(super) fn record<'a>(
    context: &'a ServerContext,
    request: &mut IncomingRequest,
) -> Option<StoppedClock<'a>> {
    let journal = context.journal.get()?;
    if request.method() == "GET" {
        return None;
    }
    let stopped = StoppedClock::new(context);
    let at = context.state().now();
    request.salt = random_id().ok();
    let body = request.body.as_deref().unwrap_or_default();
    let headers = HEADERS.iter().filter_map(|name| {
        let value = request.header(name)?;
        Some(((*name).to_owned(), json!(value)))
    });
    let entry = json!({
        "at": at,
        "method": request.method(),
        "uri": request.parts.uri.to_string(),
        "headers": headers.collect::<serde_json::Map<_, _>>(),
        "body": String::from_utf8_lossy(body),
        "salt": request.salt,
    });
    let _ = lock(&journal.0).write_all(format!("{entry}\n").as_bytes());
    Some(stopped)
}

/// Repeats a request at the time when it was made. The clock stays at that time, as ids depend on it.
async fn repeat(context: &Arc<ServerContext>, entry: &Value) {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(at) = entry.get("at").and_then(Value::as_u64) {
        context.state().clock.stop_at(at);
    }
    let request = Request::builder().method(text("method")).uri(text("uri"));
    let Ok(mut request) = request.body(Body::from(text("body").to_owned())) else {
        return;
    };
    let headers = entry.get("headers").and_then(Value::as_object);
    for (name, value) in headers.into_iter().flatten() {
        let value = value.as_str().map(HeaderValue::from_str);
        if let (Ok(name), Some(Ok(value))) = (HeaderName::from_bytes(name.as_bytes()), value) {
            request.headers_mut().insert(name, value);
        }
    }
    let salt = entry.get("salt").and_then(Value::as_str);
    handler::repeat(context, request, salt.map(str::to_owned)).await;
}

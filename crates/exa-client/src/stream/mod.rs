//! Streaming responses. An event stream is read to its end and assembled into the response that the same call
//! without streaming would have returned. A listener receives updates in the meantime.

mod events;
mod job;
mod list;
mod read;
mod resumption;
mod text;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use serde_json::{Map, Value};

use events::Event;
use job::JobAssembler;
use list::ListAssembler;
pub(super) use read::read;
use resumption::Interrupted;
pub use resumption::ResumePoint;
use text::TextAssembler;

use super::error_body::ErrorBody;

/// The media type of event streams.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

pub use exa_mcp_model::StreamKind;

/// A part of the response that arrived before the response was complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamUpdate {
    /// More of the text.
    Text(String),
    /// A short description of a step.
    Step(String),
}

/// How to read a stream, and who receives its updates.
#[derive(Clone)]
pub struct StreamOptions {
    kind: StreamKind,
    structured: bool,
    /// The operation that reads the job that the stream follows.
    get: Option<&'static str>,
    listener: Arc<dyn Fn(StreamUpdate) + Send + Sync>,
    /// What was read of a stream that broke off. The next response with these options continues it.
    interrupted: Arc<Mutex<Option<Interrupted>>>,
}

impl StreamOptions {
    /// Creates options for a stream of this form. If `structured`, the text is JSON and is parsed.
    pub fn new(
        kind: StreamKind,
        structured: bool,
        listener: impl Fn(StreamUpdate) + Send + Sync + 'static,
    ) -> Self {
        Self {
            kind,
            structured,
            get: None,
            listener: Arc::new(listener),
            interrupted: Arc::default(),
        }
    }

    /// Names the operation that reads the job that the stream follows.
    #[must_use]
    pub fn with_get(self, get: Option<&'static str>) -> Self {
        Self { get, ..self }
    }

    /// Returns whether the response carries the id of its request.
    fn has_request_id(&self) -> bool {
        matches!(self.kind, StreamKind::Search | StreamKind::Answer)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        match self.kind {
            StreamKind::Search | StreamKind::Answer => {
                Box::new(TextAssembler::new(self.kind, self.structured))
            }
            StreamKind::AgentRun | StreamKind::Research => {
                Box::new(JobAssembler::new(self.kind).with_get(self.get))
            }
            StreamKind::Events => Box::new(ListAssembler::default()),
        }
    }
}

impl fmt::Debug for StreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamOptions").field(&self.kind).finish()
    }
}

/// The state of the stream after an event.
enum StreamState {
    /// More events follow.
    More(Option<StreamUpdate>),
    /// The response is complete; later events do not matter.
    Complete,
}

/// Builds a response out of events.
trait Assembler: Send {
    /// Adds an event: its name, and its data as an object.
    ///
    /// # Errors
    /// The event reports that the API failed.
    fn take(&mut self, name: &str, data: Map<String, Value>)
    -> Result<StreamState, Box<ErrorBody>>;

    /// Adds an event with its id, like [`Assembler::take`].
    fn take_event(
        &mut self,
        event: &Event,
        data: Map<String, Value>,
    ) -> Result<StreamState, Box<ErrorBody>> {
        self.take(&event.name, data)
    }

    /// Returns whether the response may be complete if the server closes the stream properly now.
    fn may_end(&self) -> bool;

    /// Returns what has been received so far, for the error about the missing part.
    fn received(&self) -> Option<Value>;

    /// Returns the job that the stream follows, once its id is known.
    fn started(&self) -> Option<Value> {
        None
    }

    /// Describes the job that continues at Exa after the stream has failed, and how to read it.
    fn continuing_job(&self) -> Option<String>;

    /// Returns the whole response. `unreadable` events were left out of it.
    fn into_response(self: Box<Self>, unreadable: usize) -> Value;
}

/// Returns the events of a complete stream as a list, with data as JSON where it is JSON.
pub(super) fn parse_events(bytes: &[u8]) -> Value {
    let mut parser = events::EventParser::new(bytes.len() + 2);
    let mut list = Vec::new();
    // The parser rejects only events beyond its limit, which is the size of the stream.
    let _ = parser.feed(bytes).and_then(|()| parser.feed(b"\n\n"));
    while let Some(event) = parser.take() {
        let data = serde_json::from_str(&event.data).unwrap_or(Value::String(event.data));
        list.push(serde_json::json!({"event": event.name, "data": data}));
    }
    Value::Array(list)
}

/// Returns the error that an event reports, if any.
fn failure(name: &str, data: &Map<String, Value>) -> Option<Box<ErrorBody>> {
    let kind = data.get("type").and_then(Value::as_str).unwrap_or(name);
    let tagged = data.get("tag").and_then(Value::as_str) == Some("ERROR");
    let has_error = data.get("error").is_some_and(|error| !error.is_null());
    if !(has_error || tagged || kind == "error") {
        return None;
    }
    match data.get("payload") {
        Some(payload) if !has_error => Some(Box::new(ErrorBody::from_event(payload.clone()))),
        _ => Some(Box::new(ErrorBody::from_event(Value::Object(data.clone())))),
    }
}

//! Answers that come as a stream of events. They are read to their end and put together, so that
//! whoever called gets the answer that the same call without a stream would have given; on the way
//! a listener hears what comes.

mod events;
mod read;
mod words;
mod work;

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

pub(super) use read::read;
use words::Words;
use work::Work;

use super::error_body::ErrorBody;

/// The media type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

pub use exa_mcp_model::StreamForm;

/// Something that came while the answer was not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// More of the text.
    Text(String),
    /// A step of the work, in a few words.
    Step(String),
}

/// How a stream is read, and who listens.
#[derive(Clone)]
pub struct Stream {
    form: StreamForm,
    structured: bool,
    /// The operation that reads the work that the stream follows.
    get: Option<&'static str>,
    listener: Arc<dyn Fn(Heard) + Send + Sync>,
}

impl Stream {
    /// A stream of this form. `structured` says that its text is JSON, which then becomes data.
    pub fn new(
        form: StreamForm,
        structured: bool,
        listener: impl Fn(Heard) + Send + Sync + 'static,
    ) -> Self {
        Self {
            form,
            structured,
            get: None,
            listener: Arc::new(listener),
        }
    }

    /// Names the operation that reads the work that the stream follows.
    pub fn with_get(self, get: Option<&'static str>) -> Self {
        Self { get, ..self }
    }

    /// Says whether its answer is one of those that carry the id of their request.
    fn is_of_words(&self) -> bool {
        matches!(self.form, StreamForm::Search | StreamForm::Answer)
    }

    fn gather(&self) -> Box<dyn Gather> {
        match self.form {
            StreamForm::Search | StreamForm::Answer => {
                Box::new(Words::new(self.form, self.structured))
            }
            StreamForm::AgentRun | StreamForm::Research => {
                Box::new(Work::new(self.form).with_get(self.get))
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.form).finish()
    }
}

/// What an event means for the stream.
enum Taken {
    /// It goes on.
    More(Option<Heard>),
    /// It is complete; nothing that follows matters.
    Over,
}

/// An answer that grows with every event.
trait Gather: Send {
    /// Takes an event: its name, and its data as an object.
    ///
    /// # Errors
    /// The event says that the API failed.
    fn take(&mut self, name: &str, data: Map<String, Value>) -> Result<Taken, Box<ErrorBody>>;

    /// Says whether what came may be all, if the server ends its answer now in good order.
    fn may_end(&self) -> bool;

    /// What has come so far, for whoever is told that the rest is missing.
    fn so_far(&self) -> Option<Value>;

    /// What goes on at Exa although nobody reads its events any more, and how to look at it.
    fn goes_on(&self) -> Option<String>;

    /// The whole answer. `unreadable` events were left out of it.
    fn answer(self: Box<Self>, unreadable: usize) -> Value;
}

/// The error that an event tells, if it tells one.
fn failure(name: &str, data: &Map<String, Value>) -> Option<Box<ErrorBody>> {
    let kind = data.get("type").and_then(Value::as_str).unwrap_or(name);
    let tagged = data.get("tag").and_then(Value::as_str) == Some("ERROR");
    let told = data.get("error").is_some_and(|error| !error.is_null());
    if !(told || tagged || kind == "error") {
        return None;
    }
    match data.get("payload") {
        Some(payload) if !told => Some(Box::new(ErrorBody::of(payload.clone()))),
        _ => Some(Box::new(ErrorBody::of(Value::Object(data.clone())))),
    }
}

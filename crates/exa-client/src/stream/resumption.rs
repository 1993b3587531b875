//! Continues a stream that broke off with another response, without losing or repeating events.

use std::{collections::HashSet, fmt, time::Instant};

use exa_mcp_model::lock;
use serde_json::Value;

use super::{Assembler, StreamOptions, events::Event};

/// Where a stream broke off.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumePoint {
    /// The job that the stream follows, as far as it is known; null if it follows none.
    pub job: Value,
    /// The id of the last event that was received.
    pub last_event_id: String,
    /// How many responses the stream consists of so far.
    pub responses: usize,
}

/// The state of a stream between two responses.
pub(super) struct Interrupted {
    pub(super) assembler: Box<dyn Assembler>,
    pub(super) received: ReceivedEvents,
    /// When the whole stream must be complete.
    pub(super) end: Instant,
    /// The number of bytes that may still be received.
    pub(super) remaining: usize,
    pub(super) count: usize,
    pub(super) unreadable: usize,
}

/// Which events a stream has delivered.
#[derive(Default)]
pub(super) struct ReceivedEvents {
    last: Option<String>,
    /// The ids of all events.
    ids: HashSet<String>,
    /// The ids of the events of earlier responses. Within a response, events without an id have that of the previous one.
    earlier: HashSet<String>,
    responses: usize,
}

impl ReceivedEvents {
    /// Starts with the next response.
    pub(super) fn next_response(&mut self) {
        self.responses += 1;
        self.earlier.clone_from(&self.ids);
    }

    /// Returns whether an earlier response had this event.
    pub(super) fn is_repeated(&self, event: &Event) -> bool {
        event
            .id
            .as_ref()
            .is_some_and(|id| self.earlier.contains(id))
    }

    /// Remembers an event.
    pub(super) fn add(&mut self, event: &Event) {
        if let Some(id) = event.id.as_ref().filter(|id| !id.is_empty()) {
            self.ids.insert(id.clone());
            self.last = Some(id.clone());
        }
    }
}

impl StreamOptions {
    /// Returns where the stream broke off, if it did and its events have ids.
    ///
    /// The next response that is read with a clone of these options continues the stream.
    #[must_use]
    pub fn resume_point(&self) -> Option<ResumePoint> {
        let interrupted = lock(&self.interrupted);
        let interrupted = interrupted.as_ref()?;
        Some(ResumePoint {
            job: interrupted.assembler.started().unwrap_or_default(),
            last_event_id: interrupted.received.last.clone()?,
            responses: interrupted.received.responses,
        })
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupted")
            .field(&self.received.last)
            .finish()
    }
}

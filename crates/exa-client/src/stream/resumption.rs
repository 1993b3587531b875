//! Continues a stream that broke off with another response, without losing or repeating events.

use std::{collections::HashSet, fmt, time::Instant};

use exa_mcp_model::lock;
use serde_json::Value;

use super::{Assembler, StreamOptions, events::Event};

/// The most event ids that are remembered, and the longest one. A stream with more is not resumed.
const MAX_IDS: usize = 20_000;
const MAX_ID_BYTES: usize = 1_024;

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
    /// There are too many ids to remember, or too long ones.
    is_excessive: bool,
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
        let Some(id) = event.id.as_ref().filter(|id| !id.is_empty()) else {
            return;
        };
        self.is_excessive |= id.len() > MAX_ID_BYTES || self.ids.len() >= MAX_IDS;
        if self.is_excessive {
            self.ids = HashSet::new();
            self.last = None;
        } else {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: String) -> Event {
        Event {
            id: Some(id),
            name: String::new(),
            data: "{}".to_owned(),
        }
    }

    #[test]
    fn a_stream_with_excessive_ids_is_not_resumed() {
        let mut received = ReceivedEvents::default();
        for number in 0..MAX_IDS {
            received.add(&event(number.to_string()));
        }
        received.next_response();
        assert!(received.last.is_some() && received.is_repeated(&event("7".to_owned())));
        received.add(&event("one-more".to_owned()));
        received.add(&event("another".to_owned()));
        assert_eq!((received.last, received.ids.capacity()), (None, 0));

        let mut received = ReceivedEvents::default();
        received.add(&event("x".repeat(MAX_ID_BYTES)));
        assert!(received.last.is_some());
        received.add(&event("x".repeat(MAX_ID_BYTES + 1)));
        assert_eq!(received.last, None);
    }
}

//! The recent events of one stream.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};

/// The maximum number of recent events available to clients that reconnect.
const MAX_EVENTS: usize = 1024;

/// How long a client waits before it reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(3);

/// The content of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// No message: it only carries an id and the reconnect delay.
    Priming,
    /// A request or notification of the server.
    Message,
    /// The result of the stream's request.
    Result,
    /// The error that ends the stream's request.
    Error,
}

/// A serialized event.
#[derive(Clone, Debug)]
pub(super) struct SseEvent {
    /// The number of the event in its stream.
    pub(super) index: u64,
    pub(super) kind: EventKind,
    text: Bytes,
    /// The offset of the data, after the id line.
    data_start: usize,
}

impl SseEvent {
    pub(super) fn text(&self) -> Bytes {
        self.text.clone()
    }

    /// Returns the event without its id, for streams that cannot be resumed.
    pub(super) fn text_without_id(&self) -> Bytes {
        self.text.slice(self.data_start..)
    }
}

/// The recent events of a stream.
pub(super) struct EventLog {
    /// The common prefix of the event ids.
    prefix: String,
    /// Whether the client accepts priming events. Older clients take the empty data for invalid JSON.
    reads_priming: bool,
    events: VecDeque<SseEvent>,
    next_index: u64,
}

impl EventLog {
    pub(super) fn new(prefix: String, reads_priming: bool) -> Self {
        Self {
            prefix,
            reads_priming,
            events: VecDeque::new(),
            next_index: 0,
        }
    }

    pub(super) fn reads_priming(&self) -> bool {
        self.reads_priming
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the events that carry a message.
    pub(super) fn messages(&self) -> Vec<SseEvent> {
        let messages = self.events.iter();
        let messages = messages.filter(|event| event.kind != EventKind::Priming);
        messages.cloned().collect()
    }

    /// Returns the number of the next event.
    pub(super) fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Returns the size of the events in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.text.len()).sum()
    }

    /// Adds a priming event and returns its number.
    ///
    /// Older clients get it without a data line. They do not dispatch such an event, but remember its id.
    pub(super) fn push_priming(&mut self) -> u64 {
        let data: &[u8] = if self.reads_priming { b"data: \n" } else { b"" };
        let retry = RECONNECT_DELAY.as_millis();
        self.push(EventKind::Priming, |text| {
            let _ = writeln!(text, "retry: {retry}");
            text.extend_from_slice(data);
        })
    }

    /// Adds a message. JSON without line breaks fits on one data line.
    pub(super) fn push_message(&mut self, message: &ServerJsonRpcMessage) -> EventKind {
        let kind = match message {
            JsonRpcMessage::Response(_) => EventKind::Result,
            JsonRpcMessage::Error(_) => EventKind::Error,
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => EventKind::Message,
        };
        self.push(kind, |text| {
            text.extend_from_slice(b"data: ");
            // The message comes from the handler, so serialization cannot fail.
            let _ = serde_json::to_writer(&mut *text, message);
            text.push(b'\n');
        });
        kind
    }

    fn push(&mut self, kind: EventKind, write: impl FnOnce(&mut Vec<u8>)) -> u64 {
        let index = self.next_index;
        let mut text = Vec::new();
        let _ = writeln!(text, "id: {}-{index}", self.prefix);
        let data_start = text.len();
        write(&mut text);
        text.push(b'\n');
        text.shrink_to_fit();
        self.next_index += 1;
        self.events.push_back(SseEvent {
            index,
            kind,
            text: text.into(),
            data_start,
        });
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
        index
    }

    /// Returns the first event with at least this number. A priming event is visible only to its own
    /// connection, `own`.
    pub(super) fn first_from(&self, index: u64, own: Option<u64>) -> Option<&SseEvent> {
        let start = self.events.partition_point(|event| event.index < index);
        let mut later = self.events.range(start..);
        later.find(|event| event.kind != EventKind::Priming || Some(event.index) == own)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(number: usize) -> ServerJsonRpcMessage {
        let text = serde_json::json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 1, "progress": number},
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn finds_events_by_number() {
        let mut log = EventLog::new("a-1".to_owned(), true);
        assert_eq!(log.push_priming(), 0);
        assert_eq!(log.push_message(&message(7)), EventKind::Message);
        let text = log.first_from(0, Some(0)).unwrap().text();
        assert_eq!(text, "id: a-1-0\nretry: 3000\ndata: \n\n");
        let first = log.first_from(0, None).unwrap();
        assert_eq!(first.index, 1);
        assert!(first.text().starts_with(b"id: a-1-1\ndata: {"));
        assert!(first.text_without_id().starts_with(b"data: {"));
        assert!(first.text().ends_with(b"}\n\n"));
        assert!(log.first_from(2, None).is_none());
    }

    #[test]
    fn omits_empty_data_for_older_clients() {
        let mut log = EventLog::new("a-1".to_owned(), false);
        let own = log.push_priming();
        let text = log.first_from(0, Some(own)).unwrap().text();
        assert_eq!(text, "id: a-1-0\nretry: 3000\n\n");
    }

    #[test]
    fn evicts_the_oldest_events() {
        let mut log = EventLog::new("a-1".to_owned(), true);
        for number in 0..MAX_EVENTS + 10 {
            log.push_message(&message(number));
        }
        assert_eq!(log.first_from(0, None).unwrap().index, 10);
        assert_eq!(log.first_from(500, None).unwrap().index, 500);
        assert_eq!(log.events.len(), MAX_EVENTS);
    }
}

//! The recent events of one stream, as they are sent.

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};

/// The most events of one stream that stay available for clients that reconnect, the latest ones.
const MAX_EVENTS: usize = 1024;

/// How long a client waits before it reconnects to a stream that was cut.
const RETRY: Duration = Duration::from_secs(3);

/// What an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// No message: it tells the client how to reconnect.
    Priming,
    /// A request of the server or a notification.
    Message,
    /// The result of the request to which the stream belongs.
    Result,
    /// The error that ends the request to which the stream belongs.
    Error,
}

/// An event as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Its number in its stream.
    pub(super) index: u64,
    pub(super) kind: EventKind,
    text: Bytes,
    /// Where the data begins, after the line with the id.
    data_start: usize,
}

impl Event {
    pub(super) fn text(&self) -> Bytes {
        self.text.clone()
    }

    /// The event without its id, for streams that nobody can come back to.
    pub(super) fn text_without_id(&self) -> Bytes {
        self.text.slice(self.data_start..)
    }
}

/// The recent events of a stream.
pub(super) struct EventLog {
    /// What the ids of its events begin with.
    prefix: String,
    /// Whether the client reads events without a message; older ones take the empty data for broken JSON.
    reads_priming: bool,
    events: VecDeque<Event>,
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

    /// The events that carry a message.
    pub(super) fn messages(&self) -> Vec<Event> {
        let messages = self.events.iter();
        let messages = messages.filter(|event| event.kind != EventKind::Priming);
        messages.cloned().collect()
    }

    /// The number that the next event gets.
    pub(super) fn next_index(&self) -> u64 {
        self.next_index
    }

    /// How many bytes the events take.
    pub(super) fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.text.len()).sum()
    }

    /// Adds an event that only tells the client where it is; returns its number.
    ///
    /// Without a line of data, which older clients cannot read, an event is not shown to them, but its id
    /// counts all the same.
    pub(super) fn push_priming(&mut self) -> u64 {
        let data: &[u8] = if self.reads_priming { b"data: \n" } else { b"" };
        let retry = RETRY.as_millis();
        self.push(EventKind::Priming, |text| {
            let _ = writeln!(text, "retry: {retry}");
            text.extend_from_slice(data);
        })
    }

    /// Adds a message. JSON has no line ends, so that it is one line of data.
    pub(super) fn push_message(&mut self, message: &ServerJsonRpcMessage) -> EventKind {
        let kind = match message {
            JsonRpcMessage::Response(_) => EventKind::Result,
            JsonRpcMessage::Error(_) => EventKind::Error,
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => EventKind::Message,
        };
        self.push(kind, |text| {
            text.extend_from_slice(b"data: ");
            // What a handler returns can be written.
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
        self.events.push_back(Event {
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

    /// The first event with at least this number. Priming events are for the connection alone that they
    /// were made for, `own`.
    pub(super) fn first_from(&self, index: u64, own: Option<u64>) -> Option<&Event> {
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
    fn events_are_found_by_their_number() {
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
    fn older_clients_get_no_empty_data() {
        let mut log = EventLog::new("a-1".to_owned(), false);
        let own = log.push_priming();
        let text = log.first_from(0, Some(own)).unwrap().text();
        assert_eq!(text, "id: a-1-0\nretry: 3000\n\n");
    }

    #[test]
    fn the_oldest_events_make_room() {
        let mut log = EventLog::new("a-1".to_owned(), true);
        for number in 0..MAX_EVENTS + 10 {
            log.push_message(&message(number));
        }
        assert_eq!(log.first_from(0, None).unwrap().index, 10);
        assert_eq!(log.first_from(500, None).unwrap().index, 500);
        assert_eq!(log.events.len(), MAX_EVENTS);
    }
}

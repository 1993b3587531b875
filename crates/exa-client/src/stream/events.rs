//! Incremental parser for server-sent events.

use std::{collections::VecDeque, mem};

/// The byte order mark, which may start a UTF-8 stream.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The name of an event without one.
const DEFAULT_NAME: &str = "message";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The id of the last event that has one.
    pub(super) id: Option<String>,
    /// Its name; `message` by default.
    pub(super) name: String,
    /// Its lines of data, joined by line feeds.
    pub(super) data: String,
}

/// An event exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventTooLong;

/// Parses bytes in arbitrary chunks and returns complete events.
///
/// Lines end with LF, CRLF or CR, also mixed. Comments and `retry` are ignored: a stream that breaks
/// off is continued by another operation, not by repeating the request.
pub(super) struct EventParser {
    /// The maximum size of an event in bytes.
    max_bytes: usize,
    /// The current line, which may be incomplete.
    line: Vec<u8>,
    /// Whether a byte order mark may follow.
    at_start: bool,
    /// Whether a line feed would belong to the preceding carriage return.
    after_return: bool,
    id: Option<String>,
    name: String,
    data: Option<Vec<u8>>,
    complete: VecDeque<Event>,
}

impl EventParser {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            at_start: true,
            after_return: false,
            id: None,
            name: String::new(),
            data: None,
            complete: VecDeque::new(),
        }
    }

    /// Parses the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        while let Some((&first, after)) = bytes.split_first() {
            if mem::take(&mut self.after_return) && first == b'\n' {
                bytes = after;
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if text.len() > self.max_bytes.saturating_sub(held) {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(text);
            let Some((&end, rest)) = rest.split_first() else {
                break;
            };
            self.after_return = end == b'\r';
            self.end_line();
            bytes = rest;
        }
        Ok(())
    }

    /// Returns the next complete event.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.complete.pop_front()
    }

    /// Ends the stream. Some servers omit the empty line after the last event.
    pub(super) fn finish(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event();
    }

    fn end_line(&mut self) {
        let line = mem::take(&mut self.line);
        let line = if mem::take(&mut self.at_start) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line)
        } else {
            &line
        };
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.name = decode(value),
            b"id" if !value.contains(&0) => self.id = Some(decode(value)),
            // A comment has an empty field name; other fields are not used.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let name = mem::take(&mut self.name);
        let Some(data) = self.data.take() else {
            return;
        };
        self.complete.push_back(Event {
            id: self.id.clone(),
            name: if name.is_empty() {
                DEFAULT_NAME.to_owned()
            } else {
                name
            },
            data: decode(&data),
        });
    }
}

/// Decodes complete lines, so that a character split between two chunks is intact.
fn decode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 1_000;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = EventParser::new(MAX_BYTES);
        for piece in pieces {
            events.feed(piece).unwrap();
        }
        events.finish();
        let found = std::iter::from_fn(|| events.take());
        found.map(|event| (event.name, event.data)).collect()
    }

    fn unnamed(data: &[&str]) -> Vec<(String, String)> {
        let event = |data: &&str| ("message".to_owned(), (*data).to_owned());
        data.iter().map(event).collect()
    }

    #[test]
    fn chunk_boundaries_do_not_matter() {
        let fixtures: [(&str, Vec<(String, String)>); 7] = [
            ("data: a\n\ndata: b\n\n", unnamed(&["a", "b"])),
            ("data: a\r\n\r\ndata: b\r\n\r\n", unnamed(&["a", "b"])),
            ("data: a\r\rdata: b\r\r", unnamed(&["a", "b"])),
            (
                "\u{feff}data: é漢🙂\n\n: ping\n\n:\ndata:x\n\n",
                unnamed(&["é漢🙂", "x"]),
            ),
            (
                "event: results\nid: 7\nretry: 10\ndata: {\ndata:  \"a\": 1\ndata: }\n\n",
                vec![("results".to_owned(), "{\n \"a\": 1\n}".to_owned())],
            ),
            (
                "event: lost\n\ndata\n\ndata:\ndata:\n\nunknown: x\ndata: [DONE]",
                unnamed(&["", "\n", "[DONE]"]),
            ),
            (
                "data: a\r\n\ndata: b\n\r\ndata: c\r",
                unnamed(&["a", "b", "c"]),
            ),
        ];
        for (fixture, expected) in fixtures {
            let bytes = fixture.as_bytes();
            assert_eq!(read(&[bytes]), expected, "{fixture:?}");
            for first in 0..=bytes.len() {
                for second in first..=bytes.len() {
                    let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    assert_eq!(read(&cut), expected, "{fixture:?} cut at {first}, {second}");
                }
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), expected, "{fixture:?} byte by byte");
        }
    }

    #[test]
    fn skips_a_byte_order_mark_only_at_the_start() {
        let found = read(&["\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes()]);
        assert_eq!(found, unnamed(&["a"]));
    }

    #[test]
    fn tolerates_invalid_utf8_and_unknown_fields() {
        assert_eq!(
            read(&[b"data: \xff\xfe\x00\n\n"]),
            unnamed(&["\u{fffd}\u{fffd}\0"])
        );
        assert_eq!(read(&[b"\xff\n\n\n:::\nDATA: a\n\n"]), unnamed(&[]));
        assert_eq!(read(&[b""]), unnamed(&[]));
    }

    #[test]
    fn rejects_events_that_are_too_long() {
        let mut events = EventParser::new(10);
        events.feed(b"data: 1234\n").unwrap();
        assert_eq!(events.feed(b"data: 5678901"), Err(EventTooLong));
        let mut events = EventParser::new(10);
        assert_eq!(
            events.feed(b": a comment that is too long"),
            Err(EventTooLong)
        );
        let mut events = EventParser::new(10);
        for _ in 0..100 {
            events.feed(b"data: 1234\n\n: 12345678\n").unwrap();
        }
    }
}

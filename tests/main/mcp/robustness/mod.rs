//! Ten thousand random messages through the real program: it survives, responds to every request exactly
//! once, writes nothing but protocol messages and never reveals the key.

mod arguments;
mod lines;
mod random;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{API_KEY, McpServer, RecordedRequest, Recorder, Response};

/// The number of responses by id.
type IdCounts = BTreeMap<String, usize>;

/// Requests with this in their id may be cancelled, so a response is optional.
const CANCELLABLE: &str = "doomed";

/// Starts an upstream with all sorts of responses, some of which echo the key.
fn upstream() -> Recorder {
    Recorder::start(|request: &RecordedRequest, before| {
        let key = request.header("x-api-key").concat();
        let echo = format!("the key {key} is wrong");
        match before % 20 {
            0 => Response::json(400, &json!({"error": echo, "tag": key, "requestId": key})),
            1 => Response::json(
                401,
                &json!({"error": {"message": echo, "detail": {key: [echo]}}}),
            ),
            2 => Response::new(403).header("x-request-id", &key).body(echo),
            3 => Response::json(404, &json!({"message": ["gone", echo], "statusCode": 404})),
            4 => Response::new(200)
                .header("content-type", "text/html")
                .body(format!("<title>{echo}</title>")),
            5 => Response::new(200)
                .header("content-type", "application/json")
                .body("{\"cut\": ["),
            6 => Response::json(200, &json!([1, "two", null])),
            7 => Response::json(200, &Value::Null),
            8 => Response::new(204),
            9 => Response::new(302).header("location", &format!("http://{key}.example/")),
            _ => Response::json(
                200,
                &json!({"id": "x", "status": "é\u{1f642}\u{0}", "data": [{"n": 0.1}]}),
            ),
        }
    })
}

/// The expected and the received responses.
#[derive(Default)]
struct ResponseTracker {
    expected: IdCounts,
    received: IdCounts,
}

impl ResponseTracker {
    /// Reads until all expected responses have arrived.
    fn read_pending(&mut self, server: &mut McpServer) {
        let sure = |tally: &IdCounts| -> usize {
            let ids = tally.iter().filter(|(id, _)| !id.contains(CANCELLABLE));
            ids.map(|(_, count)| count).sum()
        };
        let mut missing = sure(&self.expected).saturating_sub(sure(&self.received));
        while missing > 0 {
            missing = missing.saturating_sub(self.take(&server.next()));
        }
    }

    /// Records the responses in a message and returns how many of them were mandatory.
    fn take(&mut self, message: &Value) -> usize {
        assert!(!message.to_string().contains(API_KEY), "{message}");
        let responses: Vec<&Value> = match message {
            Value::Array(members) => members.iter().collect(),
            single => vec![single],
        };
        let mut sure = 0;
        for response in responses.iter().filter_map(|response| response.get("id")) {
            let id = response.to_string();
            sure += usize::from(!id.contains(CANCELLABLE));
            *self.received.entry(id).or_default() += 1;
        }
        sure
    }

    #[track_caller]
    fn assert_complete(&self) {
        for (id, count) in self
            .received
            .iter()
            .filter(|(id, _)| id.contains(CANCELLABLE))
        {
            assert!(
                self.expected.get(id).is_some_and(|most| count <= most),
                "{id}"
            );
        }
        let ids = self.received.keys().chain(self.expected.keys());
        let wrong: Vec<_> = ids
            .filter(|id| {
                !id.contains(CANCELLABLE) && self.received.get(*id) != self.expected.get(*id)
            })
            .map(|id| (id, self.received.get(id), self.expected.get(id)))
            .collect();
        assert!(wrong.is_empty(), "(id, given, owed): {wrong:?}");
    }
}

/// Asserts that the server still works, exits successfully and has not revealed the key.
#[track_caller]
fn assert_healthy(mut server: McpServer, tracker: &mut ResponseTracker) {
    let response = server.request("ping", json!({}));
    assert_eq!(response["result"], json!({}));
    let ended = server.shut_down();
    for message in &ended.unread {
        tracker.take(message);
    }
    tracker.assert_complete();
    assert!(!ended.stderr.contains(API_KEY), "the key is in the log");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

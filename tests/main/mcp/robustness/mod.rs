//! Ten thousand random messages through the real program: it lives, answers every request exactly
//! once, writes nothing but the protocol and never shows the key.

mod arguments;
mod lines;
mod random;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{KEY, McpServer, Recorder, Reply, Seen};

/// How often each id is, or has to be, answered.
type Tally = BTreeMap<String, usize>;

/// Requests with such ids may be cancelled; whether one is answered depends on who was first.
const DOOMED: &str = "doomed";

/// An upstream with all sorts of answers; some try to get the key shown.
fn upstream() -> Recorder {
    Recorder::start(|seen: &Seen, before| {
        let key = seen.header("x-api-key").concat();
        let echo = format!("the key {key} is wrong");
        match before % 20 {
            0 => Reply::json(400, &json!({"error": echo, "tag": key, "requestId": key})),
            1 => Reply::json(
                401,
                &json!({"error": {"message": echo, "detail": {key: [echo]}}}),
            ),
            2 => Reply::new(403).header("x-request-id", &key).body(echo),
            3 => Reply::json(404, &json!({"message": ["gone", echo], "statusCode": 404})),
            4 => Reply::new(200)
                .header("content-type", "text/html")
                .body(format!("<title>{echo}</title>")),
            5 => Reply::new(200)
                .header("content-type", "application/json")
                .body("{\"cut\": ["),
            6 => Reply::json(200, &json!([1, "two", null])),
            7 => Reply::json(200, &Value::Null),
            8 => Reply::new(204),
            9 => Reply::new(302).header("location", &format!("http://{key}.example/")),
            _ => Reply::json(
                200,
                &json!({"id": "x", "status": "é\u{1f642}\u{0}", "data": [{"n": 0.1}]}),
            ),
        }
    })
}

/// Answers that have come, and those that must.
#[derive(Default)]
struct Ledger {
    owed: Tally,
    given: Tally,
}

impl Ledger {
    /// Reads until everything that is owed has come.
    fn settle(&mut self, server: &mut McpServer) {
        let sure = |tally: &Tally| -> usize {
            let ids = tally.iter().filter(|(id, _)| !id.contains(DOOMED));
            ids.map(|(_, count)| count).sum()
        };
        let mut missing = sure(&self.owed).saturating_sub(sure(&self.given));
        while missing > 0 {
            missing = missing.saturating_sub(self.take(&server.next()));
        }
    }

    /// Counts the answers of a message and says how many of them had to come.
    fn take(&mut self, message: &Value) -> usize {
        assert!(!message.to_string().contains(KEY), "{message}");
        let answers: Vec<&Value> = match message {
            Value::Array(members) => members.iter().collect(),
            single => vec![single],
        };
        let mut sure = 0;
        for answer in answers.iter().filter_map(|answer| answer.get("id")) {
            let id = answer.to_string();
            sure += usize::from(!id.contains(DOOMED));
            *self.given.entry(id).or_default() += 1;
        }
        sure
    }

    #[track_caller]
    fn assert_even(&self) {
        for (id, count) in self.given.iter().filter(|(id, _)| id.contains(DOOMED)) {
            assert!(self.owed.get(id).is_some_and(|most| count <= most), "{id}");
        }
        let ids = self.given.keys().chain(self.owed.keys());
        let wrong: Vec<_> = ids
            .filter(|id| !id.contains(DOOMED) && self.given.get(*id) != self.owed.get(*id))
            .map(|id| (id, self.given.get(id), self.owed.get(id)))
            .collect();
        assert!(wrong.is_empty(), "(id, given, owed): {wrong:?}");
    }
}

/// The server still serves, ends well, and has told nobody its key.
#[track_caller]
fn assert_sound(mut server: McpServer, ledger: &mut Ledger) {
    let answer = server.ask("ping", json!({}));
    assert_eq!(answer["result"], json!({}));
    let ended = server.end();
    for message in &ended.rest {
        ledger.take(message);
    }
    ledger.assert_even();
    assert!(!ended.stderr.contains(KEY), "the key is in the log");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

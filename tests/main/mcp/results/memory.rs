//! Kept answers are bounded in bytes, and with them the process.

use serde_json::{Value, json};

use super::{Desk, specimens};
use crate::support::{Outcome, Recorder, Reply, Seen};

/// Bytes of answers that the server may keep.
const LIMIT: u64 = 4_000_000;

/// What the program itself may need beside that.
const BESIDE: u64 = 20_000_000;

/// The benchmark makes a hundred thousand.
const SEARCHES: usize = 4_000;

/// How many searches are under way at once.
const AT_ONCE: usize = 50;

#[test]
fn memory_stays_bounded_after_many_searches() {
    let reply = Reply::json(200, &specimens::pages());
    let script = move |_: &Seen, _: usize| reply.clone();
    let variables = [("EXA_MCP_CACHE_BYTES", &*LIMIT.to_string())];
    let mut desk = Desk::with(Recorder::start(script), &[], &variables);
    let mut highest = 0;
    for round in 0..SEARCHES / AT_ONCE {
        let search = |number: usize| {
            let query = format!("search {round} {number}");
            json!({"name": "web_search_exa", "arguments": {"query": query}})
        };
        let sent: Vec<Value> = (0..AT_ONCE)
            .map(|number| desk.server.send("tools/call", search(number)))
            .collect();
        for id in sent {
            let outcome = Outcome::of(&desk.server.answer(&id));
            assert!(!outcome.is_error, "{}", outcome.text);
        }
        assert_eq!(desk.asked(), AT_ONCE, "every search is a new one");
        desk.server.forget_early();
        highest = highest.max(desk.server.resident());
    }
    assert!(highest <= LIMIT + BESIDE, "{highest} bytes");
}

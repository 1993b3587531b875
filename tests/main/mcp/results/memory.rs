//! The cache is bounded in bytes, and with it the memory of the process.

use serde_json::{Value, json};

use super::{Fixture, samples};
use crate::support::{Outcome, RecordedRequest, Recorder, Response};

/// The size limit of the cache.
const CACHE_BYTES: u64 = 4_000_000;

/// What the program may need in addition.
const BASE_MEMORY: u64 = 20_000_000;

/// The benchmark makes a hundred thousand searches.
const SEARCHES: usize = 4_000;

/// The number of concurrent searches.
const CONCURRENCY: usize = 50;

#[test]
fn memory_stays_bounded_after_many_searches() {
    let reply = Response::json(200, &samples::pages());
    let script = move |_: &RecordedRequest, _: usize| reply.clone();
    let variables = [("EXA_MCP_CACHE_BYTES", &*CACHE_BYTES.to_string())];
    let mut fixture = Fixture::with(Recorder::start(script), &[], &variables);
    let mut highest = 0;
    for round in 0..SEARCHES / CONCURRENCY {
        let search = |number: usize| {
            let query = format!("search {round} {number}");
            json!({"name": "web_search_exa", "arguments": {"query": query}})
        };
        let sent: Vec<Value> = (0..CONCURRENCY)
            .map(|number| fixture.server.send("tools/call", search(number)))
            .collect();
        for id in sent {
            let outcome = Outcome::from_response(&fixture.server.response(&id));
            assert!(!outcome.is_error, "{}", outcome.text);
        }
        assert_eq!(
            fixture.take_request_count(),
            CONCURRENCY,
            "every search is a new one"
        );
        fixture.server.clear_pending();
        highest = highest.max(fixture.server.resident_memory());
    }
    assert!(highest <= CACHE_BYTES + BASE_MEMORY, "{highest} bytes");
}

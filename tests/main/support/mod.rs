//! Helpers that the tests share.

#[cfg(unix)]
mod balancer;
mod enum_places;
mod http;
mod in_process_client;
pub(crate) mod json_rpc;
mod mcp;
mod outcome;
mod program;
mod recorder;
#[cfg(unix)]
mod redis;
pub(crate) mod sample;
mod sandbox;
pub(crate) mod schema;

use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
pub(crate) use balancer::Balancer;
pub(crate) use enum_places::{EnumPlace, enum_places};
pub(crate) use http::{Events, HttpResponse, HttpServer, HttpSession, initialize};
pub(crate) use in_process_client::InProcessClient;
#[cfg(unix)]
pub(crate) use mcp::signal;
pub(crate) use mcp::{DEFAULT_VERSION, McpServer, STATELESS_VERSION, stateless_params};
pub(crate) use outcome::{Failure, Outcome};
pub(crate) use program::{API_KEY, Output, Program};
pub(crate) use recorder::{Part, RecordedRequest, Recorder, Response};
#[cfg(unix)]
pub(crate) use redis::RedisServer;
pub(crate) use sandbox::Sandbox;

/// The longest that a test waits for anything. Only a failing test waits that long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until a condition holds, and fails the test after [`TIMEOUT`].
#[track_caller]
pub(crate) fn eventually(condition: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {condition}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Decodes percent-encoding strictly: an invalid escape fails the test, and `+` stays unchanged.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.unwrap_or_else(|| panic!("invalid escape in {text}")));
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| panic!("{text} does not decode to UTF-8"))
}

/// Fails with all problems at once, so that one run of a long table reports all of them.
#[track_caller]
pub(crate) fn assert_no_problems(problems: &[String]) {
    let count = problems.len();
    assert!(
        problems.is_empty(),
        "{count} problems:\n{}",
        problems.join("\n")
    );
}

//! What the tests share.

#[cfg(unix)]
mod balancer;
mod http;
mod library;
mod mcp;
mod outcome;
mod program;
mod recorder;
#[cfg(unix)]
mod redis;
pub(crate) mod sample;
mod sandbox;
pub(crate) mod schema;
pub(crate) mod wire;

#[cfg(unix)]
pub(crate) use balancer::Balancer;
pub(crate) use http::{Events, HttpReply, HttpServer, HttpSession, initialize};
pub(crate) use library::Library;
#[cfg(unix)]
pub(crate) use mcp::signal;
pub(crate) use mcp::{McpServer, STATELESS, USUAL, introduced};
pub(crate) use outcome::{Failure, Outcome};
pub(crate) use program::{KEY, Output, Program};
pub(crate) use recorder::{Part, Recorder, Reply, Seen};
#[cfg(unix)]
pub(crate) use redis::RedisServer;
pub(crate) use sandbox::Sandbox;

/// Decodes percent-encoding strictly: a `%` that starts no escape is a failure, and `+` stays as it is.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.unwrap_or_else(|| panic!("a broken escape in {text}")));
            rest = &rest[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| panic!("{text} does not decode to UTF-8"))
}

/// Fails with all problems at once, so that one run of a long table tells everything.
#[track_caller]
pub(crate) fn assert_none(problems: &[String]) {
    let count = problems.len();
    assert!(
        problems.is_empty(),
        "{count} problems:\n{}",
        problems.join("\n")
    );
}

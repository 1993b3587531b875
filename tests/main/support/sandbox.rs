//! The sandbox of the Exa API as a separate process, with a clock that a test controls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::{Value, json};

use super::{Program, TIMEOUT};

/// A running sandbox, killed when dropped.
pub(crate) struct Sandbox {
    child: Child,
    /// Stays open, so that the sandbox can write errors.
    _stderr: BufReader<ChildStderr>,
    address: String,
}

impl Sandbox {
    pub(crate) fn start() -> Self {
        let mut child = Program::new(["sandbox", "--listen", "127.0.0.1:0"])
            .into_command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the sandbox starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line on stderr");
        let mut words = line.split_whitespace();
        let address = words.find_map(|word| word.strip_prefix("http://"));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        Self {
            address: address.trim_end_matches('.').to_owned(),
            child,
            _stderr: stderr,
        }
    }

    /// Returns the URL for `EXA_BASE_URL`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Advances the sandbox's clock.
    pub(crate) fn advance(&self, milliseconds: u64) {
        self.control("clock", &json!({"advanceMs": milliseconds}));
    }

    /// Freezes or resumes the clock.
    pub(crate) fn freeze(&self, freeze: bool) {
        self.control("clock", &json!({"freeze": freeze}));
    }

    /// Makes requests to an operation fail, for example with `status=500`.
    pub(crate) fn fault(&self, operation: &str, fault: &str) {
        self.add_fault(&json!({"match": operation, "fault": fault}));
    }

    /// Adds a fault rule.
    pub(crate) fn add_fault(&self, rule: &Value) {
        self.control("faults", rule);
    }

    /// Removes all fault rules.
    pub(crate) fn clear_faults(&self) {
        self.request("DELETE", "faults", "");
    }

    /// Returns the number of objects of a kind.
    pub(crate) fn count(&self, kind: &str) -> u64 {
        let state = self.request("GET", "state", "");
        let objects = state["objects"].as_array().expect("objects");
        objects.iter().filter_map(|of| of[kind].as_u64()).sum()
    }

    /// Returns the number of requests since the start.
    pub(crate) fn request_count(&self) -> u64 {
        let state = self.request("GET", "state", "");
        state["requests"].as_u64().expect("a number of requests")
    }

    /// Returns the latest requests to an operation, oldest first.
    pub(crate) fn requests(&self, operation: &str) -> Vec<Value> {
        let mut response = self.request("GET", "requests?limit=500", "");
        let Value::Array(mut requests) = response["requests"].take() else {
            panic!("no requests");
        };
        requests.retain(|request| request["operation"] == operation);
        requests
    }

    /// Waits for this many requests to an operation.
    pub(crate) fn await_requests(&self, operation: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let requests = self.requests(operation);
            if requests.len() >= count {
                return requests;
            }
            assert!(Instant::now() < deadline, "{operation}: {requests:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Freezes the clock at a time in the future; from then on only [`Self::advance`] moves it.
    pub(crate) fn freeze_at(&self, time: &str) {
        let read = |text: &str| DateTime::parse_from_rfc3339(text).expect("an RFC 3339 time");
        let clock = self.control("clock", &json!({"freeze": true}));
        let now = read(clock["now"].as_str().expect("the time"));
        let ahead = read(time).signed_duration_since(now).num_milliseconds();
        self.advance(u64::try_from(ahead).expect("a time in the future"));
    }

    fn control(&self, path: &str, body: &Value) -> Value {
        self.request("POST", path, &body.to_string())
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Value {
        let Self { address, .. } = self;
        let request = format!(
            "{method} /sandbox/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).expect("the sandbox listens");
        stream
            .write_all(request.as_bytes())
            .expect("the sandbox reads");
        let mut response = String::new();
        stream
            .read_to_string(&mut response)
            .expect("the sandbox responds");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        let (_, body) = response.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

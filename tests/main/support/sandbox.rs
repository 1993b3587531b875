//! The stand-in Exa API as a process of its own, whose clock a test can move.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::{Value, json};

use super::Program;

/// How long something may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running sandbox; it ends with the test.
pub(crate) struct Sandbox {
    child: Child,
    /// Kept open, so that a complaint of the sandbox is no broken pipe.
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

    /// The address, fit for `EXA_BASE_URL`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the sandbox believe that this much time has passed: its searches take seconds.
    pub(crate) fn advance(&self, milliseconds: u64) {
        self.control("clock", &json!({"advanceMs": milliseconds}));
    }

    /// Stops the clock, or lets it go on.
    pub(crate) fn freeze(&self, freeze: bool) {
        self.control("clock", &json!({"freeze": freeze}));
    }

    /// Lets requests to an operation fail, for example with `status=500`.
    pub(crate) fn fault(&self, operation: &str, fault: &str) {
        self.add_fault(&json!({"match": operation, "fault": fault}));
    }

    /// Lets requests fail by a rule.
    pub(crate) fn add_fault(&self, rule: &Value) {
        self.control("faults", rule);
    }

    /// Lets all further requests work.
    pub(crate) fn heal(&self) {
        self.ask("DELETE", "faults", "");
    }

    /// How many objects of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> u64 {
        let state = self.ask("GET", "state", "");
        let objects = state["objects"].as_array().expect("objects");
        objects.iter().filter_map(|of| of[kind].as_u64()).sum()
    }

    /// How many requests have come since the beginning.
    pub(crate) fn total(&self) -> u64 {
        let state = self.ask("GET", "state", "");
        state["requests"].as_u64().expect("a number of requests")
    }

    /// The last requests to an operation, the oldest first.
    pub(crate) fn requests(&self, operation: &str) -> Vec<Value> {
        let mut answer = self.ask("GET", "requests?limit=500", "");
        let Value::Array(mut requests) = answer["requests"].take() else {
            panic!("no requests");
        };
        requests.retain(|request| request["operation"] == operation);
        requests
    }

    /// Waits until this many requests to an operation have come.
    pub(crate) fn await_requests(&self, operation: &str, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let requests = self.requests(operation);
            if requests.len() >= count {
                return requests;
            }
            assert!(Instant::now() < deadline, "{operation}: {requests:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the clock at a moment that is still to come; from now on only [`Self::advance`] moves it.
    pub(crate) fn freeze_at(&self, moment: &str) {
        let read = |text: &str| DateTime::parse_from_rfc3339(text).expect("a moment");
        let clock = self.control("clock", &json!({"freeze": true}));
        let now = read(clock["now"].as_str().expect("the time"));
        let ahead = read(moment).signed_duration_since(now).num_milliseconds();
        self.advance(u64::try_from(ahead).expect("a moment that is still to come"));
    }

    fn control(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, &body.to_string())
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let Self { address, .. } = self;
        let request = format!(
            "{method} /sandbox/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).expect("the sandbox listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! The stand-in Exa API as a process of its own, whose clock a test can move.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};

use serde_json::{Value, json};

use super::Program;

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

    /// Lets requests to an operation fail, for example with `status=500`.
    pub(crate) fn fault(&self, operation: &str, fault: &str) {
        self.control("faults", &json!({"match": operation, "fault": fault}));
    }

    fn control(&self, path: &str, body: &Value) {
        let Self { address, .. } = self;
        let body = body.to_string();
        let request = format!(
            "POST /sandbox/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).expect("the sandbox listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! A client of the stdio server process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Outcome, Program, Recorder, TIMEOUT, json_rpc};

/// The newest protocol version with a handshake, which tests use unless they are about versions.
pub(crate) const DEFAULT_VERSION: &str = "2025-11-25";
/// The protocol version without a handshake: every request carries the version and the capabilities.
pub(crate) const STATELESS_VERSION: &str = "2026-07-28";

/// How long a test waits to see that no message arrives.
const QUIET_PERIOD: Duration = Duration::from_millis(250);

const LIST_CHANGED: &str = "notifications/resources/list_changed";

/// A running server and the client's end of its pipes.
pub(crate) struct McpServer {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Messages that arrived while the test waited for another one.
    pending: Vec<Value>,
    /// Notifications that the list of resources changed. They may arrive at any time after a call, so only tests
    /// that wait for them see them.
    list_changes: Vec<Value>,
    last_id: u64,
    stateless: bool,
    /// The capabilities that the client declares.
    capabilities: Value,
    /// The log level that stateless requests ask for.
    log_level: Option<&'static str>,
}

/// What a server left when it exited.
#[derive(Debug)]
pub(crate) struct ServerExit {
    pub(crate) code: Option<i32>,
    /// Messages that the test had not read.
    pub(crate) unread: Vec<Value>,
    pub(crate) stderr: String,
}

impl McpServer {
    /// Starts the program without sending anything.
    pub(crate) fn start(program: Program) -> Self {
        let mut child = program
            .into_command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take().expect("a pipe");
        let (sender, output) = channel();
        // Both pipes are drained continuously: a full pipe would block the server.
        thread::spawn(move || {
            let mut lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
            lines.all(|line| sender.send(line).is_ok())
        });
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            drop(stderr.read_to_end(&mut text));
            text
        });
        Self {
            input: child.stdin.take(),
            child,
            output,
            stderr: Some(stderr),
            pending: Vec::new(),
            list_changes: Vec::new(),
            last_id: 0,
            stateless: false,
            capabilities: json!({}),
            log_level: None,
        }
    }

    /// Starts the program and connects a client of this protocol version.
    pub(crate) fn connect(program: Program, version: &str) -> Self {
        Self::connect_with(program, version, json!({}))
    }

    /// Like [`Self::connect`], for a client with these capabilities.
    pub(crate) fn connect_with(program: Program, version: &str, capabilities: Value) -> Self {
        let mut server = Self::start(program);
        server.capabilities = capabilities;
        if version == STATELESS_VERSION {
            server.stateless = true;
        } else {
            let result = server.handshake(version);
            assert_eq!(result["protocolVersion"], version, "{result}");
        }
        server
    }

    /// Starts a server with these flags and its own sandbox.
    pub(crate) fn sandboxed(flags: &[&str]) -> Self {
        let flags = ["--sandbox"].iter().chain(flags).copied();
        Self::connect(Program::new(flags), DEFAULT_VERSION)
    }

    /// Starts a server with these flags that uses a recorder as the Exa API.
    pub(crate) fn with_recorder(recorder: &Recorder, flags: &[&str]) -> Self {
        Self::with_upstream(&recorder.url(), flags)
    }

    /// Starts a server with these flags that uses this URL as the Exa API.
    pub(crate) fn with_upstream(url: &str, flags: &[&str]) -> Self {
        let program = Program::new(flags.iter().copied()).env("EXA_BASE_URL", url);
        Self::connect(program, DEFAULT_VERSION)
    }

    /// Initializes the session and returns the result of `initialize`.
    pub(crate) fn handshake(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({
            "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": client,
        });
        let body = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        body.get("result").expect("a handshake").clone()
    }

    /// Sets the capabilities that further stateless requests declare.
    pub(crate) fn set_capabilities(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// Writes a raw line.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        let written = input.write_all(line).and_then(|()| input.write_all(b"\n"));
        written.expect("the server reads");
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let params = if self.stateless {
            let mut params = stateless_params_with(params, &self.capabilities);
            if let Some(level) = self.log_level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            params
        } else {
            params
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(message.to_string().as_bytes());
        id
    }

    /// Sets the log level, for the session or for all further stateless requests.
    pub(crate) fn set_log_level(&mut self, level: &'static str) {
        if self.stateless {
            self.log_level = Some(level);
        } else {
            let body = self.request("logging/setLevel", json!({"level": level}));
            assert_eq!(body["result"], json!({}), "{body}");
        }
    }

    /// Returns whether the client uses the stateless protocol version.
    pub(crate) fn is_stateless(&self) -> bool {
        self.stateless
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(message.to_string().as_bytes());
    }

    /// Sends a request and returns the whole response.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(&id)
    }

    /// Calls a tool for uncached, untruncated results as JSON, unless the arguments say otherwise.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, mut arguments: Value) -> Outcome {
        let defaults = [
            ("output_format", json!("json")),
            ("max_tokens", json!(1_000_000)),
            ("fresh", json!(true)),
        ];
        if let Value::Object(arguments) = &mut arguments {
            for (name, value) in defaults {
                arguments.entry(name).or_insert(value);
            }
        }
        self.call_raw(tool, arguments)
    }

    /// Calls a tool for uncached results as JSON, and returns its progress notifications as well.
    #[track_caller]
    pub(crate) fn call_with_progress(
        &mut self,
        tool: &str,
        mut arguments: Value,
    ) -> (Vec<Value>, Outcome) {
        arguments["output_format"] = json!("json");
        arguments["fresh"] = json!(true);
        let meta = json!({"progressToken": "progress"});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let id = self.send("tools/call", params);
        let body = self.response(&id);
        let (steps, early) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|message| message["params"]["progressToken"] == "progress");
        self.pending = early;
        let steps: Vec<Value> = steps;
        let steps = steps.into_iter().map(|mut step| step["params"].take());
        (steps.collect(), Outcome::from_response(&body))
    }

    /// Calls a tool with exactly these arguments.
    #[track_caller]
    pub(crate) fn call_raw(&mut self, tool: &str, arguments: Value) -> Outcome {
        let body = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        Outcome::from_response(&body)
    }

    /// Returns the tools of all pages.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let body = self.request("tools/list", params);
            let page = body["result"]["tools"].as_array();
            tools.extend(page.expect("a list of tools").iter().cloned());
            match body["result"].get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    /// Waits for the response to a request.
    pub(crate) fn response(&mut self, id: &Value) -> Value {
        let is_response =
            |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
        if let Some(index) = self.pending.iter().position(is_response) {
            return self.pending.remove(index);
        }
        loop {
            match self.next() {
                message if is_response(&message) => return message,
                message => self.pending.push(message),
            }
        }
    }

    /// Waits for a notification with this method and returns its parameters.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let matches = |message: &Value| message.get("method") == Some(&json!(method));
        for messages in [&mut self.list_changes, &mut self.pending] {
            if let Some(index) = messages.iter().position(matches) {
                return messages.remove(index)["params"].take();
            }
        }
        loop {
            let line = self.output.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|error| panic!("no {method}: {error}"));
            match json_rpc::parse(&line) {
                mut message if matches(&message) => return message["params"].take(),
                message if message["method"] == LIST_CHANGED => self.list_changes.push(message),
                message => self.pending.push(message),
            }
        }
    }

    /// Returns a notification that has already arrived or arrives within [`QUIET_PERIOD`].
    pub(crate) fn try_notification(&mut self, method: &str) -> Option<Value> {
        let matches = |message: &Value| message.get("method") == Some(&json!(method));
        if let Some(index) = self.pending.iter().position(matches) {
            return Some(self.pending.remove(index)["params"].take());
        }
        while let Ok(mut message) = self.receive(QUIET_PERIOD) {
            if matches(&message) {
                return Some(message["params"].take());
            }
            self.pending.push(message);
        }
        None
    }

    /// Returns the next message of any kind.
    pub(crate) fn next(&mut self) -> Value {
        match self.receive(TIMEOUT) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no message within {TIMEOUT:?}; unread: {:?}", self.pending)
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the server has exited"),
        }
    }

    /// Returns the next message, and sets aside notifications that the list of resources changed.
    fn receive(&mut self, timeout: Duration) -> Result<Value, RecvTimeoutError> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = json_rpc::parse(&self.output.recv_timeout(left)?);
            if message["method"] != LIST_CHANGED {
                return Ok(message);
            }
            self.list_changes.push(message);
        }
    }

    /// Returns the next message of any kind that arrives in this time.
    pub(crate) fn try_message(&mut self, timeout: Duration) -> Option<Value> {
        self.receive(timeout).ok()
    }

    /// Returns how many notifications about the list of resources have arrived after this time.
    pub(crate) fn list_changes_after(&mut self, time: Duration) -> usize {
        let deadline = Instant::now() + time;
        while let Ok(message) = self.receive(deadline.saturating_duration_since(Instant::now())) {
            self.pending.push(message);
        }
        std::mem::take(&mut self.list_changes).len()
    }

    /// Asserts that no message arrives within [`QUIET_PERIOD`].
    #[track_caller]
    pub(crate) fn assert_silent(&mut self) {
        let message = self.receive(QUIET_PERIOD);
        assert_eq!(message, Err(RecvTimeoutError::Timeout));
        assert_eq!(self.pending, Vec::<Value>::new());
    }

    /// Discards buffered messages, which would grow in a long test.
    pub(crate) fn clear_pending(&mut self) {
        self.pending.clear();
        self.list_changes.clear();
    }

    /// Returns the anonymous memory of the process in bytes. The mapped pages of an unoptimised program are left out,
    /// because they say nothing about what the server stores.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a running process");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kibibytes: u64 = number.expect("a number").parse().expect("digits");
        kibibytes * 1024
    }

    /// Sends SIGTERM, as a process manager does.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a process to kill");
        self.child.wait().expect("an exit status");
    }

    /// Returns the process id.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input and asserts that the server exits successfully.
    #[track_caller]
    pub(crate) fn shut_down(mut self) -> ServerExit {
        self.input = None;
        let exit = self.wait();
        assert_eq!(exit.code, Some(0), "{exit:#?}");
        exit
    }

    /// Waits until the process exits for whatever reason.
    #[track_caller]
    pub(crate) fn wait(mut self) -> ServerExit {
        let deadline = Instant::now() + TIMEOUT;
        let mut unread = std::mem::take(&mut self.pending);
        // The output is closed when the process exits, so this cannot miss a message.
        loop {
            match self.receive(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) => unread.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not exit"),
            }
        }
        let status = self.child.wait().expect("an exit code");
        let stderr = self.stderr.take().map(JoinHandle::join);
        let stderr = stderr.and_then(Result::ok).unwrap_or_default();
        ServerExit {
            code: status.code(),
            unread,
            stderr: String::from_utf8(stderr).expect("UTF-8 on stderr"),
        }
    }
}

impl Drop for McpServer {
    /// Kills the process, so that a failed test leaves none behind.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends a signal to a process that the test has started.
#[cfg(unix)]
pub(crate) fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    let status = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{kill}");
}

/// Adds the metadata that the stateless version requires in every request.
pub(crate) fn stateless_params(params: Value) -> Value {
    stateless_params_with(params, &json!({}))
}

fn stateless_params_with(mut params: Value, capabilities: &Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS_VERSION);
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    params
}

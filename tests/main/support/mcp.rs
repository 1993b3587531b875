//! The stdio server as a client sees it: a process that speaks JSON-RPC over its pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Outcome, Program, Recorder, wire};

/// The newest version with a handshake; tests that are not about versions speak it.
pub(crate) const USUAL: &str = "2025-11-25";
/// The version without a handshake: every request introduces itself.
pub(crate) const STATELESS: &str = "2026-07-28";

/// How long an answer or the end may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long nothing must come to count as silence.
const MOMENT: Duration = Duration::from_millis(250);

const LIST_CHANGED: &str = "notifications/resources/list_changed";

/// A running server and the client's end of its pipes.
pub(crate) struct McpServer {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// Messages that came while another one was waited for.
    early: Vec<Value>,
    /// Messages that the list of resources has changed. They may come at any time after a call, so
    /// only tests that ask for them see them.
    changes: Vec<Value>,
    last_id: u64,
    stateless: bool,
    /// What the client says it can do.
    capabilities: Value,
    /// The level that requests of the stateless version ask for.
    log_level: Option<&'static str>,
}

/// What was left when the server had ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Messages that nobody had read.
    pub(crate) rest: Vec<Value>,
    pub(crate) stderr: String,
}

impl McpServer {
    /// Starts the program; nothing is sent yet.
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
        // Both pipes are emptied all the time: a full one would stop the server.
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
            early: Vec::new(),
            changes: Vec::new(),
            last_id: 0,
            stateless: false,
            capabilities: json!({}),
            log_level: None,
        }
    }

    /// Starts the program and introduces the client in the way of this version.
    pub(crate) fn connect(program: Program, version: &str) -> Self {
        Self::connect_with(program, version, json!({}))
    }

    /// The same for a client that can do something.
    pub(crate) fn connect_with(program: Program, version: &str, capabilities: Value) -> Self {
        let mut server = Self::start(program);
        server.capabilities = capabilities;
        if version == STATELESS {
            server.stateless = true;
        } else {
            let result = server.handshake(version);
            assert_eq!(result["protocolVersion"], version, "{result}");
        }
        server
    }

    /// A server with these flags and a sandbox of its own.
    pub(crate) fn sandboxed(flags: &[&str]) -> Self {
        let flags = ["--sandbox"].iter().chain(flags).copied();
        Self::connect(Program::new(flags), USUAL)
    }

    /// A server with these flags whose upstream is a recorder.
    pub(crate) fn recorded(recorder: &Recorder, flags: &[&str]) -> Self {
        Self::upstream(&recorder.url(), flags)
    }

    /// A server with these flags whose upstream is at this address.
    pub(crate) fn upstream(url: &str, flags: &[&str]) -> Self {
        let program = Program::new(flags.iter().copied()).env("EXA_BASE_URL", url);
        Self::connect(program, USUAL)
    }

    /// Introduces the client and gives the result of `initialize`.
    pub(crate) fn handshake(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({
            "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": client,
        });
        let answer = self.ask("initialize", hello);
        self.notify("notifications/initialized", json!({}));
        answer.get("result").expect("a handshake").clone()
    }

    /// Says with every further request of the stateless version what the client can do.
    pub(crate) fn declare(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// Writes a line as it is.
    pub(crate) fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("an open input");
        let written = input.write_all(line).and_then(|()| input.write_all(b"\n"));
        written.expect("the server reads");
    }

    /// Sends a request and gives its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        let params = if self.stateless {
            let mut params = introduced_with(params, &self.capabilities);
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

    /// Asks for log messages: of the session, or with every request from now on.
    pub(crate) fn set_log_level(&mut self, level: &'static str) {
        match self.stateless {
            true => self.log_level = Some(level),
            false => {
                let answer = self.ask("logging/setLevel", json!({"level": level}));
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
        }
    }

    /// Whether requests introduce themselves.
    pub(crate) fn is_stateless(&self) -> bool {
        self.stateless
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(message.to_string().as_bytes());
    }

    /// Sends a request and gives its whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(&id)
    }

    /// Calls a tool for everything that Exa answers now, as JSON.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, mut arguments: Value) -> Outcome {
        let everything = [
            ("output_format", json!("json")),
            ("max_tokens", json!(1_000_000)),
            ("fresh", json!(true)),
        ];
        if let Value::Object(arguments) = &mut arguments {
            for (name, value) in everything {
                arguments.entry(name).or_insert(value);
            }
        }
        self.call_plainly(tool, arguments)
    }

    /// Calls a tool for everything as JSON, and wants to hear how far the call is.
    #[track_caller]
    pub(crate) fn call_heard(&mut self, tool: &str, mut arguments: Value) -> (Vec<Value>, Outcome) {
        arguments["output_format"] = json!("json");
        arguments["fresh"] = json!(true);
        let meta = json!({"progressToken": "heard"});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let id = self.send("tools/call", params);
        let answer = self.answer(&id);
        let (steps, early) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|message| message["params"]["progressToken"] == "heard");
        self.early = early;
        let steps: Vec<Value> = steps;
        let steps = steps.into_iter().map(|mut step| step["params"].take());
        (steps.collect(), Outcome::of(&answer))
    }

    /// Calls a tool with nothing but these arguments.
    #[track_caller]
    pub(crate) fn call_plainly(&mut self, tool: &str, arguments: Value) -> Outcome {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        Outcome::of(&answer)
    }

    /// All tools, page by page.
    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let answer = self.ask("tools/list", params);
            let page = answer["result"]["tools"].as_array();
            tools.extend(page.expect("a list of tools").iter().cloned());
            match answer["result"].get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        let answers =
            |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
        if let Some(place) = self.early.iter().position(answers) {
            return self.early.remove(place);
        }
        loop {
            match self.next() {
                message if answers(&message) => return message,
                message => self.early.push(message),
            }
        }
    }

    /// Waits for a notification with this method and gives its parameters.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let tells = |message: &Value| message.get("method") == Some(&json!(method));
        for kept in [&mut self.changes, &mut self.early] {
            if let Some(place) = kept.iter().position(tells) {
                return kept.remove(place)["params"].take();
            }
        }
        loop {
            let line = self.output.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no {method}: {error}"));
            match wire::message(&line) {
                mut message if tells(&message) => return message["params"].take(),
                message if message["method"] == LIST_CHANGED => self.changes.push(message),
                message => self.early.push(message),
            }
        }
    }

    /// A notification that has come already, or comes within a moment.
    pub(crate) fn soon(&mut self, method: &str) -> Option<Value> {
        let tells = |message: &Value| message.get("method") == Some(&json!(method));
        if let Some(place) = self.early.iter().position(tells) {
            return Some(self.early.remove(place)["params"].take());
        }
        while let Ok(mut message) = self.receive(MOMENT) {
            if tells(&message) {
                return Some(message["params"].take());
            }
            self.early.push(message);
        }
        None
    }

    /// The next message, whatever it is.
    pub(crate) fn next(&mut self) -> Value {
        match self.receive(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no message within {PATIENCE:?}; unread: {:?}", self.early)
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the server has ended"),
        }
    }

    /// The next message but for those that are set aside.
    fn receive(&mut self, patience: Duration) -> Result<Value, RecvTimeoutError> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = wire::message(&self.output.recv_timeout(left)?);
            if message["method"] != LIST_CHANGED {
                return Ok(message);
            }
            self.changes.push(message);
        }
    }

    /// Checks that nothing comes for a moment.
    #[track_caller]
    pub(crate) fn assert_silent(&mut self) {
        let message = self.receive(MOMENT);
        assert_eq!(message, Err(RecvTimeoutError::Timeout));
        assert_eq!(self.early, Vec::<Value>::new());
    }

    /// Forgets what nobody asked for, so that a long test stays small itself.
    pub(crate) fn forget_early(&mut self) {
        self.early.clear();
        self.changes.clear();
    }

    /// The memory that the process holds for itself, in bytes; the pages of an unoptimised program are
    /// many, and no sign of what it keeps.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a running process");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        let kibibytes: u64 = number.expect("a number").parse().expect("digits");
        kibibytes * 1024
    }

    /// Asks the process to end, as a process manager would.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        signal(self.child.id(), "TERM");
    }

    /// Ends the process without any warning, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("a process to kill");
        self.child.wait().expect("an end");
    }

    /// The number of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input, which must end the server well.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        self.input = None;
        let ended = self.wait();
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended
    }

    /// Waits for the end, whatever brings it about.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = std::mem::take(&mut self.early);
        // The output ends with the process, so this cannot miss a message.
        loop {
            match self.receive(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) => rest.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the server does not end"),
            }
        }
        let status = self.child.wait().expect("an exit code");
        let stderr = self.stderr.take().map(JoinHandle::join);
        let stderr = stderr.and_then(Result::ok).unwrap_or_default();
        Ended {
            code: status.code(),
            rest,
            stderr: String::from_utf8(stderr).expect("UTF-8 on stderr"),
        }
    }
}

impl Drop for McpServer {
    /// A test that failed half-way leaves no process behind.
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

/// Parameters with what the stateless version wants in every request.
pub(crate) fn introduced(params: Value) -> Value {
    introduced_with(params, &json!({}))
}

fn introduced_with(mut params: Value, capabilities: &Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    params
}

//! Starts one MCP server over stdio, measures it once, and prints the figures as JSON:
//!
//! ```text
//! drive start COMMAND…                              time to the answers of initialize and tools/list
//! drive idle COMMAND…                               memory after tools/list
//! drive list COMMAND…                               all tools
//! drive calls CALLS BURST TOOL ARGUMENTS COMMAND…   CALLS calls one by one, then BURST with 32 in flight
//! drive again CALLS TOOL ARGUMENTS COMMAND…         one call, then CALLS looks at its kept answer
//! drive many CALLS TOOL ARGUMENTS COMMAND…          CALLS different calls with 32 in flight; `#` in
//!                                                   ARGUMENTS is the number of the call
//! ```
//!
//! A small program that waits in blocking reads, because what it measures takes a few milliseconds:
//! an event loop, or a fork of a large process, would cost as much again.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const IN_FLIGHT: usize = 32;

/// Calls that are not measured: they make the connections and let a just-in-time compiler begin.
const WARM_UP: usize = 20;

/// How long a server is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// How long a server may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// The unit of processor times in `/proc`: 100 a second on every Linux.
const TICK_MS: f64 = 10.0;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let figures = match arguments.as_slice() {
        ["start", command @ ..] => start(command)?,
        ["idle", command @ ..] => idle(command)?,
        ["list", command @ ..] => list(command)?,
        ["calls", calls, burst, tool, arguments, command @ ..] => {
            let params =
                json!({"name": tool, "arguments": serde_json::from_str::<Value>(arguments)?});
            measure_calls(calls.parse()?, burst.parse()?, &params, command)?
        }
        ["again", calls, tool, arguments, command @ ..] => {
            look_again(calls.parse()?, tool, arguments, command)?
        }
        ["many", calls, tool, arguments, command @ ..] => {
            many(calls.parse()?, tool, arguments, command)?
        }
        _ => return Err("usage: drive start|idle|list|calls|again|many …".into()),
    };
    println!("{figures}");
    Ok(())
}

fn start(command: &[&str]) -> Result<Value> {
    let started = Instant::now();
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let initialize = milliseconds(started);
    server.request("tools/list", &json!({}))?;
    let tools = milliseconds(started);
    server.end()?;
    Ok(json!({"initialize": initialize, "tools": tools}))
}

fn idle(command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    server.request("tools/list", &json!({}))?;
    sleep(SETTLE);
    let memory = server.memory()?;
    server.end()?;
    Ok(memory)
}

fn list(command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let answer: Value = serde_json::from_str(&server.request("tools/list", &params)?)?;
        let result = &answer["result"];
        tools.extend(result["tools"].as_array().cloned().unwrap_or_default());
        match &result["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({"cursor": cursor}),
        }
    }
    server.end()?;
    Ok(json!({"tools": tools}))
}

fn measure_calls(calls: usize, burst: usize, params: &Value, command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let mut latencies = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let started = Instant::now();
        let answer = server.request("tools/call", params)?;
        if number >= WARM_UP {
            latencies.push(milliseconds(started));
        }
        check_call(&answer)?;
    }
    let after_calls = server.memory()?;

    let processor = server.processor_ms()?;
    let started = Instant::now();
    server.calls_in_flight(burst, params)?;
    let seconds = started.elapsed().as_secs_f64();
    let processor = server.processor_ms()? - processor;
    let after_burst = server.memory()?;
    server.end()?;
    Ok(json!({
        "latencies": latencies,
        "afterCalls": after_calls,
        "perSecond": burst as f64 / seconds,
        "processorMs": processor / burst as f64,
        "afterBurst": after_burst,
    }))
}

/// The ways to look at a kept answer, in turns.
const LOOKS: [(&str, &str); 4] = [
    ("summary", "markdown"),
    ("standard", "markdown"),
    ("full", "markdown"),
    ("full", "json"),
];

/// How long looks at a kept answer take.
fn look_again(calls: usize, tool: &str, arguments: &str, command: &[&str]) -> Result<Value> {
    let mut arguments: Value = serde_json::from_str(arguments)?;
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let params = json!({"name": tool, "arguments": arguments});
    let answer: Value = serde_json::from_str(&server.request("tools/call", &params)?)?;
    arguments["cache_id"] = answer["result"]["structuredContent"]["metadata"]["cacheId"].clone();
    let mut latencies = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let (level, format) = LOOKS[number % LOOKS.len()];
        arguments["content_level"] = json!(level);
        arguments["output_format"] = json!(format);
        let params = json!({"name": tool, "arguments": arguments});
        let started = Instant::now();
        let answer = server.request("tools/call", &params)?;
        if number >= WARM_UP {
            latencies.push(milliseconds(started));
        }
        check_call(&answer)?;
    }
    server.end()?;
    Ok(json!({"latencies": latencies}))
}

/// The memory of a server that is asked ever new things.
fn many(calls: usize, tool: &str, arguments: &str, command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let (mut sent, mut answered) = (0, 0);
    while answered < calls {
        while sent < calls && sent - answered < IN_FLIGHT {
            let arguments: Value =
                serde_json::from_str(&arguments.replace('#', &sent.to_string()))?;
            server.send("tools/call", &json!({"name": tool, "arguments": arguments}))?;
            sent += 1;
        }
        let line = server.read()?;
        // Notifications are no answers.
        if line.contains("\"result\"") {
            check_call(&line)?;
            answered += 1;
        }
    }
    let memory = server.memory()?;
    server.end()?;
    Ok(memory)
}

/// The parts of an answer that say whether it is a good one.
#[derive(Deserialize)]
struct Answer {
    id: Option<u64>,
    error: Option<IgnoredAny>,
    result: Option<CallResult>,
}

#[derive(Deserialize)]
struct CallResult {
    #[serde(default, rename = "isError")]
    is_error: bool,
}

/// Fast failures must not count as fast calls.
fn check_call(line: &str) -> Result<()> {
    let answer: Answer = serde_json::from_str(line)?;
    match answer.result {
        Some(result) if !result.is_error => Ok(()),
        _ => Err(format!("the call failed: {}", excerpt(line)).into()),
    }
}

struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn spawn(command: &[&str]) -> Result<Self> {
        let (program, arguments) = command.split_first().ok_or("no command is given")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The official server logs five lines a call; reading them would slow it down.
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        Ok(Self {
            child,
            input,
            output: BufReader::with_capacity(64 * 1024, output),
            last_id: 0,
        })
    }

    fn initialize(&mut self) -> Result<()> {
        let client = json!({"name": "bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.request("initialize", &params)?;
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// Sends a request and waits for its answer.
    fn request(&mut self, method: &str, params: &Value) -> Result<String> {
        let id = self.send(method, params)?;
        loop {
            let line = self.read()?;
            let answer: Answer = serde_json::from_str(&line)?;
            if answer.error.is_some() {
                return Err(format!("{method} failed: {}", excerpt(&line)).into());
            }
            if answer.id == Some(id) {
                return Ok(line);
            }
        }
    }

    /// Makes calls with always the same number in flight. The requests of that many calls fit into
    /// the buffer of a pipe, so writing never waits for reading.
    fn calls_in_flight(&mut self, calls: usize, params: &Value) -> Result<()> {
        let (mut sent, mut answered) = (0, 0);
        while answered < calls {
            while sent < calls && sent - answered < IN_FLIGHT {
                self.send("tools/call", params)?;
                sent += 1;
            }
            check_call(&self.read()?)?;
            answered += 1;
        }
        Ok(())
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn read(&mut self) -> Result<String> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server ended early".into());
            }
            // What the server says by itself is no answer.
            if !line.starts_with(r#"{"jsonrpc":"2.0","method":"#) {
                return Ok(line);
            }
        }
    }

    /// Resident memory now and at its highest, in megabytes of a million bytes.
    fn memory(&self) -> Result<Value> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let megabytes = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            let kibibytes: f64 = number.ok_or("no such line in /proc")?.parse()?;
            Ok(kibibytes * 1024.0 / 1e6)
        };
        Ok(json!({
            "resident": megabytes("VmRSS:")?,
            "peak": megabytes("VmHWM:")?,
        }))
    }

    /// Processor time of all threads so far.
    fn processor_ms(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in parentheses may hold spaces; user and system time are fields 14 and 15.
        let fields = stat.rsplit_once(')').ok_or("a strange line in /proc")?.1;
        let fields = fields.split_whitespace().skip(11).take(2);
        let ticks: Vec<f64> = fields
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        Ok(ticks.iter().sum::<f64>() * TICK_MS)
    }

    /// Closes the input and waits for the end; a server that stays is killed.
    fn end(mut self) -> Result<()> {
        drop(self.input);
        let deadline = Instant::now() + GRACE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                self.child.kill()?;
            }
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn excerpt(line: &str) -> String {
    line.chars().take(500).collect()
}

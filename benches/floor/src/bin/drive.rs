//! Starts one MCP server over stdio, measures it once, and prints the results as JSON:
//!
//! ```text
//! drive start COMMAND…                              time to the responses of initialize and tools/list
//! drive idle COMMAND…                               memory after tools/list
//! drive list COMMAND…                               all tools
//! drive calls CALLS BURST TOOL ARGUMENTS COMMAND…   CALLS sequential calls, then BURST with 32 in flight
//! drive cached CALLS TOOL ARGUMENTS COMMAND…        one call, then CALLS reads of its cached result
//! drive many CALLS TOOL ARGUMENTS COMMAND…          CALLS different calls with 32 in flight; `#` in
//!                                                   ARGUMENTS is the number of the call
//! ```
//!
//! The program uses blocking reads, because what it measures takes only a few milliseconds; an event
//! loop, or a fork of a large process, would cost as much again.

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

/// Number of calls that are not measured: they open connections and warm up just-in-time compilers.
const WARM_UP: usize = 20;

/// Idle time before the memory of a server is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Time that a server has to exit by itself.
const GRACE: Duration = Duration::from_secs(3);

/// The unit of CPU times in `/proc`: 100 per second on every Linux.
const TICK_MS: f64 = 10.0;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let results = match arguments.as_slice() {
        ["start", command @ ..] => measure_start(command)?,
        ["idle", command @ ..] => measure_idle(command)?,
        ["list", command @ ..] => list_tools(command)?,
        ["calls", calls, burst, tool, arguments, command @ ..] => {
            let params =
                json!({"name": tool, "arguments": serde_json::from_str::<Value>(arguments)?});
            measure_calls(calls.parse()?, burst.parse()?, &params, command)?
        }
        ["cached", calls, tool, arguments, command @ ..] => {
            measure_cached(calls.parse()?, tool, arguments, command)?
        }
        ["many", calls, tool, arguments, command @ ..] => {
            measure_many(calls.parse()?, tool, arguments, command)?
        }
        _ => return Err("usage: drive start|idle|list|calls|cached|many …".into()),
    };
    println!("{results}");
    Ok(())
}

fn measure_start(command: &[&str]) -> Result<Value> {
    let started = Instant::now();
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let initialize = milliseconds(started);
    server.request("tools/list", &json!({}))?;
    let tools = milliseconds(started);
    server.shut_down()?;
    Ok(json!({"initialize": initialize, "tools": tools}))
}

fn measure_idle(command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    server.request("tools/list", &json!({}))?;
    sleep(SETTLE);
    let memory = server.memory()?;
    server.shut_down()?;
    Ok(memory)
}

fn list_tools(command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let response: Value = serde_json::from_str(&server.request("tools/list", &params)?)?;
        let result = &response["result"];
        tools.extend(result["tools"].as_array().cloned().unwrap_or_default());
        match &result["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({"cursor": cursor}),
        }
    }
    server.shut_down()?;
    Ok(json!({"tools": tools}))
}

fn measure_calls(calls: usize, burst: usize, params: &Value, command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let mut latencies = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let started = Instant::now();
        let response = server.request("tools/call", params)?;
        if number >= WARM_UP {
            latencies.push(milliseconds(started));
        }
        check_call(&response)?;
    }
    let after_calls = server.memory()?;

    let cpu = server.cpu_ms()?;
    let started = Instant::now();
    server.calls_in_flight(burst, params)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = server.cpu_ms()? - cpu;
    let after_burst = server.memory()?;
    server.shut_down()?;
    Ok(json!({
        "latencies": latencies,
        "afterCalls": after_calls,
        "perSecond": burst as f64 / seconds,
        "cpuMs": cpu / burst as f64,
        "afterBurst": after_burst,
    }))
}

/// The levels and formats in which a cached result is read, in rotation.
const READS: [(&str, &str); 4] = [
    ("summary", "markdown"),
    ("standard", "markdown"),
    ("full", "markdown"),
    ("full", "json"),
];

/// Measures the latency of reading a cached result.
fn measure_cached(calls: usize, tool: &str, arguments: &str, command: &[&str]) -> Result<Value> {
    let mut arguments: Value = serde_json::from_str(arguments)?;
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let params = json!({"name": tool, "arguments": arguments});
    let response: Value = serde_json::from_str(&server.request("tools/call", &params)?)?;
    arguments["cache_id"] = response["result"]["structuredContent"]["metadata"]["cacheId"].clone();
    let mut latencies = Vec::with_capacity(calls);
    for number in 0..WARM_UP + calls {
        let (level, format) = READS[number % READS.len()];
        arguments["content_level"] = json!(level);
        arguments["output_format"] = json!(format);
        let params = json!({"name": tool, "arguments": arguments});
        let started = Instant::now();
        let response = server.request("tools/call", &params)?;
        if number >= WARM_UP {
            latencies.push(milliseconds(started));
        }
        check_call(&response)?;
    }
    server.shut_down()?;
    Ok(json!({"latencies": latencies}))
}

/// Measures the memory of a server after many different calls.
fn measure_many(calls: usize, tool: &str, arguments: &str, command: &[&str]) -> Result<Value> {
    let mut server = Server::spawn(command)?;
    server.initialize()?;
    let (mut sent, mut received) = (0, 0);
    while received < calls {
        while sent < calls && sent - received < IN_FLIGHT {
            let arguments: Value =
                serde_json::from_str(&arguments.replace('#', &sent.to_string()))?;
            server.send("tools/call", &json!({"name": tool, "arguments": arguments}))?;
            sent += 1;
        }
        let line = server.read()?;
        // Skips notifications.
        if line.contains("\"result\"") {
            check_call(&line)?;
            received += 1;
        }
    }
    let memory = server.memory()?;
    server.shut_down()?;
    Ok(memory)
}

/// The parts of a response that tell whether it is a success.
#[derive(Deserialize)]
struct ResponseStatus {
    id: Option<u64>,
    error: Option<IgnoredAny>,
    result: Option<CallResult>,
}

#[derive(Deserialize)]
struct CallResult {
    #[serde(default, rename = "isError")]
    is_error: bool,
}

/// Fails for an error, so that fast errors do not count as fast calls.
fn check_call(line: &str) -> Result<()> {
    let response: ResponseStatus = serde_json::from_str(line)?;
    match response.result {
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
        let (program, arguments) = command.split_first().ok_or("missing command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The official server logs five lines per call; reading them would slow it down.
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

    /// Sends a request and waits for its response.
    fn request(&mut self, method: &str, params: &Value) -> Result<String> {
        let id = self.send(method, params)?;
        loop {
            let line = self.read()?;
            let response: ResponseStatus = serde_json::from_str(&line)?;
            if response.error.is_some() {
                return Err(format!("{method} failed: {}", excerpt(&line)).into());
            }
            if response.id == Some(id) {
                return Ok(line);
            }
        }
    }

    /// Makes calls with a constant number in flight. That many requests fit into the buffer of a pipe,
    /// so writes never wait for reads.
    fn calls_in_flight(&mut self, calls: usize, params: &Value) -> Result<()> {
        let (mut sent, mut received) = (0, 0);
        while received < calls {
            while sent < calls && sent - received < IN_FLIGHT {
                self.send("tools/call", params)?;
                sent += 1;
            }
            check_call(&self.read()?)?;
            received += 1;
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
                return Err("the server exited early".into());
            }
            // Skips notifications and server-initiated requests.
            if !line.starts_with(r#"{"jsonrpc":"2.0","method":"#) {
                return Ok(line);
            }
        }
    }

    /// Returns the current and the peak resident memory, in megabytes (10⁶ bytes).
    fn memory(&self) -> Result<Value> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let megabytes = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            let kibibytes: f64 = number.ok_or("missing line in /proc")?.parse()?;
            Ok(kibibytes * 1024.0 / 1e6)
        };
        Ok(json!({
            "resident": megabytes("VmRSS:")?,
            "peak": megabytes("VmHWM:")?,
        }))
    }

    /// Returns the CPU time of all threads so far.
    fn cpu_ms(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in parentheses may contain spaces; user and system time are fields 14 and 15.
        let fields = stat.rsplit_once(')').ok_or("unexpected line in /proc")?.1;
        let fields = fields.split_whitespace().skip(11).take(2);
        let ticks: Vec<f64> = fields
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        Ok(ticks.iter().sum::<f64>() * TICK_MS)
    }

    /// Closes the input and waits for the exit; kills the server after the grace period.
    fn shut_down(mut self) -> Result<()> {
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

//! Calls a tool over HTTP as fast as possible, and prints the results as JSON:
//!
//! ```text
//! load ADDRESS TOKEN CONNECTIONS CALLS TOOL ARGUMENTS
//! ```
//!
//! Each connection has its own session and makes sequential calls. ARGUMENTS may have two parts, separated
//! by `|`: the first is called once before the measurement, and `#` in the second becomes the cache id of
//! its result. The program uses blocking threads and its own HTTP parser, because the driver must cost
//! less than what it measures.

use std::{
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn open(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let mut client = Self {
            stream: BufReader::new(stream),
            head,
        };
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}});
        let (session, _) = client.post(&initialize.to_string())?;
        let session = session.ok_or("no session")?;
        client.head = format!(
            "{}Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-06-18\r\n",
            client.head
        );
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(client)
    }

    fn post(&mut self, body: &str) -> Result<(Option<String>, Vec<u8>)> {
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let success = line.contains(" 200 ") || line.contains(" 202 ");
        let (mut length, mut chunked, mut session) = (0, false, None);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => chunked = true,
                "mcp-session-id" => session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let body = if chunked {
            self.read_chunks()?
        } else {
            self.read_bytes(length)?
        };
        if success {
            Ok((session, body))
        } else {
            Err(String::from_utf8_lossy(&body).into())
        }
    }

    fn read_bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn read_chunks(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16)?;
            all.extend(self.read_bytes(length)?);
            self.read_bytes(2)?;
            if length == 0 {
                return Ok(all);
            }
        }
    }

    fn call(&mut self, params: &Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let (_, response) = self.post(&body.to_string())?;
        // Some servers respond with a stream of one event.
        let start = response.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let mut values = serde_json::Deserializer::from_slice(&response[start..]).into_iter();
        let response: Value = values.next().ok_or("no response")??;
        let is_error = response["result"]["isError"].as_bool().unwrap_or(false);
        if is_error || response.get("error").is_some() {
            return Err(response.to_string().into());
        }
        Ok(response)
    }
}

impl Drop for Client {
    /// Ends the session, which would otherwise live for half an hour.
    fn drop(&mut self) {
        let request = format!("{}\r\n", self.head.replacen("POST", "DELETE", 1));
        let _ = self.stream.get_mut().write_all(request.as_bytes());
        let _ = self.stream.read_line(&mut String::new());
    }
}

fn run(client: &mut Client, params: &Value, calls: usize) -> Result<Vec<Duration>> {
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let body = body.to_string();
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = Instant::now();
        let (_, response) = client.post(&body)?;
        times.push(started.elapsed());
        if response
            .windows(14)
            .any(|part| part == br#""isError":true"#)
        {
            return Err(String::from_utf8_lossy(&response).into());
        }
    }
    Ok(times)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, token, connections, calls, tool, arguments] = arguments.as_slice() else {
        return Err("load ADDRESS TOKEN CONNECTIONS CALLS TOOL ARGUMENTS".into());
    };
    let (connections, calls): (usize, usize) = (connections.parse()?, calls.parse()?);
    let mut clients = (0..connections)
        .map(|_| Client::open(address, token))
        .collect::<Result<Vec<_>>>()?;
    let repeated = match arguments.split_once('|') {
        Some((first, repeated)) => {
            let first = json!({"name": tool, "arguments": serde_json::from_str::<Value>(first)?});
            let response = clients[0].call(&first)?;
            let id = response["result"]["structuredContent"]["metadata"]["cacheId"].as_str();
            repeated.replace('#', id.ok_or("no cache id")?)
        }
        None => arguments.clone(),
    };
    let params = json!({"name": tool, "arguments": serde_json::from_str::<Value>(&repeated)?});
    let size = clients[0].call(&params)?.to_string().len();
    let calls_per_connection = calls / connections;
    let started = Instant::now();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let params = params.clone();
            thread::spawn(move || run(&mut client, &params, calls_per_connection))
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| "a thread failed")??);
    }
    let seconds = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let quantile = |part: f64| {
        let index = (times.len() - 1) as f64 * part;
        times[index as usize].as_secs_f64() * 1e3
    };
    let results = json!({"calls": times.len(), "callsPerSecond": times.len() as f64 / seconds,
        "medianMs": quantile(0.5), "p99Ms": quantile(0.99), "responseBytes": size});
    println!("{results}");
    Ok(())
}

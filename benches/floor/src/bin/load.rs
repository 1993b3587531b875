//! Calls a tool over HTTP as fast as it goes, and prints the figures as JSON:
//!
//! ```text
//! load ADDRESS TOKEN CONNECTIONS CALLS TOOL ARGUMENTS
//! ```
//!
//! Each connection has a session and makes its calls one after the other. `#` in ARGUMENTS is the cache id
//! that the first call told, which is made once before the clock starts. Blocking threads and a
//! reader of our own, because the driver must cost less than what it measures.

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
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}});
        let (session, _) = client.post(&hello.to_string())?;
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
        let good = line.contains(" 200 ") || line.contains(" 202 ");
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
        let body = match chunked {
            true => self.chunks()?,
            false => self.exactly(length)?,
        };
        match good {
            true => Ok((session, body)),
            false => Err(String::from_utf8_lossy(&body).into()),
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16)?;
            all.extend(self.exactly(length)?);
            self.exactly(2)?;
            if length == 0 {
                return Ok(all);
            }
        }
    }

    fn call(&mut self, params: &Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let (_, answer) = self.post(&body.to_string())?;
        // Some answer with a stream of one event.
        let start = answer.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let mut values = serde_json::Deserializer::from_slice(&answer[start..]).into_iter();
        let answer: Value = values.next().ok_or("no answer")??;
        match answer["result"]["isError"].as_bool().unwrap_or(false)
            || answer.get("error").is_some()
        {
            true => Err(answer.to_string().into()),
            false => Ok(answer),
        }
    }
}

impl Drop for Client {
    /// Ends the session, or the server would keep it for half an hour.
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
        let (_, answer) = client.post(&body)?;
        times.push(started.elapsed());
        if answer.windows(14).any(|part| part == br#""isError":true"#) {
            return Err(String::from_utf8_lossy(&answer).into());
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
    let (first, repeated) = match arguments.split_once('|') {
        Some((first, then)) => {
            let first = json!({"name": tool, "arguments": serde_json::from_str::<Value>(first)?});
            let answer = clients[0].call(&first)?;
            let id = answer["result"]["structuredContent"]["metadata"]["cacheId"].as_str();
            (true, then.replace('#', id.ok_or("no cache id")?))
        }
        None => (false, arguments.clone()),
    };
    let params = json!({"name": tool, "arguments": serde_json::from_str::<Value>(&repeated)?});
    let size = clients[0].call(&params)?.to_string().len();
    let share = calls / connections;
    let started = Instant::now();
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let params = params.clone();
            thread::spawn(move || run(&mut client, &params, share))
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| "a thread failed")??);
    }
    let took = started.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let figures = json!({"calls": times.len(), "callsASecond": times.len() as f64 / took,
        "medianMs": at(0.5), "p99Ms": at(0.99), "answerBytes": size, "looks": first});
    println!("{figures}");
    Ok(())
}

//! The HTTP server as a client sees it: a process with a port, spoken to byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Program, STATELESS, USUAL, introduced};

/// How long an answer may take. Only a failing test waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server; it ends with the test.
pub(crate) struct HttpServer {
    /// None for one that others run.
    child: Option<Child>,
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The messages of a body of events.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(
            self.header("content-type"),
            Some("text/event-stream"),
            "{self:?}"
        );
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = data.filter(|data| !data.trim().is_empty());
        data.map(|data| serde_json::from_str(data).expect("JSON in an event"))
            .collect()
    }
}

/// A stream of events that is read as it comes.
pub(crate) struct Events {
    reader: BufReader<Chunks<BufReader<TcpStream>>>,
    pub(crate) head: HttpReply,
}

impl Events {
    /// The next event: its name, and its data.
    pub(crate) fn next(&mut self) -> Option<(String, String)> {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).expect("a line in time") == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event:") {
                name = text.trim().to_owned();
            } else if let Some(text) = line.strip_prefix("data:") {
                data.push_str(text.trim_start());
            } else if line.is_empty() && !(name.is_empty() && data.is_empty()) {
                return Some((name, data));
            }
        }
    }

    /// The next line, whatever it is; pings too.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).expect("a line in time");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event that is a message.
    pub(crate) fn message(&mut self) -> Value {
        loop {
            let (_, data) = self.next().expect("another event");
            if !data.is_empty() {
                return serde_json::from_str(&data).expect("JSON in an event");
            }
        }
    }
}

impl HttpServer {
    /// Starts a server with its own sandbox.
    pub(crate) fn sandboxed(variables: &[(&str, &str)]) -> Self {
        let program = Program::new(["--sandbox", "http", "--listen", "127.0.0.1:0"]);
        Self::start(with(program, variables))
    }

    /// Starts a server with another upstream.
    pub(crate) fn upstream(url: &str, variables: &[(&str, &str)]) -> Self {
        let program = Program::new(["http", "--listen", "127.0.0.1:0"]).env("EXA_BASE_URL", url);
        Self::start(with(program, variables))
    }

    pub(crate) fn start(program: Program) -> Self {
        let mut child = program
            .into_command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let log = Arc::new(Mutex::new(String::new()));
        let mut address = None;
        while address.is_none() {
            let mut line = String::new();
            if stderr.read_line(&mut line).expect("a line on stderr") == 0 {
                panic!("the server did not start: {}", log.lock().unwrap());
            }
            let mut words = line.split_whitespace();
            let word = words.find_map(|word| word.strip_prefix("http://"));
            address = word
                .and_then(|word| word.strip_suffix("/mcp"))
                .map(str::to_owned);
            log.lock().unwrap().push_str(&line);
        }
        let kept = Arc::clone(&log);
        // Emptied all the time: a full pipe would stop the server.
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self {
            child: Some(child),
            address: address.expect("an address"),
            log,
        }
    }

    /// Whatever answers at an address.
    pub(crate) fn at(address: &str) -> Self {
        Self {
            child: None,
            address: address.to_owned(),
            log: Arc::default(),
        }
    }

    /// What the server said on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("a process").id()
    }

    /// Waits for the end and gives the exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let child = self.child.as_mut().expect("a process");
            if let Some(status) = child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends a request as it is and reads the whole answer.
    pub(crate) fn raw(&self, request: &[u8]) -> Option<HttpReply> {
        let mut stream = self.connect();
        // A server that refuses early may close before everything is written.
        let _ = stream.write_all(request);
        let mut reader = BufReader::new(stream);
        let mut reply = head(&mut reader)?;
        let mut body = body(&reply, reader);
        let _ = body.read_to_end(&mut reply.body);
        Some(reply)
    }

    /// Sends a request; headers that are not given are those that every client sends.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> HttpReply {
        let request = self.request(method, path, headers, body);
        self.raw(&request).expect("an answer")
    }

    /// The bytes of a request that closes its connection.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        let has = |name: &str| {
            headers
                .iter()
                .any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            head += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !has("content-length") && !has("transfer-encoding") && method == "POST" {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let mut request = (head + "\r\n").into_bytes();
        request.extend_from_slice(body);
        request
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        self.send("GET", path, headers, b"")
    }

    /// Posts JSON to `/mcp`.
    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> HttpReply {
        self.post_to("/mcp", headers, message)
    }

    pub(crate) fn post_to(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> HttpReply {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, message.to_string().as_bytes())
    }

    /// Opens a stream of events.
    pub(crate) fn events(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Events {
        let mut stream = self.connect();
        let request = self.request(method, path, headers, body);
        stream.write_all(&request).expect("the server reads");
        let mut reader = BufReader::new(stream);
        let head = head(&mut reader).expect("the head of a stream");
        let chunked = head.header("transfer-encoding") == Some("chunked");
        assert!(chunked, "{head:?}");
        let chunks = Chunks {
            reader,
            left: 0,
            ended: false,
        };
        Events {
            reader: BufReader::new(chunks),
            head,
        }
    }

    /// A session of this version for whoever shows these headers.
    pub(crate) fn session<'a>(
        &'a self,
        version: &str,
        headers: &[(&str, &str)],
    ) -> HttpSession<'a> {
        HttpSession::begin(self, "/mcp", version, headers)
    }

    /// A request of the version without sessions.
    pub(crate) fn stateless(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> HttpReply {
        self.raw(&self.stateless_request(headers, method, params))
            .expect("an answer")
    }

    /// The same of a server that may end at any moment: `None` without a whole answer, or `Err` if the server
    /// was not even reached.
    pub(crate) fn try_stateless(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> std::io::Result<Option<HttpReply>> {
        let request = self.stateless_request(headers, method, params);
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if stream.write_all(&request).is_err() {
            return Ok(None);
        }
        let mut reader = BufReader::new(stream);
        let Some(mut reply) = head(&mut reader) else {
            return Ok(None);
        };
        let mut body = body(&reply, reader);
        let _ = body.read_to_end(&mut reply.body);
        let is_whole = serde_json::from_slice::<Value>(&reply.body).is_ok();
        Ok(is_whole.then_some(reply))
    }

    /// The bytes of such a request.
    pub(crate) fn stateless_request(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> Vec<u8> {
        let name = params.get("name").or_else(|| params.get("uri"));
        let name = name
            .or_else(|| params.get("taskId"))
            .and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": introduced(params)});
        let mut all = vec![("mcp-protocol-version", STATELESS), ("mcp-method", method)];
        if !name.is_empty() {
            all.push(("mcp-name", &name));
        }
        all.push(("content-type", "application/json"));
        all.extend_from_slice(headers);
        self.request("POST", "/mcp", &all, message.to_string().as_bytes())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
        let log = self.log.lock().map(|log| log.clone()).unwrap_or_default();
        // A server that goes on after a panic may still answer well.
        assert!(
            thread::panicking() || !log.contains("panicked at"),
            "the server panicked: {log}"
        );
    }
}

/// A session of an older version.
pub(crate) struct HttpSession<'a> {
    server: &'a HttpServer,
    path: String,
    headers: Vec<(String, String)>,
    pub(crate) id: String,
    /// What the server said of itself.
    pub(crate) hello: Value,
    last: u64,
}

impl<'a> HttpSession<'a> {
    pub(crate) fn begin(
        server: &'a HttpServer,
        path: &str,
        version: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        Self::greet(server, path, headers, &initialize(version))
    }

    /// A session of the newest version that has them, with a client that can do something.
    pub(crate) fn able(
        server: &'a HttpServer,
        headers: &[(&str, &str)],
        capabilities: Value,
    ) -> Self {
        let mut hello = initialize(USUAL);
        hello["params"]["capabilities"] = capabilities;
        Self::greet(server, "/mcp", headers, &hello)
    }

    /// A session that begins with this message.
    pub(crate) fn greet(
        server: &'a HttpServer,
        path: &str,
        headers: &[(&str, &str)],
        hello: &Value,
    ) -> Self {
        let version = hello["params"]["protocolVersion"]
            .as_str()
            .expect("a version");
        let reply = server.post_to(path, headers, hello);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let id = reply
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut session = Self {
            server,
            path: path.to_owned(),
            headers: headers.iter().map(own).collect(),
            hello: reply.json()["result"].clone(),
            id: id.clone(),
            last: 1,
        };
        assert_eq!(session.hello["protocolVersion"], version);
        session.headers.push(("mcp-session-id".to_owned(), id));
        session
            .headers
            .push(("mcp-protocol-version".to_owned(), version.to_owned()));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&ready).status, 202);
        session
    }

    /// A session of the newest version that has them.
    pub(crate) fn usual(server: &'a HttpServer, headers: &[(&str, &str)]) -> Self {
        Self::begin(server, "/mcp", USUAL, headers)
    }

    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    pub(crate) fn post(&self, message: &Value) -> HttpReply {
        self.server.post_to(&self.path, &self.headers(), message)
    }

    /// Asks and gives the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        let reply = self.post(&message);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let answer = reply.json();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    /// Calls a tool and gives its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }
}

/// The first message of a session.
pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

fn with(program: Program, variables: &[(&str, &str)]) -> Program {
    let set = |program: Program, (name, value): &(&str, &str)| program.env(name, value);
    variables.iter().fold(program, set)
}

fn head(reader: &mut impl BufRead) -> Option<HttpReply> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(HttpReply {
        status,
        headers,
        body: Vec::new(),
    })
}

fn body(head: &HttpReply, reader: BufReader<TcpStream>) -> Box<dyn Read> {
    match (
        head.header("transfer-encoding"),
        head.header("content-length"),
    ) {
        (Some("chunked"), _) => Box::new(Chunks {
            reader,
            left: 0,
            ended: false,
        }),
        (_, Some(length)) => Box::new(reader.take(length.parse().expect("a length"))),
        _ => Box::new(reader),
    }
}

/// A body in chunks.
struct Chunks<R> {
    reader: R,
    left: usize,
    ended: bool,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        if self.left == 0 {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            let size = line.trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                self.ended = true;
                return Ok(0);
            };
            if size == 0 {
                self.ended = true;
                return Ok(0);
            }
            self.left = size;
        }
        let wanted = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..wanted])?;
        self.left -= read;
        if self.left == 0 {
            let mut end = String::new();
            self.reader.read_line(&mut end)?;
        }
        Ok(read)
    }
}

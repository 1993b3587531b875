//! A client of the HTTP server process that controls every byte it sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{DEFAULT_VERSION, Program, STATELESS_VERSION, TIMEOUT, stateless_params};

/// A running server, killed when dropped.
pub(crate) struct HttpServer {
    /// `None` for a server that this test did not start.
    child: Option<Child>,
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Returns the messages of an event stream.
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

/// An open event stream.
pub(crate) struct Events {
    reader: BufReader<ChunkedReader<BufReader<TcpStream>>>,
    pub(crate) head: HttpResponse,
}

impl Events {
    /// Returns the name and the data of the next event.
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

    /// Returns the next line, including comments and pings.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).expect("a line in time");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the next event that carries a message.
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
        Self::start(with_variables(program, variables))
    }

    /// Starts a server that uses this URL as the Exa API.
    pub(crate) fn with_upstream(url: &str, variables: &[(&str, &str)]) -> Self {
        let program = Program::new(["http", "--listen", "127.0.0.1:0"]).env("EXA_BASE_URL", url);
        Self::start(with_variables(program, variables))
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
        let log_writer = Arc::clone(&log);
        // The pipe is drained continuously: a full pipe would block the server.
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = log_writer.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self {
            child: Some(child),
            address: address.expect("an address"),
            log,
        }
    }

    /// Wraps a server that something else runs at this address.
    pub(crate) fn external(address: &str) -> Self {
        Self {
            child: None,
            address: address.to_owned(),
            log: Arc::default(),
        }
    }

    /// Returns what the server has written to standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.as_ref().expect("a process").id()
    }

    /// Waits until the process exits, and returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let child = self.child.as_mut().expect("a process");
            if let Some(status) = child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server does not exit");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends raw bytes and reads the whole response.
    pub(crate) fn send_raw(&self, request: &[u8]) -> Option<HttpResponse> {
        let mut stream = self.connect();
        // A server that rejects a request early may close the connection before everything is written.
        let _ = stream.write_all(request);
        let mut reader = BufReader::new(stream);
        let mut response = read_head(&mut reader)?;
        let mut body = read_body(&response, reader);
        let _ = body.read_to_end(&mut response.body);
        Some(response)
    }

    /// Sends a request, with default headers where none are given.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> HttpResponse {
        let request = self.request(method, path, headers, body);
        self.send_raw(&request).expect("a response")
    }

    /// Returns the bytes of a request with `connection: close`.
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

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        self.send("GET", path, headers, b"")
    }

    /// Posts JSON to `/mcp`.
    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> HttpResponse {
        self.post_to("/mcp", headers, message)
    }

    pub(crate) fn post_to(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> HttpResponse {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, message.to_string().as_bytes())
    }

    /// Opens an event stream.
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
        let head = read_head(&mut reader).expect("the head of a stream");
        let chunked = head.header("transfer-encoding") == Some("chunked");
        assert!(chunked, "{head:?}");
        let chunks = ChunkedReader {
            reader,
            left: 0,
            ended: false,
        };
        Events {
            reader: BufReader::new(chunks),
            head,
        }
    }

    /// Starts a session of this protocol version with these headers.
    pub(crate) fn session<'a>(
        &'a self,
        version: &str,
        headers: &[(&str, &str)],
    ) -> HttpSession<'a> {
        HttpSession::with_version(self, "/mcp", version, headers)
    }

    /// Sends a request of the stateless protocol version.
    pub(crate) fn send_stateless(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> HttpResponse {
        self.send_raw(&self.stateless_request(headers, method, params))
            .expect("a response")
    }

    /// Like [`Self::send_stateless`], for a server that may be killed at any moment: returns `None` if the response is
    /// incomplete, and an error if the connection fails.
    pub(crate) fn try_send_stateless(
        &self,
        headers: &[(&str, &str)],
        method: &str,
        params: Value,
    ) -> std::io::Result<Option<HttpResponse>> {
        let request = self.stateless_request(headers, method, params);
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        if stream.write_all(&request).is_err() {
            return Ok(None);
        }
        let mut reader = BufReader::new(stream);
        let Some(mut response) = read_head(&mut reader) else {
            return Ok(None);
        };
        let mut body = read_body(&response, reader);
        let _ = body.read_to_end(&mut response.body);
        let is_complete = serde_json::from_slice::<Value>(&response.body).is_ok();
        Ok(is_complete.then_some(response))
    }

    /// Returns the bytes of a request of the stateless protocol version.
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
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": stateless_params(params)});
        let mut all = vec![
            ("mcp-protocol-version", STATELESS_VERSION),
            ("mcp-method", method),
        ];
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
        // A server may continue after a panic, so its responses alone do not show one.
        assert!(
            thread::panicking() || !log.contains("panicked at"),
            "the server panicked: {log}"
        );
    }
}

/// A session of a protocol version with a handshake.
pub(crate) struct HttpSession<'a> {
    server: &'a HttpServer,
    path: String,
    headers: Vec<(String, String)>,
    pub(crate) id: String,
    /// The result of `initialize`.
    pub(crate) initialize_result: Value,
    last: u64,
}

impl<'a> HttpSession<'a> {
    pub(crate) fn with_version(
        server: &'a HttpServer,
        path: &str,
        version: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        Self::with_initialize(server, path, headers, &initialize(version))
    }

    /// Starts a session of the default version for a client with these capabilities.
    pub(crate) fn with_capabilities(
        server: &'a HttpServer,
        headers: &[(&str, &str)],
        capabilities: Value,
    ) -> Self {
        let mut message = initialize(DEFAULT_VERSION);
        message["params"]["capabilities"] = capabilities;
        Self::with_initialize(server, "/mcp", headers, &message)
    }

    /// Starts a session with this `initialize` message.
    pub(crate) fn with_initialize(
        server: &'a HttpServer,
        path: &str,
        headers: &[(&str, &str)],
        message: &Value,
    ) -> Self {
        let version = message["params"]["protocolVersion"]
            .as_str()
            .expect("a version");
        let response = server.post_to(path, headers, message);
        assert_eq!(response.status, 200, "{}", response.text());
        let id = response
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut session = Self {
            server,
            path: path.to_owned(),
            headers: headers.iter().map(own).collect(),
            initialize_result: response.json()["result"].clone(),
            id: id.clone(),
            last: 1,
        };
        assert_eq!(session.initialize_result["protocolVersion"], version);
        session.headers.push(("mcp-session-id".to_owned(), id));
        session
            .headers
            .push(("mcp-protocol-version".to_owned(), version.to_owned()));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&ready).status, 202);
        session
    }

    /// Starts a session of the default version.
    pub(crate) fn new(server: &'a HttpServer, headers: &[(&str, &str)]) -> Self {
        Self::with_version(server, "/mcp", DEFAULT_VERSION, headers)
    }

    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        let headers = self.headers.iter();
        headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    pub(crate) fn post(&self, message: &Value) -> HttpResponse {
        self.server.post_to(&self.path, &self.headers(), message)
    }

    /// Sends a request and returns the whole JSON-RPC response.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        let response = self.post(&message);
        assert_eq!(response.status, 200, "{}", response.text());
        let answer = response.json();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }
}

/// Returns the `initialize` request of a client without capabilities.
pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

fn with_variables(program: Program, variables: &[(&str, &str)]) -> Program {
    let set = |program: Program, (name, value): &(&str, &str)| program.env(name, value);
    variables.iter().fold(program, set)
}

fn read_head(reader: &mut impl BufRead) -> Option<HttpResponse> {
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
    Some(HttpResponse {
        status,
        headers,
        body: Vec::new(),
    })
}

fn read_body(head: &HttpResponse, reader: BufReader<TcpStream>) -> Box<dyn Read> {
    match (
        head.header("transfer-encoding"),
        head.header("content-length"),
    ) {
        (Some("chunked"), _) => Box::new(ChunkedReader {
            reader,
            left: 0,
            ended: false,
        }),
        (_, Some(length)) => Box::new(reader.take(length.parse().expect("a length"))),
        _ => Box::new(reader),
    }
}

/// Decodes a chunked body.
struct ChunkedReader<R> {
    reader: R,
    left: usize,
    ended: bool,
}

impl<R: BufRead> Read for ChunkedReader<R> {
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

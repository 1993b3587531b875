//! A mock HTTP/1.1 server that records every request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    /// Path and query, still encoded.
    pub(crate) target: String,
    /// Names are in lower case and may repeat.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RecordedRequest {
    /// Returns all values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the path, still encoded.
    pub(crate) fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(&*self.target, |(path, _)| path)
    }

    /// Returns the decoded pairs of the query, sorted because their order is not significant.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let mut pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        pairs.sort();
        pairs
    }

    /// Returns the body as JSON, or `None` if it is empty.
    pub(crate) fn json(&self) -> Option<Value> {
        if self.body.is_empty() {
            return None;
        }
        Some(serde_json::from_slice(&self.body).expect("a body of JSON"))
    }
}

/// A response of the mock server.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    disconnect: bool,
    parts: Vec<Part>,
}

/// A step of a response whose body is sent in parts.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Closes the connection in the middle of the body.
    Disconnect,
    /// Sends nothing more until the client closes the connection, and reports that to the channel.
    WaitForClose(Sender<()>),
}

impl Part {
    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(text.into())
    }
}

impl Response {
    /// Creates a response without a body.
    pub(crate) fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            disconnect: false,
            parts: Vec::new(),
        }
    }

    /// Creates a JSON response.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// Creates a JSON response that is sent after a pause.
    pub(crate) fn slow_json(pause: Duration, body: &Value) -> Self {
        let mut reply = Self::new(200).header("content-type", "application/json");
        reply.parts = vec![Part::Pause(pause), Part::text(body.to_string())];
        reply
    }

    /// Closes the connection without a response.
    pub(crate) fn disconnect() -> Self {
        Self {
            disconnect: true,
            ..Self::new(200)
        }
    }

    /// Creates an event stream.
    pub(crate) fn events(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut reply = Self::new(200).header("content-type", "text/event-stream");
        reply.parts = parts.into_iter().collect();
        reply
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        // A response of status 204 has no body, and so no length either.
        if !self.parts.is_empty() {
            head += "transfer-encoding: chunked\r\n";
        } else if self.status != 204 {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        let mut bytes = (head + "\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Chooses the response by the request and the number of requests before it.
type Script = dyn Fn(&RecordedRequest, usize) -> Response + Send + Sync;

/// The mock server. It runs until the test process exits.
pub(crate) struct Recorder {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl Recorder {
    /// Starts a server that responds by a script.
    pub(crate) fn start(
        script: impl Fn(&RecordedRequest, usize) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the address of a listener");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let record = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, script) = (Arc::clone(&record), Arc::clone(&script));
                thread::spawn(move || serve(&stream, &record, &*script));
            }
        });
        Self { address, requests }
    }

    /// Starts a server that sends these responses in order, and then repeats the last one.
    pub(crate) fn responses(responses: impl IntoIterator<Item = Response>) -> Self {
        let responses: Vec<Response> = responses.into_iter().collect();
        let last = responses
            .len()
            .checked_sub(1)
            .expect("at least one response");
        Self::start(move |_, before| responses[before.min(last)].clone())
    }

    /// Starts a server that always sends the same response.
    pub(crate) fn always(reply: Response) -> Self {
        Self::responses([reply])
    }

    /// Returns the URL of the server for `EXA_BASE_URL`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *self.requests.lock().expect("the record"))
    }

    /// Returns the only request since the last call of [`Self::take`].
    #[track_caller]
    pub(crate) fn only_request(&self) -> RecordedRequest {
        let mut requests = self.take();
        assert_eq!(requests.len(), 1, "expected one request: {requests:#?}");
        requests.remove(0)
    }
}

/// Serves one connection until the client closes it.
fn serve(stream: &TcpStream, record: &Mutex<Vec<RecordedRequest>>, script: &Script) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read_request(&mut reader) {
        let reply = {
            let mut record = record.lock().expect("the record");
            let reply = script(&request, record.len());
            record.push(request);
            reply
        };
        if reply.disconnect || writer.write_all(&reply.bytes()).is_err() {
            return;
        }
        if !reply.parts.is_empty() && !stream_parts(writer, &reply.parts) {
            return;
        }
    }
}

/// Sends a body in parts, and returns whether the connection can be reused.
fn stream_parts(mut stream: &TcpStream, parts: &[Part]) -> bool {
    for part in parts {
        match part {
            Part::Bytes(bytes) => {
                let head = format!("{:x}\r\n", bytes.len());
                let chunk = [head.as_bytes(), bytes, b"\r\n"].concat();
                if stream.write_all(&chunk).is_err() {
                    return false;
                }
            }
            Part::Pause(time) => thread::sleep(*time),
            Part::Disconnect => return false,
            Part::WaitForClose(closed) => {
                let received = stream.read(&mut [0]);
                assert!(!matches!(received, Ok(1..)), "the client sent more");
                let _ = closed.send(());
                return false;
            }
        }
    }
    stream.write_all(b"0\r\n\r\n").is_ok()
}

/// Reads one request; returns `None` if the client closed the connection.
fn read_request(reader: &mut impl BufRead) -> Option<RecordedRequest> {
    let first = read_line(reader)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a header with a colon");
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = RecordedRequest {
        method,
        target,
        headers,
        body: Vec::new(),
    };
    // Tests compare raw bodies, so chunked requests are not supported.
    assert_eq!(request.header("transfer-encoding"), Vec::<&str>::new());
    let length = request
        .header("content-length")
        .first()
        .map_or(Ok(0), |n| n.parse());
    request.body.resize(length.expect("a length in digits"), 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}

//! An HTTP/1.1 server that records every request exactly as it came over the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query, still encoded.
    pub(crate) target: String,
    /// Names in lower case, repeated ones kept.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// All values of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// The path, still encoded.
    pub(crate) fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(&*self.target, |(path, _)| path)
    }

    /// The decoded pairs of the query, sorted because their order means nothing.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let mut pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        pairs.sort();
        pairs
    }

    /// The body as JSON, or nothing if there was no content.
    pub(crate) fn json(&self) -> Option<Value> {
        if self.body.is_empty() {
            return None;
        }
        Some(serde_json::from_slice(&self.body).expect("a body of JSON"))
    }
}

/// What the server answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    hang_up: bool,
    parts: Vec<Part>,
}

/// What happens on the connection after the head of an answer whose body comes in parts.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// The connection ends in the middle of the body.
    Cut,
    /// Nothing more comes until the client hangs up, which is then told.
    Silence(Sender<()>),
}

impl Part {
    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(text.into())
    }
}

impl Reply {
    /// An answer without content.
    pub(crate) fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            hang_up: false,
            parts: Vec::new(),
        }
    }

    /// An answer of JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// An answer of JSON that takes a while.
    pub(crate) fn slow_json(pause: Duration, body: &Value) -> Self {
        let mut reply = Self::new(200).header("content-type", "application/json");
        reply.parts = vec![Part::Pause(pause), Part::text(body.to_string())];
        reply
    }

    /// No answer at all: the connection is closed.
    pub(crate) fn hang_up() -> Self {
        Self {
            hang_up: true,
            ..Self::new(200)
        }
    }

    /// A stream of events.
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
        // An answer of this status has no body, and so no length either.
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

/// Chooses the answer by the request and the number of those before it.
type Script = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// The server. It runs until the tests end.
pub(crate) struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    /// Starts a server that answers by a script.
    pub(crate) fn start(script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the address of a listener");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Script> = Arc::new(script);
        let record = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, script) = (Arc::clone(&record), Arc::clone(&script));
                thread::spawn(move || serve(&stream, &record, &*script));
            }
        });
        Self { address, seen }
    }

    /// Starts a server that gives these answers in turn, and the last one ever after.
    pub(crate) fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let last = replies.len().checked_sub(1).expect("at least one reply");
        Self::start(move |_, before| replies[before.min(last)].clone())
    }

    /// Starts a server that always gives the same answer.
    pub(crate) fn always(reply: Reply) -> Self {
        Self::replies([reply])
    }

    /// The address of the server, fit for `EXA_BASE_URL`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests since the last time they were taken.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().expect("the record"))
    }

    /// The only request that came.
    #[track_caller]
    pub(crate) fn only(&self) -> Seen {
        let mut seen = self.take();
        assert_eq!(seen.len(), 1, "one request, not these: {seen:#?}");
        seen.remove(0)
    }
}

/// Answers the requests of one connection until the client closes it.
fn serve(stream: &TcpStream, record: &Mutex<Vec<Seen>>, script: &Script) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read(&mut reader) {
        let reply = {
            let mut record = record.lock().expect("the record");
            let reply = script(&request, record.len());
            record.push(request);
            reply
        };
        if reply.hang_up || writer.write_all(&reply.bytes()).is_err() {
            return;
        }
        if !reply.parts.is_empty() && !stream_parts(writer, &reply.parts) {
            return;
        }
    }
}

/// Sends a body in parts; says whether the connection can be used again.
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
            Part::Cut => return false,
            Part::Silence(told) => {
                let gone = stream.read(&mut [0]);
                assert!(!matches!(gone, Ok(1..)), "the client sent more");
                let _ = told.send(());
                return false;
            }
        }
    }
    stream.write_all(b"0\r\n\r\n").is_ok()
}

/// Reads one request; nothing means that the client went away.
fn read(reader: &mut impl BufRead) -> Option<Seen> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a header with a colon");
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Seen {
        method,
        target,
        headers,
        body: Vec::new(),
    };
    // Tests compare bodies as they are, so a client that sends chunks should be noticed.
    assert_eq!(request.header("transfer-encoding"), Vec::<&str>::new());
    let length = request
        .header("content-length")
        .first()
        .map_or(Ok(0), |n| n.parse());
    request.body.resize(length.expect("a length in digits"), 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}

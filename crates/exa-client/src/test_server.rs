//! A small HTTP server for tests that sends scripted responses and records requests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
    time::sleep,
};

/// A recorded request.
#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl RecordedRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// One step of a scripted response; the connection is closed after the last one.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Close with a reset instead of an orderly end.
    Reset,
}

/// The scripted response to one request.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptedResponse(Vec<Step>);

impl ScriptedResponse {
    /// Closes the connection without a response.
    pub(super) fn cut() -> Self {
        Self::default()
    }

    /// Resets the connection without a response.
    pub(super) fn reset() -> Self {
        Self(vec![Step::Reset])
    }

    /// Sends raw bytes.
    pub(super) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Send(bytes.into())])
    }

    pub(super) fn json(status: u16, body: &str) -> Self {
        Self::new(status, &[("content-type", "application/json")], body)
    }

    /// Sends a complete response with its length.
    pub(super) fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        headers.push(("content-length", &length));
        Self::raw(head(status, &headers)).send(body)
    }

    /// Sends the head of a response whose body follows by [`Self::send`] and ends with the connection.
    pub(super) fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        Self::raw(head(status, headers))
    }

    pub(super) fn send(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(Step::Send(bytes.as_ref().to_vec()));
        self
    }

    /// Sends a chunk of a chunked body; an empty one ends it.
    pub(super) fn chunk(self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.send(format!("{:x}\r\n", bytes.len()))
            .send(bytes)
            .send("\r\n")
    }

    pub(super) fn wait(mut self, time: Duration) -> Self {
        self.0.push(Step::Wait(time));
        self
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n"
}

/// The server; it stops when dropped.
pub(super) struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    closed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl TestServer {
    /// Starts a server that sends these responses in order, and repeats the last one.
    pub(super) async fn start(responses: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let responses: Vec<ScriptedResponse> = responses.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = requests.clone();
        let closed = Arc::new(Notify::new());
        let notify = closed.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(
                    stream,
                    record.clone(),
                    responses.clone(),
                    notify.clone(),
                ));
            }
        });
        Self {
            address,
            requests,
            closed,
            task,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client closes the connection before the response is complete.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    responses: Vec<ScriptedResponse>,
    closed: Arc<Notify>,
) {
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request);
        requests.len()
    };
    let response = &responses[number.min(responses.len()) - 1];
    for step in &response.0 {
        match step {
            // Some tests close the connection on the client side.
            Step::Send(bytes) => drop(stream.write_all(bytes).await),
            Step::Wait(time) => {
                let mut more = [0];
                tokio::select! {
                    () = sleep(*time) => {}
                    // No data follows a request, so this is the end of the connection.
                    _ = stream.read(&mut more) => return closed.notify_one(),
                }
            }
            Step::Reset => stream.set_zero_linger().unwrap(),
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut request = RecordedRequest {
        method: first.next()?.to_owned(),
        target: first.next()?.to_owned(),
        headers,
        body: bytes[end + 4..].to_vec(),
    };
    let length = request
        .header("content-length")
        .map_or(0, |l| l.parse().unwrap());
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}

/// Returns a gzip file without compression.
pub(super) fn gzip(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    let mut out = GZIP_HEAD.to_vec();
    out.push(1);
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(data);
    out.extend(crc32(data).to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

/// Returns a truncated gzip file that expands to spaces, 258 for every 13 bits.
pub(super) fn gzip_bomb(bytes: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    // A last block with fixed codes, and a space as the first literal (code 0x30 + 32).
    bits.extend([true, true, false]);
    bits.extend((0..8).rev().map(|bit| (0x50_u8 >> bit) & 1 == 1));
    for _ in 0..bytes / 258 {
        // Repeat 258 bytes (symbol 285, code 11000101) from a distance of one (code 00000).
        bits.extend((0..8).rev().map(|bit| (0b1100_0101_u8 >> bit) & 1 == 1));
        bits.extend([false; 5]);
    }
    let pack = |eight: &[bool]| {
        let set = eight.iter().enumerate().filter(|(_, bit)| **bit);
        set.fold(0_u8, |byte, (at, _)| byte | (1 << at))
    };
    let mut out = GZIP_HEAD.to_vec();
    out.extend(bits.chunks(8).map(pack));
    out
}

const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

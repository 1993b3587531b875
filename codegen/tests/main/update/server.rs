//! An HTTP server that responds as told.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The response to one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A complete response: status, headers with `\r\n` after each, body.
    Response(&'static str, String, String),
    /// A response that ends before the announced length.
    Truncated(String),
    /// Chunked encoding that ends without the last chunk.
    TruncatedChunks(String),
    /// A body whose end is the end of the connection.
    WithoutLength(String),
    /// No response for a while.
    Silence,
    /// Headers, then a byte now and then.
    Trickle,
}

impl Reply {
    /// A document with an `ETag`.
    pub fn document(body: &str, etag: &str) -> Self {
        let headers = format!("content-type: application/yaml\r\netag: {etag}\r\n");
        Self::Response("200 OK", headers, body.to_owned())
    }
}

/// A server with its address and the requests that it received.
pub struct TestServer {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    replies: Arc<Mutex<Vec<Reply>>>,
}

impl TestServer {
    /// Starts a server that gives these replies in order, and the last one again and again.
    pub fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(replies));
        let (seen, planned) = (Arc::clone(&requests), Arc::clone(&replies));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                seen.lock().unwrap().push(read_head(&stream));
                let reply = {
                    let mut planned = planned.lock().unwrap();
                    if planned.len() > 1 {
                        planned.remove(0)
                    } else {
                        planned[0].clone()
                    }
                };
                // The client may close the connection first.
                let _ = send(&mut stream, &reply);
            }
        });
        Self {
            url,
            requests,
            replies,
        }
    }

    pub fn set(&self, reply: Reply) {
        *self.replies.lock().unwrap() = vec![reply];
    }

    /// Returns the heads of all requests, in lower case.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_head(stream: &TcpStream) -> String {
    let mut head = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap_or_default();
        if line.is_empty() {
            break;
        }
        head.push_str(&line.to_ascii_lowercase());
        head.push('\n');
    }
    head
}

fn send(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    let ok = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    match reply {
        Reply::Response(status, headers, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
            )
        }
        Reply::Truncated(body) => {
            write!(
                stream,
                "{ok}content-length: {}\r\n\r\n{body}",
                body.len() + 1000
            )
        }
        Reply::TruncatedChunks(body) => write!(
            stream,
            "{ok}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
            body.len()
        ),
        Reply::WithoutLength(body) => write!(stream, "{ok}\r\n{body}"),
        Reply::Silence => {
            std::thread::sleep(Duration::from_secs(2));
            Ok(())
        }
        Reply::Trickle => {
            write!(stream, "{ok}content-length: 1000\r\n\r\n")?;
            for _ in 0..20 {
                write!(stream, "#")?;
                stream.flush()?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }
    }
}

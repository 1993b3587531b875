//! An HTTP server that gives every request the same answer, as fast as it can: `mock FILE`.
//!
//! The sandbox does real work for every request; with this one behind it, a benchmark measures the
//! MCP server alone. The address goes to standard output; the end of standard input ends it.

use std::{
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::exit,
    sync::Arc,
    thread,
};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: mock FILE")?;
    let body = fs::read(file)?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer: Arc<[u8]> = [head.as_bytes(), &body].concat().into();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}", listener.local_addr()?);
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0)
    });
    for stream in listener.incoming() {
        let (stream, answer) = (stream?, Arc::clone(&answer));
        // A client that goes away is the normal end of a connection.
        thread::spawn(move || serve(stream, &answer));
    }
    Ok(())
}

fn serve(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut body = Vec::new();
    while let Some(length) = read_head(&mut reader)? {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        stream.write_all(answer)?;
    }
    Ok(())
}

/// Reads the head of a request and gives the length of its body; `None` at the end of the stream.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_end();
        if text.is_empty() {
            return Ok(Some(length));
        }
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

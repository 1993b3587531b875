//! An HTTP server that sends the same response to every request, as fast as possible: `mock FILE`.
//!
//! The sandbox does real work for every request; with this backend, a benchmark measures the MCP server
//! alone. The program prints its URL and exits at the end of standard input.

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
    let response: Arc<[u8]> = [head.as_bytes(), &body].concat().into();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}", listener.local_addr()?);
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0)
    });
    for stream in listener.incoming() {
        let (stream, response) = (stream?, Arc::clone(&response));
        // Errors are ignored: clients end connections by closing them.
        thread::spawn(move || serve(stream, &response));
    }
    Ok(())
}

fn serve(mut stream: TcpStream, response: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut body = Vec::new();
    while let Some(length) = read_head(&mut reader)? {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        stream.write_all(response)?;
    }
    Ok(())
}

/// Reads the head of a request and returns the length of its body; `None` at the end of the stream.
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

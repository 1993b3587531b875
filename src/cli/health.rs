//! `exa-mcp-server health`: asks a running server how it is, for images that hold no other program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{FAILED, Failure};
use crate::config::Source;
use crate::transport::http::HOSTS_VARIABLE;

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest answer that is read.
const LONGEST: u64 = 64 * 1024;

/// Gives what the server says about itself; a server that is not well is a failure.
pub(super) async fn ask(address: Option<&str>, source: &Source) -> Result<String, Failure> {
    let address = match address {
        Some(address) => address.to_owned(),
        None => reachable(source.text("EXA_MCP_LISTEN").as_deref()),
    };
    let address = address.as_str();
    let bad = |text: String| Failure { text, code: FAILED };
    let hosts = source.text(HOSTS_VARIABLE).unwrap_or_default();
    let asked = timeout(PATIENCE, exchange(address, hosts)).await;
    let answer = asked
        .map_err(|_| {
            bad(format!(
                "{address} did not answer within {} seconds",
                PATIENCE.as_secs()
            ))
        })?
        .map_err(|error| bad(format!("{address} cannot be reached: {error}")))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let well = head.starts_with("HTTP/1.1 200 ");
    let status: Value = serde_json::from_str(body.trim()).unwrap_or_default();
    match (well, status.get("status").and_then(Value::as_str)) {
        (true, Some(_)) => Ok(body.trim().to_owned()),
        _ => Err(bad(format!(
            "{address} is not well: {}",
            head.lines().next().unwrap_or_default()
        ))),
    }
}

/// Where a server can be reached from here that listens on this address.
fn reachable(listen: Option<&str>) -> String {
    let Some(listen) = listen.map(str::trim) else {
        return super::USUAL_ADDRESS.to_owned();
    };
    match listen.parse::<SocketAddr>() {
        // Every address of the machine is no address to call.
        Ok(place) if place.ip().is_unspecified() => {
            let here: IpAddr = match place {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            SocketAddr::new(here, place.port()).to_string()
        }
        _ => listen.to_owned(),
    }
}

async fn exchange(address: &str, hosts: String) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // The server answers only to names that it is called by.
    let known = hosts.split(',').map(str::trim);
    let host = known
        .into_iter()
        .find(|host| !host.is_empty() && *host != "*");
    let host = host.unwrap_or(address);
    let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_where_it_listens() {
        for (listen, expected) in [
            (None, "127.0.0.1:3000"),
            (Some("0.0.0.0:8080"), "127.0.0.1:8080"),
            (Some("[::]:8080"), "[::1]:8080"),
            (Some(" 10.1.2.3:80 "), "10.1.2.3:80"),
            (Some("localhost:81"), "localhost:81"),
        ] {
            assert_eq!(reachable(listen), expected);
        }
    }
}

//! `exa-mcp-server health`: checks a running server, for container images without other programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{FAILED, Failure};
use crate::config::SettingsSource;
use crate::transport::http::HOSTS_VARIABLE;

/// How long the server may take to respond.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum size of the response.
const MAX_RESPONSE_BYTES: u64 = 64 * 1024;

/// Returns the health report of the server. An unhealthy server is a failure.
pub(super) async fn check(
    address: Option<&str>,
    source: &SettingsSource,
) -> Result<String, Failure> {
    let address = match address {
        Some(address) => address.to_owned(),
        None => reachable_address(source.text("EXA_MCP_LISTEN").as_deref()),
    };
    let address = address.as_str();
    let failure = |text: String| Failure { text, code: FAILED };
    let hosts = source.text(HOSTS_VARIABLE).unwrap_or_default();
    let outcome = timeout(TIMEOUT, exchange(address, hosts)).await;
    let response = outcome
        .map_err(|_| {
            failure(format!(
                "{address} did not respond within {} seconds",
                TIMEOUT.as_secs()
            ))
        })?
        .map_err(|error| failure(format!("{address} cannot be reached: {error}")))?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let healthy = head.starts_with("HTTP/1.1 200 ");
    let status: Value = serde_json::from_str(body.trim()).unwrap_or_default();
    match (healthy, status.get("status").and_then(Value::as_str)) {
        (true, Some(_)) => Ok(body.trim().to_owned()),
        _ => Err(failure(format!(
            "{address} is unhealthy: {}",
            head.lines().next().unwrap_or_default()
        ))),
    }
}

/// Returns the address for connecting to a server that listens on `listen`.
fn reachable_address(listen: Option<&str>) -> String {
    let Some(listen) = listen.map(str::trim) else {
        return super::DEFAULT_ADDRESS.to_owned();
    };
    let listen = super::http::address(listen);
    match listen.parse::<SocketAddr>() {
        // The unspecified address cannot be connected to.
        Ok(address) if address.ip().is_unspecified() => {
            let here: IpAddr = match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            SocketAddr::new(here, address.port()).to_string()
        }
        _ => listen,
    }
}

async fn exchange(address: &str, hosts: String) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    // The server only accepts its configured host names.
    let names = hosts.split(',').map(str::trim);
    let host = names
        .into_iter()
        .find(|host| !host.is_empty() && *host != "*");
    let host = host.unwrap_or(address);
    let request = format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream
        .take(MAX_RESPONSE_BYTES)
        .read_to_string(&mut response)
        .await?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connects_to_the_listening_address() {
        for (listen, expected) in [
            (None, "127.0.0.1:3000"),
            (Some("0.0.0.0:8080"), "127.0.0.1:8080"),
            (Some("[::]:8080"), "[::1]:8080"),
            (Some(" 10.1.2.3:80 "), "10.1.2.3:80"),
            (Some("localhost:81"), "localhost:81"),
            (Some("81"), "127.0.0.1:81"),
            (Some(":81"), "127.0.0.1:81"),
        ] {
            assert_eq!(reachable_address(listen), expected);
        }
    }
}

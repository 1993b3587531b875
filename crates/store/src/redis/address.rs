//! Where Redis is: an address that may hold a password, which is never shown.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// Where Redis is.
#[derive(Clone)]
pub struct RedisAddress {
    url: String,
    info: Arc<ConnectionInfo>,
}

impl RedisAddress {
    /// Reads `redis://`, `rediss://` or `unix://`; `None` if it is none of them.
    pub(in super::super) fn parse(url: &str) -> Option<Self> {
        let info = Arc::new(url.into_connection_info().ok()?);
        // What nobody checks could as well be sent in the clear.
        let unchecked = matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. });
        let url = url.to_owned();
        (!unchecked && info.redis_settings().db() >= 0).then_some(Self { url, info })
    }

    /// Which of the databases of the server it is.
    pub(super) fn database(&self) -> i64 {
        self.info.redis_settings().db()
    }

    pub(super) fn info(&self) -> ConnectionInfo {
        ConnectionInfo::clone(&self.info)
    }
}

impl PartialEq for RedisAddress {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for RedisAddress {}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => write!(f, "Redis at {host}:{port}")?,
            ConnectionAddr::TcpTls { host, port, .. } => {
                write!(f, "Redis at {host}:{port} over TLS")?;
            }
            ConnectionAddr::Unix(path) => write!(f, "Redis at {}", path.display())?,
            _ => f.write_str("Redis")?,
        }
        match self.info.redis_settings().db() {
            0 => Ok(()),
            database => write!(f, ", database {database}"),
        }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let cases = [
            ("redis://:hunter2@host", "Redis at host:6379"),
            (
                "redis://ann:hunter2@host:7/3",
                "Redis at host:7, database 3",
            ),
            ("rediss://ann:hunter2@host", "Redis at host:6379 over TLS"),
            ("unix:///run/r.sock?pass=hunter2", "Redis at /run/r.sock"),
        ];
        for (url, shown) in cases {
            let address = RedisAddress::parse(url).unwrap();
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for odd in [
            "redis:",
            "redis://",
            "redis://host/first",
            "redis://host/-1",
            "redis://0.0.0.0",
            "rediss://host/#insecure",
            "http://host",
        ] {
            assert!(RedisAddress::parse(odd).is_none(), "{odd}");
        }
    }
}

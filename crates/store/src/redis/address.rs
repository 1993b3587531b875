//! The address of Redis. It may contain a password, which is never displayed.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// The address of a Redis server. Its `Display` and `Debug` forms omit the password.
#[derive(Clone)]
pub struct RedisAddress {
    url: String,
    info: Arc<ConnectionInfo>,
}

impl RedisAddress {
    /// Parses a `redis://`, `rediss://` or `unix://` URL.
    pub(in super::super) fn parse(url: &str) -> Option<Self> {
        let info = Arc::new(url.into_connection_info().ok()?);
        // TLS without certificate checks is no better than plain text.
        let unverified = matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. });
        let url = url.to_owned();
        (!unverified && info.redis_settings().db() >= 0).then_some(Self { url, info })
    }

    /// Returns the number of the database.
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
    fn display_omits_the_password() {
        let cases = [
            ("redis://:hunter2@host", "Redis at host:6379"),
            (
                "redis://ann:hunter2@host:7/3",
                "Redis at host:7, database 3",
            ),
            ("rediss://ann:hunter2@host", "Redis at host:6379 over TLS"),
            ("unix:///run/r.sock?pass=hunter2", "Redis at /run/r.sock"),
        ];
        for (url, display) in cases {
            let address = RedisAddress::parse(url).unwrap();
            assert_eq!(address.to_string(), display);
            assert!(!format!("{address:?}").contains("hunter2"));
        }
    }

    #[test]
    fn rejects_invalid_addresses() {
        for invalid in [
            "redis:",
            "redis://",
            "redis://host/first",
            "redis://host/-1",
            "redis://0.0.0.0",
            "rediss://host/#insecure",
            "http://host",
        ] {
            assert!(RedisAddress::parse(invalid).is_none(), "{invalid}");
        }
    }
}

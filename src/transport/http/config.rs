//! Configuration of the HTTP server.

use std::time::Duration;

use super::allow_lists::{AllowedHosts, AllowedOrigins, TrustedProxies};

/// Configuration of the HTTP server.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// The accepted values of the `Host` header.
    pub hosts: AllowedHosts,
    /// The accepted values of the `Origin` header.
    pub origins: AllowedOrigins,
    /// The proxies whose `X-Forwarded-For` header is trusted.
    pub proxies: TrustedProxies,
    /// Whether `/metrics` needs no authentication.
    pub public_metrics: bool,
    /// Limits on resources.
    pub limits: HttpLimits,
}

/// Limits on size, number and time.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// The maximum size of a request body in bytes.
    pub body: usize,
    /// How long a client may take to send a request head, and again to send its body.
    pub client_timeout: Duration,
    /// The maximum number of connections.
    pub connections: usize,
    /// The maximum number of connections from one address that is not a trusted proxy.
    pub connections_per_address: usize,
    /// The maximum number of sessions.
    pub sessions: usize,
    /// The maximum number of sessions per identity.
    pub sessions_per_owner: usize,
    /// The maximum number of sessions of all anonymous clients at one address.
    pub sessions_per_address: usize,
    /// The maximum number of streams of all anonymous clients at one address.
    pub streams_per_address: usize,
    /// How long a session may be idle.
    pub session_idle: Duration,
    /// How often a keep-alive comment is sent on a silent stream.
    pub keep_alive: Duration,
    /// How long running requests may take to finish on shutdown.
    pub drain: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            body: 1024 * 1024,
            client_timeout: Duration::from_secs(15),
            connections: 1_024,
            connections_per_address: 256,
            sessions: 10_000,
            sessions_per_owner: 1_000,
            sessions_per_address: 200,
            streams_per_address: 64,
            session_idle: Duration::from_secs(30 * 60),
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(10),
        }
    }
}

//! How the HTTP server behaves.

use std::time::Duration;

use super::allowed::{Hosts, Origins, Proxies};

/// How the HTTP server behaves.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// The hosts by which it may be called.
    pub hosts: Hosts,
    /// The web pages that may call it.
    pub origins: Origins,
    /// The proxies whose word about a client's address is taken.
    pub proxies: Proxies,
    /// Everybody may read the numbers of the server.
    pub open_metrics: bool,
    /// How much it takes on.
    pub limits: HttpLimits,
}

/// How much the server takes on, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Bytes of a request's body.
    pub body: usize,
    /// How long a client may take to send the head of a request, and again its body.
    pub client_timeout: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address that is no trusted proxy.
    pub connections_per_address: usize,
    /// Sessions at once.
    pub sessions: usize,
    /// Sessions at once of one identity.
    pub sessions_per_owner: usize,
    /// Sessions at once of all guests at one address.
    pub sessions_per_address: usize,
    /// Streams at once of all guests at one address.
    pub streams_per_address: usize,
    /// How long a session may be unused.
    pub session_idle: Duration,
    /// How often something is sent over a stream that has nothing to say.
    pub keep_alive: Duration,
    /// How long running requests may take once the server is to end.
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

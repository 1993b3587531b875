//! The other end of a connection.

use std::net::SocketAddr;

/// The address that a request came from, which may be that of a proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

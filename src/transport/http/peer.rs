//! The peer of a connection.

use std::net::SocketAddr;

/// The remote address of a connection, which may be that of a proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

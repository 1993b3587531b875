//! The client of a request. Until it has sent `notifications/initialized`, it receives nothing but responses.

use rmcp::{Peer, RoleServer, service::RequestContext};
use tokio_util::sync::CancellationToken;

use super::McpVersion;

/// Whether a client has sent `notifications/initialized`. Clones share their state.
#[derive(Clone, Default)]
pub(in super::super) struct Readiness(CancellationToken);

impl Readiness {
    /// Records that the client is ready.
    pub(in super::super) fn set(&self) {
        self.0.cancel();
    }
}

/// The client of a request.
#[derive(Clone)]
pub(in super::super) struct ClientPeer {
    peer: Peer<RoleServer>,
    /// `None` for a protocol version without a handshake.
    readiness: Option<Readiness>,
}

impl ClientPeer {
    /// Returns the client of a request.
    pub(in super::super) fn new(
        context: &RequestContext<RoleServer>,
        readiness: &Readiness,
    ) -> Self {
        let is_stateless = McpVersion::new(context.protocol_version()).is_stateless();
        Self {
            peer: context.peer.clone(),
            readiness: (!is_stateless).then(|| readiness.clone()),
        }
    }

    /// Returns the peer for notifications, if the client is ready for them.
    pub(in super::super) fn if_ready(&self) -> Option<&Peer<RoleServer>> {
        let is_ready = |readiness: &Readiness| readiness.0.is_cancelled();
        let is_ready = self.readiness.as_ref().is_none_or(is_ready);
        is_ready.then_some(&self.peer)
    }

    /// Returns the peer for requests once the client is ready for them.
    pub(in super::super) async fn when_ready(&self) -> &Peer<RoleServer> {
        if let Some(Readiness(ready)) = &self.readiness {
            ready.cancelled().await;
        }
        &self.peer
    }
}

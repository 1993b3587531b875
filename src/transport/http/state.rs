//! State shared by all requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::auth::AuthMode;
use super::body_memory::BodyMemory;
use super::config::HttpConfig;
use super::fair_slots::{Activity, FairSlots, Slot, SlotError};
use super::legacy_sse::SseConnections;
use super::request_ids::RequestIds;
use super::sessions::Sessions;
use super::store_health::StoreHealth;
use crate::http_response::{HttpRejection, busy};
use exa_mcp_accounts::Requester;
use exa_mcp_store::Store;

/// The `Retry-After` value when no stream slot is free.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// State shared by all requests.
pub(crate) struct HttpState<M> {
    pub(super) mcp: M,
    pub(super) auth_mode: AuthMode,
    pub(super) config: HttpConfig,
    pub(super) sessions: Arc<Sessions>,
    /// Connections of the legacy HTTP+SSE transport.
    pub(super) sse_connections: Arc<SseConnections>,
    /// Slots for the streams of anonymous clients.
    pub(super) anonymous_streams: Arc<FairSlots>,
    /// Memory for large request bodies.
    pub(super) body_memory: BodyMemory,
    pub(super) store: Arc<dyn Store>,
    pub(super) store_health: StoreHealth,
    pub(super) started: Instant,
    pub(super) in_flight: Arc<InFlight>,
    /// Ids of the requests in flight, by session.
    pub(super) request_ids: Arc<RequestIds>,
    /// Cancelled when the server shuts down: new requests are rejected.
    pub(super) draining: CancellationToken,
}

impl<M> HttpState<M> {
    /// Reserves a slot for a stream if the requester is anonymous.
    pub(super) fn reserve_stream(
        &self,
        requester: &Requester,
        activity: &Arc<Activity>,
    ) -> Result<Option<Slot>, HttpRejection> {
        let Some(address) = requester.guest_address else {
            return Ok(None);
        };
        let slot = self
            .anonymous_streams
            .acquire(Some(address), Arc::clone(activity));
        let rejection = |reason| match reason {
            SlotError::AddressLimit => busy(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many open streams from your address (EXA_MCP_MAX_STREAMS_PER_ADDRESS); \
                 close some, or try again later",
                RETRY_AFTER,
            ),
            SlotError::AllTaken => busy(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many open streams; try again later",
                RETRY_AFTER,
            ),
        };
        slot.map(Some).map_err(|reason| Box::new(rejection(reason)))
    }
}

/// Requests in flight.
#[derive(Default)]
pub(super) struct InFlight {
    count: AtomicUsize,
    idle: Notify,
}

/// Counts as a request in flight until it is dropped.
pub(super) struct InFlightGuard(Arc<InFlight>);

impl InFlight {
    pub(super) fn start(self: &Arc<Self>) -> InFlightGuard {
        self.count.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(Arc::clone(self))
    }

    /// Returns the number of requests in flight.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until no request is in flight.
    pub(super) async fn wait_until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

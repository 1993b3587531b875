//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Response, StatusCode};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::body_memory::BodyMemory;
use super::config::HttpConfig;
use super::fair_places::{Activity, FairPlaces, NoPlace, Place};
use super::gate::Gate;
use super::legacy::Streams;
use super::request_ids::RequestIds;
use super::sessions::Sessions;
use super::store_health::StoreHealth;
use crate::http_response::busy;
use exa_mcp_accounts::Requester;
use exa_mcp_store::Store;

/// When to come back to a server that has no place for another stream.
const COME_BACK: Duration = Duration::from_secs(5);

/// What all requests share.
pub(crate) struct Shared<M> {
    pub(super) mcp: M,
    pub(super) gate: Gate,
    pub(super) config: HttpConfig,
    pub(super) sessions: Arc<Sessions>,
    /// Connections of the oldest era.
    pub(super) streams: Arc<Streams>,
    /// Places for the streams of guests.
    pub(super) guest_streams: Arc<FairPlaces>,
    /// Memory for long bodies.
    pub(super) body_memory: BodyMemory,
    pub(super) store: Arc<dyn Store>,
    pub(super) store_health: StoreHealth,
    pub(super) started: Instant,
    pub(super) flights: Arc<Flights>,
    /// Ids of requests under way in sessions.
    pub(super) request_ids: Arc<RequestIds>,
    /// The server is to end: nothing new is begun.
    pub(super) draining: CancellationToken,
}

impl<M> Shared<M> {
    /// A place for another stream, where the requester is a guest.
    pub(super) fn guest_stream(
        &self,
        requester: &Requester,
        activity: &Arc<Activity>,
    ) -> Result<Option<Place>, Box<Response<Body>>> {
        let Some(address) = requester.guest_address else {
            return Ok(None);
        };
        let place = self
            .guest_streams
            .enter(Some(address), Arc::clone(activity));
        let refused = |why| match why {
            NoPlace::AddressIsFull => busy(
                StatusCode::TOO_MANY_REQUESTS,
                "Clients of your address have too many streams open (EXA_MCP_MAX_STREAMS_PER_ADDRESS); \
                 close some, or come back later",
                COME_BACK,
            ),
            NoPlace::AllTaken => busy(
                StatusCode::SERVICE_UNAVAILABLE,
                "There are too many streams open; come back later",
                COME_BACK,
            ),
        };
        place.map(Some).map_err(|why| Box::new(refused(why)))
    }
}

/// Requests under way.
#[derive(Default)]
pub(super) struct Flights {
    count: AtomicUsize,
    landed: Notify,
}

/// A request under way, until this is dropped.
pub(super) struct Flight(Arc<Flights>);

impl Flights {
    pub(super) fn enter(self: &Arc<Self>) -> Flight {
        self.count.fetch_add(1, Ordering::SeqCst);
        Flight(Arc::clone(self))
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until none is under way.
    pub(super) async fn all_landed(&self) {
        loop {
            let landed = self.landed.notified();
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            landed.await;
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.landed.notify_waiters();
        }
    }
}

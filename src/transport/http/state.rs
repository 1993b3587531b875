//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::config::HttpConfig;
use super::gate::Gate;
use super::health::StoreState;
use super::legacy::Streams;
use super::sessions::Sessions;
use crate::store::Store;

/// What all requests share.
pub(super) struct Shared<M> {
    pub(super) mcp: M,
    pub(super) gate: Gate,
    pub(super) config: HttpConfig,
    pub(super) sessions: Arc<Sessions>,
    /// Connections of the oldest era.
    pub(super) streams: Arc<Streams>,
    pub(super) store: Arc<dyn Store>,
    pub(super) store_state: StoreState,
    pub(super) started: Instant,
    pub(super) flights: Arc<Flights>,
    /// The server is to end: nothing new is begun.
    pub(super) draining: CancellationToken,
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

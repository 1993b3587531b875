//! Writes to the store that are retried until they succeed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use exa_mcp_store::{CounterUpdate, Reservation, Store, StoreError};

/// How long to wait before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An idempotent write.
#[derive(Clone, Debug)]
pub(super) enum LedgerWrite {
    /// Settles a reservation.
    Settle(Reservation, Vec<CounterUpdate>),
    /// Releases a slot.
    ReleaseSlot {
        /// The key of the slots.
        key: String,
        /// The id of the slot.
        id: String,
    },
}

impl LedgerWrite {
    pub(super) async fn apply(&self, store: &dyn Store) -> Result<(), StoreError> {
        match self {
            Self::Settle(reservation, updates) => {
                let settled = store.settle(reservation.clone(), updates.clone());
                settled.await.map(drop)
            }
            Self::ReleaseSlot { key, id } => store.release_slot(key.clone(), id.clone()).await,
        }
    }
}

/// Failed writes that are being retried.
pub(super) struct WriteQueue {
    sender: mpsc::UnboundedSender<LedgerWrite>,
    open: Arc<watch::Sender<usize>>,
}

impl WriteQueue {
    /// Must be called inside a runtime.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let (sender, writes) = mpsc::unbounded_channel();
        let open = Arc::new(watch::channel(0).0);
        tokio::spawn(run(store, writes, Arc::clone(&open)));
        Self { sender, open }
    }

    pub(super) fn add(&self, write: LedgerWrite) {
        self.open.send_modify(|open| *open += 1);
        if self.sender.send(write).is_err() {
            self.open.send_modify(|open| *open -= 1);
        }
    }

    /// Counts a write outside the queue as open until the guard is dropped.
    pub(super) fn start_write(&self) -> OpenWrite {
        self.open.send_modify(|open| *open += 1);
        OpenWrite(Arc::clone(&self.open))
    }

    /// Waits until all writes are done, at most this long.
    pub(super) async fn drain(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        let _ = timeout(limit, open.wait_for(|open| *open == 0)).await;
    }
}

/// Counts as an open write until dropped.
pub(super) struct OpenWrite(Arc<watch::Sender<usize>>);

impl Drop for OpenWrite {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

async fn run(
    store: Arc<dyn Store>,
    mut writes: mpsc::UnboundedReceiver<LedgerWrite>,
    open: Arc<watch::Sender<usize>>,
) {
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match writes.recv().await {
                Some(write) => waiting.push_back(write),
                None => return,
            }
        }
        while let Ok(write) = writes.try_recv() {
            waiting.push_back(write);
        }
        let Some(write) = waiting.front() else {
            continue;
        };
        match write.apply(&*store).await {
            Ok(()) => {
                waiting.pop_front();
                open.send_modify(|open| *open -= 1);
            }
            Err(error) => {
                let count = waiting.len();
                tracing::warn!(%error, count, "cannot settle budgets; trying again");
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

//! What must still be written to the store: tried again until it is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use exa_mcp_store::{CountChange, Reservation, Store, StoreError};

/// How long to wait before a store that failed is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Something that must be written. It does no harm to write it twice.
#[derive(Clone, Debug)]
pub(super) enum Duty {
    /// A reservation is settled.
    Settle(Reservation, Vec<CountChange>),
    /// A slot is free.
    Vacate {
        /// What is bounded.
        key: String,
        /// The entry.
        id: String,
    },
}

impl Duty {
    pub(super) async fn carry_out(&self, store: &dyn Store) -> Result<(), StoreError> {
        match self {
            Self::Settle(reservation, changes) => {
                let settled = store.settle(reservation.clone(), changes.clone());
                settled.await.map(drop)
            }
            Self::Vacate { key, id } => store.vacate(key.clone(), id.clone()).await,
        }
    }
}

/// Duties that could not be carried out yet.
pub(super) struct Queue {
    sender: mpsc::UnboundedSender<Duty>,
    open: Arc<watch::Sender<usize>>,
}

impl Queue {
    /// Must be called inside a runtime.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let (sender, duties) = mpsc::unbounded_channel();
        let open = Arc::new(watch::channel(0).0);
        tokio::spawn(work(store, duties, Arc::clone(&open)));
        Self { sender, open }
    }

    pub(super) fn add(&self, duty: Duty) {
        self.open.send_modify(|open| *open += 1);
        if self.sender.send(duty).is_err() {
            self.open.send_modify(|open| *open -= 1);
        }
    }

    /// Notes that something is about to be written outside the queue.
    pub(super) fn begin(&self) -> Writing {
        self.open.send_modify(|open| *open += 1);
        Writing(Arc::clone(&self.open))
    }

    /// Waits until everything is written, but not for long.
    pub(super) async fn drain(&self, patience: Duration) {
        let mut open = self.open.subscribe();
        let _ = timeout(patience, open.wait_for(|open| *open == 0)).await;
    }
}

/// Something that is being written.
pub(super) struct Writing(Arc<watch::Sender<usize>>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

async fn work(
    store: Arc<dyn Store>,
    mut duties: mpsc::UnboundedReceiver<Duty>,
    open: Arc<watch::Sender<usize>>,
) {
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match duties.recv().await {
                Some(duty) => waiting.push_back(duty),
                None => return,
            }
        }
        while let Ok(duty) = duties.try_recv() {
            waiting.push_back(duty);
        }
        let Some(duty) = waiting.front() else {
            continue;
        };
        match duty.carry_out(&*store).await {
            Ok(()) => {
                waiting.pop_front();
                open.send_modify(|open| *open -= 1);
            }
            Err(error) => {
                let count = waiting.len();
                tracing::warn!(%error, count, "budgets could not be settled; trying again");
                sleep(PAUSE).await;
            }
        }
    }
}

//! The ledger: the reservations of all accounts, in a store that several processes may share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

use super::BudgetPolicy;
use super::record::{ReservationBody, RunRecord, RunSlot};
use super::write_queue::{LedgerWrite, WriteQueue};
use exa_mcp_model::ids;
use exa_mcp_model::lock;
use exa_mcp_store::{
    BudgetCounters, BudgetState, LivenessGuard, ReassignOutcome, Reservation, ReserveOutcome, Slot,
    Store, StoreError, StoreFuture,
};

/// How long a request waits for the store.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// The ledger of a server.
pub struct BudgetLedger {
    pub(super) store: Arc<dyn Store>,
    pub(super) policy: BudgetPolicy,
    process: OnceCell<Process>,
    pub(super) queue: WriteQueue,
    /// The reservations of the runs that this process follows, by run key.
    runs: Mutex<HashMap<String, Reservation>>,
    followers: OnceLock<mpsc::UnboundedSender<OpenRun>>,
}

/// The identity of this process in the store.
struct Process {
    name: String,
    _liveness: LivenessGuard,
}

/// A run that is charged when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRun {
    /// The run.
    pub run: RunRecord,
}

/// Why nothing was reserved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReserveError {
    /// A budget does not have enough left.
    Exceeded(Vec<BudgetState>),
    /// The store failed.
    Store(StoreError),
}

impl BudgetLedger {
    /// Creates a ledger in a store. Must be called inside a runtime.
    pub fn new(store: Arc<dyn Store>, policy: BudgetPolicy) -> Arc<Self> {
        Arc::new(Self {
            queue: WriteQueue::new(Arc::clone(&store)),
            store,
            policy,
            process: OnceCell::new(),
            runs: Mutex::default(),
            followers: OnceLock::new(),
        })
    }

    /// Returns the name of this process, and marks it as alive at the first call.
    pub(super) async fn process(&self) -> Result<&str, StoreError> {
        let register = || async {
            let name =
                ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let liveness = self.store.mark_alive(name.clone()).await?;
            Ok::<_, StoreError>(Process {
                name,
                _liveness: liveness,
            })
        };
        let process = self.process.get_or_try_init(register).await?;
        Ok(&process.name)
    }

    /// Returns whether a name is that of this process.
    pub(super) fn is_own(&self, holder: &str) -> bool {
        let process = self.process.get();
        process.is_some_and(|process| process.name == holder)
    }

    /// Returns a channel of the runs to follow until they end. Only the first caller gets it.
    pub fn runs_to_follow(&self) -> Option<mpsc::UnboundedReceiver<OpenRun>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // The lock is held until the sender is set, so that no run is missed or sent twice.
        let known = lock(&self.runs);
        for run in runs_of(&known) {
            let _ = sender.send(OpenRun { run });
        }
        self.followers.set(sender).ok().map(|()| receiver)
    }

    /// Reserves an amount.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        body: ReservationBody,
        amount: u64,
        budgets: Vec<BudgetCounters>,
    ) -> Result<BudgetHold, ReserveError> {
        let holder = with_timeout(Box::pin(async { self.process().await.map(str::to_owned) }));
        let holder = holder.await.map_err(ReserveError::Store)?;
        let id = ids::random_id();
        let id =
            id.map_err(|error| ReserveError::Store(StoreError::Unavailable(error.to_string())))?;
        let reservation = Reservation {
            id,
            holder,
            amount,
            budgets,
            body: body.encode(),
        };
        // No request is sent before the store responds. If this future is dropped, the reservation costs nothing.
        let mut hold = BudgetHold {
            ledger: Arc::clone(self),
            open: Some((reservation.clone(), body)),
            is_sent: false,
        };
        match with_timeout(self.store.reserve(reservation)).await {
            Ok(ReserveOutcome::Held(_)) => {
                hold.is_sent = true;
                Ok(hold)
            }
            Ok(ReserveOutcome::Exceeded(states)) => {
                hold.open = None;
                Err(ReserveError::Exceeded(states))
            }
            Ok(ReserveOutcome::AlreadySettled) => Err(ReserveError::Store(StoreError::Conflict)),
            Err(error) => Err(ReserveError::Store(error)),
        }
    }

    /// Settles a reservation, or queues it if the store fails.
    pub(super) async fn settle(
        &self,
        reservation: Reservation,
        body: &ReservationBody,
        spent: u64,
    ) {
        if spent > reservation.amount {
            tracing::warn!(
                operation = body.operation,
                reserved = reservation.amount,
                spent,
                "a call cost more than its reservation (in millionths of a dollar)"
            );
        }
        let slot = body.slot.clone();
        let id = reservation.id.clone();
        let settle = LedgerWrite::Settle(reservation, body.updates(spent));
        self.write(settle).await;
        if let Some(RunSlot { key, .. }) = slot {
            self.write(LedgerWrite::ReleaseSlot { key, id }).await;
        }
    }

    pub(super) async fn write(&self, write: LedgerWrite) {
        let _writing = self.queue.start_write();
        let done = with_timeout(Box::pin(write.apply(&*self.store)));
        if let Err(error) = done.await {
            tracing::warn!(%error, "cannot settle a budget; trying again");
            self.queue.add(write);
        }
    }

    /// Waits until all writes are done, at most this long.
    pub async fn drain(&self, limit: Duration) {
        self.queue.drain(limit).await;
    }

    /// Charges a run that has ended, at the reserved amount if its cost is unknown. Does nothing for a run that this
    /// process does not follow.
    pub async fn charge_run(&self, key: &str, cost: Option<u64>) {
        let reservation = lock(&self.runs).remove(key);
        let Some(reservation) = reservation else {
            return;
        };
        if let Some(body) = ReservationBody::decode(&reservation.body) {
            let spent = cost.unwrap_or(reservation.amount);
            self.settle(reservation, &body, spent).await;
        }
    }

    /// Returns whether this process follows a run.
    pub fn follows(&self, key: &str) -> bool {
        lock(&self.runs).contains_key(key)
    }

    /// Returns who pays for a run that is not charged yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn payer_of_run(&self, key: &str) -> Result<Option<String>, StoreError> {
        let own = lock(&self.runs).get(key).cloned();
        let open = match own {
            Some(own) => vec![own],
            None => with_timeout(self.store.reservations()).await?,
        };
        let mut bodies = open
            .iter()
            .filter_map(|open| ReservationBody::decode(&open.body));
        let is_of_run =
            |body: &ReservationBody| body.run.as_ref().is_some_and(|run| run.key == key);
        Ok(bodies.find(is_of_run).map(|body| body.payer))
    }

    /// Returns the runs that this process follows.
    pub fn open_runs(&self) -> Vec<RunRecord> {
        runs_of(&lock(&self.runs)).collect()
    }

    /// Starts to follow a run.
    pub(super) fn follow(&self, run: RunRecord, reservation: Reservation) {
        let mut runs = lock(&self.runs);
        runs.insert(run.key.clone(), reservation);
        if let Some(followers) = self.followers.get() {
            // Without a receiver, another process follows the run.
            let _ = followers.send(OpenRun { run });
        }
    }

    /// Binds a reservation to a run until it ends, unless the run is already charged.
    async fn assign_to_run(
        &self,
        reservation: Reservation,
        body: ReservationBody,
        run: RunRecord,
        ended: Option<Option<u64>>,
    ) {
        let current = reservation.clone();
        let body = ReservationBody {
            run: Some(run.clone()),
            ..body
        };
        let changed = Reservation {
            body: body.encode(),
            ..reservation
        };
        let claim = Some(run.key.clone());
        let outcome = with_timeout(self.store.reassign(current, changed.clone(), claim)).await;
        match outcome {
            Ok(ReassignOutcome::Gone) => return,
            Ok(ReassignOutcome::Claimed) => {
                tracing::info!(run = run.key, "run is already charged");
                self.settle(changed, &body, 0).await;
                return;
            }
            Ok(ReassignOutcome::Done) => {}
            // This process follows the run anyway; only another one could not take over.
            Err(error) => tracing::warn!(run = run.key, %error, "cannot store a run"),
        }
        if let Some(cost) = ended {
            let spent = cost.unwrap_or(changed.amount);
            self.settle(changed, &body, spent).await;
            return;
        }
        if let Some(RunSlot { key, group }) = body.slot.clone() {
            let slot = Slot {
                key,
                id: changed.id.clone(),
                group,
                holder: changed.holder.clone(),
                is_durable: true,
            };
            if let Err(error) = with_timeout(self.store.acquire_slot(slot, None)).await {
                tracing::warn!(run = run.key, %error, "cannot count a run as a call in progress");
            }
        }
        self.follow(run, changed);
    }
}

fn runs_of(open: &HashMap<String, Reservation>) -> impl Iterator<Item = RunRecord> {
    let bodies = open
        .values()
        .map(|open| ReservationBody::decode(&open.body));
    bodies.filter_map(|body| body?.run)
}

/// Waits for the store, at most [`STORE_TIMEOUT`].
pub(super) async fn with_timeout<T>(future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let timed_out = |_| Err(StoreError::Unavailable("it does not respond".to_owned()));
    timeout(STORE_TIMEOUT, future)
        .await
        .unwrap_or_else(timed_out)
}

/// An amount reserved for one attempt. If dropped, all of it counts as spent, because it is unknown whether Exa
/// charged the request.
pub struct BudgetHold {
    ledger: Arc<BudgetLedger>,
    open: Option<(Reservation, ReservationBody)>,
    /// Whether the request may have been sent.
    is_sent: bool,
}

impl BudgetHold {
    /// Settles it at this cost.
    pub(crate) async fn settle(mut self, spent: u64) {
        if let Some((reservation, body)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            finish(async move { ledger.settle(reservation, &body, spent).await }).await;
        }
    }

    /// Settles it at the reserved amount.
    pub(crate) async fn settle_in_full(self) {
        let amount = self.open.as_ref().map_or(0, |(open, _)| open.amount);
        self.settle(amount).await;
    }

    /// Releases it without a cost: nothing was sent, or Exa rejected it.
    pub(crate) async fn release(mut self) {
        if let Some((reservation, body)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            let body = ReservationBody {
                unpriced: false,
                ..body
            };
            finish(async move { ledger.settle(reservation, &body, 0).await }).await;
        }
    }

    /// Holds it until a run has ended. `ended` is the cost of a run that has already ended.
    pub(super) async fn follow(
        mut self,
        run: RunRecord,
        slot: Option<RunSlot>,
        ended: Option<Option<u64>>,
    ) {
        if let Some((reservation, body)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            let body = ReservationBody { slot, ..body };
            finish(async move { ledger.assign_to_run(reservation, body, run, ended).await }).await;
        }
    }
}

/// Runs to completion even if the caller is dropped: a client that disconnects must not prevent accounting.
async fn finish(work: impl Future<Output = ()> + Send + 'static) {
    let _ = tokio::spawn(work).await;
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        let Some((reservation, body)) = self.open.take() else {
            return;
        };
        // Without a runtime the process is ending, and another one settles the reservation.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let ledger = Arc::clone(&self.ledger);
        let (spent, body) = if self.is_sent {
            tracing::info!(
                operation = body.operation,
                "response lost; charging the call at its reservation"
            );
            (reservation.amount, body)
        } else {
            let unpriced = false;
            (0, ReservationBody { unpriced, ..body })
        };
        runtime.spawn(async move { ledger.settle(reservation, &body, spent).await });
    }
}

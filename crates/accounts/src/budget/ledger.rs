//! The ledger: the reservations of all accounts, in a store that several processes may share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

use super::BudgetPolicy;
use super::record::{JobRecord, JobSlot, ReservationBody};
use super::write_queue::{LedgerWrite, WriteQueue};
use exa_mcp_model::{JobCost, MicroDollars, ids, lock};
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
    /// The reservations of the jobs that this process follows, by job key.
    jobs: Mutex<HashMap<String, Reservation>>,
    followers: OnceLock<mpsc::UnboundedSender<JobRecord>>,
}

/// The identity of this process in the store.
struct Process {
    name: String,
    _liveness: LivenessGuard,
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
            jobs: Mutex::default(),
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

    /// Returns a channel of the jobs to follow until they end. Only the first caller gets it.
    pub fn jobs_to_follow(&self) -> Option<mpsc::UnboundedReceiver<JobRecord>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // The lock is held until the sender is set, so that no job is missed or sent twice.
        let known = lock(&self.jobs);
        for job in jobs_of(&known) {
            let _ = sender.send(job);
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
        if let Some(JobSlot { key, .. }) = slot {
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

    /// Charges a job that has ended, at the reserved amount if its cost is unknown. Does nothing for a job that this
    /// process does not follow.
    pub async fn charge_job(&self, key: &str, cost: Option<u64>) {
        let reservation = lock(&self.jobs).remove(key);
        let Some(reservation) = reservation else {
            return;
        };
        if let Some(body) = ReservationBody::decode(&reservation.body) {
            let spent = cost.unwrap_or(reservation.amount);
            self.settle(reservation, &body, spent).await;
        }
    }

    /// Returns whether this process follows a job.
    pub fn follows(&self, key: &str) -> bool {
        lock(&self.jobs).contains_key(key)
    }

    /// Returns who pays for a job that is not charged yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn payer_of_job(&self, key: &str) -> Result<Option<String>, StoreError> {
        let own = lock(&self.jobs).get(key).cloned();
        let open = match own {
            Some(own) => vec![own],
            None => with_timeout(self.store.reservations()).await?,
        };
        let mut bodies = open
            .iter()
            .filter_map(|open| ReservationBody::decode(&open.body));
        let is_of_job =
            |body: &ReservationBody| body.job.as_ref().is_some_and(|job| job.key == key);
        Ok(bodies.find(is_of_job).map(|body| body.payer))
    }

    /// Returns the jobs that this process follows.
    pub fn open_jobs(&self) -> Vec<JobRecord> {
        jobs_of(&lock(&self.jobs)).collect()
    }

    /// Starts to follow a job.
    pub(super) fn follow(&self, job: JobRecord, reservation: Reservation) {
        let mut jobs = lock(&self.jobs);
        jobs.insert(job.key.clone(), reservation);
        if let Some(followers) = self.followers.get() {
            // Without a receiver, another process follows the job.
            let _ = followers.send(job);
        }
    }

    /// Binds a reservation to a job until it ends, unless the job is already charged.
    async fn assign_to_job(
        &self,
        reservation: Reservation,
        body: ReservationBody,
        job: JobRecord,
        cost: JobCost,
    ) {
        let current = reservation.clone();
        let body = ReservationBody {
            job: Some(job.clone()),
            ..body
        };
        let changed = Reservation {
            body: body.encode(),
            ..reservation
        };
        let claim = Some(job.key.clone());
        let outcome = with_timeout(self.store.reassign(current, changed.clone(), claim)).await;
        match outcome {
            Ok(ReassignOutcome::Gone) => return,
            Ok(ReassignOutcome::Claimed) => {
                tracing::info!(run = job.key, "run is already charged");
                self.settle(changed, &body, 0).await;
                return;
            }
            Ok(ReassignOutcome::Done) => {}
            // This process follows the job anyway; only another one could not take over.
            Err(error) => tracing::warn!(run = job.key, %error, "cannot store a run"),
        }
        if let JobCost::Final(cost) = cost {
            let spent = cost.map_or(changed.amount, MicroDollars::micro);
            self.settle(changed, &body, spent).await;
            return;
        }
        if let Some(JobSlot { key, group }) = body.slot.clone() {
            let slot = Slot {
                key,
                id: changed.id.clone(),
                group,
                holder: changed.holder.clone(),
                is_durable: true,
            };
            if let Err(error) = with_timeout(self.store.acquire_slot(slot, None)).await {
                tracing::warn!(run = job.key, %error, "cannot count a run as a call in progress");
            }
        }
        self.follow(job, changed);
    }
}

fn jobs_of(open: &HashMap<String, Reservation>) -> impl Iterator<Item = JobRecord> {
    let bodies = open
        .values()
        .map(|open| ReservationBody::decode(&open.body));
    bodies.filter_map(|body| body?.job)
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

    /// Holds it until a job has ended, or settles it at the cost of a job that has already ended.
    pub(super) async fn follow(mut self, job: JobRecord, slot: Option<JobSlot>, cost: JobCost) {
        if let Some((reservation, body)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            let body = ReservationBody { slot, ..body };
            finish(async move { ledger.assign_to_job(reservation, body, job, cost).await }).await;
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

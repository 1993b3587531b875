//! The ledger: reservations of all who pay, in a store that several processes may share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

use super::BudgetPolicy;
use super::entry::{Entry, RunRecord, RunSlot};
use super::queue::{Duty, Queue};
use exa_mcp_model::ids;
use exa_mcp_model::lock;
use exa_mcp_store::{
    BudgetCounters, BudgetState, LivenessGuard, Pending, Reassigned, Reservation, Reserved, Slot,
    Store, StoreError,
};

/// How long a request waits for the store.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The ledger of a server.
pub struct Ledger {
    pub(super) store: Arc<dyn Store>,
    pub(super) policy: BudgetPolicy,
    process: OnceCell<Process>,
    pub(super) queue: Queue,
    /// The runs that this process follows, by their keys.
    runs: Mutex<HashMap<String, Reservation>>,
    followers: OnceLock<mpsc::UnboundedSender<OpenRun>>,
}

/// This process, as others know it.
struct Process {
    name: String,
    _sign: LivenessGuard,
}

/// A run that is charged when it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRun {
    /// The run.
    pub run: RunRecord,
}

/// Why nothing was set aside.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotReserved {
    /// A budget has not enough left.
    Exceeded(Vec<BudgetState>),
    /// The store failed.
    Store(StoreError),
}

impl Ledger {
    /// The ledger in a store. Must be called inside a runtime.
    pub fn new(store: Arc<dyn Store>, policy: BudgetPolicy) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(Arc::clone(&store)),
            store,
            policy,
            process: OnceCell::new(),
            runs: Mutex::default(),
            followers: OnceLock::new(),
        })
    }

    /// The name of this process, which shows a sign of life from now on.
    pub(super) async fn process(&self) -> Result<&str, StoreError> {
        let announce = || async {
            let name =
                ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let sign = self.store.announce(name.clone()).await?;
            Ok::<_, StoreError>(Process { name, _sign: sign })
        };
        let process = self.process.get_or_try_init(announce).await?;
        Ok(&process.name)
    }

    /// Whether a name is this process's.
    pub(super) fn is_own(&self, holder: &str) -> bool {
        let process = self.process.get();
        process.is_some_and(|process| process.name == holder)
    }

    /// Where the runs come out that must be followed to their end; only the first who asks gets them.
    pub fn runs_to_follow(&self) -> Option<mpsc::UnboundedReceiver<OpenRun>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // Nothing is added meanwhile, and so nothing is followed twice or not at all.
        let known = lock(&self.runs);
        for run in runs_of(&known) {
            let _ = sender.send(OpenRun { run });
        }
        self.followers.set(sender).ok().map(|()| receiver)
    }

    /// Sets money aside.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        entry: Entry,
        amount: u64,
        budgets: Vec<BudgetCounters>,
    ) -> Result<Hold, NotReserved> {
        let holder = patiently(Box::pin(async { self.process().await.map(str::to_owned) }));
        let holder = holder.await.map_err(NotReserved::Store)?;
        let id = ids::random_id();
        let id =
            id.map_err(|error| NotReserved::Store(StoreError::Unavailable(error.to_string())))?;
        let reservation = Reservation {
            id,
            holder,
            amount,
            budgets,
            body: entry.written(),
        };
        // Until the store has answered, nothing is sent: whatever becomes of the answer, it is free.
        let mut asked = Hold {
            ledger: Arc::clone(self),
            open: Some((reservation.clone(), entry)),
            is_sent: false,
        };
        match patiently(self.store.reserve(reservation)).await {
            Ok(Reserved::Held(_)) => {
                asked.is_sent = true;
                Ok(asked)
            }
            Ok(Reserved::Exceeded(states)) => {
                asked.open = None;
                Err(NotReserved::Exceeded(states))
            }
            Ok(Reserved::Closed) => Err(NotReserved::Store(StoreError::Conflict)),
            Err(error) => Err(NotReserved::Store(error)),
        }
    }

    /// Settles a reservation, now or as soon as the store answers.
    pub(super) async fn settle(&self, reservation: Reservation, entry: &Entry, spent: u64) {
        if spent > reservation.amount {
            tracing::warn!(
                operation = entry.operation,
                reserved = reservation.amount,
                spent,
                "a call cost more than was reserved for it (millionths of a dollar)"
            );
        }
        let slot = entry.slot.clone();
        let id = reservation.id.clone();
        let duty = Duty::Settle(reservation, entry.changes(spent));
        self.carry_out(duty).await;
        if let Some(RunSlot { key, .. }) = slot {
            self.carry_out(Duty::Vacate { key, id }).await;
        }
    }

    pub(super) async fn carry_out(&self, duty: Duty) {
        let _writing = self.queue.begin();
        let done = patiently(Box::pin(duty.carry_out(&*self.store)));
        if let Err(error) = done.await {
            tracing::warn!(%error, "a budget could not be settled; trying again");
            self.queue.add(duty);
        }
    }

    /// Waits until everything is written, but not for long.
    pub async fn drain(&self, patience: Duration) {
        self.queue.drain(patience).await;
    }

    /// Charges a run that has ended; without a cost, all that was set aside. Does nothing for a run that this
    /// process does not follow.
    pub async fn charge_run(&self, key: &str, cost: Option<u64>) {
        let reservation = lock(&self.runs).remove(key);
        let Some(reservation) = reservation else {
            return;
        };
        if let Some(entry) = Entry::read(&reservation.body) {
            let spent = cost.unwrap_or(reservation.amount);
            self.settle(reservation, &entry, spent).await;
        }
    }

    /// Whether this process follows a run.
    pub fn follows(&self, key: &str) -> bool {
        lock(&self.runs).contains_key(key)
    }

    /// Who pays for a run that is not charged yet.
    ///
    /// # Errors
    /// The store failed.
    pub async fn payer_of_run(&self, key: &str) -> Result<Option<String>, StoreError> {
        let own = lock(&self.runs).get(key).cloned();
        let open = match own {
            Some(own) => vec![own],
            None => patiently(self.store.reservations()).await?,
        };
        let mut entries = open.iter().filter_map(|open| Entry::read(&open.body));
        let is_of_run = |entry: &Entry| entry.run.as_ref().is_some_and(|run| run.key == key);
        Ok(entries.find(is_of_run).map(|entry| entry.payer))
    }

    /// The runs that this process follows.
    pub fn open_runs(&self) -> Vec<RunRecord> {
        runs_of(&lock(&self.runs)).collect()
    }

    /// Begins to follow a run.
    pub(super) fn follow(&self, run: RunRecord, reservation: Reservation) {
        let mut runs = lock(&self.runs);
        runs.insert(run.key.clone(), reservation);
        if let Some(followers) = self.followers.get() {
            // Without a follower another process takes it up.
            let _ = followers.send(OpenRun { run });
        }
    }

    /// Keeps a reservation until a run has ended, unless the run is charged already.
    async fn hand_over(
        &self,
        reservation: Reservation,
        entry: Entry,
        run: RunRecord,
        ended: Option<Option<u64>>,
    ) {
        let present = reservation.clone();
        let entry = Entry {
            run: Some(run.clone()),
            ..entry
        };
        let changed = Reservation {
            body: entry.written(),
            ..reservation
        };
        let claim = Some(run.key.clone());
        let outcome = patiently(self.store.reassign(present, changed.clone(), claim)).await;
        match outcome {
            Ok(Reassigned::Gone) => return,
            Ok(Reassigned::Claimed) => {
                tracing::info!(run = run.key, "is charged already");
                self.settle(changed, &entry, 0).await;
                return;
            }
            Ok(Reassigned::Done) => {}
            // It is followed all the same; only another process would not know of the run.
            Err(error) => tracing::warn!(run = run.key, %error, "could not be kept"),
        }
        if let Some(cost) = ended {
            let spent = cost.unwrap_or(changed.amount);
            self.settle(changed, &entry, spent).await;
            return;
        }
        if let Some(RunSlot { key, group }) = entry.slot.clone() {
            let slot = Slot {
                key,
                id: changed.id.clone(),
                group,
                holder: changed.holder.clone(),
                is_lasting: true,
            };
            if let Err(error) = patiently(self.store.occupy(slot, None)).await {
                tracing::warn!(run = run.key, %error, "does not count among the calls under way");
            }
        }
        self.follow(run, changed);
    }
}

fn runs_of(open: &HashMap<String, Reservation>) -> impl Iterator<Item = RunRecord> {
    let entries = open.values().map(|open| Entry::read(&open.body));
    entries.filter_map(|entry| entry?.run)
}

/// Waits for the store, but not for long.
pub(super) async fn patiently<T>(pending: Pending<'_, T>) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable("it does not answer".to_owned()));
    timeout(PATIENCE, pending).await.unwrap_or_else(late)
}

/// Money that is set aside for one attempt. Dropped, all of it is spent: whether the request was charged is not
/// known.
pub struct Hold {
    ledger: Arc<Ledger>,
    open: Option<(Reservation, Entry)>,
    /// The request may have been sent.
    is_sent: bool,
}

impl Hold {
    /// Ends it with what was spent.
    pub(crate) async fn settle(mut self, spent: u64) {
        if let Some((reservation, entry)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            finish(async move { ledger.settle(reservation, &entry, spent).await }).await;
        }
    }

    /// Ends it with all that was set aside.
    pub(crate) async fn settle_in_full(self) {
        let amount = self.open.as_ref().map_or(0, |(open, _)| open.amount);
        self.settle(amount).await;
    }

    /// Ends it without a cost: nothing was sent, or it was refused.
    pub(crate) async fn release(mut self) {
        if let Some((reservation, entry)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            let entry = Entry {
                unpriced: false,
                ..entry
            };
            finish(async move { ledger.settle(reservation, &entry, 0).await }).await;
        }
    }

    /// Keeps it until a run has ended; `ended` says what a run cost that has ended already.
    pub(super) async fn follow(
        mut self,
        run: RunRecord,
        slot: Option<RunSlot>,
        ended: Option<Option<u64>>,
    ) {
        if let Some((reservation, entry)) = self.open.take() {
            let ledger = Arc::clone(&self.ledger);
            let entry = Entry { slot, ..entry };
            finish(async move { ledger.hand_over(reservation, entry, run, ended).await }).await;
        }
    }
}

/// Goes on when nobody waits for it any more: a client that goes away must not keep money from being counted.
async fn finish(work: impl Future<Output = ()> + Send + 'static) {
    let _ = tokio::spawn(work).await;
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some((reservation, entry)) = self.open.take() else {
            return;
        };
        // Without a runtime the process ends, and another one settles.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let ledger = Arc::clone(&self.ledger);
        let (spent, entry) = if self.is_sent {
            tracing::info!(
                operation = entry.operation,
                "its answer is lost; it is charged at its reservation"
            );
            (reservation.amount, entry)
        } else {
            let unpriced = false;
            (0, Entry { unpriced, ..entry })
        };
        runtime.spawn(async move { ledger.settle(reservation, &entry, spent).await });
    }
}

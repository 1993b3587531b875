//! Tasks: calls that continue in the background.
//!
//! A task is stored when it is created, and so is the job that it starts at Exa. After a restart, the server
//! resumes the stored tasks.

mod errors;
mod input;
mod input_requests;
mod input_responses;
mod methods;
mod record;
mod recovery;
mod revocation;
mod run;
mod store;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rmcp::model::{ErrorData, InputResponses, TaskStatus};
use tokio::sync::{OnceCell, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use errors::{store_error, too_many, too_many_of_address, too_many_of_owner, unknown};
use input::TaskInput;
use input_responses::InputExchange;
pub(super) use methods::{TaskMethod, TaskMethods, TaskParams};
use record::TaskRecord;
use recovery::TaskRecovery;
use revocation::TaskRevocation;
pub(super) use run::TaskObserver;
use run::TaskRun;
use store::{TaskStore, TaskUpdate};

use super::tools::{ParsedCall, Tools};
use crate::tools::{JobHandle, TaskAttempt, TaskLimits};
use exa_mcp_accounts::usage::UsageMeter;
use exa_mcp_accounts::{
    Allowance, CallPermit, ClientAddress, PayerLookup, Requester, TokenDirectory,
};
use exa_mcp_model::{Identity, LocalUser, ids, lock};
use exa_mcp_store::{LivenessGuard, Store, StoreError};

/// The most tasks that are counted by status.
const MAX_COUNTED: usize = 200;

/// The tasks of a server. Clones share the tasks, but may have the tools and limits of one requester.
#[derive(Clone)]
pub(super) struct Tasks<T> {
    tools: T,
    /// Counts usage, if enabled.
    meter: Option<UsageMeter>,
    /// The local user, if tasks may belong to them.
    user: Option<LocalUser>,
    /// The address of a guest, whose quota applies.
    guest_address: Option<ClientAddress>,
    /// Limits calls, if there are limits.
    allowance: Option<Allowance>,
    shared: Arc<SharedState>,
}

struct SharedState {
    task_store: TaskStore,
    limits: TaskLimits,
    /// The tasks that run in this process.
    running: Mutex<HashMap<String, RunningTask>>,
    /// The identity of this process.
    runner: OnceCell<RunnerIdentity>,
    /// The number of starts without a response of Exa.
    starts: watch::Sender<usize>,
    /// Tasks of earlier processes wait for their owners, who alone have the keys.
    on_demand: AtomicBool,
    /// The accounts that pay for tasks of earlier processes.
    payers: OnceLock<PayerLookup>,
    /// Input requests that are being sent in sessions.
    active_requests: input_responses::ActiveRequests,
    /// The tokens that owners of tasks need, if tokens are required.
    tokens: OnceLock<Arc<TokenDirectory>>,
}

struct RunnerIdentity {
    name: String,
    _liveness: LivenessGuard,
}

/// A task that runs in this process.
struct RunningTask {
    owner: Identity,
    live: Arc<watch::Sender<LiveState>>,
    /// Aborts the run; `None` while the task is being stored for the first time.
    abort: Option<AbortHandle>,
    /// The address of the guest who created it.
    guest_address: Option<ClientAddress>,
    /// The call starts a job at Exa.
    starts_job: bool,
}

/// The current state of a running task, which is newer than the stored one.
#[derive(Clone)]
struct LiveState {
    message: String,
    /// Milliseconds since 1970.
    updated: u64,
    job: Option<JobHandle>,
    /// Counts possible changes of the input.
    input_changes: u64,
    is_over: bool,
}

impl<T: Tools> Tasks<T> {
    /// Creates the tasks of a store; `user` is the local user, if tasks may belong to them.
    pub(super) fn new(
        tools: T,
        store: Arc<dyn Store>,
        limits: TaskLimits,
        user: Option<LocalUser>,
    ) -> Self {
        let shared = Arc::new(SharedState {
            task_store: TaskStore::new(store),
            limits,
            running: Mutex::default(),
            runner: OnceCell::new(),
            starts: watch::channel(0).0,
            on_demand: AtomicBool::new(false),
            payers: OnceLock::new(),
            active_requests: input_responses::ActiveRequests::default(),
            tokens: OnceLock::new(),
        });
        Self {
            tools,
            meter: None,
            user,
            guest_address: None,
            allowance: None,
            shared,
        }
    }

    /// Returns the tasks with the tools and limits of a requester over HTTP.
    pub(super) fn for_requester(&self, tools: T, requester: &Requester) -> Self {
        Self {
            tools,
            meter: requester.meter.clone(),
            user: None,
            guest_address: requester.guest_address,
            allowance: requester.allowance.clone(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the tasks with the account that pays for a task of an earlier process, and a permit for it.
    async fn for_payer(&self, record: &TaskRecord) -> (Self, CallPermit) {
        let Some(payer) = &record.payer else {
            return (self.clone(), CallPermit::default());
        };
        let payers = self.shared.payers.get();
        match payers.and_then(|payers| Some((payers.allowance(payer)?, payers.meter(payer)?))) {
            Some((allowance, meter)) => {
                let permit = allowance.resume_call().await;
                let tasks = Self {
                    meter: Some(meter),
                    allowance: Some(allowance),
                    ..self.clone()
                };
                (tasks, permit)
            }
            None => {
                let tools = self.tools.unpaid();
                let tasks = Self {
                    tools,
                    ..self.clone()
                };
                (tasks, CallPermit::default())
            }
        }
    }

    /// Sets the accounts that pay for tasks of earlier processes.
    pub(super) fn set_payers(&self, payers: PayerLookup) {
        let _ = self.shared.payers.set(payers);
    }

    /// Stops tasks when their owners no longer have a valid token. Must be called inside a runtime.
    pub(super) fn require_tokens(&self, tokens: Arc<TokenDirectory>) {
        // Set at once, because tasks of earlier processes are resumed right after this.
        let _ = self.shared.tokens.set(Arc::clone(&tokens));
        let tasks = self.clone();
        tokio::spawn(async move {
            let (tasks, tokens) = (&tasks, &*tokens);
            TaskRevocation { tasks, tokens }.watch().await;
        });
    }

    /// Resumes the tasks of processes that have ended, now and as long as other processes run tasks.
    pub(super) async fn resume(&self) {
        TaskRecovery { tasks: self }.resume().await;
    }

    /// Resumes the tasks of earlier processes only when their owners request them, because only they have the keys.
    pub(super) fn resume_on_demand(&self) {
        self.shared.on_demand.store(true, Ordering::Relaxed);
    }

    /// Stores the responses of a client of 2026-07-28 to input requests of a task.
    pub(super) async fn update(
        &self,
        owner: &Identity,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        let exchange = InputExchange { tasks: self };
        exchange.update(owner, id, responses).await
    }

    /// Returns the tools for an admitted task.
    fn tools_for(&self, permit: &CallPermit) -> T {
        match &self.allowance {
            Some(allowance) => self.tools.paid_by(allowance, permit),
            None => self.tools.clone(),
        }
    }

    /// Counts the tasks of all owners by status; only the newest, if there are many.
    pub(super) async fn count_by_status(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for task in self.shared.task_store.page(None, None, MAX_COUNTED).await? {
            let status = serde_json::to_value(task.record.status).unwrap_or_default();
            let status = status.as_str().unwrap_or("unknown").to_owned();
            *counts.entry(status).or_default() += 1;
        }
        Ok(counts)
    }

    /// Creates a task, which is stored before this returns.
    pub(super) async fn create(
        &self,
        owner: &Identity,
        call: T::Call,
        ttl: Option<u64>,
        observer: TaskObserver,
    ) -> Result<TaskRecord, ErrorData> {
        let limits = &self.shared.limits;
        let ttl = ttl.map_or(limits.default_ttl, Duration::from_millis);
        let ttl = ttl.max(TaskLimits::SHORTEST_TTL).min(limits.max_ttl);
        let id =
            ids::random_id().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let runner = self.runner().await.map_err(store_error)?.to_owned();
        let (tool, arguments) = (call.name().to_owned(), call.arguments().clone());
        let mut record = TaskRecord::new(id, tool, arguments, ttl, runner);
        record.input = TaskInput::new(observer.capabilities);
        let payer = self.allowance.as_ref().map(Allowance::token_id);
        record.payer = payer.map(str::to_owned);
        self.reserve(owner, &record, limits, call.starts_job())?;
        let added = self.shared.task_store.add(owner, &record, limits.per_owner);
        if let Err(error) = added.await {
            self.running().remove(&record.id);
            return Err(match error {
                StoreError::TooMany(limit) => too_many_of_owner(limit),
                error => store_error(error),
            });
        }
        let run = (record.clone(), call, TaskAttempt::First);
        TaskRun::launch(self.clone(), owner.clone(), run, observer);
        Ok(record)
    }

    /// Registers a new task as running, unless a limit is reached.
    fn reserve(
        &self,
        owner: &Identity,
        record: &TaskRecord,
        limits: &TaskLimits,
        starts_job: bool,
    ) -> Result<(), ErrorData> {
        let mut running = self.running();
        if running.len() >= limits.concurrent {
            return Err(too_many(limits.concurrent));
        }
        let own = running.values().filter(|task| task.owner == *owner);
        if own.count() >= limits.per_owner {
            return Err(too_many_of_owner(limits.per_owner));
        }
        if let Some(address) = self.guest_address {
            let own = running.values();
            let own = own.filter(|running| running.guest_address == Some(address));
            if own.count() >= limits.per_guest_address {
                return Err(too_many_of_address(limits.per_guest_address));
            }
        }
        self.register(&mut running, owner, record, starts_job);
        Ok(())
    }

    /// Registers a task as running.
    fn register(
        &self,
        running: &mut HashMap<String, RunningTask>,
        owner: &Identity,
        record: &TaskRecord,
        starts_job: bool,
    ) {
        let live = LiveState {
            message: record.message.clone(),
            updated: record.updated,
            job: record.job.clone(),
            input_changes: 0,
            is_over: false,
        };
        let entry = RunningTask {
            owner: owner.clone(),
            live: Arc::new(watch::channel(live).0),
            abort: None,
            guest_address: self.guest_address,
            starts_job,
        };
        running.insert(record.id.clone(), entry);
    }

    /// Returns the current state of a task of this owner.
    pub(super) async fn get(&self, owner: &Identity, id: &str) -> Result<TaskRecord, ErrorData> {
        let stored = self.shared.task_store.get(owner, id).await;
        let mut record = stored.map_err(store_error)?.ok_or_else(|| unknown(id))?;
        let recovery = TaskRecovery { tasks: self };
        if recovery
            .reclaim(owner, &record)
            .await
            .map_err(store_error)?
        {
            let stored = self.shared.task_store.get(owner, id).await;
            record = stored.map_err(store_error)?.ok_or_else(|| unknown(id))?;
        }
        Ok(self.with_live_state(record))
    }

    /// Updates a stored record with the state of the running task.
    fn with_live_state(&self, mut record: TaskRecord) -> TaskRecord {
        // What a task waits for is stored, and no progress is made meanwhile.
        if let Some(running) = self.running().get(&record.id)
            && record.status == TaskStatus::Working
        {
            let live = running.live.borrow();
            if live.updated >= record.updated {
                record.message.clone_from(&live.message);
                record.updated = live.updated;
            }
        }
        record
    }

    /// Cancels a task and its job at Exa on behalf of the client.
    pub(super) async fn cancel(&self, owner: &Identity, id: &str) -> Result<TaskRecord, ErrorData> {
        self.stop(owner, id, "cancelled by the client").await
    }

    /// Stops a task and its job at Exa.
    async fn stop(
        &self,
        owner: &Identity,
        id: &str,
        reason: &str,
    ) -> Result<TaskRecord, ErrorData> {
        let mut was_waiting = false;
        let cancel = |record: &mut TaskRecord| {
            was_waiting = record.status == TaskStatus::InputRequired;
            let is_changed = record.set_status(TaskStatus::Cancelled, reason.to_owned());
            record.stopping = is_changed && record.job.is_some();
            is_changed
        };
        let update = self.shared.task_store.update(owner, id, cancel).await;
        let record = match update.map_err(store_error)? {
            TaskUpdate::Applied(record) => record,
            TaskUpdate::Rejected(record) => {
                let text = format!("The task {id} has already ended: {}", record.message);
                return Err(ErrorData::invalid_params(text, None));
            }
            TaskUpdate::NotFound => return Err(unknown(id)),
        };
        // A pending start must complete, or its job could not be cancelled at Exa.
        let may_start = !was_waiting && record.job.is_none();
        if let Some(running) = self.unregister(id)
            && !(may_start && running.starts_job)
        {
            running.abort.inspect(AbortHandle::abort);
        }
        if let Some(job) = record.job.clone() {
            self.stop_upstream(owner, id, job);
        }
        Ok(record)
    }

    /// Removes a task from the running ones and wakes up its waiters.
    fn unregister(&self, id: &str) -> Option<RunningTask> {
        let running = self.running().remove(id)?;
        running.live.send_modify(|live| live.is_over = true);
        Some(running)
    }

    /// Cancels a job at Exa in the background, so that the response to the client need not wait.
    fn stop_upstream(&self, owner: &Identity, id: &str, job: JobHandle) {
        let (tasks, owner, id) = (self.clone(), owner.clone(), id.to_owned());
        tokio::spawn(async move {
            match tasks.tools.stop(job.clone()).await {
                Some(true) => tracing::info!(%job, "stopped at Exa"),
                Some(false) => {
                    tracing::warn!(%job, "could not be stopped at Exa; it continues")
                }
                None => tracing::info!(%job, "continues at Exa, which cannot stop it"),
            }
            let stopped = |record: &mut TaskRecord| std::mem::take(&mut record.stopping);
            let _ = tasks.shared.task_store.update(&owner, &id, stopped).await;
        });
    }

    /// Waits until Exa has responded to pending starts, but not longer than `limit`: a server that ends before would not
    /// know what it started.
    pub(super) async fn settle(&self, limit: Duration) {
        let mut starts = self.shared.starts.subscribe();
        let _ = timeout(limit, starts.wait_for(|starts| *starts == 0)).await;
    }

    /// Returns the name of this process, and announces it as alive from now on.
    async fn runner(&self) -> Result<&str, StoreError> {
        let announce = || async {
            let name =
                ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let liveness = self
                .shared
                .task_store
                .store()
                .mark_alive(name.clone())
                .await?;
            Ok(RunnerIdentity {
                name,
                _liveness: liveness,
            })
        };
        let runner = self.shared.runner.get_or_try_init(announce).await?;
        Ok(&runner.name)
    }

    /// Returns the number of tasks that run in this process.
    pub(super) fn count(&self) -> usize {
        self.running().len()
    }

    /// Returns whether this process runs a task.
    fn is_ours(&self, record: &TaskRecord) -> bool {
        !record.is_final() && self.is_own(&record.runner)
    }

    /// Returns whether a runner is this process.
    fn is_own(&self, runner: &str) -> bool {
        let own = self.shared.runner.get();
        own.is_some_and(|own| own.name == runner)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, RunningTask>> {
        lock(&self.shared.running)
    }
}

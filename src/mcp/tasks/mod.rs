//! Tasks: calls that go on after they were answered.
//!
//! A task is kept in the store from its first moment, together with what it started at Exa. A server
//! that is started again finds the tasks of one that has ended, and follows them to their end.

mod input;
mod input_requests;
mod input_responses;
mod methods;
mod owners;
mod record;
mod recovery;
mod run;
mod store;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rmcp::model::{ErrorData, TaskStatus};
use tokio::sync::{OnceCell, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use input::Questions;
pub(super) use methods::{Method, TaskParams};
use record::Record;
pub(super) use run::Watcher;
use store::{Change, Shelf};

use super::tools::{ParsedCall, Tools};
use crate::tools::{Attempt, TaskLimits, WorkHandle};
use exa_mcp_accounts::usage::Meter;
use exa_mcp_accounts::{Allowance, ClientAddress, Directory, Payers, Permit, Requester};
use exa_mcp_model::ids;
use exa_mcp_model::{Identity, LocalUser, lock};
use exa_mcp_store::{LivenessGuard, Store, StoreError};

/// The most tasks that are counted by their state.
const MOST_COUNTED: usize = 200;

/// The tasks of a server. Clones share everything but the tools, which may be those of one requester.
#[derive(Clone)]
pub(super) struct Tasks<T> {
    tools: T,
    /// Where what comes of tasks is counted, if it is.
    meter: Option<Meter>,
    /// The local user, where the calls of tasks may be theirs.
    user: Option<LocalUser>,
    /// The address whose quota counts, for somebody who has proved nothing.
    guest_address: Option<ClientAddress>,
    /// What limits calls, if anything does.
    allowance: Option<Allowance>,
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Shelf,
    limits: TaskLimits,
    /// Those under way in this process.
    running: Mutex<HashMap<String, Running>>,
    /// What other processes know this one by.
    runner: OnceCell<Runner>,
    /// Starts that Exa has not answered yet.
    starts: watch::Sender<usize>,
    /// Whether tasks of earlier processes wait for their owners, who alone have the keys for them.
    on_demand: AtomicBool,
    /// Those who pay for tasks of earlier processes.
    payers: OnceLock<Payers>,
    /// What clients are being asked in sessions.
    asked: input_responses::Asked,
    /// The tokens without which nobody's tasks go on, where tokens are needed.
    tokens: OnceLock<Arc<Directory>>,
}

struct Runner {
    name: String,
    _sign: LivenessGuard,
}

/// A task under way.
struct Running {
    owner: Identity,
    live: Arc<watch::Sender<Live>>,
    /// Ends the run; there is none yet while the task is being kept for the first time.
    abort: Option<AbortHandle>,
    /// The address whose guest began it.
    guest_address: Option<ClientAddress>,
    /// Its call starts work at Exa.
    starts_work: bool,
}

/// What the process that runs a task knows better than the store.
#[derive(Clone)]
struct Live {
    message: String,
    /// Milliseconds since 1970.
    updated: u64,
    work: Option<WorkHandle>,
    /// How often what the task asks may have changed.
    turns: u64,
    is_over: bool,
}

impl<T: Tools> Tasks<T> {
    /// The tasks in a store, of the local user or of anybody else.
    pub(super) fn new(
        tools: T,
        store: Arc<dyn Store>,
        limits: TaskLimits,
        user: Option<LocalUser>,
    ) -> Self {
        let shared = Arc::new(Shared {
            shelf: Shelf::new(store),
            limits,
            running: Mutex::default(),
            runner: OnceCell::new(),
            starts: watch::channel(0).0,
            on_demand: AtomicBool::new(false),
            payers: OnceLock::new(),
            asked: input_responses::Asked::default(),
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

    /// The same tasks with the tools of someone who calls over HTTP, and counted for them.
    pub(super) fn of(&self, tools: T, requester: &Requester) -> Self {
        Self {
            tools,
            meter: requester.meter.clone(),
            user: None,
            guest_address: requester.guest_address,
            allowance: requester.allowance.clone(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The same tasks for whoever pays for a task of an earlier process, with a permit for it.
    async fn paid_as(&self, record: &Record) -> (Self, Permit) {
        let Some(payer) = &record.payer else {
            return (self.clone(), Permit::default());
        };
        let payers = self.shared.payers.get();
        match payers.and_then(|payers| Some((payers.allowance(payer)?, payers.meter(payer)?))) {
            Some((allowance, meter)) => {
                let permit = allowance.resumed_call().await;
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
                (tasks, Permit::default())
            }
        }
    }

    /// Says who pays for tasks of earlier processes.
    pub(super) fn set_payers(&self, payers: Payers) {
        let _ = self.shared.payers.set(payers);
    }

    /// The tools for a task that was let in.
    fn tools_for(&self, permit: &Permit) -> T {
        match &self.allowance {
            Some(allowance) => self.tools.paid_by(allowance, permit),
            None => self.tools.clone(),
        }
    }

    /// How many tasks there are in each state, of everybody; of the newest, where there are too many.
    pub(super) async fn census(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut census = BTreeMap::new();
        for kept in self.shared.shelf.page(None, None, MOST_COUNTED).await? {
            let status = serde_json::to_value(kept.record.status).unwrap_or_default();
            let status = status.as_str().unwrap_or("unknown").to_owned();
            *census.entry(status).or_default() += 1;
        }
        Ok(census)
    }

    /// Begins a task; it is in the store before this returns.
    pub(super) async fn create(
        &self,
        owner: &Identity,
        call: T::Call,
        ttl: Option<u64>,
        watcher: run::Watcher,
    ) -> Result<Record, ErrorData> {
        let limits = &self.shared.limits;
        let ttl = ttl.map_or(limits.default_ttl, Duration::from_millis);
        let ttl = ttl.max(TaskLimits::SHORTEST_TTL).min(limits.max_ttl);
        let id =
            ids::random().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let runner = self.runner().await.map_err(unkept)?.to_owned();
        let (tool, arguments) = (call.name().to_owned(), call.arguments().clone());
        let mut record = Record::new(id, tool, arguments, ttl, runner);
        record.questions = Questions::of(watcher.capabilities);
        let payer = self.allowance.as_ref().map(Allowance::token_id);
        record.payer = payer.map(str::to_owned);
        self.reserve(owner, &record, limits, call.starts_work())?;
        let added = self.shared.shelf.add(owner, &record, limits.per_owner);
        if let Err(error) = added.await {
            self.running().remove(&record.id);
            return Err(match error {
                StoreError::TooMany(most) => too_many_of_owner(most),
                error => unkept(error),
            });
        }
        let run = (record.clone(), call, Attempt::First);
        self.launch(owner.clone(), run, watcher);
        Ok(record)
    }

    /// Enters a new task among those under way, unless there are more than the limits allow.
    fn reserve(
        &self,
        owner: &Identity,
        record: &Record,
        limits: &TaskLimits,
        starts_work: bool,
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
        self.enter(&mut running, owner, record, starts_work);
        Ok(())
    }

    /// Enters a task among those under way.
    fn enter(
        &self,
        running: &mut HashMap<String, Running>,
        owner: &Identity,
        record: &Record,
        starts_work: bool,
    ) {
        let live = Live {
            message: record.message.clone(),
            updated: record.updated,
            work: record.work.clone(),
            turns: 0,
            is_over: false,
        };
        let entry = Running {
            owner: owner.clone(),
            live: Arc::new(watch::channel(live).0),
            abort: None,
            guest_address: self.guest_address,
            starts_work,
        };
        running.insert(record.id.clone(), entry);
    }

    /// A task of this owner, as it stands.
    pub(super) async fn get(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        let kept = self.shared.shelf.get(owner, id).await.map_err(unkept)?;
        let mut kept = kept.ok_or_else(|| unknown(id))?;
        if self.reclaim(owner, &kept).await.map_err(unkept)? {
            let taken = self.shared.shelf.get(owner, id).await.map_err(unkept)?;
            kept = taken.ok_or_else(|| unknown(id))?;
        }
        Ok(self.brought_up_to_date(kept))
    }

    /// The process that runs a task may know more than the store.
    fn brought_up_to_date(&self, mut record: Record) -> Record {
        if let Some(running) = self.running().get(&record.id)
            && !record.is_final()
        {
            let live = running.live.borrow();
            if live.updated >= record.updated {
                record.message.clone_from(&live.message);
                record.updated = live.updated;
            }
        }
        record
    }

    /// Stops a task and what it started at Exa, as its client wishes.
    pub(super) async fn cancel(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        self.stop(owner, id, "cancelled by the client").await
    }

    /// Stops a task and what it started at Exa.
    async fn stop(&self, owner: &Identity, id: &str, why: &str) -> Result<Record, ErrorData> {
        let mut asked = false;
        let cancel = |record: &mut Record| {
            asked = record.status == TaskStatus::InputRequired;
            let moved = record.move_to(TaskStatus::Cancelled, why.to_owned());
            record.stopping = moved && record.work.is_some();
            moved
        };
        let change = self.shared.shelf.change(owner, id, cancel).await;
        let record = match change.map_err(unkept)? {
            Change::Made(record) => record,
            Change::Refused(record) => {
                let text = format!("The task {id} has ended already: {}", record.message);
                return Err(ErrorData::invalid_params(text, None));
            }
            Change::Gone => return Err(unknown(id)),
        };
        // A start on its way must arrive, or nobody would know what to stop at Exa.
        let may_start = !asked && record.work.is_none();
        if let Some(running) = self.leave(id)
            && !(may_start && running.starts_work)
        {
            running.abort.inspect(AbortHandle::abort);
        }
        if let Some(work) = record.work.clone() {
            self.stop_upstream(owner, id, work);
        }
        Ok(record)
    }

    /// Takes a task out of those under way and tells who waits for it.
    fn leave(&self, id: &str) -> Option<Running> {
        let running = self.running().remove(id)?;
        running.live.send_modify(|live| live.is_over = true);
        Some(running)
    }

    /// Tells Exa to stop; the answer to the client does not wait for that.
    fn stop_upstream(&self, owner: &Identity, id: &str, work: WorkHandle) {
        let (tasks, owner, id) = (self.clone(), owner.clone(), id.to_owned());
        tokio::spawn(async move {
            match tasks.tools.stop(work.clone()).await {
                Some(true) => tracing::info!(%work, "stopped at Exa"),
                Some(false) => tracing::warn!(%work, "could not be stopped at Exa; it goes on"),
                None => tracing::info!(%work, "goes on at Exa, which cannot stop it"),
            }
            let stopped = |record: &mut Record| std::mem::take(&mut record.stopping);
            let _ = tasks.shared.shelf.change(&owner, &id, stopped).await;
        });
    }

    /// Waits until Exa has answered the starts on their way, but not for long: a server that ends in
    /// between would not know what it started.
    pub(super) async fn settle(&self, patience: Duration) {
        let mut starts = self.shared.starts.subscribe();
        let _ = timeout(patience, starts.wait_for(|starts| *starts == 0)).await;
    }

    /// The name of this process, which shows a sign of life from now on.
    async fn runner(&self) -> Result<&str, StoreError> {
        let announce = || async {
            let name = ids::random().map_err(|error| StoreError::Unavailable(error.to_string()))?;
            let sign = self.shared.shelf.store().announce(name.clone()).await?;
            Ok(Runner { name, _sign: sign })
        };
        let runner = self.shared.runner.get_or_try_init(announce).await?;
        Ok(&runner.name)
    }

    /// How many are under way in this process.
    pub(super) fn count(&self) -> usize {
        self.running().len()
    }

    /// Whether a task is this process's to change.
    fn is_ours(&self, record: &Record) -> bool {
        let runner = self.shared.runner.get();
        !record.is_final() && runner.is_some_and(|runner| runner.name == record.runner)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Running>> {
        lock(&self.shared.running)
    }
}

fn unknown(id: &str) -> ErrorData {
    let shown: String = id.chars().take(64).collect();
    ErrorData::invalid_params(
        format!(
            "There is no task {shown}: it never was, is another's, or its time to live is over"
        ),
        None,
    )
}

fn unkept(error: StoreError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn too_many(most: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{most} tasks are under way already; wait for some to end, or raise EXA_MCP_MAX_CONCURRENT_TASKS"
        ),
        None,
    )
}

fn too_many_of_owner(most: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{most} of your tasks are under way already, the most for one user; wait for some to end or cancel \
             some, or ask the operator to raise EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER"
        ),
        None,
    )
}

fn too_many_of_address(most: usize) -> ErrorData {
    ErrorData::internal_error(
        format!(
            "{most} tasks of clients at your address are under way already; wait for some to end \
             (EXA_MCP_MAX_TASKS_PER_ADDRESS sets how many there may be)"
        ),
        None,
    )
}

//! Tasks: calls that go on after they were answered.
//!
//! A task is kept in the store from its first moment, together with what it started at Exa. A server
//! that is started again finds its tasks there and follows them to their end.

mod methods;
mod record;
mod run;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::{ErrorData, JsonObject, TaskStatus};
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub(super) use methods::Method;
use record::Record;
pub(super) use run::Watcher;

use super::tools::Tools;
use crate::accounts::Identity;
use crate::ids;
use crate::store::{Expected, Place, Query, Rules, Store, StoreError};
use crate::surface::TaskLimits;

/// Where tasks are kept in the store.
const COLLECTION: &str = "tasks";

/// Tasks that are looked at when the server starts.
const MOST_KEPT: usize = 10_000;

/// The tasks of a server. Clones share everything.
pub(super) struct Tasks<T>(Arc<Inner<T>>);

impl<T> Clone for Tasks<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<T> {
    tools: T,
    store: Arc<dyn Store>,
    limits: TaskLimits,
    /// Those under way in this process.
    running: Mutex<HashMap<String, Running>>,
}

/// A task under way.
struct Running {
    state: watch::Sender<Record>,
    abort: Abort,
}

/// Ends the run of a task; set as soon as it runs.
type Abort = Arc<OnceLock<AbortHandle>>;

impl<T: Tools> Tasks<T> {
    /// The tasks in a store.
    pub(super) fn new(tools: T, store: Arc<dyn Store>, limits: TaskLimits) -> Self {
        Self(Arc::new(Inner {
            tools,
            store,
            limits,
            running: Mutex::default(),
        }))
    }

    /// Takes up the tasks that an earlier process left.
    pub(super) async fn resume(&self) {
        if !self.0.store.is_made() {
            return;
        }
        let query = Query {
            owner: None,
            collection: COLLECTION,
            before: None,
            limit: MOST_KEPT,
        };
        let Ok(documents) = self.0.store.list(query).await else {
            return;
        };
        for document in documents {
            let Ok(record) = serde_json::from_str::<Record>(&document.body) else {
                continue;
            };
            if !record.is_final() && !self.is_running(&record.id) {
                tracing::info!(task = record.id, "taken up again");
                let owner = Identity::kept(&document.owner);
                self.launch(owner, record, run::Start::Again, run::Watcher::nobody());
            }
        }
    }

    /// Begins a task; it is in the store before this returns.
    pub(super) async fn create(
        &self,
        owner: &Identity,
        tool: &str,
        arguments: JsonObject,
        ttl: Option<u64>,
        watcher: run::Watcher,
    ) -> Result<Record, ErrorData> {
        if self.running().len() >= self.0.limits.concurrent {
            return Err(too_many(self.0.limits.concurrent));
        }
        let limits = &self.0.limits;
        let ttl = ttl.map_or(limits.default_ttl, Duration::from_millis);
        let ttl = ttl.clamp(Duration::from_secs(1), limits.max_ttl);
        let id =
            ids::random().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let record = Record::new(id, tool.to_owned(), arguments, ttl);
        let rules = Rules {
            expected: Expected::Nothing,
            ..Rules::default()
        };
        self.keep(owner, &record, rules).await.map_err(unkept)?;
        self.launch(owner.clone(), record.clone(), run::Start::Now, watcher);
        Ok(record)
    }

    /// A task of this owner, as it stands.
    pub(super) async fn get(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        let place = place(owner, id);
        let document = self.0.store.get(place).await.map_err(unkept)?;
        let kept =
            document.and_then(|document| serde_json::from_str::<Record>(&document.body).ok());
        let kept = kept.ok_or_else(|| unknown(id))?;
        // The process that runs a task knows more than the store.
        let running = self.running();
        Ok(running
            .get(id)
            .map_or(kept, |running| running.state.borrow().clone()))
    }

    /// Waits until a task of this owner is final.
    pub(super) async fn finished(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        loop {
            let record = self.get(owner, id).await?;
            if record.is_final() {
                return Ok(record);
            }
            let state = self
                .running()
                .get(id)
                .map(|running| running.state.subscribe());
            match state {
                Some(mut state) => {
                    let _ = state.wait_for(Record::is_final).await;
                }
                // Another process follows it.
                None => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }

    /// Stops a task and what it started at Exa.
    pub(super) async fn cancel(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        let mut record = self.get(owner, id).await?;
        if record.is_final() {
            let text = format!("The task {id} has ended already: {}", record.message);
            return Err(ErrorData::invalid_params(text, None));
        }
        let running = self.running().remove(id);
        match &running {
            Some(running) => {
                record = running.state.borrow().clone();
                // A start on its way must arrive, or nobody would know what to stop at Exa.
                let on_its_way = record.work.is_none() && self.starts(&record);
                if let Some(abort) = running.abort.get().filter(|_| !on_its_way) {
                    abort.abort();
                }
            }
            // It is ending at this moment, or another process runs it.
            None => record = self.settled(owner, id).await?,
        }
        record.move_to(TaskStatus::Cancelled, "cancelled by the client".to_owned());
        self.keep(owner, &record, Rules::default())
            .await
            .map_err(unkept)?;
        if let Some(running) = running {
            running.state.send_replace(record.clone());
        }
        if let Some(work) = record.work.clone() {
            self.stop_upstream(work);
        }
        Ok(record)
    }

    fn starts(&self, record: &Record) -> bool {
        self.0.tools.starts_work(&record.tool, &record.arguments)
    }

    /// A task that is not in the table, after the moment that writing its end takes.
    async fn settled(&self, owner: &Identity, id: &str) -> Result<Record, ErrorData> {
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.get(owner, id).await
    }

    /// Tells Exa to stop; the answer to the client does not wait for that.
    fn stop_upstream(&self, work: crate::surface::Work) {
        let tools = self.0.tools.clone();
        tokio::spawn(async move {
            match tools.stop(work.clone()).await {
                Some(true) => tracing::info!(work = work.get, "stopped at Exa"),
                Some(false) => tracing::warn!(work = work.get, "could not be stopped at Exa"),
                None => tracing::info!(work = work.get, "goes on at Exa, which cannot stop it"),
            }
        });
    }

    async fn keep(
        &self,
        owner: &Identity,
        record: &Record,
        rules: Rules,
    ) -> Result<(), StoreError> {
        let body = serde_json::to_string(record).unwrap_or_default();
        let rules = Rules {
            time_to_live: Some(record.left().max(Duration::from_millis(1))),
            ..rules
        };
        self.0
            .store
            .put(place(owner, &record.id), body, rules)
            .await
            .map(drop)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Running>> {
        self.0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self, id: &str) -> bool {
        self.running().contains_key(id)
    }
}

fn place(owner: &Identity, id: &str) -> Place {
    Place {
        owner: owner.clone(),
        collection: COLLECTION,
        id: id.to_owned(),
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

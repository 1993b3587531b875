//! Storage of tasks. Several processes may share a store, so an update applies to the stored record, and is repeated
//! after a conflict.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::TaskRecord;
use crate::tools::JobHandle;
use crate::tools::claims::Claims;
use exa_mcp_model::Identity;
use exa_mcp_model::time::now;
use exa_mcp_store::{
    Document, DocumentKey, DocumentQuery, ExpectedRevision, Store, StoreError, WriteOptions, format,
};

/// The collection of tasks.
const TASKS: &str = "tasks";
/// The collection in which earlier versions record which task a job belongs to, per owner. Still written for servers of
/// those versions on the same store.
const OWNER_CLAIMS: &str = "task_work";
/// The collection of the ids of open tasks, for remote stores. They are polled all the time, and reading the results of
/// all tasks each time would be too expensive.
const OPEN: &str = "task_open";

/// How long a task may take to be stored after its id was added to the open tasks, in milliseconds.
const MAX_STORE_DELAY: u64 = 60_000;

/// Claims per page, and the most that are read.
const CLAIMS_PAGE: usize = 500;
const MAX_CLAIMS: usize = 100_000;

/// The tasks in a store.
pub(super) struct TaskStore {
    store: Arc<dyn Store>,
    /// The claims of all owners at the first lookup: the tasks that have a job, by the name of the job. Earlier versions
    /// record claims only there.
    owner_claims: OnceCell<HashMap<String, String>>,
}

/// How a task got its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobOrigin {
    /// The response to its start contains the job.
    Started,
    /// The job was found in a list, which also contains the jobs of others.
    Found,
}

/// The outcome of an update.
pub(super) enum TaskUpdate {
    /// The update was applied.
    Applied(TaskRecord),
    /// The update does not apply to the stored record.
    Rejected(TaskRecord),
    /// There is no such task.
    NotFound,
}

/// A task with its metadata in the store.
pub(super) struct StoredTask {
    pub(super) owner: Identity,
    /// Its number in the order of creation.
    pub(super) number: u64,
    pub(super) record: TaskRecord,
}

/// A page of tasks that may be open.
pub(super) struct OpenTaskPage {
    pub(super) tasks: Vec<StoredTask>,
    pub(super) next: Option<u64>,
}

impl TaskStore {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            owner_claims: OnceCell::new(),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Stores a new task. With a remote store, the limit of open tasks per owner applies to all servers together.
    pub(super) async fn add(
        &self,
        owner: &Identity,
        record: &TaskRecord,
        max_open: usize,
    ) -> Result<(), StoreError> {
        if self.store.is_remote() {
            let open = document_key(owner, OPEN, &record.id);
            let options = WriteOptions {
                max_documents: Some(max_open),
                ..write_options(record, ExpectedRevision::Any)
            };
            self.store.put(open, String::new(), options).await?;
        }
        self.put(owner, record, ExpectedRevision::Absent).await
    }

    /// Returns the tasks of all owners that may be open, the newest first.
    pub(super) async fn open_tasks(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<OpenTaskPage, StoreError> {
        if !self.store.is_remote() {
            let tasks = self.page(None, before, limit).await?;
            let last = tasks.last().map(|task| task.number);
            let next = last.filter(|_| tasks.len() == limit);
            return Ok(OpenTaskPage { tasks, next });
        }
        let query = DocumentQuery {
            owner: None,
            collection: OPEN,
            before,
            limit,
        };
        let entries = self.store.list(query).await?;
        let last = entries.last().map(|entry| entry.sequence);
        let next = last.filter(|_| entries.len() == limit);
        let mut tasks = Vec::new();
        for entry in entries {
            let (owner, number) = (Identity::from_stored(&entry.owner), entry.sequence);
            match self.get(&owner, &entry.id).await? {
                Some(record) if record.is_open() => tasks.push(StoredTask {
                    owner,
                    number,
                    record,
                }),
                None if now().saturating_sub(entry.created_at) < MAX_STORE_DELAY => {}
                _ => drop(
                    self.store
                        .delete(document_key(&owner, OPEN, &entry.id))
                        .await?,
                ),
            }
        }
        Ok(OpenTaskPage { tasks, next })
    }

    /// Returns a task of this owner.
    pub(super) async fn get(
        &self,
        owner: &Identity,
        id: &str,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let document = self.store.get(document_key(owner, TASKS, id)).await?;
        Ok(document.as_ref().and_then(read))
    }

    /// Returns a page of tasks, the newest first; those of all owners if `owner` is `None`.
    pub(super) async fn page(
        &self,
        owner: Option<&Identity>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredTask>, StoreError> {
        let query = DocumentQuery {
            owner: owner.cloned(),
            collection: TASKS,
            before,
            limit,
        };
        let documents = self.store.list(query).await?;
        let tasks = documents.iter().filter_map(|document| {
            Some(StoredTask {
                owner: Identity::from_stored(&document.owner),
                number: document.sequence,
                record: read(document)?,
            })
        });
        Ok(tasks.collect())
    }

    /// Updates a task; `change` returns whether the update applies.
    pub(super) async fn update(
        &self,
        owner: &Identity,
        id: &str,
        mut change: impl FnMut(&mut TaskRecord) -> bool,
    ) -> Result<TaskUpdate, StoreError> {
        loop {
            let document = self.store.get(document_key(owner, TASKS, id)).await?;
            let Some((document, mut record)) =
                document.and_then(|document| read(&document).map(|record| (document, record)))
            else {
                return Ok(TaskUpdate::NotFound);
            };
            if !change(&mut record) {
                return Ok(TaskUpdate::Rejected(record));
            }
            let expected = ExpectedRevision::Exact(document.revision);
            match self.put(owner, &record, expected).await {
                Ok(()) => {
                    if self.store.is_remote() && !record.is_open() {
                        // If this fails, the next call of `open_tasks` deletes the entry.
                        let _ = self.store.delete(document_key(owner, OPEN, id)).await;
                    }
                    return Ok(TaskUpdate::Applied(record));
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn put(
        &self,
        owner: &Identity,
        record: &TaskRecord,
        expected: ExpectedRevision,
    ) -> Result<(), StoreError> {
        let body = format::encode(record);
        let options = write_options(record, expected);
        let key = document_key(owner, TASKS, &record.id);
        self.store.put(key, body, options).await.map(drop)
    }

    /// Claims a job for a task, unless somebody else has it.
    pub(super) async fn claim(
        &self,
        owner: &Identity,
        job: &JobHandle,
        record: &TaskRecord,
        origin: JobOrigin,
    ) -> Result<bool, StoreError> {
        let claims = Claims::new(&*self.store);
        let is_shared = self.store.is_shared();
        let is_free = match origin {
            JobOrigin::Started => true,
            JobOrigin::Found if self.was_claimed(job, &record.id).await? => false,
            JobOrigin::Found => claims.claim(job, &record.id).await?,
        };
        if !is_free || (is_shared && !self.claim_of_owner(owner, job, record).await?) {
            return Ok(false);
        }
        if origin == JobOrigin::Started {
            match claims.record(job, Some(&record.id)).await {
                Err(error) if is_shared => return Err(error),
                // A memory store may be full, and the task works without the claim.
                _ => {}
            }
        }
        Ok(true)
    }

    async fn claim_of_owner(
        &self,
        owner: &Identity,
        job: &JobHandle,
        record: &TaskRecord,
    ) -> Result<bool, StoreError> {
        let claim = || document_key(owner, OWNER_CLAIMS, &job.to_string());
        let body = record.id.clone();
        let options = write_options(record, ExpectedRevision::Absent);
        match self.store.put(claim(), body, options).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => {
                let document = self.store.get(claim()).await?;
                Ok(document.is_none_or(|document| *document.body == *record.id))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether somebody other than this task has a job.
    pub(super) async fn is_taken(&self, job: &JobHandle, task: &str) -> Result<bool, StoreError> {
        let claims = Claims::new(&*self.store);
        Ok(claims.is_claimed_by_other(job, task).await? || self.was_claimed(job, task).await?)
    }

    /// Returns whether another task of any owner had the job at the first lookup.
    async fn was_claimed(&self, job: &JobHandle, task: &str) -> Result<bool, StoreError> {
        if !self.store.is_shared() {
            return Ok(false);
        }
        let known = self.owner_claims.get_or_try_init(|| self.read_claims());
        let claimant = known.await?.get(&job.to_string());
        Ok(claimant.is_some_and(|claimant| claimant != task))
    }

    async fn read_claims(&self) -> Result<HashMap<String, String>, StoreError> {
        let mut claims = HashMap::new();
        let mut before = None;
        loop {
            let query = DocumentQuery {
                owner: None,
                collection: OWNER_CLAIMS,
                before,
                limit: CLAIMS_PAGE,
            };
            let page = self.store.list(query).await?;
            let last = page.last().map(|claim| claim.sequence);
            before = last.filter(|_| page.len() == CLAIMS_PAGE);
            let page = page.into_iter();
            claims.extend(page.map(|claim| (claim.id, claim.body.to_string())));
            if before.is_none() || claims.len() >= MAX_CLAIMS {
                return Ok(claims);
            }
        }
    }
}

fn read(document: &Document) -> Option<TaskRecord> {
    format::decode(&document.body)
}

fn write_options(record: &TaskRecord, expected: ExpectedRevision) -> WriteOptions {
    WriteOptions {
        time_to_live: Some(record.remaining().max(Duration::from_millis(1))),
        max_documents: None,
        expected,
    }
}

fn document_key(owner: &Identity, collection: &'static str, id: &str) -> DocumentKey {
    DocumentKey {
        owner: owner.clone(),
        collection,
        id: id.to_owned(),
    }
}

#[allow(clippy::unwrap_used)]
#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use exa_mcp_store::{MemoryStore, SqliteStore};

    fn job(id: &str) -> JobHandle {
        let arguments = json!({"runId": id}).as_object().unwrap().clone();
        JobHandle {
            get: "agent.runs.get".to_owned(),
            arguments,
        }
    }

    fn task(id: &str) -> TaskRecord {
        let ttl = Duration::from_secs(600);
        let (id, tool) = (id.to_owned(), "exa_api".to_owned());
        TaskRecord::new(id, tool, Map::new(), ttl, "runner".to_owned())
    }

    /// A store in a file and one in memory.
    fn task_stores(folder: &tempfile::TempDir) -> [TaskStore; 2] {
        let file = SqliteStore::new(folder.path().join("store.db"));
        let stores: [Arc<dyn Store>; 2] = [Arc::new(file), Arc::new(MemoryStore::default())];
        stores.map(TaskStore::new)
    }

    #[tokio::test]
    async fn a_job_belongs_to_one_task_of_any_owner() {
        let folder = tempfile::tempdir().unwrap();
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        for task_store in task_stores(&folder) {
            let claim = async |owner, id, run, origin| {
                let claimed = task_store.claim(owner, &job(run), &task(id), origin).await;
                claimed.unwrap()
            };
            assert!(claim(&ann, "a", "1", JobOrigin::Found).await);
            assert!(claim(&ann, "a", "1", JobOrigin::Found).await, "its own");
            assert!(!claim(&bob, "b", "1", JobOrigin::Found).await);
            assert!(claim(&bob, "b", "2", JobOrigin::Started).await);
            assert!(!claim(&ann, "c", "2", JobOrigin::Found).await);
            assert!(task_store.is_taken(&job("2"), "c").await.unwrap());
            assert!(!task_store.is_taken(&job("2"), "b").await.unwrap());
            let (claims, plain) = (Claims::new(task_store.store()), job("3"));
            claims.record(&plain, None).await.unwrap();
            assert!(
                !claim(&ann, "d", "3", JobOrigin::Found).await,
                "a plain call has it"
            );
            assert!(claim(&ann, "d", "4", JobOrigin::Found).await);
        }
    }

    #[tokio::test]
    async fn respects_claims_of_earlier_versions() {
        let folder = tempfile::tempdir().unwrap();
        let [task_store, _] = task_stores(&folder);
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        let earlier = document_key(&bob, OWNER_CLAIMS, "agent.runs.get 1");
        let options = write_options(&task("b"), ExpectedRevision::Absent);
        task_store
            .store()
            .put(earlier, "b".to_owned(), options)
            .await
            .unwrap();
        let claim = async |owner, id| {
            let (job, task) = (job("1"), task(id));
            let claimed = task_store.claim(owner, &job, &task, JobOrigin::Found).await;
            claimed.unwrap()
        };
        assert!(!claim(&ann, "a").await);
        assert!(!claim(&bob, "c").await);
        assert!(claim(&bob, "b").await, "its own");
    }
}

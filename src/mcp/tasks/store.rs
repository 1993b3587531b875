//! Tasks in the store. What is kept there is the truth: several processes may share it, so a change is
//! made to what is there, and made again if someone else was faster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::Record;
use crate::tools::WorkHandle;
use crate::tools::claims::Claims;
use exa_mcp_model::Identity;
use exa_mcp_model::time::now;
use exa_mcp_store::{Document, Expected, Place, Query, Rules, Store, StoreError, format};

/// Where tasks are kept.
const TASKS: &str = "tasks";
/// Where earlier versions keep which task a piece of work at Exa belongs to, each owner for itself. Still written
/// for those that share the store.
const OWNER_CLAIMS: &str = "task_work";
/// Where it is kept which tasks are open, in a store that is looked through all the time: to read all
/// results of all tasks each time would be too much.
const OPEN: &str = "task_open";

/// How long a task may take to be kept after it was entered as open.
const ENTERING: u64 = 60_000;

/// Claims that are read at once, and the most that are read.
const CLAIMS_PAGE: usize = 500;
const MOST_CLAIMS: usize = 100_000;

/// The tasks in a store.
pub(super) struct Shelf {
    store: Arc<dyn Store>,
    /// The claims of all owners when one was first looked for: the tasks that have work, by its name. Those of
    /// earlier versions are nowhere else.
    owner_claims: OnceCell<HashMap<String, String>>,
}

/// How a task came to its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Exa answered its start with it.
    Answered,
    /// It was found in a list, which shows the work of others too.
    Found,
}

/// What became of a change.
pub(super) enum Change {
    /// It was made.
    Made(Record),
    /// The task is such that it was not to be made.
    Refused(Record),
    /// There is no such task, or no longer.
    Gone,
}

/// A task with what the store knows about it.
pub(super) struct Kept {
    pub(super) owner: Identity,
    /// Its place in the order in which tasks were made.
    pub(super) number: u64,
    pub(super) record: Record,
}

/// Tasks that may be open, and where to go on.
pub(super) struct Left {
    pub(super) tasks: Vec<Kept>,
    pub(super) next: Option<u64>,
}

impl Shelf {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            owner_claims: OnceCell::new(),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Keeps a new task. Servers on several machines count the open tasks of an owner together.
    pub(super) async fn add(
        &self,
        owner: &Identity,
        record: &Record,
        most_open: usize,
    ) -> Result<(), StoreError> {
        if self.store.is_remote() {
            let open = place(owner, OPEN, &record.id);
            let rules = Rules {
                most: Some(most_open),
                ..rules(record, Expected::Anything)
            };
            self.store.put(open, String::new(), rules).await?;
        }
        self.put(owner, record, Expected::Nothing).await
    }

    /// Everybody's tasks that may be open, the newest first.
    pub(super) async fn left(&self, before: Option<u64>, limit: usize) -> Result<Left, StoreError> {
        if !self.store.is_remote() {
            let tasks = self.page(None, before, limit).await?;
            let last = tasks.last().map(|kept| kept.number);
            let next = last.filter(|_| tasks.len() == limit);
            return Ok(Left { tasks, next });
        }
        let query = Query {
            owner: None,
            collection: OPEN,
            before,
            limit,
        };
        let entered = self.store.list(query).await?;
        let last = entered.last().map(|entered| entered.number);
        let next = last.filter(|_| entered.len() == limit);
        let mut tasks = Vec::new();
        for entry in entered {
            let (owner, number) = (Identity::from_stored(&entry.owner), entry.number);
            match self.get(&owner, &entry.id).await? {
                Some(record) if record.is_open() => tasks.push(Kept {
                    owner,
                    number,
                    record,
                }),
                None if now().saturating_sub(entry.created) < ENTERING => {}
                _ => drop(self.store.delete(place(&owner, OPEN, &entry.id)).await?),
            }
        }
        Ok(Left { tasks, next })
    }

    /// A task of this owner.
    pub(super) async fn get(
        &self,
        owner: &Identity,
        id: &str,
    ) -> Result<Option<Record>, StoreError> {
        let document = self.store.get(place(owner, TASKS, id)).await?;
        Ok(document.as_ref().and_then(read))
    }

    /// Tasks, the newest first; everybody's without an owner.
    pub(super) async fn page(
        &self,
        owner: Option<&Identity>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        let query = Query {
            owner: owner.cloned(),
            collection: TASKS,
            before,
            limit,
        };
        let documents = self.store.list(query).await?;
        let kept = documents.iter().filter_map(|document| {
            Some(Kept {
                owner: Identity::from_stored(&document.owner),
                number: document.number,
                record: read(document)?,
            })
        });
        Ok(kept.collect())
    }

    /// Changes a task; `change` says whether there is anything to change.
    pub(super) async fn change(
        &self,
        owner: &Identity,
        id: &str,
        mut change: impl FnMut(&mut Record) -> bool,
    ) -> Result<Change, StoreError> {
        loop {
            let document = self.store.get(place(owner, TASKS, id)).await?;
            let Some((document, mut record)) =
                document.and_then(|document| read(&document).map(|record| (document, record)))
            else {
                return Ok(Change::Gone);
            };
            if !change(&mut record) {
                return Ok(Change::Refused(record));
            }
            let expected = Expected::Revision(document.revision);
            match self.put(owner, &record, expected).await {
                Ok(()) => {
                    if self.store.is_remote() && !record.is_open() {
                        // If this fails, whoever looks for open tasks does it.
                        let _ = self.store.delete(place(owner, OPEN, id)).await;
                    }
                    return Ok(Change::Made(record));
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn put(
        &self,
        owner: &Identity,
        record: &Record,
        expected: Expected,
    ) -> Result<(), StoreError> {
        let body = format::encode(record);
        let rules = rules(record, expected);
        let place = place(owner, TASKS, &record.id);
        self.store.put(place, body, rules).await.map(drop)
    }

    /// Gives work to a task, unless somebody else has it.
    pub(super) async fn claim(
        &self,
        owner: &Identity,
        work: &WorkHandle,
        record: &Record,
        origin: Origin,
    ) -> Result<bool, StoreError> {
        let claims = Claims::new(&*self.store);
        let is_shared = self.store.is_shared();
        let is_free = match origin {
            Origin::Answered => true,
            Origin::Found if self.was_claimed(work, &record.id).await? => false,
            Origin::Found => claims.claim(work, &record.id).await?,
        };
        if !is_free || (is_shared && !self.claim_of_owner(owner, work, record).await?) {
            return Ok(false);
        }
        if origin == Origin::Answered {
            match claims.record(work, Some(&record.id)).await {
                Err(error) if is_shared => return Err(error),
                // There is not much room in memory, and the task can do without.
                _ => {}
            }
        }
        Ok(true)
    }

    async fn claim_of_owner(
        &self,
        owner: &Identity,
        work: &WorkHandle,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let claim = || place(owner, OWNER_CLAIMS, &work.to_string());
        let body = record.id.clone();
        let rules = rules(record, Expected::Nothing);
        match self.store.put(claim(), body, rules).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => {
                let document = self.store.get(claim()).await?;
                Ok(document.is_none_or(|document| *document.body == *record.id))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether somebody other than this task has some work.
    pub(super) async fn is_taken(&self, work: &WorkHandle, task: &str) -> Result<bool, StoreError> {
        let claims = Claims::new(&*self.store);
        Ok(claims.is_claimed_by_other(work, task).await? || self.was_claimed(work, task).await?)
    }

    /// Whether another task of any owner had the work when claims were first looked for.
    async fn was_claimed(&self, work: &WorkHandle, task: &str) -> Result<bool, StoreError> {
        if !self.store.is_shared() {
            return Ok(false);
        }
        let known = self.owner_claims.get_or_try_init(|| self.read_claims());
        let holder = known.await?.get(&work.to_string());
        Ok(holder.is_some_and(|holder| holder != task))
    }

    async fn read_claims(&self) -> Result<HashMap<String, String>, StoreError> {
        let mut claims = HashMap::new();
        let mut before = None;
        loop {
            let query = Query {
                owner: None,
                collection: OWNER_CLAIMS,
                before,
                limit: CLAIMS_PAGE,
            };
            let page = self.store.list(query).await?;
            let last = page.last().map(|claim| claim.number);
            before = last.filter(|_| page.len() == CLAIMS_PAGE);
            let page = page.into_iter();
            claims.extend(page.map(|claim| (claim.id, claim.body.to_string())));
            if before.is_none() || claims.len() >= MOST_CLAIMS {
                return Ok(claims);
            }
        }
    }
}

fn read(document: &Document) -> Option<Record> {
    format::decode(&document.body)
}

fn rules(record: &Record, expected: Expected) -> Rules {
    Rules {
        time_to_live: Some(record.left().max(Duration::from_millis(1))),
        most: None,
        expected,
    }
}

fn place(owner: &Identity, collection: &'static str, id: &str) -> Place {
    Place {
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

    fn work(id: &str) -> WorkHandle {
        let arguments = json!({"runId": id}).as_object().unwrap().clone();
        WorkHandle {
            get: "agent.runs.get".to_owned(),
            arguments,
        }
    }

    fn task(id: &str) -> Record {
        let life = Duration::from_secs(600);
        let (id, tool) = (id.to_owned(), "exa_api".to_owned());
        Record::new(id, tool, Map::new(), life, "runner".to_owned())
    }

    /// A store in a file and one in memory.
    fn shelves(folder: &tempfile::TempDir) -> [Shelf; 2] {
        let file = SqliteStore::new(folder.path().join("store.db"));
        let stores: [Arc<dyn Store>; 2] = [Arc::new(file), Arc::new(MemoryStore::default())];
        stores.map(Shelf::new)
    }

    #[tokio::test]
    async fn work_belongs_to_one_task_whoever_owns_it() {
        let folder = tempfile::tempdir().unwrap();
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        for shelf in shelves(&folder) {
            let claim = async |owner, id, run, origin| {
                let claimed = shelf.claim(owner, &work(run), &task(id), origin).await;
                claimed.unwrap()
            };
            assert!(claim(&ann, "a", "1", Origin::Found).await);
            assert!(claim(&ann, "a", "1", Origin::Found).await, "its own");
            assert!(!claim(&bob, "b", "1", Origin::Found).await);
            assert!(claim(&bob, "b", "2", Origin::Answered).await);
            assert!(!claim(&ann, "c", "2", Origin::Found).await);
            assert!(shelf.is_taken(&work("2"), "c").await.unwrap());
            assert!(!shelf.is_taken(&work("2"), "b").await.unwrap());
            let (claims, plain) = (Claims::new(shelf.store()), work("3"));
            claims.record(&plain, None).await.unwrap();
            assert!(
                !claim(&ann, "d", "3", Origin::Found).await,
                "a plain call has it"
            );
            assert!(claim(&ann, "d", "4", Origin::Found).await);
        }
    }

    #[tokio::test]
    async fn claims_of_earlier_versions_count() {
        let folder = tempfile::tempdir().unwrap();
        let [shelf, _] = shelves(&folder);
        let (ann, bob) = (Identity::user("ann"), Identity::user("bob"));
        let earlier = place(&bob, OWNER_CLAIMS, "agent.runs.get 1");
        let rules = rules(&task("b"), Expected::Nothing);
        shelf
            .store()
            .put(earlier, "b".to_owned(), rules)
            .await
            .unwrap();
        let claim = async |owner, id| {
            let (work, task) = (work("1"), task(id));
            let claimed = shelf.claim(owner, &work, &task, Origin::Found).await;
            claimed.unwrap()
        };
        assert!(!claim(&ann, "a").await);
        assert!(!claim(&bob, "c").await);
        assert!(claim(&bob, "b").await, "its own");
    }
}

//! Tasks in the store. What is kept there is the truth: several processes may share it, so a change is
//! made to what is there, and made again if someone else was faster.

use std::sync::Arc;
use std::time::Duration;

use super::Record;
use super::record::now;
use crate::tools::Work;
use exa_mcp_model::Identity;
use exa_mcp_store::{Document, Expected, Place, Query, Rules, Store, StoreError, format};

/// Where tasks are kept.
const TASKS: &str = "tasks";
/// Where it is kept which task a piece of work at Exa belongs to.
const CLAIMS: &str = "task_work";
/// Where it is kept which tasks are open, in a store that is looked through all the time: to read all
/// results of all tasks each time would be too much.
const OPEN: &str = "task_open";

/// How long a task may take to be kept after it was entered as open.
const ENTERING: u64 = 60_000;

/// The tasks in a store.
pub(super) struct Shelf(Arc<dyn Store>);

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
        Self(store)
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.0
    }

    /// Keeps a new task. Servers on several machines count the open tasks of an owner together.
    pub(super) async fn add(
        &self,
        owner: &Identity,
        record: &Record,
        most_open: usize,
    ) -> Result<(), StoreError> {
        if self.0.is_remote() {
            let open = place(owner, OPEN, &record.id);
            let rules = Rules {
                most: Some(most_open),
                ..rules(record, Expected::Anything)
            };
            self.0.put(open, String::new(), rules).await?;
        }
        self.put(owner, record, Expected::Nothing).await
    }

    /// Everybody's tasks that may be open, the newest first.
    pub(super) async fn left(&self, before: Option<u64>, limit: usize) -> Result<Left, StoreError> {
        if !self.0.is_remote() {
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
        let entered = self.0.list(query).await?;
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
                _ => drop(self.0.delete(place(&owner, OPEN, &entry.id)).await?),
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
        let document = self.0.get(place(owner, TASKS, id)).await?;
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
        let documents = self.0.list(query).await?;
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
            let document = self.0.get(place(owner, TASKS, id)).await?;
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
                    if self.0.is_remote() && !record.is_open() {
                        // If this fails, whoever looks for open tasks does it.
                        let _ = self.0.delete(place(owner, OPEN, id)).await;
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
        self.0.put(place, body, rules).await.map(drop)
    }

    /// Gives work to a task, unless another one has it.
    pub(super) async fn claim(
        &self,
        owner: &Identity,
        work: &Work,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let body = record.id.clone();
        let rules = rules(record, Expected::Nothing);
        match self.0.put(claim(owner, work), body, rules).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => Ok(!self.is_taken(owner, work, &record.id).await?),
            Err(error) => Err(error),
        }
    }

    /// Whether a task other than this one has some work.
    pub(super) async fn is_taken(
        &self,
        owner: &Identity,
        work: &Work,
        task: &str,
    ) -> Result<bool, StoreError> {
        let document = self.0.get(claim(owner, work)).await?;
        Ok(document.is_some_and(|document| *document.body != *task))
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

fn claim(owner: &Identity, work: &Work) -> Place {
    place(owner, CLAIMS, &work.to_string())
}

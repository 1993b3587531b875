//! Which work at Exa belongs to whom, so that a task that looks for its own never takes up that of others.

use std::time::Duration;

use super::work::Work;
use exa_mcp_model::Identity;
use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreError, WriteOptions};

/// Where claims are kept. They belong to the server: users share the work that Exa lists.
const COLLECTION: &str = "work_claims";

/// How long a claim is kept. A task lives for a day at most, and looks for nothing that is older than itself.
const KEPT: Duration = Duration::from_secs(25 * 60 * 60);

/// The same in memory, where tasks end with the process and look for their work right after its start.
const KEPT_IN_MEMORY: Duration = Duration::from_secs(60 * 60);

/// The most claims in memory.
const MOST_IN_MEMORY: usize = 2_000;

/// Who has the work of a call that is no task.
const PLAIN_CALL: &str = "call";

/// The claims in a store.
#[derive(Clone, Copy)]
pub(crate) struct Claims<'a>(&'a dyn Store);

impl<'a> Claims<'a> {
    pub(crate) fn of(store: &'a dyn Store) -> Self {
        Self(store)
    }

    /// Records the work with which a start was answered, of a task or a plain call.
    pub(crate) async fn record(&self, work: &Work, task: Option<&str>) -> Result<(), StoreError> {
        let owner = task.unwrap_or(PLAIN_CALL).to_owned();
        let rules = self.rules(ExpectedRevision::Any);
        self.0.put(place(work), owner, rules).await.map(drop)
    }

    /// Claims work for a task that found it; `false` if somebody else has it.
    pub(crate) async fn take(&self, work: &Work, task: &str) -> Result<bool, StoreError> {
        let rules = self.rules(ExpectedRevision::Absent);
        match self.0.put(place(work), task.to_owned(), rules).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => Ok(!self.is_taken(work, task).await?),
            Err(error) => Err(error),
        }
    }

    /// Whether somebody other than this task has the work.
    pub(crate) async fn is_taken(&self, work: &Work, task: &str) -> Result<bool, StoreError> {
        let document = self.0.get(place(work)).await?;
        Ok(document.is_some_and(|document| *document.body != *task))
    }

    fn rules(&self, expected: ExpectedRevision) -> WriteOptions {
        let (kept, most) = if self.0.is_shared() {
            (KEPT, None)
        } else {
            (KEPT_IN_MEMORY, Some(MOST_IN_MEMORY))
        };
        WriteOptions {
            time_to_live: Some(kept),
            max_documents: most,
            expected,
        }
    }
}

fn place(work: &Work) -> DocumentKey {
    DocumentKey {
        owner: Identity::server(),
        collection: COLLECTION,
        id: work.to_string(),
    }
}

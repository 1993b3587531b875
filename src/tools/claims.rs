//! Claims on jobs at Exa, so that a task that recovers its own job never adopts that of others.

use std::time::Duration;

use super::task_call::JobHandle;
use exa_mcp_model::Identity;
use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreError, WriteOptions};

/// The collection of claims. They belong to the server, because all users share the jobs that Exa lists.
const COLLECTION: &str = "work_claims";

/// How long a claim is stored. A task lives for a day at most and ignores jobs older than itself.
const RETENTION: Duration = Duration::from_secs(25 * 60 * 60);

/// How long a claim is stored in memory, where tasks end with the process.
const RETENTION_IN_MEMORY: Duration = Duration::from_secs(60 * 60);

/// The maximum number of claims in memory.
const MAX_IN_MEMORY: usize = 2_000;

/// The owner of a job started by a call without a task.
const PLAIN_CALL: &str = "call";

/// The claims in a store.
#[derive(Clone, Copy)]
pub(crate) struct Claims<'a>(&'a dyn Store);

impl<'a> Claims<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self(store)
    }

    /// Records a job that a task or a plain call has started.
    pub(crate) async fn record(
        &self,
        job: &JobHandle,
        task: Option<&str>,
    ) -> Result<(), StoreError> {
        let owner = task.unwrap_or(PLAIN_CALL).to_owned();
        let write_options = self.write_options(ExpectedRevision::Any);
        self.0
            .put(document_key(job), owner, write_options)
            .await
            .map(drop)
    }

    /// Claims a job for a task that found it. Returns `false` if another owner has it.
    pub(crate) async fn claim(&self, job: &JobHandle, task: &str) -> Result<bool, StoreError> {
        let write_options = self.write_options(ExpectedRevision::Absent);
        match self
            .0
            .put(document_key(job), task.to_owned(), write_options)
            .await
        {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => Ok(!self.is_claimed_by_other(job, task).await?),
            Err(error) => Err(error),
        }
    }

    /// Returns whether another owner has the job.
    pub(crate) async fn is_claimed_by_other(
        &self,
        job: &JobHandle,
        task: &str,
    ) -> Result<bool, StoreError> {
        let document = self.0.get(document_key(job)).await?;
        Ok(document.is_some_and(|document| *document.body != *task))
    }

    fn write_options(&self, expected: ExpectedRevision) -> WriteOptions {
        let (retention, max) = if self.0.is_shared() {
            (RETENTION, None)
        } else {
            (RETENTION_IN_MEMORY, Some(MAX_IN_MEMORY))
        };
        WriteOptions {
            time_to_live: Some(retention),
            max_documents: max,
            expected,
        }
    }
}

fn document_key(job: &JobHandle) -> DocumentKey {
    DocumentKey {
        owner: Identity::server(),
        collection: COLLECTION,
        id: job.to_string(),
    }
}

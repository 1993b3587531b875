//! Stores the job that a task starts at Exa, before anything else happens.

use std::sync::Mutex;

use futures_util::future::BoxFuture;

use super::store::JobOrigin;
use super::{TaskRecord, TaskUpdate, Tasks, Tools};
use crate::tools::{JobHandle, JobTracker};
use exa_mcp_model::Identity;
use exa_mcp_store::StoreError;

/// Stores the job of one task.
pub(super) struct TaskWorker<T: Tools> {
    pub(super) tasks: Tasks<T>,
    pub(super) owner: Identity,
    record: TaskRecord,
    /// Set while the start has no response.
    start: Mutex<Option<PendingStart<T>>>,
}

/// A start without a response of Exa.
struct PendingStart<T: Tools>(Tasks<T>);

impl<T: Tools> PendingStart<T> {
    fn new(tasks: Tasks<T>) -> Self {
        tasks.shared.starts.send_modify(|starts| *starts += 1);
        Self(tasks)
    }
}

impl<T: Tools> Drop for PendingStart<T> {
    fn drop(&mut self) {
        self.0.shared.starts.send_modify(|starts| *starts -= 1);
    }
}

/// Suspends the pending start while the task waits for input.
pub(super) struct StartPause<'a, T: Tools> {
    worker: &'a TaskWorker<T>,
    was_pending: bool,
}

impl<T: Tools> Drop for StartPause<'_, T> {
    fn drop(&mut self) {
        if let (true, Ok(mut start)) = (self.was_pending, self.worker.start.lock()) {
            *start = Some(PendingStart::new(self.worker.tasks.clone()));
        }
    }
}

impl<T: Tools> TaskWorker<T> {
    /// Returns the id of the task.
    pub(super) fn id(&self) -> &str {
        &self.record.id
    }

    /// Suspends the pending start, so that a shutdown does not wait for it.
    pub(super) fn pause(&self) -> StartPause<'_, T> {
        let start = self.start.lock();
        let start = start.ok().and_then(|mut start| start.take());
        StartPause {
            worker: self,
            was_pending: start.is_some(),
        }
    }

    /// Creates the worker of a task.
    pub(super) fn new(
        tasks: Tasks<T>,
        owner: Identity,
        record: TaskRecord,
        starts_job: bool,
    ) -> Self {
        let starts = record.job.is_none() && starts_job;
        let start = starts.then(|| PendingStart::new(tasks.clone()));
        Self {
            tasks,
            owner,
            record,
            start: Mutex::new(start),
        }
    }

    async fn record_now(&self, job: JobHandle, origin: JobOrigin) -> bool {
        let id = &self.record.id;
        let is_recorded = match self.try_record(&job, origin).await {
            Ok(is_recorded) => is_recorded,
            Err(error) => {
                // The task continues all the same; only a restart would not find the job.
                tracing::warn!(task = id, %job, %error, "the job could not be stored");
                true
            }
        };
        if is_recorded && let Some(running) = self.tasks.running().get(id) {
            running.live.send_modify(|live| live.job = Some(job));
        }
        is_recorded
    }

    async fn try_record(&self, job: &JobHandle, origin: JobOrigin) -> Result<bool, StoreError> {
        let Self {
            tasks,
            owner,
            record,
            ..
        } = self;
        let (task_store, id) = (&tasks.shared.task_store, &record.id);
        if self.is_taken_here(job)
            || (origin == JobOrigin::Found && self.is_paid_by_another(job).await)
            || !task_store.claim(owner, job, record, origin).await?
        {
            return Ok(false);
        }
        let set_job = |record: &mut TaskRecord| {
            let is_ours = tasks.is_ours(record);
            if is_ours {
                record.job = Some(job.clone());
            }
            is_ours
        };
        match task_store.update(owner, id, set_job).await? {
            TaskUpdate::Applied(_) => return Ok(true),
            TaskUpdate::Rejected(record) if record.is_final() => {}
            TaskUpdate::Rejected(_) => {
                tracing::warn!(task = id, %job, "another server runs this task now");
                return Ok(false);
            }
            TaskUpdate::NotFound => {
                tracing::info!(task = id, %job, "the job continues at Exa; its task has expired");
                return Ok(false);
            }
        }
        // The task was cancelled while the start was pending.
        let stop = |record: &mut TaskRecord| {
            record.job = Some(job.clone());
            record.stopping = true;
            true
        };
        task_store.update(owner, id, stop).await?;
        tasks.stop_upstream(owner, id, job.clone());
        Ok(false)
    }

    /// Returns whether another task that runs in this process has this job.
    fn is_taken_here(&self, job: &JobHandle) -> bool {
        let running = self.tasks.running();
        let mut others = running.iter().filter(|(id, _)| **id != self.record.id);
        others.any(|(_, other)| other.live.borrow().job.as_ref() == Some(job))
    }

    /// Returns whether the ledger has another account that pays for a job.
    async fn is_paid_by_another(&self, job: &JobHandle) -> bool {
        let (Some(allowance), Some(key)) = (&self.tasks.allowance, job.key()) else {
            return false;
        };
        let account = allowance.account();
        match account.ledger().payer_of_job(&key).await {
            Ok(payer) => payer.is_some_and(|payer| payer != account.payer()),
            Err(error) => {
                tracing::warn!(%job, %error, "the account that pays for the job could not be read");
                false
            }
        }
    }

    async fn record(&self, job: JobHandle, origin: JobOrigin) -> bool {
        let is_recorded = self.record_now(job, origin).await;
        if is_recorded || !self.is_active() {
            let start = self.start.lock();
            drop(start.map(|mut start| start.take()));
        }
        is_recorded
    }
}

impl<T: Tools> JobTracker for TaskWorker<T> {
    fn record(&self, job: JobHandle) -> BoxFuture<'_, bool> {
        Box::pin(self.record(job, JobOrigin::Started))
    }

    fn adopt(&self, job: JobHandle) -> BoxFuture<'_, bool> {
        Box::pin(self.record(job, JobOrigin::Found))
    }

    fn is_claimed_by_other(&self, job: JobHandle) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            if self.is_paid_by_another(&job).await {
                return true;
            }
            let taken = self
                .tasks
                .shared
                .task_store
                .is_taken(&job, &self.record.id)
                .await;
            // If the store cannot tell, the job does not count as taken, so that the search stays inconclusive.
            taken.unwrap_or(false)
        })
    }

    fn is_active(&self) -> bool {
        self.tasks.running().contains_key(&self.record.id)
    }
}

//! Resumes the tasks of processes that have ended.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::revocation::TaskRevocation;
use super::run::{TaskObserver, TaskRun};
use super::{ParsedCall, TaskRecord, TaskUpdate, Tasks, Tools};
use crate::tools::TaskAttempt;
use exa_mcp_model::Identity;
use exa_mcp_store::StoreError;

/// Tasks per page.
const PAGE_SIZE: usize = 20;

/// How often the tasks of other processes are checked, while there are any.
const PAUSE: Duration = Duration::from_secs(5);

/// Failed reads of the store after which recovery stops.
const MAX_FAILURES: usize = 5;

/// Finds the tasks of processes that have ended, and resumes them.
pub(super) struct TaskRecovery<'a, T> {
    pub(super) tasks: &'a Tasks<T>,
}

impl<T: Tools> TaskRecovery<'_, T> {
    /// Resumes the tasks of processes that have ended, now and as long as other processes run tasks.
    pub(super) async fn resume(&self) {
        let store = self.tasks.shared.task_store.store();
        // Servers on other machines may stop at any time.
        let always = store.is_remote();
        let mut failures = 0;
        while store.is_shared() {
            match self.resume_orphaned().await {
                Ok(0) if !always => return,
                Ok(_) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "the tasks of other processes could not be read");
                    failures += 1;
                }
            }
            if failures >= MAX_FAILURES && !always {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Resumes the tasks that no process runs; returns how many other processes run.
    async fn resume_orphaned(&self) -> Result<usize, StoreError> {
        let task_store = &self.tasks.shared.task_store;
        // Reading must not create the store.
        if !task_store.store().may_contain_data() {
            return Ok(0);
        }
        let mut liveness = HashMap::new();
        let mut others = 0;
        let mut before = None;
        loop {
            let page = task_store.open_tasks(before, PAGE_SIZE).await?;
            before = page.next;
            for task in &page.tasks {
                let record = &task.record;
                if self.tasks.running().contains_key(&record.id) {
                    self.release_if_taken(&task.owner, record).await?;
                    continue;
                }
                if !record.is_open() {
                    continue;
                }
                if self.is_alive(&mut liveness, &record.runner).await {
                    others += 1;
                } else if !self.stop_if_revoked(&task.owner, record).await {
                    // Without the check, a revoked user could still start a job.
                    self.take_over(&task.owner, record).await?;
                }
            }
            if before.is_none() {
                return Ok(others);
            }
        }
    }

    /// Stops a task instead of resuming it, if its owner has no valid token; returns whether it did.
    async fn stop_if_revoked(&self, owner: &Identity, record: &TaskRecord) -> bool {
        let tasks = self.tasks;
        match tasks.shared.tokens.get() {
            Some(tokens) => {
                let revocation = TaskRevocation { tasks, tokens };
                revocation.stop_if_revoked(owner, record).await
            }
            None => false,
        }
    }

    /// Stops running a task that another server took over, because it considered this process dead.
    async fn release_if_taken(
        &self,
        owner: &Identity,
        record: &TaskRecord,
    ) -> Result<(), StoreError> {
        let task_store = &self.tasks.shared.task_store;
        if !task_store.store().is_remote()
            || self.tasks.is_own(&record.runner)
            || record.job.is_none()
        {
            return Ok(());
        }
        // It may have been taken over here since it was read.
        let current = task_store.get(owner, &record.id).await?;
        if current.is_some_and(|current| !self.tasks.is_own(&current.runner))
            && let Some(running) = self.tasks.unregister(&record.id)
        {
            tracing::warn!(task = record.id, "another server runs this task now");
            running.abort.inspect(AbortHandle::abort);
        }
        Ok(())
    }

    /// Returns whether the process that runs a task is alive.
    async fn is_alive(&self, known: &mut HashMap<String, bool>, runner: &str) -> bool {
        if let Some(is_alive) = known.get(runner) {
            return *is_alive;
        }
        let is_alive = self.tasks.is_own(runner) || {
            let store = self.tasks.shared.task_store.store();
            // A process with an invalid name cannot come back. But if a remote store does not respond, no process is
            // considered dead.
            let is_alive = store.is_alive(runner.to_owned()).await;
            is_alive.unwrap_or(store.is_remote())
        };
        known.insert(runner.to_owned(), is_alive);
        is_alive
    }

    /// Resumes a task of an earlier process whose owner requests it; returns whether it did.
    pub(super) async fn reclaim(
        &self,
        owner: &Identity,
        record: &TaskRecord,
    ) -> Result<bool, StoreError> {
        let waits = self.tasks.shared.on_demand.load(Ordering::Relaxed) && record.is_open();
        if !waits || !self.tasks.tools.has_key() || self.tasks.running().contains_key(&record.id) {
            return Ok(false);
        }
        if self.is_alive(&mut HashMap::new(), &record.runner).await {
            return Ok(false);
        }
        self.take_over(owner, record).await?;
        Ok(true)
    }

    /// Takes over a task of a process that has ended.
    async fn take_over(&self, owner: &Identity, record: &TaskRecord) -> Result<(), StoreError> {
        let runner = self.tasks.runner().await?;
        let mut is_first = false;
        let take_over = |current: &mut TaskRecord| {
            let is_orphaned = current.is_open() && current.runner == record.runner;
            if is_orphaned {
                runner.clone_into(&mut current.runner);
                is_first = current.withdraw_requests();
            }
            is_orphaned
        };
        let TaskUpdate::Applied(record) = self
            .tasks
            .shared
            .task_store
            .update(owner, &record.id, take_over)
            .await?
        else {
            return Ok(());
        };
        match &record.job {
            Some(job) if record.is_final() => {
                self.tasks.stop_upstream(owner, &record.id, job.clone())
            }
            _ => {
                tracing::info!(task = record.id, "task resumed");
                // The limits apply to new tasks only.
                let arguments = record.arguments.clone();
                let call = self.tasks.tools.parse(&record.tool, arguments);
                self.tasks
                    .register(&mut self.tasks.running(), owner, &record, call.starts_job());
                let attempt = if is_first {
                    TaskAttempt::First
                } else {
                    TaskAttempt::Resumed(record.job.clone())
                };
                let (tasks, permit) = self.tasks.for_payer(&record).await;
                let observer = TaskObserver {
                    permit,
                    ..TaskObserver::none()
                };
                TaskRun::launch(tasks, owner.clone(), (record, call, attempt), observer);
            }
        }
        Ok(())
    }
}

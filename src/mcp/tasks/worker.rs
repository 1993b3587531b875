//! Keeping what a task started at Exa, before anything else happens.

use std::sync::Mutex;

use futures_util::future::BoxFuture;

use super::store::Origin;
use super::{Change, Record, Tasks, Tools};
use crate::tools::{WorkHandle, WorkTracker};
use exa_mcp_model::Identity;
use exa_mcp_store::StoreError;

/// Keeps the work of one task.
pub(super) struct TaskKeeper<T: Tools> {
    pub(super) tasks: Tasks<T>,
    pub(super) owner: Identity,
    record: Record,
    /// There while the start is not answered.
    start: Mutex<Option<Start<T>>>,
}

/// A start on its way.
struct Start<T: Tools>(Tasks<T>);

impl<T: Tools> Start<T> {
    fn new(tasks: Tasks<T>) -> Self {
        tasks.shared.starts.send_modify(|starts| *starts += 1);
        Self(tasks)
    }
}

impl<T: Tools> Drop for Start<T> {
    fn drop(&mut self) {
        self.0.shared.starts.send_modify(|starts| *starts -= 1);
    }
}

/// A time in which the start is not on its way.
pub(super) struct Pause<'a, T: Tools> {
    keeper: &'a TaskKeeper<T>,
    is_start: bool,
}

impl<T: Tools> Drop for Pause<'_, T> {
    fn drop(&mut self) {
        if let (true, Ok(mut start)) = (self.is_start, self.keeper.start.lock()) {
            *start = Some(Start::new(self.keeper.tasks.clone()));
        }
    }
}

impl<T: Tools> TaskKeeper<T> {
    /// The task.
    pub(super) fn id(&self) -> &str {
        &self.record.id
    }

    /// Lets a server end that would otherwise wait for the start.
    pub(super) fn pause(&self) -> Pause<'_, T> {
        let start = self.start.lock();
        let start = start.ok().and_then(|mut start| start.take());
        Pause {
            keeper: self,
            is_start: start.is_some(),
        }
    }

    /// The keeper of a task that is about to be run.
    pub(super) fn new(tasks: Tasks<T>, owner: Identity, record: Record, starts_work: bool) -> Self {
        let starts = record.work.is_none() && starts_work;
        let start = starts.then(|| Start::new(tasks.clone()));
        Self {
            tasks,
            owner,
            record,
            start: Mutex::new(start),
        }
    }

    async fn keep_now(&self, work: WorkHandle, origin: Origin) -> bool {
        let id = &self.record.id;
        let kept = match self.try_keep(&work, origin).await {
            Ok(kept) => kept,
            Err(error) => {
                // It goes on all the same; only a restart would not find it.
                tracing::warn!(task = id, %work, %error, "could not be kept");
                true
            }
        };
        if kept && let Some(running) = self.tasks.running().get(id) {
            running.live.send_modify(|live| live.work = Some(work));
        }
        kept
    }

    async fn try_keep(&self, work: &WorkHandle, origin: Origin) -> Result<bool, StoreError> {
        let Self {
            tasks,
            owner,
            record,
            ..
        } = self;
        let (shelf, id) = (&tasks.shared.shelf, &record.id);
        if self.is_taken_here(work)
            || (origin == Origin::Found && self.is_paid_by_another(work).await)
            || !shelf.claim(owner, work, record, origin).await?
        {
            return Ok(false);
        }
        let keep = |record: &mut Record| {
            let is_ours = tasks.is_ours(record);
            if is_ours {
                record.work = Some(work.clone());
            }
            is_ours
        };
        match shelf.change(owner, id, keep).await? {
            Change::Made(_) => return Ok(true),
            Change::Refused(record) if record.is_final() => {}
            Change::Refused(_) => {
                tracing::warn!(task = id, %work, "another server runs this task now");
                return Ok(false);
            }
            Change::Gone => {
                tracing::info!(task = id, %work, "goes on at Exa; its task is over");
                return Ok(false);
            }
        }
        // It was cancelled while the start was on its way.
        let stop = |record: &mut Record| {
            record.work = Some(work.clone());
            record.stopping = true;
            true
        };
        shelf.change(owner, id, stop).await?;
        tasks.stop_upstream(owner, id, work.clone());
        Ok(false)
    }

    /// Whether another task under way in this process has this work.
    fn is_taken_here(&self, work: &WorkHandle) -> bool {
        let running = self.tasks.running();
        let mut others = running.iter().filter(|(id, _)| **id != self.record.id);
        others.any(|(_, other)| other.live.borrow().work.as_ref() == Some(work))
    }
}

impl<T: Tools> TaskKeeper<T> {
    /// Whether the ledger knows that somebody else pays for a run.
    async fn is_paid_by_another(&self, work: &WorkHandle) -> bool {
        let (Some(allowance), Some(key)) = (&self.tasks.allowance, work.key()) else {
            return false;
        };
        let account = allowance.account();
        match account.ledger().payer_of_run(&key).await {
            Ok(payer) => payer.is_some_and(|payer| payer != account.payer()),
            Err(error) => {
                tracing::warn!(%work, %error, "who pays for it could not be read");
                false
            }
        }
    }

    async fn keep_as(&self, work: WorkHandle, origin: Origin) -> bool {
        let kept = self.keep_now(work, origin).await;
        if kept || !self.is_active() {
            let start = self.start.lock();
            drop(start.map(|mut start| start.take()));
        }
        kept
    }
}

impl<T: Tools> WorkTracker for TaskKeeper<T> {
    fn record(&self, work: WorkHandle) -> BoxFuture<'_, bool> {
        Box::pin(self.keep_as(work, Origin::Answered))
    }

    fn adopt(&self, work: WorkHandle) -> BoxFuture<'_, bool> {
        Box::pin(self.keep_as(work, Origin::Found))
    }

    fn is_claimed_by_other(&self, work: WorkHandle) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            if self.is_paid_by_another(&work).await {
                return true;
            }
            let taken = self
                .tasks
                .shared
                .shelf
                .is_taken(&work, &self.record.id)
                .await;
            // Whoever cannot tell must not take it for nobody's.
            taken.unwrap_or(false)
        })
    }

    fn is_active(&self) -> bool {
        self.tasks.running().contains_key(&self.record.id)
    }
}

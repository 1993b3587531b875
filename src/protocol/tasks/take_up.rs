//! Taking up the tasks of processes that have ended.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::run::Watcher;
use super::{Change, Record, Tasks, Tools};
use crate::accounts::Identity;
use crate::store::StoreError;
use crate::surface::Attempt;

/// Tasks that are looked at in one go.
const PAGE: usize = 20;

/// How often the tasks of other processes are looked at, while there are any.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a store that cannot be read is tried.
const MOST_FAILURES: usize = 5;

impl<T: Tools> Tasks<T> {
    /// Takes up the tasks of processes that have ended, now and as long as others run some.
    pub(in super::super) async fn resume(&self) {
        let mut failures = 0;
        while self.shared.shelf.store().is_shared() {
            match self.take_up().await {
                Ok(0) => return,
                Ok(_) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "tasks could not be looked for");
                    failures += 1;
                }
            }
            if failures >= MOST_FAILURES {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Takes up what nobody runs; gives how many tasks other processes run.
    async fn take_up(&self) -> Result<usize, StoreError> {
        let shelf = &self.shared.shelf;
        // A store that nobody made is not made by looking.
        if !shelf.store().is_made() {
            return Ok(0);
        }
        let mut lives = HashMap::new();
        let mut others = 0;
        let mut before = None;
        loop {
            let page = shelf.page(None, before, PAGE).await?;
            before = page.last().map(|kept| kept.number);
            for kept in &page {
                let record = &kept.record;
                if !is_open(record) || self.running().contains_key(&record.id) {
                    continue;
                }
                match self.lives(&mut lives, &record.runner).await {
                    true => others += 1,
                    false => self.take(&kept.owner, record).await?,
                }
            }
            if page.len() < PAGE {
                return Ok(others);
            }
        }
    }

    /// Whether the process that ran a task lives.
    async fn lives(&self, known: &mut HashMap<String, bool>, runner: &str) -> bool {
        if let Some(lives) = known.get(runner) {
            return *lives;
        }
        let is_own = self
            .shared
            .runner
            .get()
            .is_some_and(|own| own.name == runner);
        let lives = is_own || {
            let lives = self.shared.shelf.store().lives(runner.to_owned()).await;
            // One that left no usable name behind cannot come back.
            lives.unwrap_or(false)
        };
        known.insert(runner.to_owned(), lives);
        lives
    }

    /// Leaves the tasks of earlier processes alone until their owners ask for them: only they have the
    /// keys to follow them with.
    pub(in super::super) fn resume_on_demand(&self) {
        self.shared.on_demand.store(true, Ordering::Relaxed);
    }

    /// Takes up a task of an earlier process whose owner is here now.
    pub(super) async fn reclaim(
        &self,
        owner: &Identity,
        record: &Record,
    ) -> Result<(), StoreError> {
        let waits = self.shared.on_demand.load(Ordering::Relaxed) && is_open(record);
        if !waits || !self.tools.has_key() || self.running().contains_key(&record.id) {
            return Ok(());
        }
        match self.lives(&mut HashMap::new(), &record.runner).await {
            true => Ok(()),
            false => self.take(owner, record).await,
        }
    }

    async fn take(&self, owner: &Identity, record: &Record) -> Result<(), StoreError> {
        let runner = self.runner().await?;
        let take = |found: &mut Record| {
            let is_left = is_open(found) && found.runner == record.runner;
            if is_left {
                runner.clone_into(&mut found.runner);
            }
            is_left
        };
        let Change::Made(record) = self.shared.shelf.change(owner, &record.id, take).await? else {
            return Ok(());
        };
        match &record.work {
            Some(work) if record.is_final() => self.stop_upstream(owner, &record.id, work.clone()),
            _ => {
                tracing::info!(task = record.id, "taken up again");
                self.reserve(&record, usize::MAX);
                let attempt = Attempt::Again(record.work.clone());
                self.launch(owner.clone(), record, attempt, Watcher::nobody());
            }
        }
        Ok(())
    }
}

/// Whether there is something left to do for a task.
fn is_open(record: &Record) -> bool {
    !record.is_final() || record.stopping
}

//! Taking up the tasks of processes that have ended.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::sleep;

use super::run::Watcher;
use super::shelf::Kept;
use super::{Change, Record, Tasks, Tools};
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
        while self.0.shelf.store().is_shared() {
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
        let shelf = &self.0.shelf;
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
                    false => self.take(kept).await?,
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
        let is_own = self.0.runner.get().is_some_and(|own| own.name == runner);
        let lives = is_own || {
            let lives = self.0.shelf.store().lives(runner.to_owned()).await;
            // One that left no usable name behind cannot come back.
            lives.unwrap_or(false)
        };
        known.insert(runner.to_owned(), lives);
        lives
    }

    async fn take(&self, kept: &Kept) -> Result<(), StoreError> {
        let Kept { owner, record, .. } = kept;
        let runner = self.runner().await?;
        let take = |found: &mut Record| {
            let is_left = is_open(found) && found.runner == record.runner;
            if is_left {
                runner.clone_into(&mut found.runner);
            }
            is_left
        };
        let Change::Made(record) = self.0.shelf.change(owner, &record.id, take).await? else {
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

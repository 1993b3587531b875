//! Taking up the tasks of processes that have ended.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::run::Watcher;
use super::{Change, ParsedCall, Record, Tasks, Tools};
use crate::tools::Attempt;
use exa_mcp_model::Identity;
use exa_mcp_store::StoreError;

/// Tasks that are looked at in one go.
const PAGE: usize = 20;

/// How often the tasks of other processes are looked at, while there are any.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a store that cannot be read is tried.
const MOST_FAILURES: usize = 5;

impl<T: Tools> Tasks<T> {
    /// Takes up the tasks of processes that have ended, now and as long as others run some.
    pub(in super::super) async fn resume(&self) {
        let store = self.shared.shelf.store();
        // Servers on other machines come and go as long as this one lives.
        let always = store.is_remote();
        let mut failures = 0;
        while store.is_shared() {
            match self.take_up().await {
                Ok(0) if !always => return,
                Ok(_) => failures = 0,
                Err(error) => {
                    tracing::warn!(%error, "tasks could not be looked for");
                    failures += 1;
                }
            }
            if failures >= MOST_FAILURES && !always {
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
            let page = shelf.left(before, PAGE).await?;
            before = page.next;
            for kept in &page.tasks {
                let record = &kept.record;
                if self.running().contains_key(&record.id) {
                    self.give_up(&kept.owner, record).await?;
                    continue;
                }
                if !record.is_open() {
                    continue;
                }
                match self.lives(&mut lives, &record.runner).await {
                    true => others += 1,
                    // Taking it up could start work that nobody may ask for any more.
                    false if self.stop_unadmitted(&kept.owner, record).await => {}
                    false => self.take(&kept.owner, record).await?,
                }
            }
            if before.is_none() {
                return Ok(others);
            }
        }
    }

    /// Stops following a task that another server took up, because this one had not been heard of.
    async fn give_up(&self, owner: &Identity, record: &Record) -> Result<(), StoreError> {
        let shelf = &self.shared.shelf;
        if !shelf.store().is_remote() || self.is_own(&record.runner) || record.work.is_none() {
            return Ok(());
        }
        // It may have been taken up here since it was read.
        let taken = shelf.get(owner, &record.id).await?;
        if taken.is_some_and(|taken| !self.is_own(&taken.runner))
            && let Some(running) = self.leave(&record.id)
        {
            tracing::warn!(task = record.id, "another server follows it now");
            running.abort.inspect(AbortHandle::abort);
        }
        Ok(())
    }

    /// Whether a name is this process's.
    fn is_own(&self, runner: &str) -> bool {
        let own = self.shared.runner.get();
        own.is_some_and(|own| own.name == runner)
    }

    /// Whether the process that ran a task lives.
    async fn lives(&self, known: &mut HashMap<String, bool>, runner: &str) -> bool {
        if let Some(lives) = known.get(runner) {
            return *lives;
        }
        let lives = self.is_own(runner) || {
            let lives = self.shared.shelf.store().lives(runner.to_owned()).await;
            // One that left no usable name behind cannot come back; but where the store may not have
            // answered, nobody is taken for dead.
            lives.unwrap_or(self.shared.shelf.store().is_remote())
        };
        known.insert(runner.to_owned(), lives);
        lives
    }

    /// Leaves the tasks of earlier processes alone until their owners ask for them: only they have the
    /// keys to follow them with.
    pub(in super::super) fn resume_on_demand(&self) {
        self.shared.on_demand.store(true, Ordering::Relaxed);
    }

    /// Takes up a task of an earlier process whose owner is here now; says whether there was something to
    /// take up.
    pub(super) async fn reclaim(
        &self,
        owner: &Identity,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let waits = self.shared.on_demand.load(Ordering::Relaxed) && record.is_open();
        if !waits || !self.tools.has_key() || self.running().contains_key(&record.id) {
            return Ok(false);
        }
        if self.lives(&mut HashMap::new(), &record.runner).await {
            return Ok(false);
        }
        self.take(owner, record).await?;
        Ok(true)
    }

    async fn take(&self, owner: &Identity, record: &Record) -> Result<(), StoreError> {
        let runner = self.runner().await?;
        let mut is_first = false;
        let take = |found: &mut Record| {
            let is_left = found.is_open() && found.runner == record.runner;
            if is_left {
                runner.clone_into(&mut found.runner);
                is_first = found.take_back();
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
                // What was begun before is followed, however much it is.
                let arguments = record.arguments.clone();
                let call = self.tools.parse(&record.tool, arguments);
                self.enter(&mut self.running(), owner, &record, call.starts_work());
                let attempt = if is_first {
                    Attempt::First
                } else {
                    Attempt::Resumed(record.work.clone())
                };
                let (tasks, permit) = self.paid_as(&record).await;
                let watcher = Watcher {
                    permit,
                    ..Watcher::nobody()
                };
                tasks.launch(owner.clone(), (record, call, attempt), watcher);
            }
        }
        Ok(())
    }
}

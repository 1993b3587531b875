//! What one key owns. Keys do not see each other's objects.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::schedule::{Schedule, Step};
use super::table::Table;
use crate::agent::{AgentMonitor, AgentRun, Backtest, Idempotent};
use crate::call::Follow;
use crate::failure::Failure;
use crate::ids;
use crate::random::{Dice, hash};
use crate::research::Research;
use crate::search_monitors::SearchMonitor;
use crate::time::DAY;
use crate::websets::{Event, Import, Monitor, Webhook, Webset};

/// Objects a key may own, events not counted.
const MOST_OBJECTS: usize = 10_000;
/// Steps taken in one go; a way out should steps ever plan each other without end.
const MOST_STEPS: usize = 200_000;

/// Longest time work can be made to take, in milliseconds: a hundred years.
const LONGEST_SPAN: u64 = 100 * 365 * DAY;

/// Everything that belongs to one key.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) websets: Table<Webset>,
    pub(crate) imports: Table<Import>,
    pub(crate) monitors: Table<Monitor>,
    pub(crate) webhooks: Table<Webhook>,
    pub(crate) events: Table<Event>,
    pub(crate) research: Table<Research>,
    pub(crate) agent_runs: Table<AgentRun>,
    pub(crate) agent_monitors: Table<AgentMonitor>,
    pub(crate) backtests: Table<Backtest>,
    pub(crate) search_monitors: Table<SearchMonitor>,
    /// Answers to requests that carried an `Idempotency-Key`.
    pub(crate) idempotent: HashMap<String, Idempotent>,
    new_uploads: Vec<(String, String)>,
    schedule: Schedule,
    seed: u64,
    /// Seed of made-up data, the same for all keys: the web does not depend on who asks.
    data_seed: u64,
    scale: f64,
    made: u64,
    now: u64,
    /// The moment the account is being brought up to.
    target: u64,
}

impl Account {
    pub(super) fn new(seed: u64, data_seed: u64, scale: f64) -> Self {
        Account {
            seed,
            data_seed,
            scale,
            ..Account::default()
        }
    }

    /// The moment of the step being taken, or of the request.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The moment of the request, also while earlier steps are being caught up on.
    pub(crate) fn target(&self) -> u64 {
        self.target
    }

    pub(crate) fn data_seed(&self) -> u64 {
        self.data_seed
    }

    /// How long work takes that takes `ms` at time scale 1, but at least a millisecond.
    pub(crate) fn span(&self, ms: u64) -> u64 {
        // Spans are minutes at most, so they fit a float exactly; the cast back saturates.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let scaled = (ms as f64 / self.scale) as u64;
        scaled.clamp(1, LONGEST_SPAN)
    }

    /// A fresh id.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        self.made += 1;
        ids::id(
            prefix,
            self.now,
            hash(self.seed, &[prefix, &self.made.to_string()]),
        )
    }

    /// A fresh secret.
    pub(crate) fn secret(&mut self) -> String {
        self.made += 1;
        ids::secret(hash(self.seed, &["secret", &self.made.to_string()]))
    }

    /// Draws that depend on nothing but the given parts.
    pub(crate) fn dice(&self, parts: &[&str]) -> Dice {
        Dice::new(self.data_seed, parts)
    }

    pub(crate) fn after(&mut self, ms: u64, step: Step) {
        self.schedule.add(self.now.saturating_add(ms), step);
    }

    pub(crate) fn at(&mut self, due: u64, step: Step) {
        self.schedule.add(due, step);
    }

    pub(crate) fn unplan(&mut self, step: &Step) {
        self.schedule.drop(step);
    }

    /// Takes all steps that have become due.
    pub(super) fn advance(&mut self, now: u64) {
        self.target = now.max(self.now);
        for _ in 0..MOST_STEPS {
            let Some((due, step)) = self.schedule.pop(self.target) else {
                break;
            };
            self.now = due.max(self.now);
            self.take_step(step);
        }
        self.now = self.target;
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Webset(id) => self.step_webset(&id),
            Step::Import(id) => self.step_import(&id),
            Step::Monitor(id) => self.step_monitor(&id),
            Step::MonitorRun { monitor, run } => self.step_monitor_run(&monitor, &run),
            Step::Research(id) => self.step_research(&id),
            Step::AgentRun(id) => self.step_agent_run(&id),
            Step::AgentMonitor(id) => self.step_agent_monitor(&id),
            Step::Backtest(id) => self.step_backtest(&id),
            Step::SearchMonitor(id) => self.step_search_monitor(&id),
            Step::SearchMonitorRun { monitor, run } => self.step_search_monitor_run(&monitor, &run),
        }
    }

    /// Events of followed work from the given one on, and whether it is over.
    pub(crate) fn follow(&self, what: &Follow, from: usize) -> (Vec<String>, bool) {
        match what {
            Follow::AgentRun(id) => self.follow_agent_run(id, from),
            Follow::Research(id) => self.follow_research(id, from),
        }
    }

    /// Objects that may still be made.
    pub(crate) fn room(&self) -> usize {
        let websets: usize = self.websets.values().map(Webset::size).sum();
        let monitors: usize = self.monitors.values().map(Monitor::size).sum();
        let searches: usize = self.search_monitors.values().map(SearchMonitor::size).sum();
        let watched: usize = self.agent_monitors.values().map(AgentMonitor::size).sum();
        let imports: usize = self.imports.values().map(Import::size).sum();
        let single = self.webhooks.len()
            + self.research.len()
            + self.agent_runs.len()
            + self.backtests.len();
        MOST_OBJECTS.saturating_sub(websets + monitors + searches + watched + imports + single)
    }

    /// Refuses a request that would make more objects than the sandbox keeps.
    pub(crate) fn need_room(&self, count: usize) -> Result<(), Failure> {
        if self.room() >= count {
            return Ok(());
        }
        Err(Failure::invalid(format!(
            "The sandbox keeps {MOST_OBJECTS} objects a key; delete some, or POST /sandbox/reset"
        )))
    }

    /// An upload URL's token leads to this import from now on.
    pub(crate) fn announce_upload(&mut self, token: &str, import: &str) {
        self.new_uploads.push((token.to_owned(), import.to_owned()));
    }

    pub(super) fn take_new_uploads(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.new_uploads)
    }

    pub(super) fn counts(&self) -> Value {
        json!({
            "websets": self.websets.len(),
            "items": self.websets.values().map(Webset::item_count).sum::<usize>(),
            "imports": self.imports.len(),
            "monitors": self.monitors.len(),
            "webhooks": self.webhooks.len(),
            "events": self.events.len(),
            "research": self.research.len(),
            "agentRuns": self.agent_runs.len(),
            "agentMonitors": self.agent_monitors.len(),
            "backtests": self.backtests.len(),
            "searchMonitors": self.search_monitors.len(),
        })
    }
}

//! The objects of one API key. Keys do not see each other's objects.

use std::collections::HashMap;

use exa_mcp_model::MicroDollars;
use serde_json::{Value, json};

use super::LinkTarget;
use super::charges::Charges;
use super::schedule::{Schedule, ScheduledStep};
use super::table::Table;
use crate::agent::{self, AgentMonitor, AgentRun, Backtest, IdempotentRequest};
use crate::api_error::ApiError;
use crate::batches::{self, Batch};
use crate::call::LiveStream;
use crate::ids;
use crate::research::{self, ResearchTask};
use crate::rng::{Rng, hash};
use crate::search_monitors::{self, SearchMonitor};
use crate::time::DAY;
use crate::websets::{self, Import, Webhook, Webset, WebsetEvent, WebsetMonitor};

/// Maximum number of objects per key, not counting events.
const MAX_OBJECTS: usize = 10_000;
/// Maximum number of steps per request, in case steps schedule each other endlessly.
const MAX_STEPS: usize = 200_000;
/// Maximum duration of scaled work, in milliseconds: a hundred years.
const MAX_DURATION: u64 = 100 * 365 * DAY;

/// Everything that belongs to one key.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) websets: Table<Webset>,
    pub(crate) imports: Table<Import>,
    pub(crate) monitors: Table<WebsetMonitor>,
    pub(crate) webhooks: Table<Webhook>,
    pub(crate) events: Table<WebsetEvent>,
    pub(crate) research: Table<ResearchTask>,
    pub(crate) agent_runs: Table<AgentRun>,
    pub(crate) agent_monitors: Table<AgentMonitor>,
    pub(crate) backtests: Table<Backtest>,
    pub(crate) search_monitors: Table<SearchMonitor>,
    pub(crate) batches: Table<Batch>,
    /// What the requests of this key have cost.
    pub(crate) charges: Charges,
    /// Requests that carried an `Idempotency-Key`, by that key.
    pub(crate) idempotent: HashMap<String, IdempotentRequest>,
    new_links: Vec<(String, LinkTarget)>,
    schedule: Schedule,
    seed: u64,
    /// Seed of generated data. All keys share it, because they search the same web.
    data_seed: u64,
    time_scale: f64,
    /// Number of ids and secrets issued so far.
    issued: u64,
    /// The salt of the running request, and the number of ids and secrets issued for it.
    salt: Option<(String, u64)>,
    now: u64,
    request_time: u64,
}

impl Account {
    pub(super) fn new(seed: u64, data_seed: u64, time_scale: f64) -> Self {
        Account {
            seed,
            data_seed,
            time_scale,
            ..Account::default()
        }
    }

    /// The due time of the running step, or the time of the request.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The time of the request, also while earlier steps are running.
    pub(crate) fn request_time(&self) -> u64 {
        self.request_time
    }

    pub(crate) fn data_seed(&self) -> u64 {
        self.data_seed
    }

    /// Converts a duration at time scale 1 to the account's time scale; at least a millisecond.
    pub(crate) fn scaled(&self, ms: u64) -> u64 {
        // Durations are minutes at most, so a float holds them exactly; the cast back saturates.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let scaled = (ms as f64 / self.time_scale) as u64;
        scaled.clamp(1, MAX_DURATION)
    }

    /// Makes the ids of a request depend on its salt instead of the requests before it.
    pub(super) fn set_salt(&mut self, salt: Option<&str>) {
        self.salt = salt.map(|salt| (salt.to_owned(), 0));
    }

    fn next_hash(&mut self, prefix: &str) -> u64 {
        if let Some((salt, issued)) = &mut self.salt {
            *issued += 1;
            return hash(self.seed, &[prefix, salt, &issued.to_string()]);
        }
        self.issued += 1;
        hash(self.seed, &[prefix, &self.issued.to_string()])
    }

    /// Issues an id such as `webset_…`.
    pub(crate) fn new_id(&mut self, prefix: &str) -> String {
        let hash = self.next_hash(prefix);
        ids::id(prefix, self.now, hash)
    }

    /// Returns the id of something that the account has only one of.
    pub(crate) fn stable_id(&self, prefix: &str) -> String {
        ids::id(prefix, 0, hash(self.seed, &[prefix]))
    }

    /// Issues a webhook secret.
    pub(crate) fn new_secret(&mut self) -> String {
        ids::secret(self.next_hash("secret"))
    }

    /// Returns a random generator that depends on the data seed and the given parts only.
    pub(crate) fn rng(&self, parts: &[&str]) -> Rng {
        Rng::new(self.data_seed, parts)
    }

    /// Schedules a step after work that takes `ms` at time scale 1.
    pub(crate) fn schedule_after(&mut self, ms: u64, step: ScheduledStep) {
        self.schedule_at(self.now.saturating_add(self.scaled(ms)), step);
    }

    pub(crate) fn schedule_at(&mut self, due: u64, step: ScheduledStep) {
        self.schedule.add(due, step);
    }

    pub(crate) fn cancel_step(&mut self, step: &ScheduledStep) {
        self.schedule.remove(step);
    }

    /// Runs all steps that are due by `now`.
    pub(super) fn advance(&mut self, now: u64) {
        self.request_time = now.max(self.now);
        for _ in 0..MAX_STEPS {
            let Some((due, step)) = self.schedule.pop(self.request_time) else {
                break;
            };
            self.now = due.max(self.now);
            self.run_step(step);
        }
        self.now = self.request_time;
    }

    fn run_step(&mut self, step: ScheduledStep) {
        match step {
            ScheduledStep::Webset(id) => websets::tick::run(self, &id),
            ScheduledStep::Import(id) => websets::imports::finish_processing(self, &id),
            ScheduledStep::Monitor(id) => websets::monitors::start_run(self, &id),
            ScheduledStep::MonitorRun { monitor, run } => {
                websets::monitors::advance_run(self, &monitor, &run);
            }
            ScheduledStep::Research(id) => research::advance(self, &id),
            ScheduledStep::AgentRun(id) => agent::runs::advance(self, &id),
            ScheduledStep::AgentMonitor(id) => agent::monitors::advance(self, &id),
            ScheduledStep::Backtest(id) => agent::backtests::complete(self, &id),
            ScheduledStep::SearchMonitor(id) => search_monitors::run_on_schedule(self, &id),
            ScheduledStep::SearchMonitorRun { monitor, run } => {
                search_monitors::runs::advance(self, &monitor, &run);
            }
            ScheduledStep::Batch(id) => batches::advance(self, &id),
        }
    }

    /// Returns the events of a live stream after the first `skip`, and whether the work has ended.
    pub(crate) fn live_events(&self, stream: &LiveStream, skip: usize) -> (Vec<String>, bool) {
        match stream {
            LiveStream::AgentRun(id) => agent::run_events::live(self, id, skip),
            LiveStream::Research(id) => research::live_events(self, id, skip),
        }
    }

    /// The number of objects that can still be created.
    pub(crate) fn remaining_capacity(&self) -> usize {
        let used = self.websets.size()
            + self.imports.size()
            + self.monitors.size()
            + self.webhooks.size()
            + self.research.size()
            + self.agent_runs.size()
            + self.agent_monitors.size()
            + self.backtests.size()
            + self.search_monitors.size()
            + self.batches.size();
        MAX_OBJECTS.saturating_sub(used)
    }

    /// Charges the key for a request or for work that it started.
    pub(crate) fn charge(&mut self, name: &'static str, cost: MicroDollars) {
        self.charges.add(self.now, name, cost);
    }

    /// Rejects a request that would create more objects than an account may have.
    pub(crate) fn ensure_capacity(&self, count: usize) -> Result<(), ApiError> {
        if self.remaining_capacity() >= count {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "The sandbox keeps {MAX_OBJECTS} objects a key; delete some, or POST /sandbox/reset"
        )))
    }

    /// Connects the token of a link, which is followed without a key, with its target.
    pub(crate) fn register_link(&mut self, token: String, target: LinkTarget) {
        self.new_links.push((token, target));
    }

    pub(super) fn take_new_links(&mut self) -> Vec<(String, LinkTarget)> {
        std::mem::take(&mut self.new_links)
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
            "batches": self.batches.len(),
        })
    }
}

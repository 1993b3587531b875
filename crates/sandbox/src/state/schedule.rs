//! Future work. Nothing runs in the background: when a request reaches an account, all steps that
//! have become due run first, each with the time at which it was due.

use std::collections::BTreeMap;

/// The next state change of one object. A step whose object no longer exists does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledStep {
    Webset(String),
    Import(String),
    Monitor(String),
    MonitorRun { monitor: String, run: String },
    Research(String),
    AgentRun(String),
    AgentMonitor(String),
    Backtest(String),
    SearchMonitor(String),
    SearchMonitorRun { monitor: String, run: String },
    Batch(String),
}

/// Steps by due time; steps due at the same time run in insertion order.
#[derive(Default)]
pub(super) struct Schedule {
    steps: BTreeMap<(u64, u64), ScheduledStep>,
    next_sequence: u64,
}

impl Schedule {
    pub(super) fn add(&mut self, due: u64, step: ScheduledStep) {
        self.steps.insert((due, self.next_sequence), step);
        self.next_sequence += 1;
    }

    /// Removes and returns the first step that is due by `now`, with its due time.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, ScheduledStep)> {
        let first = self.steps.first_entry()?;
        let (due, _) = *first.key();
        (due <= now).then(|| (due, first.remove()))
    }

    /// Removes a step, whenever it is due.
    pub(super) fn remove(&mut self, step: &ScheduledStep) {
        self.steps.retain(|_, scheduled| scheduled != step);
    }
}

//! What will happen next. Work is not done in the background: when an account is looked at, the
//! steps that have become due are taken, each at its own time, as if somebody had watched.

use std::collections::BTreeMap;

/// The next move of one object. Steps of objects that have gone do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
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
}

/// Coming steps by due time; steps due at the same time keep their order.
#[derive(Default)]
pub(super) struct Schedule {
    steps: BTreeMap<(u64, u64), Step>,
    next: u64,
}

impl Schedule {
    pub(super) fn add(&mut self, due: u64, step: Step) {
        self.steps.insert((due, self.next), step);
        self.next += 1;
    }

    /// The first step that is due by `now`, with its time.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, Step)> {
        let first = self.steps.first_entry()?;
        let (due, _) = *first.key();
        (due <= now).then(|| (due, first.remove()))
    }

    /// Takes a step back, at whatever time it is due.
    pub(super) fn drop(&mut self, step: &Step) {
        self.steps.retain(|_, planned| planned != step);
    }
}

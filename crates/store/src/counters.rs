//! Counters that only grow: totals and timestamps of the latest event.

use std::collections::BTreeMap;
use std::ops::Range;

/// A counter and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The entity that is counted for, such as a token or a day.
    pub subject: String,
    /// The name of the counter.
    pub name: String,
    /// The value.
    pub value: u64,
}

/// How a counter changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOp {
    /// Adds this amount.
    Add(u64),
    /// Raises the counter to this value, unless it is already larger.
    RaiseTo(u64),
}

/// A change of one counter. Counters start at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterUpdate {
    /// The subject of the counter.
    pub subject: String,
    /// The name of the counter.
    pub name: String,
    /// The change.
    pub op: CounterOp,
}

/// Updates that one writer sends together. A writer numbers its batches, so that the store recognizes one that is
/// sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterBatch {
    /// The unique name of the writer.
    pub writer: String,
    /// The number of the batch, starting at 1.
    pub sequence: u64,
    /// The changes.
    pub updates: Vec<CounterUpdate>,
}

/// Counters in memory.
#[derive(Default)]
pub(super) struct MemoryCounters(BTreeMap<String, BTreeMap<String, u64>>);

impl MemoryCounters {
    pub(super) fn apply(&mut self, update: CounterUpdate) {
        let CounterUpdate { subject, name, op } = update;
        let value = self.0.entry(subject).or_default().entry(name).or_default();
        *value = match op {
            CounterOp::Add(amount) => value.saturating_add(amount),
            CounterOp::RaiseTo(minimum) => (*value).max(minimum),
        };
    }

    pub(super) fn get(&self, subject: &str, name: &str) -> u64 {
        let counters = self.0.get(subject);
        let value = counters.and_then(|counters| counters.get(name));
        value.copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, subject: &str, name: &str, amount: u64) {
        self.apply(CounterUpdate {
            subject: subject.to_owned(),
            name: name.to_owned(),
            op: CounterOp::Add(amount),
        });
    }

    pub(super) fn subtract(&mut self, subject: &str, name: &str, amount: u64) {
        let counters = self.0.get_mut(subject);
        if let Some(value) = counters.and_then(|counters| counters.get_mut(name)) {
            *value = value.saturating_sub(amount);
        }
    }

    pub(super) fn delete(&mut self, subjects: &Range<String>) {
        if subjects.start >= subjects.end {
            return;
        }
        let mut later = self.0.split_off(&subjects.start);
        self.0.append(&mut later.split_off(&subjects.end));
    }

    pub(super) fn list(&self, subject: Option<&str>) -> Vec<Counter> {
        // A single subject is looked up directly instead of scanning all of them.
        let one = subject.map(|subject| self.0.get_key_value(subject));
        let all = subject.is_none().then(|| self.0.iter());
        let subjects = one.flatten().into_iter().chain(all.into_iter().flatten());
        let counters = subjects.flat_map(|(subject, counters)| {
            counters.iter().map(|(name, value)| Counter {
                subject: subject.clone(),
                name: name.clone(),
                value: *value,
            })
        });
        counters.collect()
    }
}

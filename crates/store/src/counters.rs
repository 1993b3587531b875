//! Numbers that only grow: how often, how much, when last.

use std::collections::BTreeMap;
use std::ops::Range;

/// A number of someone, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Whose it is.
    pub subject: String,
    /// What it counts.
    pub name: String,
    /// How much.
    pub value: u64,
}

/// How a number changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By this much.
    Add(u64),
    /// To this, unless it is further already.
    Reach(u64),
}

/// A change of a number. A number that was never changed is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// Whose number.
    pub subject: String,
    /// Which.
    pub name: String,
    /// How.
    pub step: Step,
}

/// Changes that one writer tells together. Each writer tells one batch after the other and counts them, so
/// that a batch whose answer got lost is known when it is told again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Who writes; nobody else has this name.
    pub writer: String,
    /// Which of its batches, from one on.
    pub number: u64,
    /// What changes.
    pub changes: Vec<CountChange>,
}

/// Numbers in memory.
#[derive(Default)]
pub(super) struct Numbers(BTreeMap<String, BTreeMap<String, u64>>);

impl Numbers {
    pub(super) fn change(&mut self, change: CountChange) {
        let CountChange {
            subject,
            name,
            step,
        } = change;
        let number = self.0.entry(subject).or_default().entry(name).or_default();
        *number = match step {
            Step::Add(by) => number.saturating_add(by),
            Step::Reach(to) => (*number).max(to),
        };
    }

    pub(super) fn get(&self, subject: &str, name: &str) -> u64 {
        let numbers = self.0.get(subject);
        let number = numbers.and_then(|numbers| numbers.get(name));
        number.copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, subject: &str, name: &str, by: u64) {
        self.change(CountChange {
            subject: subject.to_owned(),
            name: name.to_owned(),
            step: Step::Add(by),
        });
    }

    pub(super) fn subtract(&mut self, subject: &str, name: &str, by: u64) {
        let numbers = self.0.get_mut(subject);
        if let Some(number) = numbers.and_then(|numbers| numbers.get_mut(name)) {
            *number = number.saturating_sub(by);
        }
    }

    pub(super) fn forget(&mut self, subjects: &Range<String>) {
        if subjects.start >= subjects.end {
            return;
        }
        let mut later = self.0.split_off(&subjects.start);
        self.0.append(&mut later.split_off(&subjects.end));
    }

    pub(super) fn list(&self, subject: Option<&str>) -> Vec<Count> {
        // One subject is found at once, however many there are.
        let one = subject.map(|subject| self.0.get_key_value(subject));
        let all = subject.is_none().then(|| self.0.iter());
        let subjects = one.flatten().into_iter().chain(all.into_iter().flatten());
        let counts = subjects.flat_map(|(subject, numbers)| {
            numbers.iter().map(|(name, value)| Count {
                subject: subject.clone(),
                name: name.clone(),
                value: *value,
            })
        });
        counts.collect()
    }
}

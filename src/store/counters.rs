//! Numbers that only grow: how often, how much, when last.

use std::collections::BTreeMap;

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

    pub(super) fn list(&self, subject: Option<&str>) -> Vec<Count> {
        let wanted = |known: &&String| subject.is_none_or(|subject| subject == *known);
        let subjects = self.0.iter().filter(|(known, _)| wanted(known));
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

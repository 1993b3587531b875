//! What a reservation says about itself in the store.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::daily::{self, Day, MICRODOLLARS, UNPRICED_CALLS};
use exa_mcp_store::{BudgetCounters, CountChange, Step};

/// The version of the format.
const VERSION: u32 = 1;

/// What is needed to settle a reservation, by whichever process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(rename = "v")]
    pub(super) version: u32,
    /// Whose counters change.
    #[serde(rename = "payer")]
    pub(super) payer: String,
    /// The person that is counted by day.
    #[serde(rename = "user")]
    pub(super) user: String,
    /// The day in which the money was set aside, and to which it is counted.
    #[serde(rename = "day")]
    pub(super) day: String,
    #[serde(rename = "operation")]
    pub(super) operation: String,
    /// The cost is not known, or not all of it.
    #[serde(rename = "unpriced", default)]
    pub(super) unpriced: bool,
    /// The run that is charged when it ends.
    #[serde(rename = "run", default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunRecord>,
    /// The slot that the run occupies.
    #[serde(rename = "slot", default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<RunSlot>,
}

/// Where a run counts among the calls under way; its id there is that of its reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunSlot {
    #[serde(rename = "key")]
    pub(super) key: String,
    /// The call that started it, with which it counts as one.
    #[serde(rename = "group")]
    pub(super) group: String,
}

/// A run at Exa.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Names the run among all runs.
    #[serde(rename = "key")]
    pub key: String,
    /// The operation that reads it.
    #[serde(rename = "get")]
    pub get: String,
    /// The arguments of that operation.
    #[serde(rename = "arguments")]
    pub arguments: Map<String, Value>,
}

impl Entry {
    pub(super) fn new(payer: &str, user: &str, day: Day, operation: &str, unpriced: bool) -> Self {
        Self {
            version: VERSION,
            payer: payer.to_owned(),
            user: user.to_owned(),
            day: day.to_string(),
            operation: operation.to_owned(),
            unpriced,
            run: None,
            slot: None,
        }
    }

    /// Reads an entry; `None` for one that a newer version has written.
    pub(super) fn read(body: &str) -> Option<Self> {
        let entry: Self = serde_json::from_str(body).ok()?;
        (entry.version == VERSION).then_some(entry)
    }

    pub(super) fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// How the counters change when so much was spent.
    pub(super) fn changes(&self, microdollars: u64) -> Vec<CountChange> {
        let day = Day::parse(&self.day).unwrap_or_else(|| Day::of(crate::now()));
        let mut changes = Vec::new();
        let mut add = |name: &str, amount: u64| {
            let change = CountChange {
                subject: self.payer.clone(),
                name: name.to_owned(),
                step: Step::Add(amount),
            };
            changes.extend(daily::also(day, &self.payer, &self.user, &change));
            changes.push(change);
        };
        if microdollars > 0 {
            add(MICRODOLLARS, microdollars);
        }
        if self.unpriced {
            add(UNPRICED_CALLS, 1);
        }
        changes
    }
}

/// The budgets of a payer: the counters of the day and of the month, with the most that may be spent.
pub(super) fn budgets(
    payer: &str,
    day: Day,
    per_day: Option<u64>,
    per_month: Option<u64>,
) -> Vec<BudgetCounters> {
    let [today, month] = day.spending_counters();
    [(today, per_day), (month, per_month)]
        .into_iter()
        .map(|((spent, reserved), most)| BudgetCounters {
            subject: day.spending(payer),
            spent,
            reserved,
            most,
        })
        .collect()
}

//! The stored body of a reservation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::daily::{self, Day, MICRODOLLARS, UNPRICED_CALLS};
use exa_mcp_store::{BudgetCounters, CounterOp, CounterUpdate};

/// The version of the format.
const VERSION: u32 = 1;

/// What any process needs to settle a reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ReservationBody {
    #[serde(rename = "v")]
    pub(super) version: u32,
    /// The token whose counters change.
    pub(super) payer: String,
    /// The user whose daily counters change.
    pub(super) user: String,
    /// The day of the reservation, on which the cost is counted.
    pub(super) day: String,
    pub(super) operation: String,
    /// Whether the cost is not or only partly known.
    #[serde(default)]
    pub(super) unpriced: bool,
    /// The job whose end determines the cost.
    #[serde(rename = "run", default, skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<JobRecord>,
    /// The slot of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slot: Option<JobSlot>,
}

/// The slot of a job among the calls in progress. The id of the slot is that of the reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobSlot {
    pub(super) key: String,
    /// The call that started the job; both count as one.
    pub(super) group: String,
}

/// A job at Exa.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// The unique key of the job.
    pub key: String,
    /// The operation that reads the job.
    #[serde(rename = "get")]
    pub get_operation: String,
    /// The arguments of that operation.
    pub arguments: Map<String, Value>,
}

impl ReservationBody {
    pub(super) fn new(payer: &str, user: &str, day: Day, operation: &str, unpriced: bool) -> Self {
        Self {
            version: VERSION,
            payer: payer.to_owned(),
            user: user.to_owned(),
            day: day.to_string(),
            operation: operation.to_owned(),
            unpriced,
            job: None,
            slot: None,
        }
    }

    /// Decodes a body; `None` if a newer version of the program wrote it.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let body: Self = serde_json::from_str(text).ok()?;
        (body.version == VERSION).then_some(body)
    }

    pub(super) fn encode(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the counter updates for this cost.
    pub(super) fn updates(&self, microdollars: u64) -> Vec<CounterUpdate> {
        let day = Day::parse(&self.day).unwrap_or_else(|| Day::from_timestamp(crate::now()));
        let mut updates = Vec::new();
        let mut add = |name: &str, amount: u64| {
            let update = CounterUpdate {
                subject: self.payer.clone(),
                name: name.to_owned(),
                op: CounterOp::Add(amount),
            };
            updates.extend(daily::derived_updates(
                day,
                &self.payer,
                &self.user,
                &update,
            ));
            updates.push(update);
        };
        if microdollars > 0 {
            add(MICRODOLLARS, microdollars);
        }
        if self.unpriced {
            add(UNPRICED_CALLS, 1);
        }
        updates
    }
}

/// Returns the budgets of a payer for the day and for the month.
pub(super) fn budget_counters(
    payer: &str,
    day: Day,
    per_day: Option<u64>,
    per_month: Option<u64>,
) -> Vec<BudgetCounters> {
    let [today, month] = day.spending_counters();
    [(today, per_day), (month, per_month)]
        .into_iter()
        .map(|((spent, reserved), limit)| BudgetCounters {
            subject: day.spending_subject(payer),
            spent,
            reserved,
            limit,
        })
        .collect()
}

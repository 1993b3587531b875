//! The cost of scheduled runs per day and per month.

use serde_json::{Map, Value};

use super::{MicroDollars, RunSchedule, at};
use crate::operations::validation;

const MINUTES_OF_DAY: u64 = 24 * 60;
/// The longest month.
const DAYS_OF_MONTH: u64 = 31;

/// The cost of runs that repeat until someone stops them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurring {
    /// The highest cost of one run.
    pub per_run: MicroDollars,
    /// The schedule as given: a duration such as `6h`, or a cron expression.
    pub period: String,
    /// The most runs in a day.
    pub runs_per_day: u64,
    /// The most runs in a month.
    pub runs_per_month: u64,
    /// The highest cost of a day.
    pub per_day: MicroDollars,
    /// The highest cost of a month.
    pub per_month: MicroDollars,
    /// Some or all of the cost of a run is unknown.
    pub unpriced: bool,
}

/// Returns the recurring cost of the schedule in the arguments; `None` without a schedule.
///
/// A schedule that cannot be parsed counts as the tightest possible one: every minute.
pub(super) fn recurring(
    schedule: &RunSchedule,
    arguments: &Map<String, Value>,
    per_run: MicroDollars,
    unpriced: bool,
) -> Option<Recurring> {
    let value = at(arguments, schedule.argument())?;
    let period = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let runs = match schedule {
        RunSchedule::Every(_) => validation::minutes(&period).map(every),
        RunSchedule::Cron(_) => validation::cron_runs(&period),
    };
    let (runs_per_day, runs_per_month) =
        runs.unwrap_or((MINUTES_OF_DAY, MINUTES_OF_DAY * DAYS_OF_MONTH));
    Some(Recurring {
        per_run,
        period,
        runs_per_day,
        runs_per_month,
        per_day: per_run.saturating_mul(runs_per_day),
        per_month: per_run.saturating_mul(runs_per_month),
        unpriced,
    })
}

/// Returns the most runs in a day and in a month.
fn every(minutes: u64) -> (u64, u64) {
    let minutes = minutes.max(1);
    let runs = |span: u64| span.div_ceil(minutes);
    (runs(MINUTES_OF_DAY), runs(MINUTES_OF_DAY * DAYS_OF_MONTH))
}

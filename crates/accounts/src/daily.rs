//! Counters of usage per day, and of spending per token and month.
//!
//! Each day is its own subject, so that reading some days reads only their counters. Each month of a token is one
//! too, so that reading its spending reads a few dozen counters at most.

use std::collections::BTreeMap;
use std::ops::Range;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate};

use super::usage::REQUESTS;
use exa_mcp_store::{Counter, CounterOp, CounterUpdate};

/// The counter of failed calls.
pub const ERRORS: &str = "errors";
/// The counter of tokens in results.
pub const TOKENS: &str = "tokens";
/// The counter of results served from the cache.
pub const CACHE_HITS: &str = "cacheHits";
/// The counter of costs, in millionths of a dollar.
pub const MICRODOLLARS: &str = "microdollars";
/// The counter of calls whose cost is not or only partly known.
pub const UNPRICED_CALLS: &str = "unpricedCalls";

/// The counters per day.
const BY_DAY: [&str; 6] = [
    REQUESTS,
    ERRORS,
    TOKENS,
    CACHE_HITS,
    MICRODOLLARS,
    UNPRICED_CALLS,
];

/// The counters per day and user.
const BY_USER: [&str; 2] = [REQUESTS, MICRODOLLARS];

/// How many days of usage are retained by default.
pub const DEFAULT_RETENTION_DAYS: u64 = 400;
/// The maximum number of days of usage that can be retained.
pub const MAX_RETENTION_DAYS: u64 = 4_000;

/// The user of a token without a user.
pub const ANONYMOUS: &str = "anonymous";

/// The prefix of the names of reserved amounts.
const RESERVED_PREFIX: &str = "reserved:";

/// The name of the total of a month.
const MONTH_TOTAL: &str = "month";

/// The prefix of the subjects of days; token ids contain no colon.
const DAY_PREFIX: &str = "day:";
/// The prefix of the subjects of spending.
const SPENDING_PREFIX: &str = "spent:";

/// A day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Day(NaiveDate);

impl Day {
    /// Returns the day of a time in milliseconds since 1970.
    pub fn from_timestamp(time: i64) -> Self {
        let time = DateTime::from_timestamp_millis(time).unwrap_or_default();
        Self(time.date_naive())
    }

    /// Parses a day in the form `YYYY-MM-DD`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Returns the names of the counters of spent and reserved amounts, for the day and for its month.
    pub fn spending_counters(self) -> [(String, String); 2] {
        let names = [self.day_of_month(), MONTH_TOTAL.to_owned()];
        names.map(|spent| {
            let reserved = format!("{RESERVED_PREFIX}{spent}");
            (spent, reserved)
        })
    }

    /// Returns the day this many days earlier.
    pub fn before(self, days: u64) -> Self {
        Self(self.0.checked_sub_days(Days::new(days)).unwrap_or(self.0))
    }

    /// Returns when the next day starts, in milliseconds since 1970.
    pub fn end(self) -> i64 {
        start_of_day(self.0.checked_add_days(Days::new(1)))
    }

    /// Returns when the next month starts, in milliseconds since 1970.
    pub(crate) fn month_end(self) -> i64 {
        let first = self.0.with_day(1);
        start_of_day(first.and_then(|first| first.checked_add_months(Months::new(1))))
    }

    /// Returns the subject of the counters of the day.
    pub fn subject(self) -> String {
        format!("{DAY_PREFIX}{}", self.0)
    }

    /// Returns the subject of the spending of a token in the month.
    pub fn spending_subject(self, token: &str) -> String {
        format!("{SPENDING_PREFIX}{}:{token}", self.0.format("%Y-%m"))
    }

    /// Returns the ranges of subjects to delete on this day: days beyond the retention, and spending before the last
    /// month. Totals of tokens are not among them.
    pub(super) fn expired_subjects(self, retention_days: u64) -> [Range<String>; 2] {
        let first_day = self.before(retention_days.saturating_sub(1));
        // The last month is no longer read, but a server with a slow clock may still count in it.
        let last_month = self.0.checked_sub_months(Months::new(1)).unwrap_or(self.0);
        [
            DAY_PREFIX.to_owned()..first_day.subject(),
            SPENDING_PREFIX.to_owned()..Self(last_month).spending_subject(""),
        ]
    }

    fn day_of_month(self) -> String {
        format!("{:02}", self.0.day())
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

fn start_of_day(day: Option<NaiveDate>) -> i64 {
    let midnight = day.and_then(|day| day.and_hms_opt(0, 0, 0));
    midnight.map_or(i64::MAX, |midnight| midnight.and_utc().timestamp_millis())
}

/// Returns the updates per day, user and month that follow from an update of a token's counter.
pub(super) fn derived_updates(
    day: Day,
    token: &str,
    user: &str,
    update: &CounterUpdate,
) -> Vec<CounterUpdate> {
    let CounterOp::Add(amount) = update.op else {
        return Vec::new();
    };
    let name = update.name.as_str();
    let op = CounterOp::Add(amount);
    let mut updates = Vec::new();
    let mut add = |subject: String, name: String| updates.push(CounterUpdate { subject, name, op });
    if BY_DAY.contains(&name) {
        add(day.subject(), name.to_owned());
    }
    if BY_USER.contains(&name) {
        add(day.subject(), format!("user:{user}:{name}"));
    }
    if name == MICRODOLLARS {
        add(day.spending_subject(token), day.day_of_month());
        add(day.spending_subject(token), MONTH_TOTAL.to_owned());
    }
    updates
}

/// The usage of one day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DailyUsage {
    /// The totals by counter name.
    pub totals: BTreeMap<String, u64>,
    /// The counters by user, then by name.
    pub by_user: BTreeMap<String, BTreeMap<String, u64>>,
}

impl DailyUsage {
    /// Collects the counters of a day.
    pub fn from_counters(counters: Vec<Counter>) -> Self {
        let mut usage = Self::default();
        for counter in counters {
            // A user id may contain colons; a counter name does not.
            let of_user = counter.name.strip_prefix("user:");
            match of_user.and_then(|rest| rest.rsplit_once(':')) {
                Some((user, name)) => {
                    let values = usage.by_user.entry(user.to_owned()).or_default();
                    values.insert(name.to_owned(), counter.value);
                }
                None => drop(usage.totals.insert(counter.name, counter.value)),
            }
        }
        usage
    }
}

/// The spending of a token, in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The amount spent on the day.
    pub today: u64,
    /// The amount spent in the month.
    pub this_month: u64,
    /// The amount reserved for calls and jobs in progress that started on the day.
    pub reserved_today: u64,
    /// The amount reserved for calls and jobs in progress that started in the month.
    pub reserved_this_month: u64,
}

impl Spending {
    /// Collects the counters of a token's month.
    pub fn from_counters<'a>(day: Day, counters: impl IntoIterator<Item = &'a Counter>) -> Self {
        let mut spending = Self::default();
        let [(today, reserved_today), (month, reserved_month)] = day.spending_counters();
        for counter in counters {
            let amount = match &counter.name {
                name if *name == today => &mut spending.today,
                name if *name == month => &mut spending.this_month,
                name if *name == reserved_today => &mut spending.reserved_today,
                name if *name == reserved_month => &mut spending.reserved_this_month,
                _ => continue,
            };
            *amount = counter.value;
        }
        spending
    }
}

/// Converts millionths of a dollar to dollars.
pub fn dollars(microdollars: u64) -> f64 {
    microdollars as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-12-31, 23:59:59.999.
    const LATE: i64 = 1_798_761_599_999;

    #[test]
    fn days_and_months_end_at_midnight() {
        let day = Day::from_timestamp(LATE);
        assert_eq!(day.to_string(), "2026-12-31");
        assert_eq!(day.end(), LATE + 1);
        assert_eq!(day.month_end(), LATE + 1);
        assert_eq!(Day::from_timestamp(LATE + 1).to_string(), "2027-01-01");
        assert_eq!(day.before(31).to_string(), "2026-11-30");
        let february = Day::from_timestamp(1_769_990_400_000);
        assert_eq!(
            Day::from_timestamp(february.month_end()).to_string(),
            "2026-03-01"
        );
    }

    #[test]
    fn expired_subjects_exclude_this_month_and_totals() {
        let day = Day::from_timestamp(LATE);
        let [days, spending] = day.expired_subjects(30);
        assert!(days.contains(&day.before(30).subject()));
        assert!(!days.contains(&day.before(29).subject()));
        assert!(
            spending.contains(&Day::from_timestamp(LATE).before(61).spending_subject("t")),
            "October"
        );
        assert!(
            !spending.contains(&day.before(31).spending_subject("t")),
            "November"
        );
        assert!(!spending.contains(&day.spending_subject("t")));
        for total in ["t", "day", "0123456789abcdef", "spent", "zzz"] {
            assert!(!days.contains(&total.to_owned()) && !spending.contains(&total.to_owned()));
        }
        // Today is retained even with a retention of zero days.
        assert!(!day.expired_subjects(0)[0].contains(&day.subject()));
    }

    #[test]
    fn counters_can_be_read_back() {
        let day = Day::from_timestamp(LATE);
        let update = |name: &str, amount| CounterUpdate {
            subject: "t".to_owned(),
            name: name.to_owned(),
            op: CounterOp::Add(amount),
        };
        let mut updates = derived_updates(day, "t", "a:b", &update(REQUESTS, 2));
        updates.extend(derived_updates(
            day,
            "t",
            "a:b",
            &update(MICRODOLLARS, 5_000),
        ));
        assert!(derived_updates(day, "t", "a:b", &update("tool:x", 1)).is_empty());
        let of = |subject: String| {
            let own = updates.iter().filter(|update| update.subject == subject);
            own.map(|update| Counter {
                subject: update.subject.clone(),
                name: update.name.clone(),
                value: match update.op {
                    CounterOp::Add(value) | CounterOp::RaiseTo(value) => value,
                },
            })
            .collect::<Vec<_>>()
        };
        let usage = DailyUsage::from_counters(of(day.subject()));
        assert_eq!(usage.totals.get(REQUESTS), Some(&2));
        let user = usage.by_user.get("a:b");
        assert_eq!(user.and_then(|user| user.get(MICRODOLLARS)), Some(&5_000));
        let spending = Spending::from_counters(day, &of(day.spending_subject("t")));
        assert_eq!((spending.today, spending.this_month), (5_000, 5_000));
    }
}

//! What was used by day, and what was spent by each token in a month.
//!
//! Every day is a subject of its own, so that a look at some days reads those alone, and every month of
//! a token too, so that a look at what it may still spend reads a few dozen numbers at most.

use std::collections::BTreeMap;
use std::ops::Range;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate};

use super::usage::REQUESTS;
use exa_mcp_store::{Count, CountChange, Step};

/// What is counted of an answer.
pub const ERRORS: &str = "errors";
/// Tokens of answers.
pub const TOKENS: &str = "tokens";
/// Answers out of memory.
pub const CACHE_HITS: &str = "cacheHits";
/// Millionths of a dollar.
pub const MICRODOLLARS: &str = "microdollars";
/// Calls whose cost is not known, or not all of it.
pub const UNPRICED_CALLS: &str = "unpricedCalls";

/// What is counted by day.
const BY_DAY: [&str; 6] = [
    REQUESTS,
    ERRORS,
    TOKENS,
    CACHE_HITS,
    MICRODOLLARS,
    UNPRICED_CALLS,
];

/// What is counted by day and person.
const BY_USER: [&str; 2] = [REQUESTS, MICRODOLLARS];

/// Days that are kept unless something else is asked for, and at most.
pub const USUAL_DAYS_KEPT: u64 = 400;
/// The most days that are kept.
pub const MOST_DAYS_KEPT: u64 = 4_000;

/// Whoever holds a token that names nobody.
pub const ANONYMOUS: &str = "anonymous";

/// What the names of reserved sums begin with.
const RESERVED: &str = "reserved:";

/// The name under which a month's sum is kept.
const WHOLE: &str = "month";

/// What the subjects of days begin with; no token's id has a colon.
const DAY: &str = "day:";
/// What the subjects of spending begin with.
const SPENT: &str = "spent:";

/// A day by UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Day(NaiveDate);

impl Day {
    /// The day of a moment in milliseconds since 1970.
    pub fn of(moment: i64) -> Self {
        let moment = DateTime::from_timestamp_millis(moment).unwrap_or_default();
        Self(moment.date_naive())
    }

    /// Reads a day as it is written.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// The counters of what a token spent and reserved, on the day and in its month: the names of each pair.
    pub(super) fn spending_counters(self) -> [(String, String); 2] {
        let names = [self.in_month(), WHOLE.to_owned()];
        names.map(|spent| {
            let reserved = format!("{RESERVED}{spent}");
            (spent, reserved)
        })
    }

    /// The day so many days before.
    pub fn before(self, days: u64) -> Self {
        Self(self.0.checked_sub_days(Days::new(days)).unwrap_or(self.0))
    }

    /// When the next day begins, in milliseconds since 1970.
    pub fn end(self) -> i64 {
        begin(self.0.checked_add_days(Days::new(1)))
    }

    /// When the next month begins, in milliseconds since 1970.
    pub(crate) fn month_end(self) -> i64 {
        let first = self.0.with_day(1);
        begin(first.and_then(|first| first.checked_add_months(Months::new(1))))
    }

    /// Whose numbers those of the day are.
    pub fn subject(self) -> String {
        format!("{DAY}{}", self.0)
    }

    /// Whose numbers those are that a token spent in the month.
    pub fn spending(self, token: &str) -> String {
        format!("{SPENT}{}:{token}", self.0.format("%Y-%m"))
    }

    /// Which subjects are too old on this day, if so many days are kept: days before those, and what was
    /// spent before the last month. What a token used in all is not among them.
    pub(super) fn past(self, days_kept: u64) -> [Range<String>; 2] {
        let first_day = self.before(days_kept.saturating_sub(1));
        // Nobody asks for a month that is over; a server whose clock is late may still count in it.
        let last_month = self.0.checked_sub_months(Months::new(1)).unwrap_or(self.0);
        [
            DAY.to_owned()..first_day.subject(),
            SPENT.to_owned()..Self(last_month).spending(""),
        ]
    }

    fn in_month(self) -> String {
        format!("{:02}", self.0.day())
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

fn begin(day: Option<NaiveDate>) -> i64 {
    let midnight = day.and_then(|day| day.and_hms_opt(0, 0, 0));
    midnight.map_or(i64::MAX, |midnight| midnight.and_utc().timestamp_millis())
}

/// What a change of a token's number changes beside it.
pub(super) fn also(day: Day, token: &str, user: &str, change: &CountChange) -> Vec<CountChange> {
    let Step::Add(amount) = change.step else {
        return Vec::new();
    };
    let name = change.name.as_str();
    let step = Step::Add(amount);
    let mut also = Vec::new();
    let mut add = |subject: String, name: String| {
        also.push(CountChange {
            subject,
            name,
            step,
        })
    };
    if BY_DAY.contains(&name) {
        add(day.subject(), name.to_owned());
    }
    if BY_USER.contains(&name) {
        add(day.subject(), format!("user:{user}:{name}"));
    }
    if name == MICRODOLLARS {
        add(day.spending(token), day.in_month());
        add(day.spending(token), WHOLE.to_owned());
    }
    also
}

/// What was used on a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// The numbers of all together.
    pub numbers: BTreeMap<String, u64>,
    /// Those of each person.
    pub by_user: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Used {
    /// Reads the numbers of a day.
    pub fn read(counts: Vec<Count>) -> Self {
        let mut used = Self::default();
        for count in counts {
            // A name may have colons of its own; what is counted has none.
            let of_user = count.name.strip_prefix("user:");
            match of_user.and_then(|rest| rest.rsplit_once(':')) {
                Some((user, name)) => {
                    let numbers = used.by_user.entry(user.to_owned()).or_default();
                    numbers.insert(name.to_owned(), count.value);
                }
                None => drop(used.numbers.insert(count.name, count.value)),
            }
        }
        used
    }
}

/// What a token spent, in millionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// On the day.
    pub today: u64,
    /// In its month.
    pub this_month: u64,
    /// What is reserved beside that for calls and runs that were begun on the day and have not ended.
    pub reserved_today: u64,
    /// The same for those that were begun in the month.
    pub reserved_this_month: u64,
}

impl Spent {
    /// Reads the numbers of a token's month.
    pub fn read<'a>(day: Day, counts: impl IntoIterator<Item = &'a Count>) -> Self {
        let mut spent = Self::default();
        let [(today, reserved_today), (month, reserved_month)] = day.spending_counters();
        for count in counts {
            let number = match &count.name {
                name if *name == today => &mut spent.today,
                name if *name == month => &mut spent.this_month,
                name if *name == reserved_today => &mut spent.reserved_today,
                name if *name == reserved_month => &mut spent.reserved_this_month,
                _ => continue,
            };
            *number = count.value;
        }
        spent
    }
}

/// Dollars of millionths of a dollar.
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
        let day = Day::of(LATE);
        assert_eq!(day.to_string(), "2026-12-31");
        assert_eq!(day.end(), LATE + 1);
        assert_eq!(day.month_end(), LATE + 1);
        assert_eq!(Day::of(LATE + 1).to_string(), "2027-01-01");
        assert_eq!(day.before(31).to_string(), "2026-11-30");
        let february = Day::of(1_769_990_400_000);
        assert_eq!(Day::of(february.month_end()).to_string(), "2026-03-01");
    }

    #[test]
    fn what_is_too_old_is_neither_this_month_nor_a_total() {
        let day = Day::of(LATE);
        let [days, spending] = day.past(30);
        assert!(days.contains(&day.before(30).subject()));
        assert!(!days.contains(&day.before(29).subject()));
        assert!(
            spending.contains(&Day::of(LATE).before(61).spending("t")),
            "October"
        );
        assert!(
            !spending.contains(&day.before(31).spending("t")),
            "November"
        );
        assert!(!spending.contains(&day.spending("t")));
        for total in ["t", "day", "0123456789abcdef", "spent", "zzz"] {
            assert!(!days.contains(&total.to_owned()) && !spending.contains(&total.to_owned()));
        }
        // However few days are kept, today is.
        assert!(!day.past(0)[0].contains(&day.subject()));
    }

    #[test]
    fn what_was_counted_is_read_again() {
        let day = Day::of(LATE);
        let change = |name: &str, amount| CountChange {
            subject: "t".to_owned(),
            name: name.to_owned(),
            step: Step::Add(amount),
        };
        let mut changes = also(day, "t", "a:b", &change(REQUESTS, 2));
        changes.extend(also(day, "t", "a:b", &change(MICRODOLLARS, 5_000)));
        assert!(also(day, "t", "a:b", &change("tool:x", 1)).is_empty());
        let of = |subject: String| {
            let own = changes.iter().filter(|change| change.subject == subject);
            own.map(|change| Count {
                subject: change.subject.clone(),
                name: change.name.clone(),
                value: match change.step {
                    Step::Add(value) | Step::Reach(value) => value,
                },
            })
            .collect::<Vec<_>>()
        };
        let used = Used::read(of(day.subject()));
        assert_eq!(used.numbers.get(REQUESTS), Some(&2));
        let user = used.by_user.get("a:b");
        assert_eq!(user.and_then(|user| user.get(MICRODOLLARS)), Some(&5_000));
        let spent = Spent::read(day, &of(day.spending("t")));
        assert_eq!((spent.today, spent.this_month), (5_000, 5_000));
    }
}

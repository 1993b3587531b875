//! Cron expressions of five fields: minute, hour, day of the month, month, day of the week. Times are
//! in UTC; the sandbox ignores time zones.

use chrono::Datelike;

use crate::time::{DAY, date_time};

/// Number of days to search; February 29 occurs at least every eight years.
const MAX_DAYS: u64 = 9 * 366;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A cron expression.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    minutes: FieldValues,
    hours: FieldValues,
    days: FieldValues,
    months: FieldValues,
    weekdays: FieldValues,
}

/// Allowed values of one field, as a bit set.
#[derive(Clone, Copy, Debug)]
struct FieldValues {
    bits: u64,
    /// Whether the field was `*`.
    any: bool,
}

impl FieldValues {
    fn contains(self, value: impl Into<u64>) -> bool {
        let value = value.into();
        value < 64 && self.bits >> value & 1 == 1
    }
}

impl Cron {
    pub(super) fn parse(text: &str) -> Option<Cron> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return None;
        };
        let mut weekdays = parse_field(weekdays, 0, 7, &WEEKDAYS, 0)?;
        // Sunday is both 0 and 7.
        weekdays.bits |= weekdays.bits >> 7 & 1;
        Some(Cron {
            minutes: parse_field(minutes, 0, 59, &[], 0)?,
            hours: parse_field(hours, 0, 23, &[], 0)?,
            days: parse_field(days, 1, 31, &[], 0)?,
            months: parse_field(months, 1, 12, &MONTHS, 1)?,
            weekdays,
        })
    }

    /// Returns the first match after `after`, both in milliseconds; `None` if no day matches.
    pub(super) fn next(&self, after: u64) -> Option<u64> {
        let first = (after / 60_000 + 1) * 60_000;
        for day in first / DAY..first / DAY + MAX_DAYS {
            if !self.matches_day(day) {
                continue;
            }
            let earliest = first.saturating_sub(day * DAY) / 60_000;
            let minute = (earliest..24 * 60).find(|minute| {
                self.hours.contains(minute / 60) && self.minutes.contains(minute % 60)
            });
            if let Some(minute) = minute {
                return Some(day * DAY + minute * 60_000);
            }
        }
        None
    }

    /// As in cron, a day needs to match only one of the two day fields if both are restricted.
    fn matches_day(&self, day: u64) -> bool {
        let date = date_time(day * DAY);
        let in_month = self.days.contains(date.day());
        let in_week = self
            .weekdays
            .contains(date.weekday().num_days_from_sunday());
        let matches = match (self.days.any, self.weekdays.any) {
            (false, false) => in_month || in_week,
            _ => in_month && in_week,
        };
        matches && self.months.contains(date.month())
    }
}

/// Parses one field: `*`, `5`, `1-5`, `*/10`, `mon`, and lists of these.
fn parse_field(text: &str, low: u64, high: u64, names: &[&str], first: u64) -> Option<FieldValues> {
    let value = |part: &str| -> Option<u64> {
        let named = names
            .iter()
            .position(|name| part.eq_ignore_ascii_case(name));
        let number = named.map_or_else(|| part.parse().ok(), |index| Some(index as u64 + first))?;
        (low..=high).contains(&number).then_some(number)
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (low, high),
            Some((from, to)) => (value(from)?, value(to)?),
            None if step > 1 => (value(range)?, high),
            None => (value(range)?, value(range)?),
        };
        if from > to {
            return None;
        }
        for number in (from..=to).step_by(step) {
            bits |= 1 << number;
        }
    }
    Some(FieldValues {
        bits,
        any: text == "*",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{iso, parse};

    fn next(cron: &str, after: &str) -> Option<String> {
        Cron::parse(cron)?.next(parse(after)?).map(iso)
    }

    #[test]
    fn finds_the_next_match() {
        let from = "2026-03-14T09:26:53Z"; // a Saturday
        let at = |time: &str| Some(format!("{time}:00.000Z"));
        assert_eq!(next("0 9 * * *", from), at("2026-03-15T09:00"));
        assert_eq!(next("*/15 * * * *", from), at("2026-03-14T09:30"));
        assert_eq!(next("0 9 * * 1", from), at("2026-03-16T09:00"));
        assert_eq!(next("0 9 * * mon-fri", from), at("2026-03-16T09:00"));
        assert_eq!(next("30 6 1 jan,jul *", from), at("2026-07-01T06:30"));
        assert_eq!(next("0 0 29 2 *", from), at("2028-02-29T00:00"));
        assert_eq!(next("0 0 13 * 7", from), at("2026-03-15T00:00"));
        assert_eq!(next("0 0 31 2 *", from), None);
    }

    #[test]
    fn rejects_invalid_expressions() {
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "* * * * * *",
            "a * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
        ] {
            assert!(Cron::parse(text).is_none(), "{text}");
        }
    }
}

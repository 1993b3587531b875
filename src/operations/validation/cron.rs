//! Cron expressions with five fields.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Appended to every error.
const EXAMPLE: &str = "an example is `0 9 * * 1` (Mondays at nine)";

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Nicknames that some cron implementations support, with their expressions.
const NICKNAMES: &[(&str, &str)] = &[
    ("@daily", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("@midnight", "0 0 * * *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
];

struct CronField {
    name: &'static str,
    min: u32,
    max: u32,
    /// Names of the values, starting at `min`.
    names: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField::new("minute", 0, 59, &[]),
    CronField::new("hour", 0, 23, &[]),
    CronField::new("day of the month", 1, 31, &[]),
    CronField::new("month", 1, 12, MONTHS),
    CronField::new("weekday", 0, 7, DAYS),
];

/// Returns what is wrong with a cron expression, if anything.
pub(super) fn error(expression: &str) -> Option<String> {
    let given: Vec<&str> = expression.split_whitespace().collect();
    if let [only] = given.as_slice()
        && let Some((_, meant)) = NICKNAMES.iter().find(|it| it.0.eq_ignore_ascii_case(only))
    {
        return Some(format!(
            "must have exactly five fields; got `{only}`; did you mean `{meant}`?"
        ));
    }
    if given.len() != FIELDS.len() {
        let seconds = if given.len() == FIELDS.len() + 1 {
            ", leave out the seconds"
        } else {
            ""
        };
        return Some(format!(
            "must have exactly five fields (minute, hour, day of the month, month, weekday); got {}{seconds}; {EXAMPLE}",
            given.len()
        ));
    }
    let errors: Vec<String> = FIELDS
        .iter()
        .zip(&given)
        .enumerate()
        .filter_map(|(index, (field, text))| {
            let error = field.error(text)?;
            Some(format!("field {} ({}) {error}", index + 1, field.name))
        })
        .collect();
    (!errors.is_empty()).then(|| {
        let errors = errors.join("; ");
        format!("is not a valid cron expression: {errors}; {EXAMPLE}")
    })
}

/// Returns the most runs in a day and in a month of 31 days; `None` for an invalid expression.
pub(in crate::operations) fn runs(expression: &str) -> Option<(u64, u64)> {
    if error(expression).is_some() {
        return None;
    }
    let given: Vec<&str> = expression.split_whitespace().collect();
    let count = |index: usize| {
        let (field, text) = (FIELDS.get(index)?, given.get(index)?);
        u64::try_from(field.values(text).len()).ok()
    };
    let is_any = |index: usize| given.get(index).is_some_and(|text| text.starts_with('*'));
    let per_day = count(0)? * count(1)?;
    // A weekday occurs at most five times in a month.
    let days = match (is_any(2), is_any(4)) {
        (true, true) => 31,
        (false, true) => count(2)?,
        (true, false) => count(4)? * 5,
        // Cron runs on days that match either field.
        (false, false) => count(2)? + count(4)? * 5,
    };
    Some((per_day, per_day * days.min(31)))
}

impl CronField {
    const fn new(name: &'static str, min: u32, max: u32, names: &'static [&'static str]) -> Self {
        Self {
            name,
            min,
            max,
            names,
        }
    }

    fn error(&self, text: &str) -> Option<String> {
        let all_valid = text.split(',').all(|part| self.is_valid_part(part));
        if all_valid {
            return None;
        }
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        Some(format!(
            "must be `*` or made of {} to {}{names}, with lists `a,b`, ranges `a-b` and steps `*/n`; got `{}`",
            self.min,
            self.max,
            super::messages::short(text)
        ))
    }

    /// Returns whether a part is valid: `*`, `5` or `1-5`, each with an optional step.
    fn is_valid_part(&self, part: &str) -> bool {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let is_step_valid = step.is_none_or(|step| {
            number(step).is_some_and(|step| step >= 1 && step <= self.max.max(1))
        });
        let is_range_valid = match range.split_once('-') {
            Some((from, to)) => match (self.value(from), self.value(to)) {
                (Some(from), Some(to)) => from <= to,
                _ => false,
            },
            None => range == "*" || self.value(range).is_some(),
        };
        is_step_valid && is_range_valid
    }

    /// Returns the distinct values that match a field.
    fn values(&self, text: &str) -> BTreeSet<u32> {
        let parts = text.split(',').filter_map(|part| self.parse_part(part));
        let values = parts.flat_map(|(range, step)| range.step_by(step.max(1)));
        // Sunday has two numbers.
        values
            .map(|value| if self.max == 7 { value % 7 } else { value })
            .collect()
    }

    /// Parses a part into its range and step.
    fn parse_part(&self, part: &str) -> Option<(RangeInclusive<u32>, usize)> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| {
            (
                range,
                number(step).and_then(|step| usize::try_from(step).ok()),
            )
        });
        let range = match range.split_once('-') {
            Some((from, to)) => self.value(from)?..=self.value(to)?,
            None if range == "*" => self.min..=self.max,
            // `5/15` runs from 5 to the end.
            None if step.is_some() => self.value(range)?..=self.max,
            None => self.value(range)?..=self.value(range)?,
        };
        Some((range, step.unwrap_or(1)))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self
            .names
            .iter()
            .zip(self.min..)
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, value)| value);
        named
            .or_else(|| number(text))
            .filter(|value| (self.min..=self.max).contains(value))
    }
}

/// Parses digits only: Rust accepts `+5`, but cron does not.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::{error, runs};

    #[test]
    fn counts_runs_per_day_and_month() {
        for (expression, expected) in [
            ("0 9 * * 1", (1, 5)),
            ("0 9 * * *", (1, 31)),
            ("*/15 * * * *", (96, 96 * 31)),
            ("0,30 8-18 1,15 * *", (22, 44)),
            ("5/20 0 * * mon-fri", (3, 75)),
            ("0 0 * * 0,7", (1, 5)),
            ("0 0 1 * 1", (1, 6)),
            ("* * 1-31 * *", (1440, 1440 * 31)),
        ] {
            assert_eq!(runs(expression), Some(expected), "{expression}");
        }
        assert_eq!(runs("@daily"), None);
    }

    #[test]
    fn accepts_valid_expressions() {
        for expression in [
            "0 9 * * 1",
            "*/15 * * * *",
            "0,30 8-18 1-31/2 JAN-mar Mon-Fri",
            "5 4 * * sun",
            "0 0 1 1 7",
            "  0   9 * * 1 ",
            "0/15 * * * *",
        ] {
            assert_eq!(error(expression), None, "{expression}");
        }
    }

    #[test]
    fn names_the_invalid_field() {
        for (expression, part) in [
            ("60 9 * * 1", "field 1 (minute)"),
            (
                "0 24 * * 1",
                "field 2 (hour) must be `*` or made of 0 to 23",
            ),
            ("0 9 0 * 1", "field 3 (day of the month)"),
            (
                "0 9 * 13 1",
                "field 4 (month) must be `*` or made of 1 to 12 or jan to dec",
            ),
            ("0 9 * * 8", "field 5 (weekday)"),
            ("0 9 * * mondays", "got `mondays`"),
            ("*/0 9 * * 1", "field 1"),
            ("5-1 9 * * 1", "field 1"),
            ("1, 9 * * 1", "field 1"),
            ("+5 9 * * 1", "field 1"),
            ("0 9 ? * L", "field 5 (weekday)"),
        ] {
            let text = error(expression).unwrap_or_default();
            assert!(text.contains(part), "{expression}: {text}");
            assert!(text.contains("`0 9 * * 1` (Mondays at nine)"), "{text}");
        }
    }

    #[test]
    fn reports_the_number_of_fields() {
        let six = error("0 0 9 * * 1").unwrap_or_default();
        assert!(six.contains("exactly five fields"), "{six}");
        assert!(six.contains("got 6, leave out the seconds"), "{six}");
        let none = error("").unwrap_or_default();
        assert!(none.contains("got 0"), "{none}");
        let nickname = error("@daily").unwrap_or_default();
        assert!(nickname.contains("did you mean `0 0 * * *`?"), "{nickname}");
    }
}

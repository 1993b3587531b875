//! Times as milliseconds since 1970 in UTC, and their ISO 8601 form. Two conversions do not
//! justify a date library.

/// One second in milliseconds.
pub(crate) const SECOND: u64 = 1_000;
/// One hour in milliseconds.
pub(crate) const HOUR: u64 = 3_600 * SECOND;
/// One day in milliseconds.
pub(crate) const DAY: u64 = 24 * HOUR;

/// A calendar day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// The day that is `days` after 1970-01-01 (Howard Hinnant's civil_from_days).
pub(crate) fn date_of(days: i64) -> Date {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let index = (5 * of_year + 2) / 153;
    let month = if index < 10 { index + 3 } else { index - 9 };
    Date {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: of_year - (153 * index + 2) / 5 + 1,
    }
}

/// Days from 1970-01-01 to the given day (Howard Hinnant's days_from_civil).
pub(crate) fn days_to(date: Date) -> i64 {
    let year = date.year - i64::from(date.month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let index = if date.month > 2 {
        date.month - 3
    } else {
        date.month + 9
    };
    let of_year = (153 * index + 2) / 5 + date.day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// The RFC 3339 form with milliseconds, such as `2026-03-14T09:26:53.589Z`.
pub(crate) fn iso(ms: u64) -> String {
    let date = date_of(i64::try_from(ms / DAY).unwrap_or(0));
    let rest = ms % DAY;
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        date.year,
        date.month,
        date.day,
        rest / HOUR,
        rest / 60_000 % 60,
        rest / SECOND % 60,
        rest % SECOND,
    )
}

/// The calendar day alone, such as `2026-03-14`.
pub(crate) fn iso_day(ms: u64) -> String {
    iso(ms).chars().take(10).collect()
}

/// Reads a date or a date with a time. Exa takes both, which is why this is wider than RFC 3339;
/// times before 1970 count as 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (day, clock) = match text.split_once(['T', 't', ' ']) {
        Some((day, clock)) => (day, Some(clock)),
        None => (text, None),
    };
    let mut days = days_to(parse_day(day)?) * 86_400_000;
    if let Some(clock) = clock {
        days += parse_clock(clock)?;
    }
    Some(u64::try_from(days).unwrap_or(0))
}

fn parse_day(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let date = Date {
        year: digits(parts.next()?, 4)?,
        month: digits(parts.next()?, 2)?,
        day: digits(parts.next()?, 2)?,
    };
    // Writing the day back finds February 30.
    (parts.next().is_none() && (1..=12).contains(&date.month) && date_of(days_to(date)) == date)
        .then_some(date)
}

/// Milliseconds since midnight UTC of `09:26:53.589+02:00` and its shorter forms.
fn parse_clock(text: &str) -> Option<i64> {
    let (clock, offset) = split_offset(text)?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), |part| digits(part, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1_000 + millis(fraction)? - offset)
}

fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else {
        return Some((text, 0));
    };
    let (clock, offset) = text.split_at_checked(at)?;
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    Some((
        clock,
        sign * (digits(hours, 2)? * 60 + digits(minutes, 2)?) * 60_000,
    ))
}

fn millis(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
    padded.parse().ok()
}

fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_back() {
        for ms in [0, 951_782_400_123, 1_763_270_366_001, 4_102_444_799_999] {
            assert_eq!(parse(&iso(ms)), Some(ms), "{}", iso(ms));
        }
        assert_eq!(iso(951_782_400_123), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn reads_the_forms_people_send() {
        assert_eq!(parse("2026-01-31"), parse("2026-01-31T00:00:00.000Z"));
        assert_eq!(
            parse("2026-01-31T02:30:00+02:30"),
            parse("2026-01-31T00:00:00Z")
        );
        assert_eq!(parse("1960-01-01"), Some(0));
    }

    #[test]
    fn refuses_what_is_no_date() {
        for text in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-13-01",
            "2026-1-1",
            "2026-01-01T25:00Z",
            "2026-01-01T10:00:00.xZ",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

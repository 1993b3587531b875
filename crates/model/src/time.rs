//! Timestamps in milliseconds since 1970, read and written as RFC 3339 text.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Days, Months, NaiveDate, NaiveDateTime, SecondsFormat};

/// Formats of date and time without a zone.
const WITHOUT_ZONE: [&str; 2] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];

/// Parses `2024`, `2024-05`, `2024-05-31` or an RFC 3339 date and time into milliseconds since 1970.
///
/// A missing part counts as its start, a missing zone as UTC.
#[must_use]
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let text = text.trim().replacen(' ', "T", 1);
    if let Ok(time) = DateTime::parse_from_rfc3339(&text) {
        return Some(time.timestamp_millis());
    }
    let mut formats = WITHOUT_ZONE.iter();
    let time = formats.find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok());
    let time = time.or_else(|| first_day(&text)?.and_hms_opt(0, 0, 0))?;
    Some(time.and_utc().timestamp_millis())
}

/// Parses the same formats as [`parse_timestamp`], but a missing part counts as its end: `2024-05` is the last
/// millisecond of May.
#[must_use]
pub fn parse_period_end(text: &str) -> Option<i64> {
    let text = text.trim();
    let Some(day) = first_day(text) else {
        return parse_timestamp(text);
    };
    let next = match text.len() {
        4 => day.checked_add_months(Months::new(12)),
        7 => day.checked_add_months(Months::new(1)),
        _ => day.checked_add_days(Days::new(1)),
    };
    let next = next?.and_hms_opt(0, 0, 0)?;
    Some(next.and_utc().timestamp_millis() - 1)
}

/// Formats milliseconds since 1970 as RFC 3339 in UTC with milliseconds, like JavaScript.
///
/// A time that is out of range becomes the start of 1970.
#[must_use]
pub fn format_timestamp(milliseconds: i64) -> String {
    DateTime::from_timestamp_millis(milliseconds)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Formats milliseconds since 1970 as RFC 3339 in UTC with whole seconds.
#[must_use]
pub fn format_seconds(milliseconds: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(milliseconds).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Converts a time to milliseconds since 1970.
#[must_use]
pub fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    milliseconds(SystemTime::now())
}

/// Returns the first day of `2024`, `2024-05` or `2024-05-31`.
fn first_day(text: &str) -> Option<NaiveDate> {
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        10 => text.to_owned(),
        _ => return None,
    };
    NaiveDate::parse_from_str(&whole, "%Y-%m-%d").ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parses_timestamps() {
        for (text, milliseconds) in [
            ("1970", 0),
            ("1970-01-02", 86_400_000),
            ("2000-03", 951_868_800_000),
            ("2024-02-29", 1_709_164_800_000),
            ("2026-11-16T07:44:17.272Z", 1_794_815_057_272),
            ("2026-11-16T09:44:17.272+02:00", 1_794_815_057_272),
            ("2026-11-16 07:44", 1_794_815_040_000),
            ("1969-12-31T23:59:59Z", -1_000),
        ] {
            assert_eq!(parse_timestamp(text), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn a_period_ends_with_its_last_millisecond() {
        for (text, end) in [
            ("2024", "2024-12-31T23:59:59.999Z"),
            ("2024-02", "2024-02-29T23:59:59.999Z"),
            ("2024-05-31", "2024-05-31T23:59:59.999Z"),
            ("2024-05-31T10:00:00+02:00", "2024-05-31T08:00:00.000Z"),
        ] {
            let last = parse_period_end(text).unwrap();
            assert_eq!(format_timestamp(last), end, "{text}");
        }
        assert_eq!(parse_period_end("later"), None);
    }

    #[test]
    fn rejects_other_texts() {
        for text in [
            "",
            "yesterday",
            "2024-13-01",
            "2023-02-29",
            "24-01-01",
            "2024-1-1",
            "2024-01-01T25:00",
            "2024-01-01T10",
            "2024-01-01T10:00:00.Z",
            "2024-01-01-01",
            "01/02/2024",
            "2024-01-01T10:00+2",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn an_out_of_range_time_is_1970() {
        assert_eq!(format_timestamp(i64::MAX), "1970-01-01T00:00:00.000Z");
    }
}

//! Times as milliseconds since 1970 in UTC, and their ISO 8601 form.

use chrono::{DateTime, SecondsFormat, Utc};

/// One second in milliseconds.
pub(crate) const SECOND: u64 = 1_000;
/// One hour in milliseconds.
pub(crate) const HOUR: u64 = 3_600 * SECOND;
/// One day in milliseconds.
pub(crate) const DAY: u64 = 24 * HOUR;

/// Suffixes that complete a date, or a date with a time, to RFC 3339.
const SUFFIXES: [&str; 4] = ["", "Z", ":00Z", "T00:00:00Z"];

/// A date with a time and a zone, but without the seconds that RFC 3339 requires.
const WITHOUT_SECONDS: &str = "%Y-%m-%dT%H:%M%#z";

/// Converts to a calendar date; 1970 if the time is out of range.
pub(crate) fn date_time(ms: u64) -> DateTime<Utc> {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

/// Formats as RFC 3339 with milliseconds, such as `2026-03-14T09:26:53.589Z`.
pub(crate) fn iso(ms: u64) -> String {
    date_time(ms).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Formats the calendar day alone, such as `2026-03-14`.
pub(crate) fn iso_day(ms: u64) -> String {
    date_time(ms).date_naive().to_string()
}

/// Parses a date or a date with a time. Exa accepts both, so this accepts more than RFC 3339. Times
/// before 1970 become 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let moment = SUFFIXES
        .iter()
        .find_map(|suffix| DateTime::parse_from_rfc3339(&format!("{text}{suffix}")).ok())
        .or_else(|| DateTime::parse_from_str(text, WITHOUT_SECONDS).ok())?;
    Some(u64::try_from(moment.timestamp_millis()).unwrap_or(0))
}

/// Parses a period such as `6h` or `7d` into milliseconds.
pub(crate) fn parse_period(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('h') {
        Some(hours) => (hours, HOUR),
        None => (text.strip_suffix('d')?, DAY),
    };
    let number = digits.parse::<u64>().ok()?;
    (1..=10_000).contains(&number).then(|| number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_it_formats() {
        for ms in [0, 951_782_400_123, 1_763_270_366_001, 4_102_444_799_999] {
            assert_eq!(parse(&iso(ms)), Some(ms), "{}", iso(ms));
        }
        assert_eq!(iso(951_782_400_123), "2000-02-29T00:00:00.123Z");
    }

    #[test]
    fn accepts_common_date_formats() {
        assert_eq!(parse("2026-01-31"), parse("2026-01-31T00:00:00.000Z"));
        assert_eq!(
            parse("2026-01-31T02:30:00+02:30"),
            parse("2026-01-31T00:00:00Z")
        );
        for text in [
            "2026-01-31T00:00",
            "2026-01-31T00:00Z",
            "2026-01-31T02:30+02:30",
            "2026-01-31 00:00:00",
        ] {
            assert_eq!(parse(text), parse("2026-01-31T00:00:00Z"), "{text}");
        }
        assert_eq!(parse("1960-01-01"), Some(0));
    }

    #[test]
    fn rejects_invalid_dates() {
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

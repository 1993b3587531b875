//! Times as milliseconds since 1970 in UTC, and their ISO 8601 form.

use chrono::{DateTime, SecondsFormat, Utc};

/// One second in milliseconds.
pub(crate) const SECOND: u64 = 1_000;
/// One hour in milliseconds.
pub(crate) const HOUR: u64 = 3_600 * SECOND;
/// One day in milliseconds.
pub(crate) const DAY: u64 = 24 * HOUR;

/// What completes a date, or a date with a time, where parts are left out.
const OMITTED: [&str; 4] = ["", "Z", ":00Z", "T00:00:00Z"];

/// A date with a time and a zone, but without seconds, which RFC 3339 asks for.
const WITHOUT_SECONDS: &str = "%Y-%m-%dT%H:%M%#z";

/// The moment in the calendar; 1970 for what is beyond it.
pub(crate) fn moment(ms: u64) -> DateTime<Utc> {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

/// The RFC 3339 form with milliseconds, such as `2026-03-14T09:26:53.589Z`.
pub(crate) fn iso(ms: u64) -> String {
    moment(ms).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The calendar day alone, such as `2026-03-14`.
pub(crate) fn iso_day(ms: u64) -> String {
    moment(ms).date_naive().to_string()
}

/// Reads a date or a date with a time. Exa takes both, which is why this is wider than RFC 3339;
/// times before 1970 count as 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let moment = OMITTED
        .iter()
        .find_map(|rest| DateTime::parse_from_rfc3339(&format!("{text}{rest}")).ok())
        .or_else(|| DateTime::parse_from_str(text, WITHOUT_SECONDS).ok())?;
    Some(u64::try_from(moment.timestamp_millis()).unwrap_or(0))
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

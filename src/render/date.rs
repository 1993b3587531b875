//! Moments in time, as far as comparing and showing them needs.

use chrono::{DateTime, Days, Months, NaiveDate, NaiveDateTime, SecondsFormat};
use serde_json::Value;

/// Dates with a time and without a zone, as people write them.
const WITHOUT_ZONE: [&str; 2] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"];

/// Milliseconds since 1970 of `2024`, `2024-05`, `2024-05-31` or an RFC 3339 date and time; a part
/// that is left out counts as its beginning, a missing zone as UTC.
pub(crate) fn instant(text: &str) -> Option<i64> {
    let text = text.trim().replacen(' ', "T", 1);
    if let Ok(moment) = DateTime::parse_from_rfc3339(&text) {
        return Some(moment.timestamp_millis());
    }
    let mut times = WITHOUT_ZONE.iter();
    let time = times.find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok());
    let time = time.or_else(|| day_of(&text)?.and_hms_opt(0, 0, 0))?;
    Some(time.and_utc().timestamp_millis())
}

/// The same, but a part that is left out counts as its end: `2024-05` is all of May.
pub(super) fn last_instant(text: &str) -> Option<i64> {
    let text = text.trim();
    let Some(day) = day_of(text) else {
        return instant(text);
    };
    let next = match text.len() {
        4 => day.checked_add_months(Months::new(12)),
        7 => day.checked_add_months(Months::new(1)),
        _ => day.checked_add_days(Days::new(1)),
    };
    let next = next?.and_hms_opt(0, 0, 0)?;
    Some(next.and_utc().timestamp_millis() - 1)
}

/// A moment in the form that every API reads.
pub(super) fn written(milliseconds: i64) -> Option<String> {
    let moment = DateTime::from_timestamp_millis(milliseconds)?;
    Some(moment.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The day that `2024`, `2024-05` or `2024-05-31` begins with.
fn day_of(text: &str) -> Option<NaiveDate> {
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        10 => text.to_owned(),
        _ => return None,
    };
    NaiveDate::parse_from_str(&whole, "%Y-%m-%d").ok()
}

/// The moment that a value names: a text, or milliseconds since 1970.
pub(super) fn of_value(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| instant(value.as_str()?))
}

/// The day of a moment, for people.
pub(super) fn day(value: &Value) -> String {
    match (value.as_i64(), value.as_str()) {
        (Some(milliseconds), _) => {
            let moment = DateTime::from_timestamp_millis(milliseconds);
            moment.map_or_else(String::new, |moment| moment.date_naive().to_string())
        }
        (None, Some(text)) => text.split_once('T').map_or(text, |(day, _)| day).to_owned(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn moments_are_read() {
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
            assert_eq!(instant(text), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn what_is_left_out_counts_as_its_end() {
        for (text, end) in [
            ("2024", "2024-12-31T23:59:59.999Z"),
            ("2024-02", "2024-02-29T23:59:59.999Z"),
            ("2024-05-31", "2024-05-31T23:59:59.999Z"),
            ("2024-05-31T10:00:00+02:00", "2024-05-31T08:00:00.000Z"),
        ] {
            let last = last_instant(text).unwrap();
            assert_eq!(written(last).unwrap(), end, "{text}");
        }
        assert_eq!(last_instant("soon"), None);
    }

    #[test]
    fn days_are_written() {
        for (value, written) in [
            (json!(1_794_815_057_272_i64), "2026-11-16"),
            (json!(951_782_400_000_i64), "2000-02-29"),
            (json!(-1), "1969-12-31"),
            (json!("2024-01-02T03:04:05Z"), "2024-01-02"),
            (json!(null), ""),
        ] {
            assert_eq!(day(&value), written);
        }
        assert_eq!(of_value(&json!(5)), Some(5));
    }

    #[test]
    fn other_texts_are_none() {
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
            assert_eq!(instant(text), None, "{text}");
        }
    }
}

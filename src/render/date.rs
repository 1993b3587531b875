//! Moments in time, as far as comparing them needs.

use serde_json::Value;

/// Milliseconds since 1970 of `2024`, `2024-05`, `2024-05-31` or an RFC 3339 date and time; a part
/// that is left out counts as its beginning, a missing zone as UTC.
pub(super) fn instant(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |part| number(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| number(part, 2))?;
    let whole = parts.next().is_none() && (1..=12).contains(&month);
    if !whole || day < 1 || day > days_in(year, month) {
        return None;
    }
    let of_day = time.map_or(Some(0), of_day)?;
    Some(days_since_1970(year, month, day) * 86_400_000 + of_day)
}

/// The moment that a value names: a text, or milliseconds since 1970.
pub(super) fn of_value(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| instant(value.as_str()?))
}

/// The day of a moment, for people.
pub(super) fn day(value: &Value) -> String {
    match (value.as_i64(), value.as_str()) {
        (Some(milliseconds), _) => {
            let (year, month, day) = civil(milliseconds.div_euclid(86_400_000));
            format!("{year:04}-{month:02}-{day:02}")
        }
        (None, Some(text)) => text.split_once('T').map_or(text, |(day, _)| day).to_owned(),
        (None, None) => String::new(),
    }
}

/// Year, month and day of a day counted from 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    // Eras of 400 years that begin in March are all alike.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + carry, month, day)
}

fn number(text: &str, digits: usize) -> Option<i64> {
    let fits = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the leap day comes last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// Milliseconds since midnight in UTC of `12:30`, `12:30:05.25Z` or `12:30:05+02:00`.
fn of_day(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at_checked(zone_at)?;
    let offset = match zone {
        "" | "Z" | "z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = number(hours, 2)? * 60 + number(minutes, 2)?;
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            sign * minutes * 60_000
        }
    };
    let mut parts = clock.split(':');
    let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let seconds = parts.next().map_or(Some(0), milliseconds)?;
    let fits = hours < 24 && minutes < 60 && seconds < 61_000 && parts.next().is_none();
    fits.then_some((hours * 60 + minutes) * 60_000 + seconds - offset)
}

fn milliseconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: String = fraction.chars().chain("00".chars()).take(3).collect();
    let thousandths = number(&thousandths, 3).filter(|_| digits)?;
    Some(number(whole, 2)? * 1_000 + thousandths)
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

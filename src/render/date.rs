//! Dates in results, as far as comparing and showing them needs.

use chrono::DateTime;
use serde_json::Value;

use exa_mcp_model::time::parse_timestamp;

/// The moment that a value names: a text, or milliseconds since 1970.
pub(super) fn of_value(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| parse_timestamp(value.as_str()?))
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
mod tests {
    use serde_json::json;

    use super::*;

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
}

//! Comparison and formatting of dates in results.

use chrono::DateTime;
use serde_json::Value;

use exa_mcp_model::time::parse_timestamp;

/// Returns the milliseconds since 1970 of a text or number.
pub(super) fn timestamp(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| parse_timestamp(value.as_str()?))
}

/// Returns the day of a timestamp, without the time.
pub(super) fn format_day(value: &Value) -> String {
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
    fn formats_days() {
        for (value, written) in [
            (json!(1_794_815_057_272_i64), "2026-11-16"),
            (json!(951_782_400_000_i64), "2000-02-29"),
            (json!(-1), "1969-12-31"),
            (json!("2024-01-02T03:04:05Z"), "2024-01-02"),
            (json!(null), ""),
        ] {
            assert_eq!(format_day(&value), written);
        }
        assert_eq!(timestamp(&json!(5)), Some(5));
    }
}

//! What a token may do, and how much of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most tools that a list may name.
const MOST_TOOLS: usize = 200;

/// What a token may do, and how much of it. Whatever is not limited is allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenLimits {
    /// Requests a minute.
    #[serde(rename = "requestsPerMinute")]
    pub requests_per_minute: Option<u64>,
    /// Calls of tools at once.
    #[serde(rename = "concurrentCalls")]
    pub concurrent_calls: Option<u64>,
    /// Dollars a day; then calls are refused until the next, by UTC.
    #[serde(rename = "dollarsPerDay")]
    pub dollars_per_day: Option<f64>,
    /// Dollars a month; then calls are refused until the next, by UTC.
    #[serde(rename = "dollarsPerMonth")]
    pub dollars_per_month: Option<f64>,
    /// Dollars a day beyond which answers carry a warning.
    #[serde(rename = "softDollarsPerDay")]
    pub soft_dollars_per_day: Option<f64>,
    /// Dollars a month beyond which answers carry a warning.
    #[serde(rename = "softDollarsPerMonth")]
    pub soft_dollars_per_month: Option<f64>,
    /// The sets and tools that are offered.
    #[serde(rename = "tools")]
    pub tools: Option<Vec<String>>,
    /// Nothing may be changed.
    #[serde(rename = "readOnly")]
    pub read_only: Option<bool>,
}

/// Why limits cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// They are not what limits look like.
    #[error("limits: {0}")]
    Form(String),
    /// A number is of no use.
    #[error("limits: {0} must be a number of at least 1; use null for no limit")]
    Count(&'static str),
    /// A sum is of no use.
    #[error("limits: {0} must be a number of dollars from 0 up; use null for no limit")]
    Dollars(&'static str),
    /// A list of tools is of no use.
    #[error("limits: tools must name 1 to 200 tools or sets; use null to allow all")]
    Tools,
}

impl TokenLimits {
    /// The most dollars that a limit may name; beyond it there is no need for one.
    pub const MOST_DOLLARS: f64 = 1e9;

    /// These limits with the changes of a JSON object: what it names is replaced, `null` takes a limit
    /// away, everything else stays.
    pub fn changed(&self, changes: &Value) -> Result<Self, LimitsError> {
        let Value::Object(changes) = changes else {
            return Err(LimitsError::Form("they must be an object".to_owned()));
        };
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            // A store may hold limits that only a newer program knows; nobody may set such here.
            if let Some(unknown) = changes.keys().find(|name| !fields.contains_key(*name)) {
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(LimitsError::Form(format!(
                    "unknown field `{unknown}`, expected one of {known}"
                )));
            }
            fields.extend(changes.clone());
        }
        let limits: Self =
            serde_json::from_value(value).map_err(|error| LimitsError::Form(error.to_string()))?;
        limits.check()?;
        Ok(limits)
    }

    /// These limits, and where there is none that of others.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        let others = others.clone();
        let own = self.clone();
        Self {
            requests_per_minute: own.requests_per_minute.or(others.requests_per_minute),
            concurrent_calls: own.concurrent_calls.or(others.concurrent_calls),
            dollars_per_day: own.dollars_per_day.or(others.dollars_per_day),
            dollars_per_month: own.dollars_per_month.or(others.dollars_per_month),
            soft_dollars_per_day: own.soft_dollars_per_day.or(others.soft_dollars_per_day),
            soft_dollars_per_month: own.soft_dollars_per_month.or(others.soft_dollars_per_month),
            tools: own.tools.or(others.tools),
            read_only: own.read_only.or(others.read_only),
        }
    }

    /// The tools as a list of names, if they are limited.
    pub fn tool_list(&self) -> Option<String> {
        self.tools.as_ref().map(|tools| tools.join(","))
    }

    /// The most that may be spent a day and a month, in millionths of a dollar.
    pub(super) fn budgets(&self) -> [Option<u64>; 2] {
        // Rounded down: no budget is exceeded by a fraction.
        [self.dollars_per_day, self.dollars_per_month]
            .map(|sum| sum.map(|dollars| (dollars * 1e6 + 1e-3).floor() as u64))
    }

    /// Whether money is limited, and not only warned about.
    pub fn has_budget(&self) -> bool {
        self.dollars_per_day.is_some() || self.dollars_per_month.is_some()
    }

    /// Whether money is limited in any way.
    pub(super) fn count_dollars(&self) -> bool {
        let sums = [
            self.dollars_per_day,
            self.dollars_per_month,
            self.soft_dollars_per_day,
            self.soft_dollars_per_month,
        ];
        sums.iter().any(Option::is_some)
    }

    fn check(&self) -> Result<(), LimitsError> {
        for (name, count) in [
            ("requestsPerMinute", self.requests_per_minute),
            ("concurrentCalls", self.concurrent_calls),
        ] {
            if count == Some(0) {
                return Err(LimitsError::Count(name));
            }
        }
        for (name, dollars) in [
            ("dollarsPerDay", self.dollars_per_day),
            ("dollarsPerMonth", self.dollars_per_month),
            ("softDollarsPerDay", self.soft_dollars_per_day),
            ("softDollarsPerMonth", self.soft_dollars_per_month),
        ] {
            if dollars.is_some_and(|dollars| !(0.0..=Self::MOST_DOLLARS).contains(&dollars)) {
                return Err(LimitsError::Dollars(name));
            }
        }
        let fits = |tools: &Vec<String>| (1..=MOST_TOOLS).contains(&tools.len());
        match self.tools.as_ref().is_none_or(fits) {
            true => Ok(()),
            false => Err(LimitsError::Tools),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let limits = TokenLimits::default();
        let first = json!({"requestsPerMinute": 5, "dollarsPerDay": 1.5, "readOnly": true});
        let limits = limits.changed(&first).unwrap();
        let limits = limits.changed(&json!({"dollarsPerDay": null, "tools": ["a"]}));
        let limits = limits.unwrap();
        assert_eq!(limits.requests_per_minute, Some(5));
        assert_eq!(limits.dollars_per_day, None);
        assert_eq!(limits.tool_list().as_deref(), Some("a"));
        assert_eq!(limits.read_only, Some(true));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            json!([]),
            json!({"requestsPerMinute": 0}),
            json!({"requestsPerMinute": -1}),
            json!({"requestsPerMinute": 1.5}),
            json!({"requestsPerHour": 1}),
            json!({"dollarsPerDay": -0.1}),
            json!({"dollarsPerMonth": "1"}),
            json!({"tools": []}),
            json!({"tools": "search"}),
            json!({"readOnly": 1}),
        ] {
            assert!(TokenLimits::default().changed(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn own_limits_go_before_the_usual_ones() {
        let limits = |value| TokenLimits::default().changed(&value).unwrap();
        let own = limits(json!({"requestsPerMinute": 5}));
        let both = own.or(&limits(json!({"requestsPerMinute": 1, "readOnly": true})));
        assert_eq!(both.requests_per_minute, Some(5));
        assert_eq!(both.read_only, Some(true));
    }
}

//! The limits of a token.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum length of a list of tools.
const MAX_TOOLS: usize = 200;

/// The limits of a token. `None` means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenLimits {
    /// Requests per minute.
    #[serde(rename = "requestsPerMinute")]
    pub requests_per_minute: Option<u64>,
    /// Concurrent tool calls.
    #[serde(rename = "concurrentCalls")]
    pub concurrent_calls: Option<u64>,
    /// Dollars per day (UTC), after which calls are rejected.
    #[serde(rename = "dollarsPerDay")]
    pub dollars_per_day: Option<f64>,
    /// Dollars per month (UTC), after which calls are rejected.
    #[serde(rename = "dollarsPerMonth")]
    pub dollars_per_month: Option<f64>,
    /// Dollars per day above which results carry a warning.
    #[serde(rename = "softDollarsPerDay")]
    pub soft_dollars_per_day: Option<f64>,
    /// Dollars per month above which results carry a warning.
    #[serde(rename = "softDollarsPerMonth")]
    pub soft_dollars_per_month: Option<f64>,
    /// The sets and tools that may be used.
    pub tools: Option<Vec<String>>,
    /// Whether tools that change something are forbidden.
    #[serde(rename = "readOnly")]
    pub read_only: Option<bool>,
}

/// An error in limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// The JSON does not describe limits.
    #[error("limits: {0}")]
    Invalid(String),
    /// A count is out of range.
    #[error("limits: {0} must be an integer of at least 1; use null for no limit")]
    Count(&'static str),
    /// An amount is out of range.
    #[error("limits: {0} must be a number of dollars of at least 0; use null for no limit")]
    Dollars(&'static str),
    /// The list of tools is empty or too long.
    #[error("limits: tools must name 1 to 200 tools or sets; use null to allow all")]
    Tools,
}

impl TokenLimits {
    /// The maximum amount of a limit.
    pub const MAX_DOLLARS: f64 = 1e9;

    /// Returns these limits with the changes of a JSON object: fields replace limits, `null` removes them.
    ///
    /// # Errors
    /// A field is unknown or invalid.
    pub fn with_changes(&self, changes: &Value) -> Result<Self, LimitsError> {
        let Value::Object(changes) = changes else {
            return Err(LimitsError::Invalid("they must be an object".to_owned()));
        };
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            // Checked here and not by serde, because stored limits may contain fields of a newer program.
            if let Some(unknown) = changes.keys().find(|name| !fields.contains_key(*name)) {
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(LimitsError::Invalid(format!(
                    "unknown field `{unknown}`, expected one of {known}"
                )));
            }
            fields.extend(changes.clone());
        }
        let limits: Self = serde_json::from_value(value)
            .map_err(|error| LimitsError::Invalid(error.to_string()))?;
        limits.check()?;
        Ok(limits)
    }

    /// Returns these limits, completed by the defaults.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        let defaults = defaults.clone();
        let own = self.clone();
        Self {
            requests_per_minute: own.requests_per_minute.or(defaults.requests_per_minute),
            concurrent_calls: own.concurrent_calls.or(defaults.concurrent_calls),
            dollars_per_day: own.dollars_per_day.or(defaults.dollars_per_day),
            dollars_per_month: own.dollars_per_month.or(defaults.dollars_per_month),
            soft_dollars_per_day: own.soft_dollars_per_day.or(defaults.soft_dollars_per_day),
            soft_dollars_per_month: own
                .soft_dollars_per_month
                .or(defaults.soft_dollars_per_month),
            tools: own.tools.or(defaults.tools),
            read_only: own.read_only.or(defaults.read_only),
        }
    }

    /// Returns the allowed tools as a comma-separated list, if they are limited.
    pub fn tool_list(&self) -> Option<String> {
        self.tools.as_ref().map(|tools| tools.join(","))
    }

    /// Returns the budgets per day and month, in millionths of a dollar.
    pub(super) fn budgets(&self) -> [Option<u64>; 2] {
        // Rounded down, so that a fraction never exceeds the budget.
        [self.dollars_per_day, self.dollars_per_month]
            .map(|budget| budget.map(|dollars| (dollars * 1e6 + 1e-3).floor() as u64))
    }

    /// Returns whether there is a hard limit on spending.
    pub fn has_budget(&self) -> bool {
        self.dollars_per_day.is_some() || self.dollars_per_month.is_some()
    }

    /// Returns whether there is a hard or soft limit on spending.
    pub(super) fn has_spending_limit(&self) -> bool {
        let limits = [
            self.dollars_per_day,
            self.dollars_per_month,
            self.soft_dollars_per_day,
            self.soft_dollars_per_month,
        ];
        limits.iter().any(Option::is_some)
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
            if dollars.is_some_and(|dollars| !(0.0..=Self::MAX_DOLLARS).contains(&dollars)) {
                return Err(LimitsError::Dollars(name));
            }
        }
        let fits = |tools: &Vec<String>| (1..=MAX_TOOLS).contains(&tools.len());
        if !self.tools.as_ref().is_none_or(fits) {
            return Err(LimitsError::Tools);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_leave_other_limits_alone() {
        let limits = TokenLimits::default();
        let first = json!({"requestsPerMinute": 5, "dollarsPerDay": 1.5, "readOnly": true});
        let limits = limits.with_changes(&first).unwrap();
        let limits = limits.with_changes(&json!({"dollarsPerDay": null, "tools": ["a"]}));
        let limits = limits.unwrap();
        assert_eq!(limits.requests_per_minute, Some(5));
        assert_eq!(limits.dollars_per_day, None);
        assert_eq!(limits.tool_list().as_deref(), Some("a"));
        assert_eq!(limits.read_only, Some(true));
    }

    #[test]
    fn rejects_invalid_limits() {
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
            assert!(
                TokenLimits::default().with_changes(&wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn own_limits_override_the_defaults() {
        let limits = |value| TokenLimits::default().with_changes(&value).unwrap();
        let own = limits(json!({"requestsPerMinute": 5}));
        let both = own.or(&limits(json!({"requestsPerMinute": 1, "readOnly": true})));
        assert_eq!(both.requests_per_minute, Some(5));
        assert_eq!(both.read_only, Some(true));
    }
}

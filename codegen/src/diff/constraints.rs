//! Compares keywords with plain values: documentation, enum values and bounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Impact;
use super::comparer::SchemaComparer;
use super::keyword_groups::{LOWER_BOUNDS, UPPER_BOUNDS};
use super::markdown;
use super::normalize::Branch;
use super::schema_path::{Direction, SchemaPath};
use super::types::ValueSetChange;

/// Keywords that hold schemas and are compared as such.
const NESTED: [&str; 2] = ["additionalProperties", "items"];

impl SchemaComparer<'_> {
    /// Compares the documentation of two schemas.
    pub(super) fn compare_docs(
        &mut self,
        old: &BTreeMap<String, Value>,
        new: &BTreeMap<String, Value>,
        path: &SchemaPath,
    ) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (before, after) = (old.get(key), new.get(key));
            if before == after {
                continue;
            }
            let impact = match (key.as_str(), self.direction) {
                // A call that omits the argument now means something else.
                ("default", Direction::Input) if before.is_some() && after.is_some() => {
                    Impact::Breaking
                }
                ("default", Direction::Input) => Impact::Compatible,
                _ => Impact::Documentation,
            };
            self.record(impact, path, docs_text(key, before, after));
        }
    }

    /// Compares the enum values of two branches of the same type.
    pub(super) fn compare_values(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        let (before, after) = match (&old.values, &new.values) {
            (None, None) => return,
            (None, Some(values)) => {
                let text = format!("enum added: only {} allowed", markdown::list(values));
                return self.record_narrowing(text, path);
            }
            (Some(values), None) => {
                let text = format!("enum removed (was {})", markdown::list(values));
                return self.record(Impact::Compatible, path, text);
            }
            (Some(before), Some(after)) => (before, after),
        };
        let added: Vec<&Value> = after
            .iter()
            .filter(|value| !before.contains(value))
            .collect();
        let removed: Vec<&Value> = before
            .iter()
            .filter(|value| !after.contains(value))
            .collect();
        if self.direction == Direction::Output && !removed.is_empty() && !added.is_empty() {
            let (removed, added) = (markdown::list(removed), markdown::list(added));
            let text = format!("enum values replaced: {removed} → {added}");
            let text = self.note_output_break(Impact::Breaking, text);
            return self.record(Impact::Breaking, path, text);
        }
        if !removed.is_empty() {
            let text = format!("enum values removed: {}", markdown::list(removed));
            self.record_narrowing(text, path);
        }
        if !added.is_empty() {
            let label = match (self.direction, added.len()) {
                (Direction::Input, _) => "enum values added",
                (Direction::Output, 1) => "new value",
                (Direction::Output, _) => "new values",
            };
            let text = format!("{label}: {}", markdown::list(added));
            self.record(Impact::Compatible, path, text);
        }
    }

    /// Records that fewer values are accepted or returned.
    fn record_narrowing(&mut self, text: String, path: &SchemaPath) {
        let impact = self.impact_of(ValueSetChange {
            widens: false,
            narrows: true,
        });
        self.record(impact, path, text);
    }

    /// Compares the bounds of two branches and every keyword without a rule of its own.
    pub(super) fn compare_constraints(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        let keys: BTreeSet<&String> = old
            .constraints
            .keys()
            .chain(new.constraints.keys())
            .collect();
        for key in keys {
            if NESTED.contains(&key.as_str()) {
                continue;
            }
            let before = old
                .constraints
                .get(key)
                .filter(|value| is_effective(key, value));
            let after = new
                .constraints
                .get(key)
                .filter(|value| is_effective(key, value));
            if before == after || same_number(before, after) {
                continue;
            }
            let impact = match self.direction {
                Direction::Output => Impact::Documentation,
                Direction::Input if is_tighter(key, before, after) => Impact::Breaking,
                Direction::Input => Impact::Compatible,
            };
            let (before, after) = (markdown::optional(before), markdown::optional(after));
            let text = match key.as_str() {
                "allOf" => "`allOf` parts that cannot be merged changed".to_owned(),
                key => format!("{} {before} → {after}", markdown::prose(key)),
            };
            self.record(impact, path, text);
        }
    }
}

fn docs_text(key: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let text = |value: Option<&Value>| match value {
        None => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    };
    let label = markdown::prose(key);
    match (key, text(old), text(new)) {
        ("deprecated", ..) if new == Some(&json!(true)) => "deprecated".to_owned(),
        ("deprecated", ..) if new.is_none() => "no longer deprecated".to_owned(),
        // An empty default differs from no default, so it is shown as a value.
        ("default", ..) | (_, None, _) | (_, _, None) => {
            let (before, after) = (markdown::optional(old), markdown::optional(new));
            format!("{label} {before} → {after}")
        }
        (_, Some(before), Some(after)) => markdown::text_change(&label, &before, &after),
    }
}

/// Returns whether a bound rejects anything. A minimum length of zero does not.
fn is_effective(key: &str, value: &Value) -> bool {
    match key {
        "minItems" | "minLength" | "minProperties" => value.as_f64() != Some(0.0),
        "uniqueItems" => value != &json!(false),
        _ => true,
    }
}

/// Returns whether both are the same number, such as `1` and `1.0`.
fn same_number(old: Option<&Value>, new: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    number(old).is_some() && number(old) == number(new)
}

/// Returns whether a bound may reject what it accepted before. Assumes so for keywords that it cannot
/// compare.
fn is_tighter(key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    let (Some(before), Some(after)) = (old, new) else {
        return new.is_some();
    };
    let (Some(before), Some(after)) = (before.as_f64(), after.as_f64()) else {
        return true;
    };
    match key {
        _ if LOWER_BOUNDS.contains(&key) => after > before,
        _ if UPPER_BOUNDS.contains(&key) => after < before,
        "multipleOf" => !is_multiple(before, after),
        _ => true,
    }
}

/// Returns whether every multiple of `value` is a multiple of `of`, within floating-point precision.
fn is_multiple(value: f64, of: f64) -> bool {
    let ratio = value / of;
    ratio.is_finite() && (ratio - ratio.round()).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::{is_multiple, is_tighter};
    use serde_json::json;

    #[test]
    fn recognizes_tighter_bounds() {
        let tight = |key: &str, old, new| is_tighter(key, Some(&old), Some(&new));
        assert!(tight("maximum", json!(10), json!(5)));
        assert!(!tight("maximum", json!(5), json!(10)));
        assert!(tight("minLength", json!(1), json!(2)));
        assert!(!tight("minLength", json!(2), json!(1)));
        assert!(tight("pattern", json!("a"), json!("b")));
        assert!(is_tighter("format", None, Some(&json!("uri"))));
        assert!(!is_tighter("format", Some(&json!("uri")), None));
    }

    #[test]
    fn compares_multiples_as_numbers() {
        assert!(is_multiple(10.0, 5.0));
        assert!(is_multiple(0.3, 0.1));
        assert!(!is_multiple(5.0, 10.0));
        assert!(!is_multiple(5.0, 0.0));
    }
}

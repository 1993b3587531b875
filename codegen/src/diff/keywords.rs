//! Keywords that hold plain values: what people read, the listed values and the bounds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Class;
use super::markdown;
use super::normalise::Branch;
use super::spot::{Side, Spot};
use super::types::Shift;
use super::vocabulary::{LOWER, UPPER};
use super::walker::Walker;

/// Keywords that are compared as schemas and not here.
const NESTED: [&str; 2] = ["additionalProperties", "items"];

impl Walker<'_> {
    /// Compares what is written about a place.
    pub(super) fn docs(
        &mut self,
        old: &BTreeMap<String, Value>,
        new: &BTreeMap<String, Value>,
        spot: &Spot,
    ) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (before, after) = (old.get(key), new.get(key));
            if before == after {
                continue;
            }
            let class = match (key.as_str(), self.side) {
                ("default", Side::Argument) => Class::Compatible,
                _ => Class::Documentation,
            };
            self.tell(class, spot, docs_text(key, before, after));
        }
    }

    /// Compares the listed values of two branches of the same type.
    pub(super) fn values(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        let (before, after) = match (&old.values, &new.values) {
            (None, None) => return,
            (None, Some(values)) => {
                let text = format!("enum introduced: only {}", markdown::list(values));
                return self.limited(text, spot);
            }
            (Some(values), None) => {
                let text = format!("enum dropped (was {})", markdown::list(values));
                return self.tell(Class::Compatible, spot, text);
            }
            (Some(before), Some(after)) => (before, after),
        };
        let added: Vec<&Value> = after.iter().filter(|one| !before.contains(one)).collect();
        let removed: Vec<&Value> = before.iter().filter(|one| !after.contains(one)).collect();
        if !removed.is_empty() {
            let text = format!("enum values removed: {}", markdown::list(removed));
            self.limited(text, spot);
        }
        if !added.is_empty() {
            let label = match (self.side, added.len()) {
                (Side::Argument, _) => "enum values added",
                (Side::Output, 1) => "new value",
                (Side::Output, _) => "new values",
            };
            let text = format!("{label}: {}", markdown::list(added));
            self.tell(Class::Compatible, spot, text);
        }
    }

    /// Records that fewer values are left, which only callers mind.
    fn limited(&mut self, text: String, spot: &Spot) {
        let class = self.class(Shift {
            gains: false,
            loses: true,
        });
        self.tell(class, spot, text);
    }

    /// Compares the bounds of two branches, and every keyword that has no rule of its own.
    pub(super) fn bounds(&mut self, old: &Branch, new: &Branch, spot: &Spot) {
        let keys: BTreeSet<&String> = old.rest.keys().chain(new.rest.keys()).collect();
        for key in keys {
            if NESTED.contains(&key.as_str()) {
                continue;
            }
            let before = old.rest.get(key).filter(|value| limits(key, value));
            let after = new.rest.get(key).filter(|value| limits(key, value));
            if before == after || same_number(before, after) {
                continue;
            }
            let class = match self.side {
                Side::Output => Class::Documentation,
                Side::Argument if tightened(key, before, after) => Class::Breaking,
                Side::Argument => Class::Compatible,
            };
            let (before, after) = (markdown::optional(before), markdown::optional(after));
            let text = match key.as_str() {
                "allOf" => "parts of allOf that cannot be merged changed".to_owned(),
                key => format!("{} {before} → {after}", markdown::prose(key)),
            };
            self.tell(class, spot, text);
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
        // A default that is an empty text differs from none, so it is shown as a value.
        ("default", ..) | (_, None, _) | (_, _, None) => {
            let (before, after) = (markdown::optional(old), markdown::optional(new));
            format!("{label} {before} → {after}")
        }
        (_, Some(before), Some(after)) => markdown::text_change(&label, &before, &after),
    }
}

/// Whether a bound refuses anything at all: a least length of zero does not.
fn limits(key: &str, value: &Value) -> bool {
    match key {
        "minItems" | "minLength" | "minProperties" => value.as_f64() != Some(0.0),
        "uniqueItems" => value != &json!(false),
        _ => true,
    }
}

/// `1` and `1.0` are one number.
fn same_number(old: Option<&Value>, new: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    number(old).is_some() && number(old) == number(new)
}

/// Whether a bound may refuse what it accepted before. A change that cannot be judged may.
fn tightened(key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    let (Some(before), Some(after)) = (old, new) else {
        return new.is_some();
    };
    let (Some(before), Some(after)) = (before.as_f64(), after.as_f64()) else {
        return true;
    };
    match key {
        _ if LOWER.contains(&key) => after > before,
        _ if UPPER.contains(&key) => after < before,
        "multipleOf" => !is_multiple(before, after),
        _ => true,
    }
}

/// Whether every multiple of `value` is a multiple of `of`, allowing for binary fractions.
fn is_multiple(value: f64, of: f64) -> bool {
    let ratio = value / of;
    ratio.is_finite() && (ratio - ratio.round()).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::{is_multiple, tightened};
    use serde_json::json;

    #[test]
    fn bounds_have_a_direction() {
        let tight = |key: &str, old, new| tightened(key, Some(&old), Some(&new));
        assert!(tight("maximum", json!(10), json!(5)));
        assert!(!tight("maximum", json!(5), json!(10)));
        assert!(tight("minLength", json!(1), json!(2)));
        assert!(!tight("minLength", json!(2), json!(1)));
        assert!(tight("pattern", json!("a"), json!("b")));
        assert!(tightened("format", None, Some(&json!("uri"))));
        assert!(!tightened("format", Some(&json!("uri")), None));
    }

    #[test]
    fn multiples_are_judged_as_numbers() {
        assert!(is_multiple(10.0, 5.0));
        assert!(is_multiple(0.3, 0.1));
        assert!(!is_multiple(5.0, 10.0));
        assert!(!is_multiple(5.0, 0.0));
    }
}

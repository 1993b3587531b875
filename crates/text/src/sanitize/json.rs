//! Sanitizes all strings of a JSON value.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{clean, truncate};

/// The end of a truncated text.
const CUT_MARK: &str = " […cut]";

/// What sanitizing a value changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SanitizeStats {
    /// The number of removed characters.
    pub removed: usize,
    /// The number of truncated texts.
    pub cut: usize,
}

/// Sanitizes every string of a value, including field names, and truncates strings of more than `max_length`
/// characters.
pub fn clean_json(value: &mut Value, max_length: usize) -> SanitizeStats {
    let mut stats = SanitizeStats::default();
    stats.value(value, max_length);
    stats
}

impl SanitizeStats {
    fn value(&mut self, value: &mut Value, max_length: usize) {
        match value {
            Value::String(text) => {
                if let Some(cleaned) = self.text(text, max_length) {
                    *text = cleaned;
                }
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.value(item, max_length)),
            Value::Object(fields) => {
                fields
                    .values_mut()
                    .for_each(|field| self.value(field, max_length));
                self.names(fields, max_length);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the sanitized text if it differs.
    fn text(&mut self, text: &str, max_length: usize) -> Option<String> {
        let clean = clean(text);
        if let Cow::Owned(clean) = &clean {
            let fewer = text.chars().count().saturating_sub(clean.chars().count());
            self.removed += fewer;
        }
        let (_, is_long) = truncate(&clean, max_length);
        if !is_long {
            return match clean {
                Cow::Borrowed(_) => None,
                Cow::Owned(clean) => (clean != text).then_some(clean),
            };
        }
        self.cut += 1;
        let limit = max_length.saturating_sub(CUT_MARK.chars().count());
        let (short, _) = truncate(&clean, limit);
        Some(format!("{short}{CUT_MARK}"))
    }

    fn names(&mut self, fields: &mut Map<String, Value>, max_length: usize) {
        let mut probe = SanitizeStats::default();
        if fields
            .keys()
            .all(|name| probe.text(name, max_length).is_none())
        {
            return;
        }
        let names: HashSet<String> = fields.keys().cloned().collect();
        for (name, field) in std::mem::take(fields) {
            let cleaned = self.text(&name, max_length);
            // A field must not replace another one whose name only looks the same.
            let is_free = |name: &String| !names.contains(name) && !fields.contains_key(name);
            if cleaned.as_ref().is_none_or(is_free) {
                fields.insert(cleaned.unwrap_or(name), field);
            }
        }
    }
}

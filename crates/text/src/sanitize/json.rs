//! Cleans all strings of a JSON value.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{clean, truncate};

/// Stands at the end of a text that was cut.
const MARK: &str = " […cut]";

/// What cleaning a value did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SanitizeStats {
    /// How many characters fell out.
    pub removed: usize,
    /// How many texts were cut.
    pub cut: usize,
}

/// Cleans every string of a value, names of fields too, and cuts those of more than `longest`
/// characters.
pub fn clean_json(value: &mut Value, longest: usize) -> SanitizeStats {
    let mut cleaned = SanitizeStats::default();
    cleaned.value(value, longest);
    cleaned
}

impl SanitizeStats {
    fn value(&mut self, value: &mut Value, longest: usize) {
        match value {
            Value::String(text) => {
                if let Some(better) = self.text(text, longest) {
                    *text = better;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, longest)),
            Value::Object(fields) => {
                fields
                    .values_mut()
                    .for_each(|field| self.value(field, longest));
                self.names(fields, longest);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A better text, unless it is good as it is.
    fn text(&mut self, text: &str, longest: usize) -> Option<String> {
        let clean = clean(text);
        if let Cow::Owned(clean) = &clean {
            let fewer = text.chars().count().saturating_sub(clean.chars().count());
            self.removed += fewer;
        }
        let (_, long) = truncate(&clean, longest);
        if !long {
            return match clean {
                Cow::Borrowed(_) => None,
                Cow::Owned(clean) => (clean != text).then_some(clean),
            };
        }
        self.cut += 1;
        let room = longest.saturating_sub(MARK.chars().count());
        let (short, _) = truncate(&clean, room);
        Some(format!("{short}{MARK}"))
    }

    fn names(&mut self, fields: &mut Map<String, Value>, longest: usize) {
        let mut probe = SanitizeStats::default();
        if fields
            .keys()
            .all(|name| probe.text(name, longest).is_none())
        {
            return;
        }
        let taken: HashSet<String> = fields.keys().cloned().collect();
        for (name, field) in std::mem::take(fields) {
            let better = self.text(&name, longest);
            // A field must not take the place of another by a name that only looks the same.
            let free = |better: &String| !taken.contains(better) && !fields.contains_key(better);
            if better.as_ref().is_none_or(free) {
                fields.insert(better.unwrap_or(name), field);
            }
        }
    }
}

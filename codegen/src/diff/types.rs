//! Compares the types that two schemas allow.

use super::comparer::SchemaComparer;
use super::markdown;
use super::matching::{self, BranchPairs};
use super::normalize::{Branch, NormalizedSchema};
use super::schema_path::SchemaPath;

/// Whether a change makes a schema accept more values, fewer, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValueSetChange {
    pub(super) widens: bool,
    pub(super) narrows: bool,
}

impl SchemaComparer<'_> {
    /// Compares the allowed types: branch by branch between two unions, otherwise as a whole.
    pub(super) fn compare_types(
        &mut self,
        old: &NormalizedSchema,
        new: &NormalizedSchema,
        pairs: &BranchPairs<'_>,
        path: &SchemaPath,
    ) {
        if old.single().is_none() && new.single().is_none() {
            self.compare_unions(old, new, pairs, path);
            return;
        }
        let uncovered =
            |branch: &&Branch, schema: &NormalizedSchema| !matching::is_covered(branch, schema);
        let mut change = ValueSetChange {
            widens: pairs.added.iter().any(|branch| uncovered(branch, old))
                || (new.nullable && !old.nullable),
            narrows: pairs.removed.iter().any(|branch| uncovered(branch, new))
                || (old.nullable && !new.nullable),
        };
        for (before, after) in &pairs.matched {
            let kinds = type_change(before, after);
            change.widens |= kinds.widens;
            change.narrows |= kinds.narrows;
        }
        let reshaped = !pairs.added.is_empty() || !pairs.removed.is_empty();
        if change != ValueSetChange::default() || reshaped {
            let (before, after) = (self.type_text(old, false), self.type_text(new, true));
            let impact = self.impact_of(change);
            let text = self.note_output_break(impact, format!("type {before} → {after}"));
            self.record(impact, path, text);
        }
    }

    fn compare_unions(
        &mut self,
        old: &NormalizedSchema,
        new: &NormalizedSchema,
        pairs: &BranchPairs<'_>,
        path: &SchemaPath,
    ) {
        if old.nullable != new.nullable {
            let impact = self.impact_of(ValueSetChange {
                widens: new.nullable,
                narrows: old.nullable,
            });
            let verb = if new.nullable {
                "now allows"
            } else {
                "no longer allows"
            };
            let text = self.note_output_break(impact, format!("union {verb} `null`"));
            self.record(impact, path, text);
        }
        for branch in &pairs.removed {
            let impact = self.impact_of(ValueSetChange {
                widens: false,
                narrows: !matching::is_covered(branch, new),
            });
            let label = markdown::code(&matching::branch_label(branch, old, self.old));
            self.record(impact, path, format!("union branch removed: {label}"));
        }
        for branch in &pairs.added {
            // Clients that read a union already distinguish its branches, so only a JSON type that
            // is new here can break them.
            let known = |other: &Branch| matching::same_json_type(other, branch);
            let impact = self.impact_of(ValueSetChange {
                widens: !old.branches.iter().any(known) && !matching::is_covered(branch, old),
                narrows: false,
            });
            let label = markdown::code(&matching::branch_label(branch, new, self.new));
            let text = self.note_output_break(impact, format!("union branch added: {label}"));
            self.record(impact, path, text);
        }
    }

    /// Returns the types of a schema as text.
    pub(super) fn type_text(&self, schema: &NormalizedSchema, is_new: bool) -> String {
        let resolver = if is_new { self.new } else { self.old };
        let mut names: Vec<String> = match schema.single() {
            Some(branch) => vec![kind(branch)],
            None => {
                let label = |branch| matching::branch_label(branch, schema, resolver);
                schema.branches.iter().map(label).collect()
            }
        };
        if schema.nullable {
            names.push("null".to_owned());
        }
        markdown::prose(&names.join(" or "))
    }
}

/// Returns the JSON type of a branch as text.
pub(super) fn kind(branch: &Branch) -> String {
    branch.kind.clone().unwrap_or_else(|| "any".to_owned())
}

/// Returns how the JSON type of a branch changed. Every integer is a number.
pub(super) fn type_change(old: &Branch, new: &Branch) -> ValueSetChange {
    let (widens, narrows) = match (old.kind.as_deref(), new.kind.as_deref()) {
        (before, after) if before == after => (false, false),
        (Some("integer"), Some("number")) | (Some(_), None) => (true, false),
        (Some("number"), Some("integer")) | (None, Some(_)) => (false, true),
        _ => (true, true),
    };
    ValueSetChange { widens, narrows }
}

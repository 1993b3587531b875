//! Compares two versions of one schema.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::markdown;
use super::matching::{self, BranchPairs};
use super::normalize::{Branch, NormalizedSchema, Resolver};
use super::schema_path::{Direction, SchemaPath, definition_name};
use super::types::{ValueSetChange, kind, type_change};
use super::wrappers::{sole_reference, types_beside_reference, unwrap_schema};
use super::{ApiChange, Impact, Subject};

/// Compares two versions of one schema of one operation and collects the changes.
pub(super) struct SchemaComparer<'a> {
    pub(super) direction: Direction,
    pub(super) old: Resolver<'a>,
    pub(super) new: Resolver<'a>,
    /// Facts about the top-level arguments that are not part of their schemas.
    pub(super) arguments: Arguments<'a>,
    operation: &'a str,
    changes: Vec<ApiChange>,
    /// Pairs of definitions already compared. Each pair is reported once, which also ends recursion.
    compared: BTreeSet<(String, String)>,
    /// Pairs of schemas being compared. Stops definitions that recurse at different depths in the
    /// two versions and therefore never meet as a pair in `compared`.
    in_progress: Vec<(String, String)>,
}

impl<'a> SchemaComparer<'a> {
    pub(super) const fn new(
        operation: &'a str,
        direction: Direction,
        (old, new): (&'a Value, &'a Value),
        arguments: Arguments<'a>,
    ) -> Self {
        Self {
            direction,
            old: Resolver::new(old),
            new: Resolver::new(new),
            arguments,
            operation,
            changes: Vec::new(),
            compared: BTreeSet::new(),
            in_progress: Vec::new(),
        }
    }

    /// Compares the two documents and returns the changes without duplicates.
    pub(super) fn run(mut self, old: &Value, new: &Value) -> Vec<ApiChange> {
        self.compare_schemas(old, new, &SchemaPath::root(self.direction));
        let mut seen = BTreeSet::new();
        self.changes.retain(|change| {
            let location = change.definition_path.as_ref().unwrap_or(&change.location);
            seen.insert((change.impact, location.clone(), change.text.clone()))
        });
        self.changes
    }

    /// Records a change.
    pub(super) fn record(&mut self, impact: Impact, path: &SchemaPath, text: String) {
        self.changes.push(ApiChange {
            impact,
            subject: Subject::Operation,
            operation: self.operation.to_owned(),
            location: path.location(),
            definition_path: path.definition_path(),
            text,
        });
    }

    /// Returns the impact of a change in the set of accepted values.
    ///
    /// A narrower input rejects calls that used to work; a wider output contains values that
    /// clients do not expect.
    pub(super) const fn impact_of(&self, change: ValueSetChange) -> Impact {
        let breaks = match self.direction {
            Direction::Input => change.narrows,
            Direction::Output => change.widens,
        };
        if breaks {
            Impact::Breaking
        } else {
            Impact::Compatible
        }
    }

    /// Appends the reason why an output change is breaking, since the call itself still works.
    pub(super) fn note_output_break(&self, impact: Impact, text: String) -> String {
        if self.direction == Direction::Output && impact == Impact::Breaking {
            format!("{text} (breaks clients that rely on it)")
        } else {
            text
        }
    }

    /// Compares two schemas.
    pub(super) fn compare_schemas(&mut self, old: &Value, new: &Value, path: &SchemaPath) {
        let pair = (old.to_string(), new.to_string());
        if self.in_progress.contains(&pair) {
            return;
        }
        self.in_progress.push(pair);
        let (before, after) = (self.old.normalize(old), self.new.normalize(new));
        let (left, right) = (unwrap_schema(old), unwrap_schema(new));
        match (sole_reference(&left), sole_reference(&right)) {
            (Some(from), Some(to)) => {
                self.compare_docs(&left.docs, &right.docs, path);
                let types = (
                    types_beside_reference(&left),
                    types_beside_reference(&right),
                );
                self.compare_sibling_types(&types.0, &types.1, &after, path);
                if left.nullable != right.nullable && before.nullable != after.nullable {
                    self.compare_types(&before, &after, &BranchPairs::default(), path);
                }
                self.compare_definitions(from, to, path);
            }
            _ => self.compare_normalized(&before, &after, path),
        }
        self.in_progress.pop();
    }

    /// Reports a `type` next to a reference that contradicts the referenced definition, because
    /// comparing the definitions does not show it.
    fn compare_sibling_types(
        &mut self,
        old: &[&str],
        new: &[&str],
        schema: &NormalizedSchema,
        path: &SchemaPath,
    ) {
        let known = |kind: &&str| {
            let fits = |branch: &Branch| branch.kind.as_deref().is_none_or(|own| own == *kind);
            schema.branches.iter().any(fits)
        };
        if old != new && !new.iter().all(known) {
            let new = markdown::prose(&new.join(" or "));
            let text = format!("type is now {new}, which contradicts the referenced definition");
            self.record(Impact::Breaking, path, text);
        }
    }

    /// Compares two definitions.
    ///
    /// A definition that changed inside or was renamed is reported once. A reference that switched
    /// to another definition is reported wherever it occurs.
    fn compare_definitions(&mut self, old: &str, new: &str, path: &SchemaPath) {
        let in_both =
            |name: &str| self.old.target(name).is_some() && self.new.target(name).is_some();
        let switched = old != new && (in_both(old) || in_both(new));
        if !switched && !self.compared.insert((old.to_owned(), new.to_owned())) {
            return;
        }
        match (self.old.target(old), self.new.target(new)) {
            (Some(before), Some(after)) if switched => self.compare_schemas(before, after, path),
            (Some(before), Some(after)) => {
                self.compare_schemas(before, after, &path.definition(new));
            }
            (None, None) if old == new => {}
            _ => {
                let (left, right) = (definition_name(old), definition_name(new));
                let (left, right) = (markdown::code(left), markdown::code(right));
                let text = format!("schema {left} → {right}, one of which is undefined");
                self.record(Impact::Breaking, path, text);
            }
        }
    }

    fn compare_normalized(
        &mut self,
        old: &NormalizedSchema,
        new: &NormalizedSchema,
        path: &SchemaPath,
    ) {
        let unions = old.single().is_none() && new.single().is_none();
        if unions || both_references(old.single(), new.single()) {
            self.compare_docs(&old.docs, &new.docs, path);
        } else {
            self.compare_docs(&old.all_docs(), &new.all_docs(), path);
        }
        let pairs = matching::pair_branches(old, new, self.old, self.new);
        self.compare_types(old, new, &pairs, path);
        for (before, after) in &pairs.matched {
            let branch_path = self.branch_path(after, (old, new), path);
            if unions && type_change(before, after) != ValueSetChange::default() {
                let impact = self.impact_of(type_change(before, after));
                let text = format!("type {} → {}", kind(before), kind(after));
                let text = self.note_output_break(impact, text);
                self.record(impact, &branch_path, text);
            }
            self.compare_branches(before, after, &branch_path, unions);
        }
    }

    /// Returns the path of a branch.
    ///
    /// Branches of the whole input schema get no label: a caller sees one set of arguments,
    /// whichever combinations of them are allowed.
    fn branch_path(
        &self,
        branch: &Branch,
        (old, new): (&NormalizedSchema, &NormalizedSchema),
        path: &SchemaPath,
    ) -> SchemaPath {
        let whole_input = self.direction == Direction::Input && path.is_root();
        if whole_input || matching::is_only_branch_of_its_type(branch, old, new) {
            path.clone()
        } else {
            path.branch(&matching::branch_label(branch, new, self.new))
        }
    }

    /// Compares two versions of one branch.
    fn compare_branches(&mut self, old: &Branch, new: &Branch, path: &SchemaPath, in_unions: bool) {
        if in_unions && both_references(Some(old), Some(new)) {
            self.compare_docs(&old.docs, &new.docs, path);
        } else if in_unions {
            self.compare_docs(&old.all_docs(), &new.all_docs(), path);
        }
        match (&old.reference, &new.reference) {
            (Some(before), Some(after)) => self.compare_definitions(before, after, path),
            // With different types there is nothing to compare inside.
            _ if !matching::same_json_type(old, new) => {}
            _ => self.compare_contents(old, new, path),
        }
    }

    /// Compares the constraints of two branches of the same type.
    fn compare_contents(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        self.compare_values(old, new, path);
        self.compare_constraints(old, new, path);
        self.compare_properties(old, new, path);
        self.compare_additional_properties(old, new, path);
        self.compare_items(old, new, path);
    }

    /// Compares the elements of two arrays.
    fn compare_items(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        let (before, after) = (old.constraints.get("items"), new.constraints.get("items"));
        if before.is_some() || after.is_some() {
            let any = json!(true);
            let (before, after) = (before.unwrap_or(&any), after.unwrap_or(&any));
            self.compare_schemas(before, after, &path.items());
        }
    }

    /// Compares what two objects allow besides their declared properties.
    fn compare_additional_properties(&mut self, old: &Branch, new: &Branch, path: &SchemaPath) {
        let any = json!(true);
        let schema_of = |branch: &Branch| match branch.constraints.get("additionalProperties") {
            None => any.clone(),
            Some(Value::Object(keywords)) if keywords.is_empty() => any.clone(),
            Some(schema) => schema.clone(),
        };
        let (before, after) = (schema_of(old), schema_of(new));
        if before == after && before.is_boolean() {
            return;
        }
        let nothing = json!(false);
        if before != nothing && after != nothing {
            self.compare_schemas(&before, &after, &path.values());
            return;
        }
        let text = format!(
            "additionalProperties {} → {}",
            markdown::value(&before),
            markdown::value(&after)
        );
        // Clients lose something only if the spec described the additional properties.
        let impact = match (self.direction, before.is_object(), after.is_object()) {
            (Direction::Input, ..) => self.impact_of(ValueSetChange {
                widens: before == nothing,
                narrows: after == nothing,
            }),
            (Direction::Output, true, _) => Impact::Breaking,
            (Direction::Output, _, true) => Impact::Compatible,
            (Direction::Output, false, false) => Impact::Documentation,
        };
        let text = self.note_output_break(impact, text);
        self.record(impact, path, text);
    }
}

/// Returns whether both branches are references, whose docs are compared with the definitions.
fn both_references(old: Option<&Branch>, new: Option<&Branch>) -> bool {
    let is_reference =
        |branch: Option<&Branch>| branch.is_some_and(|found| found.reference.is_some());
    is_reference(old) && is_reference(new)
}

//! Compares tools and sets of tools, and explains what a change of the API does to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::comparer::SchemaComparer;
use super::markdown::{self, code};
use super::schema_path::Direction;
use super::{ApiChange, ApiSnapshot, Impact, OperationSnapshots, Subject};
use crate::surface_check::value_problem;

/// Compares the tools and sets of two versions.
pub(super) fn compare(old: &ApiSnapshot, new: &ApiSnapshot) -> Vec<ApiChange> {
    let mut changes = Vec::new();
    let (Some(before), Some(after)) = (&old.tools, &new.tools) else {
        return changes;
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let mut change = ToolComparer {
            name,
            operations: &new.operations,
            changes: Vec::new(),
        };
        match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => change.compare(before, after),
            (Some(before), None) => change.removed(before),
            (None, Some(after)) => {
                let text = format!("added ({} tokens)", tokens(after));
                change.record(Impact::Compatible, text);
            }
            (None, None) => {}
        }
        changes.extend(change.changes);
    }
    if let (Some(sets_before), Some(sets_after)) = (&old.sets, &new.sets) {
        let names: BTreeSet<&String> = sets_before.keys().chain(sets_after.keys()).collect();
        for name in names {
            let before = sets_before.get(name).map(|names| (names, before));
            let after = sets_after.get(name).map(|names| (names, after));
            changes.extend(compare_set(name, before, after));
        }
    }
    changes
}

type Tools = BTreeMap<String, Value>;

fn tokens(tool: &Value) -> u64 {
    tool.get("tokens")
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn plan_text<'a>(tool: &'a Value, key: &str) -> &'a str {
    let plan = tool.get("plan").and_then(|plan| plan.get(key));
    plan.and_then(Value::as_str).unwrap_or_default()
}

/// Compares two versions of one set.
fn compare_set(
    name: &str,
    old: Option<(&Vec<String>, &Tools)>,
    new: Option<(&Vec<String>, &Tools)>,
) -> Vec<ApiChange> {
    let mut changes = Vec::new();
    let mut record = |impact, text| {
        changes.push(ApiChange {
            impact,
            subject: Subject::Set,
            operation: name.to_owned(),
            location: "set".to_owned(),
            definition_path: None,
            text,
        });
    };
    let size = |(names, tools): (&Vec<String>, &Tools)| -> u64 {
        names
            .iter()
            .filter_map(|name| tools.get(name))
            .map(tokens)
            .sum()
    };
    match (old, new) {
        (Some(_), None) => record(Impact::Breaking, "removed".to_owned()),
        (None, Some(after)) => {
            let text = format!("added ({} tools, {} tokens)", after.0.len(), size(after));
            record(Impact::Compatible, text);
        }
        (Some(before), Some(after)) => {
            for (names, others, impact, verb) in [
                (before.0, after.0, Impact::Breaking, "no longer contains"),
                (after.0, before.0, Impact::Compatible, "now contains"),
            ] {
                let names: Vec<String> = names
                    .iter()
                    .filter(|name| !others.contains(name))
                    .map(|name| code(name))
                    .collect();
                if !names.is_empty() {
                    record(impact, format!("{verb} {}", names.join(", ")));
                }
            }
            let (before, after) = (size(before), size(after));
            if before != after {
                record(Impact::Documentation, format!("tokens {before} → {after}"));
            }
        }
        (None, None) => {}
    }
    changes
}

/// Compares two versions of one tool.
struct ToolComparer<'a> {
    name: &'a str,
    /// The operations of the new version.
    operations: &'a OperationSnapshots,
    changes: Vec<ApiChange>,
}

impl ToolComparer<'_> {
    fn record(&mut self, impact: Impact, text: String) {
        self.changes.push(ApiChange {
            impact,
            subject: Subject::Tool,
            operation: self.name.to_owned(),
            location: "tool".to_owned(),
            definition_path: None,
            text,
        });
    }

    fn removed(&mut self, tool: &Value) {
        let operation = plan_text(tool, "operation");
        let text = if operation.is_empty() || self.operations.contains_key(operation) {
            "removed".to_owned()
        } else {
            format!("removed: operation {} is gone", code(operation))
        };
        self.record(Impact::Breaking, text);
    }

    fn compare(&mut self, old: &Value, new: &Value) {
        if old == new {
            return;
        }
        let follows_operation = plan_text(new, "kind") == "operation";
        // The operation's own changes say the same.
        if !follows_operation {
            self.compare_texts(old, new);
            self.compare_arguments(old, new);
            self.compare_plans(old, new);
        }
        let (before, after) = (tokens(old), tokens(new));
        if before != after {
            self.record(Impact::Documentation, format!("tokens {before} → {after}"));
        }
    }

    fn compare_texts(&mut self, old: &Value, new: &Value) {
        for key in ["title", "description"] {
            let text = |tool: &Value| {
                let text = tool.pointer(&format!("/definition/{key}"));
                text.and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let (before, after) = (text(old), text(new));
            if before != after {
                let text = markdown::text_change(key, &before, &after);
                self.record(Impact::Documentation, text);
            }
        }
        let hints = |tool: &Value| tool.pointer("/definition/annotations").cloned();
        let (before, after) = (hints(old), hints(new));
        if before != after {
            let (before, after) = (
                markdown::optional(before.as_ref()),
                markdown::optional(after.as_ref()),
            );
            self.record(
                Impact::Compatible,
                format!("annotations {before} → {after}"),
            );
        }
    }

    fn compare_arguments(&mut self, old: &Value, new: &Value) {
        let any = json!({});
        let schema = |tool: &Value| {
            let schema = tool.pointer("/definition/inputSchema");
            schema.unwrap_or(&any).clone()
        };
        let (before, after) = (schema(old), schema(new));
        let comparer = SchemaComparer::new(
            self.name,
            Direction::Input,
            (&before, &after),
            Arguments::NONE,
        );
        let mut changes = comparer.run(&before, &after);
        for change in &mut changes {
            change.subject = Subject::Tool;
        }
        self.changes.extend(changes);
    }

    /// Compares what the tool sends by itself.
    fn compare_plans(&mut self, old: &Value, new: &Value) {
        let operation = plan_text(new, "operation").to_owned();
        let moved = plan_text(old, "operation");
        if moved != operation {
            let text = format!("calls {} instead of {}", code(&operation), code(moved));
            self.record(Impact::Breaking, text);
        }
        self.compare_presets(&operation, &old["plan"], &new["plan"], "");
        let entries = |tool: &Value| -> BTreeMap<String, Value> {
            let entries = tool.pointer("/plan/entries").and_then(Value::as_array);
            let named = entries.into_iter().flatten().filter_map(|entry| {
                let name = entry.get("name")?.as_str()?;
                Some((name.to_owned(), entry.clone()))
            });
            named.collect()
        };
        let after = entries(new);
        for (name, before) in entries(old) {
            if let Some(after) = after.get(&name) {
                let operation = after.get("operation").and_then(Value::as_str);
                let place = format!(" in {}", code(&name));
                self.compare_presets(operation.unwrap_or_default(), &before, after, &place);
            }
        }
    }

    fn compare_presets(&mut self, operation: &str, old: &Value, new: &Value, place: &str) {
        let schema = self.operations.get(operation);
        let schema = schema
            .and_then(|snapshot| snapshot.get("inputSchema"))
            .cloned();
        let (before, after) = (presets(old), presets(new));
        for ((kind, path), value) in &before {
            let now = after.get(&(kind.clone(), path.clone()));
            if now == Some(value) {
                continue;
            }
            let owner = code(operation);
            let problem = schema
                .as_ref()
                .and_then(|schema| value_problem(schema, &owner, path, value));
            match problem {
                Some(problem) => {
                    let text = format!(
                        "no longer sends {} as {kind}{place}: {}",
                        code(path),
                        markdown::escape_stray(&problem)
                    );
                    self.record(Impact::Breaking, text);
                }
                None => {
                    let (before, after) = (markdown::value(value), markdown::optional(now));
                    let text = format!("{kind} {} {before} → {after}{place}", code(path));
                    self.record(Impact::Breaking, text);
                }
            }
        }
        for ((kind, path), value) in &after {
            if !before.contains_key(&(kind.clone(), path.clone())) {
                let text = format!(
                    "now sends {} {} as {kind}{place}",
                    code(path),
                    markdown::value(value)
                );
                self.record(Impact::Compatible, text);
            }
        }
    }
}

/// Returns the values that a plan sends by itself, by their kind and path.
fn presets(plan: &Value) -> BTreeMap<(String, String), Value> {
    let mut all = BTreeMap::new();
    let mut add = |kind: &str, values: Option<&Value>| {
        let values: Option<&Map<String, Value>> = values.and_then(Value::as_object);
        for (path, value) in values.into_iter().flatten() {
            all.insert((kind.to_owned(), path.clone()), value.clone());
        }
    };
    add("a fixed value", plan.get("fixed"));
    add("a default", plan.get("defaults"));
    let levels = plan.get("levels").and_then(Value::as_object);
    for (level, values) in levels.into_iter().flatten() {
        add(&format!("a value of level `{level}`"), Some(values));
    }
    all
}

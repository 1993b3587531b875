//! Compares the commands of the command line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::markdown::{self, code};
use super::{ApiChange, ApiSnapshot, Impact, OperationSnapshots, Subject};
use crate::surface_check::value_problem;

/// What a property of a command that is on or off does, and whether scripts notice its loss and its addition.
const SWITCHES: [(&str, &str, Impact, Impact); 5] = [
    (
        "wait",
        "waits for the end of the work",
        Impact::Breaking,
        Impact::Breaking,
    ),
    (
        "all",
        "reads all pages",
        Impact::Breaking,
        Impact::Compatible,
    ),
    (
        "lines",
        "writes one line for each entry into a pipe",
        Impact::Breaking,
        Impact::Breaking,
    ),
    (
        "stream",
        "shows the response while it is written",
        Impact::Compatible,
        Impact::Compatible,
    ),
    (
        "documents",
        "shows whole texts instead of a table",
        Impact::Compatible,
        Impact::Compatible,
    ),
];

/// Compares the commands of two versions.
pub(super) fn compare(old: &ApiSnapshot, new: &ApiSnapshot) -> Vec<ApiChange> {
    let (Some(before), Some(after)) = (&old.commands, &new.commands) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    let (plans_before, plans_after) = (by_name(before, "plans"), by_name(after, "plans"));
    let names: BTreeSet<&str> = plans_before
        .keys()
        .chain(plans_after.keys())
        .copied()
        .collect();
    for name in names {
        let mut comparer = CommandComparer::new(name, &new.operations);
        match (plans_before.get(name), plans_after.get(name)) {
            (Some(before), Some(after)) => comparer.compare(before, after),
            (Some(before), None) => comparer.removed(before),
            (None, Some(_)) => comparer.record(Impact::Compatible, "added".to_owned()),
            (None, None) => {}
        }
        changes.extend(comparer.changes);
    }
    for (key, name, about) in [
        ("batch", "batch run", "the calls that it makes"),
        ("account", "whoami", "the operation that it calls"),
    ] {
        let mut comparer = CommandComparer::new(name, &new.operations);
        comparer.whole(before.get(key), after.get(key), about);
        changes.extend(comparer.changes);
    }
    for (group, text) in texts(after, "groups") {
        let former = texts(before, "groups").remove(group);
        if let Some(former) = former.filter(|former| *former != text) {
            let mut comparer = CommandComparer::new(group, &new.operations);
            let text = markdown::text_change("description", former, text);
            comparer.record(Impact::Documentation, text);
            changes.extend(comparer.changes);
        }
    }
    changes
}

/// Returns the objects of a list by their name.
fn by_name<'v>(owner: &'v Value, key: &str) -> BTreeMap<&'v str, &'v Value> {
    let named = list(owner, key).iter();
    named.map(|entry| (text(entry, "name"), entry)).collect()
}

fn list<'v>(owner: &'v Value, key: &str) -> &'v [Value] {
    let list = owner.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(owner: &'v Value, key: &str) -> &'v str {
    owner.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'v>(owner: &'v Value, key: &str) -> BTreeMap<&'v str, &'v str> {
    let texts = owner.get(key).and_then(Value::as_object);
    let texts = texts.into_iter().flatten();
    texts
        .filter_map(|(name, text)| Some((name.as_str(), text.as_str()?)))
        .collect()
}

fn is_on(owner: &Value, key: &str) -> bool {
    owner.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Compares two versions of one command.
struct CommandComparer<'a> {
    name: &'a str,
    /// The operations of the new version.
    operations: &'a OperationSnapshots,
    changes: Vec<ApiChange>,
}

impl<'a> CommandComparer<'a> {
    fn new(name: &'a str, operations: &'a OperationSnapshots) -> Self {
        Self {
            name,
            operations,
            changes: Vec::new(),
        }
    }

    fn record(&mut self, impact: Impact, text: String) {
        self.changes.push(ApiChange {
            impact,
            subject: Subject::Command,
            operation: self.name.to_owned(),
            location: "command".to_owned(),
            definition_path: None,
            text,
        });
    }

    fn removed(&mut self, command: &Value) {
        let operation = text(command, "operation");
        let text = if self.operations.contains_key(operation) {
            "removed".to_owned()
        } else {
            format!("removed: operation {} is gone", code(operation))
        };
        self.record(Impact::Breaking, text);
    }

    /// Compares a command that is described as a whole.
    fn whole(&mut self, old: Option<&Value>, new: Option<&Value>, about: &str) {
        match (old, new) {
            (Some(_), None) => self.record(Impact::Breaking, "removed".to_owned()),
            (None, Some(_)) => self.record(Impact::Compatible, "added".to_owned()),
            (Some(old), Some(new)) if old != new => {
                let (old, new) = (markdown::value(old), markdown::value(new));
                self.record(Impact::Breaking, format!("{about}: {old} → {new}"));
            }
            _ => {}
        }
    }

    fn compare(&mut self, old: &Value, new: &Value) {
        if old == new {
            return;
        }
        let (before, after) = (text(old, "operation"), text(new, "operation"));
        if before != after {
            let text = format!("calls {} instead of {}", code(after), code(before));
            self.record(Impact::Breaking, text);
        }
        self.compare_arguments(list(old, "arguments"), list(new, "arguments"));
        self.compare_flags(old, new);
        self.compare_presets(after, old, new);
        for (key, what, lost, gained) in SWITCHES {
            match (is_on(old, key), is_on(new, key)) {
                (true, false) => self.record(lost, format!("no longer {what}")),
                (false, true) => self.record(gained, format!("now {what}")),
                _ => {}
            }
        }
        self.compare_output(old, new);
        for (key, label) in [("about", "description"), ("example", "example")] {
            let (before, after) = (text(old, key), text(new, key));
            if before != after {
                let text = markdown::text_change(label, before, after);
                self.record(Impact::Documentation, text);
            }
        }
    }

    /// Compares positional arguments. Callers know their order, not their names.
    fn compare_arguments(&mut self, old: &[Value], new: &[Value]) {
        for index in 0..old.len().max(new.len()) {
            let place = format!("argument {}", index + 1);
            match (old.get(index), new.get(index)) {
                (Some(before), Some(after)) => self.compare_argument(&place, before, after),
                (Some(before), None) => {
                    let text = format!("{place} ({}) removed", code(text(before, "name")));
                    self.record(Impact::Breaking, text);
                }
                (None, Some(after)) => self.added(&place, after),
                (None, None) => {}
            }
        }
    }

    fn compare_flags(&mut self, old: &Value, new: &Value) {
        let (before, after) = (by_name(old, "flags"), by_name(new, "flags"));
        for (name, flag) in &before {
            let place = format!("flag {}", code(&format!("--{name}")));
            match after.get(name) {
                Some(now) => {
                    self.compare_argument(&place, flag, now);
                    self.compare_short(&place, text(flag, "short"), text(now, "short"));
                }
                None => self.record(Impact::Breaking, format!("{place} removed")),
            }
        }
        for (name, flag) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            self.added(&format!("flag {}", code(&format!("--{name}"))), flag);
        }
    }

    fn added(&mut self, place: &str, argument: &Value) {
        if is_on(argument, "required") {
            self.record(Impact::Breaking, format!("{place} added, and is required"));
        } else {
            self.record(Impact::Compatible, format!("{place} added"));
        }
    }

    /// Compares an argument or a flag, apart from its name.
    fn compare_argument(&mut self, place: &str, old: &Value, new: &Value) {
        for (key, verb) in [
            ("to", "sets"),
            ("takes", "takes"),
            ("value", "sends"),
            ("entry", "fills the field"),
        ] {
            let (before, after) = (old.get(key), new.get(key));
            if before != after {
                let (before, after) = (markdown::optional(before), markdown::optional(after));
                let text = format!("{place} {verb} {after} instead of {before}");
                self.record(Impact::Breaking, text);
            }
        }
        match (is_on(old, "required"), is_on(new, "required")) {
            (false, true) => self.record(Impact::Breaking, format!("{place} is now required")),
            (true, false) => self.record(Impact::Compatible, format!("{place} is now optional")),
            _ => {}
        }
        let (before, after) = (text(old, "help"), text(new, "help"));
        if before != after {
            let label = format!("{place}: help");
            let text = markdown::text_change(&label, before, after);
            self.record(Impact::Documentation, text);
        }
        for (key, what) in [("values", "offered values"), ("ids", "source of ids")] {
            let (before, after) = (old.get(key), new.get(key));
            if before != after {
                let (before, after) = (markdown::optional(before), markdown::optional(after));
                let text = format!("{place}: {what} {before} → {after}");
                self.record(Impact::Documentation, text);
            }
        }
    }

    fn compare_short(&mut self, place: &str, old: &str, new: &str) {
        if old == new {
            return;
        }
        let short = |name: &str| code(&format!("-{name}"));
        if !old.is_empty() {
            let text = format!("{place}: short form {} removed", short(old));
            self.record(Impact::Breaking, text);
        }
        if !new.is_empty() {
            let text = format!("{place}: short form {} added", short(new));
            self.record(Impact::Compatible, text);
        }
    }

    /// Compares what the command sends by itself.
    fn compare_presets(&mut self, operation: &str, old: &Value, new: &Value) {
        let schema = self.operations.get(operation);
        let schema = schema.and_then(|snapshot| snapshot.get("inputSchema"));
        let (before, after) = (presets(old), presets(new));
        for ((kind, path), value) in &before {
            let now = after.get(&(*kind, *path));
            if now == Some(value) {
                continue;
            }
            let owner = code(operation);
            let problem = schema.and_then(|schema| value_problem(schema, &owner, path, value));
            let text = match problem {
                Some(problem) => {
                    let problem = markdown::escape_stray(&problem);
                    format!("no longer sends {} as {kind}: {problem}", code(path))
                }
                None => {
                    let (before, after) =
                        (markdown::value(value), markdown::optional(now.copied()));
                    format!("{kind} {} {before} → {after}", code(path))
                }
            };
            self.record(Impact::Breaking, text);
        }
        for ((kind, path), value) in &after {
            if !before.contains_key(&(*kind, *path)) {
                let value = markdown::value(value);
                let text = format!("now sends {} {value} as {kind}", code(path));
                self.record(Impact::Compatible, text);
            }
        }
    }

    /// Compares what the command prints.
    fn compare_output(&mut self, old: &Value, new: &Value) {
        let titles = |command| -> Vec<&str> {
            let columns = list(command, "columns").iter();
            columns.map(|column| text(column, "title")).collect()
        };
        let (before, after) = (titles(old), titles(new));
        let columns = |titles: &[&str]| {
            let codes: Vec<String> = titles.iter().map(|title| code(title)).collect();
            markdown_or_none(&codes)
        };
        if before != after {
            let text = format!("columns {} → {}", columns(&before), columns(&after));
            self.record(Impact::Compatible, text);
        } else if old.get("columns") != new.get("columns") {
            let text = "columns show other fields".to_owned();
            self.record(Impact::Compatible, text);
        }
        for (key, what) in [("text", "text"), ("sources", "sources")] {
            let (before, after) = (old.get(key), new.get(key));
            if before != after {
                let (before, after) = (markdown::optional(before), markdown::optional(after));
                let text = format!("{what} shown from {after} instead of {before}");
                self.record(Impact::Compatible, text);
            }
        }
    }
}

fn markdown_or_none(codes: &[String]) -> String {
    if codes.is_empty() {
        "none".to_owned()
    } else {
        codes.join(", ")
    }
}

/// Returns the values that a command sends by itself, by their kind and path.
fn presets(command: &Value) -> BTreeMap<(&'static str, &str), &Value> {
    let fixed = command.get("fixed").and_then(Value::as_object);
    let fixed = fixed
        .into_iter()
        .flatten()
        .map(|(path, value)| (("a fixed value", path.as_str()), value));
    let defaults = list(command, "defaults").iter().filter_map(|default| {
        let value = default.get("value")?;
        Some((("a default", text(default, "path")), value))
    });
    fixed.chain(defaults).collect()
}

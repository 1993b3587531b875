//! Builds tools that call operations under their own names.

use std::collections::BTreeMap;

use exa_mcp_model::{LongRunning, ToolDefinition, ToolPlan, ToolhostEntry, ToolhostRole};
use serde_json::json;

use super::definitions::HostTool;
use super::presets::check_presets;
use super::{Tool, common_hints, new_tool};
use crate::error::Findings;
use crate::model::{Model, Operation};
use crate::surface_check::{Place, Report, has_property, locate, members, unfilled};

/// The operation that every toolhost has.
const LIST: &str = "list_operations";

/// Builds a toolhost. Omits and reports entries whose operations no longer exist.
pub(super) fn host_tool(host: &HostTool, model: &Model, findings: &mut Findings) -> Option<Tool> {
    let mut report = Report::new(findings, format!("tool {}", host.name));
    let mut entries: Vec<ToolhostEntry> = Vec::new();
    for entry in &host.operations {
        if entry.name == LIST || entries.iter().any(|known| known.name == entry.name) {
            report.omit(format!(
                "a second operation is called `{}`; omitted",
                entry.name
            ));
            continue;
        }
        if let Some(problem) = entry_problem(entry, model) {
            report.omit(format!("{problem}; `{}` omitted", entry.name));
            continue;
        }
        entries.push(complete_entry(entry.clone(), model));
    }
    let operations: Vec<&Operation> = entries
        .iter()
        .filter_map(|entry| model.find(entry.operation.as_ref()?))
        .collect();
    if operations.is_empty() {
        report.omit("its operations no longer exist; tool omitted");
        return None;
    }
    let known = entries.clone();
    for entry in &mut entries {
        check_entry(entry, &known, model, &mut report);
    }
    let names = entries.iter().map(|entry| entry.name.as_str());
    let names: Vec<&str> = [LIST].into_iter().chain(names).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "operation": {"type": "string", "enum": names},
            "params": {"type": "object"},
        },
        "required": ["operation"],
    });
    let definition = ToolDefinition {
        name: host.name.clone(),
        title: host.title.clone(),
        description: host.description.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(new_tool(definition, ToolPlan::Toolhost { entries }))
}

/// Returns why an entry cannot be offered, if so.
fn entry_problem(entry: &ToolhostEntry, model: &Model) -> Option<String> {
    match (&entry.operation, &entry.unsupported) {
        (None, None) if entry.tool.is_some() => None,
        (None, None) => Some("it has neither `operation` nor `unsupported`".to_owned()),
        (Some(_), Some(_)) => Some("it has both `operation` and `unsupported`".to_owned()),
        (Some(name), None) if model.find(name).is_none() => {
            Some(format!("`{name}` no longer exists"))
        }
        (Some(name), None)
            if model
                .find(name)
                .is_some_and(|it| model.only_set(it).is_some()) =>
        {
            Some(format!("`{name}` belongs to a set of its own"))
        }
        _ => None,
    }
}

/// Completes an entry from the long-running marker of its operation.
fn complete_entry(mut entry: ToolhostEntry, model: &Model) -> ToolhostEntry {
    let operation = entry.operation.clone();
    let marked = |operation: &'_ Operation| -> Option<LongRunning> {
        operation.behavior.long_running.clone()
    };
    for (name, marker) in model
        .operations
        .iter()
        .filter_map(|operation| Some((operation.name.as_str(), marked(operation)?)))
    {
        let named = [
            Some(name),
            Some(marker.get.as_str()),
            marker.cancel.as_deref(),
        ];
        if named.contains(&operation.as_deref()) && entry.final_states.is_empty() {
            entry.final_states = marker.final_states.clone();
        }
        if operation.as_deref() == Some(name) && entry.follow.is_empty() {
            entry.follow = marker.arguments.clone();
        }
    }
    entry
}

/// Removes what does not fit the operations.
fn check_entry(
    entry: &mut ToolhostEntry,
    known: &[ToolhostEntry],
    model: &Model,
    report: &mut Report<'_>,
) {
    let name = entry.name.clone();
    let Some(operation) = entry.operation.as_ref().and_then(|it| model.find(it)) else {
        return;
    };
    if !entry.parameters.is_empty() {
        report.omit(format!(
            "`{name}` has an operation, so its `parameters` are ignored"
        ));
        entry.parameters.clear();
    }
    entry.rename.retain(|own, target| {
        let problem = if operation.has_argument(own) && own != target {
            Some(format!("`{}` has an argument `{own}`", operation.name))
        } else {
            let missing = !locate(&operation.input_schema, target).exists();
            missing.then(|| format!("`{}` has no argument `{target}`", operation.name))
        };
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; `{own}` of `{name}` omitted"));
        }
        problem.is_none()
    });
    entry.spread.retain(|own| {
        let taken = operation.has_argument(own);
        if taken {
            report.omit(format!(
                "`{}` has an argument `{own}`; `{name}` does not spread it",
                operation.name
            ));
        }
        !taken
    });
    for (values, kind) in [
        (&mut entry.defaults, "default"),
        (&mut entry.fixed, "fixed"),
    ] {
        check_presets(
            values,
            operation,
            &format!("{kind} value of `{name}`"),
            report,
        );
    }
    check_states(entry, operation, report);
    check_following(entry, operation, known, model, report);
}

/// Removes final states that the status cannot have.
fn check_states(entry: &mut ToolhostEntry, operation: &Operation, report: &mut Report<'_>) {
    if entry.role != ToolhostRole::Check {
        return;
    }
    let schema = &operation.output_schema;
    // A list shows the status of its newest entry.
    let paths = ["status", "data[].status"];
    let place = paths
        .into_iter()
        .map(|path| locate(schema, path))
        .find(Place::exists);
    let Some(place) = place else {
        report.omit(format!(
            "the response of `{}` has no field `status`; `{}` cannot tell when the work is complete",
            operation.name, entry.name
        ));
        return;
    };
    let Place::Declared(fields) = &place else {
        return;
    };
    let Some(members) = members(schema, fields) else {
        return;
    };
    let label = fields.iter().find_map(|field| field.label.clone());
    let label = label.unwrap_or_else(|| format!("{} status", operation.name));
    let name = &entry.name;
    entry.final_states.retain(|state| {
        let known = members.iter().any(|member| member == state);
        if !known {
            report.omit(format!(
                "`{state}` is not among the values of `{label}`; final state of `{name}` omitted"
            ));
        }
        known
    });
}

/// Returns the arguments that follow the work under the names of the operation of an entry.
fn renamed(follow: &BTreeMap<String, String>, entry: &ToolhostEntry) -> BTreeMap<String, String> {
    let names = follow.iter().map(|(name, source)| {
        let name = entry.rename.get(name).unwrap_or(name);
        (name.clone(), source.clone())
    });
    names.collect()
}

/// Removes the entries that follow the work if they do not exist or cannot be called.
fn check_following(
    entry: &mut ToolhostEntry,
    operation: &Operation,
    known: &[ToolhostEntry],
    model: &Model,
    report: &mut Report<'_>,
) {
    let name = entry.name.clone();
    entry.follow.retain(|argument, source| {
        let missing = match source.strip_prefix('$') {
            Some(own) => !operation.has_argument(own) && !entry.rename.contains_key(own),
            None => !has_property(&operation.output_schema, source),
        };
        if missing {
            report.omit(format!(
                "`{}` has no `{source}` for `{argument}`; omitted from `follow` of `{name}`",
                operation.name
            ));
        }
        !missing
    });
    let follow = &entry.follow;
    let find = |wanted: &str| known.iter().find(|other| other.name == wanted);
    let operation_of = |other: &ToolhostEntry| model.find(other.operation.as_ref()?);
    for (target, role, key) in [
        (&mut entry.check_with, ToolhostRole::Check, "checkWith"),
        (&mut entry.cancel_with, ToolhostRole::Cancel, "cancelWith"),
    ] {
        target.take_if(|target| {
            let problem = match find(target) {
                None => Some(format!("there is no operation `{target}`")),
                Some(other) if other.unsupported.is_some() => None,
                Some(other) if other.role != role => Some(format!("`{target}` has another role")),
                Some(other) => operation_of(other)
                    .and_then(|operation| unfilled(operation, &renamed(follow, other))),
            };
            if let Some(problem) = &problem {
                report.omit(format!("{problem}; `{key}` of `{name}` omitted"));
            }
            problem.is_some()
        });
    }
    let targets = [&entry.check_with, &entry.cancel_with];
    let others: Vec<&Operation> = targets
        .into_iter()
        .flatten()
        .filter_map(|target| operation_of(find(target)?))
        .collect();
    if !others.is_empty() {
        let renames: Vec<&BTreeMap<String, String>> = [&entry.check_with, &entry.cancel_with]
            .into_iter()
            .flatten()
            .filter_map(|target| Some(&find(target)?.rename))
            .collect();
        let takes = |argument: &str| {
            others.iter().any(|other| other.has_argument(argument))
                || renames.iter().any(|rename| rename.contains_key(argument))
        };
        let unknown: BTreeMap<_, _> = entry.follow.iter().filter(|(it, _)| !takes(it)).collect();
        for argument in unknown.keys() {
            report.omit(format!(
                "neither `checkWith` nor `cancelWith` of `{name}` has an argument `{argument}`"
            ));
        }
    }
    if entry.role == ToolhostRole::Start && entry.check_with.is_none() {
        report.omit(format!("nothing checks the work that `{name}` starts"));
    }
    let cancel = entry.cancel_with.as_deref().and_then(find);
    entry.cancel_is_unsupported = cancel.is_some_and(|other| other.unsupported.is_some());
}

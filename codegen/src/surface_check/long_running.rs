//! Checks how long-running work is followed.

use std::collections::BTreeMap;

use exa_mcp_model::{JobLookup, LongRunning};
use serde_json::Value;

use super::places::{Place, has_property, locate, members};
use super::{Catalog, Report};
use crate::model::Operation;

const MARKER: &str = "long-running marker omitted";
const LOOKUP: &str = "recovery by listing omitted";

/// Returns the marker without what does not fit, or nothing if the work can no longer be followed.
pub(super) fn check(
    mut marker: LongRunning,
    operation: &Operation,
    catalog: &Catalog<'_>,
    report: &mut Report<'_>,
) -> Option<LongRunning> {
    let Some(get) = catalog.get(marker.get.as_str()) else {
        report.omit(format!("`{}` no longer exists; {MARKER}", marker.get));
        return None;
    };
    marker.cancel.take_if(|name| {
        let missing = !catalog.contains_key(name.as_str());
        if missing {
            report.omit(format!("`{name}` no longer exists; cancellation omitted"));
        }
        missing
    });
    marker.find.take_if(|find| {
        let problem = lookup_problem(find, operation, catalog);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; {LOOKUP}"));
        }
        problem.is_some()
    });
    if let Some(find) = &mut marker.find {
        check_lookup(find, operation, catalog, report);
    }
    check_arguments(&mut marker, operation, get, catalog, report);
    if let Some(problem) = unfilled(get, &marker.arguments) {
        report.omit(format!("{problem}; {MARKER}"));
        return None;
    }
    let arguments = &marker.arguments;
    marker.cancel.take_if(|name| {
        let cancel = catalog.get(name.as_str());
        let problem = cancel.and_then(|cancel| unfilled(cancel, arguments));
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; cancellation omitted"));
        }
        problem.is_some()
    });
    let place = locate(&get.output_schema, &marker.status);
    if !place.exists() {
        let (get, field) = (&marker.get, &marker.status);
        report.omit(format!(
            "the response of `{get}` has no field `{field}`; {MARKER}"
        ));
        return None;
    }
    check_states(&mut marker, get, &place, report);
    if marker.final_states.is_empty() {
        report.omit(format!("no final state is left; {MARKER}"));
        return None;
    }
    check_failure(&mut marker, report);
    marker.unless.take_if(|field| {
        let missing = !has_property(&operation.output_schema, field);
        if missing {
            report.omit(format!(
                "the response has no field `{field}`; `unless` omitted"
            ));
        }
        missing
    });
    Some(marker)
}

/// Returns which required argument of an operation is not filled, if any.
pub(crate) fn unfilled(
    operation: &Operation,
    arguments: &BTreeMap<String, String>,
) -> Option<String> {
    let required = operation.input_schema.get("required")?.as_array()?;
    let mut names = required.iter().filter_map(Value::as_str);
    let name = names.find(|name| !arguments.contains_key(*name))?;
    Some(format!(
        "`{}` requires `{name}`, which nothing fills",
        operation.name
    ))
}

/// Removes arguments that the operations do not have, or whose source does not exist.
fn check_arguments(
    marker: &mut LongRunning,
    operation: &Operation,
    get: &Operation,
    catalog: &Catalog<'_>,
    report: &mut Report<'_>,
) {
    let cancel = marker.cancel.as_ref();
    let cancel = cancel.and_then(|name| catalog.get(name.as_str()));
    let find = marker.find.as_ref();
    marker.arguments.retain(|name, source| {
        let takes = |operation: &Operation| operation.has_argument(name);
        let problem = if !takes(get) && !cancel.is_some_and(|cancel| takes(cancel)) {
            Some(format!("`{}` has no argument `{name}`", get.name))
        } else if let Some(argument) = source.strip_prefix('$') {
            missing_argument(operation, argument)
        } else {
            // The entry of a list stands for a response that does not name the work.
            let in_entry = find.is_some_and(|find| {
                let list = catalog.get(find.list.as_str());
                let path = format!("{}[].{source}", find.entries);
                list.is_some_and(|list| has_property(&list.output_schema, &path))
            });
            let known = in_entry || has_property(&operation.output_schema, source);
            (!known).then(|| format!("the response has no field `{source}`"))
        };
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; argument omitted"));
        }
        problem.is_none()
    });
}

fn missing_argument(operation: &Operation, name: &str) -> Option<String> {
    let missing = !locate(&operation.input_schema, name).exists();
    missing.then(|| format!("`{}` has no argument `{name}`", operation.name))
}

/// Removes states that the status cannot have, and reports those that are neither final nor running.
fn check_states(
    marker: &mut LongRunning,
    get: &Operation,
    place: &Place<'_>,
    report: &mut Report<'_>,
) {
    let Place::Declared(fields) = place else {
        return;
    };
    let Some(members) = members(&get.output_schema, fields) else {
        return;
    };
    let label = fields.iter().find_map(|field| field.label.clone());
    let label = label.unwrap_or_else(|| format!("{} {}", get.name, marker.status));
    for (states, kind) in [
        (&mut marker.final_states, "final"),
        (&mut marker.running, "running"),
    ] {
        states.retain(|state| {
            let known = members.iter().any(|member| member == state);
            if !known {
                report.omit(format!(
                    "`{state}` is not among the values of `{label}`; {kind} state omitted"
                ));
            }
            known
        });
    }
    for state in members.iter().filter_map(Value::as_str) {
        let is_final = marker.final_states.iter().any(|it| it == state);
        let is_running = marker.running.iter().any(|it| it == state);
        if is_final && is_running {
            report.omit(format!(
                "`{state}` of `{label}` is both final and running; treated as final"
            ));
        } else if !is_final && !is_running {
            report.omit(format!(
                "`{state}` appeared in `{label}` and is neither final nor running; treated as running"
            ));
        }
    }
}

/// Removes failed states that are not final. Reasons are looked for where responses may have them, declared or not.
fn check_failure(marker: &mut LongRunning, report: &mut Report<'_>) {
    let final_states = &marker.final_states;
    marker.failed_states.retain(|state| {
        let known = final_states.contains(state);
        if !known {
            report.omit(format!(
                "`{state}` is not a final state; failed state omitted"
            ));
        }
        known
    });
}

/// Returns why jobs cannot be found in a list, if so.
fn lookup_problem(
    find: &JobLookup,
    operation: &Operation,
    catalog: &Catalog<'_>,
) -> Option<String> {
    let Some(list) = catalog.get(find.list.as_str()) else {
        return Some(format!("`{}` no longer exists", find.list));
    };
    let missing_field = |path: &str, field: &str| {
        let missing = !has_property(&list.output_schema, path);
        missing.then(|| format!("the response of `{}` has no field `{field}`", find.list))
    };
    let created = format!("{}[].{}", find.entries, find.created);
    let argument_problem = || {
        find.arguments.iter().find_map(|(name, source)| {
            let own = missing_argument(list, name);
            own.or_else(|| missing_argument(operation, source.trim_start_matches('$')))
        })
    };
    missing_field(&find.entries, &find.entries)
        .or_else(|| {
            missing_field(
                &format!("{}[]", find.entries),
                &format!("{}[]", find.entries),
            )
        })
        .or_else(|| missing_field(&created, &created))
        .or_else(argument_problem)
        .or_else(|| unfilled(list, &find.arguments))
}

/// Removes the comparisons of a lookup that do not fit. The others still find the work.
fn check_lookup(
    find: &mut JobLookup,
    operation: &Operation,
    catalog: &Catalog<'_>,
    report: &mut Report<'_>,
) {
    let list = catalog.get(find.list.as_str());
    let entries = &find.entries;
    let entry_problem = |path: &str| {
        let path = format!("{entries}[].{path}");
        let missing = list.is_some_and(|list| !has_property(&list.output_schema, &path));
        missing.then(|| format!("the response of `{}` has no field `{path}`", find.list))
    };
    find.same.retain(|argument, path| {
        let problem = missing_argument(operation, argument).or_else(|| entry_problem(path));
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; not compared to find the work"));
        }
        problem.is_none()
    });
    find.echo.take_if(|path| {
        let problem = entry_problem(path);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; `echo` omitted"));
        }
        problem.is_some()
    });
    find.defaults.retain(|argument| {
        let problem = missing_argument(operation, argument);
        if let Some(problem) = &problem {
            report.omit(format!("{problem}; not among `defaults`"));
        }
        problem.is_none()
    });
}

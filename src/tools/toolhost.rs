//! The toolhost: operations under its own names, and long-running jobs as start, check and cancel.

use serde_json::{Map, Value, json};

use super::{discovery, path};
use crate::operations::validation::{ArgumentProblem, ValidationError};
use exa_mcp_generated::response_fields::{COMPLETION, ENTRIES, FOUND, ID, REQUESTED, STATUS};
use exa_mcp_model::{JobEnd, ResponseField, ToolhostEntry, ToolhostRole};

/// Returns the arguments of the operation of an entry, or what contradicts itself in the given ones.
pub(super) fn arguments(
    entry: &ToolhostEntry,
    given: Map<String, Value>,
    corrections: &mut Vec<String>,
) -> Result<Map<String, Value>, Vec<ArgumentProblem>> {
    let own_names = || entry.rename.keys().chain(&entry.spread).map(String::as_str);
    let mut arguments = Map::new();
    let mut moved = Vec::new();
    for (name, value) in given {
        match discovery::resolve_name("parameter", &name, own_names(), corrections) {
            Some(own) => moved.push((name, own, value)),
            None => drop(arguments.insert(name, value)),
        }
    }
    let mut problems = Vec::new();
    let problem = |path: &str, message: String| ArgumentProblem {
        path: path.to_owned(),
        message,
    };
    for (name, own, value) in moved {
        let Some(to) = entry.rename.get(&own) else {
            match discovery::parse_json_text(value, &name, corrections) {
                Value::Object(inner) => {
                    let replaced = inner
                        .into_iter()
                        .flat_map(|(inner, value)| path::join(&mut arguments, inner, value));
                    problems.extend(replaced.map(|path| {
                        let text = format!("`{path}` has another value in `{name}`");
                        problem(&path, text)
                    }));
                }
                other => {
                    problems.push(problem(
                        &name,
                        format!("`{name}` must be an object, not {other}"),
                    ));
                }
            }
            continue;
        };
        // Defaults may be added inside, so JSON text is parsed first.
        let value = match to.contains('.') {
            true => discovery::parse_json_text(value, &name, corrections),
            false => value,
        };
        match path::get(&arguments, to) {
            Some(known) if *known != value => problems.push(problem(
                &name,
                format!("`{name}` and `{to}` mean the same argument but differ"),
            )),
            // A value that is no object leaves no place for what belongs inside.
            None if path::has(&arguments, to) => problems.push(problem(
                &name,
                format!("`{name}` belongs inside `{to}`, which is given without it"),
            )),
            _ => path::set(&mut arguments, to, value),
        }
    }
    for (own, values) in &entry.values {
        let target = entry.rename.get(own).unwrap_or(own);
        let given = path::get(&arguments, target).and_then(Value::as_str);
        if let Some(meant) = given.and_then(|given| values.get(given)) {
            path::set(&mut arguments, target, meant.clone());
        }
    }
    path::fill(&mut arguments, &entry.defaults);
    for (path, fixed) in &entry.fixed {
        if path::get(&arguments, path).is_some_and(|given| given != fixed) {
            corrections.push(format!(
                "`{path}` was ignored: this operation always uses {fixed}"
            ));
        }
    }
    path::force(&mut arguments, &entry.fixed);
    if problems.is_empty() {
        Ok(arguments)
    } else {
        Err(problems)
    }
}

/// Replaces the names of the operation in a validation error with those of the entry.
pub(super) fn with_entry_names(
    entry: &ToolhostEntry,
    mut error: ValidationError,
) -> ValidationError {
    for (own, target) in &entry.rename {
        for problem in &mut error.problems {
            problem.path = rename_path(&problem.path, target, own);
            for end in ["`", ".", "["] {
                let (old, new) = (format!("`{target}{end}"), format!("`{own}{end}"));
                problem.message = problem.message.replace(&old, &new);
            }
        }
        for name in &mut error.missing {
            *name = rename_path(name, target, own);
        }
    }
    if let Value::Object(example) = &mut *error.example {
        rename_example(entry, example);
    }
    error
}

/// Replaces the arguments of the operation in an example with those of the entry.
pub(super) fn rename_in_example(entry: &ToolhostEntry, example: &mut Value) {
    if let Value::Object(example) = example {
        rename_example(entry, example);
    }
}

/// Renames a path that is at or below `target`.
fn rename_path(path: &str, target: &str, own: &str) -> String {
    match path.strip_prefix(target) {
        Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => format!("{own}{rest}"),
        _ => path.to_owned(),
    }
}

/// Renames the arguments of an example and removes those with defaults.
fn rename_example(entry: &ToolhostEntry, example: &mut Map<String, Value>) {
    for (own, target) in &entry.rename {
        if let Some(value) = path::take(example, target) {
            example.insert(own.clone(), value);
        }
    }
    for filled in entry.defaults.keys().chain(entry.fixed.keys()) {
        path::take(example, filled);
    }
    let is_left = |name: &str| {
        let target = |path: &String| path.split('.').next() == Some(name) && path.contains('.');
        entry.defaults.keys().any(target)
    };
    example.retain(|name, value| {
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        !(is_empty && is_left(name))
    });
}

/// Returns the fields that the role of an entry adds to the response. `end` is the end of the job, if it has ended.
pub(super) fn role_fields(
    entry: &ToolhostEntry,
    sent: &Map<String, Value>,
    response: &Value,
    end: Option<&JobEnd>,
) -> Map<String, Value> {
    let fields = match entry.role {
        ToolhostRole::Plain => return Map::new(),
        ToolhostRole::Start => start_fields(entry, sent, response, end),
        ToolhostRole::Check => check_fields(entry, sent, response),
        ToolhostRole::Cancel => {
            let status = status_after_cancel(entry, response);
            json!({
                "operationId": response_id(response, sent),
                "status": status,
                "message": cancel_message(entry, &status),
            })
        }
    };
    super::outcome::as_object(fields)
}

/// Returns the new status. The response of a deletion still has the status from before.
fn status_after_cancel(entry: &ToolhostEntry, response: &Value) -> Value {
    let operation = entry.operation.as_deref().unwrap_or_default();
    match operation.rsplit('.').next() {
        Some("delete") => json!("deleted"),
        // Whatever Exa calls it: the work is stopped, or will be in a moment.
        Some("cancel" | "stop") => json!("cancelled"),
        _ => status(response).unwrap_or_else(|| json!("cancelled")),
    }
}

fn cancel_message(entry: &ToolhostEntry, status: &Value) -> String {
    let done = status.as_str().unwrap_or_default();
    entry
        .message
        .clone()
        .unwrap_or_else(|| format!("{} {done} successfully.", subject(entry)))
}

/// Returns what an entry is about: `Search` for `start_search`.
fn subject(entry: &ToolhostEntry) -> String {
    let (_, name) = entry.name.split_once('_').unwrap_or(("", &entry.name));
    let name = name.replace('_', " ");
    let mut chars = name.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn start_fields(
    entry: &ToolhostEntry,
    sent: &Map<String, Value>,
    response: &Value,
    end: Option<&JobEnd>,
) -> Value {
    let params: Map<String, Value> = entry
        .follow
        .iter()
        .filter_map(|(name, source)| {
            let value = match source.strip_prefix('$') {
                Some(argument) => sent.get(argument)?.clone(),
                None => response.get(source)?.clone(),
            };
            Some((name.clone(), value))
        })
        .collect();
    let own = entry
        .follow
        .values()
        .find(|source| !source.starts_with('$'));
    let id = own.and_then(|field| response.get(field)).cloned();
    let mut fields = json!({
        "operationId": id.unwrap_or_else(|| response_id(response, sent)),
        "status": status(response).unwrap_or_else(|| json!("started")),
    });
    if let Some(end) = end {
        let message = format!("Ended: {}.", end.message);
        super::outcome::put(&mut fields, "message", json!(message));
        return fields;
    }
    let next = |name: &Option<String>| {
        name.as_ref()
            .map(|name| json!({"operation": name, "params": params}))
    };
    let mut message = format!("{} started.", subject(entry));
    if let Some(check) = &entry.check_with {
        message.push_str(&format!(" Use {check} to monitor progress"));
        message.push_str(&match &entry.cancel_with {
            Some(cancel) if !entry.cancel_is_unsupported => {
                format!(", {cancel} to stop it.")
            }
            _ => "; Exa cannot cancel it.".to_owned(),
        });
    }
    if let Value::Object(fields) = &mut fields {
        fields.insert("message".to_owned(), json!(message));
        fields.extend(next(&entry.check_with).map(|next| ("checkWith".to_owned(), next)));
        fields.extend(next(&entry.cancel_with).map(|next| ("cancelWith".to_owned(), next)));
    }
    fields
}

fn check_fields(entry: &ToolhostEntry, sent: &Map<String, Value>, response: &Value) -> Value {
    let status = status(response);
    let is_final = |status: &Value| {
        let mut states = entry.final_states.iter();
        states.any(|state| status.as_str() == Some(state))
    };
    let is_complete = status.as_ref().is_some_and(is_final);
    let mut fields = json!({
        "operationId": response_id(response, sent),
        "status": status.unwrap_or_else(|| json!("none")),
        "progress": progress(response, is_complete),
        "isComplete": is_complete,
    });
    if let Some(found) = FOUND.get(response) {
        super::outcome::put(&mut fields, "itemsFound", found.clone());
    }
    fields
}

/// Returns the progress in percent. For some jobs Exa reports none, except that they have ended.
fn progress(response: &Value, is_complete: bool) -> Value {
    let number = |field: &ResponseField| field.get(response).and_then(Value::as_f64);
    let share = || Some(100.0 * number(&FOUND)? / number(&REQUESTED)?.max(1.0));
    let percent = number(&COMPLETION).or_else(share).unwrap_or(0.0);
    let percent = if is_complete { 100.0 } else { percent };
    json!(percent.clamp(0.0, 100.0).round() as u64)
}

/// Returns the status in a response; for a list, the status of its newest entry.
fn status(response: &Value) -> Option<Value> {
    let newest = || STATUS.get(ENTRIES.list(response)?.first()?);
    STATUS.get(response).or_else(newest).cloned()
}

/// Returns the identifier in a response, else the last one that was sent.
fn response_id(response: &Value, sent: &Map<String, Value>) -> Value {
    let given = || {
        sent.iter()
            .rev()
            .find(|(name, _)| name.ends_with("Id") || *name == "id")
            .map(|(_, id)| id)
    };
    ID.get(response)
        .or_else(given)
        .cloned()
        .unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    fn entry(extra: Value) -> ToolhostEntry {
        let mut entry =
            json!({"name": "start_search", "summary": "s", "operation": "searches.create"});
        for (key, value) in extra.as_object().unwrap() {
            entry[key] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn renames_parameters_and_fills_in_defaults() {
        let entry = entry(json!({
            "rename": {"searchParams": "behavior.config"}, "spread": ["filters"],
            "defaults": {"behavior.type": "search", "behavior.config.count": 10}}));
        let given =
            map(json!({"websetId": "w", "searchParams": {"query": "q"}, "filters": {"a": 1}}));
        assert_eq!(
            Value::Object(arguments(&entry, given, &mut Vec::new()).unwrap()),
            json!({"a": 1, "websetId": "w", "behavior": {"config": {"query": "q", "count": 10}, "type": "search"}})
        );
    }

    #[test]
    fn contradictions_are_problems() {
        let entry = entry(json!({
            "rename": {"searchParams": "behavior.config", "question": "query"}, "spread": ["filters"],
            "defaults": {"behavior.type": "search"}}));
        let problems = |given: Value| {
            let problems = arguments(&entry, map(given), &mut Vec::new()).unwrap_err();
            problems.into_iter().map(|it| it.path).collect::<Vec<_>>()
        };
        assert_eq!(problems(json!({"filters": "x"})), ["filters"]);
        assert_eq!(
            problems(json!({"question": "a", "query": "b"})),
            ["question"]
        );
        let both = json!({"searchParams": {"query": "a"}, "behavior": {"config": {"query": "b"}}});
        assert_eq!(problems(both), ["searchParams"]);
        let scalar = json!({"behavior": "search", "searchParams": {"query": "a"}});
        assert_eq!(problems(scalar), ["searchParams"]);
        let filters = json!({"filters": {"a": [1]}, "a": [2]});
        assert_eq!(problems(filters), ["a"]);
        let same = json!({"filters": {"a": [1]}, "a": [1], "query": "q", "question": "q",
            "behavior": {"type": "search"}, "searchParams": {"query": "a"}});
        assert_eq!(
            Value::Object(arguments(&entry, map(same), &mut Vec::new()).unwrap()),
            json!({"a": [1], "query": "q", "behavior": {"type": "search", "config": {"query": "a"}}})
        );
    }

    #[test]
    fn a_start_names_the_calls_to_follow_it() {
        let entry = entry(
            json!({"role": "start", "checkWith": "check_search", "cancelWith": "cancel_search",
            "follow": {"websetId": "$websetId", "searchId": "id"}}),
        );
        let fields = role_fields(
            &entry,
            &map(json!({"websetId": "w"})),
            &json!({"id": "s", "status": "created"}),
            None,
        );
        assert_eq!(fields["operationId"], "s");
        assert_eq!(fields["status"], "created");
        assert_eq!(
            fields["checkWith"],
            json!({"operation": "check_search", "params": {"websetId": "w", "searchId": "s"}})
        );
        assert_eq!(fields["cancelWith"]["operation"], "cancel_search");
        let without_status = role_fields(&entry, &Map::new(), &json!({"id": "s"}), None);
        assert_eq!(without_status["status"], "started");
        let end = JobEnd {
            message: "completed after 5 seconds".to_owned(),
            is_failure: false,
        };
        let ended = json!({"id": "s", "status": "completed"});
        let ended = role_fields(&entry, &Map::new(), &ended, Some(&end));
        assert_eq!(ended["message"], "Ended: completed after 5 seconds.");
        assert!(!ended.contains_key("checkWith") && !ended.contains_key("cancelWith"));
    }

    #[test]
    fn a_check_recognizes_final_states() {
        let entry = entry(json!({"role": "check", "final": ["completed", "canceled"]}));
        let fields = |status: &str| {
            let response = json!({"id": "s", "status": status, "progress": {"found": 3}});
            role_fields(&entry, &Map::new(), &response, None)
        };
        assert_eq!(fields("running")["isComplete"], false);
        assert_eq!(fields("canceled")["isComplete"], true);
        assert_eq!(fields("running")["progress"], 0);
        assert_eq!(fields("canceled")["progress"], 100);
        assert_eq!(fields("running")["itemsFound"], 3);
        let list = role_fields(
            &entry,
            &map(json!({"monitorId": "m"})),
            &json!({"data": [{"status": "completed"}]}),
            None,
        );
        assert_eq!(
            (&list["operationId"], &list["isComplete"]),
            (&json!("m"), &json!(true))
        );
        assert_eq!(list["progress"], 100);
        let none = role_fields(
            &entry,
            &map(json!({"monitorId": "m"})),
            &json!({"data": []}),
            None,
        );
        assert_eq!(
            (&none["status"], &none["progress"]),
            (&json!("none"), &json!(0))
        );
    }

    #[test]
    fn validation_errors_use_the_names_of_the_entry() {
        let entry = entry(json!({
            "rename": {"searchParams": "behavior.config", "type": "types"},
            "defaults": {"behavior.type": "search", "behavior.config.count": 10}}));
        let problem = |path: &str, text: &str| ArgumentProblem {
            path: path.to_owned(),
            message: text.to_owned(),
        };
        let error = ValidationError {
            problems: vec![
                problem(
                    "behavior.config.count",
                    "`behavior.config.count` must be at least 1",
                ),
                problem("types[0]", "`types[0]` is not a type"),
                problem("behavior", "`behavior` is required"),
            ],
            example: Box::new(json!({"websetId": "w", "types": ["a"],
                "behavior": {"type": "search", "config": {"query": "q", "count": 10}}})),
            hints: Vec::new(),
            missing: vec!["types".to_owned()],
        };
        let fields = with_entry_names(&entry, error);
        let places: Vec<&str> = fields.problems.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(places, ["searchParams.count", "type[0]", "behavior"]);
        assert_eq!(
            fields.problems[0].message,
            "`searchParams.count` must be at least 1"
        );
        assert_eq!(fields.missing, ["type"]);
        assert_eq!(
            *fields.example,
            json!({"websetId": "w", "searchParams": {"query": "q", "count": 10}, "type": ["a"]})
        );
    }
}

//! The toolhost: operations under names of their own, long work as start, check and cancel.

use serde_json::{Map, Value, json};

use super::plan::{Entry, Role};
use super::{discovery, path};
use crate::operations::validation::ValidationError;

/// The arguments of the operation behind an entry.
pub(super) fn arguments(
    entry: &Entry,
    given: Map<String, Value>,
    mended: &mut Vec<String>,
) -> Map<String, Value> {
    let mut arguments = Map::new();
    let own_names = || entry.rename.keys().chain(&entry.spread).map(String::as_str);
    for (name, value) in given {
        let own = discovery::meant("parameter", &name, own_names(), mended);
        let own = own.as_deref();
        if own.is_some_and(|own| entry.spread.iter().any(|spread| spread == own)) {
            if let Value::Object(inner) = discovery::parsed(value, &name, mended) {
                arguments.extend(inner);
            }
            continue;
        }
        match own.and_then(|own| entry.rename.get(own)) {
            // Defaults may go inside, so an object must be one before they do.
            Some(to) if to.contains('.') => {
                path::set(&mut arguments, to, discovery::parsed(value, &name, mended));
            }
            Some(to) => path::set(&mut arguments, to, value),
            None => drop(arguments.insert(name, value)),
        }
    }
    path::fill(&mut arguments, &entry.defaults);
    path::force(&mut arguments, &entry.fixed);
    arguments
}

/// A refusal by the operation behind an entry, with the names that callers of the entry know.
pub(super) fn in_own_words(entry: &Entry, mut refused: ValidationError) -> ValidationError {
    for (own, behind) in &entry.rename {
        for problem in &mut refused.problems {
            problem.path = renamed(&problem.path, behind, own);
            for end in ["`", ".", "["] {
                let (old, new) = (format!("`{behind}{end}"), format!("`{own}{end}"));
                problem.message = problem.message.replace(&old, &new);
            }
        }
        for name in &mut refused.missing {
            *name = renamed(name, behind, own);
        }
    }
    if let Value::Object(example) = &mut *refused.example {
        rename_example(entry, example);
    }
    refused
}

/// A place in arguments by its own name, if it is at or below what is behind that name.
fn renamed(place: &str, behind: &str, own: &str) -> String {
    match place.strip_prefix(behind) {
        Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => format!("{own}{rest}"),
        _ => place.to_owned(),
    }
}

/// A minimal call: by own names, and without what is filled in.
fn rename_example(entry: &Entry, example: &mut Map<String, Value>) {
    for (own, behind) in &entry.rename {
        if let Some(value) = path::take(example, behind) {
            example.insert(own.clone(), value);
        }
    }
    for filled in entry.defaults.keys().chain(entry.fixed.keys()) {
        path::take(example, filled);
    }
    let is_left = |name: &str| {
        let behind = |path: &String| path.split('.').next() == Some(name) && path.contains('.');
        entry.defaults.keys().any(behind)
    };
    example.retain(|name, value| {
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        !(is_empty && is_left(name))
    });
}

/// What the entry's role has to say beside the answer.
pub(super) fn tell(entry: &Entry, sent: &Map<String, Value>, answer: &Value) -> Map<String, Value> {
    let told = match entry.role {
        Role::Plain => return Map::new(),
        Role::Start => started(entry, sent, answer),
        Role::Check => checked(entry, sent, answer),
        Role::Cancel => json!({
            "operationId": identifier(answer, sent),
            "status": ended(entry, answer),
            "message": format!("{} was carried out.", entry.name),
        }),
    };
    super::outcome::as_object(told)
}

/// The new state; what was deleted still shows the state it had before.
fn ended(entry: &Entry, answer: &Value) -> Value {
    let deletes = entry
        .operation
        .as_deref()
        .is_some_and(|name| name.ends_with(".delete"));
    match (deletes, status(answer)) {
        (true, _) => json!("deleted"),
        (false, Some(status)) => status,
        (false, None) => json!("cancelled"),
    }
}

fn started(entry: &Entry, sent: &Map<String, Value>, answer: &Value) -> Value {
    let params: Map<String, Value> = entry
        .follow
        .iter()
        .filter_map(|(name, source)| {
            let value = match source.strip_prefix('$') {
                Some(argument) => sent.get(argument)?.clone(),
                None => answer.get(source)?.clone(),
            };
            Some((name.clone(), value))
        })
        .collect();
    let own = entry
        .follow
        .values()
        .find(|source| !source.starts_with('$'));
    let id = own.and_then(|field| answer.get(field)).cloned();
    let mut told = json!({
        "operationId": id.unwrap_or_else(|| identifier(answer, sent)),
        "status": status(answer).unwrap_or_else(|| json!("started")),
    });
    let next = |name: &Option<String>| {
        name.as_ref()
            .map(|name| json!({"operation": name, "params": params}))
    };
    let message = match (&entry.check_with, &entry.cancel_with) {
        (Some(check), Some(cancel)) if !entry.cancel_is_unsupported => {
            format!("Started. Follow it with {check}, end it with {cancel}.")
        }
        (Some(check), Some(cancel)) => format!(
            "Started. Follow it with {check}; Exa offers no way to cancel it, as {cancel} says."
        ),
        (Some(check), None) => {
            format!("Started. Follow it with {check}; Exa offers no way to cancel it.")
        }
        _ => "Started.".to_owned(),
    };
    if let Value::Object(told) = &mut told {
        told.insert("message".to_owned(), json!(message));
        told.extend(next(&entry.check_with).map(|next| ("checkWith".to_owned(), next)));
        told.extend(next(&entry.cancel_with).map(|next| ("cancelWith".to_owned(), next)));
    }
    told
}

fn checked(entry: &Entry, sent: &Map<String, Value>, answer: &Value) -> Value {
    let status = status(answer);
    let is_final = |status: &Value| {
        let mut states = entry.final_states.iter();
        states.any(|state| status.as_str() == Some(state))
    };
    let is_complete = status.as_ref().is_some_and(is_final);
    json!({
        "operationId": identifier(answer, sent),
        "status": status.unwrap_or_else(|| json!("none")),
        "progress": progress(answer, is_complete),
        "isComplete": is_complete,
    })
}

/// How far work is, as Exa tells it. Of some kinds of work it tells nothing, but what is over is done.
fn progress(answer: &Value, is_complete: bool) -> Value {
    match answer.get("progress") {
        Some(progress) => progress.clone(),
        None if is_complete => json!({"completion": 100}),
        None => Value::Null,
    }
}

/// The state of an answer; of a list, the state of its newest entry.
fn status(answer: &Value) -> Option<Value> {
    let newest = || answer.get("data")?.as_array()?.first()?.get("status");
    answer.get("status").or_else(newest).cloned()
}

/// The identifier of what an answer is about; the last one sent where the answer has none.
fn identifier(answer: &Value, sent: &Map<String, Value>) -> Value {
    let own = ["id", "researchId"]
        .iter()
        .find_map(|field| answer.get(*field));
    let given = || {
        sent.iter()
            .rev()
            .find(|(name, _)| name.ends_with("Id") || *name == "id")
            .map(|(_, id)| id)
    };
    own.or_else(given).cloned().unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::operations::validation::ArgumentProblem;

    fn entry(extra: Value) -> Entry {
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
    fn names_are_changed_and_gaps_filled() {
        let entry = entry(json!({
            "rename": {"searchParams": "behavior.config"}, "spread": ["filters"],
            "defaults": {"behavior.type": "search", "behavior.config.count": 10}}));
        let given =
            map(json!({"websetId": "w", "searchParams": {"query": "q"}, "filters": {"a": 1}}));
        assert_eq!(
            Value::Object(arguments(&entry, given, &mut Vec::new())),
            json!({"a": 1, "websetId": "w", "behavior": {"config": {"query": "q", "count": 10}, "type": "search"}})
        );
    }

    #[test]
    fn a_start_tells_how_to_go_on() {
        let entry = entry(
            json!({"role": "start", "checkWith": "check_search", "cancelWith": "cancel_search",
            "follow": {"websetId": "$websetId", "searchId": "id"}}),
        );
        let told = tell(
            &entry,
            &map(json!({"websetId": "w"})),
            &json!({"id": "s", "status": "created"}),
        );
        assert_eq!(told["operationId"], "s");
        assert_eq!(told["status"], "created");
        assert_eq!(
            told["checkWith"],
            json!({"operation": "check_search", "params": {"websetId": "w", "searchId": "s"}})
        );
        assert_eq!(told["cancelWith"]["operation"], "cancel_search");
    }

    #[test]
    fn a_check_knows_the_final_states() {
        let entry = entry(json!({"role": "check", "final": ["completed", "canceled"]}));
        let told = |status: &str| {
            let answer = json!({"id": "s", "status": status, "progress": {"found": 3}});
            tell(&entry, &Map::new(), &answer)
        };
        assert_eq!(told("running")["isComplete"], false);
        assert_eq!(told("canceled")["isComplete"], true);
        assert_eq!(told("running")["progress"], json!({"found": 3}));
        let list = tell(
            &entry,
            &map(json!({"monitorId": "m"})),
            &json!({"data": [{"status": "completed"}]}),
        );
        assert_eq!(
            (&list["operationId"], &list["isComplete"]),
            (&json!("m"), &json!(true))
        );
        assert_eq!(list["progress"], json!({"completion": 100}));
        let none = tell(
            &entry,
            &map(json!({"monitorId": "m"})),
            &json!({"data": []}),
        );
        assert_eq!(
            (&none["status"], &none["progress"]),
            (&json!("none"), &Value::Null)
        );
    }

    #[test]
    fn a_refusal_speaks_of_the_names_that_callers_know() {
        let entry = entry(json!({
            "rename": {"searchParams": "behavior.config", "type": "types"},
            "defaults": {"behavior.type": "search", "behavior.config.count": 10}}));
        let problem = |place: &str, text: &str| ArgumentProblem {
            path: place.to_owned(),
            message: text.to_owned(),
        };
        let refused = ValidationError {
            problems: vec![
                problem(
                    "behavior.config.count",
                    "`behavior.config.count` must be at least 1",
                ),
                problem("types[0]", "`types[0]` is none"),
                problem("behavior", "`behavior` is required"),
            ],
            example: Box::new(json!({"websetId": "w", "types": ["a"],
                "behavior": {"type": "search", "config": {"query": "q", "count": 10}}})),
            hints: Vec::new(),
            missing: vec!["types".to_owned()],
        };
        let told = in_own_words(&entry, refused);
        let places: Vec<&str> = told.problems.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(places, ["searchParams.count", "type[0]", "behavior"]);
        assert_eq!(
            told.problems[0].message,
            "`searchParams.count` must be at least 1"
        );
        assert_eq!(told.missing, ["type"]);
        assert_eq!(
            *told.example,
            json!({"websetId": "w", "searchParams": {"query": "q", "count": 10}, "type": ["a"]})
        );
    }
}

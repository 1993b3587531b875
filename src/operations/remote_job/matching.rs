//! Compares listed jobs with the call that started the job in question.

use serde_json::{Map, Value};

use exa_mcp_model::{JobLookup, Operation};

/// Whether a listed job is the one that a call started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobMatch {
    /// The job repeats the arguments that were sent.
    Yes,
    /// The job has other arguments.
    No,
    /// The job does not report its arguments.
    Unknown,
}

/// Compares the arguments of a listed job with those that were sent.
pub(super) fn compare(
    start: &Operation,
    find: &JobLookup,
    sent: &Map<String, Value>,
    entry: &Value,
) -> JobMatch {
    if let Some(echo) = find
        .echo
        .as_ref()
        .and_then(|echo| entry.get(echo)?.as_object())
        && !is_echo(start, find, sent, echo)
    {
        return JobMatch::No;
    }
    let mut result = if find.same.is_empty() {
        JobMatch::Yes
    } else {
        JobMatch::Unknown
    };
    let mut is_incomplete = false;
    for (argument, path) in &find.same {
        let Some(sent) = sent_value(sent, argument) else {
            continue;
        };
        match entry
            .pointer(&pointer(path))
            .filter(|value| !value.is_null())
        {
            None => is_incomplete = true,
            Some(value) if is_equivalent(sent, value) => result = JobMatch::Yes,
            Some(_) => return JobMatch::No,
        }
    }
    if is_incomplete {
        JobMatch::Unknown
    } else {
        result
    }
}

/// Returns whether the echoed request of a job can be the one that was sent. Omitted fields prove nothing.
fn is_echo(
    start: &Operation,
    find: &JobLookup,
    sent: &Map<String, Value>,
    echo: &Map<String, Value>,
) -> bool {
    let mut names = start.arguments.iter().map(|argument| argument.name);
    names.all(|name| {
        let shown = echo.get(name).filter(|shown| !is_empty(shown));
        match (sent.get(name).filter(|sent| !is_empty(sent)), shown) {
            (Some(sent), Some(shown)) => is_repeated(sent, shown),
            // It is another's request, unless this is a default value of Exa.
            (None, Some(_)) => find.defaults.iter().any(|default| default == name),
            (_, None) => true,
        }
    })
}

/// Returns whether a value carries no information.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether a value repeats what was sent. Exa may add default values to objects.
fn is_repeated(sent: &Value, shown: &Value) -> bool {
    match (sent, shown) {
        (Value::Object(sent), Value::Object(shown)) => sent.iter().all(|(name, sent)| {
            let shown = shown.get(name).filter(|shown| !is_empty(shown));
            is_empty(sent) || shown.is_none_or(|shown| is_repeated(sent, shown))
        }),
        (Value::Array(sent), Value::Array(shown)) => {
            let mut pairs = sent.iter().zip(shown);
            sent.len() == shown.len() && pairs.all(|(sent, shown)| is_repeated(sent, shown))
        }
        _ => is_equivalent(sent, shown),
    }
}

/// Returns the value that was sent at a dotted path.
fn sent_value<'a>(sent: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let value = sent.get(first)?;
    let value = match rest {
        "" => value,
        rest => value.pointer(&pointer(rest))?,
    };
    (!value.is_null()).then_some(value)
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

/// Returns whether two values are equal, ignoring number formats (`5` and `5.0`) and surrounding whitespace.
fn is_equivalent(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.trim() == other.trim(),
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// Returns how the jobs of an operation are found again.
#[cfg(test)]
pub(super) fn lookup_of(start: &str) -> &'static JobLookup {
    let behavior = super::super::find(start).map(|operation| &operation.behavior);
    let long_running = behavior.and_then(|behavior| behavior.long_running.as_ref());
    long_running
        .and_then(|job| job.find.as_ref())
        .unwrap_or_else(|| unreachable!("`{start}` starts a job that can be found"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::super::super::find as operation;
    use super::*;

    fn compared(start: &str, sent: Value, entry: Value) -> JobMatch {
        let sent = sent.as_object().unwrap();
        compare(operation(start).unwrap(), lookup_of(start), sent, &entry)
    }

    #[test]
    fn matches_a_job_by_its_arguments() {
        let sent = json!({"search": {"query": "banks", "count": 5}});
        let entry =
            |query: &str, count: f64| json!({"searches": [{"query": query, "count": count}]});
        let compared = |entry| compared("websets.create", sent.clone(), entry);
        assert_eq!(compared(entry("banks ", 5.0)), JobMatch::Yes);
        assert_eq!(compared(entry("banks", 6.0)), JobMatch::No);
        assert_eq!(compared(entry("bank", 5.0)), JobMatch::No);
        assert_eq!(compared(json!({"searches": []})), JobMatch::Unknown);
    }

    #[test]
    fn a_job_without_arguments_is_unknown() {
        let sent = json!({"query": "who?"});
        let compared = |entry| compared("agent.runs.create", sent.clone(), entry);
        assert_eq!(
            compared(json!({"request": {"query": "who?"}})),
            JobMatch::Yes
        );
        assert_eq!(compared(json!({"request": null})), JobMatch::Unknown);
        let nothing = self::compared("websets.create", json!({}), json!({"id": "w"}));
        assert_eq!(nothing, JobMatch::Unknown);
        let run = self::compared("search_monitors.trigger", json!({}), json!({}));
        assert_eq!(run, JobMatch::Yes);
    }

    #[test]
    fn compares_the_whole_echoed_request() {
        let compared = |sent: Value, request: Value| {
            compared("agent.runs.create", sent, json!({"request": request}))
        };
        let sent =
            json!({"query": "q", "input": {"data": [{"n": "ann", "age": 5}]}, "stream": true});
        for (request, expected) in [
            (sent.clone(), JobMatch::Yes),
            (json!({"query": "q"}), JobMatch::Yes),
            (
                json!({"query": " q", "effort": "auto", "budget": {"maxCostDollars": 5},
                    "input": {"data": [{"n": "ann", "age": 5.0}], "exclusion": []}, "metadata": {}}),
                JobMatch::Yes,
            ),
            (
                json!({"query": "q", "input": {"data": [{"n": "bob", "age": 5}]}}),
                JobMatch::No,
            ),
            (
                json!({"query": "q", "input": {"data": [{"n": "ann"}, {"n": "bob"}]}}),
                JobMatch::No,
            ),
            (
                json!({"query": "q", "metadata": {"of": "bob"}}),
                JobMatch::No,
            ),
            (
                json!({"query": "q", "previousRunId": "agent_run_bob"}),
                JobMatch::No,
            ),
            (json!({"effort": "auto"}), JobMatch::Unknown),
        ] {
            assert_eq!(
                compared(sent.clone(), request.clone()),
                expected,
                "{request}"
            );
        }
        let bobs = json!({"query": "q", "effort": "xhigh"});
        let anns = json!({"query": "q", "effort": "low"});
        assert_eq!(compared(anns, bobs), JobMatch::No);
    }
}

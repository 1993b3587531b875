//! Whether an entry of a list is the work that is looked for.

use serde_json::{Map, Value};

use exa_mcp_model::{JobLookup, Operation};

/// Whether an entry of a list is the work that is looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It repeats what was sent.
    Same,
    /// Something else was sent for it.
    Other,
    /// It does not say what was sent.
    Unclear,
}

/// Whether an entry repeats everything that was sent.
pub(super) fn judge(
    start: &Operation,
    find: &JobLookup,
    sent: &Map<String, Value>,
    entry: &Value,
) -> Judgement {
    if let Some(echo) = find
        .echo
        .as_ref()
        .and_then(|echo| entry.get(echo)?.as_object())
        && !is_echo(start, find, sent, echo)
    {
        return Judgement::Other;
    }
    let mut judgement = match find.same.is_empty() {
        true => Judgement::Same,
        false => Judgement::Unclear,
    };
    let mut unclear = false;
    for (argument, place) in &find.same {
        let Some(sent) = sent_value(sent, argument) else {
            continue;
        };
        match entry
            .pointer(&pointer(place))
            .filter(|value| !value.is_null())
        {
            None => unclear = true,
            Some(value) if alike(sent, value) => judgement = Judgement::Same,
            Some(_) => return Judgement::Other,
        }
    }
    match unclear {
        true => Judgement::Unclear,
        false => judgement,
    }
}

/// Whether a request that an entry shows can be the one that was sent. What it does not show says nothing.
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
            // Somebody else sent it, unless it is what Exa assumes.
            (None, Some(_)) => find.defaults.iter().any(|default| default == name),
            (_, None) => true,
        }
    })
}

/// Whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a value repeats what was sent. Exa may add to objects what it assumes.
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
        _ => alike(sent, shown),
    }
}

/// What was sent at a dotted path.
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

/// Whether two values mean the same: `5` is `5.0`, and space around a text is nothing.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.trim() == other.trim(),
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

#[allow(clippy::unwrap_used)]
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::find as operation;
    use super::*;

    fn find_of(start: &str) -> &'static JobLookup {
        let marker = operation(start)
            .unwrap()
            .behavior
            .long_running
            .as_ref()
            .unwrap();
        marker.find.as_ref().unwrap()
    }

    fn judged(start: &str, sent: Value, entry: Value) -> Judgement {
        let sent = sent.as_object().unwrap();
        judge(operation(start).unwrap(), find_of(start), sent, &entry)
    }

    #[test]
    fn work_is_known_by_what_was_sent() {
        let sent = json!({"search": {"query": "banks", "count": 5}});
        let entry =
            |query: &str, count: f64| json!({"searches": [{"query": query, "count": count}]});
        let judged = |entry| judged("websets.create", sent.clone(), entry);
        assert_eq!(judged(entry("banks ", 5.0)), Judgement::Same);
        assert_eq!(judged(entry("banks", 6.0)), Judgement::Other);
        assert_eq!(judged(entry("bank", 5.0)), Judgement::Other);
        assert_eq!(judged(json!({"searches": []})), Judgement::Unclear);
    }

    #[test]
    fn work_that_says_nothing_is_unclear() {
        let sent = json!({"query": "who?"});
        let judged = |entry| judged("agent.runs.create", sent.clone(), entry);
        assert_eq!(
            judged(json!({"request": {"query": "who?"}})),
            Judgement::Same
        );
        assert_eq!(judged(json!({"request": null})), Judgement::Unclear);
        let nothing = self::judged("websets.create", json!({}), json!({"id": "w"}));
        assert_eq!(nothing, Judgement::Unclear);
        let run = self::judged("search_monitors.trigger", json!({}), json!({}));
        assert_eq!(run, Judgement::Same);
    }

    #[test]
    fn a_run_is_known_by_all_that_its_request_shows() {
        let judged = |sent: Value, request: Value| {
            judged("agent.runs.create", sent, json!({"request": request}))
        };
        let sent =
            json!({"query": "q", "input": {"data": [{"n": "ann", "age": 5}]}, "stream": true});
        for (request, judgement) in [
            (sent.clone(), Judgement::Same),
            (json!({"query": "q"}), Judgement::Same),
            (
                json!({"query": " q", "effort": "auto", "budget": {"maxCostDollars": 5},
                    "input": {"data": [{"n": "ann", "age": 5.0}], "exclusion": []}, "metadata": {}}),
                Judgement::Same,
            ),
            (
                json!({"query": "q", "input": {"data": [{"n": "bob", "age": 5}]}}),
                Judgement::Other,
            ),
            (
                json!({"query": "q", "input": {"data": [{"n": "ann"}, {"n": "bob"}]}}),
                Judgement::Other,
            ),
            (
                json!({"query": "q", "metadata": {"of": "bob"}}),
                Judgement::Other,
            ),
            (
                json!({"query": "q", "previousRunId": "agent_run_bob"}),
                Judgement::Other,
            ),
            (json!({"effort": "auto"}), Judgement::Unclear),
        ] {
            assert_eq!(
                judged(sent.clone(), request.clone()),
                judgement,
                "{request}"
            );
        }
        let bobs = json!({"query": "q", "effort": "xhigh"});
        let anns = json!({"query": "q", "effort": "low"});
        assert_eq!(judged(anns, bobs), Judgement::Other);
    }
}

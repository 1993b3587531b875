//! Finding the work of a start whose answer never came.
//!
//! Exa shows what there is, but not who started it. Work counts as the one that is looked for if it
//! was made since then and repeats what was sent.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::super::pages::{next_cursor, widen};
use super::super::{Caller, Find, Operation, Refusal, find as operation, is_paged};
use super::Following;

/// Pages that are looked through.
const MOST_PAGES: usize = 40;

/// Entries of a page, where the list lets us choose.
const PAGE: usize = 100;

/// How far the clock of Exa may be behind ours, in milliseconds.
const SKEW: u64 = 30_000;

/// Work that may be the one that is looked for, the oldest first.
#[derive(Debug, Default)]
pub struct Found {
    /// Work that repeats what was sent.
    pub same: Vec<Following>,
    /// Work that does not say what was sent.
    pub unclear: Vec<Following>,
}

#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Same,
    Other,
    Unclear,
}

impl Following {
    /// Looks for what a call of `start` with these arguments has started since a moment, in milliseconds
    /// since 1970; `None` if Exa shows no list of it.
    pub async fn find(
        caller: &Caller,
        start: &'static Operation,
        sent: &Map<String, Value>,
        since: u64,
    ) -> Option<Result<Found, Refusal>> {
        let marker = start.long_running.as_ref()?;
        let find = marker.find.as_ref()?;
        let list = operation(find.list)?;
        let arguments = super::arguments(find.arguments, sent, &Value::Null)?;
        Some(
            entries(caller, list, find, arguments, since)
                .await
                .map(|entries| {
                    let mut found = Found::default();
                    for entry in entries {
                        let work = Self::started(marker, sent, &entry);
                        match judge(find, sent, &entry) {
                            Judgement::Same => found.same.extend(work),
                            Judgement::Unclear => found.unclear.extend(work),
                            Judgement::Other => {}
                        }
                    }
                    found
                }),
        )
    }
}

/// The entries of a list that were made since a moment, the oldest first.
async fn entries(
    caller: &Caller,
    list: &'static Operation,
    find: &Find,
    mut arguments: Map<String, Value>,
    since: u64,
) -> Result<Vec<Value>, Refusal> {
    let since = since.saturating_sub(SKEW);
    let mut entries: Vec<(u64, Value)> = Vec::new();
    if is_paged(list) {
        widen(list, &mut arguments, PAGE);
    }
    for _ in 0..MOST_PAGES {
        let called = caller.call(list, arguments.clone().into()).await?;
        let mut answer = called.answer.value;
        let cursor = next_cursor(&answer).filter(|_| is_paged(list));
        let page = match answer.get_mut(find.entries).map(Value::take) {
            Some(Value::Array(page)) => page,
            _ => Vec::new(),
        };
        let times: Vec<Option<u64>> = page.iter().map(|entry| created(find, entry)).collect();
        let with_times = times.iter().zip(page);
        let recent = with_times.filter(|(time, _)| time.is_none_or(|time| time >= since));
        entries.extend(recent.map(|(time, entry)| (time.unwrap_or(u64::MAX), entry)));
        match cursor {
            Some(cursor) if !is_past(&times, since) => {
                arguments.insert("cursor".to_owned(), json!(cursor));
            }
            _ => break,
        }
    }
    entries.sort_by_key(|(time, _)| *time);
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Whether all further pages are older: the list runs from new to old, and this page ends before.
fn is_past(times: &[Option<u64>], since: u64) -> bool {
    match (times.first(), times.last()) {
        (Some(Some(first)), Some(Some(last))) => first > last && *last < since,
        _ => false,
    }
}

/// When an entry was made, in milliseconds since 1970.
fn created(find: &Find, entry: &Value) -> Option<u64> {
    match entry.get(find.created)? {
        Value::String(text) => {
            let time = DateTime::parse_from_rfc3339(text).ok()?;
            u64::try_from(time.timestamp_millis()).ok()
        }
        number => number.as_f64().map(|number| number as u64),
    }
}

/// Whether an entry repeats everything that was sent.
fn judge(find: &Find, sent: &Map<String, Value>, entry: &Value) -> Judgement {
    let mut judgement = match find.same.is_empty() {
        true => Judgement::Same,
        false => Judgement::Unclear,
    };
    let mut unclear = false;
    for (argument, place) in find.same {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn find_of(start: &str) -> &'static Find {
        let marker = operation(start).unwrap().long_running.as_ref().unwrap();
        marker.find.as_ref().unwrap()
    }

    fn judged(start: &str, sent: Value, entry: Value) -> Judgement {
        judge(find_of(start), sent.as_object().unwrap(), &entry)
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
        let nothing = judge(find_of("websets.create"), &Map::new(), &json!({"id": "w"}));
        assert_eq!(nothing, Judgement::Unclear);
        let run = judge(find_of("search_monitors.trigger"), &Map::new(), &json!({}));
        assert_eq!(run, Judgement::Same);
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let find = find_of("research.create");
        let time = |value: Value| created(find, &json!({"createdAt": value}));
        assert_eq!(time(json!(1_700_000_000_123.0)), Some(1_700_000_000_123));
        let text = json!("2023-11-14T22:13:20.123Z");
        assert_eq!(time(text), Some(1_700_000_000_123));
        assert_eq!(time(json!("soon")), None);
        assert!(is_past(&[Some(9), Some(3)], 5));
        assert!(!is_past(&[Some(3), Some(9)], 5));
        assert!(!is_past(&[Some(3)], 5));
        assert!(!is_past(&[], 5));
    }
}

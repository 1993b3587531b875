//! All pages of a list in one answer.

use exa_mcp_model::Operation;
use exa_mcp_server::operations::{all, is_paged};
use serde_json::{Value, json};

use super::super::operations::dispatcher;
use super::{Desk, cache_id};
use crate::support::{McpServer, Recorder, Reply, Seen};

/// A list of so many entries in pages of two.
fn pages_of_two(total: usize) -> impl Fn(&Seen, usize) -> Reply {
    move |request, _| {
        let start = cursor_of(request).unwrap_or(0);
        Reply::json(200, &page(start, total, 2))
    }
}

/// The number in the cursor of a request.
fn cursor_of(request: &Seen) -> Option<usize> {
    let pairs = request.query();
    let (_, cursor) = pairs.iter().find(|(name, _)| name == "cursor")?;
    cursor.strip_prefix("after ")?.parse().ok()
}

fn page(start: usize, total: usize, size: usize) -> Value {
    let end = (start + size).min(total);
    let entries: Vec<Value> = (start..end)
        .map(|number| json!({"id": format!("x{number}")}))
        .collect();
    let next = (end < total).then(|| format!("after {end}"));
    json!({"data": entries, "hasMore": next.is_some(), "nextCursor": next})
}

fn ids(shown: &Value) -> Vec<String> {
    let results = shown["results"].as_array().expect("results");
    let id = |result: &Value| result["id"].as_str().expect("an id").to_owned();
    results.iter().map(id).collect()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("x{number}")).collect()
}

/// Arguments for what stands in the path.
fn path_arguments(operation: &Operation) -> Value {
    let schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
    let required = schema["required"].as_array().into_iter().flatten();
    required
        .map(|name| (name.as_str().expect("a name").to_owned(), json!("some_id")))
        .collect()
}

#[test]
fn every_paginated_list_is_read_to_the_end() {
    let lists: Vec<&'static Operation> = all()
        .iter()
        .filter(|operation| is_paged(operation))
        .collect();
    assert_eq!(lists.len(), 16);
    let recorder = Recorder::start(pages_of_two(5));
    let mut server = McpServer::recorded(&recorder, &["--tools", "default,granular"]);
    for operation in lists {
        let args = path_arguments(operation);
        let call = json!({"operation": operation.name, "args": args, "all": true, "output_format": "json"});
        let shown = server.call_plainly(dispatcher(operation), call).envelope();
        let name = operation.name;
        assert_eq!(ids(&shown), numbered(5), "{name}");
        assert_eq!(shown["metadata"]["totalResults"], 5, "{name}");
        assert_eq!(shown["metadata"]["warnings"], json!([]), "{name}");
        assert_eq!(
            (&shown["hasMore"], &shown["nextCursor"]),
            (&json!(false), &Value::Null),
            "{name}"
        );
        let seen = recorder.take();
        let cursors: Vec<Option<usize>> = seen.iter().map(cursor_of).collect();
        assert_eq!(cursors, [None, Some(2), Some(4)], "{name}");
        // The same through a tool of its own, without asking for the whole list again.
        let mut call = path_arguments(operation);
        call["all"] = json!(true);
        let (_, shown) = server.call_plainly(&name.replace('.', "_"), call).shown();
        assert_eq!(shown["metadata"]["returned"], 5, "{name}");
        assert_eq!(recorder.take().len(), 3, "{name}");
    }
}

/// Without `all`, one page is one request.
#[test]
fn one_page_is_the_default() {
    let mut desk = Desk::with(Recorder::start(pages_of_two(5)), &[], &[]);
    let (_, shown) = desk
        .operate("websets.list", json!({}), json!({"all": false}))
        .shown();
    assert_eq!(ids(&shown), numbered(2));
    assert_eq!(desk.asked(), 1);
}

/// Pages are as large as the API allows, unless the caller says how large.
#[test]
fn large_pages_are_requested() {
    let mut desk = Desk::with(Recorder::start(pages_of_two(3)), &[], &[]);
    let mut limits = |args: Value| -> Vec<String> {
        desk.operate("websets.list", args, json!({"all": true}))
            .shown();
        let seen = desk.recorder.take();
        let limit = |seen: &Seen| seen.query().into_iter().find(|(name, _)| name == "limit");
        seen.iter()
            .map(|seen| limit(seen).map_or_else(String::new, |(_, limit)| limit))
            .collect()
    };
    assert_eq!(limits(json!({})), ["100", "100"]);
    assert_eq!(limits(json!({"limit": 2})), ["2", "2"]);
}

#[test]
fn reading_all_stops_at_a_thousand_entries() {
    let script = |request: &Seen, _| {
        let start = cursor_of(request).unwrap_or(0);
        Reply::json(200, &page(start, 5_000, 100))
    };
    let mut desk = Desk::with(Recorder::start(script), &[], &[]);
    let options = json!({"all": true, "output_format": "json", "max_tokens": 1_000_000});
    let shown = desk.operate("websets.list", json!({}), options).envelope();
    assert_eq!(ids(&shown), numbered(1_000));
    assert_eq!(desk.asked(), 10);
    assert_eq!(shown["nextCursor"], "after 1000");
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("\"after 1000\"") && warning.contains("limit of 1000 results"),
        "{warning}"
    );
    // The cursor leads on, also to all the rest.
    let args = json!({"cursor": "after 4900"});
    let (_, shown) = desk
        .operate("websets.list", args, json!({"all": true}))
        .shown();
    assert_eq!(shown["metadata"]["totalResults"], 100);
}

#[test]
fn reads_no_more_pages_than_needed() {
    let mut desk = Desk::with(Recorder::start(pages_of_two(50)), &[], &[]);
    let options = json!({"all": true, "filters": {"maxResults": 5}});
    let (_, shown) = desk
        .operate("websets.list", json!({"limit": 2}), options)
        .shown();
    assert_eq!(ids(&shown), numbered(5));
    assert_eq!(desk.asked(), 3);
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("\"after 6\""), "{warning}");
}

/// What falls out here is made up for by reading on.
#[test]
fn filters_search_all_pages() {
    let script = |request: &Seen, _: usize| {
        let mut page = page(cursor_of(request).unwrap_or(0), 30, 2);
        for entry in page["data"].as_array_mut().expect("entries") {
            let wanted = entry["id"].as_str().is_some_and(|id| id.ends_with('7'));
            entry["title"] = json!(if wanted { "this one" } else { "another" });
        }
        Reply::json(200, &page)
    };
    let mut desk = Desk::with(Recorder::start(script), &[], &[]);
    let options = json!({"all": true, "filters": {"titleContains": "this", "maxResults": 2}});
    let (_, shown) = desk.operate("websets.list", json!({}), options).shown();
    assert_eq!(desk.asked(), 15);
    assert_eq!(ids(&shown), ["x7", "x17"]);
}

/// Steps of a call that are told before its answer comes.
fn progress(server: &mut McpServer, call: Value, token: Option<Value>) -> (Vec<Value>, Value) {
    let mut params = json!({"name": "manage_websets", "arguments": call});
    if let Some(token) = token {
        params["_meta"] = json!({"progressToken": token});
    }
    let id = server.send("tools/call", params);
    let mut steps = Vec::new();
    loop {
        let message = server.next();
        if message.get("id") == Some(&id) {
            return (steps, message["result"]["structuredContent"].clone());
        }
        if message["method"] == "notifications/progress" {
            steps.push(message["params"].clone());
        }
    }
}

#[test]
fn progress_is_sent_on_request() {
    let recorder = Recorder::start(pages_of_two(9));
    let mut server = McpServer::recorded(&recorder, &[]);
    let call = json!({"operation": "websets.list", "args": {}, "all": true});
    for token in [json!("a token"), json!(7)] {
        let (steps, shown) = progress(&mut server, call.clone(), Some(token.clone()));
        assert_eq!(ids(&shown), numbered(9));
        let done: Vec<f64> = steps
            .iter()
            .filter_map(|step| step["progress"].as_f64())
            .collect();
        assert_eq!(done, [2.0, 4.0, 6.0, 8.0, 9.0]);
        for step in &steps {
            assert_eq!(step["progressToken"], token);
            let message = step["message"].as_str().expect("words");
            assert!(
                message.contains("results") && message.contains("page"),
                "{message}"
            );
        }
    }
    let (steps, shown) = progress(&mut server, call, None);
    assert_eq!((steps.len(), ids(&shown).len()), (0, 9));
    // Nothing may follow the answer.
    server.assert_silent();
}

#[test]
fn failure_on_a_later_page_keeps_earlier_pages() {
    let script = |request: &Seen, _| match cursor_of(request) {
        Some(4) => Reply::json(400, &json!({"error": "the cursor is too old"})),
        start => Reply::json(200, &page(start.unwrap_or(0), 9, 2)),
    };
    let mut desk = Desk::with(Recorder::start(script), &[], &[]);
    let (text, shown) = desk
        .operate("websets.list", json!({}), json!({"all": true}))
        .shown();
    assert_eq!(ids(&shown), numbered(4));
    assert_eq!(
        (&shown["hasMore"], &shown["nextCursor"]),
        (&json!(true), &json!("after 4"))
    );
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    for part in ["page 3 failed", "400 Bad Request", "\"after 4\""] {
        assert!(warning.contains(part), "no {part} in {warning}");
    }
    // A warning has no marks around words of others; the call with the cursor shows them between marks.
    assert!(!warning.contains("too old"), "{warning}");
    assert!(text.contains("Warning: not all pages were read"), "{text}");
    let look = json!({"cache_id": cache_id(&shown)});
    let (_, shown) = desk.operate("websets.list", json!({}), look).shown();
    assert_eq!(ids(&shown).len(), 4);
}

#[test]
fn failure_on_the_first_page_is_a_failure() {
    let mut desk = Desk::with(
        Recorder::always(Reply::json(400, &json!({"error": "no"}))),
        &[],
        &[],
    );
    let failure = desk
        .operate("websets.list", json!({}), json!({"all": true}))
        .failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
}

/// An API that gives the same cursor again, at once or later, must not keep us for ever.
#[test]
fn cursor_cycle_ends() {
    let next = |cursor: Option<usize>, length: usize| (cursor.unwrap_or(0) + 2) % length;
    for (length, first, requests) in [(2, None, 2), (6, None, 4), (6, Some("after 4"), 4)] {
        let script = move |request: &Seen, _| {
            let start = cursor_of(request);
            let mut answer = page(start.unwrap_or(0), 100, 2);
            answer["nextCursor"] = json!(format!("after {}", next(start, length)));
            Reply::json(200, &answer)
        };
        let mut desk = Desk::with(Recorder::start(script), &[], &[]);
        let args = first.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let (_, shown) = desk
            .operate("websets.list", args, json!({"all": true}))
            .shown();
        assert!(desk.asked() <= requests, "a circle of {length}");
        let warning = shown["metadata"]["warnings"][0]
            .as_str()
            .expect("a warning");
        assert!(warning.contains("repeated a page"), "{warning}");
    }
}

/// Nor must one that has ever new cursors and nothing to list.
#[test]
fn endless_empty_pages_end() {
    let script = |_: &Seen, before: usize| {
        Reply::json(
            200,
            &json!({"data": [], "hasMore": true, "nextCursor": format!("c{before}")}),
        )
    };
    let mut desk = Desk::with(Recorder::start(script), &[], &[]);
    let (_, shown) = desk
        .operate("websets.list", json!({}), json!({"all": true}))
        .shown();
    assert!(desk.asked() <= 200);
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("pages"), "{warning}");
}

/// Where there are no pages, `all` is no mistake, but it is told.
#[test]
fn all_is_ignored_without_pagination() {
    let mut desk = Desk::answering(&json!({"results": []}));
    let (text, shown) = desk.search(json!({"all": true})).shown();
    assert_eq!(desk.asked(), 1);
    assert!(
        shown["metadata"]["warnings"][0]
            .as_str()
            .is_some_and(|it| it.contains("`all`"))
    );
    assert!(text.contains("Warning: "), "{text}");
}

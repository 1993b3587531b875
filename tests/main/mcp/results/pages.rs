//! All pages of a list in one result.

use exa_mcp_model::Operation;
use exa_mcp_server::operations::{all, is_paged};
use serde_json::{Value, json};

use super::super::operations::dispatcher;
use super::{Fixture, cache_id};
use crate::support::{McpServer, RecordedRequest, Recorder, Response};

/// Returns a script that serves a list in pages of two.
fn pages_of_two(total: usize) -> impl Fn(&RecordedRequest, usize) -> Response {
    move |request, _| {
        let start = cursor_of(request).unwrap_or(0);
        Response::json(200, &page(start, total, 2))
    }
}

/// Returns the number in the cursor of a request.
fn cursor_of(request: &RecordedRequest) -> Option<usize> {
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

fn ids(structured: &Value) -> Vec<String> {
    let results = structured["results"].as_array().expect("results");
    let id = |result: &Value| result["id"].as_str().expect("an id").to_owned();
    results.iter().map(id).collect()
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("x{number}")).collect()
}

/// Returns the path arguments of an operation.
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
        .filter(|operation| operation.api.name != "team" && is_paged(operation))
        .collect();
    assert!(lists.len() >= 17, "{lists:?}");
    let recorder = Recorder::start(pages_of_two(5));
    let mut server = McpServer::with_recorder(&recorder, &["--tools", "default,granular"]);
    for operation in lists {
        let args = path_arguments(operation);
        let call = json!({"operation": operation.name, "args": args, "all": true, "output_format": "json"});
        let structured = server.call_raw(dispatcher(operation), call).envelope();
        let name = operation.name;
        assert_eq!(ids(&structured), numbered(5), "{name}");
        assert_eq!(structured["metadata"]["totalResults"], 5, "{name}");
        assert_eq!(structured["metadata"]["warnings"], json!([]), "{name}");
        assert_eq!(
            (&structured["hasMore"], &structured["nextCursor"]),
            (&json!(false), &Value::Null),
            "{name}"
        );
        let requests = recorder.take();
        let cursors: Vec<Option<usize>> = requests.iter().map(cursor_of).collect();
        assert_eq!(cursors, [None, Some(2), Some(4)], "{name}");
        // The same through the operation's own tool, without requesting the list again.
        let mut call = path_arguments(operation);
        call["all"] = json!(true);
        let (_, structured) = server.call_raw(&name.replace('.', "_"), call).into_parts();
        assert_eq!(structured["metadata"]["returned"], 5, "{name}");
        assert_eq!(recorder.take().len(), 3, "{name}");
    }
}

/// Without `all`, one page is one request.
#[test]
fn one_page_is_the_default() {
    let mut fixture = Fixture::with(Recorder::start(pages_of_two(5)), &[], &[]);
    let (_, structured) = fixture
        .call_operation("websets.list", json!({}), json!({"all": false}))
        .into_parts();
    assert_eq!(ids(&structured), numbered(2));
    assert_eq!(fixture.take_request_count(), 1);
}

/// Pages have the maximum size, unless the caller sets it.
#[test]
fn large_pages_are_requested() {
    let mut fixture = Fixture::with(Recorder::start(pages_of_two(3)), &[], &[]);
    let mut limits = |args: Value| -> Vec<String> {
        fixture
            .call_operation("websets.list", args, json!({"all": true}))
            .into_parts();
        let requests = fixture.recorder.take();
        let limit = |request: &RecordedRequest| {
            request
                .query()
                .into_iter()
                .find(|(name, _)| name == "limit")
        };
        requests
            .iter()
            .map(|request| limit(request).map_or_else(String::new, |(_, limit)| limit))
            .collect()
    };
    assert_eq!(limits(json!({})), ["100", "100"]);
    assert_eq!(limits(json!({"limit": 2})), ["2", "2"]);
}

#[test]
fn reading_all_stops_at_a_thousand_entries() {
    let script = |request: &RecordedRequest, _| {
        let start = cursor_of(request).unwrap_or(0);
        Response::json(200, &page(start, 5_000, 100))
    };
    let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
    let options = json!({"all": true, "output_format": "json", "max_tokens": 1_000_000});
    let structured = fixture
        .call_operation("websets.list", json!({}), options)
        .envelope();
    assert_eq!(ids(&structured), numbered(1_000));
    assert_eq!(fixture.take_request_count(), 10);
    assert_eq!(structured["nextCursor"], "after 1000");
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("\"after 1000\"") && warning.contains("limit of 1000 results"),
        "{warning}"
    );
    // The cursor continues the list, also for the whole rest.
    let args = json!({"cursor": "after 4900"});
    let (_, structured) = fixture
        .call_operation("websets.list", args, json!({"all": true}))
        .into_parts();
    assert_eq!(structured["metadata"]["totalResults"], 100);
}

#[test]
fn reads_no_more_pages_than_needed() {
    let mut fixture = Fixture::with(Recorder::start(pages_of_two(50)), &[], &[]);
    let options = json!({"all": true, "filters": {"maxResults": 5}});
    let (_, structured) = fixture
        .call_operation("websets.list", json!({"limit": 2}), options)
        .into_parts();
    assert_eq!(ids(&structured), numbered(5));
    assert_eq!(fixture.take_request_count(), 3);
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("\"after 6\""), "{warning}");
}

/// Filtered entries are replaced by reading further pages.
#[test]
fn filters_search_all_pages() {
    let script = |request: &RecordedRequest, _: usize| {
        let mut page = page(cursor_of(request).unwrap_or(0), 30, 2);
        for entry in page["data"].as_array_mut().expect("entries") {
            let wanted = entry["id"].as_str().is_some_and(|id| id.ends_with('7'));
            entry["title"] = json!(if wanted { "this one" } else { "another" });
        }
        Response::json(200, &page)
    };
    let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
    let options = json!({"all": true, "filters": {"titleContains": "this", "maxResults": 2}});
    let (_, structured) = fixture
        .call_operation("websets.list", json!({}), options)
        .into_parts();
    assert_eq!(fixture.take_request_count(), 15);
    assert_eq!(ids(&structured), ["x7", "x17"]);
}

/// Makes a call; returns its progress notifications and its response.
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
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let call = json!({"operation": "websets.list", "args": {}, "all": true});
    for token in [json!("a token"), json!(7)] {
        let (steps, structured) = progress(&mut server, call.clone(), Some(token.clone()));
        assert_eq!(ids(&structured), numbered(9));
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
    let (steps, structured) = progress(&mut server, call, None);
    assert_eq!((steps.len(), ids(&structured).len()), (0, 9));
    // Nothing may follow the response.
    server.assert_silent();
}

#[test]
fn failure_on_a_later_page_keeps_earlier_pages() {
    let script = |request: &RecordedRequest, _| match cursor_of(request) {
        Some(4) => Response::json(400, &json!({"error": "the cursor is too old"})),
        start => Response::json(200, &page(start.unwrap_or(0), 9, 2)),
    };
    let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
    let (text, structured) = fixture
        .call_operation("websets.list", json!({}), json!({"all": true}))
        .into_parts();
    assert_eq!(ids(&structured), numbered(4));
    assert_eq!(
        (&structured["hasMore"], &structured["nextCursor"]),
        (&json!(true), &json!("after 4"))
    );
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    for part in ["page 3 failed", "400 Bad Request", "\"after 4\""] {
        assert!(warning.contains(part), "no {part} in {warning}");
    }
    // A warning must not quote untrusted text; the call with the cursor shows it inside of markers.
    assert!(!warning.contains("too old"), "{warning}");
    assert!(text.contains("Warning: not all pages were read"), "{text}");
    let view = json!({"cache_id": cache_id(&structured)});
    let (_, structured) = fixture
        .call_operation("websets.list", json!({}), view)
        .into_parts();
    assert_eq!(ids(&structured).len(), 4);
}

#[test]
fn failure_on_the_first_page_is_a_failure() {
    let mut fixture = Fixture::with(
        Recorder::always(Response::json(400, &json!({"error": "no"}))),
        &[],
        &[],
    );
    let failure = fixture
        .call_operation("websets.list", json!({}), json!({"all": true}))
        .failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
}

/// An API that repeats a cursor must not cause an endless loop.
#[test]
fn cursor_cycle_ends() {
    let next = |cursor: Option<usize>, length: usize| (cursor.unwrap_or(0) + 2) % length;
    for (length, first, requests) in [(2, None, 2), (6, None, 4), (6, Some("after 4"), 4)] {
        let script = move |request: &RecordedRequest, _| {
            let start = cursor_of(request);
            let mut response = page(start.unwrap_or(0), 100, 2);
            response["nextCursor"] = json!(format!("after {}", next(start, length)));
            Response::json(200, &response)
        };
        let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
        let args = first.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let (_, structured) = fixture
            .call_operation("websets.list", args, json!({"all": true}))
            .into_parts();
        assert!(
            fixture.take_request_count() <= requests,
            "a circle of {length}"
        );
        let warning = structured["metadata"]["warnings"][0]
            .as_str()
            .expect("a warning");
        assert!(warning.contains("repeated a page"), "{warning}");
    }
}

/// Neither must one with endless empty pages.
#[test]
fn endless_empty_pages_end() {
    let script = |_: &RecordedRequest, before: usize| {
        Response::json(
            200,
            &json!({"data": [], "hasMore": true, "nextCursor": format!("c{before}")}),
        )
    };
    let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
    let (_, structured) = fixture
        .call_operation("websets.list", json!({}), json!({"all": true}))
        .into_parts();
    assert!(fixture.take_request_count() <= 200);
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("pages"), "{warning}");
}

/// Without pages, `all` is ignored with a warning.
#[test]
fn all_is_ignored_without_pagination() {
    let mut fixture = Fixture::with_response(&json!({"results": []}));
    let (text, structured) = fixture.search(json!({"all": true})).into_parts();
    assert_eq!(fixture.take_request_count(), 1);
    assert!(
        structured["metadata"]["warnings"][0]
            .as_str()
            .is_some_and(|it| it.contains("`all`"))
    );
    assert!(text.contains("Warning: "), "{text}");
}

/// Serves a list whose entries are long, in pages of a hundred.
fn long_entries(request: &RecordedRequest) -> Response {
    let start = cursor_of(request).unwrap_or(0);
    let mut page = page(start, 250, 100);
    for entry in page["data"].as_array_mut().expect("entries") {
        entry["description"] = json!("word ".repeat(100));
    }
    Response::json(200, &page)
}

/// The cursor leads past what the page has not shown yet, so it comes last.
#[test]
fn cursor_is_shown_with_the_end_of_its_page() {
    let mut fixture = Fixture::with(
        Recorder::start(|request, _| long_entries(request)),
        &[],
        &[],
    );
    let args = json!({"limit": 100});
    let mut options = json!({});
    let mut found = Vec::new();
    for _ in 0..20 {
        let call = fixture.call_operation("websets.list", args.clone(), options.clone());
        let (text, structured) = call.into_parts();
        found.extend(ids(&structured));
        let shown = structured["results"].as_array().map_or(0, Vec::len);
        let left = 100 - found.len();
        if left == 0 {
            assert_eq!(structured["nextCursor"], "after 100");
            assert!(text.contains("nextCursor: after 100"), "{text}");
            break;
        }
        assert_eq!(structured.get("nextCursor"), None, "{shown}");
        assert!(!text.contains("after 100"), "{text}");
        let count = format!("{shown} of 100 on this page, more follow");
        assert!(text.contains(&count), "{count} is not in {text}");
        options = json!({"cache_id": cache_id(&structured), "offset": found.len()});
    }
    assert_eq!(found, numbered(100));
    assert_eq!(fixture.take_request_count(), 1);
}

#[test]
fn page_that_is_not_the_last_says_so() {
    let mut fixture = Fixture::with(Recorder::start(pages_of_two(5)), &[], &[]);
    let (text, _) = fixture
        .call_operation("websets.list", json!({}), json!({}))
        .into_parts();
    assert!(
        text.starts_with("websets.list: 2 on this page, more follow"),
        "{text}"
    );
    let last = json!({"cursor": "after 4"});
    let (text, _) = fixture
        .call_operation("websets.list", last, json!({}))
        .into_parts();
    assert!(text.starts_with("websets.list: 1 result"), "{text}");
}

/// Entries to skip may be on earlier pages.
#[test]
fn offset_beyond_the_page_reads_on() {
    let script = |request: &RecordedRequest, _| {
        let start = cursor_of(request).unwrap_or(0);
        let pairs = request.query();
        let limit = pairs.iter().find(|(name, _)| name == "limit");
        let size = limit.and_then(|(_, limit)| limit.parse().ok());
        Response::json(200, &page(start, 50, size.unwrap_or(25)))
    };
    let mut fixture = Fixture::with(Recorder::start(script), &[], &[]);
    for (args, offset, shown) in [
        (json!({"limit": 5}), 5, 5..10),
        (json!({"limit": 10}), 45, 45..50),
        (json!({}), 30, 30..50),
    ] {
        let (text, structured) = fixture
            .call_operation("websets.list", args, json!({"offset": offset}))
            .into_parts();
        let wanted: Vec<String> = shown.map(|number| format!("x{number}")).collect();
        assert_eq!(ids(&structured), wanted, "{text}");
    }
}

/// The same through a tool with a schema of its own.
#[test]
fn large_limit_of_a_named_tool_reads_several_pages() {
    let recorder = Recorder::start(|request, _| long_entries(request));
    let mut fixture = Fixture::with(recorder, &["--tools", "legacy"], &[]);
    let call = json!({"limit": 150, "output_format": "json", "max_tokens": 1_000_000});
    let structured = fixture.server.call_raw("list_websets", call).envelope();
    assert_eq!(ids(&structured), numbered(150));
}

/// A limit above the size of a page reads several pages.
#[test]
fn large_limit_reads_several_pages() {
    let mut fixture = Fixture::with(
        Recorder::start(|request, _| long_entries(request)),
        &[],
        &[],
    );
    let options = json!({"output_format": "json", "max_tokens": 1_000_000});
    for limit in [json!(150), json!("150")] {
        let structured = fixture
            .call_operation("websets.list", json!({"limit": limit}), options.clone())
            .envelope();
        assert_eq!(ids(&structured), numbered(150));
        assert_eq!(fixture.take_request_count(), 2);
        let correction = structured["metadata"]["corrections"][0]
            .as_str()
            .expect("a correction");
        assert!(
            correction.contains("`limit` 150") && correction.contains("`all`"),
            "{correction}"
        );
    }
}

//! More of a result after the fact: from the cache, or from Exa at the lower price.

use serde_json::{Value, json};

use super::{Fixture, cache_id, merge, samples};
use crate::support::{RecordedRequest, Recorder, Response};

/// Returns the contents that a search requests.
#[track_caller]
fn contents_of(tool: &str, call: Value) -> Value {
    let mut fixture = Fixture::with_tools("classic", &samples::pages());
    let outcome = fixture.server.call_raw(tool, call);
    assert!(!outcome.is_error, "{}", outcome.text);
    let body: Value = fixture.recorder.only_request().json().expect("a body");
    body["contents"].clone()
}

/// What the price includes is requested; nothing that would raise it, and nothing beside what the caller chose.
#[test]
fn searches_request_what_the_price_includes() {
    let both = json!({"highlights": true, "text": true});
    let highlights = json!({"highlights": true});
    for (call, contents) in [
        (json!({"numResults": 10}), &both),
        (json!({"numResults": 11}), &highlights),
        (json!({"numResults": "25"}), &highlights),
        (json!({"filters": {"maxResults": 25}}), &highlights),
        (json!({"filters": {"maxResults": 4}}), &both),
        (json!({"content_level": "summary"}), &both),
        (
            json!({"contents": {"summary": true}}),
            &json!({"summary": true, "highlights": true}),
        ),
        (
            json!({"contents": {"text": {"maxCharacters": 9}}}),
            &json!({"text": {"maxCharacters": 9}, "highlights": true}),
        ),
        (
            json!({"contents": {"highlights": {"query": "q"}}}),
            &json!({"highlights": {"query": "q"}}),
        ),
        (
            json!({"contents": {"subpages": 2}}),
            &json!({"subpages": 2, "highlights": true}),
        ),
    ] {
        let sent = contents_of("web_search_exa", merge(json!({"query": "q"}), &call));
        assert_eq!(&sent, contents, "{call}");
    }
    let url = json!({"url": "https://a.example/x"});
    assert_eq!(contents_of("find_similar_exa", url), both);
}

/// The text is in the cache, so a higher level, one result and the field itself are free.
#[test]
fn a_higher_level_is_free_from_the_cache() {
    let mut fixture = Fixture::with_tools("default", &samples::pages());
    let (text, structured) = fixture
        .server
        .call_raw("web_search_exa", json!({"query": "q"}))
        .into_parts();
    let page = &samples::pages()["results"][1];
    let whole = page["text"].as_str().expect("a text");
    assert!(!text.contains("Left out"), "{text}");
    assert_eq!(structured["results"][1].get("text"), None);
    let id = cache_id(&structured);
    let hint = format!("More: cache_id {id} and content_level \"full\", free");
    assert!(text.contains(&hint), "{text}");
    assert_eq!(fixture.take_request_count(), 1);
    for view in [
        json!({"content_level": "full"}),
        json!({"index": 2}),
        json!({"fields": ["title", "text"]}),
        json!({"content_level": "full", "output_format": "json"}),
    ] {
        for (tool, call) in [
            ("web_search_exa", json!({"query": "q", "cache_id": id})),
            ("exa_api", json!({"operation": "search", "cache_id": id})),
        ] {
            let outcome = fixture.server.call_raw(tool, merge(call, &view));
            let (_, structured) = outcome.into_parts();
            let results = structured["results"].as_array().expect("results");
            let found = results.iter().any(|result| result["text"] == whole);
            assert!(found, "{tool} {view}: {structured}");
            assert_eq!(structured["metadata"]["costDollars"], 0, "{view}");
        }
    }
    assert_eq!(fixture.take_request_count(), 0);
}

/// JSON for programs does not grow by texts that nobody asked for.
#[test]
fn json_has_the_default_level_of_the_tool() {
    let mut fixture = Fixture::with_tools("default", &samples::pages());
    let call = json!({"query": "q", "output_format": "json"});
    for _ in ["from Exa", "from the cache"] {
        let structured = fixture
            .server
            .call_raw("web_search_exa", call.clone())
            .envelope();
        assert_eq!(structured["metadata"]["contentLevel"], "standard");
        assert_eq!(structured["results"][0]["text"], Value::Null);
        assert_eq!(
            structured["results"][0]["score"],
            samples::pages()["results"][0]["score"]
        );
        let more = structured["metadata"]["more"].as_str().expect("a hint");
        assert!(more.contains("cache_id") && more.contains("free"), "{more}");
    }
}

fn address(number: usize) -> String {
    format!("https://a.example/{number}")
}

/// An upstream that has highlights or texts, whichever is requested, at the prices of Exa.
fn upstream() -> Recorder {
    Recorder::start(|request: &RecordedRequest, _| {
        let body: Value = request.json().expect("a body");
        let is_search = request.target == "/search";
        let urls: Vec<String> = match body["urls"].as_array() {
            Some(urls) => urls
                .iter()
                .filter_map(|url| url.as_str().map(str::to_owned))
                .collect(),
            None => (1..=body["numResults"].as_u64().unwrap_or(10))
                .map(|it| address(it as usize))
                .collect(),
        };
        let contents = if is_search { &body["contents"] } else { &body };
        let page = |url: &String| {
            let mut page = json!({"id": url, "url": url, "title": format!("Page {url}")});
            if contents["text"] != Value::Null {
                page["text"] = json!(format!("The whole text of {url}."));
            }
            if contents["highlights"] != Value::Null {
                page["highlights"] = json!([format!("A passage of {url}.")]);
            }
            page
        };
        let cost = if is_search {
            0.017
        } else {
            urls.len() as f64 * 0.001
        };
        let results: Vec<Value> = urls.iter().map(page).collect();
        Response::json(
            200,
            &json!({"results": results, "costDollars": {"total": cost}}),
        )
    })
}

/// What was not requested is bought by the cheaper of two calls, and the answer says for how much.
#[test]
fn missing_contents_are_bought_at_the_lower_price() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let call = json!({"query": "q", "numResults": 20});
    let (_, structured) = fixture.server.call_raw("web_search_exa", call).into_parts();
    let id = cache_id(&structured);
    fixture.recorder.take();

    // One page costs 0.001, a search for twenty 0.027.
    let one = json!({"query": "q", "cache_id": id, "index": 3, "content_level": "full"});
    let (text, structured) = fixture
        .server
        .call_raw("web_search_exa", one.clone())
        .into_parts();
    let request = fixture.recorder.only_request();
    assert_eq!(request.target, "/contents");
    assert_eq!(
        request.json(),
        Some(json!({"urls": [address(3)], "text": true}))
    );
    assert_eq!(
        structured["results"][0]["text"],
        format!("The whole text of {}.", address(3))
    );
    assert_eq!(structured["metadata"]["costDollars"], 0.001);
    assert!(
        text.contains("1 page was read from Exa, for $0.0010"),
        "{text}"
    );
    assert_eq!(structured["metadata"]["cacheId"], json!(id));

    // Read again, it is free.
    let (_, structured) = fixture.server.call_raw("web_search_exa", one).into_parts();
    assert_eq!(
        structured["results"][0]["text"],
        format!("The whole text of {}.", address(3))
    );
    assert_eq!(structured["metadata"]["costDollars"], 0);
    assert_eq!(fixture.take_request_count(), 0);

    // The nineteen others cost 0.019, which is less than the search.
    let all = json!({"operation": "search", "cache_id": id, "content_level": "full"});
    let (_, structured) = fixture.server.call_raw("exa_api", all.clone()).into_parts();
    let request = fixture.recorder.only_request();
    let body: Value = request.json().expect("a body");
    assert_eq!(request.target, "/contents");
    assert_eq!(body["urls"].as_array().map(Vec::len), Some(19));
    assert_eq!(structured["metadata"]["returned"], 20);
    assert_eq!(structured["metadata"]["costDollars"], 0.019);
    let (_, structured) = fixture.server.call_raw("exa_api", all).into_parts();
    assert_eq!(
        structured["results"][19]["text"],
        format!("The whole text of {}.", address(20))
    );
    assert_eq!(fixture.take_request_count(), 0);
}

/// Eight results with text cost more to read than to search for again.
#[test]
fn a_search_is_repeated_if_that_is_cheaper() {
    let mut fixture = Fixture::with(upstream(), &["--tools", "classic"], &[]);
    let call = json!({"query": "q"});
    let (_, structured) = fixture
        .server
        .call_raw("get_code_context_exa", call.clone())
        .into_parts();
    let id = cache_id(&structured);
    fixture.recorder.take();
    let more = merge(call, &json!({"cache_id": id, "content_level": "full"}));
    let (text, structured) = fixture
        .server
        .call_raw("get_code_context_exa", more)
        .into_parts();
    let request = fixture.recorder.only_request();
    assert_eq!(request.target, "/search");
    assert_eq!(
        request.json(),
        Some(
            json!({"query": "q", "numResults": 8, "type": "fast", "contents": {"highlights": true, "text": true}})
        )
    );
    assert_eq!(
        structured["results"][7]["text"],
        format!("The whole text of {}.", address(8))
    );
    assert_eq!(structured["metadata"]["costDollars"], 0.017);
    assert!(text.contains("Exa was asked again, for $0.0170"), "{text}");
}

/// A page that was read in part is read whole.
#[test]
fn pages_are_read_whole_after_the_fact() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let call = json!({"urls": [address(1), address(2)]});
    let (_, structured) = fixture
        .server
        .call_raw("web_fetch_exa", call.clone())
        .into_parts();
    let id = cache_id(&structured);
    fixture.recorder.take();
    let more = json!({"cache_id": id, "index": 2, "content_level": "full"});
    let (_, structured) = fixture.server.call_raw("web_fetch_exa", more).into_parts();
    assert_eq!(
        fixture.recorder.only_request().json(),
        Some(json!({"urls": [address(2)], "text": true}))
    );
    assert_eq!(structured["metadata"]["costDollars"], 0.001);
    // What the caller chose stays as it is.
    let chosen = merge(call, &json!({"maxCharacters": 50}));
    let (_, structured) = fixture
        .server
        .call_raw("web_fetch_exa", chosen)
        .into_parts();
    fixture.recorder.take();
    let more = json!({"cache_id": cache_id(&structured), "content_level": "full"});
    let (_, structured) = fixture.server.call_raw("web_fetch_exa", more).into_parts();
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("without cache_id"), "{warning}");
    assert_eq!(fixture.take_request_count(), 0);
}

/// Two calls at the same time pay once for what both need, as two calls in turn do.
#[test]
fn the_same_contents_are_bought_once() {
    for (tool, count) in [("web_search_exa", 20), ("get_code_context_exa", 8)] {
        let mut fixture = Fixture::with(upstream(), &["--tools", "classic"], &[]);
        let call = json!({"query": "q", "numResults": count});
        let (_, structured) = fixture.server.call_raw(tool, call.clone()).into_parts();
        let id = cache_id(&structured);
        fixture.recorder.take();
        let level = json!({"cache_id": id, "content_level": "full"});
        let call = json!({"name": tool, "arguments": merge(call, &level)});
        let calls: Vec<Value> = (0..8)
            .map(|_| fixture.server.send("tools/call", call.clone()))
            .collect();
        let mut costs: Vec<f64> = Vec::new();
        for call in calls {
            let body = fixture.server.response(&call);
            let structured = &body["result"]["structuredContent"];
            let text = &structured["results"][0]["text"];
            assert_eq!(
                *text,
                format!("The whole text of {}.", address(1)),
                "{body}"
            );
            let cost = structured["metadata"]["costDollars"].as_f64();
            costs.push(cost.expect("a cost"));
        }
        assert_eq!(fixture.take_request_count(), 1, "{tool}");
        let paid = costs.iter().filter(|cost| **cost > 0.0).count();
        assert_eq!(paid, 1, "{tool}: {costs:?}");
    }
}

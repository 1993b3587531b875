//! Content levels in requests: named tools request what the level shows and what the price includes, all others send
//! the caller's arguments unchanged.

use serde_json::{Value, json};

use super::{Fixture, merge, samples};

/// Returns the body of the only request of a call.
#[track_caller]
fn sent(fixture: &mut Fixture, tool: &str, call: Value) -> Value {
    let outcome = fixture.server.call_raw(tool, call);
    assert!(!outcome.is_error, "{}", outcome.text);
    fixture.recorder.only_request().json().expect("a body")
}

#[test]
fn named_tools_request_what_the_level_shows() {
    let mut fixture = Fixture::with_tools("classic", &samples::pages());
    let searches = [
        ("web_search_exa", json!({"query": "q"})),
        ("get_code_context_exa", json!({"query": "q"})),
        ("company_research_exa", json!({"companyName": "q"})),
        ("people_search_exa", json!({"query": "q"})),
        ("linkedin_search_exa", json!({"query": "q"})),
        ("find_similar_exa", json!({"url": "https://a.example/"})),
        ("deep_search_exa", json!({"objective": "q"})),
    ];
    for (tool, call) in searches {
        // Highlights and text are included in the price, and are there for a higher level.
        let both = Some(json!({"highlights": true, "text": true}));
        let of_code = |contents: Option<Value>| match tool {
            "get_code_context_exa" => contents,
            _ => both.clone(),
        };
        for (level, contents) in [
            ("summary", of_code(None)),
            ("standard", of_code(Some(json!({"highlights": true})))),
            ("full", Some(json!({"text": true}))),
        ] {
            let call = merge(call.clone(), &json!({"content_level": level}));
            let body = sent(&mut fixture, tool, call);
            assert_eq!(body.get("contents"), contents.as_ref(), "{tool} {level}");
        }
    }
    for tool in ["web_fetch_exa", "crawling_exa"] {
        for (level, text) in [
            ("summary", json!({"maxCharacters": 300})),
            ("standard", json!({"maxCharacters": 3000})),
            ("full", json!(true)),
        ] {
            let call =
                json!({"urls": [format!("https://{tool}.example/")], "content_level": level});
            assert_eq!(
                sent(&mut fixture, tool, call)["text"],
                text,
                "{tool} {level}"
            );
        }
    }
}

/// JSON output has every field of the tool's default level; full texts are long, so they need an explicit level.
#[test]
fn format_does_not_change_the_request() {
    let mut fixture = Fixture::with_tools("classic", &samples::pages());
    let call = json!({"query": "q", "output_format": "json"});
    let structured = fixture.server.call_raw("web_search_exa", call).envelope();
    // The reported level is the requested one.
    assert_eq!(structured["metadata"]["contentLevel"], "standard");
    let mut expected = samples::pages()["results"].clone();
    for page in expected.as_array_mut().expect("pages") {
        page["text"] = Value::Null;
    }
    assert_eq!(structured["results"], expected);
    let body = fixture.recorder.only_request().json().expect("a body");
    assert_eq!(body["contents"], json!({"highlights": true, "text": true}));
    let call = json!({"query": "q", "output_format": "json", "content_level": "full"});
    let body = sent(&mut fixture, "web_search_exa", call);
    assert_eq!(body["contents"], json!({"text": true}));
}

/// The default number of results of a named tool is not a choice of the caller.
#[test]
fn requests_no_more_results_than_needed() {
    let mut fixture = Fixture::with_tools("classic", &samples::pages());
    for (more, asked) in [
        (json!({"filters": {"maxResults": 3}}), 3),
        (json!({"filters": {"maxResults": 25}}), 25),
        (json!({"filters": {"maxResults": 3}, "numResults": 7}), 7),
        (json!({"filters": {"maxResults": 3, "minScore": 0.1}}), 10),
        (json!({}), 10),
    ] {
        let call = merge(json!({"query": "q", "fresh": true}), &more);
        let body = sent(&mut fixture, "web_search_exa", call);
        assert_eq!(body["numResults"], asked, "{more}");
    }
}

/// The caller's arguments take precedence over the level.
#[test]
fn caller_content_options_win() {
    let mut fixture = Fixture::with_tools("classic", &samples::pages());
    let call = json!({"query": "q", "content_level": "summary", "contents": {"text": {"maxCharacters": 9}}});
    let body = sent(&mut fixture, "web_search_exa", call);
    assert_eq!(body["contents"], json!({"text": {"maxCharacters": 9}}));
    let call =
        json!({"urls": ["https://a.example/"], "content_level": "full", "maxCharacters": 50});
    let body = sent(&mut fixture, "web_fetch_exa", call);
    assert_eq!(body["text"], json!({"maxCharacters": 50}));
}

/// With dispatchers, the toolhost and granular tools, levels only affect the output.
#[test]
fn other_tools_send_caller_arguments_unchanged() {
    let bodies = [
        json!({"query": "q"}),
        json!({"query": "q", "numResults": 3, "contents": {"summary": {"query": "s"}}, "unheardOf": [1]}),
    ];
    let options = json!({"output_format": "json", "max_tokens": 500, "offset": 1, "index": 1, "fresh": true,
        "fields": ["title"]});
    for level in ["summary", "standard", "full"] {
        let options = merge(options.clone(), &json!({"content_level": level}));
        for body in &bodies {
            let mut fixture = Fixture::with_response(&samples::pages());
            let call = merge(json!({"operation": "search", "args": body}), &options);
            assert_eq!(&sent(&mut fixture, "exa_api", call), body);
            let mut fixture = Fixture::with_tools("toolhost,granular", &samples::pages());
            let call = merge(json!({"operation": "search", "params": body}), &options);
            assert_eq!(&sent(&mut fixture, "exa-sync", call), body);
            assert_eq!(
                &sent(&mut fixture, "search", merge(body.clone(), &options)),
                body
            );
        }
    }
}

/// `limit` is an argument of list operations, and an option when reading a cached result.
#[test]
fn list_limit_is_sent_unchanged() {
    let mut fixture = Fixture::with_tools("default,granular", &samples::items());
    let calls = [
        (
            "items_list",
            json!({"websetId": "w", "limit": 1, "content_level": "summary"}),
        ),
        (
            "manage_websets",
            json!({"operation": "items.list", "args": {"websetId": "w", "limit": 1}}),
        ),
        (
            "manage_websets",
            json!({"operation": "items.list", "args": {"websetId": "w"}, "limit": 1}),
        ),
    ];
    for (tool, call) in calls {
        let (_, structured) = fixture.server.call_raw(tool, call).into_parts();
        assert_eq!(
            fixture.recorder.only_request().target,
            "/websets/v0/websets/w/items?limit=1"
        );
        // This upstream ignores the limit, so all of its results are shown.
        assert_eq!(structured["metadata"]["returned"], 2);
        let id = structured["metadata"]["cacheId"].clone();
        let again = json!({"operation": "items.list", "cache_id": id, "limit": 1});
        let (_, structured) = fixture
            .server
            .call_raw("manage_websets", again)
            .into_parts();
        assert_eq!(structured["metadata"]["returned"], 1);
        assert_eq!(fixture.take_request_count(), 0);
    }
}

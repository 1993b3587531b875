//! What a level means for the request: named tools ask for no more than it shows, all others send what
//! the caller said.

use serde_json::{Value, json};

use super::{Desk, joined, specimens};

/// The body of the only request that a call makes.
#[track_caller]
fn sent(desk: &mut Desk, tool: &str, call: Value) -> Value {
    let outcome = desk.server.call_plainly(tool, call);
    assert!(!outcome.is_error, "{}", outcome.text);
    desk.recorder.only().json().expect("a body")
}

#[test]
fn named_tools_request_what_the_level_shows() {
    let mut desk = Desk::offering("classic", &specimens::pages());
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
        for (level, contents) in [
            ("summary", None),
            ("standard", Some(json!({"highlights": true}))),
            ("full", Some(json!({"text": true}))),
        ] {
            let call = joined(call.clone(), &json!({"content_level": level}));
            let body = sent(&mut desk, tool, call);
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
            assert_eq!(sent(&mut desk, tool, call)["text"], text, "{tool} {level}");
        }
    }
}

/// Code gets every field of what the tool usually asks for; whole texts cost more, so they are for
/// those who name the level.
#[test]
fn format_does_not_change_the_request() {
    let mut desk = Desk::offering("classic", &specimens::pages());
    let call = json!({"query": "q", "output_format": "json"});
    let shown = desk.server.call_plainly("web_search_exa", call).envelope();
    // The level that is told is the one that was asked for.
    assert_eq!(shown["metadata"]["contentLevel"], "standard");
    assert_eq!(shown["results"], specimens::pages()["results"]);
    let body = desk.recorder.only().json().expect("a body");
    assert_eq!(body["contents"], json!({"highlights": true}));
    let call = json!({"query": "q", "output_format": "json", "content_level": "full"});
    let body = sent(&mut desk, "web_search_exa", call);
    assert_eq!(body["contents"], json!({"text": true}));
}

/// How many results a named tool usually asks for is nobody's wish.
#[test]
fn requests_no_more_results_than_needed() {
    let mut desk = Desk::offering("classic", &specimens::pages());
    for (more, asked) in [
        (json!({"filters": {"maxResults": 3}}), 3),
        (json!({"filters": {"maxResults": 25}}), 25),
        (json!({"filters": {"maxResults": 3}, "numResults": 7}), 7),
        (json!({"filters": {"maxResults": 3, "minScore": 0.1}}), 10),
        (json!({}), 10),
    ] {
        let call = joined(json!({"query": "q", "fresh": true}), &more);
        let body = sent(&mut desk, "web_search_exa", call);
        assert_eq!(body["numResults"], asked, "{more}");
    }
}

/// What the caller asks for goes before what the level would.
#[test]
fn caller_content_options_win() {
    let mut desk = Desk::offering("classic", &specimens::pages());
    let call = json!({"query": "q", "content_level": "summary", "contents": {"text": {"maxCharacters": 9}}});
    let body = sent(&mut desk, "web_search_exa", call);
    assert_eq!(body["contents"], json!({"text": {"maxCharacters": 9}}));
    let call =
        json!({"urls": ["https://a.example/"], "content_level": "full", "maxCharacters": 50});
    let body = sent(&mut desk, "web_fetch_exa", call);
    assert_eq!(body["text"], json!({"maxCharacters": 50}));
}

/// Dispatchers, hosts and granular tools shape the answer only.
#[test]
fn other_tools_send_caller_arguments_unchanged() {
    let bodies = [
        json!({"query": "q"}),
        json!({"query": "q", "numResults": 3, "contents": {"summary": {"query": "s"}}, "unheardOf": [1]}),
    ];
    let options = json!({"output_format": "json", "max_tokens": 500, "offset": 1, "index": 0, "fresh": true,
        "fields": ["title"]});
    for level in ["summary", "standard", "full"] {
        let options = joined(options.clone(), &json!({"content_level": level}));
        for body in &bodies {
            let mut desk = Desk::answering(&specimens::pages());
            let call = joined(json!({"operation": "search", "args": body}), &options);
            assert_eq!(&sent(&mut desk, "exa_api", call), body);
            let mut desk = Desk::offering("toolhost,granular", &specimens::pages());
            let call = joined(json!({"operation": "search", "params": body}), &options);
            assert_eq!(&sent(&mut desk, "exa-sync", call), body);
            assert_eq!(
                &sent(&mut desk, "search", joined(body.clone(), &options)),
                body
            );
        }
    }
}

/// A list's own `limit` is the API's; the look at a kept answer has one too.
#[test]
fn list_limit_is_sent_unchanged() {
    let mut desk = Desk::offering("default,granular", &specimens::items());
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
        let (_, shown) = desk.server.call_plainly(tool, call).shown();
        assert_eq!(
            desk.recorder.only().target,
            "/websets/v0/websets/w/items?limit=1"
        );
        // This upstream does not care, so nothing may be missing of what it gave.
        assert_eq!(shown["metadata"]["returned"], 2);
        let id = shown["metadata"]["cacheId"].clone();
        let again = json!({"operation": "items.list", "cache_id": id, "limit": 1});
        let (_, shown) = desk.server.call_plainly("manage_websets", again).shown();
        assert_eq!(shown["metadata"]["returned"], 1);
        assert_eq!(desk.asked(), 0);
    }
}

//! Other names for arguments and operations.

use serde_json::{Value, json};

use crate::support::{McpServer, Recorder, Response};

fn server() -> (Recorder, McpServer) {
    let recorder = Recorder::always(Response::json(200, &json!({"results": [], "id": "x"})));
    let server = McpServer::with_recorder(&recorder, &["--tools", "default,classic,toolhost"]);
    (recorder, server)
}

#[test]
fn common_names_of_arguments_are_corrected() {
    let (recorder, mut server) = server();
    let api = |operation: &str, args: Value| json!({"operation": operation, "args": args});
    let page = "https://a.example/";
    let date = "2024-05-01T00:00:00.000Z";
    let cases = [
        (
            "exa_api",
            api("get_contents", json!({"url": page, "text": true})),
            "urls",
            json!([page]),
        ),
        (
            "exa_api",
            api("search", json!({"q": "x"})),
            "query",
            json!("x"),
        ),
        (
            "exa_api",
            api("search", json!({"question": "x"})),
            "query",
            json!("x"),
        ),
        (
            "exa_api",
            api("answer", json!({"question": "x"})),
            "query",
            json!("x"),
        ),
        (
            "exa_api",
            api("answer", json!({"prompt": "x"})),
            "query",
            json!("x"),
        ),
        (
            "exa_api",
            api("agent.runs.create", json!({"task": "x"})),
            "query",
            json!("x"),
        ),
        (
            "exa_api",
            api("search", json!({"query": "x", "start_date": date})),
            "startPublishedDate",
            json!(date),
        ),
        (
            "exa_api",
            api("search", json!({"query": "x", "startDate": date})),
            "startPublishedDate",
            json!(date),
        ),
        (
            "exa_api",
            api("search", json!({"query": "x", "endDate": date})),
            "endPublishedDate",
            json!(date),
        ),
        (
            "exa_api",
            api("search", json!({"query": "x", "max_results": 3})),
            "numResults",
            json!(3),
        ),
        (
            "exa_api",
            api("search", json!({"query": "x", "domains": ["a.example"]})),
            "includeDomains",
            json!(["a.example"]),
        ),
        ("web_search_exa", json!({"q": "x"}), "query", json!("x")),
        (
            "web_search_exa",
            json!({"query": "x", "startDate": date}),
            "startPublishedDate",
            json!(date),
        ),
        ("web_fetch_exa", json!({"url": page}), "urls", json!([page])),
        (
            "company_research_exa",
            json!({"query": "Acme"}),
            "query",
            json!("Acme company"),
        ),
        (
            "deep_search_exa",
            json!({"query": "x"}),
            "query",
            json!("x"),
        ),
        (
            "exa-sync",
            json!({"operation": "search", "params": {"q": "x"}}),
            "query",
            json!("x"),
        ),
    ];
    for (tool, call, name, value) in cases {
        let body = server.call(tool, call.clone()).envelope();
        let sent = recorder.only_request().json().expect("a body");
        assert_eq!(sent[name], value, "{tool} {call}: {sent}");
        let corrections = body["metadata"]["corrections"].to_string();
        assert!(corrections.contains("read as"), "{call}: {corrections}");
    }
}

/// The suggested call is valid as it stands.
#[test]
fn suggested_call_works() {
    let (recorder, mut server) = server();
    let cases = [
        (
            "exa_api",
            json!({"operation": "get_contents", "args": {"adress": "https://a.example/", "wrong": 1}}),
        ),
        (
            "exa_api",
            json!({"operation": "search", "args": {"look_for": "x"}}),
        ),
        (
            "exa_api",
            json!({"operation": "find_similar", "args": {"to": "x"}}),
        ),
        (
            "manage_websets",
            json!({"operation": "searches.create", "args": {"webset": "w", "words": "x"}}),
        ),
        (
            "web_fetch_exa",
            json!({"pages_to_read": "https://a.example/"}),
        ),
        (
            "exa-sync",
            json!({"operation": "find_similar", "params": {"to": "x"}}),
        ),
    ];
    for (tool, call) in cases {
        let failure = server.call_raw(tool, call.clone()).failure();
        let retry = &failure.error["retryWith"];
        if retry.is_null() {
            continue;
        }
        let arguments = retry.get("arguments").unwrap_or(retry);
        let outcome = server.call_raw(tool, arguments.clone());
        assert!(
            !outcome.is_error,
            "{call} suggests {retry}: {}",
            outcome.text
        );
        recorder.take();
    }
}

#[test]
fn similar_operations_are_suggested() {
    let (recorder, mut server) = server();
    for (tool, name, meant) in [
        ("manage_websets", "webset.items.list", "items.list"),
        ("exa_api", "search.answer", "answer"),
        ("manage_websets", "create_search", "searches.create"),
        ("manage_websets", "list_items", "items.list"),
        ("exa_api", "start_agent_run", "agent.runs.create"),
    ] {
        let call = json!({"operation": name, "args": {}});
        let failure = server.call(tool, call).failure();
        assert_eq!(failure.error["didYouMean"], meant, "{name}");
    }
    for name in [
        "item.open",
        "search.begin",
        "enrichments.restart",
        "monitor.pause",
    ] {
        let call = json!({"operation": name, "args": {}});
        let failure = server.call("manage_websets", call).failure();
        let meant = failure.error["didYouMean"].as_str().unwrap_or_default();
        assert!(
            !meant.ends_with("delete") && !meant.ends_with("cancel"),
            "{name}: {meant}"
        );
    }
    assert!(recorder.take().is_empty());
}

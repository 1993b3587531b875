//! Arguments that contradict each other are rejected or reported, never dropped in silence.

use serde_json::{Value, json};

use crate::support::{McpServer, Recorder, Response};

fn server(tools: &str) -> (Recorder, McpServer) {
    let recorder = Recorder::always(Response::json(200, &json!({"results": [], "id": "x"})));
    let server = McpServer::with_recorder(&recorder, &["--tools", tools]);
    (recorder, server)
}

#[test]
fn contradicting_parameters_of_the_toolhost_are_rejected() {
    let (recorder, mut server) = server("toolhost");
    let cases = [
        (
            "exa-sync",
            "search",
            json!({"query": "q", "filters": "x"}),
            "filters",
        ),
        (
            "exa-sync",
            "find_similar",
            json!({"url": "https://a.example/", "filters": [1]}),
            "filters",
        ),
        (
            "exa-sync",
            "search",
            json!({"query": "q", "includeDomains": ["a.example"], "filters": {"includeDomains": ["b.example"]}}),
            "includeDomains",
        ),
        (
            "exa-sync",
            "answer",
            json!({"question": "a", "query": "b"}),
            "question",
        ),
        (
            "exa-async",
            "stream_answer",
            json!({"question": "a", "query": "b"}),
            "question",
        ),
        (
            "websets-async",
            "start_monitor",
            json!({"websetId": "w", "cadence": {"cron": "0 9 * * 1", "timezone": "UTC"},
                "behavior": {"type": "search", "config": {"query": "a", "count": 5}}, "searchParams": {"query": "b", "count": 5}}),
            "searchParams",
        ),
    ];
    for (tool, operation, params, field) in cases {
        let call = json!({"operation": operation, "params": params});
        let failure = server.call(tool, call).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        assert_eq!(failure.fields(), [field], "{operation}");
    }
    assert!(recorder.take().is_empty());
    // Equal values do not contradict each other.
    let params = json!({"question": "a", "query": "a"});
    let call = json!({"operation": "answer", "params": params});
    server.call("exa-sync", call).envelope();
    assert_eq!(
        recorder.only_request().json().expect("a body")["query"],
        "a"
    );
}

#[test]
fn ignored_arguments_are_reported() {
    let (recorder, mut server) = server("default,classic");
    let cases: [(&str, Value, &str); 4] = [
        (
            "company_research_exa",
            json!({"companyName": "Acme", "category": "news"}),
            "`category` was ignored",
        ),
        (
            "web_search_advanced_exa",
            json!({"query": "q", "textMaxCharacters": 500, "contents": {"text": {"maxCharacters": 9}}}),
            "`contents.text.maxCharacters` was ignored",
        ),
        (
            "agent_run",
            json!({"runId": "agent_run_1", "query": "q"}),
            "`query` was ignored",
        ),
        (
            "exa_api",
            json!({"operation": "search", "args": {"query": "a"}, "query": "b"}),
            "`query` beside `args` was ignored",
        ),
    ];
    for (tool, call, note) in cases {
        let body = server.call(tool, call).envelope();
        let corrections = body["metadata"]["corrections"].to_string();
        assert!(corrections.contains(note), "{tool}: {corrections}");
    }
    drop(recorder);
}

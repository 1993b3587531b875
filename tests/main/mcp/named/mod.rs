//! The named tools: the same names and arguments as the official server.

mod legacy;
mod official;
mod requests;
mod search;

use serde_json::{Value, json};

use crate::support::{McpServer, Recorder, Response, Sandbox};

/// The named tools in the order of their set.
const CLASSIC: &str = "web_search_exa web_search_advanced_exa web_fetch_exa crawling_exa \
    get_code_context_exa company_research_exa people_search_exa linkedin_search_exa deep_search_exa \
    deep_researcher_start deep_researcher_check agent_run find_similar_exa answer_exa";

/// A server with the classic tools, and a recorder as its upstream.
struct Fixture {
    recorder: Recorder,
    server: McpServer,
}

impl Fixture {
    fn start() -> Self {
        Self::with_response(&json!({"results": []}))
    }

    fn with_response(response: &Value) -> Self {
        let recorder = Recorder::always(Response::json(200, response));
        let server = McpServer::with_recorder(&recorder, &["--tools", "classic"]);
        Self { recorder, server }
    }

    /// Makes a call; returns the method and target of its only request, the request's body, and the result.
    #[track_caller]
    fn request(&mut self, tool: &str, arguments: Value) -> (String, Option<Value>, Value) {
        let response = self.server.call(tool, arguments).success();
        let request = self.recorder.only_request();
        (
            format!("{} {}", request.method, request.target),
            request.json(),
            response,
        )
    }

    /// Asserts that a call sends exactly this request without corrections.
    #[track_caller]
    fn assert_sends(&mut self, tool: &str, arguments: Value, target: &str, body: Value) {
        let (sent_to, sent, response) = self.request(tool, arguments);
        assert_eq!(sent_to, target, "{tool}");
        assert_eq!(sent, Some(body), "{tool}");
        assert_eq!(response.get("corrections"), None, "{tool}");
    }
}

#[test]
fn classic_set_has_exactly_these_tools() {
    let tools = McpServer::sandboxed(&["--tools", "classic"]).tools();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, CLASSIC.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn every_named_tool_works() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &["--tools", "classic"]);
    let mut called = Vec::new();
    let mut call = |tool: &'static str, arguments: Value| {
        called.push(tool);
        server.call(tool, arguments).success()
    };
    let count = |found: &Value| found["results"].as_array().map(Vec::len);
    let query = json!({"query": "heat pumps", "numResults": 2});
    for tool in [
        "web_search_exa",
        "web_search_advanced_exa",
        "get_code_context_exa",
        "people_search_exa",
        "linkedin_search_exa",
    ] {
        assert_eq!(count(&call(tool, query.clone())), Some(2), "{tool}");
    }
    let company = json!({"companyName": "Acme"});
    assert_eq!(count(&call("company_research_exa", company)), Some(5));
    let pages =
        json!({"urls": ["https://a.example/x", "https://b.example/y"], "maxCharacters": 40});
    for tool in ["web_fetch_exa", "crawling_exa"] {
        let read = call(tool, pages.clone());
        assert_eq!(count(&read), Some(2), "{tool}");
        // The official server drops the status of each URL.
        assert_eq!(read["statuses"].as_array().map(Vec::len), Some(2), "{read}");
        let text = read["results"][0]["text"].as_str().expect("a string");
        assert!(text.chars().count() <= 40, "{text}");
    }
    let found = call(
        "deep_search_exa",
        json!({"objective": "Which heat pump is best?"}),
    );
    assert_eq!(count(&found), Some(10));
    let similar = json!({"url": "https://a.example/x", "numResults": 3});
    assert_eq!(count(&call("find_similar_exa", similar)), Some(3));
    assert!(call("answer_exa", json!({"query": "Who?"}))["answer"].is_string());
    let started = call(
        "deep_researcher_start",
        json!({"instructions": "Compare heat pumps"}),
    );
    let run = call("agent_run", json!({"query": "Find heat pump makers"}));
    sandbox.advance(120_000);
    let researched = call(
        "deep_researcher_check",
        json!({"researchId": started["id"]}),
    );
    assert_eq!(researched["status"], "completed");
    let done = call("agent_run", json!({"runId": run["id"]}));
    assert_eq!(
        (&done["id"], &done["status"]),
        (&run["id"], &json!("completed"))
    );
    for tool in CLASSIC.split_whitespace() {
        assert!(called.contains(&tool), "{tool} was not called");
    }
}

/// The official server drops warnings, statuses and unknown fields.
#[test]
fn named_tools_lose_no_fields() {
    let response = json!({
        "results": [{"url": "https://a.example", "score": 0.123_456_789_012_345_67, "new": [1]}],
        "statuses": [{"id": "https://b.example", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND"}}],
        "warnings": ["one"], "notices": ["two"], "unknown": {"big": 9_007_199_254_740_993_u64},
    });
    let mut fixture = Fixture::with_response(&response);
    let pages = json!({"urls": ["https://a.example", "https://b.example"]});
    assert_eq!(fixture.request("web_fetch_exa", pages).2, response);
    assert_eq!(
        fixture.request("web_search_exa", json!({"query": "x"})).2,
        response
    );
}

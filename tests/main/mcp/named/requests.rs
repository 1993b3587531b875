//! The requests of the tools other than search.

use serde_json::{Value, json};

use super::Fixture;

#[test]
fn fetch_honors_max_characters() {
    let mut fixture = Fixture::start();
    let urls = json!(["https://a.example/1", "https://b.example/2"]);
    for tool in ["web_fetch_exa", "crawling_exa"] {
        for (wanted, sent) in [(None, 3000), (Some(1), 1), (Some(50_000), 50_000)] {
            let mut call = json!({"urls": urls});
            if let Some(wanted) = wanted {
                call["maxCharacters"] = json!(wanted);
            }
            let expected = json!({"urls": urls, "text": {"maxCharacters": sent}});
            fixture.assert_sends(tool, call, "POST /contents", expected);
        }
    }
    let call = json!({"urls": urls, "summary": true, "maxAgeHours": 1});
    let expected =
        json!({"urls": urls, "text": {"maxCharacters": 3000}, "summary": true, "maxAgeHours": 1});
    fixture.assert_sends("web_fetch_exa", call, "POST /contents", expected);
}

#[test]
fn research_is_started_and_read() {
    // Exa has retired research; agent runs took its place.
    let mut fixture = Fixture::start();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (call, sent) in [
        (
            json!({"instructions": "Compare"}),
            json!({"query": "Compare"}),
        ),
        (
            json!({"instructions": "Compare", "model": "exa-research-pro", "outputSchema": schema}),
            json!({"query": "Compare", "effort": "high", "outputSchema": schema}),
        ),
    ] {
        fixture.assert_sends("deep_researcher_start", call, "POST /agent/runs", sent);
    }
    let (target, body, _) = fixture.request("deep_researcher_check", json!({"researchId": "r1"}));
    assert_eq!((target.as_str(), body), ("GET /agent/runs/r1", None));
}

#[test]
fn agent_run_is_started_or_read() {
    let mut fixture = Fixture::start();
    let call = json!({
        "query": "x", "systemPrompt": "s", "outputSchema": {"type": "object"},
        "input": {"data": [{"a": 1}], "exclusion": [{"b": 2}]},
        "dataSources": [{"provider": "similarweb"}], "previousRunId": "agent_run_0", "effort": "low",
    });
    fixture.assert_sends("agent_run", call.clone(), "POST /agent/runs", call);
    for call in [
        json!({"runId": "agent_run_1"}),
        json!({"runId": "agent_run_1", "query": "x", "effort": "low"}),
    ] {
        let (target, body, _) = fixture.request("agent_run", call);
        assert_eq!(
            (target.as_str(), body),
            ("GET /agent/runs/agent_run_1", None)
        );
    }
    for (call, part) in [(json!({}), "`query`"), (json!({"runId": "run_1"}), "runId")] {
        let refused = fixture.server.call("agent_run", call).failure();
        refused.assert_code(-32602, "INVALID_PARAMS");
        refused.assert_contains(&[part]);
    }
    assert!(fixture.recorder.take().is_empty());
}

#[test]
fn find_similar_and_answer() {
    let mut fixture = Fixture::start();
    let url = "https://a.example/x";
    let expected =
        json!({"url": url, "numResults": 10, "contents": {"highlights": true, "text": true}});
    fixture.assert_sends(
        "find_similar_exa",
        json!({"url": url}),
        "POST /findSimilar",
        expected,
    );
    let call = json!({"url": url, "numResults": 2, "excludeSourceDomain": true,
        "includeDomains": ["b.example"], "excludeDomains": ["c.example"]});
    let mut expected = call.clone();
    expected["contents"] = json!({"highlights": true, "text": true});
    fixture.assert_sends("find_similar_exa", call, "POST /findSimilar", expected);
    for call in [
        json!({"query": "Who?"}),
        json!({"query": "Who?", "text": true, "systemPrompt": "s", "model": "exa", "outputSchema": {"type": "object"}}),
    ] {
        fixture.assert_sends("answer_exa", call.clone(), "POST /answer", call);
    }
}

/// An argument of the tool and one of the operation may set fields of the same object.
#[test]
fn operation_argument_merges_with_tool_defaults() {
    let mut fixture = Fixture::start();
    let urls = json!(["https://a.example/1"]);
    let call = json!({"urls": urls, "maxCharacters": 9, "text": {"includeHtmlTags": true}});
    let expected = json!({"urls": urls, "text": {"maxCharacters": 9, "includeHtmlTags": true}});
    fixture.assert_sends("web_fetch_exa", call, "POST /contents", expected);
    let call = json!({"query": "x", "textMaxCharacters": 9, "contents": {"summary": true}});
    let (_, body, _) = fixture.request("web_search_advanced_exa", call);
    let contents = json!({"text": {"maxCharacters": 9}, "summary": true});
    assert_eq!(body.expect("a body")["contents"], contents);
}

/// A correction is reported once, although the tool and its operation both validate the arguments.
#[test]
fn mistakes_are_corrected_and_reported_once() {
    let mut fixture = Fixture::start();
    let slips: [(&str, Value, Value, usize); 4] = [
        (
            "web_search_exa",
            json!({"query": "x", "num_results": "4"}),
            json!({"numResults": 4}),
            2,
        ),
        (
            "web_search_exa",
            json!({"query": "x", "includeDomains": "a.example"}),
            json!({"includeDomains": ["a.example"]}),
            1,
        ),
        (
            "web_search_exa",
            json!({"query": "x", "startPublishedDate": "2026-01-31"}),
            json!({"startPublishedDate": "2026-01-31T00:00:00Z"}),
            1,
        ),
        (
            "web_fetch_exa",
            json!({"urls": "https://a.example/x", "max_characters": "7"}),
            json!({"urls": ["https://a.example/x"], "text": {"maxCharacters": 7}}),
            3,
        ),
    ];
    for (tool, call, expected, notes) in slips {
        let (_, body, response) = fixture.request(tool, call);
        let body = body.expect("a body");
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(&body[name], value, "{tool}");
        }
        let corrections = response["corrections"].as_array().expect("notes");
        assert_eq!(corrections.len(), notes, "{corrections:?}");
    }
}

/// Models send arguments of other servers; a likely typo is rejected, because Exa would ignore it.
#[test]
fn misspelt_argument_is_rejected_and_unknown_one_reported() {
    let mut fixture = Fixture::start();
    for (slip, meant) in [
        ("includeDomain", "includeDomains"),
        ("numResult", "numResults"),
    ] {
        let call = json!({"query": "x", slip: ["a.example"]});
        let refused = fixture.server.call("web_search_exa", call).failure();
        refused.assert_code(-32602, "INVALID_PARAMS");
        refused.assert_contains(&[slip, &format!("did you mean `{meant}`?")]);
    }
    assert!(fixture.recorder.take().is_empty());
    let call = json!({"query": "x", "brandNew": 1});
    let (_, body, response) = fixture.request("web_search_exa", call);
    assert_eq!(body.expect("a body")["brandNew"], 1);
    let expected = json!(["`brandNew` is not in the spec; it was sent as it is"]);
    assert_eq!(response["corrections"], expected);
}

//! What each content level shows of each kind of result, and what it requests from Exa.

use serde_json::{Value, json};

use super::{Fixture, merge, samples};

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// Returns the first result at a level, as JSON.
#[track_caller]
fn first(fixture: &mut Fixture, operation: &str, args: &Value, level: &str) -> Value {
    let options = json!({"content_level": level, "output_format": "json"});
    let structured = fixture
        .call_operation(operation, args.clone(), options)
        .envelope();
    assert_eq!(structured["metadata"]["contentLevel"], level);
    structured["results"][0].clone()
}

fn names(result: &Value) -> Vec<&str> {
    let fields = result.as_object().expect("an object");
    fields.keys().map(String::as_str).collect()
}

#[test]
fn a_page() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let args = json!({"query": "q"});
    let summary = first(&mut fixture, "search", &args, "summary");
    assert_eq!(
        summary,
        json!({
            "title": "All about heat pumps", "url": "https://alpha.example/articles/heat-pumps",
            "publishedDate": "2024-05-31", "line": "Part 1 says something about heat pumps.",
            // These are there at every level.
            "id": "https://alpha.example/articles/heat-pumps", "author": "Ada Example", "text": null,
            "score": 0.93, "image": "https://alpha.example/cover.png", "favicon": "https://alpha.example/favicon.ico",
        })
    );
    let standard = first(&mut fixture, "search", &args, "standard");
    assert_eq!(
        names(&standard),
        [
            "title",
            "url",
            "publishedDate",
            "author",
            "score",
            "highlights",
            "id",
            "text",
            "image",
            "favicon"
        ]
    );
    let full = first(&mut fixture, "search", &args, "full");
    assert_eq!(full, samples::pages()["results"][0]);
}

/// Without highlights, `standard` shows the beginning of the text up to the end of a sentence.
#[test]
fn a_page_without_highlights() {
    let mut response = samples::pages();
    response["results"][0]
        .as_object_mut()
        .expect("a page")
        .retain(|name, _| !name.starts_with("highlight"));
    let mut fixture = Fixture::with_response(&response);
    let standard = first(&mut fixture, "search", &json!({"query": "q"}), "standard");
    let text = standard["text"].as_str().expect("an extract");
    let length = text.chars().count();
    assert!((300..=610).contains(&length), "{length}");
    assert!(text.ends_with(".…"), "{text}");
    assert!(samples::long_text("heat pumps").starts_with(text.trim_end_matches('…')));
    // An explicit number of characters is respected.
    let args = json!({"query": "q", "contents": {"text": {"maxCharacters": 1200}}});
    let standard = first(&mut fixture, "search", &args, "standard");
    let length = standard["text"].as_str().expect("text").chars().count();
    assert!((800..=1210).contains(&length), "{length}");
}

#[test]
fn answer_is_shown_at_every_level() {
    for level in LEVELS {
        let mut fixture = Fixture::with_response(&samples::answer());
        let options = json!({"content_level": level, "output_format": "json"});
        let structured = fixture.call_operation("answer", json!({"query": "q"}), options);
        let structured = structured.envelope();
        assert_eq!(structured["answer"], samples::answer()["answer"], "{level}");
        assert_eq!(structured["results"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn research_and_runs() {
    for (operation, args, response, id) in [
        (
            "research.get",
            json!({"researchId": "r_01"}),
            samples::research(),
            "r_01",
        ),
        (
            "agent.runs.get",
            json!({"runId": "agent_run_01"}),
            samples::run(),
            "agent_run_01",
        ),
    ] {
        let mut fixture = Fixture::with_response(&response);
        let summary = first(&mut fixture, operation, &args, "summary");
        assert_eq!(summary["id"], id);
        assert_eq!(summary["status"], "completed");
        assert_eq!(summary["createdAt"], "2024-05-31");
        let line = summary["line"].as_str().expect("a line");
        assert!(line.starts_with("Part 1 says something about"), "{line}");
        assert!(line.chars().count() <= 121, "{line}");
        let standard = first(&mut fixture, operation, &args, "standard");
        assert_eq!(standard["createdAt"], "2024-05-31");
        assert!(standard["output"].is_object(), "{standard}");
        assert_eq!(standard.get("usage"), None);
        assert_eq!(first(&mut fixture, operation, &args, "full"), response);
    }
}

#[test]
fn an_item() {
    let mut fixture = Fixture::with_response(&samples::items());
    let args = json!({"websetId": "webset_1"});
    let summary = first(&mut fixture, "items.list", &args, "summary");
    assert_eq!(
        summary,
        json!({
            "id": "item_1", "title": "Acme", "url": "https://acme.example/", "createdAt": "2024-05-11",
            "line": "Acme makes heat pumps in Berlin.",
        })
    );
    let standard = first(&mut fixture, "items.list", &args, "standard");
    assert_eq!(
        standard["evaluations"],
        json!([{"criterion": "makes heat pumps", "satisfied": "yes"}])
    );
    assert_eq!(
        standard["enrichments"],
        json!([{"status": "completed", "result": ["40"], "enrichmentId": "enrichment_1"}])
    );
    assert_eq!(standard["description"], "Acme makes heat pumps in Berlin.");
    let full = first(&mut fixture, "items.list", &args, "full");
    assert_eq!(full, samples::items()["data"][0]);
}

#[test]
fn a_record() {
    let mut fixture = Fixture::with_response(&samples::websets());
    let summary = first(&mut fixture, "websets.list", &json!({}), "summary");
    assert_eq!(
        summary,
        json!({"id": "webset_1", "title": "Heat pump makers", "status": "idle", "createdAt": "2024-05-10"})
    );
    // Empty values are omitted; others stay.
    let standard = first(&mut fixture, "websets.list", &json!({}), "standard");
    assert_eq!(standard["searches"][0]["progress"]["found"], 2);
    assert_eq!(standard["metadata"], json!({"team": "energy"}));
    for name in ["externalId", "imports", "object"] {
        assert_eq!(standard.get(name), None, "{name}");
    }
    let full = first(&mut fixture, "websets.list", &json!({}), "full");
    assert_eq!(full, samples::websets()["data"][0]);
}

#[test]
fn event_shows_its_type() {
    let mut fixture = Fixture::with_response(&samples::events());
    let summary = first(&mut fixture, "events.list", &json!({}), "summary");
    assert_eq!(summary["title"], "webset.idle");
    assert_eq!(summary["createdAt"], "2024-05-10");
    let response = json!({"data": [{"id": "e_1", "event": "agent_run.started", "data": {"id": "r"}, "createdAt": "2024-05-10T00:00:00Z"}]});
    let mut fixture = Fixture::with_response(&response);
    let args = json!({"runId": "agent_run_1"});
    let summary = first(&mut fixture, "agent.runs.events.list", &args, "summary");
    assert_eq!(summary["title"], "agent_run.started");
}

#[test]
fn failed_run_shows_the_reason() {
    let mut fixture = Fixture::with_response(&samples::monitor_runs());
    let args = json!({"monitorId": "monitor_1"});
    for level in ["summary", "standard"] {
        let run = first(&mut fixture, "search_monitors.runs.list", &args, level);
        assert_eq!(run["status"], "failed", "{level}");
        let run_text = run.to_string();
        assert!(
            run_text.contains("the search found nothing"),
            "{level}: {run_text}"
        );
    }
}

/// Levels are the same in every kind of tool; fields of the toolhost are added to them.
#[test]
fn every_tool_set_has_levels() {
    let response = samples::pages();
    let calls = [
        ("default", "web_search_exa", json!({"query": "q"})),
        (
            "default",
            "exa_api",
            json!({"operation": "search", "args": {"query": "q"}}),
        ),
        (
            "toolhost",
            "exa-sync",
            json!({"operation": "search", "params": {"query": "q"}}),
        ),
        ("granular", "search", json!({"query": "q"})),
        ("classic", "web_search_advanced_exa", json!({"query": "q"})),
    ];
    for (set, tool, call) in calls {
        let mut fixture = Fixture::with_tools(set, &response);
        let mut sizes = Vec::new();
        for level in LEVELS {
            let options = json!({"content_level": level, "fresh": true});
            let (text, structured) = fixture
                .server
                .call_raw(tool, merge(call.clone(), &options))
                .into_parts();
            assert_eq!(structured["metadata"]["contentLevel"], level, "{tool}");
            let results = structured["results"].as_array().expect("results");
            assert_eq!(results.len(), 3, "{tool}");
            // Where a tool asks for so many characters of text, the standard level shows them.
            if level != "standard" {
                let has_text = results[0]["text"].is_string();
                assert_eq!(has_text, level == "full", "{tool} {level}");
            }
            assert_eq!(
                results[0].get("line").is_some(),
                level == "summary",
                "{tool} {level}"
            );
            sizes.push(text.len());
        }
        let factor = if tool == "web_search_advanced_exa" {
            1
        } else {
            2
        };
        assert!(
            sizes[0] < sizes[1] && sizes[1] * factor < sizes[2],
            "{tool}: {sizes:?}"
        );
    }
}

/// The default level is `standard`; JSON output and single results default to `full`.
#[test]
fn default_level() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for (options, level) in [
        (json!({}), "standard"),
        (json!({"output_format": "markdown"}), "standard"),
        (json!({"output_format": "json"}), "full"),
        (json!({"index": 1}), "full"),
        (
            json!({"output_format": "json", "content_level": "summary"}),
            "summary",
        ),
        (json!({"index": 1, "content_level": "standard"}), "standard"),
    ] {
        let (_, structured) = fixture.search(options.clone()).into_parts();
        assert_eq!(structured["metadata"]["contentLevel"], level, "{options}");
    }
}

/// The text of started work contains its status and how to follow it.
#[test]
fn toolhost_reports_beside_levels() {
    let response =
        json!({"id": "search_1", "status": "running", "query": "q", "progress": {"found": 1}});
    for level in LEVELS {
        let mut fixture = Fixture::with_tools("toolhost", &response);
        let params = json!({"websetId": "w", "searchId": "search_1"});
        let call = json!({"operation": "check_search", "params": params, "content_level": level});
        let (text, structured) = fixture.server.call_raw("websets-async", call).into_parts();
        assert_eq!(structured["operationId"], "search_1", "{level}");
        assert_eq!(structured["isComplete"], false, "{level}");
        assert_eq!(structured["results"][0]["status"], "running", "{level}");
        assert!(text.contains("\"isComplete\":false"), "{text}");
    }
}

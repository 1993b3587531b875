//! What each level shows of each kind of result, and what it asks Exa for.

use serde_json::{Value, json};

use super::{Desk, joined, specimens};

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// The first result of an answer at a level, as JSON.
#[track_caller]
fn first(desk: &mut Desk, operation: &str, args: &Value, level: &str) -> Value {
    let options = json!({"content_level": level, "output_format": "json"});
    let shown = desk.operate(operation, args.clone(), options).envelope();
    assert_eq!(shown["metadata"]["contentLevel"], level);
    shown["results"][0].clone()
}

fn names(result: &Value) -> Vec<&str> {
    let fields = result.as_object().expect("an object");
    fields.keys().map(String::as_str).collect()
}

#[test]
fn a_page() {
    let mut desk = Desk::answering(&specimens::pages());
    let args = json!({"query": "q"});
    let summary = first(&mut desk, "search", &args, "summary");
    assert_eq!(
        summary,
        json!({
            "title": "All about heat pumps", "url": "https://alpha.example/articles/heat-pumps",
            "publishedDate": "2024-05-31", "line": "Part 1 says something about heat pumps.",
        })
    );
    let standard = first(&mut desk, "search", &args, "standard");
    assert_eq!(
        names(&standard),
        [
            "title",
            "url",
            "publishedDate",
            "author",
            "score",
            "highlights"
        ]
    );
    let full = first(&mut desk, "search", &args, "full");
    assert_eq!(full, specimens::pages()["results"][0]);
}

/// Without highlights, `standard` gives the beginning of the text, cut where a sentence ends.
#[test]
fn a_page_without_highlights() {
    let mut answer = specimens::pages();
    answer["results"][0]
        .as_object_mut()
        .expect("a page")
        .retain(|name, _| !name.starts_with("highlight"));
    let mut desk = Desk::answering(&answer);
    let standard = first(&mut desk, "search", &json!({"query": "q"}), "standard");
    let text = standard["text"].as_str().expect("an extract");
    let length = text.chars().count();
    assert!((300..=610).contains(&length), "{length}");
    assert!(text.ends_with(".…"), "{text}");
    assert!(specimens::long_text("heat pumps").starts_with(text.trim_end_matches('…')));
    // Who asks Exa for so many characters wants to see them.
    let args = json!({"query": "q", "contents": {"text": {"maxCharacters": 1200}}});
    let standard = first(&mut desk, "search", &args, "standard");
    let length = standard["text"].as_str().expect("text").chars().count();
    assert!((800..=1210).contains(&length), "{length}");
}

#[test]
fn answer_is_shown_at_every_level() {
    for level in LEVELS {
        let mut desk = Desk::answering(&specimens::answer());
        let options = json!({"content_level": level, "output_format": "json"});
        let shown = desk.operate("answer", json!({"query": "q"}), options);
        let shown = shown.envelope();
        assert_eq!(shown["answer"], specimens::answer()["answer"], "{level}");
        assert_eq!(shown["results"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn research_and_runs() {
    for (operation, args, answer, id) in [
        (
            "research.get",
            json!({"researchId": "r_01"}),
            specimens::research(),
            "r_01",
        ),
        (
            "agent.runs.get",
            json!({"runId": "agent_run_01"}),
            specimens::run(),
            "agent_run_01",
        ),
    ] {
        let mut desk = Desk::answering(&answer);
        let summary = first(&mut desk, operation, &args, "summary");
        assert_eq!(summary["id"], id);
        assert_eq!(summary["status"], "completed");
        assert_eq!(summary["createdAt"], "2024-05-31");
        let line = summary["line"].as_str().expect("a line");
        assert!(line.starts_with("Part 1 says something about"), "{line}");
        assert!(line.chars().count() <= 121, "{line}");
        let standard = first(&mut desk, operation, &args, "standard");
        assert_eq!(standard["createdAt"], answer["createdAt"]);
        assert!(standard["output"].is_object(), "{standard}");
        assert_eq!(standard.get("usage"), None);
        assert_eq!(first(&mut desk, operation, &args, "full"), answer);
    }
}

#[test]
fn an_item() {
    let mut desk = Desk::answering(&specimens::items());
    let args = json!({"websetId": "webset_1"});
    let summary = first(&mut desk, "items.list", &args, "summary");
    assert_eq!(
        summary,
        json!({
            "id": "item_1", "title": "Acme", "url": "https://acme.example/", "createdAt": "2024-05-11",
            "line": "Acme makes heat pumps in Berlin.",
        })
    );
    let standard = first(&mut desk, "items.list", &args, "standard");
    assert_eq!(
        standard["evaluations"],
        json!([{"criterion": "makes heat pumps", "satisfied": "yes"}])
    );
    assert_eq!(
        standard["enrichments"],
        json!([{"status": "completed", "result": ["40"], "enrichmentId": "enrichment_1"}])
    );
    assert_eq!(standard["description"], "Acme makes heat pumps in Berlin.");
    let full = first(&mut desk, "items.list", &args, "full");
    assert_eq!(full, specimens::items()["data"][0]);
}

#[test]
fn a_record() {
    let mut desk = Desk::answering(&specimens::websets());
    let summary = first(&mut desk, "websets.list", &json!({}), "summary");
    assert_eq!(
        summary,
        json!({"id": "webset_1", "title": "Heat pump makers", "status": "idle", "createdAt": "2024-05-10"})
    );
    // What says nothing is left out; what says something stays.
    let standard = first(&mut desk, "websets.list", &json!({}), "standard");
    assert_eq!(standard["searches"][0]["progress"]["found"], 2);
    assert_eq!(standard["metadata"], json!({"team": "energy"}));
    for name in ["externalId", "imports", "object"] {
        assert_eq!(standard.get(name), None, "{name}");
    }
    let full = first(&mut desk, "websets.list", &json!({}), "full");
    assert_eq!(full, specimens::websets()["data"][0]);
}

#[test]
fn event_shows_its_type() {
    let mut desk = Desk::answering(&specimens::events());
    let summary = first(&mut desk, "events.list", &json!({}), "summary");
    assert_eq!(summary["title"], "webset.idle");
    assert_eq!(summary["createdAt"], "2024-05-10");
    let answer = json!({"data": [{"id": "e_1", "event": "agent_run.started", "data": {"id": "r"}, "createdAt": "2024-05-10T00:00:00Z"}]});
    let mut desk = Desk::answering(&answer);
    let args = json!({"runId": "agent_run_1"});
    let summary = first(&mut desk, "agent.runs.events.list", &args, "summary");
    assert_eq!(summary["title"], "agent_run.started");
}

#[test]
fn failed_run_shows_the_reason() {
    let mut desk = Desk::answering(&specimens::monitor_runs());
    let args = json!({"monitorId": "monitor_1"});
    for level in ["summary", "standard"] {
        let run = first(&mut desk, "search_monitors.runs.list", &args, level);
        assert_eq!(run["status"], "failed", "{level}");
        let said = run.to_string();
        assert!(said.contains("the search found nothing"), "{level}: {said}");
    }
}

/// The same levels through every kind of tool; what the toolhost itself says stands beside them.
#[test]
fn every_tool_set_has_levels() {
    let answer = specimens::pages();
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
        let mut desk = Desk::offering(set, &answer);
        let mut sizes = Vec::new();
        for level in LEVELS {
            let options = json!({"content_level": level, "fresh": true});
            let (text, shown) = desk
                .server
                .call_plainly(tool, joined(call.clone(), &options))
                .shown();
            assert_eq!(shown["metadata"]["contentLevel"], level, "{tool}");
            let results = shown["results"].as_array().expect("results");
            assert_eq!(results.len(), 3, "{tool}");
            assert_eq!(
                results[0].get("text").is_some(),
                level == "full",
                "{tool} {level}"
            );
            assert_eq!(
                results[0].get("line").is_some(),
                level == "summary",
                "{tool} {level}"
            );
            sizes.push(text.len());
        }
        assert!(
            sizes[0] * 2 < sizes[1] * 2 && sizes[1] * 2 < sizes[2],
            "{tool}: {sizes:?}"
        );
    }
}

/// Who names no level gets `standard`; code and a single result get everything.
#[test]
fn default_level() {
    let mut desk = Desk::answering(&specimens::pages());
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
        let (_, shown) = desk.search(options.clone()).shown();
        assert_eq!(shown["metadata"]["contentLevel"], level, "{options}");
    }
}

/// Work that was started is told about as well as shown.
#[test]
fn toolhost_reports_beside_levels() {
    let answer =
        json!({"id": "search_1", "status": "running", "query": "q", "progress": {"found": 1}});
    for level in LEVELS {
        let mut desk = Desk::offering("toolhost", &answer);
        let params = json!({"websetId": "w", "searchId": "search_1"});
        let call = json!({"operation": "check_search", "params": params, "content_level": level});
        let (text, shown) = desk.server.call_plainly("websets-async", call).shown();
        assert_eq!(shown["operationId"], "search_1", "{level}");
        assert_eq!(shown["isComplete"], false, "{level}");
        assert_eq!(shown["results"][0]["status"], "running", "{level}");
        assert!(text.contains("isComplete: false"), "{text}");
    }
}

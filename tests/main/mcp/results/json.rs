//! JSON for code: an envelope around everything that the API said.

use serde_json::{Value, json};

use super::same::{misshapen, unsaid};
use super::{Desk, specimens};
use crate::support::assert_none;

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// The specimens with an operation that gives such an answer.
pub(super) fn all() -> Vec<(&'static str, &'static str, Value, Value)> {
    let webset = json!({"websetId": "webset_1"});
    vec![
        ("pages", "search", json!({"query": "q"}), specimens::pages()),
        (
            "contents",
            "get_contents",
            json!({"urls": ["https://alpha.example/articles/heat-pumps"]}),
            specimens::contents(),
        ),
        (
            "answer",
            "answer",
            json!({"query": "q"}),
            specimens::answer(),
        ),
        (
            "research",
            "research.get",
            json!({"researchId": "r_01"}),
            specimens::research(),
        ),
        (
            "run",
            "agent.runs.get",
            json!({"runId": "agent_run_01"}),
            specimens::run(),
        ),
        ("items", "items.list", webset.clone(), specimens::items()),
        ("webset", "websets.get", webset, specimens::webset()),
        ("websets", "websets.list", json!({}), specimens::websets()),
        ("events", "events.list", json!({}), specimens::events()),
        (
            "monitor_runs",
            "search_monitors.runs.list",
            json!({"monitorId": "monitor_1"}),
            specimens::monitor_runs(),
        ),
    ]
}

#[test]
fn envelope_has_all_keys() {
    let mut desk = Desk::answering(&specimens::pages());
    let shown = desk.search(json!({"output_format": "json"})).envelope();
    assert_eq!(misshapen(&shown), Vec::<String>::new());
    let mut metadata = shown["metadata"].clone();
    let fields = metadata.as_object_mut().expect("an object");
    assert!(
        fields
            .remove("tokenEstimate")
            .is_some_and(|it| it.as_u64() > Some(100))
    );
    assert!(fields.remove("cacheId").is_some_and(|id| id.is_string()));
    assert_eq!(
        metadata,
        json!({
            "operation": "search", "totalResults": 3, "returned": 3, "contentLevel": "full", "costDollars": 0.007,
            "requestId": "b5947044c4b78efa9552a7c89b306d95", "warnings": [], "corrections": [], "mended": [],
        })
    );
    let names: Vec<&String> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(names[0], "metadata");
}

/// Exa adds fields without asking; whoever reads JSON gets them, at every depth.
#[test]
fn unknown_fields_survive() {
    let mut answer = specimens::pages();
    answer["brandNew"] = json!({"deep": [{"er": 9_007_199_254_740_993_u64}]});
    answer["results"][0]["alsoNew"] = json!([null, {"a": 0.1}, []]);
    answer["results"][1]["text"] = Value::Null;
    let mut desk = Desk::answering(&answer);
    let shown = desk.search(json!({"output_format": "json"})).envelope();
    assert_eq!(shown["results"], answer["results"]);
    for name in [
        "brandNew",
        "searchTime",
        "resolvedSearchType",
        "costDollars",
    ] {
        assert_eq!(shown[name], answer[name], "{name}");
    }
}

/// A list whose other fields have names of the envelope loses none of them.
#[test]
fn fields_that_collide_with_the_envelope_survive() {
    for answer in [
        json!({"metadata": {"own": 1}, "data": [{"id": "a"}]}),
        json!({"results": {"own": 1}, "data": [{"id": "a"}]}),
        json!({"results": null, "data": [{"id": "a"}], "items": ["own"]}),
        json!({"id": "x", "results": ["own"], "metadata": {"own": 2}}),
        json!([{"own": 1}]),
        json!("own"),
        json!({}),
    ] {
        let mut desk = Desk::answering(&answer);
        let shown = desk
            .operate("websets.list", json!({}), json!({"output_format": "json"}))
            .envelope();
        assert_eq!(misshapen(&shown), Vec::<String>::new());
        let count = |value: &Value| value.to_string().matches("own").count();
        assert_eq!(count(&shown), count(&answer), "{shown}");
        assert_eq!(shown["metadata"]["own"], Value::Null);
    }
}

/// Clients read the text or the data; both must say the same, in every form.
#[test]
fn text_and_structured_content_agree() {
    let mut problems = Vec::new();
    for (name, operation, args, answer) in all() {
        let mut desk = Desk::answering(&answer);
        for level in LEVELS {
            let options = json!({"content_level": level});
            let (text, shown) = desk.operate(operation, args.clone(), options).shown();
            let lacking = misshapen(&shown).into_iter().chain(unsaid(&text, &shown));
            problems.extend(lacking.map(|problem| format!("{name} {level}: {problem}")));
            let options = json!({"content_level": level, "output_format": "json"});
            // The check that text and data are equal is part of this.
            let as_json = desk.operate(operation, args.clone(), options).envelope();
            assert_eq!(as_json["results"], shown["results"], "{name} {level}");
        }
    }
    assert_none(&problems);
}

/// JSON knows more kinds of values than Markdown has words for.
#[test]
fn unusual_values_appear_in_both_forms() {
    let odd = json!({"id": "x", "title": 7, "url": null, "createdAt": false, "status": {"is": ["odd", 1.5]}, "": "nameless",
        "list": [[], {}, [[1, 2], "a\rb"], null], "text": "  two  spaces\r\nand\rreturns  "});
    let mut desk = Desk::answering(&json!({"data": [odd, 1, "text", null, [1, 2], {}]}));
    let mut problems = Vec::new();
    for level in LEVELS {
        let options = json!({"content_level": level});
        let (text, shown) = desk.operate("websets.list", json!({}), options).shown();
        let lacking = misshapen(&shown).into_iter().chain(unsaid(&text, &shown));
        problems.extend(lacking.map(|problem| format!("{level}: {problem}\n{text}")));
    }
    assert_none(&problems);
}

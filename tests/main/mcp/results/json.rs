//! JSON output: an envelope around the whole response of the API.

use serde_json::{Value, json};

use super::consistency::{envelope_problems, missing_from_text};
use super::{Fixture, samples};
use crate::support::assert_no_problems;

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// Returns the sample responses, each with an operation that returns it.
pub(super) fn operations_with_samples() -> Vec<(&'static str, &'static str, Value, Value)> {
    let webset = json!({"websetId": "webset_1"});
    vec![
        ("pages", "search", json!({"query": "q"}), samples::pages()),
        (
            "contents",
            "get_contents",
            json!({"urls": ["https://alpha.example/articles/heat-pumps"]}),
            samples::contents(),
        ),
        ("answer", "answer", json!({"query": "q"}), samples::answer()),
        (
            "research",
            "research.get",
            json!({"researchId": "r_01"}),
            samples::research(),
        ),
        (
            "run",
            "agent.runs.get",
            json!({"runId": "agent_run_01"}),
            samples::run(),
        ),
        ("items", "items.list", webset.clone(), samples::items()),
        ("webset", "websets.get", webset, samples::webset()),
        ("websets", "websets.list", json!({}), samples::websets()),
        ("events", "events.list", json!({}), samples::events()),
        (
            "monitor_runs",
            "search_monitors.runs.list",
            json!({"monitorId": "monitor_1"}),
            samples::monitor_runs(),
        ),
    ]
}

#[test]
fn envelope_has_all_keys() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let structured = fixture.search(json!({"output_format": "json"})).envelope();
    assert_eq!(envelope_problems(&structured), Vec::<String>::new());
    let mut metadata = structured["metadata"].clone();
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
    let names: Vec<&String> = structured.as_object().expect("an object").keys().collect();
    assert_eq!(names[0], "metadata");
}

/// JSON output contains new fields of Exa at every depth.
#[test]
fn unknown_fields_survive() {
    let mut answer = samples::pages();
    answer["brandNew"] = json!({"deep": [{"er": 9_007_199_254_740_993_u64}]});
    answer["results"][0]["alsoNew"] = json!([null, {"a": 0.1}, []]);
    answer["results"][1]["text"] = Value::Null;
    let mut fixture = Fixture::with_response(&answer);
    let structured = fixture.search(json!({"output_format": "json"})).envelope();
    assert_eq!(structured["results"], answer["results"]);
    for name in [
        "brandNew",
        "searchTime",
        "resolvedSearchType",
        "costDollars",
    ] {
        assert_eq!(structured[name], answer[name], "{name}");
    }
}

/// A list keeps its other fields, even if they are named like fields of the envelope.
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
        let mut fixture = Fixture::with_response(&answer);
        let structured = fixture
            .call_operation("websets.list", json!({}), json!({"output_format": "json"}))
            .envelope();
        assert_eq!(envelope_problems(&structured), Vec::<String>::new());
        let count = |value: &Value| value.to_string().matches("own").count();
        assert_eq!(count(&structured), count(&answer), "{structured}");
        assert_eq!(structured["metadata"]["own"], Value::Null);
    }
}

/// Text and structured content must agree in every format.
#[test]
fn text_and_structured_content_agree() {
    let mut problems = Vec::new();
    for (name, operation, args, answer) in operations_with_samples() {
        let mut fixture = Fixture::with_response(&answer);
        for level in LEVELS {
            let options = json!({"content_level": level});
            let (text, structured) = fixture
                .call_operation(operation, args.clone(), options)
                .into_parts();
            let lacking = envelope_problems(&structured)
                .into_iter()
                .chain(missing_from_text(&text, &structured));
            problems.extend(lacking.map(|problem| format!("{name} {level}: {problem}")));
            let options = json!({"content_level": level, "output_format": "json"});
            // This also checks that text and structured content are equal.
            let as_json = fixture
                .call_operation(operation, args.clone(), options)
                .envelope();
            // Pages have the same keys at every level in JSON.
            let pairs = as_json["results"].as_array().into_iter().flatten();
            for (one, other) in pairs.zip(structured["results"].as_array().into_iter().flatten()) {
                let Some(fields) = other.as_object() else {
                    assert_eq!(one, other, "{name} {level}");
                    continue;
                };
                for (field, value) in fields {
                    assert_eq!(one[field], *value, "{name} {level}");
                }
            }
        }
    }
    assert_no_problems(&problems);
}

/// All kinds of JSON values can be rendered as Markdown.
#[test]
fn unusual_values_appear_in_both_forms() {
    let odd = json!({"id": "x", "title": 7, "url": null, "createdAt": false, "status": {"is": ["odd", 1.5]}, "": "nameless",
        "list": [[], {}, [[1, 2], "a\rb"], null], "text": "  two  spaces\r\nand\rreturns  "});
    let mut fixture = Fixture::with_response(&json!({"data": [odd, 1, "text", null, [1, 2], {}]}));
    let mut problems = Vec::new();
    for level in LEVELS {
        let options = json!({"content_level": level});
        let (text, structured) = fixture
            .call_operation("websets.list", json!({}), options)
            .into_parts();
        let lacking = envelope_problems(&structured)
            .into_iter()
            .chain(missing_from_text(&text, &structured));
        problems.extend(lacking.map(|problem| format!("{level}: {problem}\n{text}")));
    }
    assert_no_problems(&problems);
}

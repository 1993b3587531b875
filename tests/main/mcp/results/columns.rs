//! The enrichments of webset items appear under the titles that their owner knows.

use serde_json::{Value, json};

use super::{Fixture, cache_id, samples};
use crate::support::{RecordedRequest, Recorder, Response};

/// An upstream with a webset and its items.
fn upstream() -> Recorder {
    Recorder::start(|request: &RecordedRequest, _| {
        let path = request.target.split('?').next().unwrap_or_default();
        let body = match path {
            "/websets/v0/websets/webset_1" => {
                let mut webset = samples::webset();
                webset["enrichments"][0]["title"] = json!("Employees");
                webset
            }
            path if path.ends_with("/items") => samples::items(),
            _ => samples::items()["data"][0].clone(),
        };
        Response::json(200, &body)
    })
}

fn items(fixture: &mut Fixture, options: Value) -> (String, Value) {
    let args = json!({"websetId": "webset_1"});
    fixture
        .call_operation("items.list", args, options)
        .into_parts()
}

/// Returns the lines between the marks.
fn body(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("<untrusted"));
    lines.skip(1).filter(|line| !line.is_empty()).collect()
}

#[test]
fn csv_and_tables_have_a_column_for_each_enrichment() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let (text, _) = items(&mut fixture, json!({"output_format": "csv"}));
    let lines = body(&text);
    assert!(
        lines.contains(&"#,id,title,url,createdAt,description,makes heat pumps,Employees"),
        "{text}"
    );
    let row =
        "1,item_1,Acme,https://acme.example/,2024-05-11,Acme makes heat pumps in Berlin.,yes,40";
    assert!(lines.contains(&row), "{text}");
    // The titles are read once.
    assert_eq!(fixture.take_request_count(), 2);
    let (text, _) = items(&mut fixture, json!({"output_format": "table"}));
    assert!(text.contains("| makes heat pumps | Employees |"), "{text}");
    assert!(text.contains("| yes | 80 |"), "{text}");
    assert_eq!(fixture.take_request_count(), 1);
    let (text, structured) = items(&mut fixture, json!({}));
    assert!(
        text.contains("- **enrichments**:\n  Employees: 40"),
        "{text}"
    );
    assert!(!text.contains("enrichment_1"), "{text}");
    assert_eq!(
        structured["results"][1]["enrichments"],
        json!({"Employees": "80"})
    );
    // Programs get what Exa sends.
    let (_, structured) = items(&mut fixture, json!({"output_format": "json"}));
    assert_eq!(structured["results"], samples::items()["data"]);
}

/// Whoever has created a webset in the same session needs no further request.
#[test]
fn titles_of_websets_that_were_seen_are_known() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let get = json!({"websetId": "webset_1"});
    fixture.call_operation("websets.get", get, json!({}));
    fixture.recorder.take();
    let (text, _) = items(&mut fixture, json!({"output_format": "csv"}));
    assert!(text.contains(",Employees"), "{text}");
    assert_eq!(fixture.take_request_count(), 1);
}

#[test]
fn fields_accept_the_names_that_the_answer_shows() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let names = [
        "title",
        "url",
        "description",
        "employees",
        "makes heat pumps",
    ];
    for format in ["csv", "markdown", "json"] {
        let options = json!({"fields": names, "output_format": format});
        let (text, structured) = items(&mut fixture, options);
        assert_eq!(
            structured["results"][0],
            json!({"title": "Acme", "url": "https://acme.example/", "description": "Acme makes heat pumps in Berlin.",
                "employees": "40", "makes heat pumps": "yes"}),
            "{format}: {text}"
        );
        assert_eq!(structured["metadata"]["warnings"], json!([]), "{format}");
    }
    let (text, _) = items(
        &mut fixture,
        json!({"fields": ["name", "Employees"], "output_format": "csv"}),
    );
    assert!(body(&text).contains(&"#,name,Employees"), "{text}");
    // A wrong name is answered with those that exist, the titles among them.
    let (_, structured) = items(&mut fixture, json!({"fields": ["title", "employee count"]}));
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning
            .starts_with("no result has the field employee count; available fields: title, url,"),
        "{warning}"
    );
    for name in ["Employees", "description", "properties", "websetId"] {
        assert!(warning.contains(name), "no {name} in {warning}");
    }
}

/// A single item says why it matches and where its values come from.
#[test]
fn a_single_item_has_reasons_and_sources() {
    let mut fixture = Fixture::with(upstream(), &[], &[]);
    let args = json!({"websetId": "webset_1", "itemId": "item_1"});
    let (text, structured) = fixture
        .call_operation("items.get", args, json!({}))
        .into_parts();
    for part in [
        "title: Employees",
        "reasoning: Taken from the page.",
        "reasoning: The page says so.",
        "https://acme.example/",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(
        !text.contains("snippet") && !text.contains("Part 3"),
        "{text}"
    );
    let view = json!({"cache_id": cache_id(&structured), "content_level": "full"});
    let args = json!({});
    let (text, _) = fixture.call_operation("items.get", args, view).into_parts();
    assert!(
        text.contains("title: Employees") && text.contains("snippet"),
        "{text}"
    );
}

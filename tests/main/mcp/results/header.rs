//! The header of a result: size, cost, and how to get more.

use serde_json::{Value, json};

use super::{Fixture, cache_id, merge, samples};

/// Returns the lines before the untrusted text.
fn header_lines(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.is_empty()).collect()
}

#[track_caller]
fn view(fixture: &mut Fixture, options: Value) -> (Vec<String>, Value) {
    let (text, structured) = fixture.search(options).into_parts();
    let header_lines = header_lines(&text).into_iter().map(str::to_owned).collect();
    (header_lines, structured)
}

#[test]
fn header_shows_count_and_cost() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (header_lines, structured) = view(&mut fixture, json!({}));
    assert_eq!(header_lines[0], "search: 3 results · $0.007");
    assert_eq!(structured["metadata"].get("matching"), None);
    let (header_lines, structured) = view(
        &mut fixture,
        json!({"content_level": "summary", "filters": {"titleContains": "heat"}}),
    );
    assert!(
        header_lines[0].starts_with("search: 1 result, 3 before filters · $"),
        "{header_lines:?}"
    );
    assert_eq!(structured["metadata"]["matching"], 1);
    assert_eq!(structured["metadata"]["totalResults"], 3);
}

#[test]
fn header_omits_unknown_facts() {
    let mut fixture = Fixture::with_response(&json!({"results": []}));
    let (header_lines, structured) = view(&mut fixture, json!({}));
    assert!(
        header_lines[0].starts_with("search: 0 results"),
        "{header_lines:?}"
    );
    assert!(
        !header_lines[0].contains('$') && !header_lines[0].contains("request"),
        "{header_lines:?}"
    );
    assert_eq!(structured["metadata"]["costDollars"], Value::Null);
    assert_eq!(structured["metadata"]["requestId"], Value::Null);
    assert_eq!(structured["results"], json!([]));
}

/// The cost of an agent run is inside of the run.
#[test]
fn header_shows_cost_of_a_single_object() {
    let mut fixture = Fixture::with_response(&samples::run());
    let args = json!({"runId": "agent_run_01"});
    let (text, structured) = fixture
        .call_operation("agent.runs.get", args, json!({}))
        .into_parts();
    assert_eq!(structured["metadata"]["costDollars"], 0.16);
    assert!(header_lines(&text)[0].contains(" · $0.16"), "{text}");
}

/// A cached result costs nothing, and is marked as cached.
#[test]
fn cached_result_is_marked() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (first, structured) = view(&mut fixture, json!({}));
    assert!(!first[0].contains("cache ·"), "{first:?}");
    assert_eq!(structured["metadata"].get("cached"), None);
    let (second, structured) = view(&mut fixture, json!({}));
    assert!(second[0].contains(" · $0 · from the cache"), "{second:?}");
    assert_eq!(structured["metadata"]["cached"], true);
    assert_eq!(structured["metadata"]["costDollars"], 0);
}

/// The token estimate covers the text as it is sent, and is not too low.
#[test]
fn token_estimate_is_an_upper_bound() {
    for response in [
        samples::pages(),
        samples::items(),
        samples::research(),
        json!({"results": []}),
    ] {
        let mut fixture = Fixture::with_response(&response);
        for level in ["summary", "standard", "full"] {
            for format in ["markdown", "json"] {
                let options = json!({"content_level": level, "output_format": format});
                let (text, structured) = fixture.search(options).into_parts();
                let estimate = structured["metadata"]["tokenEstimate"]
                    .as_u64()
                    .expect("a number");
                let counted = bpe_openai::o200k_base().count(&text) as u64;
                assert!(estimate >= counted, "{estimate} < {counted}: {text}");
                assert!(
                    estimate <= counted * 2 + 100,
                    "{estimate} > twice {counted}: {text}"
                );
            }
        }
    }
}

#[test]
fn warnings_and_corrections_are_in_text_and_structured() {
    let mut response = samples::pages();
    response["warnings"] = json!(["only a | part", {"code": "slow"}]);
    let mut fixture = Fixture::with_response(&response);
    let call = json!({"operation": "search", "args": {"query": "q", "num_results": "3"}});
    let (text, structured) = fixture
        .server
        .call_raw("exa_api", call.clone())
        .into_parts();
    assert_eq!(structured["metadata"]["warnings"], response["warnings"]);
    assert_eq!(
        structured["metadata"]["corrections"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let lines = header_lines(&text);
    assert!(lines.contains(&"Warning: only a | part"), "{lines:#?}");
    assert!(lines.contains(&r#"Warning: {"code":"slow"}"#), "{lines:#?}");
    let corrections: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("Corrected: "))
        .collect();
    assert_eq!(corrections.len(), 2, "{lines:#?}");
    let call = merge(call, &json!({"output_format": "json"}));
    let as_json = fixture.server.call_raw("exa_api", call).envelope();
    assert_eq!(
        as_json["metadata"]["warnings"],
        structured["metadata"]["warnings"]
    );
    assert_eq!(
        as_json["metadata"]["corrections"],
        structured["metadata"]["corrections"]
    );
}

/// Following `more` returns more.
#[test]
fn header_explains_how_to_get_more() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (header_lines, structured) = view(&mut fixture, json!({"limit": 1}));
    let id = cache_id(&structured);
    let more = structured["metadata"]["more"]
        .as_str()
        .expect("a suggested call");
    assert!(
        header_lines.contains(&format!("More: {more}")),
        "{header_lines:#?}"
    );
    for part in ["cache_id", &id, "offset 1", "content_level \"full\""] {
        assert!(more.contains(part), "no {part} in {more}");
    }
    let (_, structured) = view(
        &mut fixture,
        json!({"cache_id": id, "offset": 1, "limit": 1}),
    );
    assert_eq!(
        structured["results"][0]["title"],
        "All about solid state batteries"
    );
    assert!(
        structured["metadata"]["more"]
            .as_str()
            .expect("a suggested call")
            .contains("offset 2")
    );
    // Level `full` offers nothing more.
    let (_, structured) = view(
        &mut fixture,
        json!({"cache_id": id, "content_level": "full"}),
    );
    assert_eq!(structured["metadata"].get("more"), None);
}

/// The next page of a list is shown, whether or not results are cached.
#[test]
fn header_names_the_next_page() {
    let mut fixture = Fixture::with_response(&samples::items());
    let args = json!({"websetId": "webset_1"});
    for level in ["summary", "standard", "full"] {
        let options = json!({"content_level": level});
        let (text, structured) = fixture
            .call_operation("items.list", args.clone(), options)
            .into_parts();
        let more = structured["metadata"]["more"]
            .as_str()
            .expect("a suggested call");
        assert!(
            more.contains("cursor") && more.contains("all: true"),
            "{more}"
        );
        assert_eq!(structured["nextCursor"], "cursor_2", "{level}");
        assert!(text.contains("nextCursor: cursor_2"), "{text}");
    }
}

/// Indexes refer to the whole result, even where some are missing.
/// The request id is shown wherever it is in the response.
#[test]
fn header_shows_request_id_of_a_single_object() {
    let mut fixture = Fixture::with_response(&json!({"context": "c", "requestId": "req-7"}));
    let (text, structured) = fixture
        .search(json!({"content_level": "full"}))
        .into_parts();
    assert_eq!(structured["metadata"]["requestId"], "req-7");
    assert!(text.contains("request req-7"), "{text}");
}

#[test]
fn indexes_refer_to_the_whole_result() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let filters = json!({"filters": {"titleContains": "e"}, "content_level": "summary"});
    let (_, structured) = view(&mut fixture, filters);
    assert_eq!(structured["metadata"].get("indexes"), None);
    let options = json!({"filters": {"excludeDomains": ["beta.example"]}, "content_level": "summary", "fresh": true});
    let (text, structured) = fixture.search(options).into_parts();
    assert_eq!(structured["metadata"]["indexes"], json!([1, 3]));
    assert!(text.contains("\n3. [All about fusion energy]"), "{text}");
    let options = json!({"cache_id": cache_id(&structured), "index": 3});
    let (_, structured) = view(&mut fixture, options);
    assert_eq!(structured["results"][0]["title"], "All about fusion energy");
    assert_eq!(structured["metadata"]["indexes"], json!([3]));
}

/// An offset beyond the end must not look like an empty result.
#[test]
fn offset_past_the_end_is_reported() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (text, structured) = fixture.search(json!({"offset": 3})).into_parts();
    assert_eq!(structured["metadata"]["returned"], 0);
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("offset 3") && warning.contains("3 results"),
        "{warning}"
    );
    assert!(text.contains("Warning: "), "{text}");
}

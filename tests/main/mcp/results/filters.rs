//! Filters: sent to Exa where it supports them, otherwise applied by the server, and reported.

use serde_json::{Value, json};

use super::{Fixture, merge, samples};

/// Makes a search with filters; returns the request body and the structured content.
#[track_caller]
fn filtered(args: Value, filters: Value) -> (Value, String, Value) {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (text, structured) = fixture
        .call_operation("search", args, json!({"filters": filters}))
        .into_parts();
    (
        fixture.recorder.only_request().json().expect("a body"),
        text,
        structured,
    )
}

fn titles(structured: &Value) -> Vec<&str> {
    let results = structured["results"].as_array().expect("results");
    let title = |result: &'_ Value| result["title"].as_str().map(str::len);
    assert!(results.iter().all(|result| title(result).is_some()));
    results
        .iter()
        .filter_map(|result| result["title"].as_str())
        .collect()
}

const HEAT: &str = "All about heat pumps";
const STATE: &str = "All about solid state batteries";
const FUSION: &str = "All about fusion energy";

#[test]
fn supported_filters_are_sent_to_exa() {
    for (filters, sent) in [
        (
            json!({"afterDate": "2023-01-01"}),
            json!({"startPublishedDate": "2023-01-01T00:00:00.000Z"}),
        ),
        (
            json!({"beforeDate": "2023-01-15"}),
            json!({"endPublishedDate": "2023-01-15T23:59:59.999Z"}),
        ),
        (
            json!({"afterDate": "2023-01-15T10:30:00+02:00"}),
            json!({"startPublishedDate": "2023-01-15T08:30:00.000Z"}),
        ),
        (
            json!({"afterDate": "2023-01-15 08:30"}),
            json!({"startPublishedDate": "2023-01-15T08:30:00.000Z"}),
        ),
        (
            json!({"afterDate": "2023", "beforeDate": "2023-02"}),
            json!({"startPublishedDate": "2023-01-01T00:00:00.000Z", "endPublishedDate": "2023-02-28T23:59:59.999Z"}),
        ),
        (
            json!({"includeDomains": ["beta.example"]}),
            json!({"includeDomains": ["beta.example"]}),
        ),
        (
            json!({"excludeDomains": ["beta.example"]}),
            json!({"excludeDomains": ["beta.example"]}),
        ),
        (json!({"maxResults": 2}), json!({"numResults": 2})),
    ] {
        let (body, text, structured) = filtered(json!({"query": "q"}), filters.clone());
        assert_eq!(body, merge(json!({"query": "q"}), &sent), "{filters}");
        let names: Vec<&String> = filters.as_object().expect("filters").keys().collect();
        assert_eq!(structured["metadata"]["filters"]["sentToExa"], json!(names));
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        assert!(
            text.contains(&format!("Filters: Exa applied {}", names.join(", "))),
            "{text}"
        );
        assert_eq!(
            structured["metadata"]["corrections"],
            json!([]),
            "{filters}"
        );
    }
}

/// Exa scores some kinds of search only.
#[test]
fn minimum_score_without_scores_removes_nothing() {
    let page = |number: usize| json!({"id": "x", "url": format!("https://a.example/{number}"), "title": "T"});
    let pages: Vec<Value> = (0..3).map(page).collect();
    let mut fixture = Fixture::with_response(&json!({"results": pages}));
    let (text, structured) = fixture
        .search(json!({"filters": {"minScore": 0.8, "maxResults": 2}}))
        .into_parts();
    assert_eq!(titles(&structured).len(), 2);
    assert_eq!(
        structured["metadata"]["warnings"],
        json!(["minScore is not applied: no result has a score"])
    );
    assert!(text.contains("Warning: minScore is not applied"), "{text}");
    assert_eq!(
        structured["metadata"]["filters"]["appliedHere"],
        json!([{"filter": "maxResults", "dropped": 1}])
    );
}

#[test]
fn unsupported_filters_are_applied_locally() {
    for (filters, left, fallen) in [
        (
            json!({"minScore": 0.7}),
            vec![HEAT, STATE],
            json!([{"filter": "minScore", "dropped": 1}]),
        ),
        (
            json!({"minScore": 0.71}),
            vec![HEAT, STATE],
            json!([{"filter": "minScore", "dropped": 1}]),
        ),
        (
            json!({"minScore": 2}),
            vec![],
            json!([{"filter": "minScore", "dropped": 3}]),
        ),
        (
            json!({"titleContains": "HEAT"}),
            vec![HEAT],
            json!([{"filter": "titleContains", "dropped": 2}]),
        ),
        (
            json!({"titleContains": "all about"}),
            vec![HEAT, STATE, FUSION],
            json!([{"filter": "titleContains", "dropped": 0}]),
        ),
        (
            json!({"minScore": 0.5, "titleContains": "solid"}),
            vec![STATE],
            json!([{"filter": "minScore", "dropped": 1}, {"filter": "titleContains", "dropped": 1}]),
        ),
        // With fewer results from Exa too few would remain, so the number is applied last.
        (
            json!({"minScore": 0.5, "maxResults": 1}),
            vec![HEAT],
            json!([{"filter": "minScore", "dropped": 1}, {"filter": "maxResults", "dropped": 1}]),
        ),
    ] {
        let (body, text, structured) = filtered(json!({"query": "q"}), filters.clone());
        assert_eq!(body, json!({"query": "q"}), "{filters}");
        assert_eq!(titles(&structured), left, "{filters}");
        assert_eq!(
            structured["metadata"]["filters"],
            json!({"appliedHere": fallen}),
            "{filters}"
        );
        assert_eq!(structured["metadata"]["totalResults"], 3);
        for entry in fallen.as_array().expect("entries") {
            let filter = entry["filter"].as_str().expect("a name");
            let expected = format!("{filter} removed {}", entry["dropped"]);
            assert!(text.contains(&expected), "no {expected} in {text}");
        }
    }
}

/// Results that Exa should not have returned are removed and reported.
#[test]
fn local_filters_remove_what_exa_lets_through() {
    let filters = json!({"includeDomains": ["beta.example"], "afterDate": "2023-01-01"});
    let (_, _, structured) = filtered(json!({"query": "q"}), filters);
    assert_eq!(titles(&structured), [STATE]);
    assert_eq!(
        structured["metadata"]["filters"],
        json!({
            "sentToExa": ["afterDate", "includeDomains"],
            "appliedHere": [{"filter": "afterDate", "dropped": 1}, {"filter": "includeDomains", "dropped": 1}],
        })
    );
}

/// A result without a score does not pass; the number of such results is reported.
#[test]
fn results_without_the_filtered_value_are_removed() {
    let response = json!({"results": [
        {"url": "https://a.example/", "title": "A", "score": 0.9, "publishedDate": "2024-01-01"},
        {"url": "https://b.example/", "title": "B", "publishedDate": null},
        {"url": "no address", "title": null, "score": 0.1},
    ]});
    for (filters, left, fallen, words) in [
        (
            json!({"minScore": 0.5}),
            1,
            json!({"filter": "minScore", "dropped": 2, "withoutValue": 1}),
            "removed 2, 1 without a value",
        ),
        (
            json!({"afterDate": "2020"}),
            1,
            json!({"filter": "afterDate", "dropped": 2, "withoutValue": 2}),
            "removed 2, 2 without",
        ),
        (
            json!({"includeDomains": ["b.example"]}),
            1,
            json!({"filter": "includeDomains", "dropped": 2, "withoutValue": 1}),
            "removed 2",
        ),
        (
            json!({"titleContains": "b"}),
            1,
            json!({"filter": "titleContains", "dropped": 2, "withoutValue": 1}),
            "removed 2",
        ),
    ] {
        let mut fixture = Fixture::with_response(&response);
        let (text, structured) = fixture.search(json!({"filters": filters})).into_parts();
        assert_eq!(structured["metadata"]["returned"], left, "{filters}");
        assert_eq!(
            structured["metadata"]["filters"]["appliedHere"][0], fallen,
            "{filters}"
        );
        assert!(text.contains(words), "{text}");
    }
    // A result without a URL belongs to no excluded domain.
    let mut fixture = Fixture::with_response(&response);
    let (_, structured) = fixture
        .search(json!({"filters": {"excludeDomains": ["a.example"]}}))
        .into_parts();
    assert_eq!(structured["metadata"]["returned"], 2);
}

/// The caller's own arguments are not changed; the server then applies the filter.
#[test]
fn caller_arguments_are_preserved() {
    let args = json!({"query": "q", "numResults": 50, "includeDomains": ["gamma.example"],
        "startPublishedDate": "2020-01-01T00:00:00.000Z"});
    let filters =
        json!({"maxResults": 1, "includeDomains": ["alpha.example"], "afterDate": "2024-01-01"});
    let (body, _, structured) = filtered(args.clone(), filters);
    assert_eq!(body, args);
    assert_eq!(titles(&structured), [HEAT]);
    assert_eq!(structured["metadata"]["filters"].get("sentToExa"), None);
    // This applies to other spellings of the argument, too.
    let args = json!({"query": "q", "num_results": 50});
    let (body, _, _) = filtered(args, json!({"maxResults": 1}));
    assert_eq!(body, json!({"query": "q", "numResults": 50}));
}

/// Most list operations have no such arguments except `limit`.
#[test]
fn lists_are_filtered_locally() {
    let mut fixture = Fixture::with_response(&samples::items());
    let args = json!({"websetId": "w"});
    let filters = json!({"afterDate": "2024-05-12", "includeDomains": ["borealis.example"], "titleContains": "bore"});
    let (_, structured) = fixture
        .call_operation("items.list", args.clone(), json!({"filters": filters}))
        .into_parts();
    assert_eq!(
        fixture.recorder.only_request().target,
        "/websets/v0/websets/w/items"
    );
    assert_eq!(titles(&structured), ["Borealis"]);
    assert_eq!(
        structured["metadata"]["filters"]["appliedHere"],
        json!([{"filter": "afterDate", "dropped": 1}, {"filter": "includeDomains", "dropped": 0}, {"filter": "titleContains", "dropped": 0}])
    );
    let filters = json!({"maxResults": 1});
    let (_, structured) = fixture
        .call_operation("items.list", args.clone(), json!({"filters": filters}))
        .into_parts();
    assert_eq!(
        fixture.recorder.only_request().target,
        "/websets/v0/websets/w/items?limit=1"
    );
    assert_eq!(titles(&structured), ["Acme"]);
    // A limit above the page size does not fail.
    let (_, structured) = fixture
        .call_operation(
            "items.list",
            args,
            json!({"filters": {"maxResults": 5_000}}),
        )
        .into_parts();
    assert_eq!(
        fixture.recorder.only_request().target,
        "/websets/v0/websets/w/items"
    );
    assert_eq!(titles(&structured).len(), 2);
}

#[test]
fn filters_with_an_index_warn() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let options = json!({"index": 1, "filters": {"titleContains": "nothing", "afterDate": "1999"}});
    let (text, structured) = fixture.search(options).into_parts();
    let warnings = structured["metadata"]["warnings"]
        .as_array()
        .expect("warnings");
    let warning = warnings[0].as_str().expect("a warning");
    assert!(
        warning.contains("the filter titleContains is not applied"),
        "{warning}"
    );
    assert!(text.contains("titleContains is not applied"), "{text}");
    let id = super::cache_id(&structured);
    let options = json!({"cache_id": id, "index": 1, "filters": {"minScore": 2, "maxResults": 1}});
    let (_, structured) = fixture.search(options).into_parts();
    let expected = structured["metadata"]["warnings"].to_string();
    assert!(
        expected.contains("the filters minScore, maxResults are"),
        "{expected}"
    );
    let (_, structured) = fixture
        .search(json!({"cache_id": id, "index": 1}))
        .into_parts();
    assert_eq!(structured["metadata"]["warnings"], json!([]));
}

/// Numeric dates count as dates.
#[test]
fn numeric_dates_are_accepted() {
    let response = json!({"data": [
        {"researchId": "a", "status": "completed", "createdAt": 1_717_144_200_000_i64, "instructions": "A"},
        {"researchId": "b", "status": "completed", "createdAt": 1_600_000_000_000_i64, "instructions": "B"},
    ]});
    let mut fixture = Fixture::with_response(&response);
    let (_, structured) = fixture
        .call_operation(
            "research.list",
            json!({}),
            json!({"filters": {"afterDate": "2024"}}),
        )
        .into_parts();
    assert_eq!(structured["metadata"]["returned"], 1);
    assert_eq!(structured["results"][0]["instructions"], "A");
}

#[test]
fn domains_are_normalized() {
    for (domain, left) in [
        ("alpha.example", 1),
        ("ALPHA.example", 1),
        ("https://alpha.example/", 1),
        ("*.beta.example", 1),
        ("beta.example", 1),
        ("alpha.example/articles", 1),
        ("alpha.example/other", 0),
        ("pha.example", 0),
        ("example", 3),
    ] {
        let mut fixture = Fixture::with_response(&samples::pages());
        let (_, structured) = fixture.search(json!({})).into_parts();
        let filters = json!({"includeDomains": [domain]});
        let view = json!({"cache_id": super::cache_id(&structured), "filters": filters});
        let (_, structured) = fixture.search(view).into_parts();
        assert_eq!(structured["metadata"]["returned"], left, "{domain}");
    }
}

#[test]
fn every_tool_set_has_filters() {
    let filters = json!({"minScore": 0.5, "includeDomains": ["beta.example"]});
    for (set, tool, call) in [
        ("default", "web_search_exa", json!({"query": "q"})),
        (
            "toolhost",
            "exa-sync",
            json!({"operation": "search", "params": {"query": "q"}}),
        ),
        ("granular", "search", json!({"query": "q"})),
    ] {
        let mut fixture = Fixture::with_tools(set, &samples::pages());
        let call = merge(call, &json!({"filters": filters}));
        let (_, structured) = fixture.server.call_raw(tool, call).into_parts();
        assert_eq!(titles(&structured), [STATE], "{tool}");
        let body = fixture.recorder.only_request().json().expect("a body");
        assert_eq!(body["includeDomains"], json!(["beta.example"]), "{tool}");
    }
}

#[test]
fn fields_option_selects_fields() {
    let mut fixture = Fixture::with_response(&samples::items());
    let args = json!({"websetId": "w"});
    let mut pick = |fields: Value, more: Value| {
        let options = merge(json!({"fields": fields}), &more);
        fixture
            .call_operation("items.list", args.clone(), options)
            .into_parts()
    };
    let as_json = json!({"output_format": "json"});
    let (_, structured) = pick(
        json!(["id", "properties.company.name", "evaluations.satisfied"]),
        as_json.clone(),
    );
    assert_eq!(
        structured["results"][0],
        json!({"id": "item_1", "properties": {"company": {"name": "Acme"}}, "evaluations": [{"satisfied": "yes"}]})
    );
    let (_, structured) = pick(json!(["properties.*.name"]), as_json.clone());
    assert_eq!(
        structured["results"][1],
        json!({"properties": {"company": {"name": "Borealis"}}})
    );
    // A single name works like a list, and the level does not hide selected fields.
    for level in ["summary", "standard", "full"] {
        let (text, structured) = pick(json!("sourceId"), json!({"content_level": level}));
        assert_eq!(
            structured["results"][0],
            json!({"sourceId": "search_1"}),
            "{level}"
        );
        assert!(text.contains("sourceId: search"), "{text}");
    }
    let (text, structured) = pick(json!(["id", "nmae"]), as_json);
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("nmae") && warning.contains("properties"),
        "{warning}"
    );
    assert_eq!(structured["results"][0], json!({"id": "item_1"}));
    drop(text);
}

/// Fields next to the results can be selected, too.
#[test]
fn fields_option_knows_top_level_fields() {
    let mut fixture = Fixture::with_response(&samples::answer());
    let options = json!({"fields": ["answer", "title"], "output_format": "json"});
    let (_, structured) = fixture
        .call_operation("answer", json!({"query": "q"}), options)
        .into_parts();
    assert_eq!(structured["metadata"]["warnings"], json!([]));
    assert_eq!(structured["answer"], samples::answer()["answer"]);
    assert_eq!(structured["results"][0], json!({"title": HEAT}));
}

/// All options together, on a cached and on a new result.
#[test]
fn options_combine() {
    let options = json!({"content_level": "full", "output_format": "json", "filters": {"minScore": 0.3, "titleContains": "all"},
        "offset": 1, "limit": 1, "fields": ["title", "score"], "max_tokens": 400});
    let mut fixture = Fixture::with_response(&samples::pages());
    let structured = fixture.search(options.clone()).envelope();
    assert_eq!(
        structured["results"],
        json!([{"title": STATE, "score": 0.71}])
    );
    assert_eq!(structured["metadata"]["indexes"], json!([2]));
    let again = merge(options, &json!({"cache_id": super::cache_id(&structured)}));
    assert_eq!(
        fixture.search(again).envelope()["results"],
        structured["results"]
    );
    assert_eq!(fixture.take_request_count(), 1);
}

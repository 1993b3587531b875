//! Invalid output options: errors and corrections.

use serde_json::{Value, json};

use super::{Fixture, merge, samples};
use crate::support::Failure;

#[track_caller]
fn rejection(fixture: &mut Fixture, options: Value) -> Failure {
    let failure = fixture.search(options.clone()).failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
    assert_eq!(fixture.take_request_count(), 0, "{options}");
    failure
}

#[test]
fn invalid_options_are_rejected_before_sending() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for (options, field, parts) in [
        (
            json!({"content_level": "everything"}),
            "content_level",
            vec!["summary", "standard", "full", "everything"],
        ),
        (
            json!({"output_format": "html"}),
            "output_format",
            vec!["markdown", "json"],
        ),
        (
            json!({"max_tokens": 0}),
            "max_tokens",
            vec!["at least 1", "0"],
        ),
        (json!({"max_tokens": -5}), "max_tokens", vec!["at least 1"]),
        (
            json!({"max_tokens": 99_999_999}),
            "max_tokens",
            vec!["at most 1000000"],
        ),
        (json!({"index": 0}), "index", vec!["at least 1"]),
        (json!({"index": -1}), "index", vec!["at least 1"]),
        (json!({"index": 1.5}), "index", vec!["1.5"]),
        (json!({"offset": "last"}), "offset", vec!["last"]),
        (json!({"limit": 0}), "limit", vec!["at least 1"]),
        (json!({"cache_id": ""}), "cache_id", vec!["empty"]),
        (json!({"fields": []}), "fields", vec!["at least 1 entry"]),
        (json!({"fresh": "perhaps"}), "fresh", vec!["perhaps"]),
        (
            json!({"filters": {"minScore": "high"}}),
            "filters.minScore",
            vec!["high"],
        ),
        (
            json!({"filters": {"maxResults": 0}}),
            "filters.maxResults",
            vec!["at least 1"],
        ),
        (
            json!({"filters": {"titleContains": ""}}),
            "filters.titleContains",
            vec!["empty"],
        ),
        (
            json!({"filters": {"includeDomains": [""]}}),
            "filters.includeDomains[0]",
            vec!["empty"],
        ),
        (
            json!({"filters": {"afterDate": "last week"}}),
            "filters.afterDate",
            vec!["last week", "2024-05-31"],
        ),
        (
            json!({"filters": {"beforeDate": "2024-13-01"}}),
            "filters.beforeDate",
            vec!["2024-13-01"],
        ),
        (
            json!({"filters": {"afterDate": "2023-02-29"}}),
            "filters.afterDate",
            vec!["2023-02-29"],
        ),
        (
            json!({"filters": {"afterDate": "01/02/2024"}}),
            "filters.afterDate",
            vec!["01/02/2024"],
        ),
        (json!({"filters": "recent"}), "filters", vec!["recent"]),
    ] {
        let failure = rejection(&mut fixture, options.clone());
        assert_eq!(failure.fields(), [field], "{options}");
        failure.assert_contains(&parts);
        // The example is a complete call with the option corrected.
        let example = failure.error["example"].as_object().expect("an example");
        for name in options.as_object().expect("options").keys() {
            assert!(example.contains_key(name), "{options}");
        }
        let looks_back = example.contains_key("cache_id");
        assert_eq!(example.contains_key("query"), !looks_back, "{options}");
        if !example.contains_key("cache_id") {
            fixture.search(Value::Object(example.clone())).into_parts();
            fixture.take_request_count();
        }
    }
}

/// All problems are reported at once.
#[test]
fn several_problems_are_reported_together() {
    let failure = rejection(
        &mut Fixture::with_response(&samples::pages()),
        json!({"content_level": "all", "max_tokens": 0, "filters": {"minScore": "x"}}),
    );
    assert_eq!(
        failure.fields(),
        ["content_level", "filters.minScore", "max_tokens"]
    );
}

#[test]
fn unknown_filter_suggests_a_similar_name() {
    for (given, meant) in [
        ("minScor", "minScore"),
        ("domains", "includeDomains"),
        ("afterdate2", "afterDate"),
    ] {
        let failure = rejection(
            &mut Fixture::with_response(&samples::pages()),
            json!({"filters": {given: 1}}),
        );
        failure.assert_contains(&[given, meant]);
    }
}

#[test]
fn index_out_of_range_reports_the_range() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for index in [4, 100] {
        let failure = fixture.search(json!({"index": index})).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        assert_eq!(failure.fields(), ["index"]);
        failure.assert_contains(&[&index.to_string(), "3 results", "1 to 3"]);
    }
    // The paid result is cached nevertheless.
    assert_eq!(fixture.take_request_count(), 1);
    let mut fixture = Fixture::with_response(&json!({"results": []}));
    let failure = fixture.search(json!({"index": 1})).failure();
    failure.assert_contains(&["no results"]);
}

/// The error says that the call was executed, and the result can be read from the cache.
#[test]
fn index_out_of_range_reports_that_the_call_was_executed() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let failure = fixture.search(json!({"index": 4})).failure();
    failure.assert_contains(&["`search` was called", "3 results"]);
    assert!(!failure.text.contains("not called"), "{}", failure.text);
    let id = failure.error["cacheId"].as_str().expect("an id").to_owned();
    failure.assert_contains(&[&id]);
    let (_, structured) = fixture
        .search(json!({"cache_id": id, "index": 3}))
        .into_parts();
    assert_eq!(structured["metadata"]["returned"], 1);
    assert_eq!(fixture.take_request_count(), 1);
    let cached = fixture
        .search(json!({"cache_id": id, "index": 4}))
        .failure();
    cached.assert_contains(&["was not called", "1 to 3"]);
}

#[test]
fn write_result_is_shown_despite_index() {
    let mut fixture =
        Fixture::with_response(&json!({"id": "webset_1", "object": "webset", "status": "idle"}));
    let args = json!({"search": {"query": "q", "count": 1}});
    let (text, structured) = fixture
        .call_operation("websets.create", args, json!({"index": 7}))
        .into_parts();
    assert_eq!(structured["results"][0]["id"], "webset_1");
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("no result 7"), "{warning}");
    assert!(text.contains("no result 7"), "{text}");
}

/// When reading a cached result, the error is about its id, not about the operation's arguments.
#[test]
fn malformed_result_id_is_reported() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for id in [json!(5), json!({"id": "r_x"}), json!([])] {
        let call = json!({"cache_id": id});
        let failure = fixture.server.call_raw("web_search_exa", call).failure();
        assert!(!failure.text.contains("query"), "{}", failure.text);
        let named = failure.text.contains("cache_id") || failure.text.contains("cached result");
        assert!(named, "{}", failure.text);
    }
    assert_eq!(fixture.take_request_count(), 0);
}

#[test]
fn cached_read_rejects_fresh() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (_, structured) = fixture.search(json!({})).into_parts();
    let id = super::cache_id(&structured);
    let options = json!({"cache_id": id, "fresh": true});
    let (text, structured) = fixture.search(options).into_parts();
    assert_eq!(fixture.take_request_count(), 1);
    let corrections = structured["metadata"]["corrections"].to_string();
    assert!(corrections.contains("`fresh` was ignored"), "{corrections}");
    assert!(text.contains("fresh"), "{text}");
}

#[test]
fn option_mistakes_are_corrected_and_reported() {
    for (options, name, value, notes) in [
        (
            json!({"contentLevel": "summary"}),
            "contentLevel",
            "summary",
            1,
        ),
        (
            json!({"Content-Level": "summary"}),
            "contentLevel",
            "summary",
            1,
        ),
        (
            json!({"content_levl": "summary"}),
            "contentLevel",
            "summary",
            1,
        ),
        (
            json!({"content_level": "SUMMARY"}),
            "contentLevel",
            "summary",
            1,
        ),
        (
            json!({"content_level": " summary "}),
            "contentLevel",
            "summary",
            1,
        ),
    ] {
        let mut fixture = Fixture::with_response(&samples::pages());
        let (_, structured) = fixture.search(options.clone()).into_parts();
        assert_eq!(structured["metadata"][name], value, "{options}");
        let corrections = structured["metadata"]["corrections"]
            .as_array()
            .expect("notes");
        assert_eq!(corrections.len(), notes, "{options}: {corrections:?}");
        assert_eq!(
            fixture.recorder.only_request().json(),
            Some(json!({"query": "q"})),
            "{options}"
        );
    }
    for (options, returned) in [
        (json!({"limit": "2"}), 2),
        (json!({"offset": 1.0}), 2),
        (json!({"filters": {"minScore": "0.5"}}), 2),
        (json!({"filters": {"include_domains": "beta.example"}}), 1),
        (json!({"filters": "{\"minScore\": 0.9}"}), 1),
        (json!({"fields": "title"}), 3),
        (json!({"fresh": "true", "limit": "1"}), 1),
        (
            json!({"limit": null, "filters": null, "content_level": null}),
            3,
        ),
    ] {
        let mut fixture = Fixture::with_response(&samples::pages());
        let (_, structured) = fixture.search(options.clone()).into_parts();
        assert_eq!(structured["metadata"]["returned"], returned, "{options}");
    }
}

/// Options among the arguments of the operation are accepted and reported.
#[test]
fn options_among_arguments_are_recognized() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let args = json!({"query": "q", "content_level": "summary", "output_format": "json"});
    let (_, structured) = fixture
        .call_operation("search", args, json!({}))
        .into_parts();
    assert_eq!(structured["metadata"]["contentLevel"], "summary");
    assert_eq!(
        structured["metadata"]["corrections"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(
        fixture.recorder.only_request().json(),
        Some(json!({"query": "q"}))
    );
}

/// Every tool set rejects invalid options in the same way.
#[test]
fn every_tool_set_explains_invalid_options() {
    for (set, tool, call) in [
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
    ] {
        let mut fixture = Fixture::with_tools(set, &samples::pages());
        for options in [
            json!({"content_level": "x"}),
            json!({"max_tokens": 0}),
            json!({"filters": {"afterDate": "x"}}),
        ] {
            let failure = fixture
                .server
                .call_raw(tool, merge(call.clone(), &options))
                .failure();
            failure.assert_code(-32602, "INVALID_PARAMS");
        }
        assert_eq!(fixture.take_request_count(), 0, "{tool}");
    }
}

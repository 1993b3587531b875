//! Cached results: read again without a request, and only until they expire.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Fixture, cache_id, merge, samples};
use crate::support::{McpServer, Program, Recorder, Response};

/// Returns a fixture with a cached result, and its id.
fn cached_search() -> (Fixture, String) {
    let mut fixture = Fixture::with_response(&samples::pages());
    let (_, structured) = fixture.search(json!({})).into_parts();
    assert_eq!(fixture.take_request_count(), 1);
    let id = cache_id(&structured);
    (fixture, id)
}

#[test]
fn cached_read_sends_no_request() {
    let (mut fixture, id) = cached_search();
    let views = [
        json!({"content_level": "summary"}),
        json!({"content_level": "full"}),
        json!({"output_format": "json"}),
        json!({"filters": {"minScore": 0.5, "includeDomains": ["alpha.example"]}}),
        json!({"offset": 1, "limit": 1}),
        json!({"index": 2}),
        json!({"fields": ["title"]}),
        json!({"max_tokens": 200}),
        json!({"fresh": true}),
        json!({"all": true}),
    ];
    for view in views {
        let options = merge(json!({"cache_id": id}), &view);
        let (_, structured) = fixture.search(options).into_parts();
        assert_eq!(fixture.take_request_count(), 0, "{view}");
        assert_eq!(structured["metadata"]["cached"], true, "{view}");
        assert_eq!(cache_id(&structured), id);
        assert_eq!(structured["metadata"]["totalResults"], 3, "{view}");
    }
}

#[test]
fn cached_reads_are_deterministic() {
    let (mut fixture, id) = cached_search();
    let mut view = |options: Value| {
        fixture
            .search(merge(json!({"cache_id": id}), &options))
            .into_parts()
    };
    let (one, other) = (json!({"index": 1}), json!({"index": 2}));
    let (first, second) = (view(one.clone()), view(other.clone()));
    assert_ne!(first.1["results"], second.1["results"]);
    for (options, expected) in [(&other, &second), (&one, &first), (&one, &first)] {
        let structured = view(options.clone());
        assert_eq!(structured.1, expected.1, "{options}");
    }
    assert_eq!(view(one.clone()).0, view(one).0);
    // A correction is reported with the call that caused it, and with no other.
    let (_, corrected) = view(json!({"index": "2"}));
    assert_eq!(
        corrected["metadata"]["corrections"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let (_, plain) = view(other);
    assert_eq!(plain["metadata"]["corrections"], json!([]));
    assert_eq!(fixture.take_request_count(), 0);
}

#[test]
fn cached_read_honors_its_options() {
    let (mut fixture, id) = cached_search();
    let mut view = |options: Value| {
        let options = merge(json!({"cache_id": id, "output_format": "json"}), &options);
        fixture.search(options).envelope()
    };
    let pages = samples::pages();
    let titles = |structured: &Value| -> Vec<Value> {
        let results = structured["results"].as_array().expect("results");
        results
            .iter()
            .map(|result| result["title"].clone())
            .collect()
    };
    let title = |index: usize| pages["results"][index]["title"].clone();
    assert_eq!(view(json!({}))["results"], pages["results"]);
    assert_eq!(titles(&view(json!({"offset": 1}))), [title(1), title(2)]);
    assert_eq!(titles(&view(json!({"offset": 1, "limit": 1}))), [title(1)]);
    assert_eq!(titles(&view(json!({"limit": 2}))), [title(0), title(1)]);
    assert_eq!(titles(&view(json!({"index": 2}))), [title(1)]);
    assert_eq!(
        titles(&view(json!({"filters": {"minScore": 0.9}}))),
        [title(0)]
    );
    let fields = view(json!({"fields": ["author", "highlightScores"]}));
    assert_eq!(
        fields["results"][0],
        json!({"author": "Ada Example", "highlightScores": [0.91, 0.52]})
    );
}

/// Any tool can read a cached result; its other arguments are ignored then.
#[test]
fn every_tool_set_can_read_cached_results() {
    let mut fixture = Fixture::with_tools("default,toolhost,granular", &samples::pages());
    let (_, structured) = fixture.search(json!({})).into_parts();
    assert_eq!(fixture.take_request_count(), 1);
    let id = cache_id(&structured);
    for (tool, call) in [
        ("web_search_exa", json!({})),
        ("web_search_exa", json!({"query": "other", "numResults": 5})),
        ("web_fetch_exa", json!({})),
        ("exa_api", json!({"operation": "search"})),
        (
            "exa_api",
            json!({"operation": "answer", "args": {"query": "q"}}),
        ),
        ("exa-sync", json!({"operation": "search"})),
        ("search", json!({})),
        ("search", json!({"query": "q"})),
        ("websets_list", json!({})),
    ] {
        let call = merge(call, &json!({"cache_id": id, "content_level": "summary"}));
        let (_, structured) = fixture.server.call_raw(tool, call).into_parts();
        assert_eq!(structured["metadata"]["operation"], "search", "{tool}");
        assert_eq!(structured["metadata"]["returned"], 3, "{tool}");
        assert_eq!(fixture.take_request_count(), 0, "{tool}");
    }
}

/// The same billed request while its result is cached.
#[test]
fn identical_searches_send_one_request() {
    let bodies = [
        (
            "search",
            json!({"query": "q", "numResults": 3}),
            samples::pages(),
        ),
        (
            "find_similar",
            json!({"url": "https://a.example/"}),
            samples::pages(),
        ),
        (
            "get_contents",
            json!({"urls": ["https://a.example/"]}),
            samples::contents(),
        ),
        ("answer", json!({"query": "q"}), samples::answer()),
        (
            "websets.preview",
            json!({"search": {"query": "q"}}),
            json!({"search": {}, "enrichments": [], "items": []}),
        ),
    ];
    for (operation, args, body) in bodies {
        let mut fixture = Fixture::with_response(&body);
        let mut send_request = |args: &Value, options: Value| {
            let (_, structured) = fixture
                .call_operation(operation, args.clone(), options)
                .into_parts();
            let cached = structured["metadata"]["cached"] == true;
            (cached, cache_id(&structured), fixture.take_request_count())
        };
        let (cached, first, requests) = send_request(&args, json!({}));
        assert_eq!((cached, requests), (false, 1), "{operation}");
        // Neither output options nor the order of arguments change the cache key.
        let fields = args.as_object().expect("arguments").clone();
        let turned = Value::Object(fields.into_iter().rev().collect());
        for (args, options) in [
            (&args, json!({})),
            (&turned, json!({})),
            (
                &args,
                json!({"content_level": "full", "output_format": "json"}),
            ),
        ] {
            assert_eq!(
                send_request(args, options),
                (true, first.clone(), 0),
                "{operation}"
            );
        }
        let (cached, second, requests) = send_request(&args, json!({"fresh": true}));
        assert_eq!((cached, requests), (false, 1), "{operation}");
        assert_ne!(second, first);
        // The newest result is used from now on.
        assert_eq!(
            send_request(&args, json!({})),
            (true, second, 0),
            "{operation}"
        );
        let other = merge(args.clone(), &json!({"unheardOf": 1}));
        assert_eq!(send_request(&other, json!({})).2, 1, "{operation}");
    }
}

#[test]
fn named_tools_use_the_cache() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for (call, requests) in [
        (json!({"query": "q"}), 1),
        (json!({"query": "q"}), 0),
        (json!({"query": "q", "content_level": "full"}), 1),
        (
            json!({"query": "q", "content_level": "full", "output_format": "json"}),
            0,
        ),
        (json!({"query": "q", "fresh": true}), 1),
    ] {
        fixture
            .server
            .call_raw("web_search_exa", call.clone())
            .into_parts();
        assert_eq!(fixture.take_request_count(), requests, "{call}");
    }
}

/// The caller's own objects change, so they are requested again each time; the cached result can still be read
/// by its id.
#[test]
fn mutable_state_is_not_cached() {
    for (operation, args) in [
        ("websets.list", json!({})),
        ("websets.get", json!({"websetId": "w"})),
        ("items.list", json!({"websetId": "w"})),
        ("research.get", json!({"researchId": "r"})),
        ("agent.runs.get", json!({"runId": "agent_run_1"})),
        ("websets.create", json!({"search": {"query": "q"}})),
        ("research.create", json!({"instructions": "q"})),
        ("websets.cancel", json!({"websetId": "w"})),
    ] {
        let mut fixture = Fixture::with_response(&samples::webset());
        let mut id = String::new();
        for _ in 0..2 {
            let (_, structured) = fixture
                .call_operation(operation, args.clone(), json!({}))
                .into_parts();
            assert_eq!(fixture.take_request_count(), 1, "{operation}");
            assert_eq!(structured["metadata"].get("cached"), None, "{operation}");
            id = cache_id(&structured);
        }
        fixture
            .call_operation(operation, args, json!({"cache_id": id}))
            .into_parts();
        assert_eq!(fixture.take_request_count(), 0, "{operation}");
    }
}

/// Failures are not cached.
#[test]
fn failures_are_not_cached() {
    let replies = [
        Response::json(400, &json!({"error": "no"})),
        Response::json(200, &samples::pages()),
    ];
    let mut fixture = Fixture::with(Recorder::responses(replies), &[], &[]);
    fixture.search(json!({})).failure();
    let (_, structured) = fixture.search(json!({})).into_parts();
    assert_eq!(fixture.take_request_count(), 2);
    assert_eq!(structured["metadata"].get("cached"), None);
}

#[test]
fn cached_results_expire() {
    let recorder = Recorder::always(Response::json(200, &samples::pages()));
    let mut fixture = Fixture::with(recorder, &[], &[("EXA_MCP_CACHE_TTL", "1")]);
    let (_, structured) = fixture.search(json!({})).into_parts();
    let id = cache_id(&structured);
    sleep(Duration::from_millis(1100));
    let failure = fixture.search(json!({"cache_id": id})).failure();
    failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
    failure.assert_contains(&[&id, "1 second", "without cache_id"]);
    let (_, structured) = fixture.search(json!({})).into_parts();
    assert_ne!(cache_id(&structured), id);
    assert_eq!(fixture.take_request_count(), 2);
}

#[test]
fn cache_can_be_disabled() {
    for variable in ["EXA_MCP_CACHE_TTL", "EXA_MCP_CACHE_BYTES"] {
        let recorder = Recorder::always(Response::json(200, &samples::pages()));
        let mut fixture = Fixture::with(recorder, &[], &[(variable, "0")]);
        for _ in 0..2 {
            let (text, structured) = fixture.search(json!({"limit": 1})).into_parts();
            assert_eq!(fixture.take_request_count(), 1, "{variable}");
            assert_eq!(structured["metadata"]["cacheId"], Value::Null);
            assert!(!text.contains("cache_id"), "{text}");
        }
        let failure = fixture.search(json!({"cache_id": "r_x"})).failure();
        failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
        failure.assert_contains(&["caches no results", "without cache_id"]);
    }
}

/// A result that is too large for the cache can be requested in parts, or with a larger limit.
#[test]
fn truncated_uncached_result_explains_how_to_continue() {
    for variable in ["EXA_MCP_CACHE_TTL", "EXA_MCP_CACHE_BYTES"] {
        let recorder = Recorder::always(Response::json(200, &samples::pages()));
        let mut fixture = Fixture::with(recorder, &[], &[(variable, "0")]);
        let options = json!({"content_level": "full", "max_tokens": 300});
        let (text, structured) = fixture.search(options).into_parts();
        let more = structured["metadata"]["more"]
            .as_str()
            .expect("a suggested call");
        for part in ["offset", "a larger max_tokens", "Exa is called again"] {
            assert!(more.contains(part) && text.contains(part), "{more} {text}");
        }
    }
}

#[test]
fn cache_evicts_the_oldest_results() {
    let recorder = Recorder::always(Response::json(200, &samples::pages()));
    let size = samples::pages().to_string().len();
    let room = (size * 4).to_string();
    let mut fixture = Fixture::with(recorder, &[], &[("EXA_MCP_CACHE_BYTES", &room)]);
    let mut ids = Vec::new();
    for number in 0..8 {
        let args = json!({"query": format!("q{number}")});
        let (_, structured) = fixture
            .call_operation("search", args, json!({}))
            .into_parts();
        ids.push(cache_id(&structured));
    }
    fixture.search(json!({"cache_id": ids[0]})).failure();
    fixture.search(json!({"cache_id": ids[7]})).into_parts();
    assert_eq!(fixture.take_request_count(), 8);
}

/// Ids are useless on other servers, and guessing one reveals nothing.
#[test]
fn foreign_and_unknown_ids_are_indistinguishable() {
    let (_own, foreign) = cached_search();
    let (mut fixture, _) = cached_search();
    for id in [
        &*foreign,
        "r_aaaaaaaaaaaaaaaaaaaa",
        "r_",
        "../../etc",
        "日本",
    ] {
        let failure = fixture.search(json!({"cache_id": id})).failure();
        failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
        failure.assert_contains(&[id, "300 seconds", "without cache_id"]);
    }
    assert_eq!(fixture.take_request_count(), 0);
}

#[test]
fn ids_cannot_be_guessed() {
    let mut fixture = Fixture::with_response(&samples::pages());
    let mut ids: Vec<String> = (0..20)
        .map(|_| cache_id(&fixture.search(json!({"fresh": true})).into_parts().1))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    let letters: std::collections::BTreeSet<char> = ids.concat().chars().collect();
    assert!(letters.len() > 20, "{letters:?}");
}

/// An id works with every protocol version, because it belongs to the user of the process.
#[test]
fn stateless_version_reads_cached_results() {
    let recorder = Recorder::always(Response::json(200, &samples::pages()));
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    let mut server = McpServer::connect(program, crate::support::STATELESS_VERSION);
    let (_, structured) = server
        .call_raw("web_search_exa", json!({"query": "q"}))
        .into_parts();
    let call = json!({"query": "q", "cache_id": cache_id(&structured), "content_level": "summary"});
    server.call_raw("web_search_exa", call).into_parts();
    assert_eq!(recorder.take().len(), 1);
}

#[test]
fn non_numeric_limits_abort_start() {
    for (variable, value) in [
        ("EXA_MCP_CACHE_TTL", "five minutes"),
        ("EXA_MCP_CACHE_TTL", "-1"),
        ("EXA_MCP_CACHE_TTL", "1.5"),
        ("EXA_MCP_CACHE_BYTES", "32MB"),
        ("EXA_MCP_CACHE_BYTES", "1e6"),
    ] {
        let output = Program::new([]).env(variable, value).run();
        output.assert_failed(2, &[variable, value, "integer"]);
    }
    // Underscores are allowed, and an empty value counts as unset.
    for value in ["32_000_000", " 5 ", ""] {
        let output = Program::new([]).env("EXA_MCP_CACHE_BYTES", value).run();
        assert_eq!(output.code, Some(0), "{output:#?}");
    }
}

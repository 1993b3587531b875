//! Answers that are kept: looked at again without a request, and only as long as they should be.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Desk, cache_id, joined, specimens};
use crate::support::{McpServer, Program, Recorder, Reply};

/// A desk whose answer is kept, with the id.
fn kept() -> (Desk, String) {
    let mut desk = Desk::answering(&specimens::pages());
    let (_, shown) = desk.search(json!({})).shown();
    assert_eq!(desk.asked(), 1);
    let id = cache_id(&shown);
    (desk, id)
}

#[test]
fn cached_read_sends_no_request() {
    let (mut desk, id) = kept();
    let looks = [
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
    for look in looks {
        let options = joined(json!({"cache_id": id}), &look);
        let (_, shown) = desk.search(options).shown();
        assert_eq!(desk.asked(), 0, "{look}");
        assert_eq!(shown["metadata"]["cached"], true, "{look}");
        assert_eq!(cache_id(&shown), id);
        assert_eq!(shown["metadata"]["totalResults"], 3, "{look}");
    }
}

#[test]
fn cached_reads_are_deterministic() {
    let (mut desk, id) = kept();
    let mut look = |options: Value| {
        desk.search(joined(json!({"cache_id": id}), &options))
            .shown()
    };
    let (one, other) = (json!({"index": 0}), json!({"index": 1}));
    let (first, second) = (look(one.clone()), look(other.clone()));
    assert_ne!(first.1["results"], second.1["results"]);
    for (wish, expected) in [(&other, &second), (&one, &first), (&one, &first)] {
        let shown = look(wish.clone());
        assert_eq!(shown.1, expected.1, "{wish}");
    }
    assert_eq!(look(one.clone()).0, look(one).0);
    // A slip is told with the look that made it, and with no other.
    let (_, mended) = look(json!({"index": "1"}));
    assert_eq!(
        mended["metadata"]["corrections"].as_array().map(Vec::len),
        Some(1)
    );
    let (_, plain) = look(other);
    assert_eq!(plain["metadata"]["corrections"], json!([]));
    assert_eq!(desk.asked(), 0);
}

#[test]
fn cached_read_honours_its_options() {
    let (mut desk, id) = kept();
    let mut look = |options: Value| {
        let options = joined(json!({"cache_id": id, "output_format": "json"}), &options);
        desk.search(options).envelope()
    };
    let pages = specimens::pages();
    let titles = |shown: &Value| -> Vec<Value> {
        let results = shown["results"].as_array().expect("results");
        results
            .iter()
            .map(|result| result["title"].clone())
            .collect()
    };
    let title = |index: usize| pages["results"][index]["title"].clone();
    assert_eq!(look(json!({}))["results"], pages["results"]);
    assert_eq!(titles(&look(json!({"offset": 1}))), [title(1), title(2)]);
    assert_eq!(titles(&look(json!({"offset": 1, "limit": 1}))), [title(1)]);
    assert_eq!(titles(&look(json!({"limit": 2}))), [title(0), title(1)]);
    assert_eq!(titles(&look(json!({"index": 2}))), [title(2)]);
    assert_eq!(
        titles(&look(json!({"filters": {"minScore": 0.9}}))),
        [title(0)]
    );
    let fields = look(json!({"fields": ["author", "highlightScores"]}));
    assert_eq!(
        fields["results"][0],
        json!({"author": "Ada Example", "highlightScores": [0.91, 0.52]})
    );
}

/// Any tool can look at an answer, whichever asked for it; its own arguments do not matter then.
#[test]
fn every_tool_set_can_read_cached_results() {
    let mut desk = Desk::offering("default,toolhost,granular", &specimens::pages());
    let (_, shown) = desk.search(json!({})).shown();
    assert_eq!(desk.asked(), 1);
    let id = cache_id(&shown);
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
        let call = joined(call, &json!({"cache_id": id, "content_level": "summary"}));
        let (_, shown) = desk.server.call_plainly(tool, call).shown();
        assert_eq!(shown["metadata"]["operation"], "search", "{tool}");
        assert_eq!(shown["metadata"]["returned"], 3, "{tool}");
        assert_eq!(desk.asked(), 0, "{tool}");
    }
}

/// The same paid question within the life of its answer.
#[test]
fn identical_searches_send_one_request() {
    let answers = [
        (
            "search",
            json!({"query": "q", "numResults": 3}),
            specimens::pages(),
        ),
        (
            "find_similar",
            json!({"url": "https://a.example/"}),
            specimens::pages(),
        ),
        (
            "get_contents",
            json!({"urls": ["https://a.example/"]}),
            specimens::contents(),
        ),
        ("answer", json!({"query": "q"}), specimens::answer()),
        (
            "websets.preview",
            json!({"search": {"query": "q"}}),
            json!({"search": {}, "enrichments": [], "items": []}),
        ),
    ];
    for (operation, args, answer) in answers {
        let mut desk = Desk::answering(&answer);
        let mut ask = |args: &Value, options: Value| {
            let (_, shown) = desk.operate(operation, args.clone(), options).shown();
            let cached = shown["metadata"]["cached"] == true;
            (cached, cache_id(&shown), desk.asked())
        };
        let (cached, first, asked) = ask(&args, json!({}));
        assert_eq!((cached, asked), (false, 1), "{operation}");
        // How it is shown does not make it another question, nor does the order of arguments.
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
            assert_eq!(ask(args, options), (true, first.clone(), 0), "{operation}");
        }
        let (cached, second, asked) = ask(&args, json!({"fresh": true}));
        assert_eq!((cached, asked), (false, 1), "{operation}");
        assert_ne!(second, first);
        // The newest answer counts from now on.
        assert_eq!(ask(&args, json!({})), (true, second, 0), "{operation}");
        let other = joined(args.clone(), &json!({"unheardOf": 1}));
        assert_eq!(ask(&other, json!({})).2, 1, "{operation}");
    }
}

#[test]
fn named_tools_use_the_cache() {
    let mut desk = Desk::answering(&specimens::pages());
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
        desk.server
            .call_plainly("web_search_exa", call.clone())
            .shown();
        assert_eq!(desk.asked(), requests, "{call}");
    }
}

/// What belongs to the caller changes under their hands; it is asked for anew, and can be looked at
/// again by its id.
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
        let mut desk = Desk::answering(&specimens::webset());
        let mut id = String::new();
        for _ in 0..2 {
            let (_, shown) = desk.operate(operation, args.clone(), json!({})).shown();
            assert_eq!(desk.asked(), 1, "{operation}");
            assert_eq!(shown["metadata"].get("cached"), None, "{operation}");
            id = cache_id(&shown);
        }
        desk.operate(operation, args, json!({"cache_id": id}))
            .shown();
        assert_eq!(desk.asked(), 0, "{operation}");
    }
}

/// A failure is not kept.
#[test]
fn failures_are_not_cached() {
    let replies = [
        Reply::json(400, &json!({"error": "no"})),
        Reply::json(200, &specimens::pages()),
    ];
    let mut desk = Desk::with(Recorder::replies(replies), &[], &[]);
    desk.search(json!({})).failure();
    let (_, shown) = desk.search(json!({})).shown();
    assert_eq!(desk.asked(), 2);
    assert_eq!(shown["metadata"].get("cached"), None);
}

#[test]
fn cached_results_expire() {
    let recorder = Recorder::always(Reply::json(200, &specimens::pages()));
    let mut desk = Desk::with(recorder, &[], &[("EXA_MCP_CACHE_TTL", "1")]);
    let (_, shown) = desk.search(json!({})).shown();
    let id = cache_id(&shown);
    sleep(Duration::from_millis(1100));
    let failure = desk.search(json!({"cache_id": id})).failure();
    failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
    failure.assert_says(&[&id, "1 second", "without cache_id"]);
    let (_, shown) = desk.search(json!({})).shown();
    assert_ne!(cache_id(&shown), id);
    assert_eq!(desk.asked(), 2);
}

#[test]
fn cache_can_be_disabled() {
    for variable in ["EXA_MCP_CACHE_TTL", "EXA_MCP_CACHE_BYTES"] {
        let recorder = Recorder::always(Reply::json(200, &specimens::pages()));
        let mut desk = Desk::with(recorder, &[], &[(variable, "0")]);
        for _ in 0..2 {
            let (text, shown) = desk.search(json!({"limit": 1})).shown();
            assert_eq!(desk.asked(), 1, "{variable}");
            assert_eq!(shown["metadata"]["cacheId"], Value::Null);
            assert!(!text.contains("cache_id"), "{text}");
        }
        let failure = desk.search(json!({"cache_id": "r_x"})).failure();
        failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
        failure.assert_says(&["caches no results", "without cache_id"]);
    }
}

/// What is too large to be kept can be had in parts, or with more room.
#[test]
fn truncated_uncached_result_explains_how_to_continue() {
    for variable in ["EXA_MCP_CACHE_TTL", "EXA_MCP_CACHE_BYTES"] {
        let recorder = Recorder::always(Reply::json(200, &specimens::pages()));
        let mut desk = Desk::with(recorder, &[], &[(variable, "0")]);
        let options = json!({"content_level": "full", "max_tokens": 300});
        let (text, shown) = desk.search(options).shown();
        let more = shown["metadata"]["more"].as_str().expect("a way");
        for part in ["offset", "a larger max_tokens", "Exa is called again"] {
            assert!(more.contains(part) && text.contains(part), "{more} {text}");
        }
    }
}

#[test]
fn cache_evicts_the_oldest_results() {
    let recorder = Recorder::always(Reply::json(200, &specimens::pages()));
    let size = specimens::pages().to_string().len();
    let room = (size * 4).to_string();
    let mut desk = Desk::with(recorder, &[], &[("EXA_MCP_CACHE_BYTES", &room)]);
    let mut ids = Vec::new();
    for number in 0..8 {
        let args = json!({"query": format!("q{number}")});
        let (_, shown) = desk.operate("search", args, json!({})).shown();
        ids.push(cache_id(&shown));
    }
    desk.search(json!({"cache_id": ids[0]})).failure();
    desk.search(json!({"cache_id": ids[7]})).shown();
    assert_eq!(desk.asked(), 8);
}

/// Ids are no use to other servers, and guessing one tells nothing.
#[test]
fn foreign_and_unknown_ids_are_indistinguishable() {
    let (_own, foreign) = kept();
    let (mut desk, _) = kept();
    for id in [
        &*foreign,
        "r_aaaaaaaaaaaaaaaaaaaa",
        "r_",
        "../../etc",
        "日本",
    ] {
        let failure = desk.search(json!({"cache_id": id})).failure();
        failure.assert_code(-32003, "RESOURCE_NOT_FOUND");
        failure.assert_says(&[id, "300 seconds", "without cache_id"]);
    }
    assert_eq!(desk.asked(), 0);
}

#[test]
fn ids_cannot_be_guessed() {
    let mut desk = Desk::answering(&specimens::pages());
    let mut ids: Vec<String> = (0..20)
        .map(|_| cache_id(&desk.search(json!({"fresh": true})).shown().1))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    let letters: std::collections::BTreeSet<char> = ids.concat().chars().collect();
    assert!(letters.len() > 20, "{letters:?}");
}

/// The same id works in every era: it belongs to whoever started the process.
#[test]
fn stateless_version_reads_cached_results() {
    let recorder = Recorder::always(Reply::json(200, &specimens::pages()));
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    let mut server = McpServer::connect(program, crate::support::STATELESS);
    let (_, shown) = server
        .call_plainly("web_search_exa", json!({"query": "q"}))
        .shown();
    let call = json!({"query": "q", "cache_id": cache_id(&shown), "content_level": "summary"});
    server.call_plainly("web_search_exa", call).shown();
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
    // Underscores make long numbers readable, and nothing is the same as not given.
    for value in ["32_000_000", " 5 ", ""] {
        let output = Program::new([]).env("EXA_MCP_CACHE_BYTES", value).run();
        assert_eq!(output.code, Some(0), "{output:#?}");
    }
}

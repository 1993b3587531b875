//! The head of an answer: how much there is, what it costs, and how to get more.

use serde_json::{Value, json};

use super::{Desk, cache_id, joined, specimens};

/// The lines before what others wrote.
fn head(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.is_empty()).collect()
}

#[track_caller]
fn look(desk: &mut Desk, options: Value) -> (Vec<String>, Value) {
    let (text, shown) = desk.search(options).shown();
    let head = head(&text).into_iter().map(str::to_owned).collect();
    (head, shown)
}

#[test]
fn header_shows_count_and_cost() {
    let mut desk = Desk::answering(&specimens::pages());
    let (head, shown) = look(&mut desk, json!({}));
    let id = cache_id(&shown);
    let tokens = &shown["metadata"]["tokenEstimate"];
    assert_eq!(
        head[0],
        format!(
            "search: 3 of 3 results · ~{tokens} tokens · standard · $0.007 · cache_id {id} · request \
             b5947044c4b78efa9552a7c89b306d95"
        )
    );
    let (head, _) = look(
        &mut desk,
        json!({"content_level": "summary", "filters": {"maxResults": 2}}),
    );
    assert!(
        head[0].starts_with("search: 2 of 3 results · ~"),
        "{head:?}"
    );
    assert!(head[0].contains(" · summary · "), "{head:?}");
}

#[test]
fn header_omits_unknown_facts() {
    let mut desk = Desk::answering(&json!({"results": []}));
    let (head, shown) = look(&mut desk, json!({}));
    assert!(
        head[0].starts_with("search: 0 of 0 results · ~"),
        "{head:?}"
    );
    assert!(
        !head[0].contains('$') && !head[0].contains("request"),
        "{head:?}"
    );
    assert_eq!(shown["metadata"]["costDollars"], Value::Null);
    assert_eq!(shown["metadata"]["requestId"], Value::Null);
    assert_eq!(shown["results"], json!([]));
}

/// A run of an agent tells its price inside.
#[test]
fn header_shows_cost_of_a_single_object() {
    let mut desk = Desk::answering(&specimens::run());
    let args = json!({"runId": "agent_run_01"});
    let (text, shown) = desk.operate("agent.runs.get", args, json!({})).shown();
    assert_eq!(shown["metadata"]["costDollars"], 0.16);
    assert!(head(&text)[0].contains(" · $0.16 · "), "{text}");
}

/// An answer from the cache costs nothing, and says where it comes from.
#[test]
fn cached_result_is_marked() {
    let mut desk = Desk::answering(&specimens::pages());
    let (first, shown) = look(&mut desk, json!({}));
    assert!(!first[0].contains("cache ·"), "{first:?}");
    assert_eq!(shown["metadata"].get("cached"), None);
    let (second, shown) = look(&mut desk, json!({}));
    assert!(
        second[0].contains(" · $0 · ") && second[0].contains(" · from the cache"),
        "{second:?}"
    );
    assert_eq!(shown["metadata"]["cached"], true);
    assert_eq!(shown["metadata"]["costDollars"], 0);
}

/// The estimate is for the text as it is sent, and is not too low.
#[test]
fn token_estimate_is_an_upper_bound() {
    for answer in [
        specimens::pages(),
        specimens::items(),
        specimens::research(),
        json!({"results": []}),
    ] {
        let mut desk = Desk::answering(&answer);
        for level in ["summary", "standard", "full"] {
            for format in ["markdown", "json"] {
                let options = json!({"content_level": level, "output_format": format});
                let (text, shown) = desk.search(options).shown();
                let told = shown["metadata"]["tokenEstimate"]
                    .as_u64()
                    .expect("a number");
                let counted = bpe_openai::o200k_base().count(&text) as u64;
                assert!(told >= counted, "{told} < {counted}: {text}");
                assert!(
                    told <= counted * 2 + 100,
                    "{told} > twice {counted}: {text}"
                );
            }
        }
    }
}

#[test]
fn warnings_and_corrections_are_in_text_and_structured() {
    let mut answer = specimens::pages();
    answer["warnings"] = json!(["only a | part", {"code": "slow"}]);
    let mut desk = Desk::answering(&answer);
    let call = json!({"operation": "search", "args": {"query": "q", "num_results": "3"}});
    let (text, shown) = desk.server.call_plainly("exa_api", call.clone()).shown();
    assert_eq!(shown["metadata"]["warnings"], answer["warnings"]);
    assert_eq!(
        shown["metadata"]["corrections"].as_array().map(Vec::len),
        Some(2)
    );
    let lines = head(&text);
    assert!(lines.contains(&"Warning: only a \\| part"), "{lines:#?}");
    assert!(lines.contains(&r#"Warning: {"code":"slow"}"#), "{lines:#?}");
    let mends: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("Corrected: "))
        .collect();
    assert_eq!(mends.len(), 2, "{lines:#?}");
    let call = joined(call, &json!({"output_format": "json"}));
    let as_json = desk.server.call_plainly("exa_api", call).envelope();
    assert_eq!(
        as_json["metadata"]["warnings"],
        shown["metadata"]["warnings"]
    );
    assert_eq!(
        as_json["metadata"]["corrections"],
        shown["metadata"]["corrections"]
    );
}

/// A caller who follows `more` gets more.
#[test]
fn header_explains_how_to_get_more() {
    let mut desk = Desk::answering(&specimens::pages());
    let (head, shown) = look(&mut desk, json!({"limit": 1}));
    let id = cache_id(&shown);
    let more = shown["metadata"]["more"].as_str().expect("a way");
    assert!(head.contains(&format!("More: {more}")), "{head:#?}");
    for part in ["this cache_id", "offset 1", "content_level \"full\""] {
        assert!(more.contains(part), "no {part} in {more}");
    }
    let (_, shown) = look(&mut desk, json!({"cache_id": id, "offset": 1, "limit": 1}));
    assert_eq!(
        shown["results"][0]["title"],
        "All about solid state batteries"
    );
    assert!(
        shown["metadata"]["more"]
            .as_str()
            .expect("a way")
            .contains("offset 2")
    );
    // There is nothing more than everything.
    let (_, shown) = look(&mut desk, json!({"cache_id": id, "content_level": "full"}));
    assert_eq!(shown["metadata"].get("more"), None);
}

/// A kept answer has no more than Exa was asked for; a level above that needs a new request.
#[test]
fn more_results_of_a_named_tool_need_a_new_request() {
    let mut desk = Desk::answering(
        &json!({"results": [{"url": "https://a.example/", "title": "T", "highlights": ["h"]}]}),
    );
    let (_, shown) = desk
        .server
        .call_plainly("web_search_exa", json!({"query": "q"}))
        .shown();
    let more = shown["metadata"]["more"].as_str().expect("a way");
    assert!(
        more.contains("without cache_id") && more.contains("content_level \"full\""),
        "{more}"
    );
    assert_eq!(desk.asked(), 1);
    let call = json!({"query": "q", "cache_id": cache_id(&shown), "content_level": "full"});
    let (text, shown) = desk.server.call_plainly("web_search_exa", call).shown();
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(warning.contains("only standard content"), "{warning}");
    assert!(
        text.contains("Warning: only standard content was requested from Exa"),
        "{text}"
    );
    assert_eq!(desk.asked(), 0);
}

/// The next page of a list is told, whether or not answers are kept.
#[test]
fn header_names_the_next_page() {
    let mut desk = Desk::answering(&specimens::items());
    let args = json!({"websetId": "webset_1"});
    for level in ["summary", "standard", "full"] {
        let options = json!({"content_level": level});
        let (text, shown) = desk.operate("items.list", args.clone(), options).shown();
        let more = shown["metadata"]["more"].as_str().expect("a way");
        assert!(
            more.contains("cursor") && more.contains("all: true"),
            "{more}"
        );
        assert_eq!(shown["nextCursor"], "cursor_2", "{level}");
        assert!(text.contains("nextCursor: cursor_2"), "{text}");
    }
}

/// Indexes stay those of the whole answer, also where some are missing.
/// The id of a request is told wherever in the answer it stands.
#[test]
fn header_shows_request_id_of_a_single_object() {
    let mut desk = Desk::answering(&json!({"context": "c", "requestId": "req-7"}));
    let (text, shown) = desk.search(json!({})).shown();
    assert_eq!(shown["metadata"]["requestId"], "req-7");
    assert!(text.contains("request req-7"), "{text}");
}

#[test]
fn indexes_refer_to_the_whole_result() {
    let mut desk = Desk::answering(&specimens::pages());
    let filters = json!({"filters": {"titleContains": "e"}, "content_level": "summary"});
    let (_, shown) = look(&mut desk, filters);
    assert_eq!(shown["metadata"].get("indexes"), None);
    let options = json!({"filters": {"excludeDomains": ["beta.example"]}, "content_level": "summary", "fresh": true});
    let (text, shown) = desk.search(options).shown();
    assert_eq!(shown["metadata"]["indexes"], json!([0, 2]));
    assert!(text.contains("\n2. [All about fusion energy]"), "{text}");
    let options = json!({"cache_id": cache_id(&shown), "index": 2});
    let (_, shown) = look(&mut desk, options);
    assert_eq!(shown["results"][0]["title"], "All about fusion energy");
    assert_eq!(shown["metadata"]["indexes"], json!([2]));
}

/// An offset behind the end is no reason to believe that nothing was found.
#[test]
fn offset_past_the_end_is_reported() {
    let mut desk = Desk::answering(&specimens::pages());
    let (text, shown) = desk.search(json!({"offset": 3})).shown();
    assert_eq!(shown["metadata"]["returned"], 0);
    let warning = shown["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("offset 3") && warning.contains("3 results"),
        "{warning}"
    );
    assert!(text.contains("Warning: "), "{text}");
}

//! Snapshots of every renderer.
//!
//! `EXA_UPDATE_SNAPSHOTS=1 cargo test --test main snapshots` updates them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::operations_with_samples;
use super::{Fixture, samples};
use crate::support::{Outcome, assert_no_problems};

/// The variable that updates the files instead of comparing them.
pub(super) const UPDATE: &str = "EXA_UPDATE_SNAPSHOTS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/render")
}

/// Returns the text of a result without values that change on every run.
pub(super) fn normalized_text(outcome: Outcome, extension: &str) -> String {
    let links: Vec<String> = outcome
        .links
        .iter()
        .map(|link| format!("\n{link}"))
        .collect();
    let (text, structured) = outcome.into_parts();
    let metadata = &structured["metadata"];
    let text = match extension {
        "json" => {
            let mut text: Value = serde_json::from_str(&text).expect("JSON");
            text["metadata"]["tokenEstimate"] = json!(0);
            serde_json::to_string_pretty(&text).expect("JSON")
        }
        // The toolhost answers in JSON.
        _ => text.replace(
            &format!("\"tokenEstimate\":{}", metadata["tokenEstimate"]),
            "\"tokenEstimate\":0",
        ),
    };
    let text = format!("{text}{}\n", links.concat());
    let text = match metadata["cacheId"].as_str() {
        Some(id) => text.replace(id, "r_aaaaaaaaaaaaaaaaaaaa"),
        None => text,
    };
    match text.split_once("<untrusted id=").map(|(_, rest)| rest) {
        Some(rest) => {
            let (number, _) = rest.split_once('>').expect("the end of a tag");
            text.replace(&format!("untrusted id={number}"), "untrusted id=000")
        }
        None => text,
    }
}

/// Returns all snapshots by file name.
fn snapshots() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (name, operation, args, response) in operations_with_samples() {
        let mut fixture = Fixture::with_response(&response);
        for level in ["summary", "standard", "full"] {
            for (format, extension) in [("markdown", "md"), ("json", "json")] {
                let options =
                    json!({"content_level": level, "output_format": format, "fresh": true});
                let outcome = fixture.call_operation(operation, args.clone(), options);
                files.insert(
                    format!("{name}.{level}.{extension}"),
                    normalized_text(outcome, extension),
                );
            }
        }
        for (format, extension) in [("csv", "csv"), ("table", "table.md")] {
            let options = json!({"output_format": format, "fresh": true});
            let outcome = fixture.call_operation(operation, args.clone(), options);
            files.insert(
                format!("{name}.{extension}"),
                normalized_text(outcome, extension),
            );
        }
    }
    for (name, mut fixture, tool, call) in special_cases() {
        let outcome = fixture.server.call_raw(tool, call);
        files.insert(format!("{name}.md"), normalized_text(outcome, "md"));
    }
    files
}

/// Returns calls with unusual output.
fn special_cases() -> Vec<(&'static str, Fixture, &'static str, Value)> {
    let search = |options: Value| {
        super::merge(
            json!({"operation": "search", "args": {"query": "q"}}),
            &options,
        )
    };
    let mut warned = samples::pages();
    warned["warnings"] = json!(["Only a part of the index was searched | retry"]);
    let nested = json!({"id": "x", "title": "Nested", "list": [{"a": 1, "b": [{"c": [1, 2]}, {"c": []}]}, ["x", ["y"]], null],
        "text": "```rust\nfn main() {}\n```\n\n# No heading", "empty": {}, "words": ["one", "two"]});
    let odd = json!({"results": [
        {"url": "https://a.example/(x)|y", "title": "`a` | [b](c) <d> *e* _f_\n# g \\", "author": "1. h"},
        {"url": "javascript:alert(1)", "title": null, "score": 1},
        "only text", 7, null,
    ]});
    let started = json!({"id": "search_1", "status": "created", "query": "q", "count": 10, "progress": {"found": 0, "completion": 0}});
    let many: Vec<Value> = (0..25)
        .map(|number| {
            json!({"url": format!("https://a.example/{number}"), "title": format!("Page {number}"),
        "text": samples::long_text(&format!("topic {number}"))})
        })
        .collect();
    vec![
        (
            "empty",
            Fixture::with_response(&json!({"results": []})),
            "exa_api",
            search(json!({})),
        ),
        (
            "warnings",
            Fixture::with_response(&warned),
            "exa_api",
            search(json!({"contentLevel": "summary", "all": true, "offset": 9})),
        ),
        (
            "filtered",
            Fixture::with_response(&samples::pages()),
            "exa_api",
            search(
                json!({"content_level": "summary", "filters": {"minScore": 0.5, "excludeDomains": ["alpha.example"], "afterDate": "2020"}}),
            ),
        ),
        (
            "fields",
            Fixture::with_response(&samples::pages()),
            "exa_api",
            search(json!({"fields": ["title", "highlights", "nothing"]})),
        ),
        (
            "one",
            Fixture::with_response(&samples::pages()),
            "exa_api",
            search(json!({"index": 1})),
        ),
        (
            "nested",
            Fixture::with_response(&nested),
            "manage_websets",
            json!({"operation": "websets.get", "args": {"websetId": "x"}, "content_level": "full"}),
        ),
        (
            "odd",
            Fixture::with_response(&odd),
            "exa_api",
            search(json!({"content_level": "full"})),
        ),
        (
            "odd.csv",
            Fixture::with_response(&odd),
            "exa_api",
            search(json!({"output_format": "csv"})),
        ),
        (
            "odd.table",
            Fixture::with_response(&odd),
            "exa_api",
            search(json!({"output_format": "table"})),
        ),
        (
            "odd.summary",
            Fixture::with_response(&odd),
            "exa_api",
            search(json!({"content_level": "summary"})),
        ),
        (
            "cut",
            Fixture::with_response(&json!({"results": many})),
            "exa_api",
            search(json!({"content_level": "full", "max_tokens": 700})),
        ),
        (
            "toolhost",
            Fixture::with_tools("toolhost", &started),
            "websets-async",
            json!({"operation": "start_search", "params": {"websetId": "webset_1", "query": "q"}}),
        ),
        (
            "named",
            Fixture::with_response(&samples::pages()),
            "web_search_exa",
            json!({"query": "q", "content_level": "summary"}),
        ),
    ]
}

#[test]
fn rendered_results_match_snapshots() {
    let files = snapshots();
    let folder = folder();
    if std::env::var_os(UPDATE).is_some() {
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in &files {
            fs::write(folder.join(name), text).expect("a file");
        }
        return;
    }
    let mut problems = Vec::new();
    for (name, text) in &files {
        match fs::read_to_string(folder.join(name)) {
            Ok(known) if known == *text => {}
            Ok(known) => problems.push(format!("{name} was\n{known}\nand is\n{text}")),
            Err(error) => problems.push(format!("{name}: {error}; {UPDATE}=1 writes it")),
        }
    }
    let known = fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = known.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let surplus = names.filter(|name| !files.contains_key(name));
    problems
        .extend(surplus.map(|name| format!("{name} belongs to nothing; {UPDATE}=1 removes it")));
    assert_no_problems(&problems);
}

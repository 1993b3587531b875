//! Records the corpus: fifty responses of the sandbox, the same ones on every run.

use std::fs;

use serde_json::{Value, json};

use super::{ANSWERS, UPDATE, folder, recorded};
use crate::support::{Program, Sandbox};

/// The frozen time of the sandbox; any time in the future would do.
const FROZEN_AT: &str = "2036-01-01T00:00:00Z";

/// Long enough for any work in the sandbox to finish.
const WORK_MS: u64 = 300_000;

/// A sandbox with the responses recorded so far.
struct Recording {
    sandbox: Sandbox,
    entries: Vec<Value>,
}

impl Recording {
    fn call(&self, operation: &str, args: &Value) -> Value {
        let program = Program::new(["call", operation, &args.to_string()]);
        program
            .env("EXA_BASE_URL", &self.sandbox.url())
            .run()
            .json()
    }

    fn record(&mut self, kind: &str, operation: &str, args: Value) {
        let response = self.call(operation, &args);
        self.entries
            .push(json!({"kind": kind, "operation": operation, "args": args, "answer": response}));
    }

    /// Starts an operation and returns its id.
    fn start(&self, operation: &str, args: Value) -> Value {
        let started = self.call(operation, &args);
        let id = started.get("id").or_else(|| started.get("researchId"));
        id.expect("an id").clone()
    }
}

#[test]
fn recorded_corpus_matches_the_sandbox() {
    let sandbox = Sandbox::start();
    sandbox.freeze_at(FROZEN_AT);
    let mut recording = Recording {
        sandbox,
        entries: Vec::new(),
    };
    searches(&mut recording);
    pages(&mut recording);
    answers(&mut recording);
    research(&mut recording);
    websets(&mut recording);
    assert_eq!(recording.entries.len(), ANSWERS);
    if std::env::var_os(UPDATE).is_some() {
        write(&recording.entries);
    }
    for (actual, expected) in recording.entries.iter().zip(recorded()) {
        assert!(*actual == expected, "{actual}\nis not\n{expected}");
    }
}

fn searches(recording: &mut Recording) {
    let text = json!({"text": true});
    let both = json!({"text": true, "highlights": true});
    let all = json!({"text": true, "highlights": true, "summary": true});
    for (query, more, contents) in [
        (
            "solid-state battery manufacturers in Europe",
            json!({}),
            &text,
        ),
        ("how heat pumps work in cold climates", json!({}), &text),
        (
            "open-source vector databases compared",
            json!({"type": "fast"}),
            &text,
        ),
        (
            "latest rules for drones in the EU",
            json!({"category": "news"}),
            &text,
        ),
        (
            "startups that recycle lithium",
            json!({"category": "company"}),
            &text,
        ),
        (
            "machine learning engineers in Lisbon",
            json!({"category": "people"}),
            &text,
        ),
        (
            "papers about protein folding",
            json!({"category": "research paper"}),
            &both,
        ),
        ("Rust async runtimes and their trade-offs", json!({}), &both),
        (
            "port of Rotterdam container volumes",
            json!({"startPublishedDate": "2024-01-01T00:00:00.000Z"}),
            &both,
        ),
        ("small modular reactors licensing", json!({}), &both),
        ("city bike sharing statistics", json!({}), &all),
        (
            "history of the metric system",
            json!({"type": "deep"}),
            &all,
        ),
        ("fusion energy companies", json!({}), &all),
        (
            "personal sites about bread baking",
            json!({"category": "personal site"}),
            &text,
        ),
    ] {
        let mut args = json!({"query": query, "numResults": 4, "contents": contents});
        for (name, value) in more.as_object().expect("arguments") {
            args[name] = value.clone();
        }
        recording.record("search", "search", args);
    }
}

fn pages(recording: &mut Recording) {
    for (number, (first, second)) in [
        ("guide-to-heat-pumps", "energy-labels"),
        ("release-notes", "migration-guide"),
        ("annual-report", "press"),
        ("city-council-minutes", "budget"),
        ("recipe-for-rye-bread", "about"),
        ("missing", "opening-hours"),
        ("api-reference", "changelog"),
        ("long-read-on-rivers", "interview"),
    ]
    .into_iter()
    .enumerate()
    {
        let address = |page: &str| format!("https://site{number}.example/{page}");
        let mut args = json!({"urls": [address(first), address(second)], "text": true});
        if number % 2 == 1 {
            args["highlights"] = json!({"query": "what matters most"});
        }
        recording.record("contents", "get_contents", args);
    }
    for topic in [
        "tidal-power",
        "compilers",
        "beekeeping",
        "urban-planning",
        "typography",
    ] {
        let args = json!({"url": format!("https://journal.example/{topic}"), "numResults": 4, "contents": {"text": true}});
        recording.record("similar", "find_similar", args);
    }
}

fn answers(recording: &mut Recording) {
    for query in [
        "Who makes solid-state batteries?",
        "What is the capital of Australia, and why?",
        "How do I parse dates in Rust?",
        "Which countries have introduced a carbon border tax?",
        "What did the latest climate report conclude?",
        "How much water does a data centre use?",
    ] {
        recording.record("answer", "answer", json!({"query": query, "text": true}));
    }
}

fn research(recording: &mut Recording) {
    let tasks: Vec<Value> = [
        "Compare heat pumps with district heating for a city of 100,000 people",
        "Summarize the market for industrial drones since 2020",
        "Explain how large language models are evaluated, with sources",
        "List the main suppliers of electrolysers and their plants",
    ]
    .iter()
    .map(|instructions| recording.start("research.create", json!({"instructions": instructions})))
    .collect();
    let schema = json!({"type": "object", "properties": {"companies": {"type": "array", "items": {"type": "object",
        "properties": {"name": {"type": "string"}, "country": {"type": "string"}, "founded": {"type": "integer"}}}}}});
    let runs: Vec<Value> = [
        json!({"query": "Find makers of heat pumps in Scandinavia"}),
        json!({"query": "List European battery start-ups", "outputSchema": schema}),
        json!({"query": "Who sits on the board of the port authority?"}),
        json!({"query": "Collect recent grants for tidal power", "outputSchema": schema}),
    ]
    .into_iter()
    .map(|args| recording.start("agent.runs.create", args))
    .collect();
    recording.sandbox.advance(WORK_MS);
    for id in tasks {
        recording.record("research", "research.get", json!({"researchId": id}));
    }
    for id in runs {
        recording.record("agent run", "agent.runs.get", json!({"runId": id}));
    }
}

fn websets(recording: &mut Recording) {
    let ids: Vec<Value> = [
        ("robotics startups in Berlin", "company", "Number of employees"),
        ("professors of oceanography", "person", "Field of research"),
        ("articles about tidal power", "article", "Main finding"),
        ("papers on battery recycling", "research_paper", "Method used"),
        ("makers of heat pumps in Denmark", "company", "Name of the chief executive"),
    ]
    .into_iter()
    .map(|(query, entity, wanted)| {
        let search = json!({"query": query, "count": 10, "entity": {"type": entity},
            "criteria": [{"description": format!("is about {query}")}, {"description": "was active in the last two years"}]});
        let enrichments = json!([{"description": wanted, "format": "text"}, {"description": "A short profile", "format": "text"}]);
        recording.start("websets.create", json!({"search": search, "enrichments": enrichments}))
    })
    .collect();
    recording.sandbox.advance(WORK_MS);
    for id in ids {
        recording.record("items", "items.list", json!({"websetId": id, "limit": 10}));
    }
    recording.record("list", "websets.list", json!({}));
    recording.record("list", "events.list", json!({"limit": 10}));
    recording.record("list", "research.list", json!({"limit": 3}));
    recording.record("list", "agent.runs.list", json!({}));
}

fn write(entries: &[Value]) {
    let known = fs::read_dir(folder()).into_iter().flatten().flatten();
    for path in known.map(|entry| entry.path()) {
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            fs::remove_file(path).expect("a file that can be removed");
        }
    }
    fs::create_dir_all(folder()).expect("a folder");
    for (number, entry) in entries.iter().enumerate() {
        let kind = entry["kind"].as_str().expect("a kind").replace(' ', "-");
        let text = serde_json::to_string_pretty(entry).expect("JSON");
        let name = format!("{number:02}-{kind}.json");
        fs::write(folder().join(name), text + "\n").expect("a file");
    }
}

//! Measures how many tokens the content levels save, on recorded responses of the sandbox.
//!
//! `EXA_UPDATE_SNAPSHOTS=1 cargo test --test main recorded_corpus` records them again; then
//! `EXA_UPDATE_SNAPSHOTS=1 cargo test --test main levels_save` writes the table.

mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::Fixture;
use super::snapshots::{UPDATE, normalized_text};
use crate::support::{Recorder, Response};

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// The number of recorded responses.
const ANSWERS: usize = 50;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/answers")
}

/// Returns the recorded responses, each as `{kind, operation, answer}`.
fn recorded() -> Vec<Value> {
    let entries = fs::read_dir(folder()).expect("the corpus");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    files.iter().map(read).collect()
}

/// The tokens of one kind of response at each level.
#[derive(Default)]
struct Row {
    kind: String,
    answers: usize,
    tokens: [usize; 3],
}

impl Row {
    /// Returns how much smaller a level is than `full`, in percent.
    fn saved(&self, level: usize) -> f64 {
        100.0 - 100.0 * self.tokens[level] as f64 / self.tokens[2] as f64
    }

    fn line(&self) -> String {
        let [summary, standard, full] = self.tokens;
        format!(
            "| {} | {} | {summary} | {standard} | {full} | {:.1} % | {:.1} % |\n",
            self.kind,
            self.answers,
            self.saved(0),
            self.saved(1)
        )
    }
}

/// Returns an upstream that sends the responses in order. Titles of enrichments, for which the webset of items is read,
/// were not recorded.
fn upstream(corpus: &[Value]) -> Recorder {
    let answers = corpus.iter().map(|entry| entry["answer"].clone());
    let answers: Vec<Value> = answers.collect();
    let sent = AtomicUsize::new(0);
    Recorder::start(move |request, _| {
        let path = request.path();
        if path.contains("/v0/websets/") && !path.ends_with("/items") {
            return Response::json(404, &json!({"error": "Not Found"}));
        }
        Response::json(200, &answers[sent.fetch_add(1, Ordering::Relaxed)])
    })
}

/// Counts the tokens of all responses at all levels; the last row is the sum.
fn measured() -> Vec<Row> {
    let corpus = recorded();
    assert_eq!(corpus.len(), ANSWERS, "answers in {}", folder().display());
    let mut fixture = Fixture::with(upstream(&corpus), &[], &[]);
    let mut rows: Vec<Row> = Vec::new();
    let mut total = Row {
        kind: "all".to_owned(),
        ..Row::default()
    };
    for entry in &corpus {
        let kind = entry["kind"].as_str().expect("a kind");
        if rows.last().is_none_or(|row| row.kind != kind) {
            rows.push(Row {
                kind: kind.to_owned(),
                ..Row::default()
            });
        }
        let tokens = tokens(&mut fixture, entry);
        for row in rows.iter_mut().next_back().into_iter().chain([&mut total]) {
            row.answers += 1;
            for (sum, tokens) in row.tokens.iter_mut().zip(tokens) {
                *sum += tokens;
            }
        }
    }
    rows.push(total);
    rows
}

/// Returns the o200k tokens of a response in Markdown, by level.
fn tokens(fixture: &mut Fixture, entry: &Value) -> [usize; 3] {
    let operation = entry["operation"].as_str().expect("an operation");
    let outcome = fixture.call_operation(operation, entry["args"].clone(), json!({"fresh": true}));
    let id = outcome.into_parts().1["metadata"]["cacheId"].clone();
    LEVELS.map(|level| {
        let view = json!({"cache_id": id, "content_level": level, "max_tokens": 1_000_000});
        let outcome = fixture.call_operation(operation, json!({}), view);
        bpe_openai::o200k_base().count(&normalized_text(outcome, "md"))
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Answers by content level\n\nWritten by the tests from the recorded answers in `tests/corpus/answers/`: \
         o200k tokens of the Markdown, and how much smaller than `full` the other levels are.\n\n\
         | kind | answers | summary | standard | full | summary saves | standard saves |\n|---|---|---|---|---|---|---|\n",
    );
    text.extend(rows.iter().map(Row::line));
    text
}

#[test]
fn levels_save_tokens_as_documented() {
    let rows = measured();
    let table = table(&rows);
    let file = folder().join("LEVELS.md");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, &table).expect("a file");
    }
    let known = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(known, table, "LEVELS.md is stale; {UPDATE}=1 writes it");
    let total = rows.last().expect("a sum");
    assert!(total.saved(0) >= 90.0, "summary saves too little:\n{table}");
    assert!(
        total.saved(1) >= 60.0,
        "standard saves too little:\n{table}"
    );
}

/// The token estimate is hardly ever below the real count.
#[test]
fn token_estimates_of_recordings_are_upper_bounds() {
    let corpus = recorded();
    let mut fixture = Fixture::with(upstream(&corpus), &[], &[]);
    let (mut views, mut low, mut ratios) = (0, 0, 0.0);
    for entry in &corpus {
        let operation = entry["operation"].as_str().expect("an operation");
        let (_, structured) = fixture
            .call_operation(operation, entry["args"].clone(), json!({"fresh": true}))
            .into_parts();
        let id = &structured["metadata"]["cacheId"];
        for level in LEVELS {
            for format in ["markdown", "json"] {
                let view = json!({"cache_id": id, "content_level": level, "output_format": format});
                let (text, structured) = fixture
                    .call_operation(operation, json!({}), view)
                    .into_parts();
                let estimate = structured["metadata"]["tokenEstimate"]
                    .as_f64()
                    .expect("a number");
                let counted = bpe_openai::o200k_base().count(&text) as f64;
                views += 1;
                low += usize::from(estimate < counted);
                ratios += estimate / counted;
            }
        }
    }
    assert!(low * 20 <= views, "{low} of {views} are too low");
    let mean = ratios / views as f64;
    assert!(mean <= 1.35, "{mean} times the true number on average");
}

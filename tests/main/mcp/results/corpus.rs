//! How much the levels save, measured on recorded answers of the sandbox.
//!
//! `EXA_UPDATE_SNAPSHOTS=1 cargo test --test main the_corpus_is` records them anew; afterwards
//! `EXA_UPDATE_SNAPSHOTS=1 cargo test --test main the_levels_save` writes the table.

mod record;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Desk;
use super::snapshots::{UPDATE, stable};
use crate::support::{Recorder, Reply};

const LEVELS: [&str; 3] = ["summary", "standard", "full"];

/// How many answers there are.
const ANSWERS: usize = 50;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/answers")
}

/// A recorded answer: `{kind, operation, answer}`.
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

/// Tokens of one kind of answers at each level.
#[derive(Default)]
struct Row {
    kind: String,
    answers: usize,
    tokens: [usize; 3],
}

impl Row {
    /// By how much a level is smaller than `full`, in percent.
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

/// Shows all answers at all levels and counts; the last row is the sum.
fn measured() -> Vec<Row> {
    let corpus = recorded();
    assert_eq!(corpus.len(), ANSWERS, "answers in {}", folder().display());
    let replies = corpus
        .iter()
        .map(|entry| Reply::json(200, &entry["answer"]));
    let mut desk = Desk::with(Recorder::replies(replies.collect::<Vec<_>>()), &[], &[]);
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
        let tokens = tokens(&mut desk, entry);
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

/// The o200k tokens of an answer in Markdown, by level.
fn tokens(desk: &mut Desk, entry: &Value) -> [usize; 3] {
    let operation = entry["operation"].as_str().expect("an operation");
    let outcome = desk.operate(operation, entry["args"].clone(), json!({"fresh": true}));
    let id = outcome.shown().1["metadata"]["cacheId"].clone();
    LEVELS.map(|level| {
        let look = json!({"cache_id": id, "content_level": level, "max_tokens": 1_000_000});
        let outcome = desk.operate(operation, json!({}), look);
        bpe_openai::o200k_base().count(&stable(outcome, "md"))
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

/// The estimate that every answer tells is hardly ever below what a tokenizer counts.
#[test]
fn token_estimates_of_recordings_are_upper_bounds() {
    let corpus = recorded();
    let replies = corpus
        .iter()
        .map(|entry| Reply::json(200, &entry["answer"]));
    let mut desk = Desk::with(Recorder::replies(replies.collect::<Vec<_>>()), &[], &[]);
    let (mut looks, mut low, mut ratios) = (0, 0, 0.0);
    for entry in &corpus {
        let operation = entry["operation"].as_str().expect("an operation");
        let (_, shown) = desk
            .operate(operation, entry["args"].clone(), json!({"fresh": true}))
            .shown();
        let id = &shown["metadata"]["cacheId"];
        for level in LEVELS {
            for format in ["markdown", "json"] {
                let look = json!({"cache_id": id, "content_level": level, "output_format": format});
                let (text, shown) = desk.operate(operation, json!({}), look).shown();
                let told = shown["metadata"]["tokenEstimate"]
                    .as_f64()
                    .expect("a number");
                let counted = bpe_openai::o200k_base().count(&text) as f64;
                looks += 1;
                low += usize::from(told < counted);
                ratios += told / counted;
            }
        }
    }
    assert!(low * 20 <= looks, "{low} of {looks} are too low");
    let mean = ratios / looks as f64;
    assert!(mean <= 1.35, "{mean} times the true number on average");
}

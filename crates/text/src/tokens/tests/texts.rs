//! Texts for comparing estimates with a tokenizer: a corpus, and data generated from it.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use serde_json::{Value, json};

pub(super) fn corpus(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns a text as a whole and repeated, its paragraphs, their sentences, and their first and last words.
pub(super) fn prose(text: &str) -> Vec<String> {
    let mut texts = vec![text.to_owned(), text.repeat(50_000 / text.len() + 1)];
    for paragraph in text.split("\n\n").map(str::trim) {
        texts.push(paragraph.to_owned());
        texts.extend(sentences(paragraph));
        let words: Vec<&str> = paragraph.split(' ').collect();
        let counts = [2, 3, 5, 8, 13, 20];
        for count in counts.into_iter().filter(|count| *count < words.len()) {
            texts.push(words[..count].join(" "));
            texts.push(words[words.len() - count..].join(" "));
        }
    }
    texts
}

pub(super) fn sentences(paragraph: &str) -> Vec<String> {
    let parts = paragraph.split_inclusive(['.', '!', '?', '。', '！', '？', '।']);
    let parts = parts.map(|part| part.trim().to_owned());
    parts.filter(|part| part.chars().count() > 3).collect()
}

/// Returns excerpts of several numbers of lines.
pub(super) fn excerpts(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut texts = vec![text.to_owned()];
    for length in [3, 10, 40] {
        texts.extend(
            lines
                .chunks(length)
                .step_by(4)
                .map(|lines| lines.join("\n")),
        );
    }
    texts.retain(|text| text.trim().len() > 20);
    texts
}

pub(super) fn english() -> Vec<String> {
    prose(&corpus("english.txt"))
}

pub(super) fn code() -> Vec<String> {
    let sources = corpus("code.txt");
    sources.split("=====\n").flat_map(excerpts).collect()
}

pub(super) fn cjk() -> Vec<String> {
    let languages = ["chinese.txt", "japanese.txt", "korean.txt"];
    languages
        .into_iter()
        .flat_map(|name| prose(&corpus(name)))
        .collect()
}

pub(super) fn json() -> Vec<String> {
    let mut rng = Rng::with_seed(6);
    let words = corpus("english.txt");
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut texts = Vec::new();
    for size in 0..120 {
        let items: Vec<Value> = (0..size % 12 + 1).map(|_| item(&mut rng, &words)).collect();
        let value = json!({ "results": items, "requestId": hex(&mut rng, 32), "total": size });
        texts.push(value.to_string());
        texts.push(serde_json::to_string_pretty(&value).unwrap());
    }
    texts
}

/// Returns an item as the API does.
pub(super) fn item(rng: &mut Rng, words: &[&str]) -> Value {
    let day = rng.u8(10..28);
    json!({
        "id": format!("{}-{}", hex(rng, 8), hex(rng, 12)),
        "title": random_words(rng, words, 8),
        "url": random_url(rng, words),
        "publishedDate": format!("2025-0{}-{day}T08:00:00.000Z", rng.u8(1..9)),
        "author": rng.bool().then(|| random_words(rng, words, 2)),
        "score": rng.f64(),
        "costDollars": { "total": 0.005, "search": { "neural": 0.005 } },
        "highlights": [random_words(rng, words, 20), random_words(rng, words, 12)],
        "tags": ["alpha", "beta-2", random_words(rng, words, 1)],
        "verified": rng.bool(),
        "employees": rng.u32(1..90_000),
    })
}

pub(super) fn random_words(rng: &mut Rng, words: &[&str], max: usize) -> String {
    let count = rng.usize(1..=max);
    let picked: Vec<&str> = (0..count)
        .map(|_| words[rng.usize(..words.len())])
        .collect();
    picked.join(" ")
}

pub(super) fn hex(rng: &mut Rng, length: usize) -> String {
    let digit = |_| char::from_digit(rng.u32(0..16), 16).unwrap();
    (0..length).map(digit).collect()
}

pub(super) fn random_url(rng: &mut Rng, words: &[&str]) -> String {
    let plain = |word: &str| {
        word.to_lowercase()
            .replace(|c: char| !c.is_alphanumeric(), "")
    };
    let slug: Vec<String> = (0..rng.usize(2..8))
        .map(|_| plain(words[rng.usize(..words.len())]))
        .collect();
    format!(
        "https://www.{}.example/2025/{}/{}",
        slug[0],
        rng.u8(1..13),
        slug.join("-")
    )
}

/// Returns paragraphs and sentences; a few words say too little about a language.
pub(super) fn paragraphs(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(str::trim);
    let texts = paragraphs.flat_map(|part| [sentences(part), vec![part.to_owned()]].concat());
    texts.filter(|text| text.chars().count() > 30).collect()
}

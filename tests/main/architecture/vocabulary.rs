//! Retired names of earlier versions do not return, neither as identifiers nor in the documentation.

use std::fs;
use std::path::Path;

use super::rust_source::without_comments_and_literals;
use super::{root, sources};

/// Words that were names in earlier versions, with their replacements.
const RETIRED: [(&str, &str); 17] = [
    ("catalogue", "registry"),
    ("desk", "prompt"),
    ("fate", "outcome"),
    ("heed", "respect"),
    ("keeper", "worker"),
    ("kept", "cached, stored"),
    ("manners", "policy"),
    ("mend", "correct"),
    ("mended", "corrections"),
    ("powers", "capabilities"),
    ("registrar", "token service"),
    ("shelf", "store"),
    ("soon", "future"),
    ("teller", "reporter"),
    ("told", "stats, notifications"),
    ("warden", "rate limiter"),
    ("whoever", "the client, the user"),
];

/// Retired words that are ordinary words in prose.
const ALLOWED_IN_PROSE: [&str; 6] = ["desk", "heed", "kept", "powers", "soon", "told"];

/// Pages that may name a retired word, with the reason.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("CHANGELOG.md", "mended", "announces the deprecation"),
    ("docs/tools.md", "mended", "names the deprecated JSON key"),
    ("docs/upgrading.md", "mended", "lists renamed JSON keys"),
];

/// Returns the words of an identifier in lower case: `task_store`, `taskStore` and `TaskStore` have two.
fn words(identifier: &str) -> Vec<String> {
    let characters: Vec<char> = identifier.chars().collect();
    let mut words = vec![String::new()];
    for (index, character) in characters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| characters[index]);
        let after = characters.get(index + 1);
        let ends_acronym = after.is_some_and(|after| after.is_lowercase());
        let starts_word = match before {
            Some(before) if before.is_lowercase() => character.is_uppercase(),
            Some(before) if before.is_uppercase() => character.is_uppercase() && ends_acronym,
            _ => true,
        };
        if starts_word {
            words.push(String::new());
        }
        if character.is_alphabetic() {
            words.last_mut().unwrap().extend(character.to_lowercase());
        }
    }
    words
}

/// Returns the retired words in a text with the numbers of their lines.
fn retired(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let is_separator = |character: char| !character.is_alphanumeric() && character != '_';
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        // Most lines need no splitting into words.
        let lower = line.to_lowercase();
        if !RETIRED.iter().any(|(retired, _)| lower.contains(retired)) {
            continue;
        }
        for word in line.split(is_separator).flat_map(words) {
            let entry = RETIRED.iter().find(|(retired, _)| *retired == word);
            found.extend(entry.map(|&(retired, replacement)| (number, retired, replacement)));
        }
    }
    found
}

/// Returns the Markdown pages of a folder and the folders in it, relative to the root.
fn pages(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path.to_str().unwrap().replace('\\', "/"));
        }
    }
    found
}

#[test]
fn retired_names_are_no_identifiers() {
    let mut problems = Vec::new();
    for folder in [
        "src",
        "crates",
        "codegen",
        "tests",
        "benches/floor/src",
        "benches/minimal/src",
    ] {
        for source in sources(folder) {
            let path = &source.path;
            if !retired(&source.text).is_empty() {
                let code = without_comments_and_literals(&source.text);
                for (line, word, replacement) in retired(&code) {
                    problems.push(format!("{path}:{line}: `{word}`, instead: {replacement}"));
                }
            }
            for (_, word, replacement) in retired(path) {
                problems.push(format!("{path}: `{word}`, instead: {replacement}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn retired_names_are_not_documented() {
    let mut paths = pages(Path::new("docs"));
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        paths.extend(name.ends_with(".md").then_some(name));
    }
    let (mut problems, mut unused) = (Vec::new(), EXCEPTIONS.to_vec());
    for path in &paths {
        let text = fs::read_to_string(root().join(path)).unwrap();
        for (line, word, replacement) in retired(&text) {
            let is_exception =
                |(page, exception, _): &(&str, &str, &str)| page == path && *exception == word;
            unused.retain(|exception| !is_exception(exception));
            if !ALLOWED_IN_PROSE.contains(&word) && !EXCEPTIONS.iter().any(is_exception) {
                problems.push(format!("{path}:{line}: `{word}`, instead: {replacement}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(unused.is_empty(), "unused exceptions: {unused:?}");
    assert!(paths.len() > 30, "only {} pages were checked", paths.len());
}

#[test]
fn finds_retired_words_inside_identifiers() {
    let found = |text: &str| -> Vec<(usize, &str)> {
        let found = retired(text).into_iter();
        found.map(|(line, word, _)| (line, word)).collect()
    };
    assert_eq!(
        found("a\nlet is_told = KeyDesk::new(KEPT_FOR);"),
        [(2, "told"), (2, "desk"), (2, "kept")]
    );
    assert_eq!(
        found("toldFate `mended`"),
        [(1, "told"), (1, "fate"), (1, "mended")]
    );
    assert_eq!(found("keepers, fated, untold, skeptical"), []);
}

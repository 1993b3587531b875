//! The structure that docs/architecture.md describes: which layer may use which, how large a file may be, and
//! who may vouch for the local user.

mod layers;
mod page;
mod rust_source;
mod vocabulary;

use std::fs;
use std::path::{Path, PathBuf};

use rust_source::production_code;

/// The maximum length of a hand-written file, in lines.
const LONGEST_FILE: usize = 500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Rust file of the workspace.
struct Source {
    /// Relative to the root, separated by `/`.
    path: String,
    text: String,
}

impl Source {
    /// Returns whether a file contains only tests.
    fn is_test(&self) -> bool {
        let stem = self.path.trim_end_matches(".rs");
        stem.ends_with("tests")
            || self.path.contains("/tests/")
            || self.path.ends_with("test_server.rs")
    }
}

/// Returns the Rust files below a folder, in the order of their paths.
fn sources(folder: &str) -> Vec<Source> {
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let parts = path.strip_prefix(root()).unwrap().components();
            let parts: Vec<_> = parts.map(|it| it.as_os_str().to_string_lossy()).collect();
            if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(Source {
                    path: parts.join("/"),
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!sources.is_empty(), "no Rust files in {folder}");
    sources
}

/// Returns the hand-written sources of the library and of all crates.
fn hand_written_sources() -> Vec<Source> {
    let mut found = sources("src");
    found.extend(sources("codegen/src"));
    let crates = sources("crates").into_iter();
    found.extend(crates.filter(|source| source.path.split('/').nth(2) == Some("src")));
    found
}

#[test]
fn only_call_and_serve_vouch_for_the_local_user() {
    let found = hand_written_sources();
    let found: Vec<&str> = found
        .iter()
        .filter(|source| !source.is_test())
        .filter(|source| production_code(&source.text).contains("LocalUser::of_this_process"))
        .map(|source| source.path.as_str())
        .collect();
    assert_eq!(found, ["src/cli/call/run.rs", "src/cli/serve.rs"]);
}

#[test]
fn hand_written_files_stay_within_500_lines() {
    let found: Vec<String> = hand_written_sources()
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > LONGEST_FILE)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

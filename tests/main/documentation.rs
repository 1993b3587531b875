//! The documentation names things that exist, its links work, and its examples run.

mod examples;
mod links;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Collects every file below a folder with one of these extensions.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["node_modules", "venv", "venv-mcp1", "target"].contains(&name.as_str()) {
                files(&path, extensions, found);
            }
        } else if extensions.iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
}

/// Returns the Markdown pages for users and contributors, relative to the root, with their text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["docs", ".github"] {
        files(&root().join(folder), &[".md"], &mut paths);
    }
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    let pages = paths.into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root()).unwrap().to_owned(), text)
    });
    pages.collect()
}

/// Returns the names of all test functions of the workspace.
fn tests() -> BTreeSet<String> {
    let mut sources = Vec::new();
    for folder in ["src", "tests", "codegen", "crates"] {
        let folder = root().join(folder);
        if folder.is_dir() {
            files(&folder, &[".rs"], &mut sources);
        }
    }
    let mut names = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(source).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
                names.insert(rest.split('(').next().unwrap().to_owned());
                is_test = false;
            }
        }
    }
    names
}

#[test]
fn tests_named_in_threat_model_exist() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let tests = tests();
    let mut named = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let last = line.trim_end_matches('|').rsplit('|').next().unwrap();
        for name in last.split('`').skip(1).step_by(2) {
            if name.contains('_')
                && name
                    .chars()
                    .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_')
            {
                named += 1;
                assert!(
                    tests.contains(name),
                    "docs/threat-model.md names `{name}`, which is no test"
                );
            }
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

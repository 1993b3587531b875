//! The structure that docs/architecture.md describes: which layer may use which, and who may vouch for the
//! local user.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A source file without its tests.
struct Source {
    /// Relative to the root, with `/` between its parts.
    path: String,
    code: String,
}

/// Whether a file holds nothing but tests.
fn is_test(path: &str) -> bool {
    let stem = path.trim_end_matches(".rs");
    stem.ends_with("tests") || path.contains("/tests/") || path.ends_with("test_server.rs")
}

/// The hand-written sources below these folders, each up to its test module.
fn sources(folders: &[&str]) -> Vec<Source> {
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
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
            let relative = parts.join("/");
            if !relative.ends_with(".rs") || is_test(&relative) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .split("#[cfg(test)]\n#[allow")
                .next()
                .unwrap_or_default();
            let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            sources.push(Source {
                path: relative,
                code: code.to_owned(),
            });
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!sources.is_empty(), "no sources in {folders:?}");
    sources
}

#[test]
fn only_standard_streams_and_the_command_line_vouch_for_the_local_user() {
    let name = concat!("LocalUser::", "of_this_process");
    let found = sources(&["src", "crates"]);
    let found: Vec<&str> = found
        .iter()
        .filter(|source| source.code.contains(name))
        .map(|source| source.path.as_str())
        .collect();
    assert_eq!(found, ["src/cli/call.rs", "src/cli/serve.rs"]);
}

//! The `install` command, on configuration files as the clients write them.

mod documents;
mod entries;
mod files;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::{API_KEY, Output, Program};

/// Each client with its configuration file below the home directory, on Linux.
const CLIENTS: [(&str, &str); 9] = [
    ("claude-code", ".claude.json"),
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
    ),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("zed", ".config/zed/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("lmstudio", ".lmstudio/mcp.json"),
];

/// A home directory without any client.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, client: &str) -> PathBuf {
        let (_, path) = CLIENTS.iter().find(|(id, _)| *id == client).unwrap();
        self.0.path().join(path)
    }

    /// Writes a client's file.
    fn write(&self, client: &str, text: &str) {
        let path = self.path(client);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, client: &str) -> String {
        fs::read_to_string(self.path(client)).unwrap()
    }

    fn backup(&self, client: &str) -> PathBuf {
        let path = self.path(client);
        let name = path.file_name().unwrap().to_str().unwrap();
        path.with_file_name(format!("{name}.exa-mcp-server.bak"))
    }

    fn install<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Program {
        let arguments = ["install"].into_iter().chain(arguments);
        Program::new(arguments).env("HOME", self.0.path().to_str().unwrap())
    }

    /// Runs the command, which must succeed.
    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Output {
        let outcome = self.install(arguments).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome
    }
}

/// The path of the program under test.
fn program() -> &'static str {
    env!("CARGO_BIN_EXE_exa-mcp-server")
}

fn parse(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn assert_same_folder(folder: &Path, expected: &[&str]) {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, expected);
}

/// The key must not be shown.
fn assert_no_key(outcome: &Output) {
    assert!(!outcome.stdout.contains(API_KEY), "{outcome:#?}");
    assert!(!outcome.stderr.contains(API_KEY), "{outcome:#?}");
}

/// Checks that one of several clients failed.
fn assert_partly_failed(outcome: &Output, parts: &[&str]) {
    assert_eq!(outcome.code, Some(1), "{outcome:#?}");
    for part in parts {
        assert!(outcome.stderr.contains(part), "{outcome:#?}");
    }
}

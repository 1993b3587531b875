//! Tests of the file format, and of the lists of settings in the documentation and the example.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use super::super::setting::SETTINGS;
use super::*;

const EXAMPLE: &str = include_str!("../../deploy/config.example.toml");
const DOCUMENTATION: &str = include_str!("../../docs/configuration.md");

#[track_caller]
fn read(text: &str) -> BTreeMap<&'static str, String> {
    let values = parse(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    let values = values.0.into_iter();
    values.map(|(name, entry)| (name, entry.text)).collect()
}

#[track_caller]
fn problems_in(text: &str) -> Vec<(usize, String)> {
    let problems = parse(text.as_bytes()).err().unwrap();
    let problems = problems.into_iter();
    problems
        .map(|problem| (problem.line, problem.text))
        .collect()
}

#[test]
fn converts_values_to_the_form_of_variables() {
    let values = read(
        "exa_api_key = 'k'\nexa_api_keys = ['a', 'b']\nenabled_tools = \"default,notes\"\n\
         cache_bytes = 0x10\nrate_limit = 1_000\nconfirm_deletes = true\nimport_dir = ['/a', '/b c']\n\
         [token_limits]\nrequestsPerMinute = 60\ndollarsPerDay = 2.5\ntools = ['x']\nreadOnly = true\n",
    );
    let folders = std::env::join_paths(["/a", "/b c"]).unwrap();
    for (name, text) in [
        ("EXA_API_KEY", "k"),
        ("EXA_API_KEYS", "a,b"),
        ("ENABLED_TOOLS", "default,notes"),
        ("EXA_MCP_CACHE_BYTES", "16"),
        ("EXA_MCP_RATE_LIMIT", "1000"),
        ("EXA_MCP_CONFIRM_DELETES", "true"),
        ("EXA_MCP_IMPORT_DIR", folders.to_str().unwrap()),
    ] {
        assert_eq!(values.get(name).map(String::as_str), Some(text), "{name}");
    }
    let limits: Json = serde_json::from_str(&values["EXA_MCP_TOKEN_LIMITS"]).unwrap();
    let expected = serde_json::json!({
        "requestsPerMinute": 60, "dollarsPerDay": 2.5, "tools": ["x"], "readOnly": true,
    });
    assert_eq!(limits, expected);
}

#[test]
fn unknown_keys_are_reported_with_line_and_suggestion() {
    for (key, meant) in [
        ("stroe", "`store`"),
        ("EXA_API_KEY", "`exa_api_key`"),
        ("exa_mcp_store", "`store`"),
        ("log-level", "`log_level`"),
        ("max_session", "`max_sessions`"),
        ("zzz", "in lower case"),
    ] {
        let problems = problems_in(&format!("# first\n\n{key} = 1\n"));
        let [(3, text)] = problems.as_slice() else {
            panic!("{problems:?}")
        };
        let named = text.contains(&format!("`{key}`")) && text.contains(meant);
        assert!(named, "{text}");
    }
}

#[test]
fn wrong_types_are_reported_without_the_value() {
    for (line, allowed) in [
        ("exa_api_key = 4711", "a string"),
        ("rate_limit = \"4711\"", "a non-negative integer"),
        ("rate_limit = -4711", "a non-negative integer"),
        ("rate_limit = 4711.5", "a non-negative integer"),
        ("confirm_deletes = \"4711\"", "true or false"),
        ("exa_api_keys = [4711]", "a list of strings"),
        ("token_limits = \"4711\"", "a table"),
        ("store = { path = \"4711\" }", "a string"),
        ("import_dir = 4711", "a list of paths"),
    ] {
        let problems = problems_in(line);
        let [(1, text)] = problems.as_slice() else {
            panic!("{problems:?}")
        };
        let key = line.split(' ').next().unwrap();
        let named = text.contains(&format!("`{key}`")) && text.contains(allowed);
        assert!(named && !text.contains("4711"), "{text}");
    }
}

#[test]
fn syntax_errors_are_reported_with_line_and_without_content() {
    for text in [
        "debug = true\nexa_api_key = \"hunter2",
        "debug = true\nexa_api_key = hunter2",
        "debug = true\nhunter2",
        "debug = true\nexa_api_key = \"hunter2\" hunter2",
        "debug = true\nexa_api_key = \"\\hunter2\"",
        "debug = true\nexa_api_key: \"hunter2\"",
    ] {
        let problems = problems_in(text);
        let [(2, problem)] = problems.as_slice() else {
            panic!("{text}: {problems:?}")
        };
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    let problems = parse(b"debug = true\nsecret = '\xff'").err().unwrap();
    assert_eq!(problems.first().map(|problem| problem.line), Some(2));
    // Deep nesting must not crash the program.
    let deep = format!("token_limits = {}", "[".repeat(100_000));
    assert_eq!(problems_in(&deep).len(), 1);
}

#[test]
fn reports_all_problems_in_line_order() {
    let problems = problems_in("stroe = 1\nrate_limit = 'x'\nanother = 1\n");
    let lines: Vec<usize> = problems.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn a_key_is_its_variable_in_lower_case() {
    for setting in SETTINGS {
        let name = setting.variable.strip_prefix("EXA_MCP_");
        let name = name.unwrap_or(setting.variable).to_ascii_lowercase();
        assert_eq!(setting.key, name);
    }
}

#[test]
fn the_example_contains_every_setting_with_a_valid_value() {
    assert!(
        read(EXAMPLE).is_empty(),
        "the example must not change any setting"
    );
    let is_setting = |line: &&str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && !key.contains(' ')
    };
    let lines = EXAMPLE.lines().filter_map(|line| line.strip_prefix("# "));
    let settings: Vec<&str> = lines.filter(is_setting).collect();
    let values = read(&settings.join("\n"));
    for setting in SETTINGS {
        assert!(values.contains_key(setting.variable), "no {}", setting.key);
    }
}

#[test]
fn the_documentation_lists_every_setting_once() {
    let rows: Vec<&str> = DOCUMENTATION
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let listed: Vec<String> = rows
        .iter()
        .map(|row| row.split('|').skip(1).take(2).collect::<Vec<_>>().join("|"))
        .collect();
    let expected: Vec<String> = SETTINGS
        .iter()
        .map(|setting| format!(" `{}` | `{}` ", setting.key, setting.variable))
        .collect();
    assert_eq!(listed, expected);
}

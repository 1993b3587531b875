//! The commands other than the server, and the server's output for people.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{API_KEY, DEFAULT_VERSION, McpServer, Output, Program, Recorder, Response};

/// Returns standard output and standard error of a run.
fn all_output(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

#[track_caller]
fn assert_unhealthy(program: Program, parts: &[&str]) {
    let output = program.run();
    assert_eq!(output.code, Some(1), "{output:#?}");
    let text = all_output(&output);
    for part in parts.iter().chain(&["FAIL"]) {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains(API_KEY), "{text}");
}

#[test]
fn doctor_passes_in_the_sandbox() {
    let output = Program::new(["doctor", "--sandbox"])
        .env_remove("EXA_API_KEY")
        .run();
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(0), ""),
        "{output:#?}"
    );
    for line in output.stdout.lines() {
        assert!(line.starts_with("ok "), "{line}");
    }
    for part in ["key", "endpoint", "tools: default (4 tools", "network"] {
        assert!(
            output.stdout.contains(part),
            "no {part} in {}",
            output.stdout
        );
    }
}

#[test]
fn doctor_explains_how_to_get_a_key() {
    let recorder = Recorder::always(Response::json(200, &json!({"data": []})));
    let program = Program::new(["doctor"])
        .env_remove("EXA_API_KEY")
        .env("EXA_BASE_URL", &recorder.url());
    assert_unhealthy(
        program,
        &[
            "https://dashboard.exa.ai/api-keys",
            "EXA_API_KEY",
            "--sandbox",
        ],
    );
    assert!(
        recorder.take().is_empty(),
        "nothing may be sent without a key"
    );
}

#[test]
fn doctor_distinguishes_wrong_key_from_dead_endpoint() {
    let wrong = json!({"error": format!("the key {API_KEY} is wrong"), "tag": "INVALID_API_KEY"});
    let recorder = Recorder::always(Response::json(401, &wrong));
    let program = Program::new(["doctor"]).env("EXA_BASE_URL", &recorder.url());
    assert_unhealthy(program, &["network", "401", "EXA_API_KEY", "ok   key: set"]);
    // Nothing listens on the default address of `Program`.
    assert_unhealthy(
        Program::new(["doctor"]),
        &["network", "EXA_BASE_URL", "http://127.0.0.1:1"],
    );
}

#[test]
fn doctor_checks_the_tool_list() {
    assert_unhealthy(
        Program::new(["doctor", "--sandbox", "--tools", "serch"]),
        &["tools", "serch"],
    );
}

#[test]
fn completions_match_their_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Program::new(["completions", shell])
            .env_remove("EXA_API_KEY")
            .run();
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{shell}"
        );
        for part in [
            "exa-mcp-server",
            "doctor",
            "completions",
            "sandbox",
            "tools",
        ] {
            assert!(output.stdout.contains(part), "{shell}: no {part}");
        }
        assert_parses(shell, &output.stdout);
    }
    Program::new(["completions", "tcsh"])
        .run()
        .assert_failed(2, &["tcsh"]);
}

/// Checks the syntax of a script with its shell, if it is installed.
#[track_caller]
fn assert_parses(shell: &str, script: &str) {
    let child = Command::new(shell)
        .arg("-n")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return };
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("the shell reads");
    drop(input);
    let output = child.wait_with_output().expect("the shell ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Clients present output on stderr as errors.
#[test]
fn start_without_a_terminal_is_silent() {
    for flags in [&[][..], &["--sandbox"], &["--tools", "granular"]] {
        let output = Program::new(flags.iter().copied()).run();
        assert_eq!(output.code, Some(0), "{output:#?}");
        assert_eq!(all_output(&output), "", "{flags:?}");
    }
}

#[test]
fn help_lists_all_commands_flags_and_variables() {
    let output = Program::new(["--help"]).env_remove("EXA_API_KEY").run();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    for part in [
        "operations",
        "call",
        "tools",
        "sandbox",
        "doctor",
        "completions",
        "--sandbox",
        "--tools",
        "EXA_API_KEY",
        "EXA_BASE_URL",
        "ENABLED_TOOLS",
        "EXA_MCP_ENABLED_TOOLS",
        "EXA_MCP_LOG_LEVEL",
        "EXA_MCP_DEBUG",
        "standard input and output",
    ] {
        assert!(
            output.stdout.contains(part),
            "no {part} in {}",
            output.stdout
        );
    }
    assert!(!output.stdout.contains(API_KEY));
    for flag in ["-V", "--version"] {
        let output = Program::new([flag]).run();
        assert_eq!(
            output.stdout,
            concat!("exa-mcp-server ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
}

/// The log shows what happened, not what users searched for.
#[test]
fn log_names_operations_but_no_keys_or_queries() {
    let recorder = Recorder::responses([
        Response::json(200, &json!({"results": ["private answer"]})),
        Response::json(
            404,
            &json!({"error": "private refusal", "requestId": "req-7"}),
        ),
    ]);
    let program = Program::new([])
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_LOG_LEVEL", "info");
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let question = json!({"query": "private question"});
    server.call("web_search_exa", question.clone()).success();
    server.call("web_search_exa", question).failure();
    let log = server.shut_down().stderr;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines.iter().all(|line| line.contains("search")), "{log}");
    assert!(
        lines[1].contains("404") && lines[1].contains("req-7"),
        "{log}"
    );
    assert!(!log.contains("private") && !log.contains(API_KEY), "{log}");
}

#[test]
fn trace_log_does_not_contain_the_key() {
    for (name, value) in [("EXA_MCP_DEBUG", "true"), ("EXA_MCP_LOG_LEVEL", "trace")] {
        let recorder = Recorder::always(Response::json(200, &json!({"results": []})));
        let program = Program::new([])
            .env("EXA_BASE_URL", &recorder.url())
            .env(name, value);
        let mut server = McpServer::connect(program, DEFAULT_VERSION);
        server
            .call("web_search_exa", json!({"query": "q"}))
            .success();
        let log = server.shut_down().stderr;
        assert!(log.lines().count() > 2, "{log}");
        assert!(!log.contains(API_KEY), "{log}");
    }
}

#[test]
fn unknown_log_level_is_reported() {
    let output = Program::new([]).env("EXA_MCP_LOG_LEVEL", "loud").run();
    output.assert_failed(2, &["EXA_MCP_LOG_LEVEL", "loud", "debug"]);
}

//! Valid and invalid commands and arguments.

use serde_json::{Value, json};

use crate::support::{Program, Recorder, Response};

fn server() -> Recorder {
    Recorder::always(Response::json(200, &json!({"ok": true})))
}

/// Asserts that a call is rejected with these words before anything is sent.
#[track_caller]
fn assert_rejected(operation: &str, arguments: &str, parts: &[&str]) {
    let server = server();
    let output = Program::new(["call", operation, arguments])
        .env("EXA_BASE_URL", &server.url())
        .run();
    output.assert_failed(2, parts);
    assert!(server.take().is_empty(), "nothing may be sent");
}

#[test]
fn call_help_explains_exit_codes() {
    let output = Program::new(["call", "--help"])
        .env_remove("EXA_API_KEY")
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    for part in ["JSON", "standard input", "Exit codes", "0 ", "1 ", "2 "] {
        assert!(
            output.stdout.contains(part),
            "no {part} in {}",
            output.stdout
        );
    }
}

#[test]
fn version_is_printed() {
    let output = Program::new(["--version"]).run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert_eq!(
        output.stdout.trim(),
        concat!("exa-mcp-server ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn unknown_commands_and_flags_are_rejected() {
    for arguments in [
        &["no-such-command"][..],
        &["operations", "--yaml"],
        &["call", "search", "{}", "{}"],
    ] {
        Program::new(arguments.iter().copied())
            .run()
            .assert_failed(2, &["error"]);
    }
    // Without an operation, the help says what is missing.
    Program::new(["call"])
        .run()
        .assert_failed(2, &["Usage: exa-mcp-server call"]);
}

#[test]
fn unknown_operation_suggests_a_similar_name() {
    for (given, meant) in [
        ("items_list", "`items.list`"),
        ("webset.create", "`websets.create`"),
        ("findSimilar", "`find_similar`"),
        ("WEBSETS.GET", "`websets.get`"),
    ] {
        assert_rejected(given, "{}", &[given, meant]);
    }
    assert_rejected("zzz", "{}", &["zzz", "exa-mcp-server operations"]);
}

#[test]
fn invalid_json_arguments_report_position() {
    assert_rejected("search", "{query: 1}", &["not JSON", "line 1 column 2"]);
    assert_rejected("search", "{\"query\":\"q\"} trailing", &["not JSON"]);
    assert_rejected("search", "{\"query\":", &["not JSON"]);
}

#[test]
fn non_object_arguments_are_rejected() {
    for arguments in ["[]", "\"query\"", "7", "true", "[{\"query\":\"q\"}]"] {
        assert_rejected("search", arguments, &["search", "object"]);
    }
}

#[test]
fn null_and_empty_mean_no_arguments() {
    for arguments in [
        &["call", "websets.list"][..],
        &["call", "websets.list", "null"],
        &["call", "websets.list", ""],
    ] {
        let server = server();
        let output = Program::new(arguments.iter().copied())
            .env("EXA_BASE_URL", &server.url())
            .run();
        assert_eq!(output.json(), json!({"ok": true}));
        assert_eq!(server.only_request().target, "/websets/v0/websets");
    }
}

#[test]
fn unknown_query_argument_is_rejected_with_a_suggestion() {
    assert_rejected("websets.list", r#"{"limt": 3}"#, &["limt", "`limit`"]);
    assert_rejected(
        "items.get",
        r#"{"websetId":"w","itemId":"i","verbose":true}"#,
        &["verbose"],
    );
    assert_rejected(
        "websets.cancel",
        r#"{"websetId":"w","reason":"r"}"#,
        &["reason"],
    );
}

#[test]
fn all_missing_arguments_are_reported_at_once() {
    assert_rejected("items.get", "{}", &["`websetId`", "`itemId`"]);
    assert_rejected(
        "searches.create",
        "{}",
        &["`websetId`", "`count`", "`query`"],
    );
    assert_rejected(
        "imports.create",
        "{}",
        &["`size`", "`count`", "`format`", "`entity`"],
    );
    assert_rejected(
        "items.list",
        r#"{"nonsense": 1}"#,
        &["`websetId`", "nonsense"],
    );
    assert_rejected(
        "items.get",
        r#"{"websetId": null, "itemId": "i"}"#,
        &["`websetId`"],
    );
}

/// Asserts that a call is corrected as the tools do, and returns the request and the notes.
#[track_caller]
fn corrected(operation: &str, arguments: &str) -> (crate::support::RecordedRequest, String) {
    let server = server();
    let output = Program::new(["call", operation, arguments])
        .env("EXA_BASE_URL", &server.url())
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let notes = output.stderr.lines();
    assert!(notes.clone().count() > 0 && notes.clone().all(|note| note.starts_with("note: ")));
    (server.only_request(), output.stderr)
}

#[test]
fn harmless_mistakes_are_corrected_with_a_note() {
    let (request, notes) = corrected("search", r#"{"query":"q","numResults":"10"}"#);
    assert_eq!(
        request.json(),
        Some(json!({"query": "q", "numResults": 10}))
    );
    assert!(notes.contains("numResults"), "{notes}");
    let (request, _) = corrected("events.list", r#"{"types": "webset.idle"}"#);
    assert_eq!(request.target, "/websets/v0/events?types=webset.idle");
    let (request, notes) = corrected("websets.get", r#"{"websetId": "a", "id": "a"}"#);
    assert_eq!(request.target, "/websets/v0/websets/a");
    assert!(notes.contains("`id`"), "{notes}");
}

#[test]
fn unchecked_arguments_are_sent_as_they_are() {
    let server = server();
    let output = Program::call_unchecked(&server, "search", r#"{"query":"q","brandNew":[null]}"#);
    assert_eq!(output.run().json(), json!({"ok": true}));
    let sent = json!({"query": "q", "brandNew": [null]});
    assert_eq!(server.only_request().json(), Some(sent));
}

#[test]
fn arguments_of_wrong_type_are_rejected() {
    assert_rejected(
        "websets.list",
        r#"{"limit": "many"}"#,
        &["`limit`", "number"],
    );
    assert_rejected("websets.list", r#"{"cursor": {}}"#, &["`cursor`"]);
    assert_rejected("search", r#"{"query": {"a": 1}}"#, &["search", "string"]);
}

/// A line break in a header value would inject headers.
#[test]
fn invalid_header_arguments_are_rejected() {
    let create = |key: &str| {
        json!({"cadence": "1d", "entities": [], "fields": [], "idempotencyKey": key}).to_string()
    };
    assert_rejected(
        "agent.monitors.create",
        &create("a\r\nx-api-key: b"),
        &["idempotencyKey"],
    );
    assert_rejected("agent.monitors.create", &create("a\0"), &["idempotencyKey"]);
    assert_rejected("search", r#"{"query":"q","betas":["a\nb"]}"#, &["betas"]);
    assert_rejected("websets.create", r#"{"priority":"high\n"}"#, &["priority"]);
}

#[test]
fn comma_in_a_beta_is_rejected() {
    assert_rejected("search", r#"{"query":"q","betas":["a,b"]}"#, &["betas"]);
}

#[test]
fn conflicting_aliases_are_rejected() {
    assert_rejected(
        "websets.get",
        r#"{"websetId":"a","id":"b"}"#,
        &["websetId", "`id`"],
    );
}

#[test]
fn hyphen_reads_arguments_from_stdin() {
    // Larger than a pipe buffer.
    let query = "größer ".repeat(40_000);
    let arguments = json!({"query": query});
    let server = server();
    let output = Program::new(["call", "search", "-"])
        .env("EXA_BASE_URL", &server.url())
        .input(arguments.to_string())
        .run();
    assert_eq!(output.json(), json!({"ok": true}));
    assert_eq!(server.only_request().json(), Some(arguments));
}

#[test]
fn stdin_may_be_empty_but_not_invalid() {
    let call = |operation: &str, input: &[u8]| {
        let server = server();
        let output = Program::new(["call", operation, "-"])
            .env("EXA_BASE_URL", &server.url())
            .input(input)
            .run();
        (output, server.take().len())
    };
    let (output, sent) = call("websets.list", b" \n");
    assert_eq!((output.json(), sent), (json!({"ok": true}), 1));
    let (output, sent) = call("websets.list", b"{\"limit\": \xff}");
    output.assert_failed(2, &["standard input"]);
    assert_eq!(sent, 0);
    let (output, _) = call("search", b"nope");
    output.assert_failed(2, &["not JSON"]);
}

#[test]
fn stdin_is_not_read_without_a_hyphen() {
    let server = server();
    let output = Program::call(&server, "websets.list", &Value::Null)
        .input("garbage")
        .run();
    assert_eq!(output.json(), json!({"ok": true}));
}

/// The commands for people name their own flags, not the arguments of the API.
#[test]
fn commands_explain_their_flags() {
    let output = Program::new(["search", "x", "--type", "depe"]).run();
    output.assert_failed(
        2,
        &[
            "--type: ",
            "did you mean `deep`?",
            "Example: exa-mcp-server search",
            "search --help",
        ],
    );
    assert!(
        !output.stderr.contains("exa-mcp-server call"),
        "{output:#?}"
    );
    let output = Program::new(["fetch", "example.com"]).run();
    output.assert_failed(2, &["URL: ", "did you mean `https://example.com`?"]);
}

#[test]
fn commands_without_arguments_show_their_help() {
    for command in [
        &["search"][..],
        &["call"],
        &["fetch"],
        &["websets", "show"],
        &["batch", "run"],
    ] {
        let output = Program::new(command.iter().copied()).run();
        output.assert_failed(2, &["Usage: ", "Global options:"]);
    }
    let help = Program::new(["search", "-h"]).run();
    assert!(help.stdout.contains("Example: exa-mcp-server search"));
    // Options without an effect are not offered.
    assert!(!help.stdout.contains("--wait"), "{}", help.stdout);
    let watch = Program::new(["websets", "watch", "-h"]).run();
    assert!(watch.stdout.contains("--no-wait"), "{}", watch.stdout);
}

/// Words and JSON that a shell has changed are explained.
#[test]
fn quoting_mistakes_are_explained() {
    assert_rejected("search", "{query:x}", &["not JSON", "single quotes"]);
    assert_rejected("search", "solid-state", &["`query=solid-state`"]);
}

#[test]
fn examples_can_be_pasted_into_a_shell() {
    let help = Program::new(["call", "enrichments.create", "--help"]).run();
    let example = help
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("  exa-mcp-server "))
        .expect("an example");
    assert!(example.contains(r"'\''"), "{example}");
    let program = env!("CARGO_BIN_EXE_exa-mcp-server");
    let script = format!("\"{program}\" {example} --dry-run");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{output:?}");
}

/// The failure is told once, not by a log line as well, unless a log was requested.
#[test]
fn failed_calls_are_reported_once() {
    let server = Recorder::always(Response::json(404, &json!({"error": "no such thing"})));
    let program = || Program::call(&server, "search", &json!({"query": "x"}));
    let output = program().run();
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    let logged = program().env("EXA_MCP_LOG_LEVEL", "warn").run();
    assert!(logged.stderr.contains("WARN"), "{}", logged.stderr);
}

#[test]
fn argument_of_an_operation_written_as_a_flag_is_explained() {
    let output = Program::new(["call", "search", "query=x", "--numResults", "5"]).run();
    output.assert_failed(2, &["--numResults", "numResults=VALUE"]);
}

/// The example of every operation is accepted; only the ids in it exist in no account.
#[test]
fn examples_of_all_operations_are_accepted() {
    let listed = Program::new(["operations", "--json"]).run().json();
    let mut checked = 0;
    for operation in listed.as_array().expect("a list") {
        let name = operation["name"].as_str().expect("a name");
        let help = Program::new(["operations", name]).run().stdout;
        let mut lines = help.lines();
        let example = lines
            .find_map(|line| line.strip_prefix("  exa-mcp-server "))
            .expect("an example");
        let script = format!("\"$0\" --sandbox {example}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_exa-mcp-server")])
            .env("EXA_SANDBOX_SESSION", "examples")
            .env("EXA_SANDBOX_RESEARCH", "1")
            .output()
            .expect("a shell");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_accepted = output.status.success() || stderr.contains("404 Not Found");
        assert!(is_accepted, "{name}: {example}\n{stderr}");
        checked += 1;
    }
    assert!(checked > 50, "only {checked} examples");
}

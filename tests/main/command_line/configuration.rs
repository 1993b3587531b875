//! The configuration file: its location, its precedence, and its error messages.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    API_KEY, DEFAULT_VERSION, HttpServer, McpServer, Program, Recorder, Response,
};

/// Creates a folder with a file that only its owner can read.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    write(&path, text, 0o600);
    (folder, path)
}

fn write(path: &PathBuf, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Returns the API key of a call.
fn key_used(program: Program) -> String {
    let server = Recorder::always(Response::json(200, &json!({})));
    program.env("EXA_BASE_URL", &server.url()).run().json();
    server.only_request().header("x-api-key").concat()
}

/// Returns the names of the tools of a stdio server.
fn tool_names(program: Program) -> Vec<String> {
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let tools = server.tools();
    let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap_or_default().to_owned();
    tools.iter().map(name).collect()
}

#[test]
fn config_file_lookup_order() {
    let named = |key: &str| file(&format!("exa_api_key = '{key}'"));
    let (_one, flag) = named("by-flag");
    let (_two, variable) = named("by-variable");
    let (service, _) = named("by-service");
    let (user, _) = named("");
    let (home, _) = named("");
    for (folder, key) in [
        (user.path().join("exa-mcp-server"), "by-user"),
        (home.path().join(".config/exa-mcp-server"), "by-home"),
    ] {
        fs::create_dir_all(&folder).expect("a folder");
        write(
            &folder.join("config.toml"),
            &format!("exa_api_key = '{key}'"),
            0o600,
        );
    }
    let text = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let usual = |flags: &[&str]| {
        let arguments = [flags, &["call", "websets.list"]].concat();
        Program::new(arguments)
            .env_remove("EXA_API_KEY")
            .env("HOME", &text(home.path()))
    };
    assert_eq!(key_used(usual(&[])), "by-home");
    let usual = |flags: &[&str]| usual(flags).env("XDG_CONFIG_HOME", &text(user.path()));
    assert_eq!(key_used(usual(&[])), "by-user");
    let usual = |flags: &[&str]| usual(flags).env("CONFIGURATION_DIRECTORY", &text(service.path()));
    assert_eq!(key_used(usual(&[])), "by-service");
    let usual = |flags: &[&str]| usual(flags).env("EXA_MCP_CONFIG", &text(&variable));
    assert_eq!(key_used(usual(&[])), "by-variable");
    assert_eq!(key_used(usual(&["--config", &text(&flag)])), "by-flag");
    usual(&["--config", "/dev/null"])
        .run()
        .assert_failed(2, &["EXA_API_KEY"]);
}

#[test]
fn only_an_explicit_config_file_must_exist() {
    let call = || Program::new(["call", "websets.list"]).env("HOME", "/nowhere");
    assert_eq!(key_used(call()), API_KEY);
    for program in [
        call().env("EXA_MCP_CONFIG", "/nowhere/config.toml"),
        Program::new(["--config", "/nowhere/config.toml", "call", "websets.list"]),
    ] {
        program
            .run()
            .assert_failed(2, &["/nowhere/config.toml", "cannot be read"]);
    }
}

#[test]
fn stdio_precedence_is_flags_environment_file() {
    let (_folder, path) = file("enabled_tools = ['notes']\nexa_api_key = 'by-file'");
    let path = path.to_str().expect("UTF-8");
    let start = |flags: &[&str]| Program::new([&["--config", path, "--sandbox"], flags].concat());
    assert_eq!(tool_names(start(&[])), ["create_note"]);
    let set = |name: &str| start(&[]).env(name, "answer_exa");
    assert_eq!(tool_names(set("ENABLED_TOOLS")), ["answer_exa"]);
    assert_eq!(tool_names(set("EXA_MCP_ENABLED_TOOLS")), ["answer_exa"]);
    let flag = start(&["--tools", "find_similar_exa"]).env("ENABLED_TOOLS", "answer_exa");
    assert_eq!(tool_names(flag), ["find_similar_exa"]);
    assert_eq!(
        tool_names(start(&[]).env("ENABLED_TOOLS", "")),
        ["create_note"]
    );

    let call = || Program::new(["--config", path, "call", "websets.list"]);
    assert_eq!(key_used(call()), API_KEY);
    assert_eq!(key_used(call().env_remove("EXA_API_KEY")), "by-file");
}

/// An explicit key takes precedence over a pool that contains it.
#[test]
fn api_key_from_environment_replaces_keys_from_file() {
    let (_folder, path) = file("exa_api_keys = ['one', 'two', 'three']");
    let path = path.to_str().expect("UTF-8");
    for _ in 0..3 {
        assert_eq!(
            key_used(Program::new(["--config", path, "call", "websets.list"])),
            API_KEY
        );
    }
}

#[test]
fn http_precedence_is_flags_environment_file() {
    let (_folder, path) = file(
        "listen = '127.0.0.1:0'\nmcp_auth_token = 'file-admin'\nuser_tokens = ['file-alice:alice:never']\n\
         allowed_hosts = ['file.example']\nstore = 'memory:'\nexa_api_keys = ['a', 'b']\n\
         [token_limits]\nrequestsPerMinute = 7\n",
    );
    let path = path.to_str().expect("UTF-8");
    let start = |flags: &[&str], variables: &[(&str, &str)]| {
        let program = Program::new([&["--config", path, "http"], flags].concat());
        let program = variables
            .iter()
            .fold(program, |program, (name, value)| program.env(name, value));
        HttpServer::start(program)
    };
    let admin = |server: &HttpServer, token: &str, host: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("host", host)];
        server.get("/admin/tokens", &headers)
    };
    let server = start(&[], &[]);
    let response = admin(&server, "file-admin", "file.example");
    assert_eq!(response.status, 200, "{}", response.text());
    let tokens = response.json();
    let alice = tokens["tokens"]
        .as_array()
        .expect("tokens")
        .iter()
        .find(|token| token["userId"] == "alice");
    assert_eq!(
        alice.expect("alice")["limitsInForce"]["requestsPerMinute"],
        7,
        "{tokens}"
    );
    assert_ne!(admin(&server, "file-admin", "env.example").status, 200);

    let variables = [
        ("MCP_AUTH_TOKEN", "env-admin"),
        ("EXA_MCP_ALLOWED_HOSTS", "env.example"),
    ];
    let server = start(&[], &variables);
    assert_eq!(admin(&server, "env-admin", "env.example").status, 200);
    assert_eq!(admin(&server, "file-admin", "env.example").status, 401);
    assert_ne!(admin(&server, "env-admin", "file.example").status, 200);

    let server = start(&["--allowed-hosts", "flag.example"], &variables);
    assert_eq!(admin(&server, "env-admin", "flag.example").status, 200);
    assert_ne!(admin(&server, "env-admin", "env.example").status, 200);

    // The error for an invalid address shows which setting was used.
    let listening = |flags: &[&str], variable: &str| {
        let program = Program::new([&["--config", path, "http"], flags].concat());
        program.env("EXA_MCP_LISTEN", variable).run()
    };
    listening(&[], "env-place").assert_failed(2, &["env-place"]);
    listening(&["--listen", "flag-place"], "env-place").assert_failed(2, &["flag-place"]);
}

#[test]
fn config_errors_name_file_and_line_but_no_values() {
    let cases = [
        (
            "stroe = 'hunter2'",
            &["line 1", "`stroe`", "did you mean `store`?"][..],
        ),
        (
            "\nexa_api_key = ['hunter2']",
            &["line 2", "`exa_api_key`", "a string"],
        ),
        ("\n\nexa_api_key = \"hunter2", &["line 3", "invalid TOML"]),
        (
            "rate_limit = 'hunter2'",
            &["`rate_limit`", "a non-negative integer"],
        ),
        // Messages that only the user can judge name both settings.
        (
            "# \nstore = 'hunter2:'",
            &["EXA_MCP_STORE", "`store` in", "line 2"],
        ),
        (
            "# \nexa_base_url = 'hunter2'",
            &["EXA_BASE_URL", "`exa_base_url` in", "line 2"],
        ),
    ];
    for (text, parts) in cases {
        let (_folder, path) = file(text);
        let path = path.to_str().expect("UTF-8");
        let program = Program::new(["--config", path, "doctor"]).env_remove("EXA_BASE_URL");
        let output = program.run();
        output.assert_failed(2, parts);
        assert!(output.stderr.contains(path), "{}", output.stderr);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
}

#[test]
fn doctor_lists_config_file_settings_without_values() {
    let text =
        "exa_api_key = 'hunter2'\nmcp_auth_token = 'hunter2'\nlog_level = 'error'\nkeep_alive = 9";
    let (_folder, path) = file(text);
    let path_text = path.to_str().expect("UTF-8").to_owned();
    let doctor =
        || Program::new(["--sandbox", "--config", &path_text, "doctor"]).env("EXA_MCP_DEBUG", "0");
    let output = doctor().run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let line = output
        .stdout
        .lines()
        .find(|line| line.contains("configuration file"));
    let line = line.expect("a line about the file");
    let expected = format!(
        "ok   configuration file: {path_text}; it sets keep_alive, mcp_auth_token; \
         the environment overrides exa_api_key, log_level"
    );
    assert_eq!(line, expected);
    assert!(!output.stdout.contains("WARN"), "{output:#?}");

    write(&path, text, 0o644);
    let output = doctor().run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert!(
        output.stdout.contains("WARN") && output.stdout.contains("chmod 600"),
        "{output:#?}"
    );
    assert!(!format!("{output:?}").contains("hunter2"), "{output:#?}");
    // A file without secrets needs no protection.
    write(&path, "keep_alive = 9", 0o644);
    assert!(!doctor().run().stdout.contains("WARN"));
}

#[test]
fn warns_about_world_readable_config_file() {
    let (_folder, path) = file("");
    write(&path, "exa_api_key = 'hunter2'", 0o604);
    let path_text = path.to_str().expect("UTF-8");
    let output = Program::new(["--sandbox", "--config", path_text]).run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert!(
        output.stderr.contains("WARN") && output.stderr.contains("chmod 600"),
        "{output:#?}"
    );
    assert!(!output.stderr.contains("hunter2"));
}

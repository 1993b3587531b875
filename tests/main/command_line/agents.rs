//! What agents rely on: the inventory, exit codes, no network, the stored key.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, Recorder, Response};

#[test]
fn capabilities_list_commands_operations_and_codes() {
    let output = Program::new(["capabilities"])
        .env_remove("EXA_API_KEY")
        .env("EXA_MCP_NO_NETWORK", "1")
        .run();
    let inventory = output.json();
    let names = |list: &str| -> Vec<String> {
        let list = inventory[list].as_array().expect("a list");
        list.iter()
            .map(|it| it["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    for name in [
        "search",
        "websets watch",
        "batch run",
        "call",
        "login",
        "config set",
    ] {
        assert!(names("commands").iter().any(|it| it == name), "no {name}");
    }
    assert!(names("operations").iter().any(|it| it == "websets.create"));
    assert!(names("errorCodes").iter().any(|it| it == "RATE_LIMITED"));
    assert!(
        names("environment")
            .iter()
            .any(|it| it == "EXA_MCP_NO_NETWORK")
    );
    let codes: Vec<u64> = inventory["exitCodes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["code"].as_u64())
        .collect();
    assert_eq!(codes, [0, 1, 2, 3, 130]);
    let commands = inventory["commands"].as_array().expect("a list");
    let search = commands
        .iter()
        .find(|it| it["name"] == "search")
        .expect("search");
    assert_eq!(search["operation"], "search");
    // What is listed for a command is in its help, and the other way around.
    for command in commands {
        let name = command["name"].as_str().expect("a name");
        let help = Program::new(name.split(' ').chain(["--help"])).run().stdout;
        let listed: Vec<&str> = command["flags"]
            .as_array()
            .into_iter()
            .chain(inventory["globalFlags"].as_array())
            .flatten()
            .filter_map(|flag| flag["flag"].as_str())
            .chain(["--help", "--version"])
            .collect();
        let words = help.lines().filter_map(|line| {
            let flag = line.trim_start().trim_start_matches("-h, ");
            let flag = flag.split_once("--")?;
            let is_start = flag.0.is_empty() || flag.0.len() == 4 && flag.0.starts_with('-');
            is_start.then(|| flag.1.split([' ', '[', '=']).next())?
        });
        for word in words {
            let flag = format!("--{word}");
            assert!(listed.contains(&flag.as_str()), "{name} {flag}");
        }
        for flag in listed {
            let is_global = matches!(flag, "--help" | "--version");
            assert!(is_global || help.contains(flag), "{name} {flag}");
        }
    }
    assert!(
        search["flags"]
            .as_array()
            .is_some_and(|flags| flags.iter().any(|it| it["flag"] == "--since"))
    );
}

#[test]
fn no_network_refuses_every_request() {
    let server = Recorder::always(Response::json(200, &json!({"data": []})));
    for arguments in [
        &["call", "search", "query=q"][..],
        &["search", "q"],
        &["websets", "list"],
        &["whoami"],
        &["login"],
    ] {
        // A key that cannot be read shows that it is not read.
        let output = Program::new(arguments.iter().copied())
            .env("EXA_BASE_URL", &server.url())
            .env("EXA_API_KEY", "bad\nkey")
            .env("EXA_MCP_NO_NETWORK", "1")
            .run();
        output.assert_failed(2, &["EXA_MCP_NO_NETWORK"]);
    }
    let program = Program::new([])
        .env("EXA_BASE_URL", &server.url())
        .env("EXA_MCP_NO_NETWORK", "1");
    let mut mcp = McpServer::connect(program, DEFAULT_VERSION);
    let refused = mcp.call("web_search_exa", json!({"query": "q"})).failure();
    assert!(format!("{refused:?}").contains("EXA_MCP_NO_NETWORK"));
    mcp.shut_down();
    assert!(server.take().is_empty(), "nothing may be sent");
    let dry = Program::new(["search", "q", "--dry-run"])
        .env("EXA_MCP_NO_NETWORK", "1")
        .run();
    assert_eq!(dry.json()["body"], json!({"query": "q"}));
}

#[test]
fn login_stores_a_key_for_commands_but_not_for_the_server() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path().display().to_string();
    let server = Recorder::always(Response::json(200, &json!({"name": "Team A", "data": []})));
    let program = |arguments: &[&str]| {
        Program::new(arguments.iter().copied())
            .env_remove("EXA_API_KEY")
            .env("HOME", &home)
            .env("EXA_BASE_URL", &server.url())
    };
    let output = program(&["login"]).input("stored-key\n").run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert!(output.stdout.contains("Team A") && !output.stdout.contains("stored-key"));
    assert_eq!(server.only_request().header("x-api-key"), ["stored-key"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = format!("{home}/.config/exa-mcp-server/key");
        let mode = std::fs::metadata(file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    program(&["websets", "list"]).run().json();
    assert_eq!(server.only_request().header("x-api-key"), ["stored-key"]);
    // The environment takes precedence.
    program(&["websets", "list"])
        .env("EXA_API_KEY", "other")
        .run()
        .json();
    assert_eq!(server.only_request().header("x-api-key"), ["other"]);
    let whoami = program(&["whoami"]).run();
    assert_eq!(whoami.json()["name"], "Team A");
    server.take();
    // A client of the HTTP server without a key does not get the stored one.
    let mut command = program(&["http", "--listen", ":0"])
        .env("EXA_MCP_STORE", "memory:")
        .env("MCP_AUTH_TOKEN", "admin-secret")
        .into_command();
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut banner = String::new();
    while let Some(Ok(line)) = lines.next() {
        banner += &line;
        if line.contains("No Exa API key") {
            break;
        }
    }
    child.kill().expect("it ends");
    child.wait().expect("it ends");
    for part in [
        "http://127.0.0.1:",
        "/mcp",
        "pool mode, 1 token",
        "/admin",
        "No Exa API key is set",
    ] {
        assert!(banner.contains(part), "no {part} in {banner}");
    }
    assert_eq!(program(&["logout"]).run().code, Some(0));
    program(&["websets", "list"])
        .run()
        .assert_failed(2, &["EXA_API_KEY", "login"]);
}

#[test]
fn login_does_not_store_a_key_that_exa_rejects() {
    let home = tempfile::tempdir().expect("a folder");
    let server = Recorder::always(Response::json(401, &json!({"error": "no such key"})));
    let output = Program::new(["login"])
        .env_remove("EXA_API_KEY")
        .env("HOME", &home.path().display().to_string())
        .env("EXA_BASE_URL", &server.url())
        .input("wrong-key")
        .run();
    output.assert_failed(1, &["401", "not stored"]);
    assert!(!home.path().join(".config/exa-mcp-server/key").exists());
}

#[test]
fn log_messages_can_be_json() {
    let server = Recorder::always(Response::json(200, &json!({"results": []})));
    let program = Program::new(["call", "search", "query=q"])
        .env("EXA_BASE_URL", &server.url())
        .env("EXA_MCP_LOG_LEVEL", "info");
    let output = program.env("EXA_MCP_LOG_FORMAT", "json").run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let mut lines = output.stderr.lines();
    let first: Value = serde_json::from_str(lines.next().expect("a line")).expect("JSON");
    assert_eq!(first["level"], "info");
    assert_eq!(first["fields"]["operation"], "search");
    Program::new(["tools"])
        .env("EXA_MCP_LOG_FORMAT", "xml")
        .run()
        .assert_failed(2, &["EXA_MCP_LOG_FORMAT", "json"]);
}

#[test]
fn manual_pages_describe_all_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let output = Program::new(["man", "--out", &path]).run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    for page in [
        "exa-mcp-server.1",
        "exa-mcp-server-search.1",
        "exa-mcp-server-websets-watch.1",
    ] {
        assert!(folder.path().join(page).exists(), "no {page}");
    }
    let completions = Program::new(["completions", "zsh"]).run().stdout;
    for part in ["websets.create", "toolhost", "watch"] {
        assert!(completions.contains(part), "no {part}");
    }
}

/// Completes a command line in bash.
#[cfg(target_os = "linux")]
fn complete_in_bash(script: &str, words: &[&str]) -> String {
    let script = format!(
        "source {script}\n\
         COMP_WORDS=(exa-mcp-server \"$@\"); COMP_CWORD=$#\n\
         function=$(complete -p exa-mcp-server | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
         $function exa-mcp-server \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         echo \"${{COMPREPLY[@]}}\""
    );
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", &script, "bash"])
        .args(words)
        .output()
        .expect("bash");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[cfg(target_os = "linux")]
#[test]
fn bash_completes_commands_operations_sets_and_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().display().to_string();
    let page = json!({"data": [{"id": "webset_4711"}], "hasMore": false, "nextCursor": null});
    let server = Recorder::always(Response::json(200, &page));
    let program = |arguments: &[&str]| {
        Program::new(arguments.iter().copied())
            .env("HOME", &home)
            .env("EXA_BASE_URL", &server.url())
            .run()
    };
    program(&["websets", "list"]).json();
    let script = folder.path().join("completions");
    std::fs::write(&script, program(&["completions", "bash"]).stdout).expect("a file");
    let script = script.display().to_string();
    for (words, expected) in [
        (&["sea"][..], "search"),
        (&["call", "items.li"], "items.list"),
        (&["operations", "items.li"], "items.list"),
        (
            &["batch", "run", "x", "--operation", "items.li"],
            "items.list",
        ),
        (&["tools", "--tools", "tool"], "toolhost"),
        (&["websets", "sh"], "show"),
        (&["websets", "show", "webset_"], "webset_4711"),
        (&["search", "x", "--type", "deep-r"], "deep-reasoning"),
    ] {
        let found = complete_in_bash(&script, words);
        assert_eq!(found.trim(), expected, "{words:?}");
    }
    // The generator of fish completions omits positional values.
    let fish = program(&["completions", "fish"]).stdout;
    let is_completed = |condition: &str, value: &str| {
        let mut lines = fish.lines();
        lines.any(|line| line.contains(condition) && line.contains(value))
    };
    assert!(is_completed("using_subcommand call\" -f", "items.list"));
    assert!(is_completed("from show\" -f", "webset_4711"));
    assert!(is_completed("-l tools -x", "toolhost"));
}

//! What is written for each client.

use serde_json::{Value, json};

use super::{CLIENTS, Home, assert_no_key, parse, program};
use crate::support::API_KEY;

const URL: &str = "https://exa.example.com/mcp";

/// Returns a client's entry in the file that `install` creates.
fn entry(home: &Home, client: &str) -> Value {
    let text = home.read(client);
    if client == "codex" {
        let parsed: toml::Table = text.parse().unwrap();
        return serde_json::to_value(&parsed["mcp_servers"]["exa"]).unwrap();
    }
    let key = match client {
        "vscode" => "servers",
        "zed" => "context_servers",
        _ => "mcpServers",
    };
    parse(&text)[key]["exa"].clone()
}

#[test]
fn local_programs_have_the_form_of_each_client() {
    let command = program();
    let key = |value: &str| json!({ "EXA_API_KEY": value });
    for (client, expected) in [
        (
            "claude-code",
            json!({"type": "stdio", "command": command, "args": [], "env": key("${EXA_API_KEY}")}),
        ),
        (
            "claude-desktop",
            json!({"command": command, "args": [], "env": key(API_KEY)}),
        ),
        (
            "cursor",
            json!({"type": "stdio", "command": command, "args": [], "env": key("${env:EXA_API_KEY}")}),
        ),
        (
            "vscode",
            json!({"type": "stdio", "command": command, "args": [], "env": key("${input:exa_api_key}")}),
        ),
        (
            "codex",
            json!({"command": command, "args": [], "env_vars": ["EXA_API_KEY"]}),
        ),
        (
            "gemini",
            json!({"command": command, "args": [], "env": key("$EXA_API_KEY")}),
        ),
        (
            "zed",
            json!({"command": command, "args": [], "env": key(API_KEY)}),
        ),
        (
            "windsurf",
            json!({"command": command, "args": [], "env": key("${env:EXA_API_KEY}")}),
        ),
        (
            "lmstudio",
            json!({"command": command, "args": [], "env": key(API_KEY)}),
        ),
    ] {
        let home = Home::new();
        let outcome = home.run([client]);
        assert_eq!(entry(&home, client), expected, "{client}");
        assert_no_key(&outcome);
        let in_file = home.read(client).contains(API_KEY);
        assert_eq!(
            outcome.stdout.contains("the key is in this file"),
            in_file,
            "{outcome:#?}"
        );
        // The file was created, so removing the server leaves nothing.
        home.run([client, "--remove"]);
        assert!(!home.path(client).exists(), "{client}");
    }
}

#[test]
fn vscode_asks_for_the_key() {
    let home = Home::new();
    home.run(["vscode"]);
    let inputs = &parse(&home.read("vscode"))["inputs"];
    let expected = json!([{
        "type": "promptString", "id": "exa_api_key", "description": "Exa API key", "password": true,
    }]);
    assert_eq!(inputs, &expected);
}

#[test]
fn team_servers_have_the_form_of_each_client() {
    let bearer = |token: &str| json!({ "Authorization": format!("Bearer {token}") });
    for (client, literal, reference) in [
        (
            "claude-code",
            json!({"type": "http", "url": URL, "headers": bearer("t-1")}),
            json!({"type": "http", "url": URL, "headers": bearer("${EXA_MCP_TOKEN}")}),
        ),
        (
            "cursor",
            json!({"url": URL, "headers": bearer("t-1")}),
            json!({"url": URL, "headers": bearer("${env:EXA_MCP_TOKEN}")}),
        ),
        (
            "vscode",
            json!({"type": "http", "url": URL, "headers": bearer("${input:exa_mcp_token}")}),
            json!({"type": "http", "url": URL, "headers": bearer("${input:exa_mcp_token}")}),
        ),
        (
            "codex",
            json!({"url": URL, "http_headers": bearer("t-1")}),
            json!({"url": URL, "bearer_token_env_var": "EXA_MCP_TOKEN"}),
        ),
        (
            "gemini",
            json!({"type": "http", "url": URL, "headers": bearer("t-1")}),
            json!({"type": "http", "url": URL, "headers": bearer("$EXA_MCP_TOKEN")}),
        ),
        (
            "zed",
            json!({"url": URL, "headers": bearer("t-1")}),
            json!({"url": URL, "headers": bearer("t-1")}),
        ),
        (
            "windsurf",
            json!({"serverUrl": URL, "headers": bearer("t-1")}),
            json!({"serverUrl": URL, "headers": bearer("${env:EXA_MCP_TOKEN}")}),
        ),
        (
            "lmstudio",
            json!({"url": URL, "headers": bearer("t-1")}),
            json!({"url": URL, "headers": bearer("t-1")}),
        ),
    ] {
        let home = Home::new();
        let outcome = home.run([client, "--url", URL, "--token", "t-1"]);
        assert!(!outcome.stdout.contains("t-1"), "{outcome:#?}");
        assert_eq!(entry(&home, client), literal, "{client}");
        let referring = home
            .install([client, "--url", URL])
            .env("EXA_MCP_TOKEN", "t-1");
        assert_eq!(referring.run().code, Some(0));
        let found = entry(&home, client);
        if client == "codex" {
            assert_eq!(found["bearer_token_env_var"], "EXA_MCP_TOKEN");
            let fresh = Home::new();
            fresh
                .install([client, "--url", URL])
                .env("EXA_MCP_TOKEN", "t-1")
                .run();
            assert_eq!(entry(&fresh, client), reference);
            assert_eq!(found, reference, "the header with the token is gone");
        } else {
            assert_eq!(found, reference, "{client}");
        }
        // Back to the local program: nothing of the team server remains.
        home.run([client]);
        let fresh = Home::new();
        fresh.run([client]);
        assert_eq!(entry(&home, client), entry(&fresh, client));
    }
}

#[test]
fn a_client_without_http_says_so() {
    let home = Home::new();
    let failed = home
        .install(["claude-desktop", "cursor", "--url", URL, "--token", "t"])
        .run();
    let parts = ["Claude Desktop: ", "only local programs", "without --url"];
    super::assert_partly_failed(&failed, &parts);
    assert!(!home.path("claude-desktop").exists());
    assert_eq!(entry(&home, "cursor")["url"], URL);
}

#[test]
fn addresses_of_team_servers_are_completed_and_checked() {
    let home = Home::new();
    home.run([
        "cursor",
        "--url",
        "https://exa.example.com",
        "--tools",
        "default,notes",
    ]);
    let url = &entry(&home, "cursor")["url"];
    assert_eq!(url, "https://exa.example.com/mcp?tools=default%2Cnotes");
    let plain = home.run([
        "cursor",
        "--url",
        "http://exa.example.com/mcp",
        "--token",
        "t",
    ]);
    assert!(plain.stdout.contains("not encrypted"), "{plain:#?}");
    let local = home.run([
        "cursor",
        "--url",
        "http://127.0.0.1:3000/mcp",
        "--token",
        "t",
    ]);
    assert!(!local.stdout.contains("warning"), "{local:#?}");
    for address in ["exa.example.com", "ftp://exa.example.com/mcp", "https://"] {
        let failed = home.install(["cursor", "--url", address]).run();
        failed.assert_failed(2, &[address]);
    }
    home.install(["cursor", "--token", "t"])
        .run()
        .assert_failed(2, &["--url"]);
    let failed = home
        .install(["cursor", "--url", URL, "--token", "a\nb"])
        .run();
    failed.assert_failed(2, &["header"]);
}

#[test]
fn flags_become_arguments_and_stay() {
    for (client, _) in CLIENTS {
        let home = Home::new();
        home.run([client, "--tools", "classic", "--sandbox"]);
        let written = entry(&home, client);
        assert_eq!(
            written["args"],
            json!(["--sandbox", "--tools", "classic"]),
            "{client}"
        );
        assert_eq!(written.get("env"), None, "the sandbox needs no key");
        // Without the flag, the choice of tools stays.
        home.run([client]);
        assert_eq!(entry(&home, client)["args"], written["args"]);
        home.run([client, "--tools", "default,notes"]);
        let args = &entry(&home, client)["args"];
        assert_eq!(args, &json!(["--sandbox", "--tools", "default,notes"]));
    }
}

#[test]
fn settings_of_an_existing_entry_stay() {
    let home = Home::new();
    let text = r#"{
  "mcpServers": {
    "exa": {
      "command": "npx",
      "args": ["-y", "exa-mcp-rs@0.1.0"],
      "disabled": false, // mine
      "env": { "EXA_MCP_DOLLARS_PER_DAY": "5", "EXA_API_KEY": "my-own-key" }
    },
    "other": {}
  }
}"#;
    home.write("cursor", text);
    let outcome = home.run(["cursor"]);
    assert!(outcome.stdout.contains("updated `exa`"), "{outcome:#?}");
    assert!(!outcome.stdout.contains("my-own-key"));
    let updated = home.read("cursor");
    let expected = text
        .replace("\"npx\"", &json!(program()).to_string())
        .replace("[\"-y\", \"exa-mcp-rs@0.1.0\"]", "[]");
    let expected = expected.replace(
        "\"EXA_API_KEY\": \"my-own-key\" }",
        "\"EXA_API_KEY\": \"my-own-key\" },\n      \"type\": \"stdio\"",
    );
    assert_eq!(updated, expected);
    // The key of the environment is replaced by a reference to it.
    home.write("cursor", &text.replace("my-own-key", API_KEY));
    home.run(["cursor"]);
    assert!(home.read("cursor").contains("\"${env:EXA_API_KEY}\""));
}

#[test]
fn servers_of_others_are_not_replaced() {
    for text in [
        r#"{"mcpServers": {"exa": {"command": "npx", "args": ["-y", "exa-mcp-server"]}}}"#,
        r#"{"mcpServers": {"exa": {"url": "https://mcp.exa.ai/mcp"}}}"#,
        r#"{"mcpServers": {"exa": {"url": "https://server.smithery.ai/exa/mcp"}}}"#,
        r#"{"mcpServers": {"exa": 3}}"#,
    ] {
        let home = Home::new();
        home.write("cursor", text);
        for more in [&[][..], &["--remove"], &["--print"]] {
            let failed = home
                .install(["cursor"].into_iter().chain(more.iter().copied()))
                .run();
            failed.assert_failed(1, &["already has a server `exa`", "--name", "--force"]);
        }
        assert_eq!(home.read("cursor"), text);
        home.run(["cursor", "--name", "exa-rs"]);
        let servers = parse(&home.read("cursor"))["mcpServers"].clone();
        assert_eq!(servers["exa-rs"]["command"], program());
        home.run(["cursor", "--name", "exa-rs", "--remove"]);
        assert_eq!(home.read("cursor"), text);
        home.run(["cursor", "--force"]);
        assert_eq!(entry(&home, "cursor")["command"], program());
    }
}

#[test]
fn names_and_tools_that_would_not_work_are_rejected() {
    let home = Home::new();
    for name in ["", "my exa", "exa.x", "ex\"a"] {
        let failed = home.install(["cursor", "--name", name]).run();
        failed.assert_failed(2, &["--name", "letters, digits"]);
    }
    let failed = home
        .install(["cursor", "--tools", "default,nonsense"])
        .run();
    failed.assert_failed(2, &["--tools", "nonsense", "available sets"]);
    assert!(!home.path("cursor").exists());
    // The sets of a team server may be others.
    let remote = [
        "cursor",
        "--tools",
        "nonsense",
        "--url",
        "https://exa.example.com",
    ];
    home.run(remote);
    assert_eq!(
        entry(&home, "cursor")["url"],
        "https://exa.example.com/mcp?tools=nonsense"
    );
}

#[test]
fn a_missing_key_is_explained() {
    for (client, _) in CLIENTS {
        let home = Home::new();
        let outcome = home.install([client]).env_remove("EXA_API_KEY").run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let mentioned = match client {
            "vscode" => outcome.stdout.contains("asks for the key"),
            _ => outcome.stdout.contains("EXA_API_KEY"),
        };
        assert!(mentioned, "{outcome:#?}");
        assert!(home.read(client).contains("command"));
    }
}

/// A client that does not have the variable passes the reference on.
#[test]
fn an_unresolved_reference_is_no_key() {
    for reference in ["${EXA_API_KEY}", "$EXA_API_KEY", "${env:EXA_API_KEY}"] {
        let home = Home::new();
        let program = crate::support::Program::new(["doctor"]);
        let program = program.env("HOME", home.0.path().to_str().unwrap());
        let outcome = program.env("EXA_API_KEY", reference).run();
        assert!(outcome.stdout.contains("FAIL key: none"), "{outcome:#?}");
    }
}

//! What is not the server's entry stays byte for byte.

use std::fs;

use super::{CLIENTS, Home};

const CLAUDE_CODE: &str = r#"{
  "numStartups": 42,
  "installMethod": "native",
  "tipsHistory": { "new-user-warmup": 3, "shift-enter": 41 },
  "userID": "5f7c0c1d",
  "projects": {
    "/home/ana/söße": {
      "allowedTools": [],
      "mcpServers": {},
      "history": [{"display": "was \"exa\": {} \u00e9\ud83d\ude00 cut: \ud83d", "pastedContents": {}}]
    }
  },
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/",
      "headers": {
        "Authorization": "Bearer ${GITHUB_PAT}"
      }
    }
  },
  "bigNumber": 12345678901234567890,
  "float": 1.0e10
}"#;

const CLAUDE_DESKTOP: &str = r#"{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/ana/Desktop"]
    }
  },
  "preferences": {}
}
"#;

const VSCODE: &str = r#"{
	// Servers of the team
	"servers": {
		"playwright": {
			"type": "stdio",
			"command": "npx",
			"args": ["@playwright/mcp@latest"], // newest
		}, // the browser
		/* "old": {}, */
	},
	"inputs": [
		{ "type": "promptString", "id": "pat", "description": "Token", "password": true },
	],
}
"#;

const ZED: &str = r#"// Zed settings
//
// For information on how to configure Zed, see the Zed
// documentation: https://zed.dev/docs/configuring-zed
{
  "ui_font_size": 16, // px
  "theme": {
    "mode": "system",
    "light": "One Light",
    "dark": "One Dark",
  },
  "context_servers": {
    "postgres": {
      "command": "uvx",
      "args": ["postgres-mcp"],
      "env": {}, /* none */
    },
    // "old": { "command": "x" }
  },
  "lsp": { "rust-analyzer": { "initialization_options": {} } }, }
"#;

const CODEX: &str = r#"# Codex
model = "gpt-5.2-codex"   # the default
approval_policy = 'on-request'
"quoted key" = 0x1F
notify = [
    "python3",   # interpreter
    "/home/ana/notify.py",
]

[ tui ]
notifications = true

[mcp_servers.docs]
command = "docs-server"
env = { "API_KEY" = "value" }

[mcp_servers.docs.tools]
a.b = 1
c.d = 2
a.e = 3

# projects
[projects."/home/ana/söße"]
trust_level = "trusted"
[[hooks]]
when = 2026-11-18T10:00:00Z
"#;

const GEMINI: &str = r#"{
    // Theme
    "ui": { "theme": "GitHub" },
    "security": { "auth": { "selectedType": "gemini-api-key" } },
    "mcpServers": {
        "git": { "command": "uvx", "args": ["mcp-server-git"] }
    }
    /* the end */
}
"#;

const PLAIN: &str = r#"{
  "mcpServers": {
    "a": { "command": "a" },
    "b": {
      "url": "https://b.example/mcp"
    }
  }
}
"#;

/// Files of one client each, with servers of others.
fn typical() -> Vec<(&'static str, String)> {
    let mut files: Vec<(&str, String)> = vec![
        ("claude-code", CLAUDE_CODE.to_owned()),
        ("claude-desktop", CLAUDE_DESKTOP.to_owned()),
        ("cursor", PLAIN.to_owned()),
        ("vscode", VSCODE.to_owned()),
        ("codex", CODEX.to_owned()),
        ("gemini", GEMINI.to_owned()),
        ("zed", ZED.to_owned()),
        ("windsurf", PLAIN.replace("  ", "\t")),
        ("lmstudio", PLAIN.trim_end().to_owned()),
    ];
    let windows: Vec<(&str, String)> = files
        .iter()
        .map(|(client, text)| (*client, text.replace('\n', "\r\n")))
        .collect();
    let marked: Vec<(&str, String)> = files
        .iter()
        .map(|(client, text)| (*client, format!("\u{feff}{text}")))
        .collect();
    files.extend(windows);
    files.extend(marked);
    files.push(("codex", CODEX.trim_end().to_owned()));
    files.push(("codex", CODEX.replacen('\n', "\r\n", 3)));
    for client in ["cursor", "claude-code"] {
        let minified = r#"{"a":[1,2],"mcpServers":{"x":{"command":"y"}},"z":null}"#;
        files.push((client, minified.to_owned()));
        let linked = r#"{"mcpServers":{"x":{"url":"https://x.example/\"//mcp"}}}"#;
        files.push((client, linked.to_owned()));
        let spaced = r#"{ "a": [1, 2], "mcpServers": { "x": { "command": "y" } }, "z": null }"#;
        files.push((client, spaced.to_owned()));
        files.push((client, format!("\n\n  {spaced}\n\n")));
        let twice = r#"{"mcpServers": {"x": 1}, "mcpServers": {"y": {}}}"#;
        files.push((client, twice.to_owned()));
    }
    files
}

/// Files where the entry is the first server.
fn without_servers() -> Vec<(&'static str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for (client, _) in CLIENTS.into_iter().filter(|(client, _)| *client != "codex") {
        let key = match client {
            "vscode" => "servers",
            "zed" => "context_servers",
            _ => "mcpServers",
        };
        for text in [
            "",
            "\n",
            "  \n\n",
            "{}",
            "{}\n",
            "{ }",
            "{\n}\n",
            "\u{feff}{}",
            "{\r\n}\r\n",
        ] {
            files.push((client, text.to_owned()));
        }
        for inner in ["{}", "{ }", "{\n  }", "{\n\n    }"] {
            files.push((client, format!("{{\n  \"{key}\": {inner}\n}}\n")));
            files.push((client, format!("{{\"{key}\":{inner}}}")));
            files.push((
                client,
                format!("{{\n\t\"x\": 1,\n\t\"{key}\": {inner},\n\t\"y\": 2\n}}"),
            ));
        }
        files.push((
            client,
            "{\n    \"x\": {\n        \"y\": 1\n    }\n}\n".to_owned(),
        ));
        files.push((client, r#"{"x":1}"#.to_owned()));
    }
    for client in ["vscode", "zed", "cursor"] {
        files.push((client, "// nothing yet\n".to_owned()));
        files.push((client, "{ // nothing\n}".to_owned()));
        files.push((client, "{ /* nothing */ }".to_owned()));
        files.push((client, "{\n  \"x\": 1 // last\n}".to_owned()));
        files.push((client, "{\n  \"x\": 1, // last\n  // more\n}".to_owned()));
        files.push((client, "{ \"x\": 1, // last\n}".to_owned()));
    }
    for text in [
        "",
        "\n",
        "# only a comment",
        "model = \"x\"",
        "model = \"x\"\r\n",
        "[tui]\n",
    ] {
        files.push(("codex", text.to_owned()));
    }
    files
}

#[test]
fn removal_restores_the_file() {
    for (client, text) in typical().into_iter().chain(without_servers()) {
        let home = Home::new();
        home.write(client, &text);
        home.run([client]);
        let installed = home.read(client);
        assert!(
            installed.contains(super::program()),
            "{client}: {installed}"
        );
        assert_eq!(fs::read_to_string(home.backup(client)).unwrap(), text);
        home.run([client, "--remove"]);
        assert_eq!(home.read(client), text, "{client} {installed}");
    }
}

#[test]
fn removal_needs_no_backup() {
    for (client, text) in typical() {
        let home = Home::new();
        home.write(client, &text);
        home.run([client]);
        fs::remove_file(home.backup(client)).unwrap();
        home.run([client, "--remove"]);
        let removed = home.read(client);
        // Appending to TOML needs a line end before.
        assert_eq!(removed.trim_end(), text.trim_end(), "{client}");
    }
}

#[test]
fn installing_again_changes_nothing() {
    for (client, text) in typical().into_iter().chain(without_servers()) {
        let home = Home::new();
        home.write(client, &text);
        home.run([client]);
        let installed = home.read(client);
        let again = home.run([client]);
        assert!(again.stdout.contains("is up to date"), "{again:#?}");
        assert_eq!(home.read(client), installed);
        assert_eq!(fs::read_to_string(home.backup(client)).unwrap(), text);
    }
}

/// The inserted text is one piece, and what is around it is unchanged.
#[test]
fn other_settings_stay_byte_for_byte() {
    for (client, text) in typical() {
        let home = Home::new();
        home.write(client, &text);
        home.run([client]);
        let installed = home.read(client);
        let mut rest = installed.chars();
        let missing = text
            .chars()
            .find(|wanted| !rest.any(|found| found == *wanted));
        assert_eq!(missing, None, "{client}: {installed}");
        if text.contains("\r\n") && !text.replace("\r\n", "").contains('\n') {
            assert!(!installed.replace("\r\n", "").contains('\n'), "{installed}");
        }
        for line in text.lines().filter(|line| !line.contains("mcpServers")) {
            let line = line.trim_end().trim_end_matches('}').trim_end();
            assert!(installed.contains(line), "{client}: {line} in {installed}");
        }
    }
}

#[test]
fn changes_after_the_installation_survive_removal() {
    let home = Home::new();
    home.write("vscode", VSCODE);
    home.run(["vscode"]);
    let installed = home.read("vscode");
    let changed = installed.replace("// newest", "// pinned");
    assert_ne!(changed, installed);
    home.write("vscode", &changed);
    home.run(["vscode", "--remove"]);
    assert_eq!(
        home.read("vscode"),
        VSCODE.replace("// newest", "// pinned")
    );

    home.write("codex", CODEX);
    home.run(["codex"]);
    let changed = format!("{}\n[new]\nx = 1\n", home.read("codex"));
    home.write("codex", &changed);
    home.run(["codex", "--remove"]);
    assert_eq!(home.read("codex"), format!("{CODEX}\n[new]\nx = 1\n"));
}

#[test]
fn broken_files_are_reported_and_not_touched() {
    let cases = [
        ("claude-code", "{\n  \"a\": 1,\n}", 3),
        ("claude-desktop", "{\n  // comment\n}", 2),
        ("claude-code", "{\"mcpServers\": {\n\"a\": }", 2),
        ("cursor", "{\n\"mcpServers\": {", 2),
        ("cursor", "[]", 1),
        ("cursor", "{\n\n\"mcpServers\": []}", 3),
        ("cursor", "{\"mcpServers\": null}", 1),
        ("gemini", "{\n\"a\": 1,\n}", 3),
        ("gemini", "{\"a\": 'x'}", 1),
        ("zed", "{\"a\": 1}\n\n{}", 3),
        ("zed", "{\"a\": 1 /* open }", 1),
        ("vscode", "{\"servers\": {},\n\"inputs\": {}}", 2),
        ("vscode", "{\"a\": \"\\x\"}", 1),
        ("codex", "model = \"x\"\n[mcp_servers\n", 2),
        ("codex", "a = 1\na = 2\n", 2),
    ];
    for (client, text, line) in cases {
        let home = Home::new();
        home.write(client, text);
        for more in [&[][..], &["--remove"], &["--print"]] {
            let failed = home
                .install([client].into_iter().chain(more.iter().copied()))
                .run();
            // There is nothing to remove where the entry cannot be.
            if failed.code == Some(0) && more == ["--remove"] {
                continue;
            }
            let place = format!("{}:{line}: ", home.path(client).display());
            failed.assert_failed(1, &[&place, "not touched"]);
        }
        assert_eq!(home.read(client), text);
        assert!(!home.backup(client).exists(), "{client}");
    }
    let home = Home::new();
    home.write("cursor", "");
    fs::write(home.path("cursor"), b"{\n\"a\": \"\xff\"}").unwrap();
    home.install(["cursor"])
        .run()
        .assert_failed(1, &["mcp.json:2: ", "UTF-8"]);
}

#[test]
fn inline_tables_of_codex_are_extended() {
    for text in [
        "mcp_servers = { docs = { command = \"x\" } } # all\nmodel = \"y\"\n",
        "mcp_servers.docs.command = \"x\"\nmodel = \"y\"\n",
        "[mcp_servers]\ndocs = { command = \"x\" }\n\n[tui]\na = 1\n",
    ] {
        let home = Home::new();
        home.write("codex", text);
        home.run(["codex"]);
        let installed = home.read("codex");
        let parsed: toml::Table = installed.parse().unwrap();
        let servers = parsed["mcp_servers"].as_table().unwrap();
        assert_eq!(servers["docs"]["command"].as_str(), Some("x"));
        assert_eq!(servers["exa"]["command"].as_str(), Some(super::program()));
        assert!(installed.contains("model = \"y\"") || installed.contains("[tui]\na = 1"));
        home.run(["codex", "--remove"]);
        assert_eq!(home.read("codex"), text);
    }
}

//! Which files are found, and how they are written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{CLIENTS, Home, assert_no_key, assert_same_folder, program};
use crate::support::{API_KEY, Program};

#[test]
fn without_clients_shows_what_was_found() {
    let home = Home::new();
    let none = home.install([]).env("PATH", "/nonexistent").run();
    assert_eq!(none.code, Some(0), "{none:#?}");
    assert!(none.stdout.contains("No client was found"), "{none:#?}");
    home.write("cursor", "{}");
    home.write("zed", "{");
    home.write("codex", "");
    home.run(["codex"]);
    let found = home.install([]).env("PATH", "/nonexistent").run();
    let line = |id: &str| {
        let mut lines = found.stdout.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(id));
        line.unwrap_or_default().to_owned()
    };
    assert!(line("cursor").contains("not installed"), "{found:#?}");
    assert!(line("cursor").contains(home.path("cursor").to_str().unwrap()));
    assert!(line("zed").contains("cannot be read"), "{found:#?}");
    assert!(line("codex").contains(" installed"), "{found:#?}");
    assert_eq!(line("gemini"), "");
    assert!(
        found.stdout.contains("exa-mcp-server install codex")
            || found.stdout.contains("install cursor")
    );
    assert_eq!(home.read("cursor"), "{}");
}

#[test]
fn all_configures_the_clients_found() {
    let home = Home::new();
    home.write("cursor", "{}");
    home.write("gemini", "{}");
    let outcome = home.install(["--all"]).env("PATH", "/nonexistent").run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(home.read("cursor").contains(program()));
    assert!(home.read("gemini").contains(program()));
    assert!(!home.path("zed").exists());
    let unknown = home.install(["emacs"]).run();
    unknown.assert_failed(2, &["emacs", "claude-code"]);
}

#[test]
fn print_writes_nothing() {
    for (client, _) in CLIENTS {
        let home = Home::new();
        let outcome = home.run([client, "--print"]);
        assert!(outcome.stdout.contains("+ "), "{outcome:#?}");
        assert!(outcome.stdout.contains(program()), "{outcome:#?}");
        assert_no_key(&outcome);
        assert!(!home.path(client).exists());
        assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0, "{client}");
    }
    let home = Home::new();
    home.write("cursor", "{\n  \"a\": 1\n}\n");
    let outcome = home.run(["cursor", "--print"]);
    assert!(
        outcome
            .stdout
            .contains("\n-   \"a\": 1\n+   \"a\": 1,\n+   \"mcpServers\""),
        "{outcome:#?}"
    );
    home.run(["cursor"]);
    let removal = home.run(["cursor", "--print", "--remove"]);
    assert!(
        removal.stdout.contains("\n-   \"mcpServers\""),
        "{removal:#?}"
    );
    assert!(home.read("cursor").contains(program()));
}

/// Secrets of other servers, and those that are replaced, are not shown either.
#[test]
fn print_shows_no_secret() {
    let json = r#"{
  "KEY": {
    "github": { "command": "gh", "env": { "A": "hidden-1" } },
    "exa": {
      "command": "exa-mcp-server",
      "args": ["--api-key", "hidden-2", "--x-token=hidden-3"],
      "env": { "EXA_API_KEY": "hidden-\\u0034", "OTHER": "hidden-5" }
    },
    "remote": { "url": "https://u:hidden-6@h.example/mcp?key=hidden-7&tools=shown" },
    "last": { "headers": { "Authorization": "Bearer hidden-8" } }
  }
}"#;
    let toml = r#"
[mcp_servers.github]
env = { A = "hidden-1" }
[mcp_servers.exa]
command = "exa-mcp-server"
args = ["--api-key", "hidden-2"]
[mcp_servers.exa.env]
EXA_API_KEY = """
hidden-4"""
[mcp_servers.last]
http_headers.Authorization = 'Bearer hidden-8'
"#;
    let remote = ["--url", "https://h.example", "--token", "hidden-9"];
    for (client, _) in CLIENTS {
        let key = match client {
            "vscode" => "servers",
            "zed" => "context_servers",
            _ => "mcpServers",
        };
        let text = match client {
            "codex" => toml.to_owned(),
            _ => json.replace("KEY", key),
        };
        for more in [&[][..], &["--remove"], &["--tools", "notes"], &remote] {
            if client == "claude-desktop" && more == remote {
                continue;
            }
            let home = Home::new();
            home.write(client, &text);
            let arguments = [client, "--print"].into_iter().chain(more.iter().copied());
            let outcome = home.install(arguments).env("EXA_API_KEY", "hid\"den").run();
            assert_eq!(outcome.code, Some(0), "{outcome:#?}");
            for secret in ["hidden", "hid\"den", "hid\\\"den", "\\u0034"] {
                assert!(!outcome.stdout.contains(secret), "{client}: {outcome:#?}");
            }
            assert!(
                outcome.stdout.contains("********"),
                "{client}: {outcome:#?}"
            );
        }
    }
}

#[test]
fn comments_of_a_file_without_other_servers_stay() {
    let home = Home::new();
    let with_entry = "// mine\n{\"mcpServers\": {\"exa\": {\"command\": \"exa-mcp-server\"}}}\n";
    home.write("cursor", with_entry);
    home.run(["cursor", "--remove"]);
    assert_eq!(home.read("cursor"), "// mine\n{\"mcpServers\": {}}\n");
    home.write(
        "codex",
        "# mine\n\n[mcp_servers.exa]\ncommand = \"exa-mcp-server\"\n",
    );
    home.run(["codex", "--remove"]);
    assert_eq!(home.read("codex"), "# mine\n");
}

#[test]
fn a_file_that_was_created_is_deleted_after_updates_too() {
    for (client, _) in CLIENTS {
        let home = Home::new();
        home.run([client]);
        home.run([client, "--tools", "notes"]);
        home.run([client, "--tools", "default"]);
        home.run([client, "--remove"]);
        assert!(!home.path(client).exists(), "{client}");
    }
}

#[test]
fn read_only_files_are_not_replaced() {
    let home = Home::new();
    home.write("cursor", "{}");
    let read_only = fs::Permissions::from_mode(0o444);
    fs::set_permissions(home.path("cursor"), read_only).unwrap();
    let failed = home.install(["cursor"]).run();
    failed.assert_failed(1, &["mcp.json is read-only", "was not touched"]);
    assert_eq!(home.read("cursor"), "{}");
    assert_same_folder(&home.0.path().join(".cursor"), &["mcp.json"]);
}

#[test]
fn other_locations_are_respected() {
    let home = Home::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().to_str().unwrap();
    for (client, variable, path) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        (
            "claude-desktop",
            "XDG_CONFIG_HOME",
            "Claude/claude_desktop_config.json",
        ),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ] {
        let outcome = home.install([client]).env(variable, folder).run();
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let text = fs::read_to_string(elsewhere.path().join(path)).unwrap();
        assert!(text.contains(program()), "{client}");
        assert!(!home.path(client).exists());
    }
    fs::write(
        home.0.path().join(".lmstudio-home-pointer"),
        format!("{folder}/lm\n"),
    )
    .unwrap();
    home.run(["lmstudio"]);
    assert!(elsewhere.path().join("lm/mcp.json").exists());
    let failed = home.install(["cursor"]).env_remove("HOME").run();
    failed.assert_failed(1, &["HOME"]);
}

#[test]
fn mode_and_links_stay() {
    let home = Home::new();
    let dotfiles = home.0.path().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    fs::write(dotfiles.join("cursor.json"), "{\"a\": 1}").unwrap();
    fs::set_permissions(
        dotfiles.join("cursor.json"),
        fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    fs::create_dir(home.0.path().join(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", home.path("cursor")).unwrap();
    home.run(["cursor"]);
    assert!(
        fs::symlink_metadata(home.path("cursor"))
            .unwrap()
            .is_symlink()
    );
    assert!(home.read("cursor").contains(program()));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path("cursor")), 0o640);
    assert_eq!(mode(&home.backup("cursor")), 0o640);
    assert_same_folder(&dotfiles, &["cursor.json"]);
    home.run(["cursor", "--remove"]);
    assert_eq!(home.read("cursor"), "{\"a\": 1}");

    // A link to a file that does not exist yet.
    fs::create_dir_all(home.0.path().join(".codex")).unwrap();
    symlink(dotfiles.join("new/codex.toml"), home.path("codex")).unwrap();
    home.run(["codex"]);
    assert!(
        fs::read_to_string(dotfiles.join("new/codex.toml"))
            .unwrap()
            .contains(program())
    );

    // A new file may hold the key.
    home.run(["claude-desktop"]);
    assert!(home.read("claude-desktop").contains(API_KEY));
    assert_eq!(mode(&home.path("claude-desktop")), 0o600);
}

#[test]
fn failures_to_write_leave_everything_as_it_was() {
    let home = Home::new();
    // A file where a directory should be, which fails for every user.
    fs::write(home.0.path().join(".cursor"), "").unwrap();
    home.write("gemini", "{}");
    let failed = home.install(["cursor", "gemini"]).run();
    super::assert_partly_failed(&failed, &["error: Cursor: cannot", ".cursor"]);
    assert!(failed.stdout.contains("Gemini CLI: added"), "{failed:#?}");
    assert!(home.read("gemini").contains(program()));

    let home = Home::new();
    home.write("cursor", "{}");
    let folder = home.path("cursor").parent().unwrap().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let outcome = home.install(["cursor"]).run();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser may write everywhere.
    if outcome.code != Some(0) {
        outcome.assert_failed(1, &["cannot write", "nothing was changed"]);
        assert_eq!(home.read("cursor"), "{}");
        assert_same_folder(&folder, &["mcp.json"]);
    }
}

#[test]
fn the_program_is_found_by_the_path_that_stays() {
    let home = Home::new();
    let bin = home.0.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(program(), bin.join("exa-mcp-server")).unwrap();
    let linked = bin.join("exa-mcp-server");
    let outcome = std::process::Command::new(&linked)
        .args(["install", "cursor"])
        .env_clear()
        .env("HOME", home.0.path())
        .output()
        .unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert!(home.read("cursor").contains(linked.to_str().unwrap()));
}

#[test]
fn a_key_in_the_configuration_file_is_not_copied() {
    let home = Home::new();
    let folder = home.0.path().join(".config/exa-mcp-server");
    fs::create_dir_all(&folder).unwrap();
    let config = folder.join("config.toml");
    fs::write(&config, "exa_api_key = \"key-of-the-file\"\n").unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = home
        .install(["claude-desktop"])
        .env_remove("EXA_API_KEY")
        .run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(!home.read("claude-desktop").contains("key-of-the-file"));
    assert!(!outcome.stdout.contains("no key"), "{outcome:#?}");
    let named = ["--config", config.to_str().unwrap(), "install", "zed"];
    let outcome = Program::new(named)
        .env("HOME", home.0.path().to_str().unwrap())
        .run();
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert!(home.read("zed").contains(config.to_str().unwrap()));
}

//! Notes: created by a tool, read as resources, persisted in a store.

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION};

/// Starts a server with this store.
fn connect(store: &str, version: &str) -> McpServer {
    let program = Program::new(["--sandbox", "--tools", "notes"]).env("EXA_MCP_STORE", store);
    McpServer::connect(program, version)
}

fn sqlite(folder: &tempfile::TempDir) -> String {
    format!(
        "sqlite:{}",
        folder.path().join("made/for it/notes.db").display()
    )
}

/// Creates a note and returns the whole result.
#[track_caller]
fn create(server: &mut McpServer, arguments: Value) -> Value {
    let params = json!({"name": "create_note", "arguments": arguments});
    let response = server.request("tools/call", params);
    let result = response.get("result").expect("a result").clone();
    assert_eq!(result["isError"], false, "{result}");
    result
}

fn id(result: &Value) -> String {
    let note = result["content"][1]["uri"].as_str().expect("a link");
    note.strip_prefix("note:///").expect("a note").to_owned()
}

fn read(server: &mut McpServer, uri: &str) -> Value {
    server.request("resources/read", json!({"uri": uri}))
}

/// Returns the URIs of the listed notes.
fn listed(server: &mut McpServer) -> Vec<String> {
    let response = server.request("resources/list", json!({}));
    let resources = response["result"]["resources"].as_array().expect("a list");
    let uris = resources
        .iter()
        .filter_map(|resource| resource["uri"].as_str());
    uris.filter(|uri| uri.starts_with("note:"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn note_is_created_and_read_in_both_generations() {
    for version in ["2025-06-18", DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = connect("memory:", version);
        let sources = ["https://example.com/a", "http://example.org/?q=ü"];
        let made = create(
            &mut server,
            json!({"title": "Heat pumps", "content": "They *work*.", "sourceUrls": sources}),
        );
        let link = &made["content"][1];
        assert_eq!(link["type"], "resource_link", "{made}");
        assert_eq!(link["name"], "Heat pumps");
        assert_eq!(link["mimeType"], "text/plain");
        let uri = link["uri"].as_str().expect("an address").to_owned();
        let whole = server.request("resources/read", json!({"uri": uri}));
        let text = whole["result"]["contents"][0]["text"].as_str();
        assert_eq!(link["size"], text.expect("a string").len());
        // Text and structured content both contain the URI.
        assert!(
            made["content"][0]["text"]
                .as_str()
                .expect("a string")
                .contains(&uri)
        );
        assert!(made["structuredContent"].to_string().contains(&uri));
        let contents = read(&mut server, &uri)["result"]["contents"][0].clone();
        assert_eq!(contents["uri"], uri);
        assert_eq!(contents["mimeType"], "text/plain");
        let text = contents["text"].as_str().expect("a string");
        assert_eq!(text, "They *work*.");
        assert_eq!(listed(&mut server), [uri]);
        assert_eq!(server.shut_down().stderr, "");
    }
}

#[test]
fn older_versions_get_the_uri_in_text() {
    for version in ["2024-11-05", "2025-03-26"] {
        let mut server = connect("memory:", version);
        let made = create(&mut server, json!({"title": "t", "content": "c"}));
        assert_eq!(made["content"].as_array().map(Vec::len), Some(1));
        let uri = listed(&mut server).remove(0);
        assert!(
            made["content"][0]["text"]
                .as_str()
                .expect("a string")
                .contains(&uri)
        );
    }
}

#[test]
fn stored_note_survives_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = sqlite(&folder);
    let mut server = connect(&store, DEFAULT_VERSION);
    assert!(
        folder.path().read_dir().expect("a folder").next().is_none(),
        "nothing is made before it is needed"
    );
    let first = id(&create(
        &mut server,
        json!({"title": "one", "content": "c"}),
    ));
    server.shut_down();
    let mut server = connect(&store, STATELESS_VERSION);
    let second = id(&create(
        &mut server,
        json!({"title": "two", "content": "c"}),
    ));
    let expected = [format!("note:///{second}"), format!("note:///{first}")];
    assert_eq!(listed(&mut server), expected, "the newest first");
    let text = read(&mut server, &expected[1])["result"]["contents"][0]["text"].clone();
    assert_eq!(text, "c");
    // Two servers of one user share the file.
    let mut other = connect(&store, DEFAULT_VERSION);
    assert_eq!(listed(&mut other), expected);
}

#[test]
fn in_memory_note_ends_with_the_server() {
    let mut server = connect("memory:", DEFAULT_VERSION);
    let uri = format!(
        "note:///{}",
        id(&create(&mut server, json!({"title": "t", "content": "c"})))
    );
    server.shut_down();
    let mut server = connect("memory:", DEFAULT_VERSION);
    assert_eq!(read(&mut server, &uri)["error"]["code"], -32002);
}

#[cfg(unix)]
#[test]
fn store_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = connect(&sqlite(&folder), DEFAULT_VERSION);
    create(&mut server, json!({"title": "t", "content": "c"}));
    let files = folder
        .path()
        .join("made/for it")
        .read_dir()
        .expect("the folder");
    for file in files {
        let mode = file
            .expect("a file")
            .metadata()
            .expect("its rights")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn invalid_note_is_rejected_like_other_arguments() {
    let mut server = connect("memory:", DEFAULT_VERSION);
    let long = "x".repeat(100_001);
    for (arguments, part) in [
        (json!({"content": "c"}), "`title` is required"),
        (json!({"title": "t"}), "`content` is required"),
        (json!({"title": " \n", "content": "c"}), "`title` is blank"),
        (json!({"title": "t", "content": long}), "100000"),
        (json!({"title": "x".repeat(201), "content": "c"}), "200"),
        (
            json!({"title": "t", "content": "c", "sourceUrls": ["javascript:alert(1)"]}),
            "sourceUrls",
        ),
        (
            json!({"title": "t", "content": "c", "sourceUrls": [1]}),
            "sourceUrls",
        ),
    ] {
        let failure = server.call("create_note", arguments).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_contains(&[part]);
    }
    assert_eq!(listed(&mut server), Vec::<String>::new());
}

/// A single URL instead of a list, and another spelling of a name, are corrected.
#[test]
fn note_argument_mistakes_are_corrected() {
    let mut server = connect("memory:", DEFAULT_VERSION);
    let made = create(
        &mut server,
        json!({"title": "t", "content": "c", "source_urls": "https://example.com/"}),
    );
    assert!(
        made["structuredContent"]
            .to_string()
            .contains("read as `sourceUrls`"),
        "{made}"
    );
    let uri = listed(&mut server).remove(0);
    let text = read(&mut server, &uri)["result"]["contents"][0]["text"].clone();
    assert_eq!(text, "c");
}

#[test]
fn notes_need_to_be_enabled() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = sqlite(&folder);
    let made = id(&create(
        &mut connect(&store, DEFAULT_VERSION),
        json!({"title": "t", "content": "c"}),
    ));
    let program = Program::new(["--sandbox"]).env("EXA_MCP_STORE", &store);
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let error = read(&mut server, &format!("note:///{made}"))["error"].clone();
    assert_eq!(error["code"], -32002);
    assert!(
        error["message"]
            .as_str()
            .expect("a string")
            .contains("not enabled"),
        "{error}"
    );
    assert_eq!(listed(&mut server), Vec::<String>::new());
    let templates = server.request("resources/templates/list", json!({}));
    assert!(!templates.to_string().contains("note:///"), "{templates}");
}

#[test]
fn unusable_store_is_reported_on_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(
        &file,
        "not a database, and longer than a header ".repeat(30),
    )
    .expect("a file");
    let store = format!("sqlite:{}", file.display());
    let mut server = connect(&store, DEFAULT_VERSION);
    let failure = server
        .call("create_note", json!({"title": "t", "content": "c"}))
        .failure();
    failure.assert_code(-32603, "INTERNAL_ERROR");
    failure.assert_contains(&["not a database"]);
    let error = server.request("resources/list", json!({}))["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    let doctor = Program::new(["doctor", "--sandbox"])
        .env("EXA_MCP_STORE", &store)
        .run();
    assert_eq!(doctor.code, Some(1), "{doctor:#?}");
    assert!(
        doctor.stdout.contains("FAIL store") && doctor.stdout.contains("EXA_MCP_STORE"),
        "{doctor:#?}"
    );
}

#[test]
fn doctor_reports_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for (store, part) in [("memory:", "in memory"), (&sqlite(&folder), "notes.db")] {
        let doctor = Program::new(["doctor", "--sandbox"])
            .env("EXA_MCP_STORE", store)
            .run();
        assert_eq!(doctor.code, Some(0), "{doctor:#?}");
        let line = doctor.stdout.lines().find(|line| line.contains("store:"));
        assert!(line.is_some_and(|line| line.contains(part)), "{doctor:#?}");
    }
}

#[test]
fn malformed_store_aborts_start_without_showing_it() {
    for (store, part) in [
        (
            "postgres://me:hunter2@host/db",
            "memory:, sqlite:PATH or redis:",
        ),
        ("redis://:hunter2@host:port", "address of Redis"),
        ("sqlite:", "path of a file"),
        ("hunter2", "unknown kind of store"),
    ] {
        for arguments in [&[][..], &["tools"]] {
            let output = Program::new(arguments.iter().copied())
                .env("EXA_MCP_STORE", store)
                .run();
            output.assert_failed(2, &["EXA_MCP_STORE", part]);
            assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
        }
    }
    // Client settings often leave a variable empty.
    let output = Program::new(["tools"]).env("EXA_MCP_STORE", " ").run();
    assert_eq!(output.code, Some(0), "{output:#?}");
}

/// A note may be copied from a web page, so hidden text is removed from it.
#[test]
fn hidden_text_is_not_stored() {
    let mut server = connect("memory:", DEFAULT_VERSION);
    let hidden = "pay\u{200b}\u{202e} now\u{e0041}\u{1b}[31m";
    let plain = "`a < b && c` &lt;b&gt; 👩‍👩‍👧 ünïcode\n\n\tindented";
    let note = json!({"title": hidden, "content": format!("{plain} {hidden}")});
    create(&mut server, note);
    let uri = listed(&mut server).remove(0);
    let text = read(&mut server, &uri)["result"]["contents"][0]["text"].clone();
    let text = text.as_str().expect("a string");
    for letter in ['\u{200b}', '\u{202e}', '\u{e0041}', '\u{1b}'] {
        assert!(!text.contains(letter), "{letter:?} in {text:?}");
    }
    assert!(
        text.starts_with(plain) && text.ends_with("pay now"),
        "{text}"
    );
}

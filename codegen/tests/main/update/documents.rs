//! What an update writes and reports.

use codegen::load;
use codegen::update::{WordingKind, update};
use serde_json::{Value, json};

use super::server::{Reply, TestServer};
use super::{Workspace, websets_spec};

fn workspace(server: &TestServer) -> Workspace {
    Workspace::new(&format!("{}exa-websets-spec.yaml", server.url))
}

/// The pointer of the text that these tests change.
const DESCRIPTION: &str = "/paths/~1v0~1websets/post/description";

/// Returns the spec as JSON after a change.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut root = load::parse("spec.yaml", &websets_spec()).unwrap().root;
    change(&mut root);
    root.to_string()
}

#[test]
fn strips_texts_and_does_nothing_when_run_again() {
    let server = TestServer::start(vec![Reply::document(&websets_spec(), "\"one\"")]);
    let workspace = workspace(&server);
    workspace.write_wording("actions: []\n");
    let report = workspace.update().unwrap();
    assert!(report.has_changes());
    // The texts that the spec had are missing now, and nothing else changed.
    let markdown = report.to_markdown(false);
    assert!(
        markdown.contains("**0 breaking**, 0 compatible"),
        "{markdown}"
    );
    assert!(
        markdown.contains("needs wording: `exa-websets-spec.yaml#"),
        "{markdown}"
    );
    let spec = workspace.read("exa-websets-spec.yaml");
    assert!(!spec.contains("Upstream's"), "{spec}");
    assert!(workspace.read("upstream.lock").contains(DESCRIPTION));
    let record = workspace.read("UPSTREAM.toml");
    for line in ["date = \"2026-11-18\"", "etag = '\"one\"'", "sha256 = "] {
        assert!(record.contains(line), "{line} is missing in {record}");
    }
    // Upstream's text is quoted on request only.
    let operation = report.missing_wording.first().unwrap();
    assert_eq!(operation.kind, WordingKind::Operation);
    assert!(operation.upstream.is_some());
    assert!(!markdown.contains("(upstream: “"), "{markdown}");
    assert!(report.to_markdown(true).contains("(upstream: “"));

    let before = workspace.files();
    let mut options = workspace.options();
    options.today = "2026-11-25".to_owned();
    // The same document with another `ETag`, and then no document.
    server.set(Reply::document(&websets_spec(), "\"two\""));
    assert!(!update(&options).unwrap().has_changes());
    server.set(Reply::Response(
        "304 Not Modified",
        String::new(),
        String::new(),
    ));
    let report = update(&options).unwrap();
    assert_eq!(report.impact(), None);
    assert!(report.to_markdown(false).contains("No changes."));
    assert!(before == workspace.files());
    let requests = server.requests();
    assert!(!requests[0].contains("if-none-match"), "{}", requests[0]);
    assert!(
        requests[2].contains("if-none-match: \"one\""),
        "{}",
        requests[2]
    );
}

#[test]
fn reports_reworded_texts_and_applies_our_wording() {
    let server = TestServer::start(vec![Reply::document(&websets_spec(), "\"one\"")]);
    let workspace = workspace(&server);
    workspace.write_wording(
        "actions:\n- target: $.paths['/v0/websets'].post\n  update: {summary: Make a webset}\n",
    );
    let report = workspace.update().unwrap();
    let missing = |pointer: &str| {
        let location = format!("exa-websets-spec.yaml#{pointer}");
        report
            .missing_wording
            .iter()
            .any(|m| m.location == location)
    };
    assert!(!missing("/paths/~1v0~1websets/post"));
    assert!(missing("/paths/~1v0~1websets/get"));
    assert!(report.stale_wording.is_empty());
    let snapshot = workspace
        .root()
        .join("codegen-snapshots/operations/websets.create.json");
    assert!(
        std::fs::read_to_string(snapshot)
            .unwrap()
            .contains("Make a webset")
    );

    // Upstream rewords one text: only the records change.
    let reworded = changed(|spec| {
        *spec.pointer_mut(DESCRIPTION).unwrap() = json!("Something new.");
    });
    server.set(Reply::document(&reworded, "\"two\""));
    let report = workspace.update().unwrap();
    assert_eq!(
        report.files,
        ["data-design/UPSTREAM.toml", "data-design/upstream.lock"]
    );
    assert!(report.changes.is_empty());
    let line = format!("wording may be out of date: `exa-websets-spec.yaml#{DESCRIPTION}`");
    assert!(report.to_markdown(false).contains(&line));
    assert_eq!(report.to_json()["impact"], "documentation");
}

#[test]
fn reports_changes_of_the_api_and_follows_redirects_within_the_host() {
    let moved = Reply::Response("301 Moved", "location: /new.json\r\n".into(), String::new());
    let server = TestServer::start(vec![
        Reply::document(&websets_spec(), "\"one\""),
        moved,
        Reply::document(
            &changed(|spec| {
                let schemas = &mut spec["components"]["schemas"];
                let formats = &mut schemas["WebsetEnrichmentFormat"]["enum"];
                formats.as_array_mut().unwrap().push(json!("currency"));
                let paths = spec["paths"].as_object_mut().unwrap();
                paths.shift_remove("/v0/webhooks/{id}/attempts").unwrap();
            }),
            "\"two\"",
        ),
    ]);
    let workspace = workspace(&server);
    workspace.update().unwrap();
    let report = workspace.update().unwrap();
    let markdown = report.to_markdown(false);
    assert!(
        markdown.contains("**breaking** `webhooks.list_attempts`"),
        "{markdown}"
    );
    assert!(markdown.contains("`currency`"), "{markdown}");
    assert_eq!(report.to_json()["impact"], "breaking");
    for file in ["generated/operations.rs", "README.md"] {
        assert!(report.files.contains(&file.to_owned()), "{file}");
    }
    codegen::generate(workspace.root())
        .unwrap()
        .compare(workspace.root())
        .unwrap();
}

#[test]
fn reads_files_and_folders() {
    let workspace = Workspace::new("http://127.0.0.1:1/exa-websets-spec.yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("exa-websets-spec.json"), changed(|_| {})).unwrap();
    let mut options = workspace.options();
    options.from = Some(folder.path().display().to_string());
    assert!(update(&options).unwrap().has_changes());
    let file = folder.path().join("any.yaml");
    std::fs::write(&file, websets_spec()).unwrap();
    options.from = Some(file.display().to_string());
    let error = update(&options).unwrap_err().to_string();
    assert!(error.contains("name the source"), "{error}");
    options.name = Some("websets".to_owned());
    // The same API in another file: only the digest of the record changes.
    let report = update(&options).unwrap();
    assert_eq!(report.files, ["data-design/UPSTREAM.toml"]);
    assert!(!report.has_changes());
}

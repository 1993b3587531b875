//! Roots: only files inside them may be imported.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ClientResponse, ScriptedClient, VERSIONS, no_requests};
use crate::support::{DEFAULT_VERSION, Outcome};

fn roots() -> Value {
    json!({"roots": {"listChanged": true}})
}

/// Creates a folder with a file to import.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("list.csv"),
        "name,url\nAcme,https://acme.example\n",
    )
    .expect("a file");
    folder
}

fn import(path: &Path) -> Value {
    json!({"operation": "imports.create", "output_format": "json", "args": {
        "title": "Companies", "filePath": path.join("list.csv"), "entity": {"type": "company"},
    }})
}

fn roots_response(folders: &[&Path]) -> ClientResponse {
    let uri = |folder: &&Path| {
        let url = url::Url::from_directory_path(folder).expect("an address");
        json!({"uri": url.to_string(), "name": "folder"})
    };
    let roots: Vec<Value> = folders.iter().map(uri).collect();
    ClientResponse::Result(json!({"roots": roots}))
}

#[track_caller]
fn assert_rejected(outcome: Outcome, part: &str) {
    let failure = outcome.failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
    failure.assert_contains(&["filePath", part]);
}

#[test]
fn file_inside_a_root_is_imported() {
    for version in VERSIONS {
        let folder = folder();
        let mut client = ScriptedClient::sandboxed("default", version, roots());
        let outcome = client.call("manage_websets", import(folder.path()), |method, _| {
            assert_eq!(method, "roots/list");
            roots_response(&[folder.path()])
        });
        let imported = outcome.success();
        assert_eq!(imported["count"], 1, "{version}: {imported}");
    }
}

#[test]
fn file_outside_every_root_is_rejected() {
    for version in VERSIONS {
        let (inside, outside) = (folder(), folder());
        let mut client = ScriptedClient::sandboxed("default", version, roots());
        let outcome = client.call("manage_websets", import(outside.path()), |_, _| {
            roots_response(&[inside.path()])
        });
        assert_rejected(outcome, "");
        // A folder whose name starts with that of a root.
        let longer = format!("{}a", inside.path().display());
        fs::create_dir(&longer).expect("a folder");
        fs::copy(inside.path().join("list.csv"), format!("{longer}/list.csv")).expect("a file");
        let outcome = client.call("manage_websets", import(Path::new(&longer)), |_, _| {
            roots_response(&[inside.path()])
        });
        fs::remove_dir_all(&longer).expect("an exit status");
        assert_rejected(outcome, "");
    }
}

#[test]
fn invalid_roots_response_opens_nothing() {
    let folder = folder();
    let mut client = ScriptedClient::sandboxed("default", DEFAULT_VERSION, roots());
    let odd = [
        json!({}),
        json!({"roots": 5}),
        json!({"roots": []}),
        json!({"roots": [{"uri": "https://example.com/"}, {"uri": "file://elsewhere/x"}]}),
    ];
    for odd in odd {
        let outcome = client.call("manage_websets", import(folder.path()), |_, _| {
            ClientResponse::Result(odd.clone())
        });
        assert_rejected(outcome, "root");
        client
            .server
            .notify("notifications/roots/list_changed", json!({}));
    }
    let failed = client.call("manage_websets", import(folder.path()), |_, _| {
        ClientResponse::Error(-32603)
    });
    assert_rejected(failed, "root");
    let silent = client.call("manage_websets", import(folder.path()), |_, _| {
        ClientResponse::Silence
    });
    assert_rejected(silent, "in time");
}

#[test]
fn roots_are_listed_again_after_a_change() {
    let (first, second) = (folder(), folder());
    let mut client = ScriptedClient::sandboxed("default", DEFAULT_VERSION, roots());
    let given = |folder: &TempDir| roots_response(&[folder.path()]);
    let outcome = client.call("manage_websets", import(first.path()), |_, _| given(&first));
    assert!(!outcome.is_error, "{}", outcome.text);
    // Nothing has changed, so the roots are not requested again.
    let again = client.call("manage_websets", import(first.path()), no_requests);
    assert!(!again.is_error, "{}", again.text);
    client
        .server
        .notify("notifications/roots/list_changed", json!({}));
    let outcome = client.call("manage_websets", import(second.path()), |_, _| {
        given(&second)
    });
    assert!(!outcome.is_error, "{}", outcome.text);
    assert_rejected(
        client.call("manage_websets", import(first.path()), no_requests),
        "",
    );
}

#[test]
fn roots_are_listed_every_time_without_list_changed() {
    let folder = folder();
    let mut client = ScriptedClient::sandboxed("default", DEFAULT_VERSION, json!({"roots": {}}));
    for _ in 0..2 {
        let outcome = client.call("manage_websets", import(folder.path()), |_, _| {
            roots_response(&[folder.path()])
        });
        assert!(!outcome.is_error, "{}", outcome.text);
    }
    assert_eq!(client.methods(), ["roots/list", "roots/list"]);
}

//! An update that fails writes nothing, and its message says what to do.

use std::time::Duration;

use codegen::update::update;

use super::server::{Reply, TestServer};
use super::{Workspace, websets_spec};

/// Runs an update that must fail, and returns its message.
fn failure(replies: Vec<Reply>) -> String {
    let server = TestServer::start(replies);
    let workspace = Workspace::new(&format!("{}exa-websets-spec.yaml", server.url));
    let before = workspace.files();
    let mut options = workspace.options();
    options.timeout = Duration::from_millis(500);
    let error = update(&options).unwrap_err().to_string();
    assert!(
        before == workspace.files(),
        "something was written: {error}"
    );
    error
}

fn html() -> String {
    "<!doctype html><html><body>Sign in</body></html>".to_owned()
}

#[test]
fn http_errors_write_nothing() {
    let respond = |status| vec![Reply::Response(status, String::new(), "oops".into())];
    let error = failure(respond("500 Internal Server Error"));
    assert!(
        error.contains("500") && error.contains("Try again later"),
        "{error}"
    );
    let error = failure(respond("404 Not Found"));
    assert!(
        error.contains("404") && error.contains("UPSTREAM.toml"),
        "{error}"
    );
    // Not the response to a conditional request.
    let error = failure(respond("304 Not Modified"));
    assert!(error.contains("304"), "{error}");
}

#[test]
fn slow_servers_write_nothing() {
    for reply in [Reply::Silence, Reply::Trickle] {
        let error = failure(vec![reply]);
        assert!(error.contains("within 0.5 s"), "{error}");
    }
}

#[test]
fn incomplete_responses_write_nothing() {
    let spec = websets_spec();
    // The part is well-formed YAML, so only the transport can tell.
    let end = spec.find("  /v0/websets/{id}:").unwrap();
    let part = spec[..end].to_owned();
    let error = failure(vec![Reply::Truncated(part.clone())]);
    assert!(error.contains("incomplete"), "{error}");
    let error = failure(vec![Reply::TruncatedChunks(part.clone())]);
    assert!(error.contains("incomplete"), "{error}");
    let error = failure(vec![Reply::WithoutLength(part)]);
    assert!(error.contains("no length"), "{error}");
}

#[test]
fn truncated_documents_of_the_right_length_write_nothing() {
    let spec = websets_spec();
    for part in [1, 2, 3, 5, 7] {
        let mut end = spec.len() * part / 8;
        // In the middle of a line.
        while !spec[..end].ends_with(|char: char| char.is_ascii_alphabetic()) {
            end -= 1;
        }
        let error = failure(vec![Reply::document(&spec[..end], "\"a\"")]);
        assert!(
            error.contains("truncated") || error.contains("not an OpenAPI document"),
            "{error}"
        );
    }
}

#[test]
fn other_content_writes_nothing() {
    let with_type = |kind: &str, body: String| {
        vec![Reply::Response(
            "200 OK",
            format!("content-type: {kind}\r\n"),
            body,
        )]
    };
    let error = failure(with_type("text/html; charset=utf-8", html()));
    assert!(error.contains("HTML"), "{error}");
    let error = failure(with_type("application/yaml", html()));
    assert!(error.contains("HTML"), "{error}");
    let error = failure(with_type("application/json", "{\"error\": \"x\"}".into()));
    assert!(error.contains("no field `openapi`"), "{error}");
    let error = failure(with_type("application/yaml", String::new()));
    assert!(error.contains("empty"), "{error}");
}

#[test]
fn redirects_to_other_hosts_and_endless_ones_write_nothing() {
    let to = |target: &str| {
        let headers = format!("location: {target}\r\n");
        vec![Reply::Response("302 Found", headers, String::new())]
    };
    let error = failure(to("https://login.example/spec.yaml"));
    assert!(
        error.contains("another host") && error.contains("UPSTREAM.toml"),
        "{error}"
    );
    let error = failure(to("/exa-websets-spec.yaml"));
    assert!(error.contains("too many redirects"), "{error}");
}

#[test]
fn specs_that_do_not_generate_write_nothing() {
    let spec = websets_spec().replacen("openapi: '3.1.0'", "openapi: '3.9.0'", 1);
    let error = failure(vec![Reply::document(&spec, "\"a\"")]);
    assert!(
        error.contains("do not generate") && error.contains("from 3.0 to 3.2"),
        "{error}"
    );
}

#[test]
fn unreachable_servers_write_nothing() {
    let workspace = Workspace::new("http://127.0.0.1:1/exa-websets-spec.yaml");
    let before = workspace.files();
    let error = workspace.update().unwrap_err().to_string();
    assert!(
        error.contains("cannot fetch http://127.0.0.1:1/"),
        "{error}"
    );
    assert!(before == workspace.files());
}

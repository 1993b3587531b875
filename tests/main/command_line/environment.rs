//! The variables for the API key and the base URL.

use serde_json::json;

use crate::support::{API_KEY, Program, Recorder, Response};

fn server() -> Recorder {
    Recorder::always(Response::json(200, &json!({})))
}

#[test]
fn nothing_is_sent_without_a_key() {
    let server = server();
    let call = || Program::call(&server, "websets.list", &json!({}));
    call()
        .env_remove("EXA_API_KEY")
        .run()
        .assert_failed(2, &["EXA_API_KEY"]);
    for blank in ["", " ", " \t\n"] {
        call()
            .env("EXA_API_KEY", blank)
            .run()
            .assert_failed(2, &["EXA_API_KEY"]);
    }
    assert!(server.take().is_empty());
}

#[test]
fn key_with_invalid_header_bytes_is_rejected_without_showing_it() {
    let server = server();
    for key in ["secret\nkey-4711", "schlüssel-4711", "secret\u{7f}4711"] {
        let call = Program::call(&server, "websets.list", &json!({}));
        let output = call.env("EXA_API_KEY", key).run();
        output.assert_failed(2, &["key"]);
        assert!(!output.stderr.contains("4711"), "{}", output.stderr);
    }
    assert!(server.take().is_empty());
}

#[test]
fn key_is_trimmed() {
    let server = server();
    let call = Program::call(&server, "websets.list", &json!({}));
    call.env("EXA_API_KEY", &format!(" {API_KEY}\n"))
        .run()
        .json();
    assert_eq!(server.only_request().header("x-api-key"), [API_KEY]);
}

#[test]
fn invalid_base_url_is_rejected_without_showing_it() {
    for address in [
        "api.exa.ai",
        "ftp://127.0.0.1",
        "http://",
        "http://user:hunter2@127.0.0.1",
        "http://127.0.0.1?token=hunter2",
        "http://127.0.0.1#hunter2",
        "http://127.0.0.1:99999",
        "not a url",
    ] {
        let output = Program::new(["call", "websets.list"])
            .env("EXA_BASE_URL", address)
            .run();
        output.assert_failed(2, &["EXA_BASE_URL"]);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
}

#[test]
fn base_url_may_have_a_path() {
    let server = server();
    for slashes in ["", "/", "//"] {
        let address = format!("{}/proxy/exa{slashes}", server.url());
        let arguments = json!({"websetId": "w/1", "limit": 1}).to_string();
        let output = Program::new(["call", "items.list", &arguments])
            .env("EXA_BASE_URL", &address)
            .run();
        assert_eq!(output.code, Some(0), "{output:#?}");
        assert_eq!(
            server.only_request().target,
            "/proxy/exa/websets/v0/websets/w%2F1/items?limit=1"
        );
    }
}

#[test]
fn trailing_slash_of_base_url_is_ignored() {
    let server = server();
    let output = Program::new(["call", "search", r#"{"query":"q"}"#])
        .env("EXA_BASE_URL", &format!("{}/", server.url()))
        .run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert_eq!(server.only_request().target, "/search");
}

//! What the API refuses is told with everything that helps, and never with the key.

use serde_json::{Value, json};

use crate::support::{KEY, Output, Program, Recorder, Reply};

/// Runs a call that is never repeated against a server with this one answer.
fn create(reply: Reply) -> Output {
    let server = Recorder::always(reply);
    let output = Program::call(&server, "search", &json!({"query": "q"})).run();
    assert_eq!(server.take().len(), 1, "the call must not be repeated");
    assert_unshown(&output);
    output
}

#[track_caller]
fn assert_unshown(output: &Output) {
    assert!(!output.stdout.contains(KEY), "{}", output.stdout);
    assert!(!output.stderr.contains(KEY), "{}", output.stderr);
}

#[test]
fn flat_error_is_reported_in_full() {
    let body =
        json!({"requestId": "req-401", "error": "Invalid API key given", "tag": "INVALID_API_KEY"});
    let output = create(Reply::json(401, &body));
    output.assert_failed(
        1,
        &[
            "401",
            "INVALID_API_KEY",
            "req-401",
            "Invalid API key given",
            "EXA_API_KEY",
        ],
    );
}

#[test]
fn legacy_error_is_reported_in_full() {
    let body = json!({
        "statusCode": 404, "timestamp": "2026-04-03T00:00:00Z", "path": "/x",
        "message": "Webset not found", "error": "Not Found",
    });
    let output = create(Reply::json(404, &body).header("x-request-id", "req-404"));
    output.assert_failed(1, &["404", "Webset not found", "req-404"]);
}

#[test]
fn enveloped_error_is_reported_in_full() {
    let body = json!({
        "error": {
            "type": "INVALID_REQUEST",
            "code": "INVALID_OUTPUT_SCHEMA",
            "message": "the schema is too deep",
            "detail": {"path": "outputSchema.properties.a", "limit": 9_007_199_254_740_993_u64},
        },
        "requestId": "req-400",
    });
    let output = create(Reply::json(400, &body));
    output.assert_failed(
        1,
        &[
            "400",
            "INVALID_OUTPUT_SCHEMA",
            "the schema is too deep",
            "req-400",
            "outputSchema.properties.a",
            "9007199254740993",
        ],
    );
}

#[test]
fn all_validation_errors_are_reported() {
    let body = json!({"message": ["count must be positive", "query is too long"], "error": "Bad Request", "statusCode": 400});
    create(Reply::json(400, &body))
        .assert_failed(1, &["400", "count must be positive", "query is too long"]);
}

#[test]
fn gateway_html_page_is_reported_by_title() {
    let page =
        "<html><head><title>502 Bad Gateway</title></head><body><script>x()</script></body></html>";
    let reply = Reply::new(502)
        .header("content-type", "text/html")
        .header("x-request-id", "req-502");
    let output = create(reply.body(page));
    output.assert_failed(1, &["502", "Bad Gateway", "req-502"]);
    assert!(!output.stderr.contains('<'), "{}", output.stderr);
}

#[test]
fn empty_error_body_reports_status() {
    create(Reply::new(500)).assert_failed(1, &["500"]);
    create(Reply::new(418)).assert_failed(1, &["418"]);
    create(Reply::json(400, &Value::Null)).assert_failed(1, &["400"]);
}

#[test]
fn control_characters_in_errors_are_removed() {
    let body =
        json!({"error": "red \u{1b}[31malert\u{7}\u{9b}2J", "requestId": "a\nb", "tag": "T\u{1b}"});
    let output = create(Reply::json(400, &body));
    output.assert_failed(1, &["alert"]);
    let printable = |c: char| c == '\n' || !c.is_control();
    assert!(output.stderr.chars().all(printable), "{:?}", output.stderr);
}

#[test]
fn non_json_success_is_a_failure() {
    let page = "<html><title>Please log in</title></html>";
    let reply = Reply::new(200)
        .header("content-type", "text/html")
        .body(page);
    create(reply).assert_failed(1, &["Please log in", "EXA_BASE_URL"]);
    let cut_off = Reply::new(200)
        .header("content-type", "application/json")
        .body("{\"a\": [1, 2");
    create(cut_off).assert_failed(1, &["JSON"]);
}

#[test]
fn echoed_key_is_redacted() {
    let echo = format!("the key {KEY} is wrong");
    let replies = [
        Reply::json(401, &json!({"error": echo, "tag": KEY, "requestId": KEY})),
        Reply::json(
            400,
            &json!({"error": {"message": echo, "code": KEY, "detail": {KEY: [echo]}}}),
        ),
        Reply::json(400, &json!({"strange": {"shape": KEY}})),
        Reply::new(403)
            .header("x-request-id", KEY)
            .body(echo.clone()),
        Reply::new(403)
            .header("content-type", "text/html")
            .body(format!("<title>{echo}</title>")),
        Reply::new(200)
            .header("content-type", KEY)
            .body(echo.clone()),
        Reply::new(200)
            .header("content-type", "application/json")
            .body(format!("{{\"{KEY}")),
        Reply::new(307).header("location", &format!("http://127.0.0.1:1/{KEY}")),
    ];
    for reply in replies {
        let server = Recorder::always(reply);
        let output = Program::call(&server, "search", &json!({"query": KEY})).run();
        output.assert_failed(1, &[]);
        assert_unshown(&output);
    }
}

#[test]
fn key_echoed_in_redirect_host_is_redacted() {
    let location = format!("http://{KEY}.example/");
    let output = create(Reply::new(307).header("location", &location));
    output.assert_failed(1, &["redirect"]);
}

//! API errors include all helpful details and never the key.

use serde_json::{Value, json};

use crate::support::{API_KEY, Output, Program, Recorder, Response};

/// Runs a call that is never retried against a server with this response.
fn create(response: Response) -> Output {
    let server = Recorder::always(response);
    let output = Program::call(&server, "search", &json!({"query": "q"})).run();
    assert_eq!(server.take().len(), 1, "the call must not be repeated");
    assert_key_hidden(&output);
    output
}

#[track_caller]
fn assert_key_hidden(output: &Output) {
    assert!(!output.stdout.contains(API_KEY), "{}", output.stdout);
    assert!(!output.stderr.contains(API_KEY), "{}", output.stderr);
}

#[test]
fn flat_error_is_reported_in_full() {
    let body =
        json!({"requestId": "req-401", "error": "Invalid API key given", "tag": "INVALID_API_KEY"});
    let output = create(Response::json(401, &body));
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
    let output = create(Response::json(404, &body).header("x-request-id", "req-404"));
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
    let output = create(Response::json(400, &body));
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
    create(Response::json(400, &body))
        .assert_failed(1, &["400", "count must be positive", "query is too long"]);
}

#[test]
fn gateway_html_page_is_reported_by_title() {
    let page =
        "<html><head><title>502 Bad Gateway</title></head><body><script>x()</script></body></html>";
    let response = Response::new(502)
        .header("content-type", "text/html")
        .header("x-request-id", "req-502");
    let output = create(response.body(page));
    output.assert_failed(1, &["502", "Bad Gateway", "req-502"]);
    assert!(!output.stderr.contains('<'), "{}", output.stderr);
}

#[test]
fn empty_error_body_reports_status() {
    create(Response::new(500)).assert_failed(1, &["500"]);
    create(Response::new(418)).assert_failed(1, &["418"]);
    create(Response::json(400, &Value::Null)).assert_failed(1, &["400"]);
}

#[test]
fn control_characters_in_errors_are_removed() {
    let body =
        json!({"error": "red \u{1b}[31malert\u{7}\u{9b}2J", "requestId": "a\nb", "tag": "T\u{1b}"});
    let output = create(Response::json(400, &body));
    output.assert_failed(1, &["alert"]);
    let printable = |c: char| c == '\n' || !c.is_control();
    assert!(output.stderr.chars().all(printable), "{:?}", output.stderr);
}

#[test]
fn non_json_success_is_a_failure() {
    let page = "<html><title>Please log in</title></html>";
    let response = Response::new(200)
        .header("content-type", "text/html")
        .body(page);
    create(response).assert_failed(1, &["Please log in", "EXA_BASE_URL"]);
    let cut_off = Response::new(200)
        .header("content-type", "application/json")
        .body("{\"a\": [1, 2");
    create(cut_off).assert_failed(1, &["JSON"]);
}

#[test]
fn echoed_key_is_redacted() {
    let echo = format!("the key {API_KEY} is wrong");
    let responses = [
        Response::json(
            401,
            &json!({"error": echo, "tag": API_KEY, "requestId": API_KEY}),
        ),
        Response::json(
            400,
            &json!({"error": {"message": echo, "code": API_KEY, "detail": {API_KEY: [echo]}}}),
        ),
        Response::json(400, &json!({"strange": {"shape": API_KEY}})),
        Response::new(403)
            .header("x-request-id", API_KEY)
            .body(echo.clone()),
        Response::new(403)
            .header("content-type", "text/html")
            .body(format!("<title>{echo}</title>")),
        Response::new(200)
            .header("content-type", API_KEY)
            .body(echo.clone()),
        Response::new(200)
            .header("content-type", "application/json")
            .body(format!("{{\"{API_KEY}")),
        Response::new(307).header("location", &format!("http://127.0.0.1:1/{API_KEY}")),
    ];
    for response in responses {
        let server = Recorder::always(response);
        let output = Program::call(&server, "search", &json!({"query": API_KEY})).run();
        output.assert_failed(1, &[]);
        assert_key_hidden(&output);
    }
}

#[test]
fn key_echoed_in_redirect_host_is_redacted() {
    let location = format!("http://{API_KEY}.example/");
    let output = create(Response::new(307).header("location", &location));
    output.assert_failed(1, &["redirect"]);
}

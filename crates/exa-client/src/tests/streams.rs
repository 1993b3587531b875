//! Event streams over real sockets.

use std::sync::Mutex;

use super::*;
use crate::{
    ExaErrorKind, StreamKind, StreamOptions, StreamUpdate,
    test_server::{ScriptedResponse, TestServer},
};

const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");

/// The head of a chunked stream.
fn head() -> ScriptedResponse {
    let chunked = ("transfer-encoding", "chunked");
    ScriptedResponse::head(200, &[EVENTS, chunked, ("x-request-id", "r7")])
}

fn piece(text: &str) -> String {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn last() -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
    let data =
        json!({"choices": [choice], "citations": [{"url": "u"}], "costDollars": {"total": 0.005}});
    format!("data: {data}\n\n")
}

/// The received updates as one text.
type Updates = Arc<Mutex<String>>;

fn listening(context: CallContext, kind: StreamKind) -> (CallContext, Updates) {
    let received = Updates::default();
    let record = received.clone();
    let stream = StreamOptions::new(kind, false, move |received| {
        let mut record = record.lock().unwrap();
        match received {
            StreamUpdate::Text(text) => record.push_str(&text),
            StreamUpdate::Step(step) => *record += &format!("<{step}>"),
        }
    });
    (context.with_stream(stream), received)
}

async fn streamed(
    server: &TestServer,
    kind: StreamKind,
) -> (Result<ExaResponse, ExaError>, String) {
    let (context, received) = listening(context(quick()), kind);
    let outcome = call_with(&server.url(), context, Method::POST).await;
    let received = received.lock().unwrap().clone();
    (outcome, received)
}

/// Returns the error of a stream, which is not retried.
async fn failed(scripted: ScriptedResponse, kind: StreamKind) -> ExaError {
    let server = TestServer::start([scripted]).await;
    let (outcome, _) = streamed(&server, kind).await;
    assert_eq!(server.count(), 1, "no stream is requested twice");
    outcome.unwrap_err()
}

#[tokio::test]
async fn assembles_a_stream_into_one_response() {
    let scripted = head()
        .chunk("\u{feff}")
        .chunk(": keep-alive\n\n")
        .chunk(piece("Exa is "))
        .chunk(": keep-alive\r\n\r\nretry: 5000\r\nid: 7\r\n")
        .chunk(piece("naïve 🙂"))
        .chunk(last())
        .chunk("data: [DONE]\n\n")
        .chunk("");
    let server = TestServer::start([scripted]).await;
    let (outcome, received) = streamed(&server, StreamKind::Answer).await;
    let response = outcome.unwrap();
    assert_eq!(
        response.value,
        json!({"answer": "Exa is naïve 🙂", "citations": [{"url": "u"}], "costDollars": {"total": 0.005},
            "requestId": "r7"})
    );
    assert_eq!(response.request_id.as_deref(), Some("r7"));
    assert_eq!(received, "Exa is naïve 🙂");
    let request = &server.requests()[0];
    assert_eq!(request.header("accept"), Some("text/event-stream"));
    assert_eq!(request.header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn chunk_boundaries_do_not_matter() {
    let whole = format!("{}{}{}data: [DONE]\r\r", piece("ä漢"), piece("🙂"), last());
    let bytes = whole.as_bytes();
    for at in (0..bytes.len()).step_by(7) {
        let scripted = head()
            .chunk(&bytes[..at.max(1)])
            .chunk(&bytes[at.max(1)..])
            .chunk("");
        let server = TestServer::start([scripted]).await;
        let (outcome, _) = streamed(&server, StreamKind::Answer).await;
        assert_eq!(outcome.unwrap().value["answer"], "ä漢🙂", "cut at {at}");
    }
}

#[tokio::test]
async fn a_steady_stream_may_exceed_the_timeout() {
    let mut scripted = head();
    for _ in 0..4 {
        scripted = scripted.chunk(piece("a")).wait(Duration::from_millis(400));
    }
    let server = TestServer::start([scripted.chunk(last()).chunk("")]).await;
    let http = ExaHttp::new(quick()).unwrap();
    let short = CallContext::new(
        http,
        ApiKey::new(KEY).unwrap(),
        Duration::from_millis(1_200),
        Arc::new(Unguarded),
    );
    let (context, _) = listening(short, StreamKind::Answer);
    let response = call_with(&server.url(), context, Method::POST).await;
    assert_eq!(response.unwrap().value["answer"], "aaaa");
}

#[tokio::test]
async fn a_stalled_stream_times_out() {
    let scripted = head().chunk(piece("so far")).wait(Duration::from_secs(20));
    let server = TestServer::start([scripted]).await;
    let http = ExaHttp::new(quick()).unwrap();
    let short = CallContext::new(
        http,
        ApiKey::new(KEY).unwrap(),
        Duration::from_millis(300),
        Arc::new(Unguarded),
    );
    let (context, _) = listening(short, StreamKind::Answer);
    let error = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Timeout);
    assert!(error.message.contains("stalled"), "{error}");
    let received = &error.detail.as_ref().unwrap()["received"];
    assert_eq!(received["partialText"], "so far");
    assert_eq!(error.request_id.as_deref(), Some("r7"));
}

#[tokio::test]
async fn an_endless_stream_times_out() {
    let mut scripted = head();
    for _ in 0..40 {
        scripted = scripted
            .chunk(": keep-alive\n\n")
            .wait(Duration::from_millis(50));
    }
    let server = TestServer::start([scripted]).await;
    let config = ExaConfig {
        max_stream_duration: Duration::from_millis(400),
        ..quick()
    };
    let (context, _) = listening(context(config), StreamKind::Answer);
    let error = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Timeout);
    assert!(
        error.message.contains("not complete after 400 ms"),
        "{error}"
    );
}

#[tokio::test]
async fn a_truncated_stream_reports_what_was_received() {
    let broken = head().chunk(piece("half an "));
    let closed = ScriptedResponse::head(200, &[EVENTS]).send(piece("half an "));
    let ended = head().chunk(piece("half an ")).chunk("");
    for (scripted, kind) in [
        (broken, StreamKind::Answer),
        // Without chunks or a length, truncation cannot be detected.
        (closed, StreamKind::Answer),
        // A search ends with an event.
        (ended, StreamKind::Search),
    ] {
        let error = failed(scripted, kind).await;
        assert_eq!(error.kind, ExaErrorKind::ConnectionLost, "{error}");
        let detail = error.detail.as_ref().unwrap();
        assert_eq!(
            detail["received"],
            json!({"partialText": "half an ", "characters": 8})
        );
        assert!(
            error
                .message
                .ends_with("The part received so far is in `detail`.")
        );
    }
}

#[tokio::test]
async fn an_answer_may_end_without_a_final_event() {
    let scripted = head().chunk(piece("all of it")).chunk("");
    let server = TestServer::start([scripted]).await;
    let (outcome, _) = streamed(&server, StreamKind::Answer).await;
    assert_eq!(outcome.unwrap().value["answer"], "all of it");
}

#[tokio::test]
async fn an_error_event_reports_what_was_received() {
    let failure = json!({"type": "error", "error": {"message": format!("slow down {KEY}"), "code": "RATE_LIMIT", "statusCode": 429}});
    let scripted = head()
        .chunk(piece(&format!("begun {KEY}")))
        .chunk(format!("data: {failure}\n\n"))
        .chunk("");
    let error = failed(scripted, StreamKind::Search).await;
    assert_eq!(
        (error.kind, error.status),
        (ExaErrorKind::Stream, Some(429))
    );
    assert_eq!(error.tag.as_deref(), Some("RATE_LIMIT"));
    assert!(error.message.contains("slow down [redacted]"), "{error}");
    assert_eq!(
        error.detail.as_ref().unwrap()["received"]["partialText"],
        "begun [redacted]"
    );
    assert!(error.to_string().contains("Too many requests"), "{error}");
}

#[tokio::test]
async fn skips_events_that_are_not_json() {
    let scripted = head()
        .chunk(piece("a"))
        .chunk("data: {\"choices\": [{\"del\n\ndata: null\n\ndata: 7\n\ndata:\n\n")
        .chunk(piece("b"))
        .chunk(last())
        .chunk("");
    let server = TestServer::start([scripted]).await;
    let (outcome, _) = streamed(&server, StreamKind::Answer).await;
    let response = outcome.unwrap().value;
    assert_eq!(response["answer"], "ab");
    assert_eq!(response["warnings"][0]["code"], "UNREADABLE_EVENTS");
    let error = failed(
        head().chunk("data: <html>\n\n".repeat(30)).chunk(""),
        StreamKind::Answer,
    )
    .await;
    assert_eq!(error.kind, ExaErrorKind::NotJson);
    assert!(error.message.contains("<html>"), "{error}");
}

#[tokio::test]
async fn tolerates_lone_surrogates() {
    let scripted = head()
        .chunk("data: {\"choices\": [{\"delta\": {\"content\": \"a\\ud83d\"}}]}\n\n")
        .chunk("data: [DONE]\n\n");
    let server = TestServer::start([scripted]).await;
    let (outcome, _) = streamed(&server, StreamKind::Answer).await;
    assert_eq!(outcome.unwrap().value["answer"], "a\u{fffd}");
}

#[tokio::test]
async fn limits_the_size_of_streams() {
    let server = TestServer::start([head().chunk(piece(&"x".repeat(5_000))).chunk("")]).await;
    let config = ExaConfig {
        max_response_bytes: 1_000,
        ..quick()
    };
    let (context, _) = listening(context(config), StreamKind::Answer);
    let error = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::TooLarge);
    let line = format!("data: {}\n", "x".repeat(1_000_000));
    let error = failed(head().chunk(line.repeat(18)).chunk(""), StreamKind::Answer).await;
    assert_eq!(error.kind, ExaErrorKind::TooLarge);
    assert!(error.message.contains("an event"), "{error}");
}

#[tokio::test]
async fn handles_errors_before_a_stream_as_usual() {
    let busy = ScriptedResponse::new(429, &[("retry-after", "0")], r#"{"error":"busy"}"#);
    let done = head().chunk(piece("a")).chunk("data: [DONE]\n\n");
    let server = TestServer::start([busy, done]).await;
    let (outcome, _) = streamed(&server, StreamKind::Answer).await;
    assert_eq!(
        (outcome.unwrap().value["answer"].as_str(), server.count()),
        (Some("a"), 2)
    );
    let error = failed(
        ScriptedResponse::json(400, r#"{"error":"bad query"}"#),
        StreamKind::Answer,
    )
    .await;
    assert_eq!(error.kind, ExaErrorKind::Api(400));
    // A server without streaming support sends the whole response.
    let server = TestServer::start([ScriptedResponse::json(200, r#"{"answer":"whole"}"#)]).await;
    let (outcome, received) = streamed(&server, StreamKind::Answer).await;
    assert_eq!(
        (outcome.unwrap().value, received),
        (json!({"answer": "whole"}), String::new())
    );
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for scripted in [
        ScriptedResponse::default().wait(Duration::from_secs(20)),
        ScriptedResponse::head(
            200,
            &[
                ("content-type", "application/json"),
                ("content-length", "9"),
            ],
        )
        .send("{")
        .wait(Duration::from_secs(20)),
    ] {
        let server = TestServer::start([scripted]).await;
        let http = ExaHttp::new(quick()).unwrap();
        let short = CallContext::new(
            http,
            ApiKey::new(KEY).unwrap(),
            Duration::from_millis(200),
            Arc::new(Unguarded),
        );
        let (context, _) = listening(short, StreamKind::Answer);
        let error = call_with(&server.url(), context, Method::POST)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Timeout);
    }
}

#[tokio::test]
async fn a_truncated_run_is_not_started_twice() {
    let created = json!({"id": "agent_run_1", "object": "agent_run", "status": "queued"});
    let scripted = head().chunk(format!(
        "id: 1\nevent: agent_run.created\ndata: {created}\n\n"
    ));
    let error = failed(scripted, StreamKind::AgentRun).await;
    assert_eq!(error.kind, ExaErrorKind::Stream);
    assert!(!error.is_retryable());
    assert!(
        error.message.contains("agent_run_1 continues at Exa"),
        "{error}"
    );
    assert_eq!(
        error.detail.as_ref().unwrap()["received"]["runId"],
        "agent_run_1"
    );
}

#[tokio::test]
async fn a_cancelled_call_closes_the_connection() {
    let scripted = head().chunk(piece("a")).wait(Duration::from_secs(1));
    let server =
        TestServer::start([scripted.chunk(piece("b")).wait(Duration::from_secs(60))]).await;
    let (context, received) = listening(context(quick()), StreamKind::Answer);
    let url = server.url();
    let call = tokio::spawn(async move { call_with(&url, context, Method::POST).await });
    while received.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    server.closed().await;
    assert_eq!(*received.lock().unwrap(), "a");
}

//! Streams of events over real sockets.

use std::sync::Mutex;

use super::*;
use crate::{
    ExaErrorKind, StreamForm, StreamOptions, StreamUpdate,
    test_server::{Reply, TestServer},
};

const EVENTS: (&str, &str) = ("content-type", "text/event-stream; charset=utf-8");

/// An answer that goes on; what follows are chunks.
fn head() -> Reply {
    let chunked = ("transfer-encoding", "chunked");
    Reply::head(200, &[EVENTS, chunked, ("x-request-id", "r7")])
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

/// What was heard, as one text.
type Text = Arc<Mutex<String>>;

fn listening(context: CallContext, form: StreamForm) -> (CallContext, Text) {
    let heard = Text::default();
    let record = heard.clone();
    let stream = StreamOptions::new(form, false, move |heard| {
        let mut record = record.lock().unwrap();
        match heard {
            StreamUpdate::Text(text) => record.push_str(&text),
            StreamUpdate::Step(words) => *record += &format!("<{words}>"),
        }
    });
    (context.with_stream(stream), heard)
}

async fn streamed(
    server: &TestServer,
    form: StreamForm,
) -> (Result<ExaResponse, ExaError>, String) {
    let (context, heard) = listening(context(quick()), form);
    let outcome = call_with(&server.url(), context, Method::POST).await;
    let heard = heard.lock().unwrap().clone();
    (outcome, heard)
}

/// The error of a stream, which is asked for once and never again.
async fn failed(reply: Reply, form: StreamForm) -> ExaError {
    let server = TestServer::start([reply]).await;
    let (outcome, _) = streamed(&server, form).await;
    assert_eq!(server.count(), 1, "no stream is asked for twice");
    outcome.unwrap_err()
}

#[tokio::test]
async fn a_stream_becomes_one_answer() {
    let reply = head()
        .chunk("\u{feff}")
        .chunk(": keep-alive\n\n")
        .chunk(piece("Exa is "))
        .chunk(": keep-alive\r\n\r\nretry: 5000\r\nid: 7\r\n")
        .chunk(piece("naïve 🙂"))
        .chunk(last())
        .chunk("data: [DONE]\n\n")
        .chunk("");
    let server = TestServer::start([reply]).await;
    let (outcome, heard) = streamed(&server, StreamForm::Answer).await;
    let answer = outcome.unwrap();
    assert_eq!(
        answer.value,
        json!({"answer": "Exa is naïve 🙂", "citations": [{"url": "u"}], "costDollars": {"total": 0.005},
            "requestId": "r7"})
    );
    assert_eq!(answer.request_id.as_deref(), Some("r7"));
    assert_eq!(heard, "Exa is naïve 🙂");
    let seen = &server.seen()[0];
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    assert_eq!(seen.header("x-api-key"), Some(KEY));
}

#[tokio::test]
async fn any_cut_of_the_bytes_gives_the_same_answer() {
    let whole = format!("{}{}{}data: [DONE]\r\r", piece("ä漢"), piece("🙂"), last());
    let bytes = whole.as_bytes();
    for at in (0..bytes.len()).step_by(7) {
        let reply = head()
            .chunk(&bytes[..at.max(1)])
            .chunk(&bytes[at.max(1)..])
            .chunk("");
        let server = TestServer::start([reply]).await;
        let (outcome, _) = streamed(&server, StreamForm::Answer).await;
        assert_eq!(outcome.unwrap().value["answer"], "ä漢🙂", "cut at {at}");
    }
}

#[tokio::test]
async fn a_slow_stream_may_take_longer_than_the_time_limit() {
    let mut reply = head();
    for _ in 0..4 {
        reply = reply.chunk(piece("a")).wait(Duration::from_millis(400));
    }
    let server = TestServer::start([reply.chunk(last()).chunk("")]).await;
    let http = ExaHttp::new(quick()).unwrap();
    let short = CallContext::new(
        http,
        ApiKey::new(KEY).unwrap(),
        Duration::from_millis(1_200),
        Arc::new(Unguarded),
    );
    let (context, _) = listening(short, StreamForm::Answer);
    let answer = call_with(&server.url(), context, Method::POST).await;
    assert_eq!(answer.unwrap().value["answer"], "aaaa");
}

#[tokio::test]
async fn a_silent_stream_is_given_up() {
    let reply = head().chunk(piece("so far")).wait(Duration::from_secs(20));
    let server = TestServer::start([reply]).await;
    let http = ExaHttp::new(quick()).unwrap();
    let short = CallContext::new(
        http,
        ApiKey::new(KEY).unwrap(),
        Duration::from_millis(300),
        Arc::new(Unguarded),
    );
    let (context, _) = listening(short, StreamForm::Answer);
    let error = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Timeout);
    assert!(error.message.contains("fell silent"), "{error}");
    let received = &error.detail.as_ref().unwrap()["received"];
    assert_eq!(received["partialText"], "so far");
    assert_eq!(error.request_id.as_deref(), Some("r7"));
}

#[tokio::test]
async fn a_stream_without_end_is_given_up() {
    let mut reply = head();
    for _ in 0..40 {
        reply = reply
            .chunk(": keep-alive\n\n")
            .wait(Duration::from_millis(50));
    }
    let server = TestServer::start([reply]).await;
    let config = ExaConfig {
        max_stream_duration: Duration::from_millis(400),
        ..quick()
    };
    let (context, _) = listening(context(config), StreamForm::Answer);
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
async fn a_stream_that_breaks_off_keeps_what_came() {
    let broken = head().chunk(piece("half an "));
    let closed = Reply::head(200, &[EVENTS]).send(piece("half an "));
    let ended = head().chunk(piece("half an ")).chunk("");
    for (reply, form) in [
        (broken, StreamForm::Answer),
        // Without chunks or a length, the end of the connection may come at any time.
        (closed, StreamForm::Answer),
        // A search says that it is done.
        (ended, StreamForm::Search),
    ] {
        let error = failed(reply, form).await;
        assert_eq!(error.kind, ExaErrorKind::ConnectionLost, "{error}");
        let told = error.detail.as_ref().unwrap();
        assert_eq!(
            told["received"],
            json!({"partialText": "half an ", "characters": 8})
        );
        assert!(
            error
                .message
                .ends_with("What had come until then is told as `detail`.")
        );
    }
}

#[tokio::test]
async fn an_answer_may_end_without_a_word() {
    let reply = head().chunk(piece("all of it")).chunk("");
    let server = TestServer::start([reply]).await;
    let (outcome, _) = streamed(&server, StreamForm::Answer).await;
    assert_eq!(outcome.unwrap().value["answer"], "all of it");
}

#[tokio::test]
async fn a_failure_in_the_middle_is_told_with_what_came() {
    let told = json!({"type": "error", "error": {"message": format!("slow down {KEY}"), "code": "RATE_LIMIT", "statusCode": 429}});
    let reply = head()
        .chunk(piece(&format!("begun {KEY}")))
        .chunk(format!("data: {told}\n\n"))
        .chunk("");
    let error = failed(reply, StreamForm::Search).await;
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
async fn events_that_are_no_json_are_left_out_and_told() {
    let reply = head()
        .chunk(piece("a"))
        .chunk("data: {\"choices\": [{\"del\n\ndata: null\n\ndata: 7\n\ndata:\n\n")
        .chunk(piece("b"))
        .chunk(last())
        .chunk("");
    let server = TestServer::start([reply]).await;
    let (outcome, _) = streamed(&server, StreamForm::Answer).await;
    let answer = outcome.unwrap().value;
    assert_eq!(answer["answer"], "ab");
    assert_eq!(answer["warnings"][0]["code"], "UNREADABLE_EVENTS");
    let error = failed(
        head().chunk("data: <html>\n\n".repeat(30)).chunk(""),
        StreamForm::Answer,
    )
    .await;
    assert_eq!(error.kind, ExaErrorKind::NotJson);
    assert!(error.message.contains("<html>"), "{error}");
}

#[tokio::test]
async fn half_characters_do_not_cost_the_event() {
    let reply = head()
        .chunk("data: {\"choices\": [{\"delta\": {\"content\": \"a\\ud83d\"}}]}\n\n")
        .chunk("data: [DONE]\n\n");
    let server = TestServer::start([reply]).await;
    let (outcome, _) = streamed(&server, StreamForm::Answer).await;
    assert_eq!(outcome.unwrap().value["answer"], "a\u{fffd}");
}

#[tokio::test]
async fn streams_are_bounded() {
    let server = TestServer::start([head().chunk(piece(&"x".repeat(5_000))).chunk("")]).await;
    let config = ExaConfig {
        max_response_bytes: 1_000,
        ..quick()
    };
    let (context, _) = listening(context(config), StreamForm::Answer);
    let error = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::TooLarge);
    let line = format!("data: {}\n", "x".repeat(1_000_000));
    let error = failed(head().chunk(line.repeat(18)).chunk(""), StreamForm::Answer).await;
    assert_eq!(error.kind, ExaErrorKind::TooLarge);
    assert!(error.message.contains("an event"), "{error}");
}

#[tokio::test]
async fn what_comes_before_a_stream_is_handled_as_always() {
    let busy = Reply::new(429, &[("retry-after", "0")], r#"{"error":"busy"}"#);
    let done = head().chunk(piece("a")).chunk("data: [DONE]\n\n");
    let server = TestServer::start([busy, done]).await;
    let (outcome, _) = streamed(&server, StreamForm::Answer).await;
    assert_eq!(
        (outcome.unwrap().value["answer"].as_str(), server.count()),
        (Some("a"), 2)
    );
    let error = failed(
        Reply::json(400, r#"{"error":"bad query"}"#),
        StreamForm::Answer,
    )
    .await;
    assert_eq!(error.kind, ExaErrorKind::Api(400));
    // A server that knows no streams answers as a whole.
    let server = TestServer::start([Reply::json(200, r#"{"answer":"whole"}"#)]).await;
    let (outcome, heard) = streamed(&server, StreamForm::Answer).await;
    assert_eq!(
        (outcome.unwrap().value, heard),
        (json!({"answer": "whole"}), String::new())
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    for reply in [
        Reply::default().wait(Duration::from_secs(20)),
        Reply::head(
            200,
            &[
                ("content-type", "application/json"),
                ("content-length", "9"),
            ],
        )
        .send("{")
        .wait(Duration::from_secs(20)),
    ] {
        let server = TestServer::start([reply]).await;
        let http = ExaHttp::new(quick()).unwrap();
        let short = CallContext::new(
            http,
            ApiKey::new(KEY).unwrap(),
            Duration::from_millis(200),
            Arc::new(Unguarded),
        );
        let (context, _) = listening(short, StreamForm::Answer);
        let error = call_with(&server.url(), context, Method::POST)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Timeout);
    }
}

#[tokio::test]
async fn a_run_whose_stream_breaks_off_is_not_started_twice() {
    let created = json!({"id": "agent_run_1", "object": "agent_run", "status": "queued"});
    let reply = head().chunk(format!(
        "id: 1\nevent: agent_run.created\ndata: {created}\n\n"
    ));
    let error = failed(reply, StreamForm::AgentRun).await;
    assert_eq!(error.kind, ExaErrorKind::Stream);
    assert!(!error.is_retryable());
    assert!(
        error.message.contains("agent_run_1 goes on at Exa"),
        "{error}"
    );
    assert_eq!(
        error.detail.as_ref().unwrap()["received"]["runId"],
        "agent_run_1"
    );
}

#[tokio::test]
async fn who_goes_away_closes_the_connection() {
    let reply = head().chunk(piece("a")).wait(Duration::from_secs(1));
    let server = TestServer::start([reply.chunk(piece("b")).wait(Duration::from_secs(60))]).await;
    let (context, heard) = listening(context(quick()), StreamForm::Answer);
    let url = server.url();
    let call = tokio::spawn(async move { call_with(&url, context, Method::POST).await });
    while heard.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    server.closed().await;
    assert_eq!(*heard.lock().unwrap(), "a");
}

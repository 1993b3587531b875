//! Answers that come as a stream of events, through the real program.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{KEY, McpServer, Part, Program, Recorder, Reply, Sandbox, USUAL};

fn event(data: &Value) -> Part {
    Part::text(format!("data: {data}\n\n"))
}

/// A piece of text as chat completions send it.
fn chat(text: &str) -> Part {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

fn done() -> Part {
    Part::text("data: [DONE]\n\n")
}

/// A server whose upstream answers everything with this stream.
fn streaming(parts: Vec<Part>) -> (McpServer, Recorder) {
    let recorder = Recorder::always(Reply::events(parts));
    (
        McpServer::recorded(&recorder, &["--tools", "default,toolhost"]),
        recorder,
    )
}

fn ask(question: &str) -> Value {
    json!({"operation": "answer", "args": {"query": question, "stream": true}})
}

/// The text that the steps told together.
fn told(steps: &[Value]) -> String {
    let message = |step: &Value| step["message"].as_str().expect("a message").to_owned();
    steps.iter().map(message).collect()
}

#[track_caller]
fn assert_rising(steps: &[Value]) {
    let numbers: Vec<f64> = steps
        .iter()
        .map(|step| step["progress"].as_f64().expect("a number"))
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
}

#[test]
fn answer_streams_progress_and_completes() {
    let mut parts = vec![Part::text(": hello\n\n")];
    for word in ["Exa ", "was ", "founded ", "in ", "2021. 🙂"] {
        parts.extend([chat(word), Part::Pause(Duration::from_millis(150))]);
    }
    let page = json!({"id": "https://exa.ai", "url": "https://exa.ai", "title": "Exa"});
    parts.push(event(
        &json!({"citations": [page], "costDollars": {"total": 0.005}}),
    ));
    parts.push(done());
    let (mut server, recorder) = streaming(parts);
    let (steps, outcome) = server.call_heard("exa_api", ask("When?"));
    let answer = outcome.success();
    assert_eq!(answer["answer"], "Exa was founded in 2021. 🙂");
    assert_eq!(answer["citations"], json!([page]));
    assert_eq!(answer["costDollars"]["total"], 0.005);
    assert_rising(&steps);
    assert!(steps.len() >= 3, "{steps:?}");
    assert_eq!(told(&steps), "Exa was founded in 2021. 🙂");
    assert_eq!(steps.last().expect("steps")["progress"], 26.0);
    let request = recorder.only();
    assert_eq!(
        request.json(),
        Some(json!({"query": "When?", "stream": true}))
    );
    assert_eq!(request.header("accept"), ["text/event-stream"]);
    // Without a token nobody is told anything.
    let plain = server.call("exa_api", ask("When?")).success();
    assert_eq!(plain["answer"], answer["answer"]);
    server.assert_silent();
}

#[test]
fn search_with_typed_events_completes() {
    let grounding = json!([{"field": "content", "citations": [{"url": "https://a.example"}]}]);
    let (mut server, _recorder) = streaming(vec![
        event(
            &json!({"type": "results", "requestId": "req_1", "results": [{"url": "https://a.example", "title": "A"}]}),
        ),
        event(&json!({"type": "text-delta", "delta": "wrong"})),
        event(&json!({"type": "stream-reset", "streamReset": true})),
        event(&json!({"type": "text-delta", "delta": "right"})),
        Part::text(": still here\r\n\r\n"),
        event(&json!({"type": "grounding", "grounding": grounding})),
        event(&json!({"type": "done", "searchTime": 3, "costDollars": {"total": 0.01}})),
    ]);
    let call = json!({"operation": "search", "args": {"query": "q", "stream": true}});
    let (steps, outcome) = server.call_heard("exa_api", call);
    let answer = outcome.success();
    assert_eq!(
        answer["results"],
        json!([{"url": "https://a.example", "title": "A"}])
    );
    assert_eq!(
        answer["output"],
        json!({"content": "right", "grounding": grounding})
    );
    assert_eq!(
        (&answer["requestId"], &answer["searchTime"]),
        (&json!("req_1"), &json!(3))
    );
    assert_rising(&steps);
}

#[test]
fn sandbox_streams_the_same_result() {
    let mut server = McpServer::sandboxed(&["--tools", "default,toolhost"]);
    let asked = json!({"operation": "answer", "args": {"query": "heat pumps"}});
    let whole = server.call("exa_api", asked).success();
    let (steps, outcome) = server.call_heard("exa_api", ask("heat pumps"));
    let streamed = outcome.success();
    assert_eq!(streamed["answer"], whole["answer"]);
    assert_eq!(streamed["citations"], whole["citations"]);
    assert!(streamed["requestId"].is_string(), "{streamed}");
    assert_eq!(told(&steps), whole["answer"].as_str().expect("a text"));
    let call = json!({"operation": "stream_answer", "params": {"question": "heat pumps"}});
    let (steps, outcome) = server.call_heard("exa-async", call);
    assert_eq!(outcome.success()["answer"], whole["answer"]);
    assert!(!steps.is_empty());
    assert_rising(&steps);
    let search = json!({"operation": "search", "args": {"query": "heat pumps", "numResults": 3, "stream": true}});
    let found = server.call("exa_api", search).success();
    assert_eq!(found["results"].as_array().map(Vec::len), Some(3));
    assert!(found["output"]["content"].is_string(), "{found}");
}

#[test]
fn runs_and_research_are_followed_by_their_events() {
    let mut server = McpServer::sandboxed(&["--tools", "granular"]);
    let run = json!({"query": "makers of heat pumps", "effort": "minimal", "stream": true});
    let (steps, outcome) = server.call_heard("agent_runs_create", run);
    let run = outcome.success();
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["object"], "agent_run");
    assert!(run["output"]["text"].is_string(), "{run}");
    assert_rising(&steps);
    assert!(told(&steps).contains("source.added"), "{steps:?}");
    let failing = json!({"query": "sandbox-fail", "effort": "minimal", "stream": true});
    let run = server.call("agent_runs_create", failing).success();
    assert_eq!(run["status"], "failed");
    let task = server
        .call("research_create", json!({"instructions": "heat pumps"}))
        .success();
    let id = task["result"]["researchId"]
        .as_str()
        .or(task["researchId"].as_str());
    let look = json!({"researchId": id.expect("an id"), "stream": true});
    let (steps, outcome) = server.call_heard("research_get", look);
    let task = outcome.success();
    assert_eq!(task["status"], "completed", "{task}");
    assert!(task["output"]["content"].is_string(), "{task}");
    assert!(told(&steps).contains("plan-operation"), "{steps:?}");
}

#[test]
fn streamed_answer_follows_the_output_schema() {
    let (mut server, _recorder) = streaming(vec![chat("{\"year\":"), chat(" 2021}"), done()]);
    let schema = json!({"type": "object", "properties": {"year": {"type": "integer"}}});
    let call = json!({"operation": "answer", "args": {"query": "q", "stream": true, "outputSchema": schema}});
    let answer = server.call("exa_api", call).success();
    assert_eq!(answer["answer"], json!({"year": 2021}));
}

#[test]
fn mid_stream_failure_reports_partial_result() {
    let failure = json!({"tag": "ERROR", "payload": {"error": {"message": "ran out of luck", "code": "INTERNAL_ERROR"}, "requestId": "req_9"}});
    let (mut server, recorder) =
        streaming(vec![chat("Half an answer"), event(&failure), chat(" more")]);
    let failure = server.call("exa_api", ask("q")).failure();
    failure.assert_code(-32000, "API_ERROR");
    failure.assert_says(&[
        "reported a failure during the stream",
        "ran out of luck",
        "Half an answer",
        "req_9",
    ]);
    assert_eq!(
        failure.error["detail"]["received"]["partialText"],
        "Half an answer"
    );
    assert_eq!(
        recorder.take().len(),
        1,
        "a stream is never asked for twice"
    );
}

#[test]
fn started_stream_is_not_retried_with_another_key() {
    let failure = json!({"error": "no more credits", "tag": "NO_MORE_CREDITS", "statusCode": 402});
    let recorder = Recorder::always(Reply::events([chat("Half"), event(&failure)]));
    let program = Program::new([])
        .without("EXA_API_KEY")
        .env("EXA_API_KEYS", "one-test-key-0001,one-test-key-0002")
        .env("EXA_BASE_URL", &recorder.url());
    let mut server = McpServer::connect(program, USUAL);
    let failure = server.call("exa_api", ask("q")).failure();
    failure.assert_says(&["no more credits", "Half", "Top up"]);
    assert_eq!(
        recorder.take().len(),
        1,
        "a stream is never asked for twice"
    );
}

#[test]
fn cut_stream_reports_partial_result() {
    let (mut server, recorder) = streaming(vec![chat("Half an answer"), Part::Cut]);
    let failure = server.call("exa_api", ask("q")).failure();
    failure.assert_code(-32000, "API_ERROR");
    failure.assert_says(&["was cut off", "Half an answer"]);
    assert_eq!(
        recorder.take().len(),
        1,
        "a stream is never asked for twice"
    );
    // The sandbox cuts a stream after its first event.
    let sandbox = Sandbox::start();
    let mut server = McpServer::upstream(&sandbox.url(), &[]);
    sandbox.fault("answer", "cut=body");
    let failure = server.call("exa_api", ask("heat pumps")).failure();
    failure.assert_says(&["was cut off", "partialText"]);
    // A run that was started goes on, and must not be started again.
    sandbox.fault("agent.runs.create", "cut=body");
    let run = json!({"operation": "agent.runs.create", "args": {"query": "q", "stream": true}});
    let failure = server.call("exa_api", run).failure();
    failure.assert_says(&["agent_run_", "continues at Exa", "agent.runs.get"]);
    assert_eq!(failure.error["retryable"], false);
    let id = failure.error["detail"]["received"]["runId"].clone();
    let look = json!({"operation": "agent.runs.get", "args": {"runId": id}});
    assert_eq!(server.call("exa_api", look).success()["id"], id);
}

#[test]
fn malformed_events_are_skipped_and_reported() {
    let (mut server, _recorder) = streaming(vec![
        chat("one "),
        Part::text("data: {\"choices\": [{\"delta\n\n"),
        chat("two"),
        done(),
    ]);
    let outcome = server.call("exa_api", ask("q")).envelope();
    assert_eq!(outcome["answer"], "one two");
    assert!(
        outcome.to_string().contains("could not be read"),
        "{outcome}"
    );
    let (mut server, _recorder) = streaming(vec![Part::text("data: nonsense\n\n".repeat(50))]);
    let failure = server.call("exa_api", ask("q")).failure();
    failure.assert_says(&["not JSON", "nonsense"]);
}

#[test]
fn progress_is_sanitized() {
    let (first, second) = KEY.split_at(9);
    let (mut server, _recorder) = streaming(vec![
        chat(&format!("\u{1b}[2Jred {first}")),
        Part::Pause(Duration::from_millis(300)),
        chat(second),
        Part::Pause(Duration::from_millis(300)),
        chat(&format!(" {}", "x".repeat(20_000))),
        done(),
    ]);
    let (steps, outcome) = server.call_heard("exa_api", ask("q"));
    let steps = json!(steps).to_string();
    assert!(!steps.contains(first) && !steps.contains(second), "{steps}");
    assert!(
        !steps.contains("\\u001b") && steps.contains("[redacted]"),
        "{steps}"
    );
    assert!(steps.len() < 5_000, "{}", steps.len());
    assert!(!outcome.text.contains(KEY));
}

#[test]
fn cancelling_stops_progress_and_closes_the_connection() {
    let (sender, closed) = channel();
    let (mut server, _recorder) = streaming(vec![chat("begun"), Part::Silence(sender)]);
    let meta = json!({"progressToken": "p"});
    let params = json!({"name": "exa_api", "arguments": ask("q"), "_meta": meta});
    let id = server.send("tools/call", params);
    let step = server.next();
    assert_eq!(step["params"]["message"], "begun", "{step}");
    server.notify("notifications/cancelled", json!({"requestId": id}));
    let waited = closed.recv_timeout(Duration::from_secs(20));
    waited.expect("the connection is closed");
    assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
    server.assert_silent();
}

#[test]
fn cli_prints_the_whole_streamed_answer() {
    let recorder = Recorder::always(Reply::events([chat("whole"), done()]));
    let answer = Program::call(&recorder, "answer", &json!({"query": "q", "stream": true}));
    assert_eq!(answer.run().json()["answer"], "whole");
}

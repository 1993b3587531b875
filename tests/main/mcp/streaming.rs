//! Streaming responses.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    API_KEY, DEFAULT_VERSION, McpServer, Part, Program, Recorder, Response, Sandbox,
};

fn event(data: &Value) -> Part {
    Part::text(format!("data: {data}\n\n"))
}

/// Returns an event with text in the format of chat completions.
fn chat(text: &str) -> Part {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

fn done() -> Part {
    Part::text("data: [DONE]\n\n")
}

/// Starts a server whose upstream always sends this stream.
fn streaming(parts: Vec<Part>) -> (McpServer, Recorder) {
    let recorder = Recorder::always(Response::events(parts));
    (
        McpServer::with_recorder(&recorder, &["--tools", "default,toolhost"]),
        recorder,
    )
}

fn send_request(question: &str) -> Value {
    json!({"operation": "answer", "args": {"query": question, "stream": true}})
}

/// Returns the concatenated text of progress notifications.
fn progress_text(steps: &[Value]) -> String {
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
    let (steps, outcome) = server.call_with_progress("exa_api", send_request("When?"));
    let response = outcome.success();
    assert_eq!(response["answer"], "Exa was founded in 2021. 🙂");
    assert_eq!(response["citations"][0]["title"], page["title"]);
    assert_eq!(response["citations"][0]["author"], json!(null));
    assert_eq!(response["costDollars"]["total"], 0.005);
    assert_rising(&steps);
    assert!(steps.len() >= 3, "{steps:?}");
    assert_eq!(progress_text(&steps), "Exa was founded in 2021. 🙂");
    assert_eq!(steps.last().expect("steps")["progress"], 26.0);
    let request = recorder.only_request();
    assert_eq!(
        request.json(),
        Some(json!({"query": "When?", "stream": true}))
    );
    assert_eq!(request.header("accept"), ["text/event-stream"]);
    // Without a progress token there are no notifications.
    let plain = server.call("exa_api", send_request("When?")).success();
    assert_eq!(plain["answer"], response["answer"]);
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
    let (steps, outcome) = server.call_with_progress("exa_api", call);
    let response = outcome.success();
    assert_eq!(
        response["results"],
        json!([{"url": "https://a.example", "title": "A"}])
    );
    assert_eq!(
        response["output"],
        json!({"content": "right", "grounding": grounding})
    );
    assert_eq!(
        (&response["requestId"], &response["searchTime"]),
        (&json!("req_1"), &json!(3))
    );
    assert_rising(&steps);
}

#[test]
fn sandbox_streams_the_same_result() {
    let mut server = McpServer::sandboxed(&["--tools", "default,toolhost"]);
    let call = json!({"operation": "answer", "args": {"query": "heat pumps"}});
    let whole = server.call("exa_api", call).success();
    let (steps, outcome) = server.call_with_progress("exa_api", send_request("heat pumps"));
    let streamed = outcome.success();
    assert_eq!(streamed["answer"], whole["answer"]);
    assert_eq!(streamed["citations"], whole["citations"]);
    assert!(streamed["requestId"].is_string(), "{streamed}");
    assert_eq!(
        progress_text(&steps),
        whole["answer"].as_str().expect("a string")
    );
    let call = json!({"operation": "stream_answer", "params": {"question": "heat pumps"}});
    let (steps, outcome) = server.call_with_progress("exa-async", call);
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
    let (steps, outcome) = server.call_with_progress("agent_runs_create", run);
    let run = outcome.success();
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["object"], "agent_run");
    assert!(run["output"]["text"].is_string(), "{run}");
    assert_rising(&steps);
    assert!(progress_text(&steps).contains("source.added"), "{steps:?}");
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
    let (steps, outcome) = server.call_with_progress("research_get", look);
    let task = outcome.success();
    assert_eq!(task["status"], "completed", "{task}");
    assert!(task["output"]["content"].is_string(), "{task}");
    assert!(
        progress_text(&steps).contains("plan-operation"),
        "{steps:?}"
    );
}

#[test]
fn streamed_answer_follows_the_output_schema() {
    let (mut server, _recorder) = streaming(vec![chat("{\"year\":"), chat(" 2021}"), done()]);
    let schema = json!({"type": "object", "properties": {"year": {"type": "integer"}}});
    let call = json!({"operation": "answer", "args": {"query": "q", "stream": true, "outputSchema": schema}});
    let response = server.call("exa_api", call).success();
    assert_eq!(response["answer"], json!({"year": 2021}));
}

#[test]
fn mid_stream_failure_reports_partial_result() {
    let failure = json!({"tag": "ERROR", "payload": {"error": {"message": "ran out of luck", "code": "INTERNAL_ERROR"}, "requestId": "req_9"}});
    let (mut server, recorder) =
        streaming(vec![chat("Half an answer"), event(&failure), chat(" more")]);
    let failure = server.call("exa_api", send_request("q")).failure();
    failure.assert_code(-32000, "API_ERROR");
    failure.assert_contains(&[
        "reported a failure during the stream",
        "ran out of luck",
        "Half an answer",
        "req_9",
    ]);
    assert_eq!(
        failure.error["detail"]["received"]["partialText"],
        "Half an answer"
    );
    assert_eq!(recorder.take().len(), 1, "a stream is never retried");
}

#[test]
fn started_stream_is_not_retried_with_another_key() {
    let failure = json!({"error": "no more credits", "tag": "NO_MORE_CREDITS", "statusCode": 402});
    let recorder = Recorder::always(Response::events([chat("Half"), event(&failure)]));
    let program = Program::new([])
        .env_remove("EXA_API_KEY")
        .env("EXA_API_KEYS", "one-test-key-0001,one-test-key-0002")
        .env("EXA_BASE_URL", &recorder.url());
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let failure = server.call("exa_api", send_request("q")).failure();
    failure.assert_contains(&["no more credits", "Half", "Top up"]);
    assert_eq!(recorder.take().len(), 1, "a stream is never retried");
}

#[test]
fn cut_stream_reports_partial_result() {
    let (mut server, recorder) = streaming(vec![chat("Half an answer"), Part::Disconnect]);
    let failure = server.call("exa_api", send_request("q")).failure();
    failure.assert_code(-32000, "API_ERROR");
    failure.assert_contains(&["was cut off", "Half an answer"]);
    assert_eq!(recorder.take().len(), 1, "a stream is never retried");
    // The sandbox closes a stream after its first event.
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    sandbox.fault("answer", "cut=body");
    let failure = server.call("exa_api", send_request("heat pumps")).failure();
    failure.assert_contains(&["was cut off", "partialText"]);
    // A started run continues, and must not be started again.
    sandbox.fault("agent.runs.create", "cut=body");
    sandbox.fault("agent.runs.events.list", "status=404");
    let run = json!({"operation": "agent.runs.create", "args": {"query": "q", "stream": true}});
    let failure = server.call("exa_api", run).failure();
    failure.assert_contains(&["agent_run_", "continues at Exa", "agent.runs.get"]);
    assert_eq!(failure.error["retryable"], false);
    let id = failure.error["detail"]["received"]["runId"].clone();
    let look = json!({"operation": "agent.runs.get", "args": {"runId": id}});
    assert_eq!(server.call("exa_api", look).success()["id"], id);
}

/// Returns the `Last-Event-ID` headers of the requests for the events of a run.
fn last_event_ids(sandbox: &Sandbox) -> Vec<Value> {
    let requests = sandbox.requests("agent.runs.events.list");
    let mut streams = requests
        .iter()
        .filter(|it| it["headers"]["accept"] == "text/event-stream");
    let ids = streams
        .by_ref()
        .map(|it| it["headers"]["last-event-id"].clone());
    ids.collect()
}

#[test]
fn broken_run_stream_is_resumed_after_the_last_event() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    // Each of these streams ends after its first event.
    sandbox.fault("agent.runs.create", "cut=body");
    let breaks = json!({"match": "agent.runs.events.list", "times": 2, "fault": "cut=body"});
    sandbox.add_fault(&breaks);
    let args = json!({"query": "makers of heat pumps", "effort": "minimal", "stream": true});
    let call = json!({"operation": "agent.runs.create", "args": args});
    let (steps, outcome) = server.call_with_progress("exa_api", call);
    let run = outcome.success();
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(sandbox.requests("agent.runs.create").len(), 1);
    let ids = last_event_ids(&sandbox);
    assert!(ids.len() >= 3, "{ids:?}");
    // No event is lost or repeated: all but the last one, which is the result, are steps.
    let list =
        json!({"operation": "agent.runs.events.list", "args": {"runId": run["id"], "limit": 100}});
    let events = server.call("exa_api", list).success()["data"].clone();
    let events = events.as_array().expect("events");
    assert_eq!(ids[0], events[0]["id"], "{events:?}");
    let counted = steps.last().expect("a step")["progress"].as_f64();
    assert_eq!(counted, Some((events.len() - 1) as f64), "{steps:?}");
    let sources = |text: &str| text.matches("source.added").count();
    assert_eq!(
        sources(&progress_text(&steps)),
        sources(&json!(events).to_string())
    );
    assert_rising(&steps);
}

#[test]
fn broken_replay_is_resumed_after_the_last_event() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    let args = json!({"query": "makers of heat pumps", "effort": "minimal", "stream": true});
    let call = json!({"operation": "agent.runs.create", "args": args});
    let run = server.call("exa_api", call).success()["id"].clone();
    let list = json!({"operation": "agent.runs.events.list", "args": {"runId": run, "limit": 100}});
    let stored = server.call("exa_api", list).success()["data"].clone();
    let ids = |list: &Value| -> Vec<Value> {
        let list = list.as_array().expect("a list");
        list.iter().map(|event| event["id"].clone()).collect()
    };
    let stored = ids(&stored);
    let breaks = json!({"match": "agent.runs.events.list", "times": 2, "fault": "cut=body"});
    sandbox.add_fault(&breaks);
    let args = json!({"runId": run, "lastEventId": stored[0]});
    let call = json!({"operation": "agent.runs.events.list", "args": args});
    let replayed = server.call("exa_api", call).success()["data"].clone();
    assert_eq!(ids(&replayed), stored[1..]);
    assert_eq!(last_event_ids(&sandbox), stored[..3]);
}

/// Returns an event of a run with its number as id.
fn run_event(number: u64, name: &str, data: &Value) -> Part {
    Part::text(format!("id: {number}\nevent: {name}\ndata: {data}\n\n"))
}

/// A server may send events again, although it was told the last one.
#[test]
fn repeated_events_of_a_resumed_stream_are_skipped() {
    let run = json!({"id": "agent_run_1", "object": "agent_run", "status": "running"});
    let done = json!({"id": "agent_run_1", "object": "agent_run", "status": "completed"});
    let created = || run_event(1, "agent_run.created", &run);
    let source = |number, title: &str| {
        let data = json!({"source": {"title": title}});
        run_event(number, "agent_run.source.added", &data)
    };
    let recorder = Recorder::responses([
        Response::events([created(), source(2, "One"), Part::Disconnect]),
        Response::events([created(), source(2, "One"), source(3, "Two")]),
        Response::events([source(3, "Two"), run_event(4, "agent_run.completed", &done)]),
    ]);
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let args = json!({"query": "makers of heat pumps", "stream": true});
    let call = json!({"operation": "agent.runs.create", "args": args});
    let (steps, outcome) = server.call_with_progress("exa_api", call);
    assert_eq!(outcome.success()["status"], "completed");
    assert_eq!(steps.last().expect("a step")["progress"], 3.0, "{steps:?}");
    let requests = recorder.take();
    let methods: Vec<&str> = requests.iter().map(|it| it.method.as_str()).collect();
    assert_eq!(methods, ["POST", "GET", "GET"]);
    assert_eq!(requests[1].path(), "/agent/runs/agent_run_1/events");
    assert_eq!(requests[1].header("last-event-id"), ["2"]);
    assert_eq!(requests[2].header("last-event-id"), ["3"]);
}

#[test]
fn malformed_events_are_skipped_and_reported() {
    let (mut server, _recorder) = streaming(vec![
        chat("one "),
        Part::text("data: {\"choices\": [{\"delta\n\n"),
        chat("two"),
        done(),
    ]);
    let outcome = server.call("exa_api", send_request("q")).envelope();
    assert_eq!(outcome["answer"], "one two");
    assert!(
        outcome.to_string().contains("could not be read"),
        "{outcome}"
    );
    let (mut server, _recorder) = streaming(vec![Part::text("data: nonsense\n\n".repeat(50))]);
    let failure = server.call("exa_api", send_request("q")).failure();
    failure.assert_contains(&["not JSON", "nonsense"]);
}

#[test]
fn progress_is_sanitized() {
    let (first, second) = API_KEY.split_at(9);
    let (mut server, _recorder) = streaming(vec![
        chat(&format!("\u{1b}[2Jred {first}")),
        Part::Pause(Duration::from_millis(300)),
        chat(second),
        Part::Pause(Duration::from_millis(300)),
        chat(&format!(" {}", "x".repeat(20_000))),
        done(),
    ]);
    let (steps, outcome) = server.call_with_progress("exa_api", send_request("q"));
    let steps = json!(steps).to_string();
    assert!(!steps.contains(first) && !steps.contains(second), "{steps}");
    assert!(
        !steps.contains("\\u001b") && steps.contains("[redacted]"),
        "{steps}"
    );
    assert!(steps.len() < 5_000, "{}", steps.len());
    assert!(!outcome.text.contains(API_KEY));
}

#[test]
fn cancelling_stops_progress_and_closes_the_connection() {
    let (sender, closed) = channel();
    let (mut server, _recorder) = streaming(vec![chat("begun"), Part::WaitForClose(sender)]);
    let meta = json!({"progressToken": "p"});
    let params = json!({"name": "exa_api", "arguments": send_request("q"), "_meta": meta});
    let id = server.send("tools/call", params);
    let step = server.next();
    assert_eq!(step["params"]["message"], "begun", "{step}");
    server.notify("notifications/cancelled", json!({"requestId": id}));
    let waited = closed.recv_timeout(Duration::from_secs(20));
    waited.expect("the connection is closed");
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    server.assert_silent();
}

#[test]
fn cli_prints_the_whole_streamed_answer() {
    let recorder = Recorder::always(Response::events([chat("whole"), done()]));
    let response = Program::call(&recorder, "answer", &json!({"query": "q", "stream": true}));
    assert_eq!(response.run().json()["answer"], "whole");
}

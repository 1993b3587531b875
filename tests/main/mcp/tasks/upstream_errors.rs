//! Errors during long-running work: every task ends with a status.

use serde_json::{Value, json};

use super::{
    WORK_MS, request_task, research, result, sandbox_and_server, single_result, start_task, state,
    webset,
};
use crate::support::{McpServer, Recorder, Response, Sandbox};

/// Starts research and waits for the first poll.
fn start_research(sandbox: &Sandbox, server: &mut McpServer) -> String {
    sandbox.freeze(true);
    let id = start_task(server, research("heat pumps"));
    sandbox.await_requests("research.get", 1);
    id
}

#[track_caller]
fn assert_completed(server: &mut McpServer, id: &str) {
    let result = result(server, id);
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(single_result(&result)["status"], "completed", "{result}");
    assert_eq!(state(server, id)["status"], "completed");
}

/// Returns the error of a failed task.
#[track_caller]
fn failure(server: &mut McpServer, id: &str) -> Value {
    let result = result(server, id);
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(state(server, id)["status"], "failed");
    let text = result["content"][0]["text"].as_str().expect("a string");
    let error = result["structuredContent"]["error"].clone();
    let message = error["message"].as_str().expect("a message");
    assert!(text.contains(message), "{text}");
    error
}

#[test]
fn transient_errors_are_retried() {
    for fault in [
        "status=429",
        "status=429;retryAfter=1",
        "status=500",
        "status=503",
        "cut=before",
        "cut=body",
        "malformed",
        "html",
        "html=200",
        "empty",
    ] {
        let (sandbox, mut server) = sandbox_and_server();
        let id = start_research(&sandbox, &mut server);
        let rule = json!({"match": "research.get", "times": 2, "fault": fault});
        sandbox.add_fault(&rule);
        sandbox.advance(WORK_MS);
        let looks = sandbox.await_requests("research.get", 4);
        assert_completed(&mut server, &id);
        assert_eq!(looks.len(), 4, "{fault}");
    }
}

#[test]
fn polling_honors_retry_after() {
    let (sandbox, mut server) = sandbox_and_server();
    let id = start_research(&sandbox, &mut server);
    sandbox.fault("research.get", "status=429;retryAfter=4");
    sandbox.advance(WORK_MS);
    assert_completed(&mut server, &id);
    let looks = sandbox.requests("research.get");
    assert_eq!(looks.len(), 3, "{looks:?}");
}

#[test]
fn deleted_webset_ends_its_task() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, webset("startups"));
    let looks = sandbox.await_requests("websets.get", 1);
    let path = looks[0]["path"].as_str().expect("a path");
    let webset = path.rsplit('/').next().expect("an id");
    let delete = json!({"operation": "websets.delete", "args": {"websetId": webset}});
    server.call("manage_websets", delete).success();
    let error = failure(&mut server, &id);
    assert_eq!(error["name"], "LOST", "{error}");
    assert_eq!(
        (&error["code"], &error["status"]),
        (&json!(-32003), &json!(404))
    );
    assert_eq!(error["lastStatus"], "pending", "{error}");
    assert_eq!(error["checkWith"]["args"]["websetId"], webset, "{error}");
}

#[test]
fn rejected_key_ends_the_task() {
    let (sandbox, mut server) = sandbox_and_server();
    let id = start_research(&sandbox, &mut server);
    let rule = json!({"match": "research.get", "times": "always", "fault": "status=401"});
    sandbox.add_fault(&rule);
    let error = failure(&mut server, &id);
    assert_eq!(error["name"], "LOST", "{error}");
    assert_eq!(error["status"], 401, "{error}");
    // Once the key works again, the work still exists.
    sandbox.clear_faults();
    let look = server.call("exa_api", error["checkWith"].clone());
    assert!(!look.is_error, "{}", look.text);
}

#[test]
fn persistent_errors_end_with_the_task_ttl() {
    for fault in ["status=429;retryAfter=3600", "status=500", "delay=60000"] {
        let (sandbox, mut server) = sandbox_and_server();
        sandbox.freeze(true);
        let rule = json!({"match": "research.get", "times": "always", "fault": fault});
        sandbox.add_fault(&rule);
        let response = request_task(&mut server, research("x"), json!({"ttl": 8_000}));
        let id = response["result"]["task"]["taskId"]
            .as_str()
            .expect("an id");
        let response = server.request("tasks/result", json!({"taskId": id}));
        // The result arrives in time, or an error says that the task has expired.
        match response.get("result") {
            Some(result) => {
                let error = &result["structuredContent"]["error"];
                assert_eq!(error["name"], "UNFINISHED", "{fault}: {response}");
            }
            None => super::assert_error(&response, -32602, "has expired"),
        }
    }
}

#[test]
fn errors_at_start_are_retried_or_reported() {
    let (sandbox, mut server) = sandbox_and_server();
    let rule = json!({"match": "research.create", "times": 2, "fault": "status=429;retryAfter=1"});
    sandbox.add_fault(&rule);
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.await_requests("research.create", 3);
    sandbox.advance(WORK_MS);
    assert_completed(&mut server, &id);
    assert_eq!(sandbox.count("research"), 1);
    let rule = json!({"match": "research.create", "times": "always", "fault": "status=402"});
    sandbox.add_fault(&rule);
    let id = start_task(&mut server, research("more"));
    assert_eq!(failure(&mut server, &id)["status"], 402);
}

#[test]
fn new_object_may_be_briefly_not_found() {
    let (sandbox, mut server) = sandbox_and_server();
    let rule = json!({"match": "research.get", "times": 2, "fault": "status=404"});
    sandbox.add_fault(&rule);
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.await_requests("research.get", 2);
    sandbox.advance(WORK_MS);
    assert_completed(&mut server, &id);
}

#[test]
fn unknown_status_is_not_terminal() {
    let recorder = Recorder::start(|request, before| {
        let status = match (request.method.as_str(), before) {
            ("POST", _) => json!("pending"),
            (_, 1) => json!("meditating"),
            (_, 2) => json!(7),
            _ => json!("completed"),
        };
        Response::json(200, &json!({"researchId": "r", "status": status}))
    });
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let id = start_task(&mut server, research("x"));
    assert_completed(&mut server, &id);
    assert_eq!(recorder.take().len(), 4);
}

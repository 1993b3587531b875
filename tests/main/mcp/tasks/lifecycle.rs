//! The lifecycle of tasks in 2025-11-25.

use serde_json::{Value, json};

use super::{
    PROGRESS, STATUS, WORK_MS, assert_error, create_task, request_task, research, result,
    sandbox_and_server, single_result, start_task, state, webset,
};
use crate::support::McpServer;

#[test]
fn task_is_created_polled_and_read() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let task = create_task(&mut server, webset("startups"));
    let id = task["taskId"].as_str().expect("an id").to_owned();
    assert!(id.len() >= 20, "{id} could be guessed");
    assert_eq!(task["status"], "working");
    assert_eq!(task["ttl"], 3_600_000);
    assert!(task["pollInterval"].is_u64(), "{task}");
    for time in ["createdAt", "lastUpdatedAt"] {
        let text = task[time].as_str().expect("a time");
        assert!(text.ends_with('Z') && text.contains('T'), "{task}");
    }
    assert!(task["statusMessage"].is_string(), "{task}");
    assert_eq!(state(&mut server, &id)["status"], "working");

    let waiting = server.send("tasks/result", json!({"taskId": id}));
    sandbox.await_requests("websets.get", 1);
    // The server handles other requests while this one waits.
    assert_eq!(state(&mut server, &id)["status"], "working");
    sandbox.advance(WORK_MS);
    let body = server.response(&waiting);
    let result = &body["result"];
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(single_result(result)["status"], "idle");
    assert_eq!(result["structuredContent"]["isComplete"], true);
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related, &json!({"taskId": id}));
    assert_eq!(result.get("resultType"), None, "{result}");

    let notification = server.notification(STATUS);
    assert_eq!(
        (&notification["taskId"], &notification["status"]),
        (&json!(id), &json!("completed"))
    );
    let end = state(&mut server, &id);
    assert_eq!(end, notification);
    assert_eq!(end.get("_meta"), None);
    let message = end["statusMessage"].as_str().expect("a message");
    assert_eq!(message, "idle: found 3 of 3, analyzed 9");
    assert!(end["lastUpdatedAt"].as_str() > end["createdAt"].as_str());
    // The result can be read repeatedly.
    let again = server.request("tasks/result", json!({"taskId": id}));
    assert_eq!(again["result"], *result);
    assert_eq!(sandbox.count("websets"), 1);
}

#[test]
fn tasks_are_paginated_newest_first() {
    let (_sandbox, mut server) = sandbox_and_server();
    let call = || json!({"name": "exa_api", "arguments": {"operation": "list_operations"}});
    let mut ids: Vec<String> = (0..120).map(|_| start_task(&mut server, call())).collect();
    ids.reverse();
    let mut listed = Vec::new();
    let mut pages = 0;
    let mut params = json!({});
    loop {
        let body = server.request("tasks/list", params);
        pages += 1;
        let tasks = body["result"]["tasks"].as_array().expect("tasks").clone();
        assert_eq!(body["result"].get("_meta"), None);
        listed.extend(tasks);
        match body["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert!(pages > 1, "{} tasks on one page", listed.len());
    let found: Vec<&str> = listed
        .iter()
        .filter_map(|task| task["taskId"].as_str())
        .collect();
    assert_eq!(found, ids);
    let one = result(&mut server, &ids[7]);
    assert_eq!(one["isError"], false);
    assert_eq!(state(&mut server, &ids[7])["status"], "completed");
    for cursor in [json!("nowhere"), json!(7), json!("-1"), json!({})] {
        let body = server.request("tasks/list", json!({"cursor": cursor}));
        assert_error(&body, -32602, "cursor");
    }
}

#[test]
fn progress_needs_a_progress_token() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let mut with_token = webset("with");
    with_token["_meta"] = json!({"progressToken": "token-1"});
    let id = start_task(&mut server, with_token);
    let silent = start_task(&mut server, webset("without"));
    sandbox.await_requests("websets.get", 2);
    sandbox.advance(WORK_MS);
    result(&mut server, &id);
    result(&mut server, &silent);
    let mut last = -1.0;
    let mut steps = Vec::new();
    while last < 3.0 {
        let step = server.notification(PROGRESS);
        let progress = step["progress"].as_f64().expect("a number");
        assert!(progress > last, "{steps:?} then {step}");
        last = progress;
        steps.push(step);
    }
    for step in &steps {
        assert_eq!(step["progressToken"], "token-1");
        assert_eq!(step["total"], 3.0, "{step}");
        let related = &step["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related, &json!({"taskId": id}), "{step}");
        assert!(
            step["message"]
                .as_str()
                .is_some_and(|text| text.contains("found"))
        );
    }
    server.notification(STATUS);
    server.notification(STATUS);
    // The other task sends no notifications, and none arrive after the end.
    server.assert_silent();
}

#[test]
fn status_message_shows_progress() {
    let (sandbox, mut server) = sandbox_and_server();
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.freeze(true);
    let first = state(&mut server, &id);
    assert_eq!(first["statusMessage"], "exa_api is running");
    sandbox.await_requests("research.get", 2);
    let later = state(&mut server, &id);
    let message = later["statusMessage"].as_str().expect("a message");
    assert!(
        message.contains(" for ") && message.ends_with(" seconds"),
        "{message}"
    );
    assert!(later["lastUpdatedAt"].as_str() > first["lastUpdatedAt"].as_str());
}

#[test]
fn cancel_reaches_exa_first() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, webset("startups"));
    let looks = sandbox.await_requests("websets.get", 1).len();
    let body = server.request("tasks/cancel", json!({"taskId": id}));
    assert_eq!(body["result"]["status"], "cancelled", "{body}");
    assert_eq!(body["result"]["taskId"], id.as_str());
    let notification = server.notification(STATUS);
    assert_eq!(
        (&notification["taskId"], &notification["status"]),
        (&json!(id), &json!("cancelled"))
    );
    let stops = sandbox.await_requests("websets.cancel", 1);
    // Polls are at least a second apart, so none happened in between, and none will follow.
    assert_eq!(sandbox.requests("websets.get").len(), looks);
    let path = stops[0]["path"].as_str().expect("a path");
    assert!(path.ends_with("/cancel"), "{path}");
    assert_cancelled(&mut server, &id);
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(sandbox.requests("websets.get").len(), looks);
}

#[test]
fn pending_start_is_cancelled_on_arrival() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.fault("websets.create", "delay=1500");
    let id = start_task(&mut server, webset("startups"));
    sandbox.await_requests("websets.create", 1);
    assert_eq!(sandbox.count("websets"), 0);
    let body = server.request("tasks/cancel", json!({"taskId": id}));
    assert_eq!(body["result"]["status"], "cancelled", "{body}");
    let stops = sandbox.await_requests("websets.cancel", 1);
    assert_eq!((stops.len(), sandbox.count("websets")), (1, 1));
    assert_eq!(sandbox.requests("websets.get").len(), 0);
    assert_cancelled(&mut server, &id);
}

#[test]
fn upstream_cancel_is_retried() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, webset("startups"));
    sandbox.await_requests("websets.get", 1);
    sandbox.add_fault(&json!({"match": "websets.cancel", "times": 2, "fault": "status=500"}));
    server.request("tasks/cancel", json!({"taskId": id}));
    let stops = sandbox.await_requests("websets.cancel", 3);
    assert_eq!(stops.len(), 3);
}

#[test]
fn reading_as_a_task_does_not_own_the_work() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let call = webset("startups")["arguments"].clone();
    let made = server.call("manage_websets", call).success();
    let look = json!({"name": "manage_websets", "arguments":
        {"operation": "websets.get", "args": {"websetId": made["id"]}}});
    let id = start_task(&mut server, look.clone());
    let other = start_task(&mut server, look);
    sandbox.await_requests("websets.get", 3);
    server.request("tasks/cancel", json!({"taskId": id}));
    assert_eq!(state(&mut server, &id)["status"], "cancelled");
    sandbox.advance(WORK_MS);
    assert_eq!(
        single_result(&result(&mut server, &other))["status"],
        "idle"
    );
    assert_eq!(sandbox.requests("websets.cancel").len(), 0);
}

#[test]
fn uncancellable_work_is_left_running() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.await_requests("research.get", 1);
    let body = server.request("tasks/cancel", json!({"taskId": id}));
    assert_eq!(body["result"]["status"], "cancelled", "{body}");
    assert_cancelled(&mut server, &id);
}

/// Asserts that a task stays cancelled, whatever happens to its work.
#[track_caller]
fn assert_cancelled(server: &mut McpServer, id: &str) {
    assert_eq!(state(server, id)["status"], "cancelled");
    for method in ["tasks/cancel", "tasks/result"] {
        let body = server.request(method, json!({"taskId": id}));
        assert_error(&body, -32602, id);
    }
}

#[test]
fn finished_task_cannot_be_cancelled() {
    let (_sandbox, mut server) = sandbox_and_server();
    let call = json!({"name": "exa_api", "arguments": {"operation": "list_operations"}});
    let id = start_task(&mut server, call);
    result(&mut server, &id);
    let body = server.request("tasks/cancel", json!({"taskId": id}));
    assert_error(&body, -32602, "has already ended");
    assert_eq!(state(&mut server, &id)["status"], "completed");
}

#[test]
fn failed_call_is_a_failed_task() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.fault("research.create", "status=400");
    for call in [research("x"), research("")] {
        let id = start_task(&mut server, call);
        let result = result(&mut server, &id);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["structuredContent"]["error"]["message"].is_string());
        let end = state(&mut server, &id);
        assert_eq!(end["status"], "failed");
        let notification = end["statusMessage"].as_str().expect("a message");
        let text = result["content"][0]["text"].as_str().expect("a string");
        assert!(
            text.starts_with(notification),
            "{notification:?} is not the beginning of {text:?}"
        );
    }
}

#[test]
fn upstream_failure_is_the_task_result() {
    let (sandbox, mut server) = sandbox_and_server();
    let id = start_task(&mut server, research("sandbox-fail"));
    sandbox.await_requests("research.create", 1);
    sandbox.advance(WORK_MS);
    let result = result(&mut server, &id);
    assert_eq!(single_result(&result)["status"], "failed");
    let end = state(&mut server, &id);
    let notification = end["statusMessage"].as_str().expect("a message");
    assert!(notification.starts_with("failed after"), "{notification}");
}

#[test]
fn import_without_file_returns_the_upload_url() {
    let (_sandbox, mut server) = sandbox_and_server();
    let args = json!({"size": 10, "count": 1, "format": "csv", "entity": {"type": "company"}});
    let call = json!({"name": "manage_websets", "arguments":
        {"operation": "imports.create", "args": args, "content_level": "full"}});
    let id = start_task(&mut server, call);
    let result = result(&mut server, &id);
    assert_eq!(result["isError"], false, "{result}");
    assert!(single_result(&result)["uploadUrl"].is_string(), "{result}");
    let check = &result["structuredContent"]["checkWith"];
    assert_eq!(check["operation"], "imports.get", "{result}");
}

#[test]
fn waiting_call_can_be_a_task() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let mut call = webset("startups");
    call["arguments"]["wait_seconds"] = json!(1);
    let body = request_task(&mut server, call, json!({"ttl": 60_000}));
    let id = body["result"]["task"]["taskId"]
        .as_str()
        .expect("an id")
        .to_owned();
    sandbox.await_requests("websets.get", 2);
    sandbox.advance(WORK_MS);
    assert_eq!(single_result(&result(&mut server, &id))["status"], "idle");
    let _: &Value = &body;
}

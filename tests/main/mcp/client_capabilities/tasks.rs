//! Calls that become tasks: required input is requested before the start, the rest by the task.

use std::fs;

use serde_json::{Value, json};

use super::{ClientResponse, ScriptedClient, accept, no_requests};
use crate::support::{DEFAULT_VERSION, Outcome, STATELESS_VERSION};

fn capabilities(version: &str) -> Value {
    let mut all = json!({"elicitation": {"form": {}}, "roots": {"listChanged": true}});
    if version == STATELESS_VERSION {
        all["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    all
}

/// Makes a call as a task, and returns the task.
fn task(
    client: &mut ScriptedClient,
    args: Value,
    script: impl FnMut(&str, &Value) -> ClientResponse,
) -> Value {
    let mut script = script;
    let arguments = json!({"operation": args["operation"], "args": args["args"]});
    if client.server.is_stateless() {
        let response = client.request("manage_websets", arguments, script);
        assert_eq!(response["result"]["resultType"], "task", "{response}");
        return response["result"].clone();
    }
    let call = json!({"name": "manage_websets", "arguments": arguments, "task": {}});
    let response = client.call_in_session("tools/call", call, &mut script);
    let task = &response["result"]["task"];
    assert!(task.is_object(), "{response}");
    task.clone()
}

/// Follows a task to its end, responds to its requests, and returns its result.
fn finish(
    client: &mut ScriptedClient,
    task: &Value,
    mut script: impl FnMut(&str, &Value) -> ClientResponse,
) -> Value {
    let id = json!({"taskId": task["taskId"]});
    if !client.server.is_stateless() {
        let response = client.call_in_session("tasks/result", id, &mut script);
        return response["result"].clone();
    }
    loop {
        let state = client.server.request("tasks/get", id.clone())["result"].clone();
        match state["status"].as_str() {
            Some("completed") => return state["result"].clone(),
            Some("input_required") => {}
            Some("working") => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                continue;
            }
            _ => panic!("{state}"),
        }
        let mut update = id.clone();
        for (key, request) in state["inputRequests"].as_object().expect("input requests") {
            let method = request["method"].as_str().expect("a method");
            if let ClientResponse::Result(result) =
                client.respond(method, &request["params"], &mut script)
            {
                update["inputResponses"][key] = result;
            }
        }
        let response = client.server.request("tasks/update", update);
        assert_eq!(response["result"]["resultType"], "complete", "{response}");
    }
}

#[test]
fn task_elicits_a_missing_argument() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut client = ScriptedClient::sandboxed("default", version, capabilities(version));
        let create = json!({"operation": "websets.create", "output_format": "json", "wait_seconds": 0,
            "args": {"search": {"query": "heat pumps", "count": 1}}});
        let webset = client.call("manage_websets", create, no_requests).success();
        let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
        let task = task(&mut client, search, no_requests);
        assert_eq!(task["status"], "working", "{version}");
        let give = || accept(json!({"websetId": webset["id"]}));
        let result = finish(&mut client, &task, |_, _| give());
        assert_eq!(client.methods(), ["elicitation/create"], "{version}");
        assert_eq!(result["isError"], false, "{result}");
        let search = &result["structuredContent"]["results"][0];
        assert_eq!(search["websetId"], webset["id"], "{result}");
    }
}

#[test]
fn task_uses_roots_listed_before_it_started() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("list.csv");
        fs::write(&file, "name,url\nAcme,https://acme.example\n").expect("a file");
        let mut client = ScriptedClient::sandboxed("default", version, capabilities(version));
        let import = json!({"operation": "imports.create", "args": {
            "title": "Companies", "filePath": file, "entity": {"type": "company"}}});
        let uri = url::Url::from_directory_path(folder.path()).expect("an address");
        task(&mut client, import, |method, _| {
            assert_eq!(method, "roots/list");
            ClientResponse::Result(json!({"roots": [{"uri": uri.to_string()}]}))
        });
        let list = json!({"operation": "imports.list", "output_format": "json", "fresh": true});
        let imports = (0..100).find_map(|_| {
            let listed = client
                .call("manage_websets", list.clone(), no_requests)
                .success();
            let one = listed["data"][0].clone();
            std::thread::sleep(std::time::Duration::from_millis(50));
            one.is_object().then_some(one)
        });
        assert_eq!(imports.expect("an import")["count"], 1, "{version}");
        assert_eq!(client.methods(), ["roots/list"]);
    }
}

#[test]
fn declining_task_input_ends_the_task_in_both_versions() {
    let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
    let decline = |_: &str, _: &Value| ClientResponse::Result(json!({"action": "decline"}));
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut client = ScriptedClient::sandboxed("default", version, capabilities(version));
        let task = task(&mut client, search.clone(), no_requests);
        let result = finish(&mut client, &task, decline);
        let failure = Outcome::from_response(&json!({"result": result})).failure();
        failure.assert_contains(&["declined", "retryWith"]);
        assert_eq!(client.methods(), ["elicitation/create"]);
    }
}

#[test]
fn task_input_times_out_like_a_call() {
    let mut client =
        ScriptedClient::sandboxed("default", DEFAULT_VERSION, capabilities(DEFAULT_VERSION));
    let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
    let task = task(&mut client, search, no_requests);
    let result = finish(&mut client, &task, |_, _| ClientResponse::Silence);
    let failure = Outcome::from_response(&json!({"result": result})).failure();
    failure.assert_contains(&["the client did not respond in time", "retryWith"]);
    let methods = client
        .notifications
        .iter()
        .map(|(method, _)| method.as_str());
    assert!(
        methods
            .collect::<Vec<_>>()
            .contains(&"notifications/cancelled")
    );
}

//! Calls that become tasks: what they cannot begin without is asked before, the rest by the task.

use std::fs;

use serde_json::{Value, json};

use super::{Answer, Scripted, accepted, never};
use crate::support::{Outcome, STATELESS, USUAL};

fn capabilities(version: &str) -> Value {
    let mut all = json!({"elicitation": {"form": {}}, "roots": {"listChanged": true}});
    if version == STATELESS {
        all["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    all
}

/// Calls as a task, and gives the task.
fn task(client: &mut Scripted, args: Value, script: impl FnMut(&str, &Value) -> Answer) -> Value {
    let mut script = script;
    let arguments = json!({"operation": args["operation"], "args": args["args"]});
    if client.server.is_stateless() {
        let answer = client.ask("manage_websets", arguments, script);
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        return answer["result"].clone();
    }
    let call = json!({"name": "manage_websets", "arguments": arguments, "task": {}});
    let answer = client.in_session("tools/call", call, &mut script);
    let task = &answer["result"]["task"];
    assert!(task.is_object(), "{answer}");
    task.clone()
}

/// Follows a task to its end, answers what it asks, and gives its result.
fn finish(
    client: &mut Scripted,
    task: &Value,
    mut script: impl FnMut(&str, &Value) -> Answer,
) -> Value {
    let id = json!({"taskId": task["taskId"]});
    if !client.server.is_stateless() {
        let answer = client.in_session("tasks/result", id, &mut script);
        return answer["result"].clone();
    }
    loop {
        let state = client.server.ask("tasks/get", id.clone())["result"].clone();
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
        for (key, request) in state["inputRequests"].as_object().expect("questions") {
            let method = request["method"].as_str().expect("a method");
            if let Answer::Result(result) = client.hear(method, &request["params"], &mut script) {
                update["inputResponses"][key] = result;
            }
        }
        let answer = client.server.ask("tasks/update", update);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
}

#[test]
fn task_elicits_a_missing_argument() {
    for version in [USUAL, STATELESS] {
        let mut client = Scripted::sandboxed("default", version, capabilities(version));
        let create = json!({"operation": "websets.create", "output_format": "json", "wait_seconds": 0,
            "args": {"search": {"query": "heat pumps", "count": 1}}});
        let webset = client.call("manage_websets", create, never).success();
        let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
        let task = task(&mut client, search, never);
        assert_eq!(task["status"], "working", "{version}");
        let give = || accepted(json!({"websetId": webset["id"]}));
        let result = finish(&mut client, &task, |_, _| give());
        assert_eq!(client.methods(), ["elicitation/create"], "{version}");
        assert_eq!(result["isError"], false, "{result}");
        let search = &result["structuredContent"]["results"][0];
        assert_eq!(search["websetId"], webset["id"], "{result}");
    }
}

#[test]
fn task_uses_roots_listed_before_it_started() {
    for version in [USUAL, STATELESS] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("list.csv");
        fs::write(&file, "name,url\nAcme,https://acme.example\n").expect("a file");
        let mut client = Scripted::sandboxed("default", version, capabilities(version));
        let import = json!({"operation": "imports.create", "args": {
            "title": "Companies", "filePath": file, "entity": {"type": "company"}}});
        let uri = url::Url::from_directory_path(folder.path()).expect("an address");
        task(&mut client, import, |method, _| {
            assert_eq!(method, "roots/list");
            Answer::Result(json!({"roots": [{"uri": uri.to_string()}]}))
        });
        let list = json!({"operation": "imports.list", "output_format": "json", "fresh": true});
        let imports = (0..100).find_map(|_| {
            let listed = client.call("manage_websets", list.clone(), never).success();
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
    let decline = |_: &str, _: &Value| Answer::Result(json!({"action": "decline"}));
    for version in [USUAL, STATELESS] {
        let mut client = Scripted::sandboxed("default", version, capabilities(version));
        let task = task(&mut client, search.clone(), never);
        let result = finish(&mut client, &task, decline);
        let failure = Outcome::of(&json!({"result": result})).failure();
        failure.assert_says(&["declined", "retryWith"]);
        assert_eq!(client.methods(), ["elicitation/create"]);
    }
}

#[test]
fn task_input_times_out_like_a_call() {
    let mut client = Scripted::sandboxed("default", USUAL, capabilities(USUAL));
    let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
    let task = task(&mut client, search, never);
    let result = finish(&mut client, &task, |_, _| Answer::Silence);
    let failure = Outcome::of(&json!({"result": result})).failure();
    failure.assert_says(&["the client did not respond in time", "retryWith"]);
    let told = client.told.iter().map(|(method, _)| method.as_str());
    assert!(
        told.collect::<Vec<_>>()
            .contains(&"notifications/cancelled")
    );
}

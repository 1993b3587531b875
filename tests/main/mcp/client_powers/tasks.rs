//! Calls that become tasks ask before the task begins.

use std::fs;

use serde_json::{Value, json};

use super::{Answer, Scripted, accepted, never};
use crate::support::{STATELESS, USUAL};

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
    let answer = client.in_session(call, &mut script);
    let task = &answer["result"]["task"];
    assert!(task.is_object(), "{answer}");
    task.clone()
}

#[test]
fn a_missing_argument_is_asked_for_before_the_task_begins() {
    for version in [USUAL, STATELESS] {
        let mut client = Scripted::sandboxed("default", version, capabilities(version));
        let create = json!({"operation": "websets.create", "output_format": "json", "wait_seconds": 0,
            "args": {"search": {"query": "heat pumps", "count": 1}}});
        let webset = client.call("manage_websets", create, never).success();
        let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
        let give = || accepted(json!({"websetId": webset["id"]}));
        let task = task(&mut client, search, |_, _| give());
        assert_eq!(client.methods(), ["elicitation/create"], "{version}");
        let state = client
            .server
            .ask("tasks/get", json!({"taskId": task["taskId"]}));
        let status = &state["result"]["status"];
        assert!(status == "working" || status == "completed", "{state}");
    }
}

#[test]
fn a_task_knows_the_roots_that_were_asked_for_before_it_began() {
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
fn a_user_who_says_no_gets_an_answer_in_both_versions() {
    let search = json!({"operation": "searches.create", "args": {"query": "q", "count": 1}});
    let decline = |_: &str, _: &Value| Answer::Result(json!({"action": "decline"}));
    let mut client = Scripted::sandboxed("default", STATELESS, capabilities(STATELESS));
    let failure = client
        .call("manage_websets", search.clone(), decline)
        .failure();
    failure.assert_says(&["declined", "retryWith"]);
    // There a call for a task must be answered by one, which then fails.
    let mut client = Scripted::sandboxed("default", USUAL, capabilities(USUAL));
    let task = task(&mut client, search, decline);
    let result = client
        .server
        .ask("tasks/result", json!({"taskId": task["taskId"]}));
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(client.methods(), ["elicitation/create"]);
}

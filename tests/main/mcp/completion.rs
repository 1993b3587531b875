//! Completion.

use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{
    DEFAULT_VERSION, McpServer, Program, Recorder, Response, STATELESS_VERSION, Sandbox,
};

fn send_request(server: &mut McpServer, reference: Value, name: &str, value: &str) -> Value {
    let argument = json!({"name": name, "value": value});
    server.request(
        "completion/complete",
        json!({"ref": reference, "argument": argument}),
    )
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

fn template(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

#[track_caller]
fn values(response: &Value) -> Vec<&str> {
    let completion = &response["result"]["completion"];
    let values = completion["values"].as_array();
    let values = values.unwrap_or_else(|| panic!("no values: {response}"));
    assert!(values.len() <= 100);
    assert!(
        completion["total"].as_u64() >= Some(values.len() as u64),
        "{response}"
    );
    assert!(completion["hasMore"].is_boolean());
    values.iter().filter_map(Value::as_str).collect()
}

#[test]
fn prompt_arguments_are_completed() {
    for version in ["2024-11-05", DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = McpServer::connect(Program::new(["--sandbox"]), version);
        let response = send_request(&mut server, prompt("research_topic"), "depth", "");
        assert_eq!(values(&response), ["quick", "standard", "deep"]);
        let response = send_request(&mut server, prompt("research_topic"), "depth", "D");
        assert_eq!(
            values(&response),
            ["deep", "standard"],
            "first those that begin so"
        );
        let response = send_request(&mut server, prompt("build_webset"), "entity", "p");
        assert_eq!(values(&response), ["person", "research_paper", "company"]);
        let response = send_request(
            &mut server,
            prompt("compare_companies"),
            "aspects",
            "pricing, cust",
        );
        assert_eq!(values(&response), ["pricing, customers"]);
        let response = send_request(&mut server, prompt("research_topic"), "topic", "heat");
        assert_eq!(values(&response), Vec::<&str>::new());
    }
}

#[test]
fn operations_are_completed() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = McpServer::connect(Program::new(["--sandbox"]), version);
        let operations = || template("exa://operations/{name}");
        let response = send_request(&mut server, operations(), "name", "");
        let described = all().iter().filter(|it| !it.api.admin_only);
        assert_eq!(values(&response).len(), described.count());
        assert_eq!(response["result"]["completion"]["hasMore"], false);
        let response = send_request(&mut server, operations(), "name", "websets.c");
        assert_eq!(values(&response), ["websets.cancel", "websets.create"]);
        let response = send_request(&mut server, operations(), "name", "search");
        assert_eq!(values(&response)[0], "search");
        assert!(values(&response).contains(&"research.create"));
        let response = send_request(&mut server, operations(), "name", "zzz");
        assert_eq!(values(&response), Vec::<&str>::new());
    }
}

#[test]
fn websets_are_completed_by_id_and_title() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    let call = json!({"operation": "websets.create", "args": {"search": {"query": "x"}, "externalId": "my-list"}});
    server.request(
        "tools/call",
        json!({"name": "manage_websets", "arguments": call}),
    );
    for pattern in ["exa://websets/{websetId}", "exa://websets/{websetId}/items"] {
        let response = send_request(&mut server, template(pattern), "websetId", "my-l");
        let ids = values(&response);
        assert_eq!(ids.len(), 1, "{response}");
        let uri = pattern.replace("{websetId}", ids[0]);
        assert!(server.request("resources/read", json!({"uri": uri}))["result"].is_object());
    }
}

/// Completion returns no error while Exa is slow or unavailable.
#[test]
fn no_webset_completions_without_exa() {
    let recorder = Recorder::always(Response::json(401, &json!({"error": "no"})));
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let response = send_request(
        &mut server,
        template("exa://websets/{websetId}"),
        "websetId",
        "",
    );
    assert_eq!(values(&response), Vec::<&str>::new());
    for _ in 0..5 {
        send_request(
            &mut server,
            template("exa://websets/{websetId}"),
            "websetId",
            "w",
        );
    }
    assert_eq!(recorder.take().len(), 1, "not every letter is a request");
}

#[test]
fn notes_are_completed_by_id_and_title() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let program = Program::new(["--sandbox", "--tools", "notes"]);
        let mut server = McpServer::connect(program, version);
        for title in ["Heat pumps", "Batteries"] {
            let note = json!({"title": title, "content": "c"});
            server.request(
                "tools/call",
                json!({"name": "create_note", "arguments": note}),
            );
        }
        let response = send_request(&mut server, template("note:///{id}"), "id", "heat");
        let [id] = values(&response)[..] else {
            panic!("{response}")
        };
        let again = send_request(&mut server, prompt("summarize_notes"), "notes", &id[..8]);
        assert_eq!(values(&again), [id]);
        let read = server.request("resources/read", json!({"uri": format!("note:///{id}")}));
        assert_eq!(read["result"]["contents"][0]["text"], "c", "{read}");
    }
}

#[test]
fn completion_is_limited_to_a_hundred_values() {
    let mut server = McpServer::sandboxed(&["--tools", "notes"]);
    for number in 0..120 {
        let note = json!({"title": format!("n{number}"), "content": "c"});
        server.request(
            "tools/call",
            json!({"name": "create_note", "arguments": note}),
        );
    }
    let response = send_request(&mut server, template("note:///{id}"), "id", "");
    assert_eq!(values(&response).len(), 100);
    assert_eq!(response["result"]["completion"]["total"], 120);
    assert_eq!(response["result"]["completion"]["hasMore"], true);
}

#[test]
fn unknown_reference_cannot_be_completed() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = McpServer::connect(Program::new(["--sandbox"]), version);
        for (reference, name) in [
            (prompt("no_such_prompt"), "topic"),
            (prompt("research_topic"), "no_such_argument"),
            (prompt("summarize_notes"), "notes"),
            (template("exa://nothing/{id}"), "id"),
            (template("exa://operations/{name}"), "id"),
            (template("note:///{id}"), "id"),
            (json!({"type": "ref/other"}), "x"),
            (json!({}), "x"),
        ] {
            let response = send_request(&mut server, reference.clone(), name, "");
            assert_eq!(response["error"]["code"], -32602, "{reference}: {response}");
        }
        let long = "x".repeat(100_000);
        let response = send_request(
            &mut server,
            template("exa://operations/{name}"),
            "name",
            &long,
        );
        assert_eq!(values(&response), Vec::<&str>::new());
    }
}

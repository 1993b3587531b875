//! Completion as clients ask for it.

use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{McpServer, Program, Recorder, Reply, STATELESS, Sandbox, USUAL};

fn ask(server: &mut McpServer, reference: Value, name: &str, value: &str) -> Value {
    let argument = json!({"name": name, "value": value});
    server.ask(
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
fn values(answer: &Value) -> Vec<&str> {
    let completion = &answer["result"]["completion"];
    let values = completion["values"].as_array();
    let values = values.unwrap_or_else(|| panic!("no values: {answer}"));
    assert!(values.len() <= 100);
    assert!(
        completion["total"].as_u64() >= Some(values.len() as u64),
        "{answer}"
    );
    assert!(completion["hasMore"].is_boolean());
    values.iter().filter_map(Value::as_str).collect()
}

#[test]
fn prompt_arguments_are_completed() {
    for version in ["2024-11-05", USUAL, STATELESS] {
        let mut server = McpServer::connect(Program::new(["--sandbox"]), version);
        let answer = ask(&mut server, prompt("research_topic"), "depth", "");
        assert_eq!(values(&answer), ["quick", "standard", "deep"]);
        let answer = ask(&mut server, prompt("research_topic"), "depth", "D");
        assert_eq!(
            values(&answer),
            ["deep", "standard"],
            "first those that begin so"
        );
        let answer = ask(&mut server, prompt("build_webset"), "entity", "p");
        assert_eq!(values(&answer), ["person", "research_paper", "company"]);
        let answer = ask(
            &mut server,
            prompt("compare_companies"),
            "aspects",
            "pricing, cust",
        );
        assert_eq!(values(&answer), ["pricing, customers"]);
        let answer = ask(&mut server, prompt("research_topic"), "topic", "heat");
        assert_eq!(values(&answer), Vec::<&str>::new());
    }
}

#[test]
fn operations_are_completed() {
    for version in [USUAL, STATELESS] {
        let mut server = McpServer::connect(Program::new(["--sandbox"]), version);
        let operations = || template("exa://operations/{name}");
        let answer = ask(&mut server, operations(), "name", "");
        assert_eq!(values(&answer).len(), all().len());
        assert_eq!(answer["result"]["completion"]["hasMore"], false);
        let answer = ask(&mut server, operations(), "name", "websets.c");
        assert_eq!(values(&answer), ["websets.cancel", "websets.create"]);
        let answer = ask(&mut server, operations(), "name", "search");
        assert_eq!(values(&answer)[0], "search");
        assert!(values(&answer).contains(&"research.create"));
        let answer = ask(&mut server, operations(), "name", "zzz");
        assert_eq!(values(&answer), Vec::<&str>::new());
    }
}

#[test]
fn websets_are_completed_by_id_and_title() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::upstream(&sandbox.url(), &[]);
    let call = json!({"operation": "websets.create", "args": {"search": {"query": "x"}, "externalId": "my-list"}});
    server.ask(
        "tools/call",
        json!({"name": "manage_websets", "arguments": call}),
    );
    for pattern in ["exa://websets/{websetId}", "exa://websets/{websetId}/items"] {
        let answer = ask(&mut server, template(pattern), "websetId", "my-l");
        let ids = values(&answer);
        assert_eq!(ids.len(), 1, "{answer}");
        let uri = pattern.replace("{websetId}", ids[0]);
        assert!(server.ask("resources/read", json!({"uri": uri}))["result"].is_object());
    }
}

/// Someone who types gets no error because Exa is slow or away.
#[test]
fn no_webset_completions_without_exa() {
    let recorder = Recorder::always(Reply::json(401, &json!({"error": "no"})));
    let mut server = McpServer::recorded(&recorder, &[]);
    let answer = ask(
        &mut server,
        template("exa://websets/{websetId}"),
        "websetId",
        "",
    );
    assert_eq!(values(&answer), Vec::<&str>::new());
    for _ in 0..5 {
        ask(
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
    for version in [USUAL, STATELESS] {
        let program = Program::new(["--sandbox", "--tools", "notes"]);
        let mut server = McpServer::connect(program, version);
        for title in ["Heat pumps", "Batteries"] {
            let note = json!({"title": title, "content": "c"});
            server.ask(
                "tools/call",
                json!({"name": "create_note", "arguments": note}),
            );
        }
        let answer = ask(&mut server, template("note:///{id}"), "id", "heat");
        let [id] = values(&answer)[..] else {
            panic!("{answer}")
        };
        let again = ask(&mut server, prompt("summarize_notes"), "notes", &id[..8]);
        assert_eq!(values(&again), [id]);
        let read = server.ask("resources/read", json!({"uri": format!("note:///{id}")}));
        assert!(read.to_string().contains("Heat pumps"), "{read}");
    }
}

#[test]
fn completion_is_limited_to_a_hundred_values() {
    let mut server = McpServer::sandboxed(&["--tools", "notes"]);
    for number in 0..120 {
        let note = json!({"title": format!("n{number}"), "content": "c"});
        server.ask(
            "tools/call",
            json!({"name": "create_note", "arguments": note}),
        );
    }
    let answer = ask(&mut server, template("note:///{id}"), "id", "");
    assert_eq!(values(&answer).len(), 100);
    assert_eq!(answer["result"]["completion"]["total"], 120);
    assert_eq!(answer["result"]["completion"]["hasMore"], true);
}

#[test]
fn unknown_reference_cannot_be_completed() {
    for version in [USUAL, STATELESS] {
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
            let answer = ask(&mut server, reference.clone(), name, "");
            assert_eq!(answer["error"]["code"], -32602, "{reference}: {answer}");
        }
        let long = "x".repeat(100_000);
        let answer = ask(
            &mut server,
            template("exa://operations/{name}"),
            "name",
            &long,
        );
        assert_eq!(values(&answer), Vec::<&str>::new());
    }
}

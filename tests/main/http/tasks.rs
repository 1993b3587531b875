//! Long work over HTTP, in the ways of both eras.

use serde_json::{Value, json};

use super::{bearer, request};
use crate::support::{HttpServer, HttpSession, STATELESS, Sandbox};

fn start() -> Value {
    let args = json!({"search": {"query": "companies", "count": 1}});
    json!({"name": "manage_websets", "arguments": {"operation": "websets.create", "args": args}})
}

#[test]
fn a_task_of_the_older_era_lives_its_whole_life() {
    let sandbox = Sandbox::start();
    let variables = [
        ("USER_TOKENS", "a-token:ann"),
        ("EXA_API_KEYS", "pool-key-one"),
    ];
    let server = HttpServer::upstream(&sandbox.url(), &variables);
    let ann = bearer("a-token");
    let mut session = HttpSession::usual(&server, &[("authorization", &ann)]);
    assert!(session.hello["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object());
    let tools = session.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    let websets = tools.iter().find(|tool| tool["name"] == "manage_websets");
    assert_eq!(
        websets.expect("the tool")["execution"]["taskSupport"],
        "optional"
    );

    let mut call = start();
    call["task"] = json!({"ttl": 60_000});
    let task = session.ask("tools/call", call)["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let id = json!({"taskId": task["taskId"]});
    let listed = session.ask("tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"]);
    sandbox.advance(600_000);
    let result = session.ask("tasks/result", id.clone());
    assert_eq!(result["result"]["isError"], false, "{result}");
    let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], task["taskId"]);
    assert_eq!(
        session.ask("tasks/get", id.clone())["result"]["status"],
        "completed"
    );
    assert_eq!(session.ask("tasks/cancel", id)["error"]["code"], -32602);
    let usage = server.get("/mcp/usage", &[("authorization", &ann)]).json();
    // The handshake and six requests.
    assert_eq!(usage["usageCount"], 7);
}

#[test]
fn a_task_of_the_newer_era_is_found_by_whoever_began_it() {
    let sandbox = Sandbox::start();
    let server = HttpServer::upstream(&sandbox.url(), &[]);
    let key = [("x-api-key", "the-key-of-ann")];
    let ask = |key: &(&str, &str), method: &str, mut params: Value| {
        let name = params.get("name").or_else(|| params.get("taskId"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let headers = [
            *key,
            ("mcp-protocol-version", STATELESS),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        server.post(&headers, &request(1, method, params)).json()
    };
    let task = ask(&key[0], "tools/call", start());
    let id = task["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{task}"))
        .to_owned();
    sandbox.advance(600_000);
    loop {
        let state = ask(&key[0], "tasks/get", json!({"taskId": id}));
        match state["result"]["status"].as_str() {
            Some("working") => std::thread::sleep(std::time::Duration::from_millis(100)),
            Some("completed") => break,
            _ => panic!("{state}"),
        }
    }
    let foreign = ask(
        &("x-api-key", "the-key-of-bob"),
        "tasks/get",
        json!({"taskId": id}),
    );
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
}

#[test]
fn a_task_outlives_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let sandbox = Sandbox::start();
    let url = sandbox.url();
    let pool = [
        ("USER_TOKENS", "a-token:ann"),
        ("EXA_API_KEYS", "pool-key-one"),
        ("EXA_MCP_STORE", &store),
    ];
    let ann = bearer("a-token");
    let key = [
        ("EXA_MCP_SECRET", "the secret of this test"),
        ("EXA_MCP_STORE", store.as_str()),
    ];
    for (variables, shown) in [
        (&pool[..], ("authorization", ann.as_str())),
        // Without the key of its owner nobody could follow it.
        (&key[..], ("x-api-key", "the-key-of-ann")),
    ] {
        let server = HttpServer::upstream(&url, variables);
        let mut session = HttpSession::usual(&server, &[shown]);
        let mut call = start();
        call["task"] = json!({});
        let task = session.ask("tools/call", call)["result"]["task"]["taskId"].clone();
        let id = json!({"taskId": task});
        // Killed after Exa confirmed the start.
        let started = || {
            let text = std::fs::read(folder.path().join("store.db-wal")).unwrap_or_default();
            text.windows(8).any(|part| part == b"\"webset_")
        };
        while !started() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(server);
        sandbox.advance(600_000);
        let server = HttpServer::upstream(&url, variables);
        let mut session = HttpSession::usual(&server, &[shown]);
        let result = session.ask("tasks/result", id);
        assert_eq!(result["result"]["isError"], false, "{result}");
    }
}

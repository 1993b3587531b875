//! Tasks over HTTP, with sessions and stateless.

use serde_json::{Value, json};

use super::{bearer, request};
#[cfg(unix)]
use crate::support::RedisServer;
use crate::support::{HttpServer, HttpSession, STATELESS_VERSION, Sandbox, eventually};

fn start() -> Value {
    let args = json!({"search": {"query": "companies", "count": 1}});
    json!({"name": "manage_websets", "arguments": {"operation": "websets.create", "args": args}})
}

#[test]
fn legacy_task_lifecycle() {
    let sandbox = Sandbox::start();
    let variables = [
        ("USER_TOKENS", "a-token:ann"),
        ("EXA_API_KEYS", "pool-key-one"),
    ];
    let server = HttpServer::with_upstream(&sandbox.url(), &variables);
    let ann = bearer("a-token");
    let mut session = HttpSession::new(&server, &[("authorization", &ann)]);
    assert!(
        session.initialize_result["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object()
    );
    let tools = session.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().expect("tools").clone();
    let websets = tools.iter().find(|tool| tool["name"] == "manage_websets");
    assert_eq!(
        websets.expect("the tool")["execution"]["taskSupport"],
        "optional"
    );

    let mut call = start();
    call["task"] = json!({"ttl": 60_000});
    let task = session.request("tools/call", call)["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let id = json!({"taskId": task["taskId"]});
    let listed = session.request("tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"]);
    sandbox.advance(600_000);
    let result = session.request("tasks/result", id.clone());
    assert_eq!(result["result"]["isError"], false, "{result}");
    let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], task["taskId"]);
    assert_eq!(
        session.request("tasks/get", id.clone())["result"]["status"],
        "completed"
    );
    assert_eq!(session.request("tasks/cancel", id)["error"]["code"], -32602);
    let usage = server.get("/mcp/usage", &[("authorization", &ann)]).json();
    // The handshake and six requests.
    assert_eq!(usage["usageCount"], 7);
}

#[test]
fn stateless_task_is_found_by_its_owner() {
    let sandbox = Sandbox::start();
    let server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let key = [("x-api-key", "the-key-of-ann")];
    let send_request = |key: &(&str, &str), method: &str, mut params: Value| {
        let name = params.get("name").or_else(|| params.get("taskId"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let headers = [
            *key,
            ("mcp-protocol-version", STATELESS_VERSION),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        server.post(&headers, &request(1, method, params)).json()
    };
    let task = send_request(&key[0], "tools/call", start());
    let id = task["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{task}"))
        .to_owned();
    sandbox.advance(600_000);
    loop {
        let state = send_request(&key[0], "tasks/get", json!({"taskId": id}));
        match state["result"]["status"].as_str() {
            Some("working") => std::thread::sleep(std::time::Duration::from_millis(100)),
            Some("completed") => break,
            _ => panic!("{state}"),
        }
    }
    let foreign = send_request(
        &("x-api-key", "the-key-of-bob"),
        "tasks/get",
        json!({"taskId": id}),
    );
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
}

#[test]
fn task_survives_a_restart() {
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
    for (variables, credential) in [
        (&pool[..], ("authorization", ann.as_str())),
        // The task can only be followed with its owner's key.
        (&key[..], ("x-api-key", "the-key-of-ann")),
    ] {
        let server = HttpServer::with_upstream(&url, variables);
        let mut session = HttpSession::new(&server, &[credential]);
        let mut call = start();
        call["task"] = json!({});
        let task = session.request("tools/call", call)["result"]["task"]["taskId"].clone();
        let id = json!({"taskId": task});
        // The server is killed after Exa has confirmed the start.
        let started = || {
            let text = std::fs::read(folder.path().join("store.db-wal")).unwrap_or_default();
            text.windows(8).any(|part| part == b"\"webset_")
        };
        while !started() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(server);
        sandbox.advance(600_000);
        let server = HttpServer::with_upstream(&url, variables);
        let mut session = HttpSession::new(&server, &[credential]);
        let result = session.request("tasks/result", id);
        assert_eq!(result["result"]["isError"], false, "{result}");
    }
}

/// Starts a task; returns its id or the error.
fn start_task(session: &mut HttpSession<'_>) -> Result<Value, Value> {
    let mut call = start();
    call["task"] = json!({"ttl": 60_000});
    let mut response = session.request("tools/call", call);
    match response.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(response["result"]["task"]["taskId"].take()),
    }
}

fn assert_limit_reached(refused: Result<Value, Value>, most: &str) {
    let error = refused.expect_err("a refusal");
    let message = error["message"].as_str().expect("a message");
    for part in [
        most,
        "of your tasks",
        "EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER",
    ] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
}

#[test]
fn task_limit_is_per_user() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let variables = [
        ("USER_TOKENS", "a-token:ann,a-second:ann,b-token:bob"),
        ("EXA_API_KEYS", "pool-key-one"),
        ("EXA_MCP_MAX_CONCURRENT_TASKS", "30"),
    ];
    let server = HttpServer::with_upstream(&sandbox.url(), &variables);
    let session = |token: &str| {
        let authorization = bearer(token);
        HttpSession::new(&server, &[("authorization", &authorization)])
    };
    let (mut ann, mut second, mut bob) =
        (session("a-token"), session("a-second"), session("b-token"));
    // A tenth would be three; the minimum is ten.
    let begun: Vec<Value> = (0..10)
        .map(|_| start_task(&mut ann).expect("a task"))
        .collect();
    assert_limit_reached(start_task(&mut ann), "10");
    assert_limit_reached(start_task(&mut second), "10");
    start_task(&mut bob).expect("room for others");
    ann.request("tasks/cancel", json!({"taskId": begun[0]}));
    start_task(&mut second).expect("room again");
    assert_limit_reached(start_task(&mut ann), "10");
}

#[cfg(unix)]
#[test]
fn task_limit_is_shared_between_replicas() {
    let (sandbox, redis) = (Sandbox::start(), RedisServer::start());
    sandbox.freeze(true);
    let store = redis.url();
    let variables = [
        ("USER_TOKENS", "a-token:ann,b-token:bob"),
        ("EXA_API_KEYS", "pool-key-one"),
        ("EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER", "4"),
        ("EXA_MCP_STORE", &store),
    ];
    let servers = [(); 2].map(|()| HttpServer::with_upstream(&sandbox.url(), &variables));
    let ann = bearer("a-token");
    let mut sessions = servers
        .each_ref()
        .map(|server| HttpSession::new(server, &[("authorization", &ann)]));
    for turn in 0..4 {
        start_task(&mut sessions[turn % 2]).expect("a task");
    }
    for session in &mut sessions {
        assert_limit_reached(start_task(session), "4");
    }
    let bob = bearer("b-token");
    let mut other = HttpSession::new(&servers[0], &[("authorization", &bob)]);
    start_task(&mut other).expect("room for others");
    // Completed work frees capacity on both servers.
    sandbox.advance(600_000);
    for session in &mut sessions {
        eventually("another task is accepted", || start_task(session).is_ok());
    }
}

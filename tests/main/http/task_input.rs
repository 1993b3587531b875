//! Tasks that ask their client over HTTP, in the ways of both eras.

use serde_json::{Value, json};

use super::{STREAMS, bearer, request};
use crate::support::{HttpServer, HttpSession, STATELESS, Sandbox};

/// A search that does not say where.
fn search() -> Value {
    let args = json!({"query": "makers", "count": 1});
    json!({"name": "manage_websets", "arguments": {"operation": "searches.create", "args": args}})
}

fn create() -> Value {
    let args = json!({"search": {"query": "companies", "count": 1}});
    let arguments = json!({"operation": "websets.create", "args": args, "wait_seconds": 0,
        "output_format": "json"});
    json!({"name": "manage_websets", "arguments": arguments})
}

fn webset(answer: &Value) -> Value {
    let id = &answer["result"]["structuredContent"]["results"][0]["id"];
    assert!(id.is_string(), "{answer}");
    id.clone()
}

fn people() -> Vec<(&'static str, String)> {
    let people = "a-token:ann,b-token:bob".to_owned();
    vec![
        ("USER_TOKENS", people),
        ("EXA_API_KEYS", "pool-key-one".to_owned()),
    ]
}

fn serve(sandbox: &Sandbox, variables: &[(&'static str, String)]) -> HttpServer {
    let given: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    HttpServer::upstream(&sandbox.url(), &given)
}

#[test]
fn input_request_arrives_on_the_result_stream() {
    let sandbox = Sandbox::start();
    let server = serve(&sandbox, &people());
    let ann = bearer("a-token");
    let shown = [("authorization", ann.as_str())];
    let mut session = HttpSession::able(&server, &shown, json!({"elicitation": {}}));
    let webset = webset(&session.ask("tools/call", create()));
    let mut call = search();
    call["task"] = json!({});
    let task = session.ask("tools/call", call)["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let id = json!({"taskId": task["taskId"]});
    while session.ask("tasks/get", id.clone())["result"]["status"] == "working" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let waiting = session.ask("tasks/get", id.clone());
    assert_eq!(waiting["result"]["status"], "input_required", "{waiting}");

    let answer = asked_while_waiting(&server, &session, &sandbox, &task["taskId"], &webset);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let state = session.ask("tasks/get", id);
    assert_eq!(state["result"]["status"], "completed", "{state}");
}

/// Waits for the result of a task, says where to search when asked, and gives the answer.
fn asked_while_waiting(
    server: &HttpServer,
    session: &HttpSession<'_>,
    sandbox: &Sandbox,
    task: &Value,
    webset: &Value,
) -> Value {
    let mut headers = session.headers();
    headers.extend([STREAMS, ("content-type", "application/json")]);
    let body = request(70, "tasks/result", json!({"taskId": task})).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    let asked = events.message();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let related = &asked["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], *task);
    assert!(sandbox.requests("searches.create").is_empty());
    let filled = json!({"action": "accept", "content": {"websetId": webset}});
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": filled});
    assert_eq!(session.post(&reply).status, 202);
    sandbox.await_requests("searches.create", 1);
    sandbox.advance(600_000);
    loop {
        let message = events.message();
        if message["id"] == 70 {
            return message;
        }
    }
}

/// By what a client is known.
type Shown = (&'static str, &'static str);

const ANN: Shown = ("authorization", "Bearer a-token");
const BOB: Shown = ("authorization", "Bearer b-token");

/// A request of the newer era by a client that knows tasks and can be asked.
fn ask(server: &HttpServer, shown: Shown, method: &str, mut params: Value) -> Value {
    let name = params.get("name").or_else(|| params.get("taskId"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let headers = [
        shown,
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", method),
        ("mcp-name", &name),
    ];
    server.post(&headers, &request(1, method, params)).json()
}

/// Looks at a task until it is in another state than this one.
fn after(server: &HttpServer, shown: Shown, id: &Value, status: &str) -> Value {
    loop {
        let state = ask(server, shown, "tasks/get", json!({"taskId": id}));
        if state["result"]["status"] != status {
            return state["result"].clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn owner_answers_task_input_on_any_server_with_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    answered_at_another(format!(
        "sqlite:{}",
        folder.path().join("store.db").display()
    ));
}

#[cfg(unix)]
#[test]
fn owner_answers_task_input_on_any_server_with_redis() {
    let redis = crate::support::RedisServer::start();
    answered_at_another(redis.url());
}

/// Two servers on one store, a webset, and a task of the first server that asks for it.
fn asking(sandbox: &Sandbox, store: String) -> ([HttpServer; 2], Value, Value) {
    let mut variables = people();
    variables.push(("EXA_MCP_STORE", store));
    let servers = [(); 2].map(|()| serve(sandbox, &variables));
    let [one, _] = &servers;
    let webset = webset(&ask(one, ANN, "tools/call", create()));
    let task = ask(one, ANN, "tools/call", search());
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    (servers, webset, task["result"]["taskId"].clone())
}

fn answered_at_another(store: String) {
    let sandbox = Sandbox::start();
    let ([one, other], webset, id) = asking(&sandbox, store);
    let waiting = after(&other, ANN, &id, "working");
    assert_eq!(waiting["status"], "input_required", "{waiting}");
    let requests = waiting["inputRequests"].as_object().expect("questions");
    let key = requests.keys().next().expect("a question");
    let answer = json!({key: {"action": "accept", "content": {"websetId": webset}}});
    let update = json!({"taskId": id, "inputResponses": answer});

    let foreign = ask(&one, BOB, "tasks/update", update.clone());
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let foreign = ask(&one, BOB, "tasks/get", json!({"taskId": id}));
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    assert_eq!(after(&one, ANN, &id, "working")["status"], "input_required");

    let taken = ask(&other, ANN, "tasks/update", update);
    assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
    sandbox.await_requests("searches.create", 1);
    sandbox.advance(600_000);
    let end = after(&other, ANN, &id, "working");
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"]["isError"], false, "{end}");
    assert_eq!(sandbox.requests("searches.create").len(), 1);
}

#[test]
fn input_request_reaches_a_waiter_on_another_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let sandbox = Sandbox::start();
    let ([_one, other], webset, id) = asking(&sandbox, store);
    let session = HttpSession::able(&other, &[ANN], json!({"elicitation": {}}));
    let answer = asked_while_waiting(&other, &session, &sandbox, &id, &webset);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(sandbox.requests("searches.create").len(), 1);
}

#[test]
fn input_request_is_repeated_by_the_next_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let store = ("EXA_MCP_STORE", store);
    let sandbox = Sandbox::start();
    let mut pool = people();
    pool.push(store.clone());
    let secret = ("EXA_MCP_SECRET", "the secret of this test".to_owned());
    let own = vec![secret, store];
    // Without the key of its owner nobody could go on with the second one.
    for (variables, shown) in [(pool, ANN), (own, ("x-api-key", "the-key-of-ann"))] {
        let first = serve(&sandbox, &variables);
        let webset = webset(&ask(&first, shown, "tools/call", create()));
        let task = ask(&first, shown, "tools/call", search());
        let id = task["result"]["taskId"].clone();
        let before = after(&first, shown, &id, "working");
        assert_eq!(before["status"], "input_required", "{before}");
        drop(first);

        let next = serve(&sandbox, &variables);
        let made = sandbox.requests("searches.create").len();
        let again = after(&next, shown, &id, "working");
        assert_eq!(again["inputRequests"], before["inputRequests"], "{again}");
        let requests = again["inputRequests"].as_object().expect("questions");
        let key = requests.keys().next().expect("a question");
        let answer = json!({key: {"action": "accept", "content": {"websetId": webset}}});
        let update = json!({"taskId": id, "inputResponses": answer});
        assert_eq!(sandbox.requests("searches.create").len(), made);
        ask(&next, shown, "tasks/update", update);
        sandbox.await_requests("searches.create", made + 1);
        sandbox.advance(600_000);
        let end = after(&next, shown, &id, "working");
        assert_eq!(end["result"]["isError"], false, "{end}");
    }
}

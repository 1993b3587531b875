//! Tasks that need input over HTTP, with sessions and stateless.

use serde_json::{Value, json};

use super::{ACCEPT_EVENTS, bearer, request};
use crate::support::{HttpServer, HttpSession, STATELESS_VERSION, Sandbox};

/// Returns a search without its required webset.
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
    HttpServer::with_upstream(&sandbox.url(), &given)
}

#[test]
fn input_request_arrives_on_the_result_stream() {
    let sandbox = Sandbox::start();
    let server = serve(&sandbox, &people());
    let ann = bearer("a-token");
    let credential = [("authorization", ann.as_str())];
    let mut session =
        HttpSession::with_capabilities(&server, &credential, json!({"elicitation": {}}));
    let webset = webset(&session.request("tools/call", create()));
    let mut call = search();
    call["task"] = json!({});
    let task = session.request("tools/call", call)["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let id = json!({"taskId": task["taskId"]});
    while session.request("tasks/get", id.clone())["result"]["status"] == "working" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let waiting = session.request("tasks/get", id.clone());
    assert_eq!(waiting["result"]["status"], "input_required", "{waiting}");

    let answer = wait_with_elicitation(&server, &session, &sandbox, &task["taskId"], &webset);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let state = session.request("tasks/get", id);
    assert_eq!(state["result"]["status"], "completed", "{state}");
}

/// Waits for the result of a task, names the webset when asked, and returns the response.
fn wait_with_elicitation(
    server: &HttpServer,
    session: &HttpSession<'_>,
    sandbox: &Sandbox,
    task: &Value,
    webset: &Value,
) -> Value {
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("content-type", "application/json")]);
    let body = request(70, "tasks/result", json!({"taskId": task})).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    let elicitation = events.message();
    assert_eq!(elicitation["method"], "elicitation/create", "{elicitation}");
    let related = &elicitation["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], *task);
    assert!(sandbox.requests("searches.create").is_empty());
    let filled = json!({"action": "accept", "content": {"websetId": webset}});
    let response = json!({"jsonrpc": "2.0", "id": elicitation["id"], "result": filled});
    assert_eq!(session.post(&response).status, 202);
    sandbox.await_requests("searches.create", 1);
    sandbox.advance(600_000);
    loop {
        let message = events.message();
        if message["id"] == 70 {
            return message;
        }
    }
}

/// The header that authenticates a client.
type Credential = (&'static str, &'static str);

const ANN: Credential = ("authorization", "Bearer a-token");
const BOB: Credential = ("authorization", "Bearer b-token");

/// Sends a stateless request of a client that supports tasks and elicitation.
fn send_request(
    server: &HttpServer,
    credential: Credential,
    method: &str,
    mut params: Value,
) -> Value {
    let name = params.get("name").or_else(|| params.get("taskId"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let headers = [
        credential,
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", method),
        ("mcp-name", &name),
    ];
    server.post(&headers, &request(1, method, params)).json()
}

/// Polls a task until its status differs from this one.
fn wait_while(server: &HttpServer, credential: Credential, id: &Value, status: &str) -> Value {
    loop {
        let state = send_request(server, credential, "tasks/get", json!({"taskId": id}));
        if state["result"]["status"] != status {
            return state["result"].clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn owner_answers_task_input_on_any_server_with_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    answer_on_other_replica(format!(
        "sqlite:{}",
        folder.path().join("store.db").display()
    ));
}

#[cfg(unix)]
#[test]
fn owner_answers_task_input_on_any_server_with_redis() {
    let redis = crate::support::RedisServer::start();
    answer_on_other_replica(redis.url());
}

/// Starts two servers with one store, a webset, and a task on the first server that asks for the webset.
fn start_task_with_input(sandbox: &Sandbox, store: String) -> ([HttpServer; 2], Value, Value) {
    let mut variables = people();
    variables.push(("EXA_MCP_STORE", store));
    let servers = [(); 2].map(|()| serve(sandbox, &variables));
    let [one, _] = &servers;
    let webset = webset(&send_request(one, ANN, "tools/call", create()));
    let task = send_request(one, ANN, "tools/call", search());
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    (servers, webset, task["result"]["taskId"].clone())
}

fn answer_on_other_replica(store: String) {
    let sandbox = Sandbox::start();
    let ([one, other], webset, id) = start_task_with_input(&sandbox, store);
    let waiting = wait_while(&other, ANN, &id, "working");
    assert_eq!(waiting["status"], "input_required", "{waiting}");
    let requests = waiting["inputRequests"]
        .as_object()
        .expect("input requests");
    let key = requests.keys().next().expect("an input request");
    let answer = json!({key: {"action": "accept", "content": {"websetId": webset}}});
    let update = json!({"taskId": id, "inputResponses": answer});

    let foreign = send_request(&one, BOB, "tasks/update", update.clone());
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let foreign = send_request(&one, BOB, "tasks/get", json!({"taskId": id}));
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    assert_eq!(
        wait_while(&one, ANN, &id, "working")["status"],
        "input_required"
    );

    let taken = send_request(&other, ANN, "tasks/update", update);
    assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
    sandbox.await_requests("searches.create", 1);
    sandbox.advance(600_000);
    let end = wait_while(&other, ANN, &id, "working");
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"]["isError"], false, "{end}");
    assert_eq!(sandbox.requests("searches.create").len(), 1);
}

#[test]
fn input_request_reaches_a_waiter_on_another_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let sandbox = Sandbox::start();
    let ([_one, other], webset, id) = start_task_with_input(&sandbox, store);
    let session = HttpSession::with_capabilities(&other, &[ANN], json!({"elicitation": {}}));
    let answer = wait_with_elicitation(&other, &session, &sandbox, &id, &webset);
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
    // The second task can only continue with its owner's key.
    for (variables, credential) in [(pool, ANN), (own, ("x-api-key", "the-key-of-ann"))] {
        let first = serve(&sandbox, &variables);
        let webset = webset(&send_request(&first, credential, "tools/call", create()));
        let task = send_request(&first, credential, "tools/call", search());
        let id = task["result"]["taskId"].clone();
        let before = wait_while(&first, credential, &id, "working");
        assert_eq!(before["status"], "input_required", "{before}");
        drop(first);

        let next = serve(&sandbox, &variables);
        let made = sandbox.requests("searches.create").len();
        let again = wait_while(&next, credential, &id, "working");
        assert_eq!(again["inputRequests"], before["inputRequests"], "{again}");
        let requests = again["inputRequests"].as_object().expect("input requests");
        let key = requests.keys().next().expect("an input request");
        let answer = json!({key: {"action": "accept", "content": {"websetId": webset}}});
        let update = json!({"taskId": id, "inputResponses": answer});
        assert_eq!(sandbox.requests("searches.create").len(), made);
        send_request(&next, credential, "tasks/update", update);
        sandbox.await_requests("searches.create", made + 1);
        sandbox.advance(600_000);
        let end = wait_while(&next, credential, &id, "working");
        assert_eq!(end["result"]["isError"], false, "{end}");
    }
}

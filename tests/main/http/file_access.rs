//! Files of the server's machine: a client over HTTP opens none of them, whatever it says of itself.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{STREAMS, bearer, request};
use crate::support::{HttpServer, HttpSession, Outcome, Recorder, Reply, STATELESS, initialize};

const SECRET: &str = "name,url\nthe-secret-of-the-machine,https://secret.example\n";

/// Versions with sessions.
const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A machine: Exa with its storage, and a file beside the folder that is open to the server.
struct Machine {
    exa: Recorder,
    storage: Recorder,
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let storage = Recorder::always(Reply::new(200));
        let address = format!("{}/bucket/file", storage.url());
        let exa = Recorder::start(move |request, _| {
            let import = json!({
                "id": "import_1", "object": "import", "status": "pending", "count": 1,
                "uploadUrl": address, "uploadValidUntil": "2026-04-03T11:00:00Z",
            });
            let status = if request.method == "POST" { 201 } else { 200 };
            Reply::json(status, &import)
        });
        let folder = TempDir::new().expect("a folder");
        fs::create_dir(folder.path().join("open")).expect("a folder");
        fs::write(folder.path().join("secret.csv"), SECRET).expect("a file");
        fs::write(folder.path().join("open/list.csv"), SECRET).expect("a file");
        Self {
            exa,
            storage,
            folder,
        }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("a path of text").to_owned()
    }

    fn server(&self, variables: &[(&str, &str)]) -> HttpServer {
        let mut all = vec![("EXA_MCP_CLIENT_TIMEOUT", "2")];
        all.extend_from_slice(variables);
        HttpServer::upstream(&self.exa.url(), &all)
    }

    /// Nothing was announced to Exa, and nothing of the file has left the machine.
    #[track_caller]
    fn assert_untouched(&self, case: &str) {
        assert_eq!(self.storage.take().len(), 0, "{case}: uploaded");
        let asked = self.exa.take();
        assert!(asked.is_empty(), "{case}: {asked:?}");
    }
}

/// The tools that import a file, in several sets, and their arguments.
fn calls(path: &str) -> Vec<(&'static str, &'static str, Value)> {
    let import = json!({"title": "Mine", "filePath": path, "entity": {"type": "company"}});
    let dispatched = json!({"operation": "imports.create", "args": import});
    vec![
        ("default", "manage_websets", dispatched.clone()),
        ("granular", "imports_create", import.clone()),
        ("imports", "imports_create", import),
        ("default,classic,toolhost", "manage_websets", dispatched),
    ]
}

/// What an attacker answers: every file of the machine is mine.
fn everything() -> Value {
    let uris = [
        "file:///",
        "file:///proc/self/root",
        "file:///proc/self/cwd/",
    ];
    json!({"roots": uris.map(|uri| json!({"uri": uri, "name": "all"}))})
}

fn capabilities() -> Value {
    json!({
        "roots": {"listChanged": true},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    })
}

/// Asks in a session and answers what the server asks; gives the answer, and the methods it asked.
fn in_session(
    server: &HttpServer,
    headers: &[(&str, &str)],
    message: &Value,
) -> (Value, Vec<String>) {
    let mut all = vec![("content-type", "application/json"), STREAMS];
    all.extend_from_slice(headers);
    let body = message.to_string();
    let mut stream = server.connect();
    let bytes = server.request("POST", "/mcp", &all, body.as_bytes());
    stream.write_all(&bytes).expect("the server reads");
    let mut asked = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let line = line.strip_prefix("data:").unwrap_or(&line);
        let Ok(Value::Object(heard)) = serde_json::from_str(line.trim()) else {
            continue;
        };
        let Some(method) = heard.get("method").and_then(Value::as_str) else {
            if heard.get("id") == message.get("id") {
                return (Value::Object(heard), asked);
            }
            continue;
        };
        if let Some(id) = heard.get("id") {
            asked.push(method.to_owned());
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": everything()});
            server.post(headers, &answer);
        }
    }
    panic!("no answer to {message}");
}

/// Asks without a session, in as many rounds as the server wants.
fn in_rounds(
    server: &HttpServer,
    headers: &[(&str, &str)],
    method: &str,
    params: &Value,
) -> (Value, Vec<String>) {
    let mut asked = Vec::new();
    let mut next = params.clone();
    for _ in 0..10 {
        next["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": capabilities(),
        });
        let name = params.get("name").or_else(|| params.get("taskId"));
        let name = name.and_then(Value::as_str).expect("a name");
        let mut all = vec![
            ("mcp-protocol-version", STATELESS),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        all.extend_from_slice(headers);
        let answer = server.post(&all, &request(1, method, next)).json();
        if answer["result"]["resultType"] != "input_required" {
            return (answer, asked);
        }
        let requests = answer["result"]["inputRequests"].as_object();
        let mut responses = json!({});
        for (key, request) in requests.expect("questions") {
            asked.push(request["method"].as_str().expect("a method").to_owned());
            responses[key] = everything();
        }
        next = params.clone();
        next["requestState"] = answer["result"]["requestState"].clone();
        next["inputResponses"] = responses;
    }
    panic!("asked too often");
}

/// The result of a task, with everything that is asked meanwhile answered.
fn result_of(server: &HttpServer, headers: &[(&str, &str)], task: &str) -> (Value, Vec<String>) {
    let mut asked = Vec::new();
    for _ in 0..200 {
        let params = json!({"taskId": task});
        let (state, more) = in_rounds(server, headers, "tasks/get", &params);
        asked.extend(more);
        let state = &state["result"];
        match state["status"].as_str() {
            Some("working") => std::thread::sleep(std::time::Duration::from_millis(20)),
            Some("input_required") => {
                let mut update = params;
                for (key, request) in state["inputRequests"].as_object().expect("questions") {
                    asked.push(request["method"].to_string());
                    update["inputResponses"][key] = everything();
                }
                in_rounds(server, headers, "tasks/update", &update);
            }
            _ => return (state["result"].clone(), asked),
        }
    }
    panic!("the task {task} does not end");
}

/// The refusal says why, and what to do instead.
#[track_caller]
fn assert_refused(answer: &Value, asked: &[String], case: &str) {
    assert!(asked.is_empty(), "{case}: asked {asked:?}");
    let outcome = Outcome::of(answer);
    assert!(outcome.is_error, "{case}: {}", outcome.text);
    for part in ["filePath", "csvContent", "EXA_MCP_IMPORT_DIR"] {
        assert!(outcome.text.contains(part), "{case}: {}", outcome.text);
    }
    assert!(!outcome.text.contains("secret-of"), "{case}");
}

/// A way to come in: its name, what the server knows, and what a client shows.
type Door = (
    &'static str,
    Vec<(&'static str, &'static str)>,
    (&'static str, String),
);

fn doors() -> Vec<Door> {
    vec![
        (
            "pool",
            vec![
                ("USER_TOKENS", "a-token:ann"),
                ("EXA_API_KEYS", "pool-key-one"),
            ],
            ("authorization", bearer("a-token")),
        ),
        (
            "passthrough",
            Vec::new(),
            ("x-api-key", "the-key-of-the-attacker".to_owned()),
        ),
    ]
}

#[test]
fn session_roots_do_not_open_files() {
    let machine = Machine::new();
    let secret = machine.path("secret.csv");
    for (door, variables, shown) in doors() {
        for (set, tool, arguments) in calls(&secret) {
            let mut variables = variables.clone();
            variables.push(("ENABLED_TOOLS", set));
            let server = machine.server(&variables);
            for version in SESSIONS {
                let case = format!("{door} {version} {tool}");
                let mut hello = initialize(version);
                hello["params"]["capabilities"] = capabilities();
                let shown = [(shown.0, shown.1.as_str())];
                let session = HttpSession::greet(&server, "/mcp", &shown, &hello);
                let call = json!({"name": tool, "arguments": arguments});
                let message = request(7, "tools/call", call.clone());
                let (answer, asked) = in_session(&server, &session.headers(), &message);
                assert_refused(&answer, &asked, &case);
                machine.assert_untouched(&case);
                if version != "2025-11-25" {
                    continue;
                }
                let mut call = call;
                call["task"] = json!({});
                let message = request(8, "tools/call", call);
                let (answer, asked) = in_session(&server, &session.headers(), &message);
                assert!(asked.is_empty(), "{case}: asked {asked:?}");
                let task = &answer["result"]["task"]["taskId"];
                let Some(task) = task.as_str() else {
                    assert!(answer["error"].is_object(), "{case}: {answer}");
                    continue;
                };
                let message = request(9, "tasks/result", json!({"taskId": task}));
                let (answer, asked) = in_session(&server, &session.headers(), &message);
                assert_refused(&answer, &asked, &format!("{case} as a task"));
                machine.assert_untouched(&case);
            }
        }
    }
}

#[test]
fn stateless_roots_do_not_open_files() {
    let machine = Machine::new();
    let secret = machine.path("secret.csv");
    for (door, variables, shown) in doors() {
        let shown = [(shown.0, shown.1.as_str())];
        for (set, tool, arguments) in calls(&secret) {
            let mut variables = variables.clone();
            variables.push(("ENABLED_TOOLS", set));
            let server = machine.server(&variables);
            let case = format!("{door} {tool}");
            let call = json!({"name": tool, "arguments": arguments});
            let (answer, mut asked) = in_rounds(&server, &shown, "tools/call", &call);
            let answer = match answer["result"]["taskId"].as_str() {
                Some(task) => {
                    let (result, more) = result_of(&server, &shown, task);
                    asked.extend(more);
                    json!({"result": result})
                }
                None => answer,
            };
            assert_refused(&answer, &asked, &case);
            machine.assert_untouched(&case);
        }
    }
}

#[test]
fn sandbox_client_is_remote() {
    let machine = Machine::new();
    let server = HttpServer::sandboxed(&[("EXA_MCP_CLIENT_TIMEOUT", "2")]);
    let (_, tool, arguments) = calls(&machine.path("secret.csv")).remove(0);
    let call = json!({"name": tool, "arguments": arguments});
    let session = HttpSession::able(&server, &[], capabilities());
    let message = request(7, "tools/call", call.clone());
    let (answer, asked) = in_session(&server, &session.headers(), &message);
    assert_refused(&answer, &asked, "session");
    let (answer, asked) = in_rounds(&server, &[], "tools/call", &call);
    let answer = match answer["result"]["taskId"].as_str() {
        Some(task) => json!({"result": result_of(&server, &[], task).0}),
        None => answer,
    };
    assert_refused(&answer, &asked, "stateless");
}

#[test]
fn legacy_sse_roots_do_not_open_files() {
    let machine = Machine::new();
    for (door, variables, shown) in doors() {
        let server = machine.server(&variables);
        let shown = [(shown.0, shown.1.as_str())];
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend_from_slice(&shown);
        let mut events = server.events("GET", "/sse", &headers, b"");
        let (_, endpoint) = events.next().expect("an endpoint");
        let post = |message: &Value| server.post_to(&endpoint, &shown, message);
        let mut hello = initialize("2024-11-05");
        hello["params"]["capabilities"] = capabilities();
        post(&hello);
        events.message();
        post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let (_, tool, arguments) = calls(&machine.path("secret.csv")).remove(0);
        post(&request(
            2,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        ));
        let mut asked = Vec::new();
        let answer = loop {
            let message = events.message();
            match message.get("method").and_then(Value::as_str) {
                None => break message,
                Some(method) if message.get("id").is_some() => {
                    asked.push(method.to_owned());
                    let id = &message["id"];
                    post(&json!({"jsonrpc": "2.0", "id": id, "result": everything()}));
                }
                Some(_) => {}
            }
        };
        assert_refused(&answer, &asked, door);
        machine.assert_untouched(door);
    }
}

#[test]
fn only_the_import_directory_is_readable() {
    let machine = Machine::new();
    let open = machine.path("open");
    #[cfg(unix)]
    std::os::unix::fs::symlink(machine.path("secret.csv"), machine.path("open/link.csv"))
        .expect("a link");
    for (door, mut variables, shown) in doors() {
        variables.push(("EXA_MCP_IMPORT_DIR", &open));
        let server = machine.server(&variables);
        let shown = [(shown.0, shown.1.as_str())];
        let session = HttpSession::able(&server, &shown, capabilities());
        let import = |path: &str| {
            let (_, tool, arguments) = calls(path).remove(0);
            let call = json!({"name": tool, "arguments": arguments});
            let message = request(7, "tools/call", call);
            in_session(&server, &session.headers(), &message)
        };
        let mut outside = vec![
            machine.path("secret.csv"),
            machine.path("open/../secret.csv"),
            "../secret.csv".to_owned(),
            "/etc/passwd".to_owned(),
            "file:///etc/passwd".to_owned(),
            "/proc/self/environ".to_owned(),
            format!("/proc/self/root{}", machine.path("secret.csv")),
            format!(
                "/proc/self/cwd/../../../../../../../..{}",
                machine.path("secret.csv")
            ),
        ];
        if cfg!(unix) {
            outside.push(machine.path("open/link.csv"));
            outside.push("link.csv".to_owned());
        }
        for path in outside {
            let (answer, asked) = import(&path);
            assert!(asked.is_empty(), "{door} {path}: asked {asked:?}");
            let outcome = Outcome::of(&answer);
            assert!(outcome.is_error, "{door} {path}: {}", outcome.text);
            machine.assert_untouched(&format!("{door} {path}"));
        }
        for path in [machine.path("open/list.csv"), "list.csv".to_owned()] {
            let (answer, asked) = import(&path);
            assert!(asked.is_empty(), "{door} {path}: asked {asked:?}");
            let outcome = Outcome::of(&answer);
            assert!(!outcome.is_error, "{door} {path}: {}", outcome.text);
            assert_eq!(machine.storage.take().len(), 1, "{door} {path}");
            machine.exa.take();
        }
    }
}

//! Files of the server's host: HTTP clients cannot open them, whatever capabilities they declare.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ACCEPT_EVENTS, bearer, request};
use crate::support::{
    HttpServer, HttpSession, Outcome, Recorder, Response, STATELESS_VERSION, initialize,
};

const SECRET: &str = "name,url\nthe-secret-of-the-machine,https://secret.example\n";

/// Protocol versions with sessions.
const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Exa with its storage, and a file outside of the folder that the server may read.
struct Fixture {
    exa: Recorder,
    storage: Recorder,
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let storage = Recorder::always(Response::new(200));
        let address = format!("{}/bucket/file", storage.url());
        let exa = Recorder::start(move |request, _| {
            let import = json!({
                "id": "import_1", "object": "import", "status": "pending", "count": 1,
                "uploadUrl": address, "uploadValidUntil": "2026-04-03T11:00:00Z",
            });
            let status = if request.method == "POST" { 201 } else { 200 };
            Response::json(status, &import)
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
        path.to_str().expect("a UTF-8 path").to_owned()
    }

    fn server(&self, variables: &[(&str, &str)]) -> HttpServer {
        let mut all = vec![("EXA_MCP_CLIENT_TIMEOUT", "2")];
        all.extend_from_slice(variables);
        HttpServer::with_upstream(&self.exa.url(), &all)
    }

    /// Asserts that no import was created and no file was uploaded.
    #[track_caller]
    fn assert_untouched(&self, case: &str) {
        assert_eq!(self.storage.take().len(), 0, "{case}: uploaded");
        let methods = self.exa.take();
        assert!(methods.is_empty(), "{case}: {methods:?}");
    }
}

/// Returns the tools that import a file, from several sets, with their arguments.
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

/// Returns an attacker's response, which claims all files.
fn accept_everything() -> Value {
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

/// Sends a request in a session and responds to the server's requests; returns the response and their methods.
fn call_in_session(
    server: &HttpServer,
    headers: &[(&str, &str)],
    message: &Value,
) -> (Value, Vec<String>) {
    let mut all = vec![("content-type", "application/json"), ACCEPT_EVENTS];
    all.extend_from_slice(headers);
    let body = message.to_string();
    let mut stream = server.connect();
    let bytes = server.request("POST", "/mcp", &all, body.as_bytes());
    stream.write_all(&bytes).expect("the server reads");
    let mut methods = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let line = line.strip_prefix("data:").unwrap_or(&line);
        let Ok(Value::Object(heard)) = serde_json::from_str(line.trim()) else {
            continue;
        };
        let Some(method) = heard.get("method").and_then(Value::as_str) else {
            if heard.get("id") == message.get("id") {
                return (Value::Object(heard), methods);
            }
            continue;
        };
        if let Some(id) = heard.get("id") {
            methods.push(method.to_owned());
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": accept_everything()});
            server.post(headers, &answer);
        }
    }
    panic!("no answer to {message}");
}

/// Sends a stateless request in as many rounds as the server needs.
fn call_stateless(
    server: &HttpServer,
    headers: &[(&str, &str)],
    method: &str,
    params: &Value,
) -> (Value, Vec<String>) {
    let mut methods = Vec::new();
    let mut next = params.clone();
    for _ in 0..10 {
        next["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
            "io.modelcontextprotocol/clientCapabilities": capabilities(),
        });
        let name = params.get("name").or_else(|| params.get("taskId"));
        let name = name.and_then(Value::as_str).expect("a name");
        let mut all = vec![
            ("mcp-protocol-version", STATELESS_VERSION),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        all.extend_from_slice(headers);
        let answer = server.post(&all, &request(1, method, next)).json();
        if answer["result"]["resultType"] != "input_required" {
            return (answer, methods);
        }
        let requests = answer["result"]["inputRequests"].as_object();
        let mut responses = json!({});
        for (key, request) in requests.expect("input requests") {
            methods.push(request["method"].as_str().expect("a method").to_owned());
            responses[key] = accept_everything();
        }
        next = params.clone();
        next["requestState"] = answer["result"]["requestState"].clone();
        next["inputResponses"] = responses;
    }
    panic!("too many rounds");
}

/// Returns the result of a task after responding to its input requests.
fn task_result(server: &HttpServer, headers: &[(&str, &str)], task: &str) -> (Value, Vec<String>) {
    let mut methods = Vec::new();
    for _ in 0..200 {
        let params = json!({"taskId": task});
        let (state, more) = call_stateless(server, headers, "tasks/get", &params);
        methods.extend(more);
        let state = &state["result"];
        match state["status"].as_str() {
            Some("working") => std::thread::sleep(std::time::Duration::from_millis(20)),
            Some("input_required") => {
                let mut update = params;
                for (key, request) in state["inputRequests"].as_object().expect("input requests") {
                    methods.push(request["method"].to_string());
                    update["inputResponses"][key] = accept_everything();
                }
                call_stateless(server, headers, "tasks/update", &update);
            }
            _ => return (state["result"].clone(), methods),
        }
    }
    panic!("the task {task} does not end");
}

/// Asserts that the error gives the reason and the alternative.
#[track_caller]
fn assert_rejected(answer: &Value, methods: &[String], case: &str) {
    assert!(methods.is_empty(), "{case}: asked {methods:?}");
    let outcome = Outcome::from_response(answer);
    assert!(outcome.is_error, "{case}: {}", outcome.text);
    for part in ["filePath", "csvContent", "EXA_MCP_IMPORT_DIR"] {
        assert!(outcome.text.contains(part), "{case}: {}", outcome.text);
    }
    assert!(!outcome.text.contains("secret-of"), "{case}");
}

/// A kind of authentication: its name, the server's variables, and the client's header.
type AccessCase = (
    &'static str,
    Vec<(&'static str, &'static str)>,
    (&'static str, String),
);

fn access_cases() -> Vec<AccessCase> {
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
    let fixture = Fixture::new();
    let secret = fixture.path("secret.csv");
    for (access, variables, credential) in access_cases() {
        for (set, tool, arguments) in calls(&secret) {
            let mut variables = variables.clone();
            variables.push(("ENABLED_TOOLS", set));
            let server = fixture.server(&variables);
            for version in SESSION_VERSIONS {
                let case = format!("{access} {version} {tool}");
                let mut initialize_message = initialize(version);
                initialize_message["params"]["capabilities"] = capabilities();
                let credential = [(credential.0, credential.1.as_str())];
                let session =
                    HttpSession::with_initialize(&server, "/mcp", &credential, &initialize_message);
                let call = json!({"name": tool, "arguments": arguments});
                let message = request(7, "tools/call", call.clone());
                let (answer, methods) = call_in_session(&server, &session.headers(), &message);
                assert_rejected(&answer, &methods, &case);
                fixture.assert_untouched(&case);
                if version != "2025-11-25" {
                    continue;
                }
                let mut call = call;
                call["task"] = json!({});
                let message = request(8, "tools/call", call);
                let (answer, methods) = call_in_session(&server, &session.headers(), &message);
                assert!(methods.is_empty(), "{case}: asked {methods:?}");
                let task = &answer["result"]["task"]["taskId"];
                let Some(task) = task.as_str() else {
                    assert!(answer["error"].is_object(), "{case}: {answer}");
                    continue;
                };
                let message = request(9, "tasks/result", json!({"taskId": task}));
                let (answer, methods) = call_in_session(&server, &session.headers(), &message);
                assert_rejected(&answer, &methods, &format!("{case} as a task"));
                fixture.assert_untouched(&case);
            }
        }
    }
}

#[test]
fn stateless_roots_do_not_open_files() {
    let fixture = Fixture::new();
    let secret = fixture.path("secret.csv");
    for (access, variables, credential) in access_cases() {
        let credential = [(credential.0, credential.1.as_str())];
        for (set, tool, arguments) in calls(&secret) {
            let mut variables = variables.clone();
            variables.push(("ENABLED_TOOLS", set));
            let server = fixture.server(&variables);
            let case = format!("{access} {tool}");
            let call = json!({"name": tool, "arguments": arguments});
            let (answer, mut methods) = call_stateless(&server, &credential, "tools/call", &call);
            let answer = match answer["result"]["taskId"].as_str() {
                Some(task) => {
                    let (result, more) = task_result(&server, &credential, task);
                    methods.extend(more);
                    json!({"result": result})
                }
                None => answer,
            };
            assert_rejected(&answer, &methods, &case);
            fixture.assert_untouched(&case);
        }
    }
}

#[test]
fn sandbox_client_is_remote() {
    let fixture = Fixture::new();
    let server = HttpServer::sandboxed(&[("EXA_MCP_CLIENT_TIMEOUT", "2")]);
    let (_, tool, arguments) = calls(&fixture.path("secret.csv")).remove(0);
    let call = json!({"name": tool, "arguments": arguments});
    let session = HttpSession::with_capabilities(&server, &[], capabilities());
    let message = request(7, "tools/call", call.clone());
    let (answer, methods) = call_in_session(&server, &session.headers(), &message);
    assert_rejected(&answer, &methods, "session");
    let (answer, methods) = call_stateless(&server, &[], "tools/call", &call);
    let answer = match answer["result"]["taskId"].as_str() {
        Some(task) => json!({"result": task_result(&server, &[], task).0}),
        None => answer,
    };
    assert_rejected(&answer, &methods, "stateless");
}

#[test]
fn legacy_sse_roots_do_not_open_files() {
    let fixture = Fixture::new();
    for (access, variables, credential) in access_cases() {
        let server = fixture.server(&variables);
        let credential = [(credential.0, credential.1.as_str())];
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend_from_slice(&credential);
        let mut events = server.events("GET", "/sse", &headers, b"");
        let (_, endpoint) = events.next().expect("an endpoint");
        let post = |message: &Value| server.post_to(&endpoint, &credential, message);
        let mut initialize_message = initialize("2024-11-05");
        initialize_message["params"]["capabilities"] = capabilities();
        post(&initialize_message);
        events.message();
        post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let (_, tool, arguments) = calls(&fixture.path("secret.csv")).remove(0);
        post(&request(
            2,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        ));
        let mut methods = Vec::new();
        let answer = loop {
            let message = events.message();
            match message.get("method").and_then(Value::as_str) {
                None => break message,
                Some(method) if message.get("id").is_some() => {
                    methods.push(method.to_owned());
                    let id = &message["id"];
                    post(&json!({"jsonrpc": "2.0", "id": id, "result": accept_everything()}));
                }
                Some(_) => {}
            }
        };
        assert_rejected(&answer, &methods, access);
        fixture.assert_untouched(access);
    }
}

#[test]
fn only_the_import_directory_is_readable() {
    let fixture = Fixture::new();
    let open = fixture.path("open");
    #[cfg(unix)]
    std::os::unix::fs::symlink(fixture.path("secret.csv"), fixture.path("open/link.csv"))
        .expect("a link");
    for (access, mut variables, credential) in access_cases() {
        variables.push(("EXA_MCP_IMPORT_DIR", &open));
        let server = fixture.server(&variables);
        let credential = [(credential.0, credential.1.as_str())];
        let session = HttpSession::with_capabilities(&server, &credential, capabilities());
        let import = |path: &str| {
            let (_, tool, arguments) = calls(path).remove(0);
            let call = json!({"name": tool, "arguments": arguments});
            let message = request(7, "tools/call", call);
            call_in_session(&server, &session.headers(), &message)
        };
        let mut outside = vec![
            fixture.path("secret.csv"),
            fixture.path("open/../secret.csv"),
            "../secret.csv".to_owned(),
            "/etc/passwd".to_owned(),
            "file:///etc/passwd".to_owned(),
            "/proc/self/environ".to_owned(),
            format!("/proc/self/root{}", fixture.path("secret.csv")),
            format!(
                "/proc/self/cwd/../../../../../../../..{}",
                fixture.path("secret.csv")
            ),
        ];
        if cfg!(unix) {
            outside.push(fixture.path("open/link.csv"));
            outside.push("link.csv".to_owned());
        }
        for path in outside {
            let (answer, methods) = import(&path);
            assert!(methods.is_empty(), "{access} {path}: asked {methods:?}");
            let outcome = Outcome::from_response(&answer);
            assert!(outcome.is_error, "{access} {path}: {}", outcome.text);
            fixture.assert_untouched(&format!("{access} {path}"));
        }
        for path in [fixture.path("open/list.csv"), "list.csv".to_owned()] {
            let (answer, methods) = import(&path);
            assert!(methods.is_empty(), "{access} {path}: asked {methods:?}");
            let outcome = Outcome::from_response(&answer);
            assert!(!outcome.is_error, "{access} {path}: {}", outcome.text);
            assert_eq!(fixture.storage.take().len(), 1, "{access} {path}");
            fixture.exa.take();
        }
    }
}

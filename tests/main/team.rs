//! Team management: its own key, its own host and its own tools.

use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{
    API_KEY, DEFAULT_VERSION, HttpResponse, HttpServer, HttpSession, McpServer, Program, Recorder,
    Response,
};

const SERVICE_KEY: &str = "exa-service-key-hunter2";

/// The secret of a new API key.
const SECRET: &str = "a-new-key-that-is-shown-once";

/// Tools that users rely on; the spec may have more.
const TOOLS: [&str; 6] = [
    "team_keys_create",
    "team_keys_delete",
    "team_keys_get",
    "team_keys_list",
    "team_keys_update",
    "team_keys_usage",
];

/// Starts an upstream that creates and lists keys.
fn team_upstream() -> Recorder {
    Recorder::start(|request, _| {
        let key = json!({"id": "2f0c0e3a-9d5e-4f4e-8a53-0d6f4ad0a001", "name": "ci"});
        match request.method.as_str() {
            "POST" => {
                let mut created = key;
                created["key"] = json!(SECRET);
                Response::json(200, &json!({"apiKey": created}))
            }
            _ => Response::json(200, &json!({"apiKeys": [key]})),
        }
    })
}

fn search_upstream() -> Recorder {
    Recorder::always(Response::json(
        200,
        &json!({"requestId": "r", "results": []}),
    ))
}

/// Returns everything that the requests to an upstream contain.
fn received(recorder: &Recorder) -> String {
    let requests = recorder.take();
    requests
        .iter()
        .map(|request| {
            let body = String::from_utf8_lossy(&request.body);
            format!("{} {:?} {body}\n", request.target, request.headers)
        })
        .collect()
}

/// Sets the addresses of both upstreams, and the service key.
fn with_team(program: Program, api: &Recorder, team: &Recorder) -> Program {
    program
        .env("EXA_BASE_URL", &api.url())
        .env("EXA_ADMIN_BASE_URL", &team.url())
        .env("EXA_SERVICE_KEY", SERVICE_KEY)
}

#[test]
fn each_key_goes_to_its_own_host_only() {
    let (api, team) = (search_upstream(), team_upstream());
    let call = |operation: &str, arguments: &str| {
        let program = Program::new(["call", operation, arguments]);
        with_team(program, &api, &team).run().json()
    };
    call("team.keys.list", "{}");
    let request = team.only_request();
    assert_eq!(request.header("x-api-key"), [SERVICE_KEY]);
    assert_eq!(request.target, "/team-management/api-keys");
    assert_eq!(received(&api), "");
    call("search", r#"{"query": "x"}"#);
    assert_eq!(api.only_request().header("x-api-key"), [API_KEY]);
    assert_eq!(received(&team), "");

    let program = Program::new(["--tools", "default,team"]);
    let mut server = McpServer::connect(with_team(program, &api, &team), DEFAULT_VERSION);
    server.call("team_keys_list", json!({})).success();
    server
        .call("team_keys_create", json!({"name": "ci"}))
        .success();
    server
        .call("web_search_exa", json!({"query": "x"}))
        .success();
    let (to_api, to_team) = (received(&api), received(&team));
    assert!(
        to_api.contains(API_KEY) && !to_api.contains(SERVICE_KEY),
        "{to_api}"
    );
    assert!(
        to_team.contains(SERVICE_KEY) && !to_team.contains(API_KEY),
        "{to_team}"
    );
}

/// Without an address of its own, team management is at the public host, whatever `EXA_BASE_URL` says.
#[test]
fn the_base_url_of_the_api_gets_no_service_key() {
    let api = search_upstream();
    let failed = Program::call(&api, "team.keys.list", &json!({}))
        .env("EXA_SERVICE_KEY", SERVICE_KEY)
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .run();
    failed.assert_failed(1, &["EXA_ADMIN_BASE_URL"]);
    assert_eq!(received(&api), "");
}

#[test]
fn a_redirect_to_another_host_gets_no_service_key() {
    let api = search_upstream();
    let location = format!("{}/team-management/api-keys", api.url());
    let team = Recorder::always(Response::new(307).header("location", &location));
    let program = Program::new(["call", "team.keys.list"]);
    let failed = with_team(program, &api, &team).run();
    failed.assert_failed(1, &["another host", "EXA_ADMIN_BASE_URL"]);
    assert_eq!(received(&api), "");
}

#[test]
fn a_missing_service_key_is_named() {
    let (api, team) = (search_upstream(), team_upstream());
    let without = |program| with_team(program, &api, &team).env_remove("EXA_SERVICE_KEY");
    let failed = without(Program::new(["call", "team.keys.list"])).run();
    failed.assert_failed(2, &["service key", "EXA_SERVICE_KEY"]);
    // Neither the key nor the pool stands in for it.
    let program =
        without(Program::new(["--tools", "team"])).env("EXA_API_KEYS", "pool-key-1,pool-key-2");
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let failure = server.call("team_keys_list", json!({})).failure();
    failure.assert_contains(&["service key", "EXA_SERVICE_KEY"]);
    assert_eq!(received(&team), "");
    assert_eq!(received(&api), "");
}

#[test]
fn a_rejected_service_key_is_named() {
    let api = search_upstream();
    let team = Recorder::always(Response::json(401, &json!({"error": "Unauthorized"})));
    let failed = with_team(Program::new(["call", "team.keys.list"]), &api, &team).run();
    failed.assert_failed(1, &["401", "EXA_SERVICE_KEY"]);
    assert!(!failed.stderr.contains(SERVICE_KEY), "{}", failed.stderr);
}

#[test]
fn the_service_key_can_be_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("key"), format!("{SERVICE_KEY}\n")).expect("a file");
    let team = team_upstream();
    let config = format!(
        "exa_service_key = \"{SERVICE_KEY}\"\nexa_admin_base_url = \"{}\"\n",
        team.url()
    );
    std::fs::write(path("config.toml"), config).expect("a file");
    let in_file = Program::new(["call", "team.keys.list"])
        .env("EXA_ADMIN_BASE_URL", &team.url())
        .env("EXA_SERVICE_KEY_FILE", &path("key"));
    let in_config = Program::new(["--config", &path("config.toml"), "call", "team.keys.list"])
        .env_remove("EXA_ADMIN_BASE_URL");
    for program in [in_file, in_config] {
        let output = program.env("EXA_MCP_LOG_LEVEL", "trace").run();
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(!output.stderr.contains(SERVICE_KEY), "{}", output.stderr);
        assert_eq!(team.only_request().header("x-api-key"), [SERVICE_KEY]);
    }
}

#[test]
fn the_sandbox_serves_it() {
    let output = Program::new(["--sandbox", "call", "team.keys.list"]).run();
    assert!(output.json().is_object(), "{output:?}");
    let mut server = McpServer::sandboxed(&["--tools", "team"]);
    server.call("team_keys_list", json!({})).success();
}

/// Returns the names of the tools that a list enables.
fn tools_of(list: &str) -> Vec<String> {
    let output = Program::new(["--tools", list, "tools", "--json"])
        .run()
        .json();
    let tools = output["tools"].as_array().expect("a list").iter();
    tools
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn its_tools_are_in_no_other_set() {
    let team = all().iter().filter(|it| it.api.name == "team");
    let team: Vec<String> = team.map(|it| it.name.replace('.', "_")).collect();
    for tool in TOOLS {
        assert!(team.iter().any(|known| known == tool), "{tool} is gone");
    }
    assert_eq!(tools_of("team"), team);
    let is_about_keys = |tool: &String| tool.starts_with("team_keys_");
    let about_keys: Vec<String> = team.into_iter().filter(is_about_keys).collect();
    assert_eq!(tools_of("team.keys"), about_keys);
    for set in [
        "default", "granular", "classic", "toolhost", "notes", "assist",
    ] {
        let tools = tools_of(set);
        assert!(!tools.iter().any(|tool| tool.starts_with("team_")), "{set}");
    }
    let mut server = McpServer::sandboxed(&["--tools", "default,team"]);
    for tool in ["exa_api", "manage_websets"] {
        let listed = server.call(tool, json!({"operation": "list_operations"}));
        assert!(!listed.text.contains("team.keys"), "{}", listed.text);
        let describe = json!({"operation": "describe", "args": {"operation": "team.keys.list"}});
        for call in [describe, json!({"operation": "team.keys.list"})] {
            server.call(tool, call).failure();
        }
    }
}

const ADMIN: &str = "admin-token-0123456789";
const USER: &str = "user-token-0123456789";

/// Starts a server with team management and tokens, and returns the folder of its store.
fn pool_server(team: &Recorder, level: &str) -> (HttpServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let api = search_upstream();
    let program = Program::new(["--tools", "default,team", "http", "--listen", "127.0.0.1:0"]);
    let program = with_team(program, &api, team)
        .env("MCP_AUTH_TOKEN", ADMIN)
        .env("USER_TOKENS", &format!("{USER}:ann:never"))
        .env("EXA_MCP_STORE", &store)
        .env("EXA_MCP_LOG_LEVEL", level);
    (HttpServer::start(program), folder)
}

fn send(server: &HttpServer, path: &str, token: &str, method: &str, params: Value) -> HttpResponse {
    let authorization = format!("Bearer {token}");
    let mut session = HttpSession::with_version(
        server,
        path,
        DEFAULT_VERSION,
        &[("authorization", &authorization)],
    );
    let body = session.request(method, params);
    HttpResponse {
        status: 200,
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
    }
}

#[test]
fn over_http_only_admins_see_and_call_it() {
    let team = team_upstream();
    let (server, _folder) = pool_server(&team, "warn");
    let list = |path: &str, token: &str| send(&server, path, token, "tools/list", json!({})).text();
    let call = json!({"name": "team_keys_list", "arguments": {}});
    for path in ["/mcp", "/mcp?tools=team", "/mcp?tools=team_keys_list"] {
        assert!(list(path, ADMIN).contains("team_keys_list"), "{path}");
        let called = send(&server, path, ADMIN, "tools/call", call.clone());
        assert!(called.text().contains("ci"), "{}", called.text());
    }
    assert_eq!(team.take().len(), 3);

    assert!(!list("/mcp", USER).contains("team_"));
    assert!(!list("/mcp?tools=default,team", USER).contains("team_"));
    for call in [
        call,
        json!({"name": "team_keys_list", "arguments": {}, "task": {}}),
        json!({"name": "exa_api", "arguments": {"operation": "team.keys.list"}}),
        json!({"name": "exa_api", "arguments": {"operation": "describe", "args": {"operation": "team.keys.list"}}}),
    ] {
        let refused = send(&server, "/mcp", USER, "tools/call", call.clone()).json();
        let failed = refused.get("error").is_some() || refused["result"]["isError"] == true;
        assert!(failed, "{call}: {refused}");
        assert!(!refused.to_string().contains("apiKey"), "{refused}");
    }
    let authorization = format!("Bearer {USER}");
    let header = [("authorization", authorization.as_str())];
    for list in ["team", "team_keys_list", "team.keys", "nonsense"] {
        let path = format!("/mcp?tools={list}");
        let refused = server.post_to(&path, &header, &crate::support::initialize(DEFAULT_VERSION));
        assert_eq!(refused.status, 400, "{list}: {}", refused.text());
        let text = refused.text().replace(list, "");
        assert!(!text.contains("team"), "{list}: {text}");
    }
    let uri = json!({"uri": "exa://operations/team.keys.list"});
    let read = send(&server, "/mcp", USER, "resources/read", uri).json();
    assert!(read.get("error").is_some(), "{read}");
    let template = json!({"type": "ref/resource", "uri": "exa://operations/{name}"});
    let complete = json!({"ref": template, "argument": {"name": "name", "value": "team"}});
    for (method, params) in [
        ("completion/complete", complete),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
    ] {
        let listed = send(&server, "/mcp", USER, method, params).text();
        assert!(
            !listed.contains("team_") && !listed.contains("team.keys"),
            "{listed}"
        );
    }
    assert_eq!(received(&team), "");
}

#[test]
fn passthrough_keys_cannot_use_it() {
    let (api, team) = (search_upstream(), team_upstream());
    let program = Program::new(["--tools", "default,team", "http", "--listen", "127.0.0.1:0"]);
    let server = HttpServer::start(with_team(program, &api, &team));
    // Not even the service key itself opens it.
    for key in ["a-client-key-0123456789", SERVICE_KEY] {
        let mut session = HttpSession::new(&server, &[("x-api-key", key)]);
        let listed = session.request("tools/list", json!({})).to_string();
        assert!(!listed.contains("team_"), "{listed}");
        let call = json!({"name": "team_keys_list", "arguments": {}});
        let refused = session.request("tools/call", call);
        assert!(refused.get("error").is_some(), "{refused}");
    }
    assert_eq!(received(&team), "");
}

#[test]
fn a_created_secret_is_shown_once_and_stored_nowhere() {
    for level in ["debug", "trace"] {
        let team = team_upstream();
        let (server, folder) = pool_server(&team, level);
        let call = json!({"name": "team_keys_create", "arguments": {"name": "ci"}});
        let created = send(&server, "/mcp", ADMIN, "tools/call", call).text();
        assert!(created.contains(SECRET), "{created}");
        assert!(created.contains("\"cacheId\":null"), "{created}");
        let authorization = format!("Bearer {ADMIN}");
        let header = [("authorization", authorization.as_str())];
        let resources = send(&server, "/mcp", ADMIN, "resources/list", json!({})).text();
        let mut places = vec![("the log", server.log()), ("resources", resources)];
        for path in ["/admin/audit", "/admin/usage", "/admin/tokens", "/metrics"] {
            let response = server.get(path, &header);
            assert_eq!(response.status, 200, "{path}");
            places.push((path, response.text()));
        }
        drop(server);
        for file in std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
        {
            let bytes = std::fs::read(file.path()).expect("a file");
            places.push(("the store", String::from_utf8_lossy(&bytes).into_owned()));
        }
        for (place, text) in places {
            for secret in [SECRET, SERVICE_KEY] {
                assert!(
                    !text.contains(secret),
                    "{level}: {secret} in {place}: {text}"
                );
            }
        }
    }
}

//! Keys and tokens never appear in logs, responses or files.

use serde_json::json;

use super::{ACCEPT_EVENTS, bearer, request, search};
use crate::support::{
    API_KEY, DEFAULT_VERSION, HttpServer, HttpSession, Recorder, Response, initialize,
};

const SECRETS: [&str; 5] = [
    "hunter2-client-key",
    "hunter2-url-key",
    "hunter2-token-of-ann",
    "hunter2-admin-token",
    "hunter2-pool-key",
];

#[track_caller]
fn assert_clean(source: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {source}: {text}");
    }
}

/// Starts an upstream that echoes the key, as some proxies do.
fn echoing_upstream() -> Recorder {
    Recorder::start(|request, _| {
        let key = request.header("x-api-key").join(",");
        Response::json(
            400,
            &json!({"error": format!("bad key {key}"), "requestId": "r"}),
        )
    })
}

#[test]
fn client_keys_are_not_logged_or_returned() {
    for level in ["debug", "trace"] {
        let exa = echoing_upstream();
        let variables = [
            ("EXA_MCP_LOG_LEVEL", level),
            ("EXA_MCP_ALLOW_KEY_IN_URL", "true"),
        ];
        let server = HttpServer::with_upstream(&exa.url(), &variables);
        let key = [("x-api-key", "hunter2-client-key")];
        let mut session = HttpSession::new(&server, &key);
        let body = session.request(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": search()}),
        );
        assert_clean("an answer", &body.to_string());
        let path = "/mcp?exaApiKey=hunter2-url-key";
        let mut session = HttpSession::with_version(&server, path, DEFAULT_VERSION, &[]);
        let body = session.request(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": search()}),
        );
        assert_clean("an answer", &body.to_string());
        let call = json!({"name": "web_search_exa", "arguments": search()});
        let response = server.send_stateless(&[key[0], ACCEPT_EVENTS], "tools/call", call);
        assert_clean("an answer", &response.text());
        for response in [
            server.post_to(
                "/nowhere?exaApiKey=hunter2-url-key",
                &key,
                &initialize(DEFAULT_VERSION),
            ),
            server.post(
                &[key[0], ("mcp-session-id", "x")],
                &request(1, "ping", json!({})),
            ),
            server.send("POST", path, &key, b"{"),
            server.get("/health?exaApiKey=hunter2-url-key", &key),
        ] {
            assert_clean("an answer", &response.text());
        }
        assert_clean("the log", &server.log());
        assert!(
            server.log().contains("operation"),
            "calls are logged: {}",
            server.log()
        );
    }
}

/// An upstream that echoes the key as the id of its response reveals it to nobody, and fills no log.
#[test]
fn key_in_a_request_id_is_not_logged() {
    let exa = Recorder::start(|request, number| {
        let key = request.header("x-api-key").join(",");
        let found = json!({"results": [], "costDollars": {"total": 0.001}});
        if number == 0 {
            return Response::json(200, &found).header("x-request-id", &key);
        }
        let id = format!("{key} {}", "long".repeat(10_000));
        Response::json(200, &json!({"results": [], "requestId": id}))
    });
    let variables = [("EXA_MCP_LOG_LEVEL", "debug")];
    let server = HttpServer::with_upstream(&exa.url(), &variables);
    for query in ["first", "second"] {
        let call = json!({"name": "web_search_exa", "arguments": {"query": query}});
        let key = [("x-api-key", "hunter2-client-key")];
        let response = server.send_stateless(&key, "tools/call", call);
        assert_clean("an answer", &response.text());
    }
    let log = server.log();
    assert_clean("the log", &log);
    assert_eq!(log.matches("answered operation").count(), 2, "{log}");
    assert!(log.lines().all(|line| line.len() < 2_000), "{log}");
}

/// An upstream that echoes the key as the name of a field reveals it to nobody.
#[test]
fn key_in_a_field_name_is_not_returned() {
    let exa = Recorder::start(|request, _| {
        let key = request.header("x-api-key").join(",");
        let result = json!({"id": "a", "url": "https://a.example", "title": "t", &key: {&key: 1}});
        Response::json(200, &json!({"results": [result], &key: key}))
    });
    let variables = [("USER_TOKENS", "hunter2-token-of-ann:ann:")];
    let server = HttpServer::with_upstream(&exa.url(), &variables);
    let authorization = bearer("hunter2-token-of-ann");
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    for format in ["json", "markdown", "csv", "table"] {
        let args = json!({"operation": "search", "args": {"query": "x"}, "content_level": "full",
            "output_format": format, "fresh": true});
        let result = session.call("exa_api", args);
        assert_eq!(result["isError"], false, "{result}");
        assert!(result.to_string().contains("redacted"), "{result}");
        assert!(!result.to_string().contains(API_KEY), "{format}: {result}");
    }
}

#[test]
fn requests_and_results_are_not_logged() {
    for level in ["debug", "trace"] {
        let secret = json!({"id": "webhook_1", "secret": "hunter2-of-a-webhook"});
        let exa = Recorder::always(Response::json(200, &secret));
        let server = HttpServer::with_upstream(&exa.url(), &[("EXA_MCP_LOG_LEVEL", level)]);
        let key = ("x-api-key", "hunter2-client-key");
        let question = json!({"query": "a-private-question", "numResults": 1});
        let hook = json!({"operation": "webhooks.create", "args": {
            "events": ["webset.created"], "url": "https://a.example/h?tok=a-private-question",
        }});
        let mut session = HttpSession::new(&server, &[key]);
        for (name, arguments) in [("web_search_exa", question), ("manage_websets", hook)] {
            let call = json!({"name": name, "arguments": arguments});
            session.request("tools/call", call.clone());
            server.send_stateless(&[key], "tools/call", call);
        }
        session.request("tools/call", json!({"name": "a-private-question"}));
        let note = json!({"progressToken": 1, "progress": 1, "message": "a-private-question"});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": note});
        session.post(&note);
        let log = server.log();
        for private in ["a-private-question", "hunter2"] {
            assert!(!log.contains(private), "{private} in {log}");
        }
        assert!(
            log.contains("request received") && log.contains("tools/call"),
            "{log}"
        );
    }
}

#[test]
fn tokens_are_not_logged_returned_or_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let exa = echoing_upstream();
    let variables = [
        ("EXA_MCP_LOG_LEVEL", "trace"),
        ("MCP_AUTH_TOKEN", "hunter2-admin-token"),
        ("USER_TOKENS", "hunter2-token-of-ann:ann"),
        ("EXA_API_KEY", "hunter2-pool-key"),
        ("EXA_MCP_STORE", &store),
    ];
    let server = HttpServer::with_upstream(&exa.url(), &variables);
    let ann = bearer("hunter2-token-of-ann");
    let mut session = HttpSession::new(&server, &[("authorization", &ann)]);
    let body = session.request(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": search()}),
    );
    assert_clean("an answer", &body.to_string());
    let admin = bearer("hunter2-admin-token");
    for (path, authorization) in [
        ("/admin/tokens", &admin),
        ("/admin/tokens", &ann),
        ("/mcp/usage", &ann),
        ("/health", &ann),
        ("/", &admin),
    ] {
        let response = server.get(path, &[("authorization", authorization)]);
        assert_clean(path, &response.text());
        let headers = format!("{:?}", response.headers);
        assert_clean(path, &headers);
    }
    assert_clean("the log", &server.log());
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("a readable file");
        assert_clean("the store", &String::from_utf8_lossy(&bytes));
    }
}

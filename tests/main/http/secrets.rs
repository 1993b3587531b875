//! Keys and tokens show up nowhere: not in logs, not in answers, not in files.

use serde_json::json;

use super::{STREAMS, bearer, request, search};
use crate::support::{HttpServer, HttpSession, Recorder, Reply, USUAL, initialize};

const SECRETS: [&str; 5] = [
    "hunter2-client-key",
    "hunter2-url-key",
    "hunter2-token-of-ann",
    "hunter2-admin-token",
    "hunter2-pool-key",
];

#[track_caller]
fn assert_clean(place: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {place}: {text}");
    }
}

/// An upstream that echoes the key, as some proxies do.
fn telltale() -> Recorder {
    Recorder::start(|seen, _| {
        let key = seen.header("x-api-key").join(",");
        Reply::json(
            400,
            &json!({"error": format!("bad key {key}"), "requestId": "r"}),
        )
    })
}

#[test]
fn client_keys_are_not_logged_or_returned() {
    for level in ["debug", "trace"] {
        let exa = telltale();
        let variables = [
            ("EXA_MCP_LOG_LEVEL", level),
            ("EXA_MCP_ALLOW_KEY_IN_URL", "true"),
        ];
        let server = HttpServer::upstream(&exa.url(), &variables);
        let key = [("x-api-key", "hunter2-client-key")];
        let mut session = HttpSession::usual(&server, &key);
        let answer = session.ask(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": search()}),
        );
        assert_clean("an answer", &answer.to_string());
        let path = "/mcp?exaApiKey=hunter2-url-key";
        let mut session = HttpSession::begin(&server, path, USUAL, &[]);
        let answer = session.ask(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": search()}),
        );
        assert_clean("an answer", &answer.to_string());
        let call = json!({"name": "web_search_exa", "arguments": search()});
        let reply = server.stateless(&[key[0], STREAMS], "tools/call", call);
        assert_clean("an answer", &reply.text());
        for reply in [
            server.post_to(
                "/nowhere?exaApiKey=hunter2-url-key",
                &key,
                &initialize(USUAL),
            ),
            server.post(
                &[key[0], ("mcp-session-id", "x")],
                &request(1, "ping", json!({})),
            ),
            server.send("POST", path, &key, b"{"),
            server.get("/health?exaApiKey=hunter2-url-key", &key),
        ] {
            assert_clean("an answer", &reply.text());
        }
        assert_clean("the log", &server.log());
        assert!(
            server.log().contains("operation"),
            "calls are logged: {}",
            server.log()
        );
    }
}

#[test]
fn requests_and_results_are_not_logged() {
    for level in ["debug", "trace"] {
        let secret = json!({"id": "webhook_1", "secret": "hunter2-of-a-webhook"});
        let exa = Recorder::always(Reply::json(200, &secret));
        let server = HttpServer::upstream(&exa.url(), &[("EXA_MCP_LOG_LEVEL", level)]);
        let key = ("x-api-key", "hunter2-client-key");
        let question = json!({"query": "a-private-question", "numResults": 1});
        let hook = json!({"operation": "webhooks.create", "args": {
            "events": ["webset.created"], "url": "https://a.example/h?tok=a-private-question",
        }});
        let mut session = HttpSession::usual(&server, &[key]);
        for (name, arguments) in [("web_search_exa", question), ("manage_websets", hook)] {
            let call = json!({"name": name, "arguments": arguments});
            session.ask("tools/call", call.clone());
            server.stateless(&[key], "tools/call", call);
        }
        session.ask("tools/call", json!({"name": "a-private-question"}));
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
    let exa = telltale();
    let variables = [
        ("EXA_MCP_LOG_LEVEL", "trace"),
        ("MCP_AUTH_TOKEN", "hunter2-admin-token"),
        ("USER_TOKENS", "hunter2-token-of-ann:ann"),
        ("EXA_API_KEY", "hunter2-pool-key"),
        ("EXA_MCP_STORE", &store),
    ];
    let server = HttpServer::upstream(&exa.url(), &variables);
    let ann = bearer("hunter2-token-of-ann");
    let mut session = HttpSession::usual(&server, &[("authorization", &ann)]);
    let answer = session.ask(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": search()}),
    );
    assert_clean("an answer", &answer.to_string());
    let admin = bearer("hunter2-admin-token");
    for (path, shown) in [
        ("/admin/tokens", &admin),
        ("/admin/tokens", &ann),
        ("/mcp/usage", &ann),
        ("/health", &ann),
        ("/", &admin),
    ] {
        let reply = server.get(path, &[("authorization", shown)]);
        assert_clean(path, &reply.text());
        let headers = format!("{:?}", reply.headers);
        assert_clean(path, &headers);
    }
    assert_clean("the log", &server.log());
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("a readable file");
        assert_clean("the store", &String::from_utf8_lossy(&bytes));
    }
}

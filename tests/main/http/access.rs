//! Authentication by token or API key.

use serde_json::json;

use super::{bearer, request, search};
use crate::support::{
    API_KEY, DEFAULT_VERSION, HttpServer, HttpSession, Outcome, Program, Recorder, Response,
    initialize,
};

const POOL: [(&str, &str); 2] = [
    ("MCP_AUTH_TOKEN", "admin-secret"),
    (
        "USER_TOKENS",
        "user-token:bob,old-token:carl:2001-01-01T00:00:00Z,nameless",
    ),
];

#[test]
fn permission_matrix_holds() {
    let server = HttpServer::sandboxed(&POOL);
    let cases = [
        ("GET", "/", [200, 200, 200, 200]),
        ("GET", "/health", [200, 200, 200, 200]),
        ("GET", "/mcp/usage", [401, 403, 200, 200]),
        ("POST", "/mcp", [401, 403, 200, 200]),
        ("GET", "/admin/tokens", [401, 403, 403, 200]),
    ];
    let tokens = [
        None,
        Some("old-token"),
        Some("user-token"),
        Some("admin-secret"),
    ];
    for (method, path, expected) in cases {
        for (token, status) in tokens.iter().zip(expected) {
            let authorization = token.map(bearer);
            let headers: Vec<_> = authorization
                .iter()
                .map(|authorization| ("authorization", authorization.as_str()))
                .collect();
            let response = match method {
                "POST" => server.post_to(path, &headers, &initialize(DEFAULT_VERSION)),
                _ => server.get(path, &headers),
            };
            assert_eq!(
                response.status,
                status,
                "{method} {path} with {token:?}: {}",
                response.text()
            );
        }
    }
}

#[test]
fn wrong_and_missing_tokens_get_the_same_response() {
    let server = HttpServer::sandboxed(&POOL);
    let body = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Unauthorized: Invalid or missing authentication token"},"id":null}"#;
    let wrong = [
        "Bearer wrong",
        "Bearer user-toke",
        "Bearer user-token2",
        "Basic dXNlcg==",
        "Bearer",
        "user-token",
    ];
    for authorization in wrong {
        for path in ["/mcp", "/mcp/usage", "/admin/tokens", "/sse"] {
            if authorization.starts_with("Bearer ") && path != "/mcp" {
                continue; // Guesses are counted; there is a test for that.
            }
            let response = server.get(path, &[("authorization", authorization)]);
            assert_eq!(
                (response.status, response.text().as_str()),
                (401, body),
                "{path} {authorization}"
            );
            let challenge = response.header("www-authenticate").expect("a challenge");
            assert!(challenge.starts_with("Bearer realm="), "{challenge}");
        }
    }
    let post = server.post_to("/messages?sessionId=x", &[], &initialize(DEFAULT_VERSION));
    assert_eq!((post.status, post.text().as_str()), (401, body));
    // The scheme is case-insensitive.
    let response = server.get("/mcp/usage", &[("authorization", "bEARER  user-token")]);
    assert_eq!(response.status, 200);
}

#[test]
fn token_guessing_is_limited_without_locking_users_out() {
    let server = HttpServer::sandboxed(&POOL);
    let send_request = |token: &str| server.get("/mcp/usage", &[("authorization", &bearer(token))]);
    for guess in 0..10 {
        assert_eq!(send_request(&format!("guess-{guess}")).status, 401);
    }
    for round in 0..20 {
        let token = format!("guess-{}", 10 + round);
        let response = send_request(&token);
        // The limiter regains an attempt every few seconds, which a busy machine may take.
        if response.status == 401 {
            continue;
        }
        assert_eq!(response.status, 429, "{token}");
        // Neither token has been used before.
        assert_eq!(send_request("admin-secret").status, 200);
        let wait: u64 = response
            .header("retry-after")
            .expect("a time")
            .parse()
            .expect("seconds");
        assert!((1..=6).contains(&wait));
    }
    let user = bearer("user-token");
    let mut session = HttpSession::new(&server, &[("authorization", &user)]);
    session.request("ping", json!({}));
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn unnamed_token_is_counted() {
    let server = HttpServer::sandboxed(&POOL);
    let nameless = bearer("nameless");
    let mut session = HttpSession::new(&server, &[("authorization", &nameless)]);
    session.request("ping", json!({}));
    let usage = server
        .get("/mcp/usage", &[("authorization", &nameless)])
        .json();
    assert_eq!(usage["userId"], json!(null));
    assert_eq!(usage["expiresAt"], json!(null));
    assert_eq!(usage["usageCount"], 2);
}

#[test]
fn malformed_tokens_abort_start_without_being_shown() {
    for (name, value, source) in [
        ("USER_TOKENS", "a:u,hunter2:u:soon", "USER_TOKENS, entry 2"),
        ("USER_TOKENS", "hunter2:u,hunter2", "USER_TOKENS, entry 2"),
        ("MCP_AUTH_TOKEN", "hunter2 hunter2", "MCP_AUTH_TOKEN"),
        (
            "EXA_MCP_ALLOWED_HOSTS",
            "http://x/",
            "EXA_MCP_ALLOWED_HOSTS",
        ),
        ("EXA_MCP_MAX_SESSIONS", "many", "EXA_MCP_MAX_SESSIONS"),
        (
            "EXA_MCP_ALLOW_KEY_IN_URL",
            "perhaps",
            "EXA_MCP_ALLOW_KEY_IN_URL",
        ),
        ("USER_TOKENS", ",", "USER_TOKENS"),
        ("USER_TOKENS", " ", "USER_TOKENS is set but empty"),
        ("MCP_AUTH_TOKEN", "  ", "MCP_AUTH_TOKEN is set but empty"),
    ] {
        let program = Program::new(["http", "--listen", "127.0.0.1:0"]).env(name, value);
        let output = program.run();
        output.assert_failed(2, &[source]);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
}

/// Starts an upstream that responds to every search.
fn upstream() -> Recorder {
    Recorder::always(Response::json(
        200,
        &json!({"results": [], "requestId": "r"}),
    ))
}

#[test]
fn token_users_share_the_server_key() {
    let exa = upstream();
    let variables = [
        ("MCP_AUTH_TOKEN", "admin-secret"),
        ("EXA_API_KEYS", "pool-key-1,pool-key-2"),
    ];
    let program = Program::new(["http", "--listen", "127.0.0.1:0"]).env_remove("EXA_API_KEY");
    let program = variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    let server = HttpServer::start(program.env("EXA_BASE_URL", &exa.url()));
    // A key sent along with a token is ignored.
    let headers = [
        ("authorization", "Bearer admin-secret"),
        ("x-api-key", "own-key"),
    ];
    let mut session = HttpSession::new(&server, &headers);
    session.call("web_search_exa", search());
    let sent = exa.only_request();
    assert!(
        sent.header("x-api-key")[0].starts_with("pool-key-"),
        "{sent:?}"
    );
}

#[test]
fn passthrough_uses_the_key_of_each_client() {
    let exa = upstream();
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    for (name, value, key) in [
        ("x-api-key", "key-number-one", "key-number-one"),
        ("X-Exa-Api-Key", "key-number-two", "key-number-two"),
        (
            "Authorization",
            "Bearer key-number-three",
            "key-number-three",
        ),
    ] {
        let mut session = HttpSession::new(&server, &[(name, value)]);
        session.call("web_search_exa", search());
        assert_eq!(exa.only_request().header("x-api-key"), [key]);
        let call = json!({"name": "web_search_exa", "arguments": search()});
        let response = server.send_stateless(&[(name, value)], "tools/call", call);
        assert_eq!(
            response.json()["result"]["isError"],
            false,
            "{}",
            response.text()
        );
        // The same key identifies the same user, whose result is still cached.
        assert_eq!(exa.take().len(), 0);
    }
}

#[test]
fn without_a_key_tools_are_listed_but_not_callable() {
    let exa = upstream();
    let operators = [
        ("EXA_API_KEY", API_KEY),
        ("EXA_API_KEYS", "pool-key-1,pool-key-2"),
    ];
    let server = HttpServer::with_upstream(&exa.url(), &operators);
    let mut session = HttpSession::new(&server, &[]);
    let tools = session.request("tools/list", json!({}));
    assert!(
        tools["result"]["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    );
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let answer = session.request("tools/call", call);
    let failure = Outcome::from_response(&answer);
    assert!(failure.is_error, "{answer}");
    let text = answer.to_string();
    assert!(
        text.contains("x-api-key") && !text.contains("environment of this server"),
        "{text}"
    );
    assert_eq!(
        exa.take().len(),
        0,
        "the operator's keys are not used for others"
    );
}

#[test]
fn key_in_url_needs_operator_opt_in() {
    let exa = upstream();
    let path = "/mcp?exaApiKey=key-in-the-url";
    let strict = HttpServer::with_upstream(&exa.url(), &[]);
    let mut session = HttpSession::with_version(&strict, path, DEFAULT_VERSION, &[]);
    let refused = session.call("web_search_exa", search());
    assert_eq!(refused["isError"], true);
    let text = refused.to_string();
    assert!(
        text.contains("does not accept Exa API keys in the URL")
            && !text.contains("key-in-the-url"),
        "{text}"
    );
    assert_eq!(exa.take().len(), 0);
    let open = HttpServer::with_upstream(&exa.url(), &[("EXA_MCP_ALLOW_KEY_IN_URL", "true")]);
    let mut session = HttpSession::with_version(&open, path, DEFAULT_VERSION, &[]);
    assert_eq!(session.call("web_search_exa", search())["isError"], false);
    assert_eq!(exa.only_request().header("x-api-key"), ["key-in-the-url"]);
}

#[test]
fn tools_query_parameter_only_narrows() {
    let server = HttpServer::sandboxed(&[("ENABLED_TOOLS", "default,notes")]);
    let names = |path: &str| {
        let mut session = HttpSession::with_version(&server, path, DEFAULT_VERSION, &[]);
        let listed = session.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("/mcp?tools=web_search_exa"), "web_search_exa");
    assert_eq!(names("/mcp?tools=classic"), "web_search_exa web_fetch_exa");
    let mut session =
        HttpSession::with_version(&server, "/mcp?tools=web_fetch_exa", DEFAULT_VERSION, &[]);
    let answer = session.request(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": search()}),
    );
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let templates = session
        .request("resources/templates/list", json!({}))
        .to_string();
    assert!(
        !templates.contains("note:///") && !templates.contains("websets"),
        "{templates}"
    );
    for (list, part) in [
        ("no_such_tool", "no_such_tool"),
        ("granular", "not enabled"),
        (",", "empty"),
    ] {
        let path = format!("/mcp?tools={list}");
        let response = server.post_to(&path, &[], &initialize(DEFAULT_VERSION));
        assert_eq!(response.status, 400);
        assert!(response.text().contains(part), "{}", response.text());
    }
    let call = request(
        1,
        "tools/call",
        json!({"name": "create_note", "arguments": {}}),
    );
    let narrowed = server.post_to("/mcp?tools=web_fetch_exa", &[], &call);
    assert_eq!(narrowed.status, 400, "{}", narrowed.text());
}

//! Limits of tokens.

use std::thread::scope;

use serde_json::{Value, json};

use super::admin::{Admin, start, store};
use super::{bearer, request, search};
use crate::support::{HttpResponse, HttpServer, HttpSession, Sandbox};

const SEARCH: &str = "web_search_exa";

fn send_request(server: &HttpServer, token: &str, method: &str, params: Value) -> HttpResponse {
    let authorization = bearer(token);
    server.send_stateless(&[("authorization", &authorization)], method, params)
}

fn call(server: &HttpServer, token: &str, arguments: Value) -> Value {
    let params = json!({"name": SEARCH, "arguments": arguments});
    let response = send_request(server, token, "tools/call", params);
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["result"].clone()
}

/// Returns how many of these concurrent requests succeed; the others must get a `retry-after`.
fn count_successes(servers: &[&HttpServer], token: &str, requests: usize) -> usize {
    let statuses: Vec<u16> = scope(|scope| {
        let threads: Vec<_> = (0..requests)
            .map(|n| {
                let server = servers[n % servers.len()];
                scope.spawn(move || {
                    let response = send_request(server, token, "tools/list", json!({}));
                    if response.status == 429 {
                        let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
                        assert!((1..=60).contains(&wait), "{wait}");
                        let error = &response.json()["error"];
                        assert_eq!(error["data"]["limit"], "requestsPerMinute", "{error}");
                        assert!(error["message"].as_str().unwrap().contains("Retry in"));
                    }
                    response.status
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        statuses.iter().all(|status| [200, 429].contains(status)),
        "{statuses:?}"
    );
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn requests_per_minute_are_exact() {
    for has_store in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let variables = [("EXA_MCP_STORE", store.as_str())];
        let server = start(if has_store { &variables } else { &[] });
        let admin = Admin(&server);
        let (text, id) = admin.create(&json!({"limits": {"requestsPerMinute": 20}}));
        assert_eq!(count_successes(&[&server], &text, 50), 20);
        let listed = admin.token(&id);
        assert_eq!(
            listed["usageCount"], 20,
            "what was refused does not count: {listed}"
        );
        let (other, _) = admin.create(&json!({}));
        assert_eq!(count_successes(&[&server], &other, 30), 30);
        let path = format!("/admin/tokens/{id}");
        admin.send(
            "PATCH",
            &path,
            &json!({"limits": {"requestsPerMinute": 25}}),
        );
        assert_eq!(
            count_successes(&[&server], &text, 10),
            5,
            "a new limit applies immediately"
        );
    }
}

#[test]
fn replicas_share_request_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let variables = [
        ("EXA_MCP_STORE", store.as_str()),
        ("USER_TOKENS", "a-token:ann"),
        ("EXA_MCP_TOKEN_LIMITS", r#"{"requestsPerMinute": 20}"#),
    ];
    let (one, two) = (start(&variables), start(&variables));
    assert_eq!(count_successes(&[&one, &two], "a-token", 50), 20);
}

#[test]
fn limits_apply_to_all_transports() {
    let server = start(&[
        ("USER_TOKENS", "a-token:ann,b-token:bob"),
        ("EXA_MCP_TOKEN_LIMITS", r#"{"requestsPerMinute": 3}"#),
    ]);
    let authorization = bearer("a-token");
    let session = HttpSession::with_version(
        &server,
        "/mcp",
        "2025-03-26",
        &[("authorization", &authorization)],
    );
    let batch: Vec<Value> = (0..4).map(|n| request(n, "ping", json!({}))).collect();
    let response = session.post(&Value::Array(batch));
    let bodies = response.json();
    let limited = |body: &&Value| body["error"]["data"]["limit"] == "requestsPerMinute";
    assert_eq!(
        bodies.as_array().unwrap().iter().filter(limited).count(),
        2,
        "{bodies}"
    );
    let authorization = bearer("b-token");
    let headers = [("authorization", authorization.as_str())];
    let mut stream = server.events("GET", "/sse", &headers, b"");
    let (_, path) = stream.next().expect("an address");
    let statuses: Vec<u16> = (0..5)
        .map(|n| {
            server
                .post_to(&path, &headers, &request(n, "ping", json!({})))
                .status
        })
        .collect();
    assert_eq!(statuses, [202, 202, 202, 429, 429]);
}

#[test]
fn concurrent_calls_are_limited() {
    let sandbox = Sandbox::start();
    sandbox.fault("search", "delay=2500");
    let server = HttpServer::with_upstream(
        &sandbox.url(),
        &[("MCP_AUTH_TOKEN", "the-admin-secret-of-the-tests")],
    );
    let admin = Admin(&server);
    let (text, _) = admin.create(&json!({"limits": {"concurrentCalls": 3}}));
    let results: Vec<Value> = scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|n| {
                let (server, text) = (&server, text.as_str());
                scope.spawn(move || call(server, text, json!({"query": format!("q{n}")})))
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let refused: Vec<&Value> = results
        .iter()
        .filter(|result| result["isError"] == true)
        .collect();
    assert_eq!(refused.len(), 5, "{results:?}");
    for result in refused {
        let error = &result["structuredContent"]["error"];
        assert_eq!(
            (&error["limit"], &error["retryAfter"]),
            (&json!("concurrentCalls"), &json!(1))
        );
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("3 concurrent calls")
        );
    }
    sandbox.clear_faults();
    assert_eq!(
        call(&server, &text, json!({"query": "later"}))["isError"],
        false,
        "permits are released"
    );
}

#[test]
fn exhausted_budget_rejects_calls() {
    let server = start(&[]);
    let admin = Admin(&server);
    for period in ["Day", "Month"] {
        let limits = json!({format!("dollarsPer{period}"): 0.01});
        let (text, id) = admin.create(&json!({"limits": limits}));
        let first = call(&server, &text, search());
        assert_eq!(first["isError"], false, "the budget is not spent: {first}");
        let again = call(&server, &text, search());
        assert_eq!(again["isError"], false, "a cached result is free: {again}");
        let other = json!({"query": "other", "numResults": 1});
        let second = call(&server, &text, other);
        assert_eq!(second["isError"], true, "{second}");
        let error = &second["structuredContent"]["error"];
        assert_eq!(error["limit"], format!("dollarsPer{period}"));
        let most = if period == "Day" { 24 } else { 31 * 24 } * 60 * 60;
        let wait = error["retryAfter"].as_u64().unwrap();
        assert!((1..=most).contains(&wait), "{error}");
        let message = second["content"][0]["text"].as_str().unwrap();
        assert!(
            message.contains("renews at") && message.contains("(UTC)"),
            "{message}"
        );
        let listed = send_request(&server, &text, "tools/list", json!({}));
        assert_eq!(listed.status, 200, "free calls still succeed");
        let usage = &admin.token(&id)["usage"];
        assert_eq!(
            usage["byOperation"],
            json!({"search": 2}),
            "the second and the third never reached Exa: {usage}"
        );
        let path = format!("/admin/tokens/{id}");
        admin.send(
            "PATCH",
            &path,
            &json!({"limits": {format!("dollarsPer{period}"): 5}}),
        );
        assert_eq!(call(&server, &text, search())["isError"], false);
    }
}

#[test]
fn soft_limit_warns() {
    let server = start(&[]);
    let admin = Admin(&server);
    let (text, _) =
        admin.create(&json!({"limits": {"softDollarsPerDay": 0.000_001, "dollarsPerDay": 5}}));
    let first = call(&server, &text, search());
    assert!(
        !first.to_string().contains("above its soft limit"),
        "{first}"
    );
    for format in ["markdown", "json"] {
        let arguments = json!({"query": "rust", "numResults": 1, "output_format": format});
        let second = call(&server, &text, arguments);
        assert_eq!(second["isError"], false, "{second}");
        let warnings = &second["structuredContent"]["metadata"]["warnings"];
        assert!(
            warnings.to_string().contains("above its soft limit"),
            "{second}"
        );
        let message = second["content"][0]["text"].as_str().unwrap();
        assert!(message.contains("above its soft limit"), "{message}");
        if message.starts_with('{') {
            let envelope: Value = serde_json::from_str(message).expect("still JSON");
            assert_eq!(&envelope["metadata"]["warnings"], warnings);
        }
    }
}

fn names(server: &HttpServer, token: &str, path: &str) -> Vec<String> {
    let authorization = bearer(token);
    let mut session = HttpSession::with_version(
        server,
        path,
        crate::support::DEFAULT_VERSION,
        &[("authorization", &authorization)],
    );
    let tools = session.request("tools/list", json!({}))["result"]["tools"].clone();
    let names = tools.as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn token_lists_only_permitted_tools() {
    let server = start(&[("ENABLED_TOOLS", "default,web_search_exa,answer_exa")]);
    let admin = Admin(&server);
    let (text, _) = admin.create(&json!({"limits": {"tools": ["web_search_exa"]}}));
    assert_eq!(names(&server, &text, "/mcp"), ["web_search_exa"]);
    assert_eq!(
        names(&server, &text, "/mcp?tools=web_search_exa,answer_exa"),
        ["web_search_exa"]
    );
    assert!(
        names(&server, &text, "/mcp?tools=answer_exa").is_empty(),
        "the URL does not enable more tools"
    );
    let response = send_request(
        &server,
        &text,
        "tools/call",
        json!({"name": "answer_exa", "arguments": {"query": "q"}}),
    );
    assert_eq!(
        response.json()["error"]["code"],
        -32602,
        "{}",
        response.text()
    );
    assert!(
        response.text().contains("Unknown tool: answer_exa"),
        "{}",
        response.text()
    );
    assert_eq!(call(&server, &text, search())["isError"], false);
}

#[test]
fn read_only_token_cannot_write() {
    let server = start(&[("ENABLED_TOOLS", "default,toolhost,granular,notes")]);
    let admin = Admin(&server);
    let (free, _) = admin.create(&json!({}));
    let (text, _) = admin.create(&json!({"limits": {"readOnly": true}}));
    let (all, own) = (names(&server, &free, "/mcp"), names(&server, &text, "/mcp"));
    assert!(own.len() < all.len() && !own.is_empty());
    let authorization = bearer(&text);
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    let tools = session.request("tools/list", json!({}))["result"]["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let takes_any = tool["inputSchema"]["properties"].get("operation").is_some();
        assert!(
            takes_any || tool["annotations"]["readOnlyHint"] == true,
            "{tool}"
        );
    }
    let (mut refused, mut count_successes) = (0, 0);
    for tool in tools.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        for (operation, writes) in [
            ("websets.create", true),
            ("websets.list", false),
            ("list_operations", false),
        ] {
            if tool["inputSchema"]["properties"].get("operation").is_none() {
                continue;
            }
            let arguments =
                json!({"operation": operation, "args": {"search": {"query": "q", "count": 1}}});
            let arguments = if writes {
                arguments
            } else {
                json!({"operation": operation})
            };
            let result = session.call(name, arguments);
            let code = &result["structuredContent"]["error"]["name"];
            assert!(
                writes || code != "READ_ONLY",
                "{name} {operation}: {result}"
            );
            refused += usize::from(code == "READ_ONLY");
            count_successes += usize::from(result["isError"] == false);
        }
    }
    assert!(
        refused >= 1 && count_successes >= 1,
        "{refused} refused, {count_successes} answered"
    );
}

#[test]
fn stuck_store_does_not_lock_users_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let server = start(&[("EXA_MCP_STORE", &store)]);
    let admin = Admin(&server);
    let limits = json!({"requestsPerMinute": 3});
    let (text, id) = admin.create(&json!({"limits": limits}));
    let (poor, _) = admin.create(&json!({"limits": {"dollarsPerDay": 1}}));
    let other = rusqlite::Connection::open(folder.path().join("store.db")).expect("a file");
    other
        .execute_batch("BEGIN EXCLUSIVE")
        .expect("the file to itself");
    assert_eq!(call(&server, &text, search())["isError"], false);
    assert_eq!(
        count_successes(&[&server], &text, 4),
        2,
        "this server counts on its own"
    );
    let refused = call(&server, &poor, search());
    assert_eq!(
        refused["isError"], true,
        "a budget that cannot be checked: {refused}"
    );
    assert_eq!(
        refused["structuredContent"]["error"]["limit"],
        "dollarsPerDay"
    );
    let response = admin.send("POST", "/admin/tokens", &json!({}));
    assert_eq!(response.status, 503, "{}", response.text());
    other
        .execute_batch("ROLLBACK")
        .expect("the file is given back");
    // Counts from the meantime are written once the store is available.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while admin.token(&id)["usageCount"] != 3 {
        assert!(std::time::Instant::now() < deadline, "{}", admin.token(&id));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn task_cost_is_counted() {
    let sandbox = Sandbox::start();
    let server = HttpServer::with_upstream(
        &sandbox.url(),
        &[("MCP_AUTH_TOKEN", "the-admin-secret-of-the-tests")],
    );
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"limits": {"dollarsPerDay": 0.026}}));
    let authorization = bearer(&text);
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    let run = json!({"query": "heat pumps", "effort": "low"});
    let arguments = json!({"operation": "agent.runs.create", "args": run});
    let call = json!({"name": "exa_api", "arguments": arguments, "task": {"ttl": 60_000}});
    let task = session.request("tools/call", call.clone())["result"]["task"]["taskId"].clone();
    sandbox.advance(600_000);
    let result = session.request("tasks/result", json!({"taskId": task}));
    assert_eq!(result["result"]["isError"], false, "{result}");
    let usage = &admin.token(&id)["usage"];
    assert!(usage["dollarsToday"].as_f64() > Some(0.0), "{usage}");
    assert_eq!(usage["reservedToday"], 0.0, "{usage}");
    let refused = session.request("tools/call", call);
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    let data = &refused["error"]["data"];
    assert_eq!(data["limit"], "dollarsPerDay");
    assert_eq!(data["wouldCost"], 0.025, "{refused}");
    assert!(data["left"].as_f64() < Some(0.025), "{refused}");
    let tasks = &admin.get("/admin/state")["tasks"];
    assert_eq!(
        (&tasks["completed"], &tasks["working"]),
        (&json!(1), &json!(0))
    );
}

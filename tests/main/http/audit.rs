//! The audit log, which attackers cannot use to fill the disk.

use serde_json::{Value, json};

use super::admin::{Admin, start};
use super::bearer;

fn entries(admin: &Admin<'_>) -> Vec<Value> {
    let page = admin.get("/admin/audit?limit=1000");
    page["entries"].as_array().expect("entries").clone()
}

/// Returns how often an action was logged.
fn count(entries: &[Value], action: &str) -> u64 {
    let own = entries.iter().filter(|entry| entry["action"] == action);
    own.filter_map(|entry| entry["count"].as_u64()).sum()
}

#[test]
fn audit_log_records_actions_and_denials() {
    let server = start(&[("USER_TOKENS", "token-of-ann:ann,old-token:eve:2001-01-01")]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "bob", "limits": {"requestsPerMinute": 1}}));
    for (path, token) in [
        ("/admin/tokens", Some("token-of-ann")),
        ("/mcp/usage", Some("old-token")),
        ("/mcp/usage", Some("a-wrong-guess")),
        ("/mcp/usage", None),
    ] {
        let authorization = token.map(bearer);
        let headers: Vec<_> = authorization
            .iter()
            .map(|authorization| ("authorization", authorization.as_str()))
            .collect();
        assert!(server.get(path, &headers).status >= 401);
    }
    let foreign = server.get("/health", &[("host", "evil.example")]);
    assert_eq!(foreign.status, 403);
    let bob = bearer(&text);
    let ping = super::request(1, "tools/list", json!({}));
    server.post(&[("authorization", &bob)], &ping);
    assert_eq!(server.post(&[("authorization", &bob)], &ping).status, 429);
    admin.send(
        "PATCH",
        &format!("/admin/tokens/{id}"),
        &json!({"limits": {"requestsPerMinute": null}}),
    );
    admin.post(&id, "rotate", &json!({}));
    admin.post(&id, "expire", &json!({}));
    admin.post(&id, "revoke", &json!({}));
    let authorization = bearer(&text);
    server.get("/mcp/usage", &[("authorization", &authorization)]);
    let all = entries(&admin);
    for action in [
        "token.create",
        "token.change",
        "token.rotate",
        "token.expire",
        "token.revoke",
        "denied.not_admin",
        "denied.expired",
        "denied.missing",
        "denied.host",
        "denied.limit",
    ] {
        assert_eq!(count(&all, action), 1, "{action}: {all:?}");
    }
    assert_eq!(
        count(&all, "denied.unknown"),
        2,
        "a guess and the former token: {all:?}"
    );
    let made = all
        .iter()
        .find(|entry| entry["action"] == "token.create")
        .unwrap();
    assert_eq!(made["target"], id.as_str());
    assert_eq!(made["detail"]["userId"], "bob");
    assert_eq!(made["address"], "127.0.0.1");
    let own = admin.get("/admin/tokens")["tokens"][0]["id"].clone();
    assert_eq!(made["actor"], own);
    assert!(made["at"].as_str().unwrap().ends_with('Z'));
    let limited = all
        .iter()
        .find(|entry| entry["action"] == "denied.limit")
        .unwrap();
    assert_eq!(
        (&limited["target"], &limited["detail"]["limit"]),
        (&json!(id), &json!("requestsPerMinute"))
    );
    let text = json!(all).to_string();
    assert!(
        !text.contains("a-wrong-guess") && !text.contains("token-of-ann"),
        "{text}"
    );
}

#[test]
fn audit_log_is_paginated() {
    let server = start(&[]);
    let admin = Admin(&server);
    for n in 0..7 {
        admin.create(&json!({"userId": format!("user {n}")}));
    }
    let mut users = Vec::new();
    let mut path = "/admin/audit?limit=3".to_owned();
    loop {
        let page = admin.get(&path);
        for entry in page["entries"].as_array().unwrap() {
            users.push(entry["detail"]["userId"].as_str().unwrap().to_owned());
        }
        match page["next"].as_u64() {
            Some(next) => path = format!("/admin/audit?limit=3&before={next}"),
            None => break,
        }
    }
    let expected: Vec<String> = (0..7).rev().map(|n| format!("user {n}")).collect();
    assert_eq!(users, expected);
}

#[test]
fn repeated_denials_are_aggregated() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = super::admin::store(&folder);
    let server = start(&[("EXA_MCP_STORE", &store)]);
    let admin = Admin(&server);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                for n in 0..250 {
                    let authorization = bearer(&format!("guess-{thread}-{n}"));
                    let response = server.get("/mcp/usage", &[("authorization", &authorization)]);
                    assert!(response.status == 401 || response.status == 429);
                }
            });
        }
    });
    // The admin comes from the same address for the first time, and is throttled like everybody.
    let mut tries = 0;
    let all = loop {
        let authorization = bearer("the-admin-secret-of-the-tests");
        let response = server.get(
            "/admin/audit?limit=1000",
            &[("authorization", &authorization)],
        );
        if response.status == 200 {
            break response.json()["entries"].as_array().unwrap().clone();
        }
        tries += 1;
        assert!(tries < 60, "{}", response.text());
        std::thread::sleep(std::time::Duration::from_millis(500));
    };
    let denied = count(&all, "denied.unknown") + count(&all, "denied.throttled");
    assert!(denied >= 1_000, "{denied}");
    assert!(all.len() <= 8, "two kinds, and some minutes: {all:?}");
    let _ = admin;
}

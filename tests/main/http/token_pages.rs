//! Pagination of the token list.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::admin::{Admin, start, store};
use super::{bearer, search};
use crate::support::{HttpServer, HttpSession};

const TOKEN_COUNT: usize = 12_000;

/// Starts a server with many tokens, on the store in this folder.
fn server_with_tokens(folder: &TempDir) -> HttpServer {
    let mut text = "user_tokens = [\n".to_owned();
    for number in 0..TOKEN_COUNT {
        writeln!(text, "'token-{number:05}:person-{number:05}:never',").expect("a line");
    }
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text + "]").expect("a file");
    let file = file.to_str().expect("UTF-8").to_owned();
    let secret = ("EXA_MCP_SECRET", "shared");
    start(&[
        ("EXA_MCP_CONFIG", &file),
        ("EXA_MCP_STORE", &store(folder)),
        secret,
    ])
}

fn ids(body: &Value) -> Vec<String> {
    let tokens = body["tokens"].as_array().expect("tokens").iter();
    tokens
        .map(|token| token["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// Returns all pages, each requested from the next server.
fn pages(servers: &[&HttpServer], query: &str) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    for server in servers.iter().cycle() {
        let cursor = pages.last().and_then(|page| page["nextCursor"].as_str());
        let cursor = cursor
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
        pages.push(Admin(server).get(&format!("/admin/tokens?{query}{cursor}")));
        if pages
            .last()
            .is_some_and(|page| page["nextCursor"].is_null())
        {
            break;
        }
    }
    pages
}

#[test]
fn twelve_thousand_tokens_are_paginated_on_any_replica() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (server_with_tokens(&folder), server_with_tokens(&folder));
    let admin = Admin(&one);
    let made: Vec<String> = (0..5)
        .map(|n| admin.create(&json!({"userId": format!("made-{n}")})).1)
        .collect();
    let bob = bearer("token-00777");
    HttpSession::new(&one, &[("authorization", &bob)]).call("web_search_exa", search());

    let whole = admin.get("/admin/tokens");
    let expected = ids(&whole);
    assert_eq!(expected.len(), 1 + TOKEN_COUNT + made.len());
    assert_eq!(expected[1 + TOKEN_COUNT..], made);
    assert_eq!(whole["stats"]["totalTokens"], expected.len());
    assert_eq!(whole["stats"]["totalUsage"], 2);
    assert!(whole.get("nextCursor").is_none() && whole.get("matching").is_none());

    // The other server learns about new tokens within two seconds.
    while Admin(&two).get("/admin/tokens?limit=1")["stats"]["totalTokens"] != expected.len() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let paged = pages(&[&one, &two], "limit=1000");
    assert_eq!(paged.len(), expected.len().div_ceil(1000));
    assert_eq!(paged.iter().flat_map(ids).collect::<Vec<_>>(), expected);
    let listed: Vec<&Value> = paged
        .iter()
        .filter_map(|page| page["tokens"].as_array())
        .flatten()
        .collect();
    assert_eq!(
        listed,
        whole["tokens"]
            .as_array()
            .expect("tokens")
            .iter()
            .collect::<Vec<_>>()
    );
    let stats =
        json!({"totalTokens": expected.len(), "activeTokens": expected.len(), "expiredTokens": 0});
    assert_eq!(paged[0]["stats"], stats);

    let found = admin.get("/admin/tokens?q=PERSON-0077&limit=3");
    assert_eq!(found["matching"], json!({"tokens": 10, "active": 10}));
    assert_eq!(ids(&found).len(), 3);
    let found = admin.get("/admin/tokens?q=person-00777");
    assert_eq!(found["tokens"][0]["usageCount"], 2, "{found}");
    assert_eq!(found["nextCursor"], Value::Null);
}

#[test]
fn pagination_is_stable_while_tokens_change() {
    let server = start(&[("USER_TOKENS", "a:ann,b:bob,c:cy:2001-01-01")]);
    let admin = Admin(&server);
    let made: Vec<String> = (0..7).map(|_| admin.create(&json!({})).1).collect();
    let expected = ids(&admin.get("/admin/tokens"));
    for limit in 1..=expected.len() + 1 {
        let paged = pages(&[&server], &format!("limit={limit}"));
        assert_eq!(
            paged.iter().flat_map(ids).collect::<Vec<_>>(),
            expected,
            "{limit}"
        );
    }
    // Changes between two requests do not shift the pages.
    let first = admin.get("/admin/tokens?limit=6");
    admin.post(&made[0], "revoke", &json!({}));
    let (_, late) = admin.create(&json!({}));
    let cursor = first["nextCursor"].as_str().expect("a cursor");
    let rest = admin.get(&format!("/admin/tokens?cursor={cursor}"));
    let listed = [ids(&first), ids(&rest)].concat();
    assert_eq!(listed.iter().collect::<HashSet<_>>().len(), listed.len());
    assert_eq!(listed, [expected, vec![late]].concat());

    let active = admin.get("/admin/tokens?active=true");
    assert_eq!(active["matching"], json!({"tokens": 12, "active": 10}));
    assert_eq!(ids(&active).len(), 10);
    assert!(
        active["tokens"]
            .as_array()
            .expect("tokens")
            .iter()
            .all(|token| token["isActive"] == true)
    );
    // An excessive limit becomes the maximum, and a missing one the default.
    assert_eq!(ids(&admin.get("/admin/tokens?limit=99999")).len(), 12);
    assert_eq!(ids(&admin.get("/admin/tokens?limit=0")).len(), 1);
}

#[test]
fn invalid_list_parameters_are_rejected() {
    let server = start(&[("USER_TOKENS", "a:ann")]);
    let admin = Admin(&server);
    for (query, name) in [
        ("cursor=x", "`cursor`"),
        ("cursor=e.nobody", "`cursor`"),
        ("cursor=m.soon.x", "`cursor`"),
        ("cursor=%00%ff", "`cursor`"),
        ("limit=many", "`limit`"),
        ("limit=-1", "`limit`"),
        ("active=maybe", "`active`"),
    ] {
        let response = admin.send("GET", &format!("/admin/tokens?{query}"), &json!(null));
        assert_eq!(response.status, 400, "{query}");
        let message = response.json()["error"]["message"].clone();
        assert!(
            message
                .as_str()
                .is_some_and(|message| message.contains(name)),
            "{message}"
        );
    }
    let ann = bearer("a");
    let response = server.get("/admin/tokens?limit=1", &[("authorization", &ann)]);
    assert_eq!(response.status, 403);
}

//! A server with more tokens than anybody wants at once.

use std::collections::HashSet;
use std::fmt::Write;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::admin::{Admin, start, store};
use super::{bearer, search};
use crate::support::{HttpServer, HttpSession};

const MANY: usize = 12_000;

/// A server whose file names many tokens; together with others of the folder.
fn crowded(folder: &TempDir) -> HttpServer {
    let mut text = "user_tokens = [\n".to_owned();
    for number in 0..MANY {
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

fn ids(answer: &Value) -> Vec<String> {
    let tokens = answer["tokens"].as_array().expect("tokens").iter();
    tokens
        .map(|token| token["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// All pages, each asked of the next server.
fn pages(servers: &[&HttpServer], question: &str) -> Vec<Value> {
    let mut pages: Vec<Value> = Vec::new();
    for server in servers.iter().cycle() {
        let cursor = pages.last().and_then(|page| page["nextCursor"].as_str());
        let cursor = cursor
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
        pages.push(Admin(server).get(&format!("/admin/tokens?{question}{cursor}")));
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
    let (one, two) = (crowded(&folder), crowded(&folder));
    let admin = Admin(&one);
    let made: Vec<String> = (0..5)
        .map(|n| admin.create(&json!({"userId": format!("made-{n}")})).1)
        .collect();
    let bob = bearer("token-00777");
    HttpSession::usual(&one, &[("authorization", &bob)]).call("web_search_exa", search());

    let whole = admin.get("/admin/tokens");
    let expected = ids(&whole);
    assert_eq!(expected.len(), 1 + MANY + made.len());
    assert_eq!(expected[1 + MANY..], made);
    assert_eq!(whole["stats"]["totalTokens"], expected.len());
    assert_eq!(whole["stats"]["totalUsage"], 2);
    assert!(whole.get("nextCursor").is_none() && whole.get("matching").is_none());

    // The other server hears of the new tokens within two seconds.
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
    // Nothing that happens between two pages moves the place in the list.
    let first = admin.get("/admin/tokens?limit=6");
    admin.post(&made[0], "revoke", &json!({}));
    let (_, late) = admin.create(&json!({}));
    let cursor = first["nextCursor"].as_str().expect("a cursor");
    let rest = admin.get(&format!("/admin/tokens?cursor={cursor}"));
    let seen = [ids(&first), ids(&rest)].concat();
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len());
    assert_eq!(seen, [expected, vec![late]].concat());

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
    // A limit beyond all sense is the longest that there is, and none is the usual one.
    assert_eq!(ids(&admin.get("/admin/tokens?limit=99999")).len(), 12);
    assert_eq!(ids(&admin.get("/admin/tokens?limit=0")).len(), 1);
}

#[test]
fn invalid_list_parameters_are_rejected() {
    let server = start(&[("USER_TOKENS", "a:ann")]);
    let admin = Admin(&server);
    for (question, name) in [
        ("cursor=x", "`cursor`"),
        ("cursor=e.nobody", "`cursor`"),
        ("cursor=m.soon.x", "`cursor`"),
        ("cursor=%00%ff", "`cursor`"),
        ("limit=many", "`limit`"),
        ("limit=-1", "`limit`"),
        ("active=maybe", "`active`"),
    ] {
        let reply = admin.send("GET", &format!("/admin/tokens?{question}"), &json!(null));
        assert_eq!(reply.status, 400, "{question}");
        let message = reply.json()["error"]["message"].clone();
        assert!(
            message
                .as_str()
                .is_some_and(|message| message.contains(name)),
            "{message}"
        );
    }
    let ann = bearer("a");
    let reply = server.get("/admin/tokens?limit=1", &[("authorization", &ann)]);
    assert_eq!(reply.status, 403);
}

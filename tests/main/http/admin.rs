//! Token management through the admin API.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{bearer, search};
use crate::support::{DEFAULT_VERSION, HttpResponse, HttpServer, HttpSession, initialize, signal};

pub(super) const ADMIN: &str = "the-admin-secret-of-the-tests";

/// A client of the admin API.
pub(super) struct Admin<'a>(pub(super) &'a HttpServer);

impl Admin<'_> {
    pub(super) fn send(&self, method: &str, path: &str, body: &Value) -> HttpResponse {
        let authorization = bearer(ADMIN);
        let body = body.to_string();
        let length = body.len().to_string();
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
            ("content-length", length.as_str()),
        ];
        self.0.send(method, path, &headers, body.as_bytes())
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        let authorization = bearer(ADMIN);
        let response = self.0.get(path, &[("authorization", &authorization)]);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }

    /// Creates a token and returns its text and its id.
    #[track_caller]
    pub(super) fn create(&self, token: &Value) -> (String, String) {
        let response = self.send("POST", "/admin/tokens", token);
        assert_eq!(response.status, 201, "{}", response.text());
        let made = response.json();
        let text = |name: &str| made[name].as_str().expect(name).to_owned();
        (text("token"), text("id"))
    }

    #[track_caller]
    pub(super) fn post(&self, id: &str, action: &str, body: &Value) -> Value {
        let response = self.send("POST", &format!("/admin/tokens/{id}/{action}"), body);
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()
    }

    /// Returns the listed token with this id.
    #[track_caller]
    pub(super) fn token(&self, id: &str) -> Value {
        let list = self.get("/admin/tokens");
        let tokens = list["tokens"].as_array().expect("tokens").clone();
        let found = tokens.into_iter().find(|token| token["id"] == id);
        found.unwrap_or_else(|| panic!("{id} is not in {list}"))
    }
}

pub(super) fn store(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("store.db").display())
}

pub(super) fn start(variables: &[(&str, &str)]) -> HttpServer {
    let mut all = vec![("MCP_AUTH_TOKEN", ADMIN)];
    all.extend_from_slice(variables);
    HttpServer::sandboxed(&all)
}

/// Returns the status and the error message of `initialize` with this token.
fn initialize_status(server: &HttpServer, token: &str) -> (u16, String) {
    let authorization = bearer(token);
    let response = server.post(
        &[("authorization", &authorization)],
        &initialize(DEFAULT_VERSION),
    );
    let message = response.json()["error"]["message"].clone();
    (
        response.status,
        message.as_str().unwrap_or_default().to_owned(),
    )
}

#[test]
fn token_lifecycle() {
    let server = start(&[]);
    let admin = Admin(&server);
    let token =
        json!({"userId": "ann", "expiresAt": "2999-12-31", "limits": {"requestsPerMinute": 1000}});
    let made = admin.send("POST", "/admin/tokens", &token).json();
    let (text, id) = (
        made["token"].as_str().unwrap(),
        made["id"].as_str().unwrap(),
    );
    assert!(
        text.starts_with("exa_mcp_") && text.len() >= 8 + 64,
        "{made}"
    );
    assert_eq!(made["userId"], "ann");
    assert_eq!(made["source"], "admin");
    assert_eq!(made["role"], "user");
    assert_eq!(made["expiresAt"], "2999-12-31T00:00:00.000Z");
    assert_eq!(made["limits"]["requestsPerMinute"], 1000);
    let prefix = made["tokenPrefix"]
        .as_str()
        .unwrap()
        .trim_end_matches("...");
    assert!(text.starts_with(prefix) && prefix.len() < 16, "{made}");

    let authorization = bearer(text);
    let mut session = HttpSession::new(&server, &[("authorization", &authorization)]);
    session.call("web_search_exa", search());
    session.call("web_search_exa", search());
    session.call("web_search_exa", json!({}));
    let listed = admin.token(id);
    assert_eq!(listed["usageCount"], 4, "{listed}");
    let usage = &listed["usage"];
    assert_eq!(usage["errors"], 1, "{usage}");
    assert_eq!(usage["cacheHits"], 1, "{usage}");
    assert_eq!(usage["byTool"], json!({"web_search_exa": 3}));
    assert_eq!(usage["byOperation"], json!({"search": 2}));
    let dollars = usage["dollars"].as_f64().unwrap();
    assert!(dollars > 0.0, "{usage}");
    assert_eq!(usage["dollarsToday"], usage["dollars"]);
    assert_eq!(usage["dollarsThisMonth"], usage["dollars"]);
    assert!(
        listed.get("token").is_none(),
        "the text is returned once: {listed}"
    );

    let renewed = admin.post(id, "rotate", &json!({}));
    let other = renewed["token"].as_str().unwrap();
    assert_ne!(other, text);
    assert_eq!(initialize_status(&server, text).0, 401);
    assert_eq!(initialize_status(&server, other).0, 200);
    let listed = admin.token(id);
    assert_eq!(
        listed["usageCount"], 5,
        "use stays with the token: {listed}"
    );
    assert_eq!(listed["limits"]["requestsPerMinute"], 1000);

    admin.post(id, "revoke", &json!({}));
    let revoked = (403, "Forbidden: Token has been revoked".to_owned());
    assert_eq!(initialize_status(&server, other), revoked);
    let listed = admin.token(id);
    assert_eq!(listed["isActive"], false);
    assert!(listed["revokedAt"].is_string(), "{listed}");
    let stats = &admin.get("/admin/tokens")["stats"];
    assert_eq!(
        (&stats["totalTokens"], &stats["activeTokens"]),
        (&json!(2), &json!(1))
    );
    let response = admin.send("POST", &format!("/admin/tokens/{id}/rotate"), &json!({}));
    assert_eq!(response.status, 409, "a revoked token stays revoked");
}

#[test]
fn rotated_token_has_a_grace_period() {
    let server = start(&[]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({}));
    let renewed = admin.post(&id, "rotate", &json!({"graceSeconds": 3600}));
    let other = renewed["token"].as_str().unwrap();
    assert_eq!(initialize_status(&server, &text).0, 200);
    assert_eq!(initialize_status(&server, other).0, 200);
    // A second rotation ends the first token, whatever its grace period was.
    admin.post(&id, "rotate", &json!({"graceSeconds": 1}));
    assert_eq!(initialize_status(&server, &text).0, 401);
    let deadline = Instant::now() + Duration::from_secs(20);
    while initialize_status(&server, other).0 != 401 {
        assert!(Instant::now() < deadline, "the grace period never ends");
        sleep(Duration::from_millis(200));
    }
    let response = admin.send(
        "POST",
        &format!("/admin/tokens/{id}/rotate"),
        &json!({"graceSeconds": 3601}),
    );
    assert_eq!(response.status, 400);
}

#[test]
fn token_expires() {
    let server = start(&[]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "ann"}));
    let token = admin.post(&id, "expire", &json!({"expiresAt": "2001-01-01"}));
    assert_eq!(
        (&token["isExpired"], &token["isActive"]),
        (&json!(true), &json!(false))
    );
    let expired = (403, "Forbidden: Token has expired".to_owned());
    assert_eq!(initialize_status(&server, &text), expired);
    admin.post(&id, "expire", &json!({"expiresAt": "never"}));
    assert_eq!(initialize_status(&server, &text).0, 200);
    admin.post(&id, "expire", &json!({}));
    assert_eq!(initialize_status(&server, &text), expired);
    let path = format!("/admin/tokens/{id}");
    let response = admin.send(
        "PATCH",
        &path,
        &json!({"expiresAt": null, "userId": "bob", "limits": {"readOnly": true}}),
    );
    let changed = response.json();
    assert_eq!(changed["userId"], "bob", "{changed}");
    assert_eq!(changed["limits"]["readOnly"], true);
    assert_eq!(initialize_status(&server, &text).0, 200);
}

#[test]
fn environment_tokens_can_be_limited_and_revoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let variables = [
        ("USER_TOKENS", "token-of-ann:ann,token-of-bob:bob"),
        ("EXA_MCP_STORE", &store),
    ];
    let server = start(&variables);
    let admin = Admin(&server);
    let list = admin.get("/admin/tokens");
    let id = |n: usize| list["tokens"][n]["id"].as_str().unwrap().to_owned();
    let (own, ann) = (id(0), id(1));
    assert_eq!(list["tokens"][1]["source"], "environment");
    let response = admin.send("POST", &format!("/admin/tokens/{own}/revoke"), &json!({}));
    assert_eq!(response.status, 409);
    assert!(
        response.text().contains("MCP_AUTH_TOKEN"),
        "{}",
        response.text()
    );
    for (action, body) in [("rotate", json!({})), ("expire", json!({}))] {
        let response = admin.send("POST", &format!("/admin/tokens/{ann}/{action}"), &body);
        assert_eq!(response.status, 409, "{action}");
        assert!(
            response.text().contains("USER_TOKENS"),
            "{}",
            response.text()
        );
    }
    let response = admin.send(
        "PATCH",
        &format!("/admin/tokens/{ann}"),
        &json!({"limits": {"requestsPerMinute": 3}}),
    );
    assert_eq!(response.json()["limits"]["requestsPerMinute"], 3);
    admin.post(&ann, "revoke", &json!({}));
    assert_eq!(initialize_status(&server, "token-of-ann").0, 403);
    drop(server);
    let server = start(&variables);
    assert_eq!(initialize_status(&server, "token-of-ann").0, 403);
    assert_eq!(initialize_status(&server, "token-of-bob").0, 200);
    assert_eq!(Admin(&server).token(&ann)["limits"]["requestsPerMinute"], 3);
}

#[test]
fn token_changes_survive_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let variables = [("EXA_MCP_STORE", store.as_str())];
    let mut server = start(&variables);
    let admin = Admin(&server);
    let (active, active_id) =
        admin.create(&json!({"userId": "ann", "limits": {"tools": ["web_search_exa"]}}));
    let (gone, gone_id) = admin.create(&json!({"userId": "bob"}));
    assert_eq!(initialize_status(&server, &active).0, 200);
    admin.post(&gone_id, "revoke", &json!({}));
    signal(server.process_id(), "KILL");
    server.wait();
    let server = start(&variables);
    let admin = Admin(&server);
    assert_eq!(initialize_status(&server, &active).0, 200);
    assert_eq!(initialize_status(&server, &gone).0, 403);
    let listed = admin.token(&active_id);
    assert_eq!(listed["usageCount"], 2, "{listed}");
    assert_eq!(listed["limits"]["tools"], json!(["web_search_exa"]));
    let entries = admin.get("/admin/audit")["entries"].clone();
    let actions: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    for action in ["token.create", "token.revoke"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
}

#[test]
fn replicas_share_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let variables = [("EXA_MCP_STORE", store.as_str())];
    let (one, two) = (start(&variables), start(&variables));
    let (text, id) = Admin(&one).create(&json!({"userId": "ann"}));
    let becomes = |status: u16| {
        // It takes at most two seconds; a busy machine gets more.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let authorization = bearer(&text);
            let response = two.get("/mcp/usage", &[("authorization", &authorization)]);
            if response.status == status {
                return;
            }
            assert!(Instant::now() < deadline, "still {}", response.status);
            // Invalid tokens are throttled, so this polls slowly.
            sleep(Duration::from_millis(1_000));
        }
    };
    becomes(200);
    Admin(&one).post(&id, "revoke", &json!({}));
    becomes(403);
}

#[test]
fn admin_api_requires_admin() {
    let server = start(&[("USER_TOKENS", "token-of-ann:ann,old-token:eve:2001-01-01")]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "bob"}));
    let (chief, _) = admin.create(&json!({"userId": "chief", "role": "admin"}));
    let calls = [
        ("GET", "/admin/tokens".to_owned()),
        ("POST", "/admin/tokens".to_owned()),
        ("PATCH", format!("/admin/tokens/{id}")),
        ("POST", format!("/admin/tokens/{id}/rotate")),
        ("POST", format!("/admin/tokens/{id}/revoke")),
        ("POST", format!("/admin/tokens/{id}/expire")),
        ("GET", "/admin/audit".to_owned()),
        ("GET", "/admin/keys".to_owned()),
        ("POST", "/admin/keys/some-key/reset".to_owned()),
        ("GET", "/admin/usage".to_owned()),
        ("GET", "/admin/state".to_owned()),
    ];
    for (method, path) in &calls {
        let missing = server.send(method, path, &[], b"");
        assert_eq!(missing.status, 401, "{method} {path}");
        assert!(
            missing
                .text()
                .contains("Unauthorized: Invalid or missing authentication token")
        );
        for (token, why) in [
            ("token-of-ann", "Admin token required"),
            (&text, "Admin token required"),
            ("old-token", "expired"),
        ] {
            let authorization = bearer(token);
            let response = server.send(method, path, &[("authorization", &authorization)], b"");
            assert_eq!(response.status, 403, "{method} {path}");
            assert!(response.text().contains(why), "{}", response.text());
        }
    }
    assert_eq!(admin.token(&id)["isActive"], true, "nothing was changed");
    assert_eq!(admin.get("/admin/tokens")["stats"]["totalTokens"], 5);
    let authorization = bearer(&chief);
    let response = server.get("/admin/tokens", &[("authorization", &authorization)]);
    assert_eq!(
        response.status, 200,
        "an admin token created at run time works"
    );
}

#[test]
fn invalid_admin_requests_are_rejected() {
    let server = start(&[]);
    let admin = Admin(&server);
    let (_, id) = admin.create(&json!({}));
    let before = admin.get("/admin/tokens");
    for token in [
        json!([]),
        json!({"user": "ann"}),
        json!({"userId": 5}),
        json!({"userId": "a\nb"}),
        json!({"userId": "x".repeat(200)}),
        json!({"userId": "2030-01-01"}),
        json!({"role": "owner"}),
        json!({"expiresAt": "tomorrow"}),
        json!({"expiresAt": 17}),
        json!({"limits": {"requestsPerMinute": 0}}),
        json!({"limits": {"requestsPerSecond": 1}}),
        json!({"limits": {"dollarsPerDay": -1}}),
        json!({"limits": {"tools": ["no_such_tool"]}}),
        json!({"limits": []}),
    ] {
        let response = admin.send("POST", "/admin/tokens", &token);
        assert_eq!(response.status, 400, "{token}: {}", response.text());
        assert_eq!(response.json()["jsonrpc"], "2.0");
        if token.get("role").is_none() {
            let response = admin.send("PATCH", &format!("/admin/tokens/{id}"), &token);
            assert_eq!(response.status, 400, "{token}: {}", response.text());
        }
    }
    for path in [
        "/admin/tokens/nobody/revoke",
        "/admin/tokens/nobody/rotate",
        "/admin/tokens/'%20OR%201=1/revoke",
    ] {
        assert_eq!(admin.send("POST", path, &json!({})).status, 404, "{path}");
    }
    assert_eq!(
        admin
            .send("PATCH", "/admin/tokens/nobody", &json!({"userId": "x"}))
            .status,
        404
    );
    assert_eq!(admin.get("/admin/tokens"), before);
}

#[test]
fn user_names_are_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let server = start(&[("EXA_MCP_STORE", &store)]);
    let admin = Admin(&server);
    for name in [
        "'; DROP TABLE counters; --",
        "<script>alert(1)</script>",
        "ann:requests",
        "user:bob:microdollars",
        "\"}]} ",
        "day:2026-11-16",
        "ÄÖÜ 漢字 🦀",
    ] {
        let (text, id) = admin.create(&json!({"userId": name}));
        assert_eq!(initialize_status(&server, &text).0, 200, "{name}");
        let listed = admin.token(&id);
        assert_eq!(listed["userId"], name.trim());
        assert_eq!(listed["usageCount"], 1);
        let used = admin.get("/admin/usage?days=1");
        assert_eq!(
            used["days"][0]["byUser"][name.trim()]["requests"],
            1,
            "{used}"
        );
        let state = admin.get("/admin/state");
        assert_eq!(state["sessions"]["byUser"][name.trim()], 1, "{state}");
    }
    let authorization = bearer(ADMIN);
    let response = server.get("/admin/tokens", &[("authorization", &authorization)]);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn secrets_are_shown_once_and_not_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let server = start(&[("EXA_MCP_STORE", &store), ("EXA_MCP_LOG_LEVEL", "trace")]);
    let admin = Admin(&server);
    let (first, id) = admin.create(&json!({"userId": "ann"}));
    let second = admin.post(&id, "rotate", &json!({"graceSeconds": 60}))["token"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(initialize_status(&server, &first).0, 200);
    assert_eq!(initialize_status(&server, &second).0, 200);
    let guess = "exa_mcp_a-guess-that-must-not-be-kept";
    assert_eq!(initialize_status(&server, guess).0, 401);
    // A mistake: the token's text instead of its id.
    assert_eq!(
        admin
            .send("POST", &format!("/admin/tokens/{first}/revoke"), &json!({}))
            .status,
        404
    );
    let mut places: Vec<(String, String)> = [
        "/admin/tokens",
        "/admin/audit",
        "/admin/state",
        "/admin/keys",
        "/admin/usage",
    ]
    .iter()
    .map(|path| ((*path).to_owned(), admin.get(path).to_string()))
    .collect();
    places.push(("the log".to_owned(), server.log()));
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("a readable file");
        places.push((
            path.display().to_string(),
            String::from_utf8_lossy(&bytes).into_owned(),
        ));
    }
    for (source, text) in places {
        for secret in [
            first.as_str(),
            &second,
            &first[14..],
            &second[14..],
            guess,
            ADMIN,
            crate::support::API_KEY,
        ] {
            assert!(!text.contains(secret), "{secret} in {source}");
        }
    }
}

#[test]
fn usage_keys_and_state_are_reported() {
    let server = start(&[
        ("USER_TOKENS", "token-of-ann:ann,nameless-token-of-someone"),
        (
            "EXA_API_KEYS",
            "first-key-of-the-pool,second-key-of-the-pool,short",
        ),
    ]);
    let admin = Admin(&server);
    let ann = bearer("token-of-ann");
    let mut session = HttpSession::new(&server, &[("authorization", &ann)]);
    session.call("web_search_exa", search());
    let nameless = bearer("nameless-token-of-someone");
    HttpSession::new(&server, &[("authorization", &nameless)]);
    let used = admin.get("/admin/usage");
    let days = used["days"].as_array().unwrap();
    assert_eq!(days.len(), 30);
    let today = &days[0];
    assert_eq!(today["requests"], 3, "{today}");
    assert_eq!(today["byUser"]["ann"]["requests"], 2);
    assert_eq!(today["byUser"]["anonymous"]["requests"], 1);
    assert_eq!(today["byUser"]["ann"]["dollars"], today["dollars"]);
    assert!(
        today["dollars"].as_f64().unwrap() > 0.0 && today["tokens"].as_u64().unwrap() > 0,
        "{today}"
    );
    assert!(
        days[0]["day"].as_str() > days[1]["day"].as_str(),
        "the newest first"
    );
    assert_eq!(
        admin.get("/admin/usage?days=100000")["days"]
            .as_array()
            .unwrap()
            .len(),
        400
    );
    let authorization = bearer(ADMIN);
    let response = server.get(
        "/admin/usage?days=many",
        &[("authorization", &authorization)],
    );
    assert_eq!(response.status, 400);

    let keys = admin.get("/admin/keys");
    assert_eq!(keys["nextReadyInSeconds"], 0, "{keys}");
    let keys = keys["keys"].as_array().unwrap();
    assert!(keys.iter().all(|key| key["state"] == "ready"), "{keys:?}");
    let calls: u64 = keys.iter().filter_map(|key| key["calls"].as_u64()).sum();
    assert_eq!(calls, 1, "{keys:?}");
    assert!(
        !json!(keys).to_string().contains("of-the-pool")
            && !json!(keys).to_string().contains("short")
    );

    let state = admin.get("/admin/state");
    assert_eq!(
        state["sessions"],
        json!({"open": 2, "byUser": {"ann": 1, "anonymous": 1}})
    );
    assert_eq!(state["tasks"]["working"], 0);
    assert_eq!(state["store"]["status"], "ok");
    assert_eq!(state["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        state["uptimeSeconds"].is_u64() && state["keys"]["total"].is_u64(),
        "{state}"
    );
}

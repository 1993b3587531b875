//! Team management, and the team of a key.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn keys_are_created_read_changed_and_deleted() {
    let server = Server::start().await;
    let team = server.team_client();
    let created = team
        .ok(
            "team.keys.create",
            json!({ "name": "ci", "budgetCents": 500, "rateLimit": 3 }),
        )
        .await;
    let key = created["apiKey"].clone();
    assert_eq!(
        (key["name"].as_str(), key["budgetCents"].as_u64()),
        (Some("ci"), Some(500))
    );
    assert_eq!(
        (key["rateLimit"].as_u64(), key["isOverBudget"].as_bool()),
        (Some(3), Some(false))
    );
    for name in ["id", "teamId", "userId"] {
        assert_eq!(key[name].as_str().unwrap().len(), 36, "{name}");
    }
    let id = json!({ "keyId": key["id"] });
    let read = team.ok("team.keys.get", id.clone()).await["apiKey"].clone();
    assert_eq!(
        (&read["id"], &read["createdAt"]),
        (&key["id"], &key["createdAt"])
    );
    let changed = team
        .ok(
            "team.keys.update",
            json!({ "keyId": key["id"], "name": "cd", "budgetCents": null }),
        )
        .await;
    let changed = &changed["apiKey"];
    assert_eq!(
        (changed["name"].as_str(), &changed["budgetCents"]),
        (Some("cd"), &Value::Null)
    );
    assert_eq!(changed["rateLimit"], 3, "other fields do not change");
    assert!(changed["updatedAt"].is_string());
    team.ok("team.keys.create", json!({})).await;
    let listed = server
        .client_with("other service key")
        .ok("team.keys.list", json!({}))
        .await;
    assert_eq!(
        listed["apiKeys"].as_array().unwrap().len(),
        2,
        "service keys share the team"
    );
    let path = format!(
        "/team-management/api-keys?api_key_id={}",
        key["id"].as_str().unwrap()
    );
    let single = team.send("GET", &path, None).await.json();
    assert_eq!(single["apiKey"]["name"], "cd");
    assert_eq!(
        team.ok("team.keys.delete", id.clone()).await["success"],
        true
    );
    for name in [
        "team.keys.get",
        "team.keys.delete",
        "team.keys.usage",
        "team.keys.update",
    ] {
        assert_eq!(team.fails(name, id.clone()).await.0, 404, "{name}");
    }
}

#[tokio::test]
async fn kinds_of_keys_are_not_mixed_up() {
    let server = Server::start().await;
    let (api, team) = (server.client(), server.team_client());
    api.ok("search", json!({ "query": "x" })).await;
    let refused = api.send("GET", "/team-management/api-keys", None).await;
    assert_eq!(refused.status, 401);
    assert!(refused.json()["error"].is_string() && refused.json().get("tag").is_none());
    let keyless = api
        .clone()
        .without_key()
        .send("GET", "/team-management/api-keys", None)
        .await;
    assert_eq!(
        (keyless.status, keyless.json().get("tag").is_none()),
        (401, true)
    );
    for path in ["/search", "/agent/runs", "/monitors/batch"] {
        let refused = team.send("POST", path, Some(json!({ "query": "x" }))).await;
        assert_eq!(
            (refused.status, refused.tag()),
            (401, "INVALID_API_KEY".into()),
            "{path}"
        );
    }
    let plain = server.client_with("k-1");
    plain.ok("team.keys.list", json!({})).await;
    let refused = plain.fails("answer", json!({ "query": "x" })).await;
    assert_eq!(
        refused,
        (401, "INVALID_API_KEY".into()),
        "its first use was team management"
    );
    for (name, value) in [
        ("rateLimit", json!(0)),
        ("budgetCents", json!(-1)),
        ("nmae", json!("x")),
    ] {
        let mut body = json!({});
        body[name] = value;
        let refused = team
            .send("POST", "/team-management/api-keys", Some(body))
            .await;
        assert_eq!(refused.status, 400, "{name}");
        assert!(refused.json()["error"].is_string(), "{name}");
    }
}

#[tokio::test]
async fn usage_and_budgets_follow_the_requests() {
    let server = Server::start().await;
    let team = server.team_client();
    let created = team
        .ok("team.keys.create", json!({ "budgetCents": 2 }))
        .await;
    let id = created["apiKey"]["id"].as_str().unwrap().to_owned();
    let client = server.client_with(&id);
    client.ok("search", json!({ "query": "x" })).await;
    client.ok("answer", json!({ "query": "x" })).await;
    client
        .ok(
            "get_contents",
            json!({ "urls": ["https://a.example/"], "text": true, "highlights": true }),
        )
        .await;
    client
        .ok("search", json!({ "query": "x", "type": "lite" }))
        .await;
    let usage = team.ok("team.keys.usage", json!({ "keyId": id })).await;
    assert_eq!(usage["total_cost_usd"], 0.018);
    let parts = usage["cost_breakdown"].as_array().unwrap();
    let names: Vec<&str> = parts
        .iter()
        .map(|part| part["price_name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["answer", "contents", "search"]);
    assert_eq!(
        (
            parts[2]["quantity"].as_u64(),
            parts[2]["amount_usd"].as_f64()
        ),
        (Some(2), Some(0.011))
    );
    client.ok("answer", json!({ "query": "x" })).await;
    assert_eq!(
        client.fails("answer", json!({ "query": "x" })).await,
        (402, "API_KEY_BUDGET_EXCEEDED".into())
    );
    let key = team.ok("team.keys.get", json!({ "keyId": id })).await;
    assert_eq!(key["apiKey"]["isOverBudget"], true);
    team.ok(
        "team.keys.update",
        json!({ "keyId": id, "budgetCents": 100 }),
    )
    .await;
    client.ok("answer", json!({ "query": "x" })).await;

    let usage_of = |query: &str| {
        let (team, path) = (
            team.clone(),
            format!("/team-management/api-keys/{id}/usage?{query}"),
        );
        async move { team.send("GET", &path, None).await }
    };
    let early =
        usage_of("start_date=2026-10-01T00:00:00Z&end_date=2026-10-02T00:00:00Z&group_by=day")
            .await;
    assert_eq!(early.json()["total_cost_usd"], 0.0, "{}", early.text());
    for query in [
        "start_date=2026-10-02T00:00:00Z&end_date=2026-10-01T00:00:00Z",
        "start_date=2020-01-01T00:00:00Z",
        "group_by=week",
        "start_date=yesterday",
    ] {
        let refused = usage_of(query).await;
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.json()["error"].is_string(), "{query}");
    }
    team.ok("team.keys.delete", json!({ "keyId": id })).await;
    assert_eq!(
        client.fails("answer", json!({ "query": "x" })).await,
        (401, "INVALID_API_KEY".into())
    );
}

#[tokio::test]
async fn team_reports_its_concurrency() {
    let server = Server::start().await;
    let client = server.client();
    let idle = client.ok("teams.me", json!({})).await;
    assert_eq!(
        (idle["object"].as_str(), &idle["concurrency"]),
        (Some("team"), &json!({ "active": 0, "queued": 0 }))
    );
    assert!(idle["limits"]["maxConcurrent"].as_u64().unwrap() > 0);
    for _ in 0..2 {
        let search = json!({ "query": "startups in Berlin", "count": 3 });
        client
            .ok("websets.create", json!({ "search": search }))
            .await;
    }
    let busy = client.ok("teams.me", json!({})).await;
    assert_eq!(busy["concurrency"], json!({ "active": 2, "queued": 0 }));
    assert_eq!(busy["id"], idle["id"]);
    client.advance(20_000).await;
    let done = client.ok("teams.me", json!({})).await;
    assert_eq!(done["concurrency"]["active"], 0);
}

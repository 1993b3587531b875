//! Agent runs, agent monitors and backtests.

use serde_json::{Value, json};

use crate::support::{Client, Server};

const EFFORT: &str = "agent-max-effort-2026-07-27";
const MONITORS: &str = "agent-monitors-2026-08-04";

#[tokio::test]
async fn run_completes() {
    let server = Server::start().await;
    let client = server.client();
    let schema = json!({ "type": "object", "required": ["companies"], "properties": { "companies": { "type": "array", "items": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } } } });
    let created = client
        .ok(
            "agent.runs.create",
            json!({ "query": "Find makers", "outputSchema": schema, "metadata": { "a": "b" } }),
        )
        .await;
    assert!(created["id"].as_str().unwrap().starts_with("agent_run_"));
    assert_eq!(
        (
            created["status"].as_str(),
            created["output"]["text"].as_str()
        ),
        (Some("queued"), Some(""))
    );
    assert_eq!(created["costDollars"]["total"], 0.0);
    assert_eq!(created["request"]["metadata"]["a"], "b");
    let id = json!({ "runId": created["id"] });
    client.advance(500).await;
    assert_eq!(
        client.ok("agent.runs.get", id.clone()).await["status"],
        "running"
    );
    client.advance(5_000).await;
    let done = client.ok("agent.runs.get", id.clone()).await;
    assert_eq!(
        (done["status"].as_str(), done["stopReason"].as_str()),
        (Some("completed"), Some("schema_satisfied"))
    );
    assert!(done["output"]["structured"]["companies"].is_array());
    assert_eq!(done["output"]["grounding"][0]["field"], "companies");
    assert!(done["costDollars"]["total"].is_number() && done["usage"]["searches"].is_number());

    let all = client.ok("agent.runs.events.list", id.clone()).await;
    let first = client
        .ok(
            "agent.runs.events.list",
            json!({ "runId": created["id"], "limit": 2 }),
        )
        .await;
    let rest = client
        .ok(
            "agent.runs.events.list",
            json!({ "runId": created["id"], "cursor": first["nextCursor"] }),
        )
        .await;
    let joined: Vec<Value> = first["data"]
        .as_array()
        .unwrap()
        .iter()
        .chain(rest["data"].as_array().unwrap())
        .cloned()
        .collect();
    assert_eq!(all["data"], json!(joined));
    assert_eq!(all["data"][0]["event"], "agent_run.created");
    assert_eq!(joined.last().unwrap()["event"], "agent_run.completed");

    let next = client
        .ok(
            "agent.runs.create",
            json!({ "query": "More", "previousRunId": created["id"] }),
        )
        .await;
    assert_eq!(
        client.ok("agent.runs.list", json!({})).await["data"][0]["id"],
        next["id"]
    );
    assert_eq!(
        client
            .fails(
                "agent.runs.create",
                json!({ "query": "x", "previousRunId": "agent_run_x" })
            )
            .await,
        (404, "PREVIOUS_RUN_NOT_FOUND".into())
    );
    assert_eq!(
        client
            .fails(
                "agent.runs.create",
                json!({ "query": "x", "previousRunId": next["id"] })
            )
            .await,
        (400, "PREVIOUS_RUN_NOT_COMPLETED".into())
    );
    assert_eq!(
        client.ok("agent.runs.delete", id.clone()).await["deleted"],
        true
    );
    assert_eq!(
        client.fails("agent.runs.get", id).await,
        (404, "RUN_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn runs_can_be_cancelled_stopped_and_fail() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .ok("agent.runs.create", json!({ "query": "x" }))
        .await;
    let id = json!({ "runId": created["id"] });
    let cancelled = client.ok("agent.runs.cancel", id.clone()).await;
    assert_eq!(
        (
            cancelled["status"].as_str(),
            cancelled["stopReason"].as_str()
        ),
        (Some("cancelled"), Some("cancelled"))
    );
    client.advance(30_000).await;
    assert_eq!(client.ok("agent.runs.get", id).await["status"], "cancelled");

    let long = client
        .ok(
            "agent.runs.create",
            json!({ "query": "x", "effort": "ultra" }),
        )
        .await;
    client.advance(6_000).await;
    let id = json!({ "runId": long["id"] });
    assert_eq!(
        client.ok("agent.runs.get", id.clone()).await["status"],
        "running"
    );
    client.ok("agent.runs.stop", id.clone()).await;
    client.advance(1_000).await;
    let stopped = client.ok("agent.runs.get", id.clone()).await;
    assert_eq!(
        (stopped["status"].as_str(), stopped["stopReason"].as_str()),
        (Some("completed"), Some("stopped"))
    );
    assert!(stopped["output"]["text"].is_string());
    assert_eq!(
        client.ok("agent.runs.stop", id).await,
        stopped,
        "an ended run does not change"
    );
    let short = client
        .ok(
            "agent.runs.create",
            json!({ "query": "x", "effort": "low" }),
        )
        .await;
    assert_eq!(
        client
            .fails(
                "agent.runs.stop",
                json!({ "runId": short["id"], "betas": [EFFORT] })
            )
            .await,
        (400, "INVALID_REQUEST".into())
    );

    let failing = client
        .ok("agent.runs.create", json!({ "query": "sandbox-fail" }))
        .await;
    client.advance(10_000).await;
    let failed = client
        .ok("agent.runs.get", json!({ "runId": failing["id"] }))
        .await;
    assert_eq!(
        (failed["status"].as_str(), failed["error"]["code"].as_str()),
        (Some("failed"), Some("SERVER_ERROR"))
    );
}

#[tokio::test]
async fn budgets_and_data_sources_are_checked_and_charged() {
    let server = Server::start().await;
    let client = server.client();
    for (effort, budget) in [
        ("low", json!({ "maxCostDollars": 2 })),
        ("xhigh", json!({ "maxCostDollars": 2 })),
        ("auto", json!({ "maxDurationSeconds": 600 })),
    ] {
        let args = json!({ "query": "x", "effort": effort, "budget": budget });
        let refused = client.fails("agent.runs.create", args).await;
        assert_eq!(
            refused,
            (400, "INVALID_REQUEST".into()),
            "{effort} {budget}"
        );
    }
    let unknown = json!({ "query": "x", "dataSources": [{ "provider": "gossip" }] });
    let refused = client.fails("agent.runs.create", unknown).await;
    assert_eq!(refused, (400, "INVALID_DATA_SOURCE".into()));
    let args = json!({ "query": "x", "effort": "low",
        "dataSources": [{ "provider": "similarweb" }, { "provider": "jinko" }] });
    let run = client.ok("agent.runs.create", args).await;
    client.advance(10_000).await;
    let run = client
        .ok("agent.runs.get", json!({ "runId": run["id"] }))
        .await;
    assert_eq!(run["costDollars"]["total"], 0.33);
    assert_eq!(run["costDollars"]["dataSources"]["similarweb"], 0.3);
    assert_eq!(run["usage"]["dataSources"]["jinko"], 1);
    let mut reasons = std::collections::BTreeSet::new();
    for number in 0..8 {
        let query = format!("subject {number}");
        let args = json!({ "query": query, "budget": { "maxCostDollars": 4 } });
        let run = client.ok("agent.runs.create", args).await;
        client.advance(10_000).await;
        let run = client
            .ok("agent.runs.get", json!({ "runId": run["id"] }))
            .await;
        assert!(run["costDollars"]["total"].as_f64().unwrap() <= 4.0);
        reasons.insert(run["stopReason"].as_str().map(str::to_owned));
    }
    let both = [None, Some("budget_reached".to_owned())];
    assert_eq!(
        reasons,
        both.into_iter().collect(),
        "some runs reach their budget"
    );
}

#[tokio::test]
async fn events_are_replayed_after_the_last_one_seen() {
    let server = Server::start().await;
    let client = server.client();
    let run = client
        .ok("agent.runs.create", json!({ "query": "x" }))
        .await;
    client.advance(1_500).await;
    let path = format!("/agent/runs/{}/events", run["id"].as_str().unwrap());
    let replay = client.clone().header("accept", "text/event-stream");
    let ids = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("id: "));
        lines.map(str::to_owned).collect()
    };
    let so_far = ids(&replay.send("GET", &path, None).await.text());
    assert!(so_far.len() >= 2, "{so_far:?}");
    client.advance(10_000).await;
    let listed = client
        .ok("agent.runs.events.list", json!({ "runId": run["id"] }))
        .await;
    let all: Vec<&str> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids(&replay.send("GET", &path, None).await.text()), all);
    let seen = so_far.last().unwrap();
    let after = |id: &str| replay.clone().header("last-event-id", id);
    let rest = after(seen).send("GET", &path, None).await;
    assert!(rest.headers["content-type"].starts_with("text/event-stream"));
    assert_eq!([so_far.clone(), ids(&rest.text())].concat(), all);
    let last = all.last().unwrap();
    assert_eq!(after(last).send("GET", &path, None).await.text(), "");
    let unknown = after("made-up").send("GET", &path, None).await;
    assert_eq!(
        (unknown.status, unknown.tag()),
        (400, "INVALID_REQUEST".into())
    );
}

#[tokio::test]
async fn max_effort_requires_beta_token() {
    let server = Server::start().await;
    let client = server.client();
    let refused = client
        .call(
            "agent.runs.create",
            json!({ "query": "x", "effort": "max" }),
        )
        .await;
    assert_eq!(
        (refused.status, refused.tag()),
        (400, "INVALID_REQUEST".into())
    );
    assert!(
        refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains(EFFORT)
    );
    client
        .ok(
            "agent.runs.create",
            json!({ "query": "x", "effort": "max", "betas": ["other", EFFORT] }),
        )
        .await;
    let broken = json!({ "query": "x", "outputSchema": { "type": 5 } });
    assert_eq!(
        client.fails("agent.runs.create", broken).await,
        (400, "INVALID_OUTPUT_SCHEMA".into())
    );
}

fn monitor() -> Value {
    json!({
        "cadence": "12h",
        "entities": [{ "name": "Acme", "domain": "acme.example" }, { "name": "Basalt", "domain": "basalt.example" }],
        "fields": [{ "name": "ceo", "description": "Who leads it" }, { "name": "staff", "description": "Employees", "type": "number" }],
        "betas": [MONITORS],
    })
}

fn with(mut args: Value, name: &str, value: impl Into<Value>) -> Value {
    args[name] = value.into();
    args
}

async fn create_monitor(client: &Client) -> Value {
    client.ok("agent.monitors.create", monitor()).await
}

#[tokio::test]
async fn agent_monitors_refresh() {
    let server = Server::start().await;
    let client = server.client();
    let created = create_monitor(&client).await;
    assert_eq!(
        (created["status"].as_str(), created["entityCount"].as_u64()),
        (Some("creating"), Some(2))
    );
    let id = json!({ "monitorId": created["id"], "betas": [MONITORS] });
    client.advance(800).await;
    assert_eq!(
        client.ok("agent.monitors.get", id.clone()).await["status"],
        "pending_first_refresh"
    );
    client.advance(600).await;
    assert_eq!(
        client.ok("agent.monitors.get", id.clone()).await["refresh"]["state"],
        "running"
    );
    client.advance(3_000).await;
    let active = client.ok("agent.monitors.get", id.clone()).await;
    assert_eq!(
        (
            active["status"].as_str(),
            active["refresh"]["state"].as_str()
        ),
        (Some("active"), Some("idle"))
    );
    assert!(active["lastRefreshAt"].is_string());
    let entities = client.ok("agent.monitors.entities.list", id.clone()).await;
    let field = active["fields"][1]["id"].as_str().unwrap();
    assert_eq!(entities["data"].as_array().unwrap().len(), 2);
    assert!(entities["data"][0]["contents"][field]["value"].is_u64());
    assert_eq!(entities["version"], active["version"]);
    let changes = client
        .ok("agent.monitors.changes.list", with(id.clone(), "limit", 3))
        .await;
    assert_eq!(
        (
            changes["data"].as_array().unwrap().len(),
            changes["hasMore"].as_bool()
        ),
        (3, Some(true))
    );
    assert_eq!(changes["data"][0]["type"], "content.upserted");
    let rest = client
        .ok(
            "agent.monitors.changes.list",
            with(id.clone(), "cursor", changes["nextCursor"].clone()),
        )
        .await;
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);

    let more = json!({ "monitorId": created["id"], "betas": [MONITORS], "entities": [{ "name": "Cobalt", "domain": "cobalt.example" }] });
    let grown = client.ok("agent.monitors.entities.add", more.clone()).await;
    assert_eq!(grown["entityCount"], 3);
    assert_eq!(
        client.fails("agent.monitors.entities.add", more).await.0,
        409
    );
    client.advance(43_200_000).await;
    client.ok("agent.monitors.get", id.clone()).await;
    client.advance(5_000).await;
    let later = client.ok("agent.monitors.get", id.clone()).await;
    assert!(later["version"].as_u64() > active["version"].as_u64());
    assert_eq!(
        client.ok("agent.monitors.entities.list", id.clone()).await["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let since = client
        .ok(
            "agent.monitors.changes.list",
            with(id.clone(), "since", active["lastRefreshAt"].clone()),
        )
        .await;
    assert!(since["data"].as_array().unwrap().len() > 4);
    let future = client
        .ok(
            "agent.monitors.changes.list",
            with(id.clone(), "since", "2999-01-01"),
        )
        .await;
    assert_eq!(future["data"], json!([]));
    assert_eq!(
        client.ok("agent.monitors.delete", id.clone()).await["deleted"],
        true
    );
    assert_eq!(
        client.fails("agent.monitors.get", id).await,
        (404, "MONITOR_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn agent_monitors_require_beta_token() {
    let server = Server::start().await;
    let client = server.client();
    let mut plain = monitor();
    plain.as_object_mut().unwrap().remove("betas");
    assert_eq!(
        client.fails("agent.monitors.create", plain.clone()).await,
        (400, "INVALID_REQUEST".into())
    );
    plain.as_object_mut().unwrap().remove("cadence");
    assert_eq!(
        client
            .fails("agent.monitors.backtests.create", plain)
            .await
            .0,
        400
    );
    for name in [
        "agent.monitors.get",
        "agent.monitors.delete",
        "agent.monitors.entities.list",
        "agent.monitors.changes.list",
    ] {
        assert_eq!(
            client.fails(name, json!({ "monitorId": "x" })).await,
            (400, "INVALID_REQUEST".into()),
            "{name}"
        );
    }
    assert_eq!(client.fails("agent.monitors.list", json!({})).await.0, 400);
    for cadence in ["5h", "often", "0d", "12"] {
        assert_eq!(
            client
                .fails("agent.monitors.create", with(monitor(), "cadence", cadence))
                .await
                .0,
            400,
            "{cadence}"
        );
    }
    let twice =
        json!([{ "name": "A", "domain": "a.example" }, { "name": "B", "domain": "a.example" }]);
    assert_eq!(
        client
            .fails("agent.monitors.create", with(monitor(), "entities", twice))
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn idempotency_key_prevents_duplicates() {
    let server = Server::start().await;
    let client = server.client();
    let args = with(monitor(), "idempotencyKey", "once");
    let first = client.ok("agent.monitors.create", args.clone()).await;
    assert_eq!(
        client.ok("agent.monitors.create", args.clone()).await["id"],
        first["id"]
    );
    assert_eq!(
        client
            .fails("agent.monitors.create", with(args.clone(), "cadence", "7d"))
            .await,
        (409, "IDEMPOTENCY_CONFLICT".into())
    );
    assert_ne!(
        create_monitor(&client).await["id"],
        first["id"],
        "a request without a key creates another monitor"
    );
    assert_eq!(
        client
            .ok("agent.monitors.list", json!({ "betas": [MONITORS] }))
            .await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_ne!(
        server
            .client_with("other")
            .ok("agent.monitors.create", args)
            .await["id"],
        first["id"]
    );
}

#[tokio::test]
async fn backtests_complete_and_expire() {
    let server = Server::start().await;
    let client = server.client();
    let mut args = monitor();
    args.as_object_mut().unwrap().remove("cadence");
    for (name, day) in [("startTime", "2026-01-01"), ("endTime", "2026-02-01")] {
        let one = with(args.clone(), name, format!("{day}T00:00:00Z"));
        let refused = client.fails("agent.monitors.backtests.create", one).await;
        assert_eq!(refused.0, 400, "only {name}");
    }
    args["startTime"] = "2026-01-01T00:00:00Z".into();
    args["endTime"] = "2026-02-01T00:00:00Z".into();
    let created = client
        .ok("agent.monitors.backtests.create", args.clone())
        .await;
    assert_eq!(created["status"], "running");
    client.advance(4_000).await;
    let id = json!({ "backtestId": created["id"], "betas": [MONITORS] });
    let done = client.ok("agent.monitors.backtests.get", id.clone()).await;
    assert_eq!(
        (
            done["status"].as_str(),
            done["data"].as_array().unwrap().len()
        ),
        (Some("completed"), 2)
    );
    client.advance(8 * 86_400_000).await;
    assert_eq!(
        client.fails("agent.monitors.backtests.get", id).await,
        (404, "BACKTEST_NOT_FOUND".into())
    );
    assert_eq!(
        client
            .fails(
                "agent.monitors.backtests.create",
                with(args, "startTime", "2026-03-01T00:00:00Z")
            )
            .await
            .0,
        400
    );
}

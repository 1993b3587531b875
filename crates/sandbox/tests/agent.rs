//! Agent runs, agent monitors, backtests and research.

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
        (created["status"].as_str(), &created["output"]),
        (Some("queued"), &Value::Null)
    );
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
        (404, "RUN_NOT_FOUND".into())
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
    assert_eq!(
        client.fails("agent.runs.stop", id.clone()).await,
        (400, "BETA_HEADER_REQUIRED".into())
    );
    client
        .ok(
            "agent.runs.stop",
            json!({ "runId": long["id"], "betas": [EFFORT] }),
        )
        .await;
    client.advance(1_000).await;
    let stopped = client.ok("agent.runs.get", id).await;
    assert_eq!(
        (stopped["status"].as_str(), stopped["stopReason"].as_str()),
        (Some("completed"), Some("stopped"))
    );
    assert!(stopped["output"]["text"].is_string());
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
            .await
            .0,
        400
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
        (Some("failed"), Some("RUN_FAILED"))
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
        (400, "BETA_HEADER_REQUIRED".into())
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
        (400, "BETA_HEADER_REQUIRED".into())
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
            (400, "BETA_HEADER_REQUIRED".into()),
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
                with(args, "startTime", "2026-01-01T00:00:00Z")
            )
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn research_completes() {
    let server = Server::start().await;
    let client = server.client();
    let schema = json!({ "type": "object", "required": ["best"], "properties": { "best": { "type": "string" } } });
    let created = client.ok("research.create", json!({ "instructions": "Compare heat pumps", "outputSchema": schema, "model": "exa-research-pro" })).await;
    assert_eq!(
        (created["status"].as_str(), created["model"].as_str()),
        (Some("pending"), Some("exa-research-pro"))
    );
    client.advance(1_000).await;
    let running = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"], "events": true }),
        )
        .await;
    assert_eq!(running["status"], "running");
    let seen = running["events"].as_array().unwrap().len();
    client.advance(5_000).await;
    let done = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"], "events": true }),
        )
        .await;
    assert_eq!(done["status"], "completed");
    assert!(done["events"].as_array().unwrap().len() > seen);
    assert!(done["output"]["parsed"]["best"].is_string());
    assert_eq!(
        serde_json::from_str::<Value>(done["output"]["content"].as_str().unwrap()).unwrap(),
        done["output"]["parsed"]
    );
    let plain = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"] }),
        )
        .await;
    assert!(plain.get("events").is_none());
    let failing = client
        .ok("research.create", json!({ "instructions": "sandbox-fail" }))
        .await;
    client.advance(5_000).await;
    let list = client.ok("research.list", json!({ "limit": 1 })).await;
    assert_eq!(
        (
            &list["data"][0]["researchId"],
            list["data"][0]["status"].as_str()
        ),
        (&failing["researchId"], Some("failed"))
    );
    assert_eq!(list["hasMore"], true);
    assert_eq!(
        client
            .fails("research.get", json!({ "researchId": "research_x" }))
            .await,
        (404, "NOT_FOUND".into())
    );
}

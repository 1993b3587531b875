//! The steps of the walk.

use serde_json::json;

use super::{Step, step};

/// Returns all steps; deletions come last.
pub(super) fn all() -> Vec<Step> {
    let parts = [websets(), search(), batches(), deletions()];
    parts.into_iter().flatten().collect()
}

/// The URL of a webhook that is never called.
const HOOK: &str = "https://hooks.example/x";
/// Long enough for any work in the sandbox to finish.
const WORK_MS: u64 = 30_000;

fn websets() -> Vec<Step> {
    let webset = || json!({"websetId": "$webset"});
    let search = || json!({"websetId": "$webset", "searchId": "$search"});
    let enrichment = || json!({"websetId": "$webset", "enrichmentId": "$enrichment"});
    let import = json!({"size": 10, "count": 1, "format": "csv", "entity": {"type": "company"}});
    let behavior = json!({"type": "search", "config": {"count": 2}});
    vec![
        step("teams.me", json!({})),
        step(
            "websets.preview",
            json!({"search": {"query": "startups in Berlin"}}),
        ),
        step(
            "websets.create",
            json!({"search": {"query": "startups in Berlin", "count": 3}}),
        )
        .save("webset", "/id")
        .with_expected("/status", "pending"),
        step(
            "searches.create",
            json!({"websetId": "$webset", "query": "banks", "count": 2}),
        )
        .save("search", "/id"),
        step("searches.cancel", search()).with_expected("/status", "canceled"),
        step(
            "enrichments.create",
            json!({"websetId": "$webset", "description": "Employees"}),
        )
        .save("enrichment", "/id"),
        step(
            "webhooks.create",
            json!({"events": ["webset.item.created"], "url": HOOK}),
        )
        .save("webhook", "/id"),
        step(
            "monitors.create",
            json!({"websetId": "$webset", "behavior": behavior,
            "cadence": {"cron": "0 9 * * 1", "timezone": "Europe/Berlin"}}),
        )
        .save("monitor", "/id"),
        step("items.list", webset())
            .save("item", "/data/0/id")
            .after(WORK_MS),
        step(
            "items.get",
            json!({"websetId": "$webset", "itemId": "$item"}),
        ),
        step("searches.get", search()).with_expected("/status", "canceled"),
        step("enrichments.get", enrichment()).with_expected("/status", "completed"),
        step(
            "enrichments.update",
            json!({"websetId": "$webset", "enrichmentId": "$enrichment",
            "description": "Number of people"}),
        ),
        step("enrichments.cancel", enrichment()),
        step(
            "websets.get",
            json!({"websetId": "$webset", "expand": ["items"]}),
        )
        .with_expected("/status", "idle"),
        step("websets.list", json!({"limit": 1})).with_expected("/hasMore", false),
        step(
            "websets.update",
            json!({"websetId": "$webset", "metadata": {"a": "b"}}),
        )
        .with_expected("/metadata/a", "b"),
        step("websets.cancel", webset()),
        step("imports.create", import).save("import", "/id"),
        step("imports.get", json!({"importId": "$import"})),
        step("imports.list", json!({})),
        step(
            "imports.update",
            json!({"importId": "$import", "title": "Ü"}),
        )
        .with_expected("/title", "Ü"),
        step("webhooks.get", json!({"webhookId": "$webhook"})),
        step("webhooks.list", json!({})),
        step(
            "webhooks.update",
            json!({"webhookId": "$webhook", "events": ["webset.idle"]}),
        )
        .with_expected("/events/0", "webset.idle"),
        step("webhooks.list_attempts", json!({"webhookId": "$webhook"})),
        step("events.list", json!({"limit": 2})).save("event", "/data/0/id"),
        step("events.get", json!({"eventId": "$event"})),
        step("monitors.get", json!({"monitorId": "$monitor"})),
        step("monitors.list", json!({"websetId": "$webset"})),
        step(
            "monitors.update",
            json!({"monitorId": "$monitor", "status": "disabled"}),
        )
        .with_expected("/status", "disabled"),
        step("monitors.runs.list", json!({"monitorId": "$monitor"})).save("run", "/data/0/id"),
        step(
            "monitors.runs.get",
            json!({"monitorId": "$monitor", "runId": "$run"}),
        ),
    ]
}

/// The server adds the beta headers that some of these need.
fn search() -> Vec<Step> {
    let entities = json!([{"name": "Acme", "domain": "acme.example"}]);
    let fields = json!([{"name": "ceo", "description": "Who leads the company"}]);
    let run = || json!({"runId": "$agentRun"});
    let agent_monitor = || json!({"monitorId": "$agentMonitor"});
    let monitor = || json!({"monitorId": "$searchMonitor"});
    vec![
        step(
            "search",
            json!({"query": "solid-state batteries", "numResults": 2}),
        ),
        step("find_similar", json!({"url": "https://a.example/x"})),
        step(
            "get_contents",
            json!({"urls": ["https://a.example/x"], "text": true}),
        ),
        step(
            "answer",
            json!({"query": "Who makes solid-state batteries?"}),
        ),
        step(
            "research.create",
            json!({"instructions": "Compare heat pumps"}),
        )
        .save("research", "/researchId"),
        step("research.list", json!({})),
        step(
            "agent.runs.create",
            json!({"query": "Find heat pump makers"}),
        )
        .save("agentRun", "/id"),
        step("agent.runs.cancel", run()).with_expected("/status", "cancelled"),
        step(
            "agent.runs.create",
            json!({"query": "Find pump makers", "effort": "ultra"}),
        )
        .save("agentRun", "/id"),
        step("agent.runs.stop", run()),
        step("agent.runs.get", run()).after(WORK_MS),
        step("agent.runs.list", json!({"limit": 5})),
        step("agent.runs.events.list", run()),
        step("research.get", json!({"researchId": "$research"}))
            .with_expected("/status", "completed"),
        step(
            "agent.monitors.create",
            json!({"cadence": "12h", "entities": entities, "fields": fields}),
        )
        .save("agentMonitor", "/id"),
        step("agent.monitors.get", agent_monitor()),
        step("agent.monitors.list", json!({})),
        step(
            "agent.monitors.entities.add",
            json!({"monitorId": "$agentMonitor",
            "entities": [{"name": "B", "domain": "b.example"}]}),
        ),
        step("agent.monitors.entities.list", agent_monitor()),
        step("agent.monitors.changes.list", agent_monitor()),
        step(
            "agent.monitors.backtests.create",
            json!({"entities": entities, "fields": fields,
            "startTime": "2026-01-01T00:00:00Z", "endTime": "2026-02-01T00:00:00Z"}),
        )
        .save("backtest", "/id"),
        step(
            "agent.monitors.backtests.get",
            json!({"backtestId": "$backtest"}),
        ),
        step(
            "search_monitors.create",
            json!({"search": {"query": "x"}, "webhook": {"url": HOOK}}),
        )
        .save("searchMonitor", "/id"),
        step("search_monitors.trigger", monitor()),
        step("search_monitors.get", monitor()),
        step("search_monitors.list", json!({})),
        step(
            "search_monitors.update",
            json!({"monitorId": "$searchMonitor", "name": "N"}),
        )
        .with_expected("/name", "N"),
        step(
            "search_monitors.batch",
            json!({"action": "pause", "filter": {"name": "N"}}),
        ),
        step("search_monitors.runs.list", monitor())
            .save("run", "/data/0/id")
            .after(WORK_MS),
        step(
            "search_monitors.runs.get",
            json!({"monitorId": "$searchMonitor", "runId": "$run"}),
        ),
    ]
}

fn batches() -> Vec<Step> {
    let batch = || json!({"batchId": "$batch"});
    let requests = json!([
        {"customId": "a", "method": "POST", "url": "/search", "body": {"query": "banks"}}
    ]);
    vec![
        step("batches.create", json!({ "requests": requests })).save("batch", "/id"),
        step("batches.get", batch()),
        step("batches.list", json!({})),
        step("batches.cancel", batch()),
        step("batches.delete", batch()).after(WORK_MS),
    ]
}

fn deletions() -> Vec<Step> {
    vec![
        step(
            "items.delete",
            json!({"websetId": "$webset", "itemId": "$item"}),
        ),
        step(
            "enrichments.delete",
            json!({"websetId": "$webset", "enrichmentId": "$enrichment"}),
        ),
        step("monitors.delete", json!({"monitorId": "$monitor"})),
        step("webhooks.delete", json!({"webhookId": "$webhook"})),
        step("imports.delete", json!({"importId": "$import"})),
        step("websets.delete", json!({"websetId": "$webset"})),
        step("agent.runs.delete", json!({"runId": "$agentRun"})),
        step(
            "agent.monitors.delete",
            json!({"monitorId": "$agentMonitor"}),
        ),
        step(
            "search_monitors.delete",
            json!({"monitorId": "$searchMonitor"}),
        ),
    ]
}

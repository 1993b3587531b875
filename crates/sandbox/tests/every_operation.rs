//! Every operation of the specs, with its required arguments only.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::{Client, Server, specs};

const MONITORS_BETA: &str = "agent-monitors-2026-08-04";
const BATCHES_BETA: &str = "batches-2026-06-06";
const EFFORT_BETA: &str = "agent-max-effort-2026-07-27";

/// Returns a value with what a schema requires.
fn minimal(root: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return minimal(root, target);
    }
    let branch = ["const", "/enum/0", "/oneOf/0", "/anyOf/0"].map(|place| match place {
        "const" => schema.get("const"),
        pointer => schema.pointer(pointer),
    });
    match branch {
        [Some(value), ..] | [_, Some(value), ..] => return value.clone(),
        [_, _, Some(branch), _] | [.., Some(branch)] => return minimal(root, branch),
        _ => {}
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let fields = names.map(|name| {
                let value = minimal(root, &schema["properties"][name]);
                (name.to_owned(), value)
            });
            Value::Object(fields.collect())
        }
        Some("array") => json!([minimal(root, &schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        _ => json!("sample"),
    }
}

/// Returns the required arguments other than ids.
fn minimal_arguments(operation: &str) -> Value {
    let entities = json!([{ "name": "Acme", "domain": "acme.example" }]);
    let fields = json!([{ "name": "ceo", "description": "Who leads the company" }]);
    match operation {
        "search" | "answer" => json!({ "query": "solid-state batteries" }),
        "find_similar" => json!({ "url": "https://a.example/x" }),
        "get_contents" => json!({ "urls": ["https://a.example/x"] }),
        "research.create" => json!({ "instructions": "Compare heat pumps" }),
        "agent.runs.create" => json!({ "query": "Find heat pump makers" }),
        "agent.runs.stop" => json!({ "betas": [EFFORT_BETA] }),
        "agent.monitors.create" => {
            json!({ "cadence": "12h", "entities": entities, "fields": fields, "betas": [MONITORS_BETA] })
        }
        "agent.monitors.entities.add" => {
            json!({ "entities": [{ "name": "B", "domain": "b.example" }], "betas": [MONITORS_BETA] })
        }
        "agent.monitors.backtests.create" => {
            json!({ "entities": entities, "fields": fields, "betas": [MONITORS_BETA],
                "startTime": "2026-01-01T00:00:00Z", "endTime": "2026-02-01T00:00:00Z" })
        }
        "batches.create" => {
            // This takes long enough to be canceled.
            let body = json!({ "query": "x", "effort": "ultra" });
            let request =
                json!({ "customId": "1", "method": "POST", "url": "/agent/runs", "body": body });
            json!({ "requests": [request], "betas": [BATCHES_BETA] })
        }
        name if name.starts_with("batches.") => json!({ "betas": [BATCHES_BETA] }),
        "search_monitors.batch" => json!({ "action": "pause", "filter": {} }),
        "team.keys.create" | "team.keys.update" => json!({ "name": "ci" }),
        name if name.starts_with("agent.monitors.") => json!({ "betas": [MONITORS_BETA] }),
        "search_monitors.create" => {
            json!({ "search": { "query": "x" }, "webhook": { "url": "https://hooks.example/x" } })
        }
        "websets.preview" => json!({ "search": { "query": "startups in Berlin" } }),
        "searches.create" => json!({ "query": "startups", "count": 3 }),
        "enrichments.create" => json!({ "description": "Number of employees" }),
        "imports.create" => {
            json!({ "size": 10, "count": 1, "format": "csv", "entity": { "type": "company" } })
        }
        "monitors.create" => {
            json!({ "cadence": { "cron": "0 9 * * *" }, "behavior": { "type": "search", "config": { "count": 2 } } })
        }
        "webhooks.create" => {
            json!({ "events": ["webset.created"], "url": "https://hooks.example/x" })
        }
        _ => json!({}),
    }
}

/// Creates objects and returns their ids by argument name, with the domain where it is ambiguous.
async fn fixtures(client: &Client) -> HashMap<&'static str, String> {
    let id = |value: &Value| value["id"].as_str().unwrap().to_owned();
    let mut ids = HashMap::new();
    let webset = client
        .ok("websets.create", json!({ "search": { "query": "startups in Berlin", "count": 5 }, "enrichments": [{ "description": "Email" }] }))
        .await;
    ids.insert("websetId", id(&webset));
    ids.insert(
        "searchId",
        webset["searches"][0]["id"].as_str().unwrap().to_owned(),
    );
    ids.insert(
        "enrichmentId",
        webset["enrichments"][0]["id"].as_str().unwrap().to_owned(),
    );
    let with_webset = |mut args: Value| {
        args["websetId"] = webset["id"].clone();
        args
    };
    ids.insert(
        "importId",
        id(&client
            .ok("imports.create", minimal_arguments("imports.create"))
            .await),
    );
    ids.insert(
        "webhookId",
        id(&client
            .ok("webhooks.create", minimal_arguments("webhooks.create"))
            .await),
    );
    ids.insert(
        "monitors.monitorId",
        id(&client
            .ok(
                "monitors.create",
                with_webset(minimal_arguments("monitors.create")),
            )
            .await),
    );
    let research = client
        .ok("research.create", minimal_arguments("research.create"))
        .await;
    ids.insert(
        "researchId",
        research["researchId"].as_str().unwrap().to_owned(),
    );
    let run = client
        .ok(
            "agent.runs.create",
            json!({ "query": "x", "effort": "ultra" }),
        )
        .await;
    ids.insert("agent.runs.runId", id(&run));
    ids.insert(
        "agent.monitors.monitorId",
        id(&client
            .ok(
                "agent.monitors.create",
                minimal_arguments("agent.monitors.create"),
            )
            .await),
    );
    let batch = client
        .ok("batches.create", minimal_arguments("batches.create"))
        .await;
    ids.insert("batchId", id(&batch));
    let team = Client {
        key: Some("service".into()),
        ..client.clone()
    };
    let key = team.ok("team.keys.create", json!({})).await;
    ids.insert("keyId", id(&key["apiKey"]));
    let backtest = client
        .ok(
            "agent.monitors.backtests.create",
            minimal_arguments("agent.monitors.backtests.create"),
        )
        .await;
    ids.insert("backtestId", id(&backtest));
    let monitor = id(&client
        .ok(
            "search_monitors.create",
            minimal_arguments("search_monitors.create"),
        )
        .await);
    client
        .ok("search_monitors.trigger", json!({ "monitorId": monitor }))
        .await;
    client.advance(10_000).await;
    let runs = client
        .ok("search_monitors.runs.list", json!({ "monitorId": monitor }))
        .await;
    ids.insert("search_monitors.runId", id(&runs["data"][0]));
    ids.insert("search_monitors.monitorId", monitor);
    let runs = client
        .ok(
            "monitors.runs.list",
            json!({ "monitorId": ids["monitors.monitorId"] }),
        )
        .await;
    ids.insert("monitors.runId", id(&runs["data"][0]));
    let items = client
        .ok("items.list", json!({ "websetId": ids["websetId"] }))
        .await;
    ids.insert("itemId", id(&items["data"][0]));
    let events = client.ok("events.list", json!({})).await;
    ids.insert("eventId", id(&events["data"][0]));
    ids
}

/// Returns the client with the kind of key that an operation takes.
fn client_for(client: &Client, operation: &str) -> Client {
    let mut client = client.clone();
    if operation.starts_with("team.") {
        client.key = Some("service".into());
    }
    client
}

/// Returns the id for a path variable of an operation.
fn fixture(ids: &HashMap<&str, String>, operation: &str, argument: &str) -> Option<String> {
    let domain = [
        "agent.runs",
        "agent.monitors",
        "search_monitors",
        "monitors",
    ]
    .into_iter()
    .find(|domain| operation.starts_with(domain));
    let specific = domain.and_then(|domain| ids.get(format!("{domain}.{argument}").as_str()));
    specific.or_else(|| ids.get(argument)).cloned()
}

#[tokio::test]
async fn every_response_matches_its_schema() {
    let server = Server::with_research().await;
    let client = server.client();
    let ids = fixtures(&client).await;
    // Deletions run last, because the other operations need the objects; items need their webset.
    let mut order: Vec<_> = specs().iter().collect();
    order.sort_by_key(|spec| (spec.method == "DELETE", spec.name == "websets.delete"));
    for spec in order {
        let mut args = minimal_arguments(&spec.name);
        for argument in spec.arguments.iter().filter(|argument| argument.required) {
            if args.get(argument.name).is_none() {
                // An operation without a handler, which the spec has just added, takes any value. The others reject
                // one that does not exist.
                let value = fixture(&ids, &spec.name, argument.name).map(Value::from);
                let property = &spec.input_schema["properties"][argument.name];
                args[argument.name] =
                    value.unwrap_or_else(|| minimal(&spec.input_schema, property));
            }
        }
        if spec.name == "batches.delete" {
            client.advance(60_000).await;
        }
        client_for(&client, &spec.name).ok(&spec.name, args).await;
    }
    assert!(specs().len() >= 82, "only {} operations", specs().len());
}

#[tokio::test]
async fn new_key_gets_empty_lists() {
    let server = Server::with_research().await;
    fixtures(&server.client()).await;
    let other = server.client_with("another key");
    for name in [
        "websets.list",
        "imports.list",
        "monitors.list",
        "webhooks.list",
        "events.list",
        "research.list",
        "agent.runs.list",
        "search_monitors.list",
    ] {
        let page = other.ok(name, json!({})).await;
        assert_eq!(page["data"], json!([]), "{name}");
        assert_eq!(page["hasMore"], false, "{name}");
    }
}

#[tokio::test]
async fn ids_of_another_key_are_not_found() {
    let server = Server::with_research().await;
    let ids = fixtures(&server.client()).await;
    let other = server.client_with("another key");
    for spec in specs() {
        let path: Vec<_> = spec
            .arguments
            .iter()
            .filter(|argument| argument.location == exa_mcp_model::ArgumentLocation::Path)
            .collect();
        if path.is_empty() {
            continue;
        }
        let mut args = minimal_arguments(&spec.name);
        let fixtures = path.iter().map(|argument| {
            let id = fixture(&ids, &spec.name, argument.name)?;
            Some((argument.name, id))
        });
        // Only an operation without a handler has none, as the first test shows.
        let Some(fixtures) = fixtures.collect::<Option<Vec<_>>>() else {
            continue;
        };
        for (name, id) in fixtures {
            args[name] = id.into();
        }
        if spec.name.starts_with("team.") {
            // All service keys belong to the same team.
            args["keyId"] = "unknown".into();
        }
        let response = client_for(&other, &spec.name).call(&spec.name, args).await;
        assert_eq!(response.status, 404, "{}: {}", spec.name, response.text());
        let has_envelope = response.json()["error"].is_object();
        assert_eq!(
            has_envelope,
            spec.path.starts_with("/agent/"),
            "{}",
            spec.name
        );
    }
}

//! Calls that wait for the end of what they start or look at.

use serde_json::{Value, json};

use super::{LONG, PROGRESS};
use crate::support::{McpServer, Recorder, Reply, Sandbox};

/// Longer than a test takes.
const PATIENT: u64 = 600;

/// An operation that starts work, its arguments, and how the work ends.
struct Start {
    operation: &'static str,
    args: Value,
    look: &'static str,
    /// The operation that ends it early.
    cancel: Option<&'static str>,
    end: &'static str,
}

/// Every operation that starts work. Work inside something needs that something.
fn starts(webset: &Value, monitor: &Value) -> Vec<Start> {
    let start = |operation, args, look, cancel, end| Start {
        operation,
        args,
        look,
        cancel,
        end,
    };
    let entities = json!([{"name": "Acme", "domain": "acme.example"}]);
    let fields = json!([{"name": "ceo", "description": "Who leads the company"}]);
    let search = json!({"query": "banks", "count": 2});
    let csv = "name,url\nA,https://a.example\nB,https://b.example\n";
    vec![
        start(
            "websets.create",
            json!({ "search": search }),
            "websets.get",
            Some("websets.cancel"),
            "idle",
        ),
        start(
            "searches.create",
            json!({"websetId": webset, "query": "banks", "count": 2}),
            "searches.get",
            Some("searches.cancel"),
            "completed",
        ),
        start(
            "enrichments.create",
            json!({"websetId": webset, "description": "Employees"}),
            "enrichments.get",
            Some("enrichments.cancel"),
            "completed",
        ),
        start(
            "imports.create",
            json!({"csvContent": csv, "entity": {"type": "company"}}),
            "imports.get",
            None,
            "completed",
        ),
        start(
            "research.create",
            json!({"instructions": "Compare heat pumps"}),
            "research.get",
            None,
            "completed",
        ),
        start(
            "agent.runs.create",
            json!({"query": "Find heat pump makers"}),
            "agent.runs.get",
            Some("agent.runs.cancel"),
            "completed",
        ),
        start(
            "agent.monitors.backtests.create",
            json!({"entities": entities, "fields": fields}),
            "agent.monitors.backtests.get",
            None,
            "completed",
        ),
        start(
            "search_monitors.trigger",
            json!({"monitorId": monitor}),
            "search_monitors.runs.get",
            None,
            "completed",
        ),
    ]
}

struct World {
    sandbox: Sandbox,
    server: McpServer,
    webset: Value,
    monitor: Value,
}

/// A sandbox whose time stands still, with a webset and a monitor in it.
fn world() -> World {
    let sandbox = Sandbox::start();
    let mut server = McpServer::upstream(&sandbox.url(), &[]);
    let mut make = |operation: &str, args: Value| {
        let call = json!({"operation": operation, "args": args});
        server.call(tool(operation), call).success()["id"].clone()
    };
    let webset = make(
        "websets.create",
        json!({"search": {"query": "x", "count": 2}}),
    );
    let monitor = make(
        "search_monitors.create",
        json!({"search": {"query": "x"}, "webhook": {"url": "https://hooks.example/x"}}),
    );
    sandbox.freeze(true);
    World {
        sandbox,
        server,
        webset,
        monitor,
    }
}

fn tool(operation: &str) -> &'static str {
    let operation = exa_mcp_server::operations::find(operation).expect("an operation");
    match operation.api.name {
        "websets" => "manage_websets",
        _ => "exa_api",
    }
}

/// Sends a call without waiting for its answer.
fn send(server: &mut McpServer, operation: &str, args: &Value, wait: u64) -> Value {
    let arguments = json!({"operation": operation, "args": args, "wait_seconds": wait,
        "output_format": "json"});
    let call = json!({"name": tool(operation), "arguments": arguments,
        "_meta": {"progressToken": operation}});
    server.send("tools/call", call)
}

fn structured(server: &mut McpServer, id: &Value) -> Value {
    let answer = server.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["structuredContent"].clone()
}

#[test]
fn every_start_operation_is_covered() {
    let tested = starts(&Value::Null, &Value::Null);
    let tested: Vec<&str> = tested.iter().map(|start| start.operation).collect();
    let all = exa_mcp_server::operations::all().iter();
    let long =
        all.filter(|operation| operation.behavior.long_running.is_some() && !operation.read_only);
    for operation in long {
        assert!(tested.contains(&operation.name), "{}", operation.name);
    }
}

#[test]
fn wait_option_waits_for_completion() {
    let World {
        sandbox,
        mut server,
        webset,
        monitor,
    } = world();
    let starts = starts(&webset, &monitor);
    let calls: Vec<Value> = starts
        .iter()
        .map(|start| send(&mut server, start.operation, &start.args, PATIENT))
        .collect();
    for start in &starts {
        sandbox.await_requests(start.look, 1);
    }
    sandbox.advance(LONG);
    let mut looks = Vec::new();
    for (start, call) in starts.iter().zip(&calls) {
        let answer = structured(&mut server, call);
        let name = start.operation;
        assert_eq!(answer["isComplete"], true, "{name}: {answer}");
        assert_eq!(
            answer["results"][0]["status"], start.end,
            "{name}: {answer}"
        );
        assert_eq!(answer.get("checkWith"), None, "{name}: {answer}");
        // Whoever looks at it with patience is answered at once now.
        let id = answer["results"][0]["id"].clone();
        let research = answer["results"][0]["researchId"].clone();
        let args = match start.look {
            "websets.get" => json!({"websetId": id}),
            "searches.get" => json!({"websetId": webset, "searchId": id}),
            "enrichments.get" => json!({"websetId": webset, "enrichmentId": id}),
            "imports.get" => json!({"importId": id}),
            "research.get" => json!({"researchId": research}),
            "agent.runs.get" => json!({"runId": id}),
            "agent.monitors.backtests.get" => json!({"backtestId": id}),
            _ => json!({"monitorId": monitor, "runId": id}),
        };
        looks.push((start, send(&mut server, start.look, &args, PATIENT)));
    }
    for (start, call) in looks {
        let answer = structured(&mut server, &call);
        assert_eq!(answer["isComplete"], true, "{}: {answer}", start.look);
        assert_eq!(answer["results"][0]["status"], start.end);
    }
    let step = server.notification(PROGRESS);
    assert!(step["message"].is_string(), "{step}");
    assert_eq!(step.get("_meta"), None, "{step}");
}

#[test]
fn wait_timeout_explains_how_to_continue() {
    let World {
        sandbox,
        mut server,
        webset,
        monitor,
    } = world();
    for wait in [0, 1] {
        let starts = starts(&webset, &monitor);
        let calls: Vec<Value> = starts
            .iter()
            .map(|start| send(&mut server, start.operation, &start.args, wait))
            .collect();
        for (start, call) in starts.iter().zip(&calls) {
            let name = start.operation;
            let answer = structured(&mut server, call);
            if name == "search_monitors.trigger" && wait == 0 {
                assert_eq!(
                    answer["checkWith"]["operation"],
                    "search_monitors.runs.list"
                );
                continue;
            }
            assert_eq!(answer["isComplete"], false, "{name}: {answer}");
            let check = &answer["checkWith"];
            assert_eq!(check["operation"], start.look, "{name}: {answer}");
            // What it says can be done as it stands, also with patience, which a look takes too.
            let id = send(&mut server, start.look, &check["args"], wait);
            let look = structured(&mut server, &id);
            assert_eq!(look["isComplete"], false, "{name}: {look}");
            assert_eq!(look["checkWith"], *check, "{name}: {look}");
            let cancel = answer.get("cancelWith");
            assert_eq!(look.get("cancelWith"), cancel, "{name}: {look}");
            let operation = cancel.and_then(|cancel| cancel["operation"].as_str());
            assert_eq!(operation, start.cancel, "{name}: {answer}");
            if let Some(cancel) = cancel {
                server.call(tool(name), cancel.clone()).success();
            }
        }
    }
    drop(sandbox);
}

#[test]
fn wait_ends_with_any_terminal_status() {
    let World {
        sandbox,
        mut server,
        webset,
        ..
    } = world();
    let search = json!({"websetId": webset, "query": "banks", "count": 2});
    let waits = send(&mut server, "searches.create", &search, PATIENT);
    let looks = sandbox.await_requests("searches.get", 1);
    let path = looks[0]["path"].as_str().expect("a path");
    let id = path.rsplit('/').next().expect("an id");
    let stop =
        json!({"operation": "searches.cancel", "args": {"websetId": webset, "searchId": id}});
    server.call("manage_websets", stop).success();
    let answer = structured(&mut server, &waits);
    assert_eq!(answer["results"][0]["status"], "canceled", "{answer}");
    assert_eq!(answer["isComplete"], true);

    let args = json!({"instructions": "sandbox-fail"});
    let fails = send(&mut server, "research.create", &args, PATIENT);
    sandbox.await_requests("research.get", 1);
    sandbox.advance(LONG);
    let answer = structured(&mut server, &fails);
    assert_eq!(answer["results"][0]["status"], "failed", "{answer}");
    assert_eq!(answer["isComplete"], true);
}

#[test]
fn paused_webset_is_not_awaited() {
    let recorder = Recorder::start(|request, _| {
        let status = match request.method.as_str() {
            "POST" => "running",
            _ => "paused",
        };
        let webset = json!({"id": "w", "object": "webset", "status": status, "searches": []});
        Reply::json(200, &webset)
    });
    let mut server = McpServer::recorded(&recorder, &[]);
    let args = json!({"search": {"query": "x"}});
    let id = send(&mut server, "websets.create", &args, PATIENT);
    let answer = structured(&mut server, &id);
    assert_eq!(answer["results"][0]["status"], "paused", "{answer}");
    assert_eq!(answer["isComplete"], true);
}

#[test]
fn scheduled_runs_can_be_awaited() {
    let World {
        sandbox,
        mut server,
        webset,
        ..
    } = world();
    let monitor = json!({"websetId": webset, "behavior": {"type": "search", "config": {"count": 2}},
        "cadence": {"cron": "0 9 * * 1", "timezone": "Europe/Berlin"}});
    let call = json!({"operation": "monitors.create", "args": monitor});
    let monitor = server.call("manage_websets", call).success()["id"].clone();
    sandbox.advance(8 * 24 * 3600 * 1000);
    let call = json!({"operation": "monitors.runs.list", "args": {"monitorId": monitor}});
    let runs = server.call("manage_websets", call).success();
    let args = json!({"monitorId": monitor, "runId": runs["data"][0]["id"]});
    let id = send(&mut server, "monitors.runs.get", &args, PATIENT);
    let answer = structured(&mut server, &id);
    assert_eq!(answer["results"][0]["status"], "completed", "{answer}");
    assert_eq!(answer["isComplete"], true);
    // Without patience it is an answer like any other.
    let call = json!({"operation": "monitors.runs.get", "args": args});
    let answer = server.call("manage_websets", call).envelope();
    assert_eq!(answer.get("isComplete"), None, "{answer}");
}

#[test]
fn suggested_next_call_uses_available_tools() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let mut server = McpServer::upstream(&sandbox.url(), &["--tools", "classic,granular"]);
    let cases = [
        ("deep_researcher_start", json!({"instructions": "x"})),
        ("agent_run", json!({"query": "x"})),
        ("websets_create", json!({"search": {"query": "x"}})),
    ];
    for (tool, arguments) in cases {
        let answer = server.call(tool, arguments).envelope();
        for next in ["checkWith", "cancelWith"] {
            let Some(next) = answer.get(next) else {
                assert_eq!(tool, "deep_researcher_start", "{answer}");
                continue;
            };
            let name = next["tool"].as_str().unwrap_or(tool);
            let outcome = server.call(name, next["arguments"].clone());
            assert!(!outcome.is_error, "{next}: {}", outcome.text);
        }
    }
}

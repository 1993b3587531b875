//! Long-running work: started, polled and cancelled.

use serde_json::{Value, json};

use super::{Host, names};

/// Asserts that the result of a `start_…` operation is complete.
#[track_caller]
fn assert_started(response: &Value, check: &str, cancel: Option<&str>) {
    assert!(response["operationId"].is_string(), "{response}");
    assert!(response["status"].is_string(), "{response}");
    let message = response["message"].as_str().expect("a message");
    assert!(message.contains(check), "{message}");
    assert_eq!(response["checkWith"]["operation"], check, "{response}");
    assert!(response["checkWith"]["params"].is_object(), "{response}");
    match cancel {
        Some(cancel) => {
            assert!(message.contains(cancel), "{message}");
            assert_eq!(response["cancelWith"]["operation"], cancel, "{response}");
            assert_eq!(
                response["cancelWith"]["params"],
                response["checkWith"]["params"]
            );
        }
        None => assert_eq!(response.get("cancelWith"), None, "{response}"),
    }
}

#[track_caller]
fn assert_state(response: &Value, started: &Value, status: &str, complete: bool) {
    assert_eq!(
        response["operationId"], started["operationId"],
        "{response}"
    );
    assert_eq!(response["status"], status, "{response}");
    assert_eq!(response["isComplete"], complete, "{response}");
    let progress = response["progress"].as_u64().expect("a number");
    assert!(
        progress <= 100 && (!complete || progress == 100),
        "{response}"
    );
}

#[test]
fn long_websets_work_is_started_followed_and_stopped() {
    let mut host = Host::start();
    let tool = "websets-async";
    let webset = host.call(
        "websets-sync",
        "create_webset",
        json!({"search": {"query": "x", "count": 2}}),
    );
    let id = &webset["id"];
    let starts = [
        (
            "start_search",
            json!({"websetId": id, "query": "banks in Berlin"}),
            "check_search",
            "cancel_search",
        ),
        (
            "start_enrichment",
            json!({"websetId": id, "description": "Email", "format": "email"}),
            "check_enrichment",
            "cancel_enrichment",
        ),
    ];
    for (start, params, check, cancel) in starts {
        let first = host.call(tool, start, params.clone());
        assert_started(&first, check, Some(cancel));
        let state = host.follow(tool, &first["checkWith"]);
        assert_eq!(state["isComplete"], false, "{state}");
        let stopped = host.follow(tool, &first["cancelWith"]);
        assert_eq!(stopped["operationId"], first["operationId"]);
        assert_eq!(stopped["status"], "cancelled", "{stopped}");
        assert!(stopped["message"].is_string(), "{stopped}");
        assert_state(
            &host.follow(tool, &first["checkWith"]),
            &first,
            "canceled",
            true,
        );

        let second = host.call(tool, start, params);
        host.sandbox.advance(30_000);
        let state = host.follow(tool, &second["checkWith"]);
        assert_state(&state, &second, "completed", true);
        if start == "start_search" {
            assert_eq!(state["itemsFound"], 10, "{state}");
        }
    }
}

#[test]
fn a_monitor_is_started_followed_and_stopped() {
    let mut host = Host::start();
    let tool = "websets-async";
    let webset = host.call(
        "websets-sync",
        "create_webset",
        json!({"search": {"query": "x", "count": 2}}),
    );
    let started = host.call(tool, "start_monitor", json!({"websetId": webset["id"],
        "cadence": {"cron": "0 9 * * 1", "timezone": "Europe/Berlin"}, "searchParams": {"query": "banks"}}));
    assert_started(&started, "check_monitor_runs", Some("stop_monitor"));
    let config = &started["result"]["behavior"];
    assert_eq!(config["type"], "search");
    assert_eq!(config["config"]["count"], 10);
    // The first run is on the first Monday.
    host.sandbox.advance(8 * 24 * 3600 * 1000);
    assert_state(
        &host.follow(tool, &started["checkWith"]),
        &started,
        "completed",
        true,
    );
    let stopped = host.follow(tool, &started["cancelWith"]);
    assert_eq!(stopped["operationId"], started["operationId"]);
    // It is disabled, so that its runs are kept, and the message says how to delete it.
    assert_eq!(stopped["status"], "disabled", "{stopped}");
    let message = stopped["message"].as_str().expect("a message");
    assert!(
        message.contains("disabled") && message.contains("delete_monitor"),
        "{message}"
    );
    host.follow(tool, &started["checkWith"]);
}

#[test]
fn every_long_websets_operation_is_covered() {
    let tested = ["search", "enrichment"]
        .into_iter()
        .flat_map(|kind| ["start", "check", "cancel"].map(|verb| format!("{verb}_{kind}")));
    let monitor = ["start_monitor", "check_monitor_runs", "stop_monitor"].map(str::to_owned);
    let tested: Vec<String> = tested.chain(monitor).collect();
    assert_eq!(names("websets-async")[1..], tested);
}

/// Exa has retired research: a research task is an agent run.
#[test]
fn research_runs_on_agent_runs() {
    let mut host = Host::start();
    let tool = "exa-async";
    let params = json!({"instructions": "Compare heat pumps", "model": "exa-research-fast"});
    let first = host.call(tool, "start_research", params.clone());
    assert_started(&first, "check_research", Some("cancel_research"));
    assert_eq!(first["result"]["request"]["effort"], "low", "{first}");
    let state = host.follow(tool, &first["checkWith"]);
    assert_eq!(state["isComplete"], false);
    let stopped = host.follow(tool, &first["cancelWith"]);
    assert_eq!(stopped["status"], "cancelled", "{stopped}");
    let second = host.call(tool, "start_research", params);
    host.sandbox.advance(600_000);
    let state = host.follow(tool, &second["checkWith"]);
    assert_state(&state, &second, "completed", true);
    let response = host.call(tool, "stream_answer", json!({"question": "Who?"}));
    assert!(response["answer"].is_string(), "{response}");
    host.assert_all_called(tool);
}

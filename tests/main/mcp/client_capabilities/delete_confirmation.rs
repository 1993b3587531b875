//! Deletions that need the user's confirmation.

use serde_json::{Value, json};

use super::{ClientResponse, ScriptedClient, VERSIONS, accept, no_requests};
use crate::support::{Program, Recorder, Response};

/// Starts a server that asks before it deletes, and its upstream.
fn confirming_client(version: &str, capabilities: Value) -> (ScriptedClient, Recorder) {
    let recorder = Recorder::always(Response::json(
        200,
        &json!({"id": "ws_1", "object": "webset"}),
    ));
    let program = Program::new([])
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_CONFIRM_DELETES", "true")
        .env("EXA_MCP_CLIENT_TIMEOUT", "1");
    (
        ScriptedClient::new(program, version, capabilities),
        recorder,
    )
}

fn form_capability() -> Value {
    json!({"elicitation": {}})
}

fn delete() -> Value {
    json!({"operation": "websets.delete", "args": {"websetId": "ws_1"}, "output_format": "json"})
}

#[test]
fn delete_needs_consent() {
    let decline = || ClientResponse::Result(json!({"action": "decline"}));
    let cancel = || ClientResponse::Result(json!({"action": "cancel"}));
    let unticked = || accept(json!({"confirm": false}));
    let untrue = || accept(json!({"confirm": "true"}));
    let nonsense = || ClientResponse::Result(json!({"yes": 1}));
    let silence = || ClientResponse::Silence;
    let responses: [&dyn Fn() -> ClientResponse; 6] =
        [&decline, &cancel, &unticked, &untrue, &nonsense, &silence];
    for version in VERSIONS {
        let (mut client, recorder) = confirming_client(version, form_capability());
        for response in responses {
            let failure = client
                .call("manage_websets", delete(), |_, _| response())
                .failure();
            failure.assert_code(-32004, "OPERATION_CANCELLED");
        }
        assert!(recorder.take().is_empty(), "{version}");
        assert!(
            client
                .methods()
                .iter()
                .all(|it| *it == "elicitation/create")
        );
    }
}

#[test]
fn consent_deletes_once() {
    for version in VERSIONS {
        let (mut client, recorder) = confirming_client(version, form_capability());
        let yes = || accept(json!({"confirm": true}));
        let deleted = client.call("manage_websets", delete(), |_, _| yes());
        assert_eq!(deleted.success()["id"], "ws_1");
        assert_eq!(recorder.only_request().method, "DELETE", "{version}");
        let (_, params) = &client.requests[0];
        assert!(params["message"].to_string().contains("ws_1"), "{params}");
        let field = &params["requestedSchema"]["properties"]["confirm"];
        assert_eq!(
            (&field["type"], &field["default"]),
            (&json!("boolean"), &json!(false))
        );
    }
}

#[test]
fn reads_and_clients_without_elicitation_proceed() {
    for version in VERSIONS {
        let (mut client, recorder) = confirming_client(version, form_capability());
        let get = json!({"operation": "websets.get", "args": {"websetId": "ws_1"}});
        assert!(!client.call("manage_websets", get, no_requests).is_error);
        recorder.take();
        let (mut client, recorder) = confirming_client(version, json!({"sampling": {}}));
        assert!(
            !client
                .call("manage_websets", delete(), no_requests)
                .is_error
        );
        assert_eq!(recorder.only_request().method, "DELETE");
    }
}

#[test]
fn confirmation_can_be_disabled() {
    let recorder = Recorder::always(Response::json(200, &json!({"id": "ws_1"})));
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    let mut client = ScriptedClient::new(program, VERSIONS[0], form_capability());
    assert!(
        !client
            .call("manage_websets", delete(), no_requests)
            .is_error
    );
    let slip = Program::new(["tools"])
        .env("EXA_MCP_CONFIRM_DELETES", "ture")
        .run();
    assert_eq!(slip.code, Some(2));
    assert!(
        slip.stderr.contains("EXA_MCP_CONFIRM_DELETES"),
        "{}",
        slip.stderr
    );
}

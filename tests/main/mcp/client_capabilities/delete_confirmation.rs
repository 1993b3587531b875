//! Deletions that the user agrees to first.

use serde_json::{Value, json};

use super::{Answer, BOTH, Scripted, accepted, never};
use crate::support::{Program, Recorder, Reply};

/// A server that asks before it deletes, and its upstream.
fn careful(version: &str, capabilities: Value) -> (Scripted, Recorder) {
    let recorder = Recorder::always(Reply::json(200, &json!({"id": "ws_1", "object": "webset"})));
    let program = Program::new([])
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_CONFIRM_DELETES", "true")
        .env("EXA_MCP_CLIENT_TIMEOUT", "1");
    (Scripted::new(program, version, capabilities), recorder)
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

fn delete() -> Value {
    json!({"operation": "websets.delete", "args": {"websetId": "ws_1"}, "output_format": "json"})
}

#[test]
fn delete_needs_consent() {
    let decline = || Answer::Result(json!({"action": "decline"}));
    let cancel = || Answer::Result(json!({"action": "cancel"}));
    let unticked = || accepted(json!({"confirm": false}));
    let untrue = || accepted(json!({"confirm": "true"}));
    let nonsense = || Answer::Result(json!({"yes": 1}));
    let silence = || Answer::Silence;
    let answers: [&dyn Fn() -> Answer; 6] =
        [&decline, &cancel, &unticked, &untrue, &nonsense, &silence];
    for version in BOTH {
        let (mut client, recorder) = careful(version, forms());
        for answer in answers {
            let failure = client
                .call("manage_websets", delete(), |_, _| answer())
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
    for version in BOTH {
        let (mut client, recorder) = careful(version, forms());
        let yes = || accepted(json!({"confirm": true}));
        let deleted = client.call("manage_websets", delete(), |_, _| yes());
        assert_eq!(deleted.success()["id"], "ws_1");
        assert_eq!(recorder.only().method, "DELETE", "{version}");
        let (_, params) = &client.asked[0];
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
    for version in BOTH {
        let (mut client, recorder) = careful(version, forms());
        let get = json!({"operation": "websets.get", "args": {"websetId": "ws_1"}});
        assert!(!client.call("manage_websets", get, never).is_error);
        recorder.take();
        let (mut client, recorder) = careful(version, json!({"sampling": {}}));
        assert!(!client.call("manage_websets", delete(), never).is_error);
        assert_eq!(recorder.only().method, "DELETE");
    }
}

#[test]
fn confirmation_can_be_disabled() {
    let recorder = Recorder::always(Reply::json(200, &json!({"id": "ws_1"})));
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    let mut client = Scripted::new(program, BOTH[0], forms());
    assert!(!client.call("manage_websets", delete(), never).is_error);
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

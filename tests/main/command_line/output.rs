//! Standard output.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Program, Recorder, Response};

#[test]
fn empty_response_prints_null() {
    let server = Recorder::always(Response::new(204));
    let output = Program::call(&server, "imports.delete", &json!({"importId": "i"})).run();
    assert_eq!(output.stdout, "null\n");
    assert_eq!(output.json(), Value::Null);
    let server = Recorder::always(Response::new(200));
    let arguments = json!({"websetId": "w", "enrichmentId": "e", "description": "d"});
    let output = Program::call(&server, "enrichments.update", &arguments).run();
    assert_eq!(output.json(), Value::Null);
}

#[test]
fn any_json_value_is_printed() {
    for answer in [
        json!([]),
        json!("text"),
        json!(0.1),
        json!(false),
        json!({"ünï": ["\u{1f642}", "\u{0}"]}),
    ] {
        let server = Recorder::always(Response::json(203, &answer));
        let output = Program::call(&server, "websets.list", &json!({})).run();
        assert_eq!(output.json(), answer);
    }
}

/// An API written in JavaScript may cut a text inside a surrogate pair and send the lone surrogate as an
/// escape. The rest of the response must survive.
#[test]
fn lone_surrogate_does_not_lose_the_response() {
    let body = r#"{"requestId":"r","results":[{"text":"cut \ud83d","title":"T"}]}"#;
    let response = Response::new(200).header("content-type", "application/json");
    let server = Recorder::always(response.body(body));
    let output = Program::call(&server, "search", &json!({"query": "q"})).run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    for part in ["\"requestId\": \"r\"", "cut ", "\"title\": \"T\""] {
        assert!(
            output.stdout.contains(part),
            "no {part} in {}",
            output.stdout
        );
    }
}

/// Fields keep the order of the API, because people read this output.
#[test]
fn field_order_is_preserved() {
    let response = Response::new(200).body(r#"{"zebra":1,"apple":{"y":1,"x":2},"mango":3}"#);
    let output = Program::call(&Recorder::always(response), "websets.list", &json!({})).run();
    let places: Vec<_> = ["zebra", "apple", "\"y\"", "\"x\"", "mango"]
        .map(|name| output.stdout.find(name))
        .into();
    assert!(
        places.is_sorted() && places[0].is_some(),
        "{}",
        output.stdout
    );
}

#[test]
fn closed_stdout_does_not_panic() {
    let mut command = Program::new(["operations", "--json"]).into_command();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The registry is larger than a pipe buffer, so writing all of it must fail.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_a_failure() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut command = Program::new(["operations"]).into_command();
    let output = command.stdout(full).output().expect("the program ends");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot write"), "{stderr}");
}

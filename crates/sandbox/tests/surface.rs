//! Specs that change: operations come and go, the sandbox stays.

use exa_mcp_model::Argument;
use exa_mcp_sandbox::{Error, OperationSpec, Options, Sandbox};
use serde_json::json;

use crate::support::{Server, specs};

fn future() -> OperationSpec {
    OperationSpec {
        name: "future.get".into(),
        method: "GET".into(),
        path: "/future/{id}".into(),
        arguments: vec![Argument::path("futureId", "id", &[])],
        input_schema: json!({ "type": "object", "properties": { "futureId": { "type": "string" } }, "required": ["futureId"] }),
        output_schema: json!({
            "$defs": { "Thing": { "type": "object", "required": ["id", "at"], "properties": {
                "id": { "type": "string" }, "at": { "type": "string", "format": "date-time" },
                "parts": { "type": "array", "items": { "$ref": "#/$defs/Thing" } },
            } } },
            "$ref": "#/$defs/Thing",
        }),
    }
}

#[tokio::test]
async fn an_operation_without_behaviour_is_sampled() {
    let mut all = specs().to_vec();
    all.push(future());
    let server = Server::of(all, Options::default()).await;
    let answer = server.client().send("GET", "/future/1", None).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert!(
        jsonschema::validator_for(&future().output_schema)
            .unwrap()
            .is_valid(&body),
        "{body}"
    );
    assert_eq!(body["sandbox"], exa_mcp_sandbox::MARKER);
    assert_eq!(
        server
            .client()
            .without_key()
            .send("GET", "/future/1", None)
            .await
            .status,
        401
    );
    assert_eq!(
        server
            .client()
            .send("GET", "/future/1?x=1", None)
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn behaviour_without_an_operation_is_not_mounted() {
    let few: Vec<OperationSpec> = specs()
        .iter()
        .filter(|spec| !spec.name.starts_with("research"))
        .cloned()
        .collect();
    let server = Server::of(few, Options::default()).await;
    assert_eq!(
        server
            .client()
            .send("GET", "/research/v1", None)
            .await
            .status,
        404
    );
    server.client().ok("search", json!({ "query": "x" })).await;
    let none = Server::of(Vec::new(), Options::default()).await;
    assert_eq!(
        none.client()
            .send("POST", "/search", Some(json!({ "query": "x" })))
            .await
            .status,
        404
    );
}

/// The default answer must do for every operation, should its name change.
#[tokio::test]
async fn every_output_schema_can_be_sampled() {
    let nameless: Vec<OperationSpec> = specs()
        .iter()
        .map(|spec| OperationSpec {
            name: format!("renamed.{}", spec.name),
            arguments: Vec::new(),
            input_schema: json!({}),
            ..spec.clone()
        })
        .collect();
    let server = Server::of(nameless, Options::default()).await;
    for spec in specs() {
        let path = spec.path.replace(['{', '}'], "");
        let answer = server.client().send(&spec.method, &path, None).await;
        assert_eq!(answer.status, 200, "{}", spec.name);
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&spec.output_schema)
            .unwrap();
        let problems: Vec<String> = validator
            .iter_errors(&answer.json())
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", spec.name);
    }
}

#[test]
fn what_cannot_work_is_refused_at_the_start() {
    for time_scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let options = Options {
            time_scale,
            ..Options::default()
        };
        assert_eq!(
            Sandbox::new(Vec::new(), options).err(),
            Some(Error::TimeScale)
        );
    }
    let twice = vec![
        future(),
        OperationSpec {
            name: "future.other".into(),
            ..future()
        },
    ];
    assert!(matches!(
        Sandbox::new(twice, Options::default()),
        Err(Error::Duplicate { .. })
    ));
    let broken = OperationSpec {
        input_schema: json!({ "type": "nonsense" }),
        ..future()
    };
    let error = Sandbox::new(vec![broken], Options::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("future.get"), "{error}");
}

#[tokio::test]
async fn a_router_works_without_a_server() {
    let sandbox = Sandbox::new(specs().to_vec(), Options::default()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = sandbox.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = crate::support::Client {
        addr,
        key: Some("k".into()),
        headers: Vec::new(),
    };
    client.ok("search", json!({ "query": "x" })).await;
    let cut = client
        .header("x-sandbox-fault", "cut")
        .try_send("POST", "/search", Some(b"{}"))
        .await;
    assert!(cut.is_err() || cut.is_ok_and(|answer| !answer.whole));
}

/// Arguments for an operation, filled in as far as its input schema goes: a server whose answers are
/// samples of the input schemas gives them.
async fn full_arguments(spec: &OperationSpec) -> serde_json::Value {
    let sampled = OperationSpec {
        name: "sample".into(),
        method: "GET".into(),
        path: "/sample".into(),
        arguments: Vec::new(),
        input_schema: json!({}),
        output_schema: spec.input_schema.clone(),
    };
    let server = Server::of(vec![sampled], Options::default()).await;
    let mut args = server.client().send("GET", "/sample", None).await.json();
    args.as_object_mut().unwrap().remove("sandbox");
    args
}

#[tokio::test]
async fn full_arguments_are_understood() {
    let server = Server::start().await;
    let client = server.client();
    let mut taken = 0;
    for spec in specs() {
        let mut args = full_arguments(spec).await;
        for (name, value) in [
            ("cadence", json!("12h")),
            (
                "betas",
                json!(["agent-monitors-2026-08-04", "dynamic-highlights-2026-08-28"]),
            ),
        ] {
            if args[name].is_string() || args[name].is_array() {
                args[name] = value;
            }
        }
        // Made-up sentences are neither cursors nor domains, nor short enough to be looked for.
        for name in [
            "cursor",
            "includeDomains",
            "excludeDomains",
            "includeText",
            "excludeText",
        ] {
            args.as_object_mut().unwrap().remove(name);
        }
        let answer = client.call(&spec.name, args.clone()).await;
        assert!(
            [200, 201, 400, 404].contains(&answer.status),
            "{} {args}: {} {}",
            spec.name,
            answer.status,
            answer.text()
        );
        // What a schema cannot say may be wrong, but not what it does say.
        assert!(
            !answer.text().contains("\"issues\""),
            "{} {args}: {}",
            spec.name,
            answer.text()
        );
        taken += usize::from(answer.status < 300);
    }
    client.advance(100_000).await;
    client.send("GET", "/sandbox/state", None).await;
    assert!(taken >= 15, "only {taken} were taken");
}

//! Changes of the specs: operations are added and removed.

use exa_mcp_model::Argument;
use exa_mcp_sandbox::{Error, OperationSpec, Options, Sandbox};
use serde_json::json;

use crate::support::{Server, open, specs};

fn future_operation() -> OperationSpec {
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
async fn operation_without_handler_returns_a_sample() {
    let mut all = specs().to_vec();
    all.push(future_operation());
    let server = Server::of(all, Options::default()).await;
    let response = server.client().send("GET", "/future/1", None).await;
    assert_eq!(response.status, 200);
    let body = response.json();
    assert!(
        jsonschema::validator_for(&future_operation().output_schema)
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
async fn handler_without_operation_is_not_reachable() {
    let remaining: Vec<OperationSpec> = specs()
        .iter()
        .filter(|spec| !spec.name.starts_with("research"))
        .cloned()
        .collect();
    let server = Server::of(remaining, Options::default()).await;
    assert_eq!(
        server
            .client()
            .send("GET", "/research/v1", None)
            .await
            .status,
        404
    );
    server.client().ok("search", json!({ "query": "x" })).await;
    let empty = Server::of(Vec::new(), Options::default()).await;
    assert_eq!(
        empty
            .client()
            .send("POST", "/search", Some(json!({ "query": "x" })))
            .await
            .status,
        404
    );
}

/// A sample must be a valid response of every operation, because operations may be renamed.
#[tokio::test]
async fn every_output_schema_can_be_sampled() {
    let renamed: Vec<OperationSpec> = specs()
        .iter()
        .map(|spec| OperationSpec {
            name: format!("renamed.{}", spec.name),
            arguments: Vec::new(),
            input_schema: json!({}),
            ..spec.clone()
        })
        .collect();
    let server = Server::of(renamed, Options::default()).await;
    for spec in specs() {
        let path = spec.path.replace(['{', '}'], "");
        let is_team = path.starts_with("/team-management/");
        let client = if is_team {
            server.team_client()
        } else {
            server.client()
        };
        let response = client.send(&spec.method, &path, None).await;
        assert_eq!(response.status, 200, "{}", spec.name);
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&open(&spec.output_schema))
            .unwrap();
        let problems: Vec<String> = validator
            .iter_errors(&response.json())
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{}: {problems:#?}", spec.name);
    }
}

#[test]
fn rejects_invalid_options_and_specs() {
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
    let duplicates = vec![
        future_operation(),
        OperationSpec {
            name: "future.other".into(),
            ..future_operation()
        },
    ];
    assert!(matches!(
        Sandbox::new(duplicates, Options::default()),
        Err(Error::Duplicate { .. })
    ));
    let invalid = OperationSpec {
        input_schema: json!({ "type": "nonsense" }),
        ..future_operation()
    };
    let error = Sandbox::new(vec![invalid], Options::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains("future.get"), "{error}");
}

#[tokio::test]
async fn router_works_in_another_server() {
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
    assert!(cut.is_err() || cut.is_ok_and(|response| !response.is_complete));
}

/// Returns all arguments of an operation, sampled from its input schema: another sandbox returns them
/// as the response of an operation without a handler.
async fn sample_arguments(spec: &OperationSpec) -> serde_json::Value {
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
async fn accepts_sampled_arguments() {
    let server = Server::start().await;
    let client = server.client();
    let mut accepted = 0;
    for spec in specs() {
        let mut args = sample_arguments(spec).await;
        for (name, value) in [
            ("cadence", json!("12h")),
            (
                "betas",
                json!([
                    "agent-monitors-2026-08-04",
                    "batches-2026-06-06",
                    "dynamic-highlights-2026-08-28"
                ]),
            ),
        ] {
            if args[name].is_string() || args[name].is_array() {
                args[name] = value;
            }
        }
        // Sampled sentences are not valid cursors or domains, and too long for text filters. Pages are
        // named by URL or by id.
        for name in [
            "cursor",
            "ids",
            "includeDomains",
            "excludeDomains",
            "includeText",
            "excludeText",
        ] {
            args.as_object_mut().unwrap().remove(name);
        }
        let mut client = client.clone();
        if spec.name.starts_with("team.") {
            client.key = Some("service".into());
        }
        let response = client.call(&spec.name, args.clone()).await;
        assert!(
            [200, 201, 400, 404, 410].contains(&response.status),
            "{} {args}: {} {}",
            spec.name,
            response.status,
            response.text()
        );
        // The arguments may be invalid in other respects, but they match the schema.
        assert!(
            !response.text().contains("Invalid request: "),
            "{} {args}: {}",
            spec.name,
            response.text()
        );
        accepted += usize::from(response.status < 300);
    }
    client.advance(100_000).await;
    client.send("GET", "/sandbox/state", None).await;
    assert!(accepted >= 15, "only {accepted} calls succeeded");
}

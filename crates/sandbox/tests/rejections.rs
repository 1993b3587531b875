//! Requests that the sandbox rejects.

use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn requests_need_a_key() {
    let server = Server::start().await;
    let client = server.client().without_key();
    for path in ["/answer", "/agent/runs", "/websets/v0/websets"] {
        let body = Some(json!({ "query": "x" }));
        let response = client.send("POST", path, body).await;
        assert_eq!(response.status, 401, "{path}");
        assert_eq!(
            response.json()["tag"],
            "INVALID_API_KEY",
            "standard for every API"
        );
        assert!(response.json()["error"].is_string());
    }
    for (path, body) in [
        ("/search", json!({ "query": "x" })),
        ("/contents", json!({ "urls": ["https://a.example"] })),
    ] {
        let challenge = client.send("POST", path, Some(body)).await;
        assert_eq!(
            (challenge.status, challenge.tag()),
            (402, "X402_PAYMENT_REQUIRED".into())
        );
        let challenge = challenge.json();
        assert_eq!(challenge["x402Version"], 2);
        assert!(
            challenge["resource"]["url"]
                .as_str()
                .unwrap()
                .ends_with(path)
        );
        assert!(challenge["accepts"][0]["amount"].is_string());
    }
    assert_eq!(
        client
            .clone()
            .header("x-api-key", " ")
            .send("POST", "/answer", Some(json!({ "query": "x" })))
            .await
            .status,
        401
    );
    let bearer = client.header("authorization", "Bearer k");
    assert_eq!(
        bearer
            .send("POST", "/search", Some(json!({ "query": "x" })))
            .await
            .status,
        200
    );
    let open = Server::with(exa_mcp_sandbox::Options {
        require_key: false,
        ..Default::default()
    })
    .await;
    open.client()
        .without_key()
        .ok("search", json!({ "query": "x" }))
        .await;
}

#[tokio::test]
async fn both_key_headers_select_the_same_account() {
    let server = Server::start().await;
    let webset = server
        .client_with("k")
        .ok("websets.create", json!({}))
        .await;
    let bearer = server
        .client()
        .without_key()
        .header("authorization", "Bearer k");
    assert_eq!(
        bearer
            .ok("websets.get", json!({ "websetId": webset["id"] }))
            .await["id"],
        webset["id"]
    );
}

#[tokio::test]
async fn rejects_unknown_paths_and_methods() {
    let server = Server::start().await;
    let client = server.client();
    let nowhere = client.send("GET", "/nowhere", None).await;
    assert_eq!((nowhere.status, nowhere.tag()), (404, "NOT_FOUND".into()));
    let not_allowed = client.send("PUT", "/agent/runs", None).await;
    assert_eq!(not_allowed.status, 405);
    assert!(
        not_allowed.json()["error"].is_string(),
        "flat even below /agent"
    );
    assert_eq!(not_allowed.headers["allow"], "GET, POST");
    assert_eq!(client.send("DELETE", "/search", None).await.status, 405);
}

#[tokio::test]
async fn issues_use_wire_names() {
    let server = Server::start().await;
    let client = server.client();
    let body = json!({ "numResults": 1000, "type": "psychic", "contents": { "text": { "maxCharacters": "many" } }, "nonsense": 1 });
    let response = client.send("POST", "/search?cursor=x", Some(body)).await;
    assert_eq!(
        (response.status, response.tag()),
        (400, "INVALID_REQUEST_BODY".into())
    );
    let message = response.json()["error"].as_str().unwrap().to_owned();
    for issue in [
        "body query: ",
        "body numResults: ",
        "body type: ",
        "body nonsense: ",
    ] {
        assert!(message.contains(issue), "{issue} {message}");
    }
    assert!(message.contains("query cursor: "), "{message}");
    assert!(message.contains("body contents"), "{message}");
    assert!(response.json()["requestId"].is_string());
}

#[tokio::test]
async fn agent_apis_use_the_error_envelope() {
    let server = Server::start().await;
    let client = server.client();
    let response = client
        .send("POST", "/agent/runs", Some(json!({ "effort": "huge" })))
        .await;
    let body = response.json();
    assert_eq!(response.status, 400);
    assert_eq!(body["error"]["type"], "INVALID_REQUEST");
    assert_eq!(
        body["error"]["detail"]["issues"].as_array().unwrap().len(),
        2,
        "{body}"
    );
    assert!(body["requestId"].is_string());
    let unknown = client
        .call("agent.runs.get", json!({ "runId": "agent_run_x" }))
        .await;
    assert_eq!(
        (
            unknown.status,
            unknown.json()["error"]["type"].clone(),
            unknown.tag()
        ),
        (404, "NOT_FOUND".into(), "RUN_NOT_FOUND".into())
    );
}

#[tokio::test]
async fn query_parameters_are_validated() {
    let server = Server::start().await;
    let client = server.client();
    for (target, is_valid) in [
        ("/websets/v0/websets?limit=5", true),
        ("/websets/v0/websets?limit=0", false),
        ("/websets/v0/websets?limit=101", false),
        ("/websets/v0/websets?limit=many", false),
        ("/websets/v0/websets?limit=5&limit=6", false),
        ("/websets/v0/websets?cursor=made-up", false),
        ("/websets/v0/websets?page=2", false),
        (
            "/websets/v0/events?types=webset.created&types=webset.idle",
            true,
        ),
        ("/websets/v0/events?types=webset.nonsense", false),
        ("/websets/v0/events?createdAfter=2026-01-01", true),
        ("/websets/v0/events?createdAfter=yesterday", false),
        ("/monitors?status=active", true),
        (
            "/monitors?metadata%5Bteam%5D=a&metadata%5Bkind%5D=b&name=x",
            true,
        ),
        ("/monitors?metadata[team]=a&metadata[team]=b", false),
        ("/monitors?metadata=a", false),
        ("/monitors?metadata[]=a", false),
        ("/monitors?labels[team]=a", false),
        ("/monitors?status[team]=active", false),
        ("/monitors?status=asleep", false),
    ] {
        let response = client.send("GET", target, None).await;
        assert_eq!(
            response.status,
            if is_valid { 200 } else { 400 },
            "{target}: {}",
            response.text()
        );
        if !is_valid {
            assert_eq!(response.tag(), "INVALID_REQUEST_QUERY", "{target}");
        }
    }
}

#[tokio::test]
async fn bodies_must_be_json_objects() {
    let server = Server::start().await;
    let client = server.client();
    for (body, kind, status) in [
        (&b"{\"query\": \"x\"}"[..], "text/plain", 415),
        (
            b"{\"query\": \"x\"}",
            "application/json; charset=utf-8",
            200,
        ),
        (b"{\"query\": ", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"{\"query\": \"\"}", "application/json", 400),
    ] {
        let response = client
            .clone()
            .header("content-type", kind)
            .try_send("POST", "/search", Some(body))
            .await
            .unwrap();
        assert_eq!(response.status, status, "{}", response.text());
    }
    assert_eq!(client.send("POST", "/search", None).await.status, 400);
    // Operations without a body accept an empty object.
    let webset = client.ok("websets.create", json!({})).await;
    let cancel = format!(
        "/websets/v0/websets/{}/cancel",
        webset["id"].as_str().unwrap()
    );
    assert_eq!(
        client.send("POST", &cancel, Some(json!({}))).await.status,
        200
    );
    assert_eq!(
        client
            .send("POST", &cancel, Some(json!({ "force": true })))
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn lenient_requests_may_have_unknown_fields() {
    let server = Server::start().await;
    let body = json!({ "query": "x", "futureField": 1 });
    assert_eq!(
        server
            .client()
            .send("POST", "/search?trace=1", Some(body.clone()))
            .await
            .status,
        400
    );
    let lenient = server.client().header("x-sandbox-lenient", "true");
    assert_eq!(
        lenient
            .send("POST", "/search?trace=1", Some(body))
            .await
            .status,
        200
    );
    // Known fields are still validated.
    assert_eq!(
        lenient
            .send("POST", "/search", Some(json!({ "query": 5 })))
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn rejects_huge_bodies() {
    let server = Server::start().await;
    let client = server.client().header("content-length", "70000000");
    // The body is announced but never sent; the sandbox must not wait for it.
    let response = client.try_send("POST", "/search", None).await.unwrap();
    assert_eq!(
        (response.status, response.tag()),
        (413, "PAYLOAD_TOO_LARGE".into())
    );
}

#[tokio::test]
async fn rejects_registry_names_of_arguments() {
    let server = Server::start().await;
    let client = server.client();
    // `withItems` is the registry's name for the query parameter `search`.
    let body = json!({ "search": { "query": "startups" } });
    assert_eq!(
        client
            .send(
                "POST",
                "/websets/v0/websets/preview?withItems=true",
                Some(body.clone())
            )
            .await
            .status,
        400
    );
    let response = client
        .send(
            "POST",
            "/websets/v0/websets/preview?search=maybe",
            Some(body),
        )
        .await;
    let message = response.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("query search: "), "{message}");
    assert_eq!(
        client
            .send(
                "POST",
                "/search",
                Some(json!({ "query": "x", "betas": ["y"] }))
            )
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn rejects_unknown_fields_at_any_depth() {
    let server = Server::start().await;
    let client = server.client();
    for (path, body, field) in [
        ("/search", json!({"query": "x", "foo": 1}), "foo"),
        (
            "/search",
            json!({"query": "x", "contents": {"foo": 1}}),
            "foo",
        ),
        (
            "/websets/v0/websets",
            json!({"search": {"query": "x", "coutn": 3}}),
            "coutn",
        ),
        (
            "/websets/v0/websets",
            json!({"enrichments": [{"description": "d", "kind": "x"}]}),
            "kind",
        ),
    ] {
        let rejected = client.clone().send("POST", path, Some(body.clone())).await;
        assert_eq!(rejected.status, 400, "{body}");
        assert!(rejected.json().to_string().contains(field), "{body}");
        let lenient = client.clone().header("x-sandbox-lenient", "true");
        let accepted = lenient.send("POST", path, Some(body.clone())).await;
        assert!(accepted.status < 300, "{body}");
    }
}

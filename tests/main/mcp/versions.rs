//! All protocol versions.

use serde_json::{Value, json};

use crate::support::{
    DEFAULT_VERSION, McpServer, Outcome, Program, STATELESS_VERSION, stateless_params,
};

/// The versions that start with `initialize`.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", DEFAULT_VERSION];

fn connect(version: &str) -> McpServer {
    McpServer::connect(Program::new(["--sandbox"]), version)
}

fn search() -> Value {
    json!({"name": "web_search_exa", "arguments": {"query": "heat pumps", "numResults": 1}})
}

#[test]
fn every_version_is_negotiated_and_served() {
    for version in HANDSHAKE_VERSIONS {
        let mut server = McpServer::start(Program::new(["--sandbox"]));
        let result = server.handshake(version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "exa-mcp-server");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert!(result["capabilities"]["tools"].is_object(), "{result}");
        assert!(result["instructions"].is_string(), "{result}");
        assert_eq!(
            server.request("ping", json!({}))["result"],
            json!({}),
            "{version}"
        );
        assert_eq!(server.tools().len(), 4, "{version}");
        assert_eq!(server.shut_down().stderr, "");
    }
}

#[test]
fn unknown_version_is_offered_the_latest_handshake_version() {
    for version in ["1999-01-01", STATELESS_VERSION, "2099-12-31", "draft"] {
        let mut server = McpServer::start(Program::new([]));
        assert_eq!(
            server.handshake(version)["protocolVersion"],
            DEFAULT_VERSION,
            "{version}"
        );
        assert_eq!(server.tools().len(), 4);
    }
}

#[test]
fn tools_have_the_fields_of_the_version() {
    for version in HANDSHAKE_VERSIONS {
        for tool in connect(version).tools() {
            let mut fields: Vec<&String> = tool.as_object().expect("a tool").keys().collect();
            fields.sort();
            // One version lists which tools support tasks.
            let takes_tasks = ["exa_api", "manage_websets"]
                .map(Value::from)
                .contains(&tool["name"]);
            assert_eq!(
                tool.get("execution").is_some(),
                takes_tasks && version == "2025-11-25",
                "{version}: {tool}"
            );
            fields.retain(|field| *field != "execution");
            let expected: &[&str] = match version {
                "2024-11-05" => &["description", "inputSchema", "name"],
                "2025-03-26" => &["annotations", "description", "inputSchema", "name"],
                _ => &["annotations", "description", "inputSchema", "name", "title"],
            };
            assert_eq!(fields, expected, "{version}");
        }
    }
}

#[test]
fn structured_content_needs_a_supporting_version() {
    for version in HANDSHAKE_VERSIONS {
        let mut server = connect(version);
        let good = Outcome::from_response(&server.request("tools/call", search()));
        assert!(!good.is_error);
        assert!(good.text.starts_with("search: 1 result"), "{}", good.text);
        let bad = server.call("web_search_exa", json!({}));
        assert!(bad.is_error);
        // The text alone contains everything.
        assert!(bad.text.contains("`query` is required"), "{}", bad.text);
        let known = version >= "2025-06-18";
        assert_eq!(good.structured.is_some(), known, "{version}");
        assert_eq!(bad.structured.is_some(), known, "{version}");
    }
}

#[test]
fn equal_ids_in_a_batch_all_get_responses() {
    let mut server = connect("2025-03-26");
    let batch = json!([
        {"jsonrpc": "2.0", "id": 5, "method": "ping"},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": search()},
        {"jsonrpc": "2.0", "id": 5, "method": "no/such"},
    ]);
    server.write(batch.to_string().as_bytes());
    let responses = server.next();
    let responses = responses.as_array().expect("a batch of answers");
    let count = |name: &str| responses.iter().filter(|it| it.get(name).is_some()).count();
    assert_eq!(
        (responses.len(), count("result"), count("error")),
        (3, 2, 1)
    );
    assert!(responses.iter().all(|response| response["id"] == 5));
}

#[test]
fn batch_gets_one_batch_response() {
    let mut server = connect("2025-03-26");
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": search()},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "ping"},
        {"jsonrpc": "2.0", "id": "c", "method": "no/such"},
        {"jsonrpc": "2.0", "id": "d", "method": "tools/call", "params": {"name": "nope"}},
        5,
    ]);
    server.write(batch.to_string().as_bytes());
    let responses = server.next();
    let responses = responses.as_array().expect("a batch of answers");
    let of = |id: Value| {
        responses
            .iter()
            .find(|response| response["id"] == id)
            .expect("a response")
    };
    assert_eq!(responses.len(), 5, "{responses:?}");
    assert_eq!(of(json!("a"))["result"]["isError"], false);
    assert_eq!(of(json!("b"))["result"], json!({}));
    assert_eq!(of(json!("c"))["error"]["code"], -32601);
    assert_eq!(of(json!("d"))["error"]["code"], -32602);
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    // A batch of notifications gets no response.
    server.write(br#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    server.assert_silent();
}

#[test]
fn other_versions_reject_batches() {
    for version in ["2024-11-05", "2025-06-18", DEFAULT_VERSION] {
        let mut server = connect(version);
        server.write(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        let response = server.next();
        assert_eq!(
            (&response["id"], &response["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{version}"
        );
        assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn stateless_version_is_discovered_and_served() {
    let mut server = connect(STATELESS_VERSION);
    let discovered = server.request("server/discover", json!({}))["result"].clone();
    let versions: Vec<&str> = HANDSHAKE_VERSIONS
        .iter()
        .copied()
        .chain([STATELESS_VERSION])
        .collect();
    assert_eq!(discovered["supportedVersions"], json!(versions));
    assert!(
        discovered["capabilities"]["tools"].is_object(),
        "{discovered}"
    );
    assert!(discovered["instructions"].is_string(), "{discovered}");
    let list = server.request("tools/list", json!({}))["result"].clone();
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(4));
    for result in [&discovered, &list] {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(
            result["ttlMs"].is_u64() && result["cacheScope"].is_string(),
            "{result}"
        );
    }
    let called = server.request("tools/call", search());
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    let found = Outcome::from_response(&called).structured.expect("data");
    assert_eq!(found["results"].as_array().map(Vec::len), Some(1));
    server
        .call("web_search_exa", json!({}))
        .failure()
        .assert_code(-32602, "INVALID_PARAMS");
    assert_eq!(server.shut_down().stderr, "");
}

#[test]
fn stateless_version_has_no_ping_or_set_level() {
    let mut server = connect(STATELESS_VERSION);
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        for params in [
            json!({"level": "debug", "uri": "exa://websets/a"}),
            json!({}),
        ] {
            let response = server.request(method, params);
            assert_eq!(response["error"]["code"], -32601, "{method}");
        }
    }
}

#[test]
fn stateless_request_needs_client_metadata() {
    let mut server = McpServer::start(Program::new([]));
    for method in ["server/discover", "tools/list", "tools/call"] {
        let response = server.request(method, json!({"name": "exa_api"}));
        assert_eq!(response["error"]["code"], -32602, "{method}: {response}");
    }
    let mut params = stateless_params(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let response = server.request("tools/list", params);
    assert_eq!(response["error"]["code"], -32022, "{response}");
    // None of these closes the connection.
    let response = server.request("tools/list", stateless_params(json!({})));
    assert!(response["result"]["tools"].is_array(), "{response}");
}

/// A client may try both ways on one process.
#[test]
fn one_process_serves_both_protocol_generations() {
    let mut server = connect("2024-11-05");
    assert_eq!(server.tools()[0].get("title"), None);
    let list = server.request("tools/list", stateless_params(json!({})));
    assert!(list["result"]["tools"][0]["title"].is_string(), "{list}");
    assert_eq!(server.tools()[0].get("title"), None);
}

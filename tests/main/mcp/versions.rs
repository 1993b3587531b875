//! The versions of the protocol, from the first to the one without a handshake.

use serde_json::{Value, json};

use crate::support::{McpServer, Outcome, Program, STATELESS, USUAL, introduced};

/// The versions that begin with `initialize`.
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", USUAL];

fn connect(version: &str) -> McpServer {
    McpServer::connect(Program::new(["--sandbox"]), version)
}

fn search() -> Value {
    json!({"name": "web_search_exa", "arguments": {"query": "heat pumps", "numResults": 1}})
}

#[test]
fn every_version_is_negotiated_and_served() {
    for version in HANDSHAKES {
        let mut server = McpServer::start(Program::new(["--sandbox"]));
        let hello = server.handshake(version);
        assert_eq!(hello["protocolVersion"], version);
        assert_eq!(hello["serverInfo"]["name"], "exa-mcp-server");
        assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert!(hello["capabilities"]["tools"].is_object(), "{hello}");
        assert!(hello["instructions"].is_string(), "{hello}");
        assert_eq!(
            server.ask("ping", json!({}))["result"],
            json!({}),
            "{version}"
        );
        assert_eq!(server.tools().len(), 4, "{version}");
        assert_eq!(server.end().stderr, "");
    }
}

#[test]
fn unknown_version_is_offered_the_latest_handshake_version() {
    for version in ["1999-01-01", STATELESS, "2099-12-31", "draft"] {
        let mut server = McpServer::start(Program::new([]));
        assert_eq!(
            server.handshake(version)["protocolVersion"],
            USUAL,
            "{version}"
        );
        assert_eq!(server.tools().len(), 4);
    }
}

#[test]
fn tools_have_the_fields_of_the_version() {
    for version in HANDSHAKES {
        for tool in connect(version).tools() {
            let mut fields: Vec<&String> = tool.as_object().expect("a tool").keys().collect();
            fields.sort();
            // One version says which tools take tasks.
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
    for version in HANDSHAKES {
        let mut server = connect(version);
        let good = Outcome::of(&server.ask("tools/call", search()));
        assert!(!good.is_error);
        assert!(
            good.text.starts_with("search: 1 of 1 results"),
            "{}",
            good.text
        );
        let bad = server.call("web_search_exa", json!({}));
        assert!(bad.is_error);
        // Whoever sees only the text is told everything as well.
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
    let answers = server.next();
    let answers = answers.as_array().expect("a batch of answers");
    let count = |name: &str| answers.iter().filter(|it| it.get(name).is_some()).count();
    assert_eq!((answers.len(), count("result"), count("error")), (3, 2, 1));
    assert!(answers.iter().all(|answer| answer["id"] == 5));
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
    let answers = server.next();
    let answers = answers.as_array().expect("a batch of answers");
    let of = |id: Value| {
        answers
            .iter()
            .find(|answer| answer["id"] == id)
            .expect("an answer")
    };
    assert_eq!(answers.len(), 5, "{answers:?}");
    assert_eq!(of(json!("a"))["result"]["isError"], false);
    assert_eq!(of(json!("b"))["result"], json!({}));
    assert_eq!(of(json!("c"))["error"]["code"], -32601);
    assert_eq!(of(json!("d"))["error"]["code"], -32602);
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    // Notifications alone are not answered.
    server.write(br#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    server.assert_silent();
}

#[test]
fn other_versions_reject_batches() {
    for version in ["2024-11-05", "2025-06-18", USUAL] {
        let mut server = connect(version);
        server.write(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        let answer = server.next();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{version}"
        );
        assert_eq!(server.ask("ping", json!({}))["result"], json!({}));
    }
}

#[test]
fn stateless_version_is_discovered_and_served() {
    let mut server = connect(STATELESS);
    let discovered = server.ask("server/discover", json!({}))["result"].clone();
    let versions: Vec<&str> = HANDSHAKES.iter().copied().chain([STATELESS]).collect();
    assert_eq!(discovered["supportedVersions"], json!(versions));
    assert!(
        discovered["capabilities"]["tools"].is_object(),
        "{discovered}"
    );
    assert!(discovered["instructions"].is_string(), "{discovered}");
    let list = server.ask("tools/list", json!({}))["result"].clone();
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(4));
    for result in [&discovered, &list] {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(
            result["ttlMs"].is_u64() && result["cacheScope"].is_string(),
            "{result}"
        );
    }
    let called = server.ask("tools/call", search());
    assert_eq!(called["result"]["resultType"], "complete", "{called}");
    let found = Outcome::of(&called).structured.expect("data");
    assert_eq!(found["results"].as_array().map(Vec::len), Some(1));
    server
        .call("web_search_exa", json!({}))
        .failure()
        .assert_code(-32602, "INVALID_PARAMS");
    assert_eq!(server.end().stderr, "");
}

#[test]
fn stateless_version_has_no_ping_or_set_level() {
    let mut server = connect(STATELESS);
    for method in ["ping", "logging/setLevel", "resources/subscribe"] {
        for params in [
            json!({"level": "debug", "uri": "exa://websets/a"}),
            json!({}),
        ] {
            let answer = server.ask(method, params);
            assert_eq!(answer["error"]["code"], -32601, "{method}");
        }
    }
}

#[test]
fn stateless_request_needs_client_metadata() {
    let mut server = McpServer::start(Program::new([]));
    for method in ["server/discover", "tools/list", "tools/call"] {
        let answer = server.ask(method, json!({"name": "exa_api"}));
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
    let mut params = introduced(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let answer = server.ask("tools/list", params);
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    // None of it ends the connection.
    let answer = server.ask("tools/list", introduced(json!({})));
    assert!(answer["result"]["tools"].is_array(), "{answer}");
}

/// A client that tries both ways keeps one process for it.
#[test]
fn one_process_serves_both_protocol_generations() {
    let mut server = connect("2024-11-05");
    assert_eq!(server.tools()[0].get("title"), None);
    let list = server.ask("tools/list", introduced(json!({})));
    assert!(list["result"]["tools"][0]["title"].is_string(), "{list}");
    assert_eq!(server.tools()[0].get("title"), None);
}

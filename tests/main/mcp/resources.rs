//! Resources.

use exa_mcp_model::Operation;
use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{
    DEFAULT_VERSION, McpServer, Program, Recorder, Response, STATELESS_VERSION, Sandbox,
};

const VERSIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    DEFAULT_VERSION,
    STATELESS_VERSION,
];

fn connect(version: &str) -> McpServer {
    McpServer::connect(Program::new(["--sandbox"]), version)
}

/// Returns the resources of all pages.
fn listed(server: &mut McpServer) -> Vec<Value> {
    let mut resources = Vec::new();
    let mut params = json!({});
    loop {
        let response = server.request("resources/list", params);
        let page = response["result"]["resources"].as_array();
        resources.extend(page.expect("a list of resources").iter().cloned());
        match response["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return resources,
        }
    }
}

fn read(server: &mut McpServer, uri: &str) -> Value {
    server.request("resources/read", json!({"uri": uri}))
}

/// Reads a resource as JSON.
#[track_caller]
fn read_json(server: &mut McpServer, uri: &str) -> Value {
    let response = read(server, uri);
    let contents = &response["result"]["contents"][0];
    assert_eq!(contents["uri"], uri, "{response}");
    assert_eq!(contents["mimeType"], "application/json");
    serde_json::from_str(contents["text"].as_str().expect("a string")).expect("JSON")
}

#[test]
fn resource_capabilities_are_declared() {
    for version in VERSIONS {
        let mut server = McpServer::start(Program::new(["--sandbox"]));
        let claimed = if version == STATELESS_VERSION {
            let mut server = connect(version);
            server.request("server/discover", json!({}))["result"]["capabilities"].clone()
        } else {
            server.handshake(version)["capabilities"].clone()
        };
        assert_eq!(
            claimed["resources"],
            json!({"subscribe": true, "listChanged": true})
        );
        assert!(claimed["prompts"].is_object(), "{version}");
        assert_eq!(
            claimed.get("completions").is_some(),
            version >= "2025-03-26"
        );
    }
}

/// Returns the operations that are resources: all but those for admins.
fn described() -> impl Iterator<Item = &'static Operation> {
    all().iter().filter(|operation| !operation.api.admin_only)
}

#[test]
fn every_operation_is_listed_and_read() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = connect(version);
        let resources = listed(&mut server);
        let operations: Vec<&Value> = resources
            .iter()
            .filter(|resource| {
                resource["uri"]
                    .as_str()
                    .is_some_and(|uri| uri.starts_with("exa://operations/"))
            })
            .collect();
        assert_eq!(operations.len(), described().count());
        for (resource, operation) in operations.iter().zip(described()) {
            assert_eq!(resource["name"], operation.name);
            assert_eq!(resource["title"], operation.summary);
            assert_eq!(resource["mimeType"], "application/json");
            assert_eq!(resource["annotations"]["audience"], json!(["assistant"]));
            let uri = resource["uri"].as_str().expect("an address");
            let text = read(&mut server, uri)["result"]["contents"][0]["text"].clone();
            let text = text.as_str().expect("a string");
            assert_eq!(resource["size"], text.len());
            let description: Value = serde_json::from_str(text).expect("JSON");
            let schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
            assert_eq!(description["inputSchema"], schema);
            let schema: Value = serde_json::from_str(operation.output_schema).expect("a schema");
            assert_eq!(description["outputSchema"], schema);
            let validator =
                jsonschema::validator_for(&description["inputSchema"]).expect("a usable schema");
            assert!(
                validator.is_valid(&description["example"]["args"]),
                "{}",
                operation.name
            );
        }
    }
}

#[test]
fn resources_have_the_fields_of_the_version() {
    for version in VERSIONS {
        let mut server = connect(version);
        let resource = &listed(&mut server)[0];
        assert_eq!(
            resource.get("size").is_some(),
            version >= "2025-03-26",
            "{version}"
        );
        assert_eq!(
            resource.get("title").is_some(),
            version >= "2025-06-18",
            "{version}"
        );
        let response = server.request("resources/templates/list", json!({}));
        let template = &response["result"]["resourceTemplates"][0];
        assert_eq!(
            template.get("title").is_some(),
            version >= "2025-06-18",
            "{version}"
        );
        let newest = version == STATELESS_VERSION;
        let read = read(&mut server, "exa://operations/search");
        for result in [&response["result"], &read["result"]] {
            for field in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                assert_eq!(result.get(field).is_some(), newest, "{version}: {field}");
            }
        }
    }
}

#[test]
fn resource_templates_are_listed() {
    let patterns = |tools: &str| -> Vec<String> {
        let mut server = McpServer::sandboxed(&["--tools", tools]);
        let response = server.request("resources/templates/list", json!({}));
        let templates = response["result"]["resourceTemplates"]
            .as_array()
            .expect("a list");
        for template in templates {
            for field in ["name", "title", "description", "mimeType"] {
                assert!(template[field].is_string(), "{template}");
            }
        }
        let patterns = templates
            .iter()
            .filter_map(|template| template["uriTemplate"].as_str());
        patterns.map(str::to_owned).collect()
    };
    let always = [
        "exa://results/{cacheId}",
        "exa://results/{cacheId}/{index}",
        "exa://operations/{name}",
    ];
    let websets = ["exa://websets/{websetId}", "exa://websets/{websetId}/items"];
    let all: Vec<&str> = always
        .iter()
        .chain(&websets)
        .copied()
        .chain(["note:///{id}"])
        .collect();
    assert_eq!(patterns("default,notes"), all);
    assert_eq!(patterns("toolhost"), all[..5]);
    assert_eq!(patterns("classic"), all[..3]);
}

#[test]
fn webset_resource_is_current() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let sandbox = Sandbox::start();
        let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
        let mut server = McpServer::connect(program, version);
        let call = json!({
            "operation": "websets.create", "output_format": "json",
            "args": {"search": {"query": "databases", "count": 3}, "externalId": "mine/1"},
        });
        let made = server.request(
            "tools/call",
            json!({"name": "manage_websets", "arguments": call}),
        );
        let made = made["result"]["structuredContent"].to_string();
        let id = made
            .split("\"id\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("an id");
        let uri = format!("exa://websets/{id}");
        assert_eq!(read_json(&mut server, &uri)["id"], id);
        assert_eq!(read_json(&mut server, "exa://websets/mine%2F1")["id"], id);
        assert!(read_json(&mut server, &format!("{uri}/items"))["data"].is_array());
        let error = read(&mut server, "exa://websets/nope")["error"].clone();
        let code = if version == STATELESS_VERSION {
            -32602
        } else {
            -32002
        };
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(error["data"]["uri"], "exa://websets/nope");
    }
}

#[test]
fn missing_resource_has_the_error_code_of_the_version() {
    for version in VERSIONS {
        let mut server = connect(version);
        let code = if version == STATELESS_VERSION {
            -32602
        } else {
            -32002
        };
        for uri in [
            "",
            "exa://",
            "exa://nothing/here",
            "exa://operations/no.such",
            "exa://results/r_unknown",
            "exa://results/r_unknown/0",
            "exa://results/r_unknown/-1",
            "note:///unknown",
            "file:///etc/passwd",
            "https://example.com/",
            "exa://operations/../../etc/passwd",
        ] {
            let response = read(&mut server, uri);
            assert_eq!(
                response["error"]["code"], code,
                "{version} {uri}: {response}"
            );
            assert_eq!(response["error"]["data"]["uri"], uri);
        }
        let long = format!("exa://websets/{}", "x".repeat(100_000));
        let response = read(&mut server, &long);
        assert_eq!(response["error"]["code"], code);
        assert!(response.to_string().len() < 1_000, "{response}");
        for params in [json!({}), json!({"uri": 5}), json!({"uri": null})] {
            assert_eq!(
                server.request("resources/read", params)["error"]["code"],
                -32602
            );
        }
        let misspelt = read(&mut server, "exa://operations/item.lists");
        assert!(
            misspelt["error"]["message"]
                .as_str()
                .expect("a string")
                .contains("`items.list`")
        );
    }
}

#[test]
fn upstream_failure_is_reported_for_resources() {
    let recorder = Recorder::always(Response::json(401, &json!({"error": "no"})));
    let mut server = McpServer::with_recorder(&recorder, &[]);
    let error = read(&mut server, "exa://websets/a")["error"].clone();
    assert_eq!(error["code"], -32603);
    assert!(
        error["message"].as_str().expect("a string").contains("401"),
        "{error}"
    );
    let program = Program::new([]).env_remove("EXA_API_KEY");
    let error = read(
        &mut McpServer::connect(program, DEFAULT_VERSION),
        "exa://websets/a",
    )["error"]
        .clone();
    assert!(
        error["message"]
            .as_str()
            .expect("a string")
            .contains("EXA_API_KEY"),
        "{error}"
    );
}

/// The tool set also restricts the resources.
#[test]
fn resources_respect_enabled_tools() {
    let recorder = Recorder::always(Response::json(200, &json!({"id": "a"})));
    let mut server = McpServer::with_recorder(&recorder, &["--tools", "web_search_exa"]);
    for uri in ["exa://websets/a", "exa://websets/a/items"] {
        assert_eq!(read(&mut server, uri)["error"]["code"], -32002, "{uri}");
    }
    let params = json!({
        "ref": {"type": "ref/resource", "uri": "exa://websets/{websetId}"},
        "argument": {"name": "websetId", "value": ""},
    });
    assert_eq!(
        server.request("completion/complete", params)["error"]["code"],
        -32602
    );
    assert!(recorder.take().is_empty(), "nothing may be sent");
}

#[test]
fn unknown_cursors_are_rejected() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let mut server = connect(version);
        for method in ["resources/list", "resources/templates/list", "prompts/list"] {
            for cursor in [
                json!("nowhere"),
                json!(""),
                json!(5),
                json!("operations-9999"),
            ] {
                let response = server.request(method, json!({"cursor": cursor}));
                assert_eq!(response["error"]["code"], -32602, "{method}: {response}");
            }
            assert!(server.request(method, json!({"cursor": null}))["result"].is_object());
        }
    }
}

#[test]
fn notes_are_paginated() {
    let mut server = McpServer::sandboxed(&["--tools", "notes"]);
    for number in 0..105 {
        let note = json!({"title": format!("note {number}"), "content": "c"});
        let response = server.request(
            "tools/call",
            json!({"name": "create_note", "arguments": note}),
        );
        assert_eq!(response["result"]["isError"], false);
    }
    let first = server.request("resources/list", json!({}));
    assert_eq!(
        first["result"]["resources"].as_array().map(Vec::len),
        Some(100)
    );
    let resources = listed(&mut server);
    let is_skill = |resource: &&Value| {
        let uri = resource["uri"].as_str();
        uri.is_some_and(|uri| uri.starts_with("skill://"))
    };
    let names: Vec<&str> = resources
        .iter()
        .filter(|resource| !is_skill(resource))
        .filter_map(|resource| resource["name"].as_str())
        .collect();
    assert_eq!(names.len(), 105 + described().count());
    assert_eq!(
        (names[0], names[104], names[105]),
        ("note 104", "note 0", all()[0].name)
    );
}

/// Searches and returns the id of the cached result.
fn search(server: &mut McpServer, query: &str) -> String {
    let arguments = json!({"query": query, "numResults": 3});
    let response = server.request(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": arguments}),
    );
    let id = &response["result"]["structuredContent"]["metadata"]["cacheId"];
    id.as_str()
        .unwrap_or_else(|| panic!("{response}"))
        .to_owned()
}

#[test]
fn cached_results_are_listed_and_read_without_requests() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let sandbox = Sandbox::start();
        let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
        let mut server = McpServer::connect(program, version);
        let first = search(&mut server, "heat pumps");
        // Results of the same millisecond have no defined order.
        std::thread::sleep(std::time::Duration::from_millis(5));
        let second = search(&mut server, "solar cells");
        drop(sandbox);
        let resources = listed(&mut server);
        let uri = |id: &str| format!("exa://results/{id}");
        assert_eq!(resources[0]["uri"], uri(&second), "the newest first");
        assert_eq!(resources[1]["uri"], uri(&first));
        assert!(
            resources[1]["name"]
                .as_str()
                .expect("a name")
                .contains("heat pumps")
        );
        assert_eq!(resources[1]["mimeType"], "text/markdown");
        assert_eq!(resources[1].get("size"), None, "unknown values are omitted");
        assert!(resources[1]["annotations"]["lastModified"].is_string());
        let text = |server: &mut McpServer, uri: &str| {
            let contents = read(server, uri)["result"]["contents"][0].clone();
            assert_eq!(
                (&contents["uri"], &contents["mimeType"]),
                (&json!(uri), &json!("text/markdown"))
            );
            contents["text"].as_str().expect("a string").to_owned()
        };
        let whole = text(&mut server, &uri(&first));
        let parts: Vec<String> = (1..=3)
            .map(|index| text(&mut server, &format!("{}/{index}", uri(&first))))
            .collect();
        for part in &parts {
            let link = part
                .split("https://")
                .nth(1)
                .and_then(|rest| rest.split([')', '>', ' ', '\n']).next());
            assert!(whole.contains(link.expect("a link")), "{part}");
            assert!(part.len() < whole.len());
        }
        let error = read(&mut server, &format!("{}/4", uri(&first)))["error"].clone();
        assert!(
            error["message"]
                .as_str()
                .expect("a string")
                .contains("3 results"),
            "{error}"
        );
    }
}

#[test]
fn cached_result_ids_are_completed() {
    let mut server = McpServer::sandboxed(&[]);
    let id = search(&mut server, "heat pumps");
    let complete =
        |server: &mut McpServer, pattern: &str, name: &str, value: &str, earlier: Value| {
            let params = json!({
                "ref": {"type": "ref/resource", "uri": pattern},
                "argument": {"name": name, "value": value},
                "context": {"arguments": earlier},
            });
            server.request("completion/complete", params)["result"]["completion"]["values"].clone()
        };
    let pattern = "exa://results/{cacheId}/{index}";
    for typed in ["", "r_", "heat", "search"] {
        let found = complete(&mut server, pattern, "cacheId", typed, json!({}));
        assert_eq!(found, json!([id]), "{typed}");
    }
    let found = complete(&mut server, pattern, "index", "", json!({"cacheId": id}));
    assert_eq!(found, json!(["1", "2", "3"]));
    let found = complete(&mut server, pattern, "index", "", json!({}));
    assert_eq!(found, json!([]));
}

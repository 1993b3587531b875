//! The toolhost: four tools whose operations have their own names.

mod corrections;
mod long_running;
mod specification;
mod synchronous;

use serde_json::{Value, json};

use crate::support::{McpServer, Sandbox};

/// The operations by tool.
const OPERATIONS: [(&str, &str); 4] = [
    (
        "websets-sync",
        "list_operations create_webset get_webset list_websets update_webset delete_webset cancel_webset \
         preview_webset suggest_enrichments get_item list_items delete_item get_search get_enrichment \
         get_monitor list_monitors delete_monitor create_webhook get_webhook list_webhooks delete_webhook \
         list_events create_import get_import list_imports delete_import",
    ),
    (
        "websets-async",
        "list_operations start_search check_search cancel_search start_enrichment check_enrichment \
         cancel_enrichment start_monitor check_monitor_runs stop_monitor",
    ),
    (
        "exa-sync",
        "list_operations search find_similar get_contents answer",
    ),
    (
        "exa-async",
        "list_operations start_research check_research cancel_research stream_answer",
    ),
];

/// Returns the names of a tool's operations.
fn names(tool: &str) -> Vec<&'static str> {
    let found = OPERATIONS.iter().find(|(name, _)| *name == tool);
    let (_, names) = found.expect("a tool of the toolhost");
    names.split_whitespace().collect()
}

/// A server with the toolhost, its sandbox, and the names of the called operations.
struct Host {
    sandbox: Sandbox,
    server: McpServer,
    called: Vec<String>,
}

impl Host {
    fn start() -> Self {
        let sandbox = Sandbox::start();
        Self {
            server: McpServer::with_upstream(&sandbox.url(), &["--tools", "toolhost"]),
            sandbox,
            called: vec!["list_operations".to_owned()],
        }
    }

    /// Calls an operation, which must succeed.
    #[track_caller]
    fn call(&mut self, tool: &str, operation: &str, params: Value) -> Value {
        self.follow(tool, &json!({"operation": operation, "params": params}))
    }

    /// Makes a call that a result proposed, unchanged.
    #[track_caller]
    fn follow(&mut self, tool: &str, call: &Value) -> Value {
        let name = call["operation"].as_str().expect("an operation");
        self.called.push(name.to_owned());
        self.server.call(tool, call.clone()).success()
    }

    #[track_caller]
    fn assert_all_called(&self, tool: &str) {
        let mut missed = names(tool);
        missed.retain(|name| !self.called.iter().any(|called| called == name));
        assert!(missed.is_empty(), "{tool}: {missed:?} not called");
    }
}

#[test]
fn toolhost_operations_match_the_specification() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    let listed: Vec<(Value, Value)> = server
        .tools()
        .into_iter()
        .map(|tool| {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["required"], json!(["operation"]));
            assert_eq!(schema["properties"]["params"]["type"], "object");
            (
                tool["name"].clone(),
                schema["properties"]["operation"]["enum"].clone(),
            )
        })
        .collect();
    let expected = OPERATIONS.map(|(tool, _)| (json!(tool), json!(names(tool))));
    assert_eq!(listed, expected);
}

#[test]
fn list_operations_shows_schemas() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    for (tool, _) in OPERATIONS {
        let description = server
            .call(tool, json!({"operation": "list_operations"}))
            .success();
        let description = description["operations"].as_array().expect("operations");
        let listed: Vec<&Value> = description.iter().map(|entry| &entry["name"]).collect();
        assert_eq!(listed, &names(tool)[1..], "{tool}");
        for entry in description {
            assert_eq!(entry["inputSchema"]["type"], "object", "{entry}");
            assert!(entry["description"].is_string(), "{entry}");
        }
    }
    // A model can list a single operation.
    let call = json!({"operation": "list_operations", "params": {"operation": "answer"}});
    let description = server.call("exa-sync", call).success();
    let [entry] = description["operations"]
        .as_array()
        .expect("operations")
        .as_slice()
    else {
        panic!("one operation, not {description}");
    };
    assert_eq!(entry["inputSchema"]["required"], json!(["question"]));
}

#[test]
fn unknown_operation_suggests_a_similar_name() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    let rejected = server
        .call("websets-async", json!({"operation": "start_serch"}))
        .failure();
    rejected.assert_code(-32602, "INVALID_PARAMS");
    rejected.assert_contains(&["`start_serch`", "Did you mean `start_search`?"]);
    assert_eq!(rejected.error["didYouMean"], "start_search");
}

/// An operation of another tool is not a typo, and an operation may have another name here.
#[test]
fn operation_of_another_tool_is_redirected() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost,default"]);
    for (tool, operation, expected) in [
        (
            "websets-sync",
            "start_search",
            "belongs to the tool `websets-async`",
        ),
        (
            "exa-async",
            "find_similar",
            "belongs to the tool `exa-sync`",
        ),
        (
            "websets-sync",
            "websets.create",
            "Did you mean `create_webset`?",
        ),
        (
            "exa_api",
            "items.list",
            "belongs to the tool `manage_websets`",
        ),
        (
            "manage_websets",
            "get-contents",
            "belongs to the tool `exa_api`",
        ),
    ] {
        let rejected = server.call(tool, json!({"operation": operation})).failure();
        rejected.assert_contains(&[expected, "It must be one of: "]);
        assert!(rejected.error["operations"].is_array(), "{tool}");
    }
}

/// Descriptions use the toolhost's own names, and the list contains all of them.
#[test]
fn errors_and_lists_use_toolhost_names() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    for (tool, operation, params, field) in [
        ("exa-sync", "answer", json!({}), "question"),
        ("websets-sync", "list_events", json!({"after": 5}), "after"),
        (
            "websets-async",
            "start_monitor",
            json!({"websetId": "w", "cadence": {"cron": "0 9 * * 1"}, "searchParams": {"count": 0}}),
            "searchParams.count",
        ),
    ] {
        let call = json!({"operation": operation, "params": params});
        let rejected = server.call(tool, call).failure();
        assert_eq!(rejected.fields(), [field], "{operation}");
        rejected.assert_contains(&[&format!("`{field}`")]);
    }
    for (tool, operation, own) in [
        ("exa-async", "cancel_research", "researchId"),
        ("exa-async", "start_research", "instructions"),
        ("websets-async", "start_monitor", "searchParams"),
        ("exa-sync", "search", "filters"),
    ] {
        let call = json!({"operation": "list_operations", "params": {"operation": operation}});
        let listed = server.call(tool, call).success();
        let schema = &listed["operations"][0]["inputSchema"];
        assert!(schema["properties"][own].is_object(), "{schema}");
        let required = schema["required"].as_array().expect("a list");
        assert!(!required.contains(&json!("behavior")), "{schema}");
    }
}

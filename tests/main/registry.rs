//! Checks the printed registry of operations.

use exa_mcp_model::RequestBody;
use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::round_trip::covered_operations;
use crate::support::{Program, assert_no_problems, schema};

/// The operations of the Websets API that users rely on. The spec may have more, which tests derive from their
/// schemas.
const WEBSETS: [&str; 39] = [
    "websets.create",
    "websets.get",
    "websets.list",
    "websets.update",
    "websets.delete",
    "websets.cancel",
    "websets.preview",
    "searches.create",
    "searches.get",
    "searches.cancel",
    "items.list",
    "items.get",
    "items.delete",
    "enrichments.create",
    "enrichments.get",
    "enrichments.cancel",
    "enrichments.update",
    "enrichments.delete",
    "monitors.create",
    "monitors.get",
    "monitors.list",
    "monitors.update",
    "monitors.delete",
    "monitors.runs.list",
    "monitors.runs.get",
    "webhooks.create",
    "webhooks.get",
    "webhooks.list",
    "webhooks.update",
    "webhooks.delete",
    "webhooks.list_attempts",
    "imports.create",
    "imports.get",
    "imports.list",
    "imports.update",
    "imports.delete",
    "events.list",
    "events.get",
    "teams.me",
];

/// Those of the Search API.
const SEARCH: [&str; 37] = [
    "search",
    "find_similar",
    "get_contents",
    "answer",
    "research.create",
    "research.get",
    "research.list",
    "agent.runs.create",
    "agent.runs.get",
    "agent.runs.list",
    "agent.runs.cancel",
    "agent.runs.stop",
    "agent.runs.delete",
    "agent.runs.events.list",
    "agent.monitors.create",
    "agent.monitors.get",
    "agent.monitors.list",
    "agent.monitors.delete",
    "agent.monitors.entities.add",
    "agent.monitors.entities.list",
    "agent.monitors.changes.list",
    "agent.monitors.backtests.create",
    "agent.monitors.backtests.get",
    "search_monitors.create",
    "search_monitors.get",
    "search_monitors.list",
    "search_monitors.update",
    "search_monitors.delete",
    "search_monitors.trigger",
    "search_monitors.batch",
    "search_monitors.runs.list",
    "search_monitors.runs.get",
    "batches.create",
    "batches.get",
    "batches.list",
    "batches.cancel",
    "batches.delete",
];

/// Those of team management.
const TEAM: [&str; 6] = [
    "team.keys.create",
    "team.keys.list",
    "team.keys.get",
    "team.keys.update",
    "team.keys.delete",
    "team.keys.usage",
];

/// Returns the registry that the program prints.
fn printed() -> Vec<Value> {
    let registry = Program::new(["operations", "--json"])
        .env_remove("EXA_API_KEY")
        .run()
        .json();
    registry.as_array().expect("a list").clone()
}

fn name(entry: &Value) -> &str {
    entry["name"].as_str().expect("a name")
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names
}

/// Returns the names of the reviewed snapshots, sorted.
fn snapshots() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/codegen-snapshots/operations");
    let files = std::fs::read_dir(folder).expect("the folder");
    let mut names: Vec<String> = files
        .map(|file| {
            let file = file.expect("a file").file_name();
            let name = file.to_str().and_then(|name| name.strip_suffix(".json"));
            name.expect("a name that ends in .json").to_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn operations_match_the_snapshots() {
    assert_eq!(sorted(printed().iter().map(name)), snapshots());
}

#[test]
fn operations_of_the_contract_exist() {
    let printed = printed();
    for (api, contract) in [
        ("websets", &WEBSETS[..]),
        ("search", &SEARCH),
        ("team", &TEAM),
    ] {
        for operation in contract {
            let entry = printed.iter().find(|entry| name(entry) == *operation);
            let entry = entry.unwrap_or_else(|| panic!("{operation} is gone"));
            assert_eq!(entry["api"], api, "{operation}");
        }
    }
}

/// Newer operations are covered by the tests that generate their arguments from schemas.
#[test]
fn every_operation_of_the_contract_has_a_round_trip() {
    let covered = covered_operations();
    let contract = WEBSETS.into_iter().chain(SEARCH).chain(TEAM);
    let missing: Vec<&str> = contract
        .filter(|name| !covered.iter().any(|covered| covered == name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn operations_table_has_a_line_each() {
    let output = Program::new(["operations"]).env_remove("EXA_API_KEY").run();
    assert_eq!(output.code, Some(0), "{output:#?}");
    let first_words = output
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    assert_eq!(sorted(first_words), snapshots());
}

#[test]
fn every_operation_has_summary_and_path() {
    let mut problems = Vec::new();
    for entry in printed() {
        let name = name(&entry);
        for field in ["domain", "method", "path", "summary"] {
            if entry[field]
                .as_str()
                .is_none_or(|text| text.trim().is_empty())
            {
                problems.push(format!("{name} has no {field}"));
            }
        }
        // The four operations without a dot share a domain.
        let domain = entry["domain"].as_str().unwrap_or_default();
        let (start, _) = name.rsplit_once('.').unwrap_or(("search", ""));
        if start != domain && !start.starts_with(&format!("{domain}.")) {
            problems.push(format!("{name} is in the domain {domain}"));
        }
        if !["GET", "POST", "PUT", "PATCH", "DELETE"]
            .iter()
            .any(|method| entry["method"] == *method)
        {
            problems.push(format!("{name} has the method {}", entry["method"]));
        }
    }
    assert_no_problems(&problems);
}

#[test]
fn schemas_are_valid_2020_12_objects() {
    let mut problems = Vec::new();
    for entry in printed() {
        for which in ["inputSchema", "outputSchema"] {
            let schema_name = format!("{which} of {}", name(&entry));
            let schema = &entry[which];
            if schema["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
                problems.push(format!(
                    "the {schema_name} names the dialect {}",
                    schema["$schema"]
                ));
            }
            for broken in schema::broken_references(schema) {
                problems.push(format!("the {schema_name} has a broken reference {broken}"));
            }
        }
    }
    assert_no_problems(&problems);
}

/// Clients reject tools whose arguments are a union, and models need to know the fields.
#[test]
fn input_schemas_are_plain_objects_with_described_properties() {
    let mut problems = Vec::new();
    for entry in printed() {
        let (name, schema) = (name(&entry), &entry["inputSchema"]);
        // A demand such as "one of these two" is part of the registry; the tools omit it.
        for union in ["anyOf", "oneOf", "allOf"] {
            let branches = schema[union].as_array().into_iter().flatten();
            if branches.flat_map(Value::as_object).any(has_fields) {
                problems.push(format!("{name} takes a top-level {union}"));
            }
        }
        if schema["type"] != "object" {
            problems.push(format!("{name} takes {}", schema["type"]));
        }
        let empty = serde_json::Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        for (property, part) in properties {
            let described = [part, schema::resolve(schema, part)].iter().any(|part| {
                part["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty())
            });
            if !described {
                problems.push(format!("{name} does not describe {property}"));
            }
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            let required = required.as_str().expect("a name");
            if !properties.contains_key(required) {
                problems.push(format!("{name} requires {required} without declaring it"));
            }
        }
    }
    assert_no_problems(&problems);
}

/// Returns whether a branch of a union has fields of its own.
fn has_fields(branch: &serde_json::Map<String, Value>) -> bool {
    branch.contains_key("properties") || branch.contains_key("$ref")
}

/// A model that reads `agent-runs-get` in a description calls an operation that does not exist.
#[test]
fn descriptions_use_operation_names() {
    let printed = printed();
    let hyphenated = |name: &str| name.replace(['.', '_'], "-");
    let wrong: Vec<String> = printed
        .iter()
        .map(|entry| hyphenated(name(entry)))
        .filter(|name| name.contains('-'))
        .collect();
    let mut problems = Vec::new();
    for entry in &printed {
        let text = entry.to_string();
        let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '-');
        for word in words.filter(|word| wrong.iter().any(|wrong| wrong == word)) {
            problems.push(format!("{} speaks of {word}", name(entry)));
        }
    }
    assert_no_problems(&problems);
}

/// Unknown path and query arguments are rejected by the schema; bodies are open.
#[test]
fn only_body_operations_accept_unknown_arguments() {
    for entry in printed() {
        let closed = entry["inputSchema"]["additionalProperties"] == json!(false);
        let reads = entry["method"] == "GET" || entry["method"] == "DELETE";
        assert!(closed || !reads, "{} takes anything", name(&entry));
    }
    let open_bodies = all()
        .iter()
        .filter(|operation| matches!(operation.body, RequestBody::Fields { closed: false, .. }));
    let open_bodies = sorted(open_bodies.map(|operation| operation.name));
    let printed = printed();
    let has_open_body =
        |entry: &&Value| entry["inputSchema"]["additionalProperties"] != json!(false);
    assert_eq!(
        sorted(printed.iter().filter(has_open_body).map(name)),
        open_bodies
    );
    assert!(open_bodies.len() >= 25, "{open_bodies:?}");
}

//! The result of `tools/list`.

use std::collections::BTreeSet;
use std::path::Path;

use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION, assert_no_problems};

/// Read-only operations that do not use GET.
const HARMLESS_POSTS: [&str; 5] = [
    "search",
    "find_similar",
    "get_contents",
    "answer",
    "websets.preview",
];

fn snapshot(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("codegen-snapshots");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the tool sets with their number of tools, from `TOKENS.md`.
fn sets() -> Vec<(String, usize)> {
    let tokens = snapshot("TOKENS.md");
    let rows = tokens.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", name, count, _, ""] => Some(((*name).to_owned(), count.parse().ok()?)),
            _ => None,
        }
    });
    rows.collect()
}

fn listed(set: &str) -> Vec<Value> {
    let program = Program::new(["--tools", set]);
    McpServer::connect(program, DEFAULT_VERSION).tools()
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().expect("a name")
}

#[test]
fn tool_sets_match_snapshots() {
    let sets = sets();
    // A domain that the spec adds is another set.
    assert!(sets.len() >= 24, "{sets:?}");
    let mut seen = BTreeSet::new();
    for (set, count) in sets {
        let tools = listed(&set);
        assert_eq!(tools.len(), count, "{set}");
        for mut tool in tools {
            // Task support depends on the protocol version, not on the specs.
            tool.as_object_mut().expect("a tool").remove("execution");
            let name = name(&tool);
            let snapshot: Value =
                serde_json::from_str(&snapshot(&format!("tools/{name}.json"))).expect("JSON");
            assert_eq!(tool, snapshot["definition"], "{set}: {name}");
            seen.insert(name.to_owned());
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("codegen-snapshots/tools");
    let files = std::fs::read_dir(folder).expect("the folder").count();
    assert_eq!(seen.len(), files, "every snapshot belongs to a set");
}

/// Clients cache by position and models are sensitive to order, so the order is fixed.
#[test]
fn tool_order_is_stable() {
    let first = listed("granular,classic,toolhost");
    for _ in 0..3 {
        assert_eq!(listed("granular,classic,toolhost"), first);
    }
    let names: Vec<&str> = first.iter().map(name).collect();
    let operations: Vec<String> = all()
        .iter()
        .filter(|operation| !operation.api.admin_only)
        .map(|operation| operation.name.replace('.', "_"))
        .collect();
    assert_eq!(names[..operations.len()], operations);
}

#[test]
fn tool_definitions_fit_all_clients() {
    let mut problems = Vec::new();
    for tool in listed("default,toolhost,classic,granular,notes") {
        let name = name(&tool);
        let schema = tool["inputSchema"].as_object().expect("a schema");
        let mut demand = |good: bool, what: &str| {
            if !good {
                problems.push(format!("{name}: {what}"));
            }
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        demand(
            name.len() <= 64 && name.chars().all(plain),
            "an unusual name",
        );
        // One model provider rejects the whole list because of one such schema.
        for union in ["anyOf", "oneOf", "allOf", "not", "$ref"] {
            demand(!schema.contains_key(union), union);
        }
        demand(schema["type"] == "object", "no object");
        demand(schema["properties"].is_object(), "no properties");
        let description = tool["description"].as_str().unwrap_or_default();
        // One client truncates descriptions at 2 KB.
        demand(
            (1..=2000).contains(&description.len()),
            "the length of the description",
        );
        demand(
            tool["title"]
                .as_str()
                .is_some_and(|title| !title.is_empty()),
            "no title",
        );
        demand(
            jsonschema::validator_for(&tool["inputSchema"]).is_ok(),
            "an unusable schema",
        );
        for hint in [
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        ] {
            demand(tool["annotations"][hint].is_boolean(), hint);
        }
        let hints = &tool["annotations"];
        demand(
            hints["readOnlyHint"] != true || hints["destructiveHint"] == false,
            "destructive reading",
        );
    }
    assert_no_problems(&problems);
}

#[test]
fn granular_tool_hints_are_exact() {
    let mut problems = Vec::new();
    let operations = all().iter().filter(|it| !it.api.admin_only);
    for (tool, operation) in listed("granular").iter().zip(operations) {
        let reads = operation.method == "GET" || HARMLESS_POSTS.contains(&operation.name);
        let hints = &tool["annotations"];
        if hints["readOnlyHint"] != reads {
            problems.push(format!("{}: readOnlyHint is not {reads}", operation.name));
        }
        if operation.method == "DELETE" && hints["destructiveHint"] != true {
            problems.push(format!("{}: deleting is destructive", operation.name));
        }
        if operation.method == "GET" && hints["idempotentHint"] != true {
            problems.push(format!("{}: reading twice is reading once", operation.name));
        }
    }
    assert_no_problems(&problems);
}

#[test]
fn tools_command_matches_tools_list() {
    for flags in [
        &[][..],
        &["--tools", "toolhost"],
        &["--tools", "items,answer_exa"],
        &["--tools", "granular"],
    ] {
        let program = Program::new(flags.iter().copied());
        let tools = McpServer::connect(program, "2025-06-18").tools();
        let listing = Program::new(["tools", "--json"].iter().chain(flags).copied())
            .run()
            .json();
        assert_eq!(listing["tools"], json!(tools), "{flags:?}");
        let table = Program::new(["tools"].iter().chain(flags).copied()).run();
        assert_eq!(table.code, Some(0), "{table:#?}");
        let (lines, sum) = table.stdout.trim_end().rsplit_once("\n\n").expect("a sum");
        let names: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(names, tools.iter().map(name).collect::<Vec<_>>());
        let tokens = listing["tokens"].as_u64().expect("tokens");
        assert!(
            sum.contains(&format!("{} tools, {tokens} tokens", tools.len())),
            "{sum}"
        );
    }
}

#[test]
fn tools_are_listed_without_a_key() {
    let program = Program::new(["tools", "--json"])
        .env_remove("EXA_API_KEY")
        .env_remove("EXA_BASE_URL");
    assert_eq!(
        program.run().json()["tools"].as_array().map(Vec::len),
        Some(4)
    );
}

/// The size of the tool list in the context of a model.
#[test]
fn tool_lists_stay_within_token_budget() {
    for (set, budget) in [("default", 2_000), ("toolhost", 1_000)] {
        let listing = Program::new(["tools", "--json", "--tools", set])
            .run()
            .json();
        let tokens = listing["tokens"].as_u64().expect("tokens");
        let tools = listing["tools"].as_array().expect("tools").len();
        let table = snapshot("TOKENS.md");
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("| {set} | {tools} |")))
            .expect("a row");
        let recorded: u64 = row
            .split('|')
            .nth(3)
            .and_then(|cell| cell.trim().parse().ok())
            .expect("a number of tokens");
        assert!(recorded <= budget, "{row}");
        // The command adds up the definitions; the table also counts the JSON around them.
        assert!(
            tokens < recorded && recorded - tokens <= 10,
            "{set}: {tokens} tokens, {recorded} in TOKENS.md"
        );
    }
}

/// The size of the whole result, including what each protocol version adds.
#[test]
fn tool_sets_stay_within_budget_in_every_version() {
    let versions = [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        DEFAULT_VERSION,
        STATELESS_VERSION,
    ];
    for version in versions {
        for (set, most) in [("default", 2_000), ("toolhost", 1_000)] {
            let mut server = McpServer::connect(Program::new(["--tools", set]), version);
            let response = server.request("tools/list", json!({}));
            let tokens = bpe_openai::o200k_base().count(&response["result"].to_string());
            assert!(
                tokens > most / 2 && tokens <= most,
                "{version} {set}: {tokens}"
            );
        }
    }
}

/// A model that adds items to a webset would otherwise drop those that fail the new criteria.
#[test]
fn signature_of_a_search_shows_what_happens_to_other_items() {
    let tools = listed("default");
    let websets = tools.iter().find(|tool| name(tool) == "manage_websets");
    let args = &websets.expect("the tool")["inputSchema"]["properties"]["args"];
    let signatures = args["description"].as_str().expect("signatures");
    assert!(
        signatures.contains("behavior=override|append?"),
        "{signatures}"
    );
}

/// Models use the options that they see: those of the output are declared wherever they have an effect, and the
/// toolhost, which has no room for them, names them.
#[test]
fn every_option_is_visible() {
    let listed = |set: &str| McpServer::sandboxed(&["--tools", set]).tools();
    let all = [
        "content_level",
        "output_format",
        "cache_id",
        "fields",
        "index",
        "max_tokens",
    ];
    let of_searches = ["filters", "offset", "fresh"];
    let of_websets = ["filters", "offset", "wait_seconds", "all"];
    for (set, tool, more) in [
        ("default", "web_search_exa", &of_searches[..]),
        ("default", "web_fetch_exa", &["fresh"]),
        (
            "default",
            "exa_api",
            &["filters", "offset", "fresh", "wait_seconds", "all"],
        ),
        ("default", "manage_websets", &of_websets),
        ("classic", "get_code_context_exa", &of_searches),
        ("classic", "agent_run", &["wait_seconds"]),
        ("legacy", "list_webset_items", &["filters", "offset", "all"]),
        ("legacy", "create_search", &["wait_seconds"]),
        ("items", "items_list", &["filters", "offset", "all"]),
    ] {
        let tools = listed(set);
        let found = tools
            .iter()
            .find(|known| known["name"] == tool)
            .expect("a tool");
        let properties = &found["inputSchema"]["properties"];
        for option in all.iter().chain(more) {
            assert!(properties[option].is_object(), "{tool} has no {option}");
            // The dispatchers describe what the tools beside them share.
            let is_described = properties[option]["description"].is_string();
            let is_brief = ["web_search_exa", "web_fetch_exa"].contains(&tool);
            let says_itself = ["content_level", "output_format", "filters"].contains(option);
            assert!(is_described || is_brief || says_itself, "{tool}: {option}");
        }
        let filters = properties["filters"]["properties"].as_object();
        assert!(filters.is_none_or(|keys| keys.len() == 7), "{tool}");
    }
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    for tool in listed("toolhost") {
        let name = tool["name"].as_str().expect("a name");
        let list = json!({"operation": "list_operations"});
        let listed = server.call_raw(name, list).text;
        let options = all.iter().chain(&of_searches).chain(&of_websets);
        for option in options.chain(&["titleContains"]) {
            assert!(listed.contains(option), "{name} does not name {option}");
        }
    }
}

/// Converters of several clients fail on boolean schemas.
#[test]
fn schemas_of_all_tools_are_convertible() {
    fn booleans(schema: &Value, path: &str, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                for (name, value) in map {
                    let path = format!("{path}/{name}");
                    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                    if name == "additionalProperties" && (value.is_boolean() || is_empty) {
                        found.push(path.clone());
                    }
                    booleans(value, &path, found);
                }
            }
            Value::Array(list) => list.iter().for_each(|entry| booleans(entry, path, found)),
            _ => {}
        }
    }
    for set in [
        "default", "toolhost", "classic", "granular", "notes", "assist",
    ] {
        for tool in listed(set) {
            let mut found = Vec::new();
            booleans(&tool["inputSchema"], name(&tool), &mut found);
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

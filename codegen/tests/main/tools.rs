//! Tests of the tools from the checked-in surface.

use exa_mcp_model::ToolPlan;
use serde_json::{Value, json};

use crate::support::{DesignCopy, repository};

fn tools() -> codegen::tools::ToolRegistry {
    codegen::read(&repository().join("data-design"))
        .unwrap()
        .tools
}

fn size_of(set: &str) -> usize {
    let text = std::fs::read_to_string(repository().join("codegen-snapshots/TOKENS.md")).unwrap();
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("| {set} | ")))
        .unwrap();
    row.split('|').nth(3).unwrap().trim().parse().unwrap()
}

#[test]
fn sets_stay_within_their_token_budgets() {
    assert!(size_of("default") <= 2_000, "{}", size_of("default"));
    assert!(size_of("toolhost") <= 1_000, "{}", size_of("toolhost"));
}

#[test]
fn the_readme_contains_the_current_sizes() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    for set in [
        "default", "toolhost", "classic", "legacy", "granular", "assist", "team", "notes",
    ] {
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `{set}` | ")))
            .unwrap();
        assert!(row.ends_with(&format!("| {} |", size_of(set))), "{row}");
    }
}

#[test]
fn numbers_in_the_documentation_are_generated() {
    let copy = DesignCopy::new();
    let pages = ["README.md", "docs/tools.md"];
    std::fs::create_dir(copy.root().join("docs")).unwrap();
    for page in pages {
        std::fs::copy(repository().join(page), copy.root().join(page)).unwrap();
    }
    copy.edit("surface.yaml", |surface| {
        let sets = &mut surface["tools"]["sets"];
        sets["default"].as_array_mut().unwrap().pop().unwrap();
    });
    let before = copy.generate().unwrap();
    assert!(before.compare(copy.root()).is_err());
    let readme = &before.files["README.md"];
    assert!(readme.contains("\n3 tools, "), "{readme}");
    let tools = &before.files["docs/tools.md"];
    assert!(tools.contains("\n4 tools, "), "{tools}");
    let row = readme.lines().find(|line| line.starts_with("| `default`"));
    assert!(row.unwrap().contains(" | 3 | "), "{row:?}");
    before.write(copy.root()).unwrap();
    for page in pages {
        let written = std::fs::read_to_string(copy.root().join(page)).unwrap();
        assert_eq!(written, before.files[page]);
    }
}

#[test]
fn sets_contain_the_expected_tools() {
    let design = codegen::read(&repository().join("data-design")).unwrap();
    let sets = &design.tools.sets;
    let operations = design.model.operations.iter();
    let operations: Vec<(&str, &str)> = operations.map(|it| (&*it.api, &*it.domain)).collect();
    let in_api = |name: &str| operations.iter().filter(|(api, _)| *api == name).count();
    let in_domain = |name: &str| operations.iter().filter(|(_, it)| *it == name).count();
    assert_eq!(
        sets["default"],
        [
            "web_search_exa",
            "web_fetch_exa",
            "exa_api",
            "manage_websets"
        ]
    );
    assert_eq!(
        sets["toolhost"],
        ["websets-sync", "websets-async", "exa-sync", "exa-async"]
    );
    assert_eq!(sets["classic"].len(), 14);
    assert_eq!(sets["granular"].len(), operations.len() - in_api("team"));
    assert_eq!(sets["items"], ["items_delete", "items_get", "items_list"]);
    assert_eq!(sets["agent.runs"].len(), in_domain("agent.runs"));
    assert!(sets["agent.runs"].len() >= 7, "{:?}", sets["agent.runs"]);
    assert_eq!(sets["notes"], ["create_note"]);
    let is_team = |name: &String| name.starts_with("team_keys_");
    assert_eq!(sets["team"].len(), in_api("team"));
    assert!(sets["team"].len() >= 6, "{:?}", sets["team"]);
    assert!(sets["team"].iter().all(is_team));
    // Their domain is another name of the same set.
    assert_eq!(sets["team.keys"], sets["team"]);
    let others = sets.iter().filter(|(set, _)| !set.starts_with("team."));
    for (set, tools) in others.filter(|(set, _)| *set != "team") {
        assert!(!tools.iter().any(is_team), "{set}");
    }
}

#[test]
fn every_definition_meets_client_limits() {
    for (name, tool) in &tools().tools {
        let definition = &tool.definition;
        let schema = &definition.input_schema;
        assert_eq!(schema["type"], "object", "{name}");
        for keyword in ["anyOf", "oneOf", "allOf", "not", "enum"] {
            assert!(
                schema.get(keyword).is_none(),
                "{name} has {keyword} at the top level"
            );
        }
        let length = definition.description.chars().count();
        assert!((10..=2_000).contains(&length), "{name}: {length}");
        assert!(!definition.title.is_empty(), "{name}");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
    }
}

/// Returns the signatures in the description of `args`.
fn signatures(tool: &codegen::tools::Tool) -> &str {
    tool.definition.input_schema["properties"]["args"]["description"]
        .as_str()
        .unwrap()
}

/// Retired, enterprise-only and SDK-beta operations are accepted, but have no signature.
#[test]
fn dispatchers_show_a_signature_of_every_current_operation() {
    let design = codegen::read(&repository().join("data-design")).unwrap();
    let registry = &design.tools;
    for (name, api) in [("manage_websets", "websets"), ("exa_api", "search")] {
        let own = design.model.operations.iter().filter(|it| it.api == api);
        let count = own.count();
        let tool = &registry.tools[name];
        let description = &tool.definition.description;
        let ToolPlan::Dispatcher { operations } = &tool.plan else {
            panic!("{name} is not a dispatcher");
        };
        assert_eq!(operations.len(), count);
        assert!(description.chars().count() < 1024, "{description}");
        let signatures = signatures(tool);
        for operation in operations {
            let operation = design.model.find(operation).unwrap();
            let start = format!("{}: ", operation.domain);
            let verb = operation
                .name
                .strip_prefix(&format!("{}.", operation.domain));
            let verb = verb.unwrap_or(&operation.name);
            let mut lines = signatures.lines();
            let shown = lines.find_map(|line| line.strip_prefix(&start));
            let is_shown =
                shown.is_some_and(|names| names.split(['/', ' ', '(']).any(|name| name == verb));
            let is_unlisted = operation.behavior.unlisted;
            assert_ne!(is_shown, is_unlisted, "{}: {signatures}", operation.name);
        }
        let listed = tool.definition.input_schema["properties"]["operation"]["enum"]
            .as_array()
            .unwrap();
        assert_eq!(listed.len(), count + 2);
    }
    let websets = signatures(&registry.tools["manage_websets"]);
    for part in [
        "items: delete/get(websetId, itemId) list(websetId",
        "create(search{query, count?, criteria?}?, ",
        "entity{type=company|person|",
    ] {
        assert!(websets.contains(part), "no {part} in {websets}");
    }
}

#[test]
fn annotations_match_the_operations() {
    let registry = tools();
    let hints = |tool: &str| json!(registry.tools[tool].definition.annotations);
    let expect = |read_only: bool, destructive: bool, idempotent: bool, open_world: bool| json!({"readOnlyHint": read_only, "destructiveHint": destructive, "idempotentHint": idempotent, "openWorldHint": open_world});
    assert_eq!(hints("items_list"), expect(true, false, true, false));
    assert_eq!(hints("search"), expect(true, false, true, true));
    assert_eq!(hints("websets_delete"), expect(false, true, true, false));
    assert_eq!(hints("websets_update"), expect(false, true, true, false));
    assert_eq!(hints("searches_create"), expect(false, false, false, true));
    assert_eq!(hints("searches_cancel"), expect(false, true, true, false));
    assert_eq!(hints("manage_websets"), expect(false, true, false, true));
    assert_eq!(hints("web_search_exa"), expect(true, false, true, true));
}

#[test]
fn omits_tools_of_removed_operations() {
    let copy = DesignCopy::new();
    copy.edit("exa-search-spec.yaml", |spec| {
        spec["paths"]
            .as_object_mut()
            .unwrap()
            .shift_remove("/findSimilar")
            .unwrap();
    });
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    assert!(
        notices.contains("tool find_similar_exa: `find_similar` no longer exists"),
        "{notices}"
    );
    assert!(
        notices.contains("tool exa-sync: `find_similar` no longer exists"),
        "{notices}"
    );
    assert!(
        notices.contains("tool classic: the set contains `find_similar_exa`"),
        "{notices}"
    );
    assert!(
        !output
            .files
            .contains_key("generated/tools/find_similar_exa.json")
    );
    let table = &output.files["generated/tools.rs"];
    assert!(!table.contains("find_similar") && table.contains("answer_exa"));
}

#[test]
fn omits_removed_arguments() {
    let copy = DesignCopy::new();
    copy.edit("exa-search-overlay.yaml", |overlay| {
        overlay["actions"].as_array_mut().unwrap().push(json!({
            "target": "$.components.schemas.SearchRequest.properties.moderation", "remove": true}));
    });
    let output = copy.generate().unwrap();
    let text = &output.files["generated/tools/web_search_advanced_exa.json"];
    let tool: Value = serde_json::from_str(text).unwrap();
    assert!(
        tool["definition"]["inputSchema"]["properties"]
            .get("moderation")
            .is_none()
    );
    let reported = output.notices.iter().any(|notice| {
        notice
            .to_string()
            .contains("`search` has no argument `moderation`")
    });
    assert!(reported, "{:?}", output.notices);
}

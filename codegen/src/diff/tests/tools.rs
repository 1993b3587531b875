//! Tools and sets, and what changes of operations do to them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{ApiSnapshot, OperationSnapshots, compare_versions, report};
use super::{lines_of, snapshot};

fn version(categories: Value, tools: Value, sets: Value) -> ApiSnapshot {
    let input = json!({"type": "object", "properties": {
        "query": {"type": "string"}, "category": {"type": "string", "enum": categories}}});
    let operation = snapshot(input, json!({}));
    let tools: BTreeMap<String, Value> = serde_json::from_value(tools).unwrap();
    ApiSnapshot {
        operations: OperationSnapshots::from([("search".to_owned(), operation)]),
        tools: Some(tools),
        sets: Some(serde_json::from_value(sets).unwrap()),
        commands: None,
    }
}

fn tool(name: &str, description: &str, fixed: Value, tokens: u32) -> Value {
    json!({
        "definition": {"name": name, "title": "T", "description": description, "annotations": {},
            "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}},
        "plan": {"kind": "named", "operation": "search", "fixed": fixed, "defaults": {}, "levels": {}},
        "tokens": tokens,
    })
}

#[test]
fn tells_what_a_lost_value_does_to_a_tool() {
    let name = "company_research_exa";
    let old = version(
        json!(["company", "news"]),
        json!({name: tool(name, "D", json!({"category": "company"}), 100)}),
        json!({}),
    );
    let new = version(
        json!(["news"]),
        json!({name: tool(name, "D", json!({}), 100)}),
        json!({}),
    );
    let changes = compare_versions(&old, &new);
    assert_eq!(
        lines_of(&changes),
        [
            "breaking argument category: enum values removed: `company`",
            "breaking tool: no longer sends `category` as a fixed value: value `company` is gone from `category`, \
             which has `news`",
        ]
    );
    let text = report(&changes);
    assert!(text.contains("## `search`\n\n- **breaking**"), "{text}");
    assert!(
        text.contains("## Tool `company_research_exa`\n\n- **breaking** `company_research_exa` tool: no longer sends"),
        "{text}"
    );
}

#[test]
fn added_removed_and_changed_tools_and_sets_are_reported() {
    let old = version(
        json!(["news"]),
        json!({
            "kept": tool("kept", "Old words", json!({}), 100),
            "gone": tool("gone", "D", json!({}), 50),
        }),
        json!({"default": ["kept", "gone"], "classic": ["kept"]}),
    );
    let new = version(
        json!(["news"]),
        json!({
            "kept": tool("kept", "New words", json!({}), 120),
            "fresh": tool("fresh", "D", json!({}), 30),
        }),
        json!({"default": ["kept", "fresh"], "all": ["kept"]}),
    );
    let changes = compare_versions(&old, &new);
    let named: Vec<String> = changes
        .iter()
        .map(|it| {
            format!(
                "{} {} {}: {}",
                it.impact,
                it.operation,
                it.subject.as_str(),
                it.text
            )
        })
        .collect();
    assert_eq!(
        named,
        [
            "compatible fresh tool: added (30 tokens)",
            "breaking gone tool: removed",
            "documentation kept tool: description “Old words” → “New words”",
            "documentation kept tool: tokens 100 → 120",
            "compatible all set: added (1 tools, 120 tokens)",
            "breaking classic set: removed",
            "breaking default set: no longer contains `gone`",
            "compatible default set: now contains `fresh`",
        ]
    );
}

#[test]
fn versions_without_tools_are_compared_by_their_operations() {
    let old = ApiSnapshot::default();
    let new = version(json!(["news"]), json!({}), json!({"default": []}));
    assert_eq!(compare_versions(&old, &new).len(), 1);
}

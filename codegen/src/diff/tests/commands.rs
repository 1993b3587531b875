//! Commands of the command line.

use serde_json::{Value, json};

use super::super::{ApiSnapshot, OperationSnapshots, compare_versions, report};
use super::{lines_of, snapshot};

fn version(categories: Value, plan: Value) -> ApiSnapshot {
    let input = json!({"type": "object", "properties": {
        "query": {"type": "string"}, "limit": {"type": "integer"},
        "category": {"type": "string", "enum": categories}}});
    ApiSnapshot {
        operations: OperationSnapshots::from([("search".to_owned(), snapshot(input, json!({})))]),
        commands: Some(json!({"plans": [plan]})),
        ..ApiSnapshot::default()
    }
}

fn plan() -> Value {
    json!({
        "name": "find",
        "about": "Find pages",
        "operation": "search",
        "arguments": [{"name": "query", "to": "query", "takes": "words", "required": true, "help": "What"}],
        "flags": [{"name": "limit", "short": "n", "to": "limit", "takes": "number", "help": "How many"}],
        "fixed": {"category": "company"},
        "defaults": [{"path": "limit", "value": 10}],
        "columns": [{"title": "Title", "paths": ["title"]}],
        "wait": true,
        "example": "banks",
    })
}

/// Returns the changes after one edit of the command.
#[track_caller]
fn changes_after(edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut edited = plan();
    edit(&mut edited);
    assert_ne!(edited, plan());
    let kinds = || json!(["company", "news"]);
    lines_of(&compare_versions(
        &version(kinds(), plan()),
        &version(kinds(), edited),
    ))
}

#[test]
fn equal_commands_have_no_changes() {
    let kinds = || json!(["company", "news"]);
    assert_eq!(
        compare_versions(&version(kinds(), plan()), &version(kinds(), plan())),
        []
    );
}

#[test]
fn changes_that_scripts_notice_are_breaking() {
    for (pointer, value, expected) in [
        (
            "/operation",
            json!("answer"),
            "calls `answer` instead of `search`",
        ),
        ("/arguments", json!([]), "argument 1 (`query`) removed"),
        (
            "/arguments/0/to",
            json!("category"),
            "argument 1 sets `category` instead of `query`",
        ),
        ("/flags", json!([]), "flag `--limit` removed"),
        (
            "/flags/0/takes",
            json!("text"),
            "flag `--limit` takes `text` instead of `number`",
        ),
        (
            "/flags/0/required",
            json!(true),
            "flag `--limit` is now required",
        ),
        (
            "/fixed/category",
            json!("news"),
            "a fixed value `category` `company` → `news`",
        ),
        ("/defaults", json!([]), "a default `limit` 10 → none"),
        (
            "/wait",
            json!(false),
            "no longer waits for the end of the work",
        ),
    ] {
        let changes = changes_after(|plan| set(plan, pointer, value));
        assert_eq!(changes, [format!("breaking command: {expected}")]);
    }
    let changes = changes_after(|plan| {
        plan["flags"][0]["short"] = json!("l");
    });
    assert_eq!(
        changes,
        [
            "breaking command: flag `--limit`: short form `-n` removed",
            "compatible command: flag `--limit`: short form `-l` added",
        ]
    );
}

/// Sets the value at a pointer, which need not exist.
fn set(plan: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    plan.pointer_mut(parent).unwrap()[name] = value;
}

#[test]
fn additions_and_output_are_compatible() {
    let flag = |required: bool| json!({"name": "kind", "to": "category", "takes": "text", "required": required});
    let changes = changes_after(|plan| plan["flags"].as_array_mut().unwrap().push(flag(false)));
    assert_eq!(changes, ["compatible command: flag `--kind` added"]);
    let changes = changes_after(|plan| plan["flags"].as_array_mut().unwrap().push(flag(true)));
    assert_eq!(
        changes,
        ["breaking command: flag `--kind` added, and is required"]
    );
    let changes = changes_after(|plan| plan["columns"] = json!([]));
    assert_eq!(changes, ["compatible command: columns `Title` → none"]);
    let changes = changes_after(|plan| plan["columns"][0]["paths"] = json!(["name"]));
    assert_eq!(changes, ["compatible command: columns show other fields"]);
    let changes = changes_after(|plan| plan["all"] = json!(true));
    assert_eq!(changes, ["compatible command: now reads all pages"]);
}

#[test]
fn texts_and_offered_values_are_documentation() {
    let changes = changes_after(|plan| {
        plan["about"] = json!("Find companies");
        plan["flags"][0]["help"] = json!("At most");
        plan["flags"][0]["values"] = json!(["1", "2"]);
    });
    assert_eq!(
        changes,
        [
            "documentation command: flag `--limit`: help “How many” → “At most”",
            "documentation command: flag `--limit`: offered values none → `[\"1\",\"2\"]`",
            "documentation command: description “Find pages” → “Find companies”",
        ]
    );
}

#[test]
fn says_what_a_lost_value_does_to_a_command() {
    let mut after = plan();
    after["fixed"] = json!({});
    let old = version(json!(["company", "news"]), plan());
    let new = version(json!(["news"]), after);
    let changes = compare_versions(&old, &new);
    assert_eq!(
        lines_of(&changes),
        [
            "breaking argument category: enum values removed: `company`",
            "breaking command: no longer sends `category` as a fixed value: value `company` is gone from `category`, \
             which has `news`",
        ]
    );
    let text = report(&changes);
    let heading = "## Command `find`\n\n- **breaking** `find` command: no longer sends";
    assert!(text.contains(heading), "{text}");
}

#[test]
fn added_and_removed_commands_are_reported() {
    let old = version(json!(["company"]), plan());
    let mut new = version(json!(["company"]), plan());
    let mut other = plan();
    other["name"] = json!("look");
    new.commands = Some(json!({"plans": [other], "account": "teams.me"}));
    let gone = ApiSnapshot {
        commands: new.commands.clone(),
        ..ApiSnapshot::default()
    };
    let named = |changes: &[crate::diff::ApiChange]| -> Vec<String> {
        let commands = changes
            .iter()
            .filter(|change| change.subject.as_str() == "command");
        commands
            .map(|change| format!("{} {}: {}", change.impact, change.operation, change.text))
            .collect()
    };
    assert_eq!(
        named(&compare_versions(&old, &new)),
        [
            "breaking find: removed",
            "compatible look: added",
            "compatible whoami: added",
        ]
    );
    assert_eq!(
        named(&compare_versions(&old, &gone)),
        [
            "breaking find: removed: operation `search` is gone",
            "compatible look: added",
            "compatible whoami: added",
        ]
    );
    // A version whose commands are not known has no changes of them.
    assert!(named(&compare_versions(&ApiSnapshot::default(), &old)).is_empty());
}

#[test]
fn batches_accounts_and_groups_are_compared() {
    let with = |commands: Value| ApiSnapshot {
        commands: Some(commands),
        ..ApiSnapshot::default()
    };
    let old = json!({"plans": [], "groups": {"sets": "Old"}, "account": "teams.me", "batch": {"operation": "search"}});
    let new = json!({"plans": [], "groups": {"sets": "New"}, "account": "me", "batch": {"operation": "answer"}});
    let changes = compare_versions(&with(old.clone()), &with(new));
    assert_eq!(
        lines_of(&changes),
        [
            "breaking command: the calls that it makes: `{\"operation\":\"search\"}` → `{\"operation\":\"answer\"}`",
            "breaking command: the operation that it calls: `teams.me` → `me`",
            "documentation command: description “Old” → “New”",
        ]
    );
    let changes = compare_versions(&with(old), &with(json!({"plans": []})));
    assert_eq!(
        lines_of(&changes),
        ["breaking command: removed", "breaking command: removed"]
    );
}

//! Operations: added, removed, renamed and changed.

use super::super::{OperationSnapshots, compare};
use super::{changes_between, lines_of, snapshot};
use serde_json::{Value, json};

fn base() -> Value {
    snapshot(json!({}), json!({}))
}

fn changed(key: &str, value: Value) -> Value {
    let mut result = base();
    if let Value::Object(fields) = &mut result {
        fields.insert(key.to_owned(), value);
    }
    result
}

fn named(name: &str, snapshot: Value) -> OperationSnapshots {
    OperationSnapshots::from([(name.to_owned(), snapshot)])
}

const ROUTE: &str = "`GET /websets/v0/websets/{webset}/items`";

#[test]
fn an_added_operation_is_compatible() {
    let changes = compare(&OperationSnapshots::new(), &named("a.get", base()));
    assert_eq!(lines_of(&changes), [format!("compatible: added ({ROUTE})")]);
}

#[test]
fn a_removed_operation_is_breaking() {
    let changes = compare(&named("a.get", base()), &OperationSnapshots::new());
    assert_eq!(lines_of(&changes), [format!("breaking: removed ({ROUTE})")]);
}

#[test]
fn a_renamed_operation_is_breaking_and_compared() {
    let mut after = changed("path", json!("/websets/v0/websets/{id}/items"));
    if let Value::Object(fields) = &mut after {
        fields.insert(
            "inputSchema".to_owned(),
            super::with_x(json!({"type": "string"})),
        );
    }
    let changes = compare(&named("a.get", base()), &named("b.get", after));
    assert!(changes.iter().all(|change| change.operation == "b.get"));
    assert_eq!(
        lines_of(&changes),
        [
            "breaking: renamed from `a.get` to `b.get`".to_owned(),
            format!(
                "compatible: path {ROUTE} → `/websets/v0/websets/{{id}}/items` \
                 (no effect on callers)"
            )
            .replace("GET ", ""),
            "compatible argument x: added, optional (string)".to_owned(),
        ]
    );
}

#[test]
fn a_rename_needs_one_candidate_in_the_same_api() {
    let other_api = changed("api", json!("search"));
    let changes = compare(&named("a.get", base()), &named("b.get", other_api));
    assert_eq!(changes.len(), 2, "{changes:?}");

    let mut two = named("b.get", base());
    two.insert("c.get".to_owned(), base());
    let changes = compare(&named("a.get", base()), &two);
    assert_eq!(changes.len(), 3, "{changes:?}");
}

#[test]
fn method_and_path_changes_are_compatible() {
    assert_eq!(
        changes_between(base(), changed("method", json!("POST"))),
        ["compatible: method `GET` → `POST` (no effect on callers)"]
    );
    assert_eq!(
        changes_between(changed("path", json!("/a")), changed("path", json!("/b"))),
        ["compatible: path `/a` → `/b` (no effect on callers)"]
    );
}

#[test]
fn summary_and_description_changes_are_documentation() {
    assert_eq!(
        changes_between(base(), changed("summary", json!("List all"))),
        ["documentation: summary “List items” → “List all”"]
    );
    assert_eq!(
        changes_between(base(), changed("description", json!("All | `items`"))),
        ["documentation: description added: “All \\| \\`items\\`”"]
    );
}

#[test]
fn deprecation_is_documentation() {
    let deprecated = changed("deprecated", json!(true));
    assert_eq!(
        changes_between(base(), deprecated.clone()),
        ["documentation: deprecated"]
    );
    assert_eq!(
        changes_between(deprecated, base()),
        ["documentation: no longer deprecated"]
    );
}

#[test]
fn long_running_and_timeout_changes_are_compatible() {
    assert_eq!(
        changes_between(base(), changed("timeoutSeconds", json!(120))),
        ["compatible: timeoutSeconds 60 → 120"]
    );
    assert_eq!(
        changes_between(base(), changed("longRunning", json!({"poll": "items.get"}))),
        ["compatible: longRunning none → `{\"poll\":\"items.get\"}`"]
    );
}

#[test]
fn reports_changes_of_unknown_settings() {
    assert_eq!(
        changes_between(base(), changed("pagination", json!("cursor"))),
        ["compatible: pagination none → `cursor`"]
    );
}

//! Operations as a whole.

use super::super::{Catalogue, compare};
use super::{between, snapshot, told};
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

fn named(name: &str, snapshot: Value) -> Catalogue {
    Catalogue::from([(name.to_owned(), snapshot)])
}

const ROUTE: &str = "`GET /websets/v0/websets/{webset}/items`";

#[test]
fn added_is_compatible() {
    let changes = compare(&Catalogue::new(), &named("a.get", base()));
    assert_eq!(told(&changes), [format!("compatible: added ({ROUTE})")]);
}

#[test]
fn removed_is_breaking() {
    let changes = compare(&named("a.get", base()), &Catalogue::new());
    assert_eq!(told(&changes), [format!("breaking: removed ({ROUTE})")]);
}

#[test]
fn renamed_is_breaking_and_compared() {
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
        told(&changes),
        [
            "breaking: renamed from `a.get` to `b.get`".to_owned(),
            format!(
                "compatible: path {ROUTE} → `/websets/v0/websets/{{id}}/items` \
                 (callers notice nothing)"
            )
            .replace("GET ", ""),
            "compatible argument x: added, optional (string)".to_owned(),
        ]
    );
}

#[test]
fn renaming_needs_one_candidate_and_the_same_api() {
    let other_api = changed("api", json!("search"));
    let changes = compare(&named("a.get", base()), &named("b.get", other_api));
    assert_eq!(changes.len(), 2, "{changes:?}");

    let mut two = named("b.get", base());
    two.insert("c.get".to_owned(), base());
    let changes = compare(&named("a.get", base()), &two);
    assert_eq!(changes.len(), 3, "{changes:?}");
}

#[test]
fn method_and_path_are_compatible() {
    assert_eq!(
        between(base(), changed("method", json!("POST"))),
        ["compatible: method `GET` → `POST` (callers notice nothing)"]
    );
    assert_eq!(
        between(changed("path", json!("/a")), changed("path", json!("/b"))),
        ["compatible: path `/a` → `/b` (callers notice nothing)"]
    );
}

#[test]
fn summary_and_description_are_documentation() {
    assert_eq!(
        between(base(), changed("summary", json!("List all"))),
        ["documentation: summary “List items” → “List all”"]
    );
    assert_eq!(
        between(base(), changed("description", json!("All | `items`"))),
        ["documentation: description added: “All \\| \\`items\\`”"]
    );
}

#[test]
fn deprecation_is_documentation() {
    let deprecated = changed("deprecated", json!(true));
    assert_eq!(
        between(base(), deprecated.clone()),
        ["documentation: deprecated"]
    );
    assert_eq!(
        between(deprecated, base()),
        ["documentation: no longer deprecated"]
    );
}

#[test]
fn long_running_and_timeout_are_compatible() {
    assert_eq!(
        between(base(), changed("timeoutSeconds", json!(120))),
        ["compatible: timeoutSeconds 60 → 120"]
    );
    assert_eq!(
        between(base(), changed("longRunning", json!({"poll": "items.get"}))),
        ["compatible: longRunning none → `{\"poll\":\"items.get\"}`"]
    );
}

#[test]
fn unknown_settings_are_not_overlooked() {
    assert_eq!(
        between(base(), changed("pagination", json!("cursor"))),
        ["compatible: pagination none → `cursor`"]
    );
}

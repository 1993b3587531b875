//! Messages about rejected calls.

use serde_json::json;

use super::{InputSchema, assert_rejected, run, run_with};

#[test]
fn reports_all_problems_at_once() {
    assert_rejected(
        "searches.create",
        json!({"count": 0, "query": "", "behavior": "ovveride", "recall": "maybe",
               "criteria": [{"description": "a"}, {"text": "b"}, 7, {}],
               "entity": {"type": "custom"}}),
        &[
            ("websetId", "`websetId` is required: a string"),
            ("count", "`count` must be at least 1; got 0"),
            ("query", "`query` must not be empty"),
            (
                "entity.description",
                "`entity.description` is required: a string",
            ),
            (
                "criteria[1].description",
                "`criteria[1].description` is required: a string",
            ),
            (
                "criteria[2]",
                "`criteria[2]` must be an object with `description`; got the number 7",
            ),
            (
                "criteria[3].description",
                "`criteria[3].description` is required: a string",
            ),
            (
                "recall",
                "`recall` must be true or false; got the string `maybe`",
            ),
            (
                "behavior",
                "`behavior` must be one of override, append; got `ovveride`; did you mean `override`?",
            ),
        ],
    );
}

#[test]
fn unknown_arguments_of_closed_schemas() {
    assert_rejected(
        "items.list",
        json!({"websetId": "w", "limits": 5, "xyz": 1}),
        &[
            (
                "limits",
                "there is no argument `limits`; did you mean `limit`?",
            ),
            (
                "xyz",
                "there is no argument `xyz`; it takes websetId, cursor, limit, sourceId",
            ),
        ],
    );
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let error = run_with("closed", &InputSchema::new(schema), json!({"a": 1})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no argument `a`; it takes no arguments"
    );
}

#[test]
fn missing_arguments() {
    assert_rejected(
        "get_contents",
        json!({"text": true}),
        &[("arguments", "`ids` or `urls` is required")],
    );
    assert_rejected(
        "get_contents",
        json!({"urls": ["https://exa.ai"], "ids": ["a"]}),
        &[(
            "arguments",
            "`ids` and `urls` cannot be combined; give one of them",
        )],
    );
    assert_rejected(
        "search",
        json!({"query": null}),
        &[("query", "`query` must be a string; got null")],
    );
    assert_rejected(
        "monitors.create",
        json!({"websetId": "w", "cadence": {}, "behavior": {"config": {}}}),
        &[
            ("cadence.cron", "`cadence.cron` is required: a string"),
            (
                "behavior.config.count",
                "`behavior.config.count` is required: a number",
            ),
        ],
    );
}

#[test]
fn two_names_for_one_argument() {
    assert_rejected(
        "items.list",
        json!({"websetId": "a", "id": "b"}),
        &[(
            "websetId",
            "`websetId` and `id` mean the same argument but differ",
        )],
    );
}

#[test]
fn bounds_and_lengths() {
    assert_rejected(
        "items.list",
        json!({"websetId": "w", "limit": 500, "cursor": ""}),
        &[
            ("cursor", "`cursor` must not be empty"),
            ("limit", "`limit` must be at most 100; got 500"),
        ],
    );
    assert_rejected(
        "search",
        json!({"query": "x", "additionalQueries": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"],
               "userIdentifier": "a b",
               "contents": {"livecrawlTimeout": 0}}),
        &[
            (
                "userIdentifier",
                "`userIdentifier` must match `^[A-Za-z0-9_-]+$`; got `a b`",
            ),
            (
                "additionalQueries",
                "`additionalQueries` must have at most 10 entries; got 11",
            ),
            (
                "contents.livecrawlTimeout",
                "`contents.livecrawlTimeout` must be above 0; got 0",
            ),
        ],
    );
    let long = "a".repeat(301);
    let shown = "a".repeat(80);
    assert_rejected(
        "websets.create",
        json!({"externalId": long}),
        &[(
            "externalId",
            &format!("`externalId` must have at most 300 characters; got 301: `{shown}…`"),
        )],
    );
    assert_rejected(
        "webhooks.create",
        json!({"events": [], "url": "https://exa.ai"}),
        &[("events", "`events` must have at least 1 entry; got 0")],
    );
}

#[test]
fn enum_values() {
    assert_rejected(
        "search",
        json!({"query": "x", "type": "deeep"}),
        &[(
            "type",
            "`type` must be one of instant, fast, auto, deep-lite, deep, deep-reasoning, lite; got `deeep`; did you mean `deep`?",
        )],
    );
}

#[test]
fn formats() {
    assert_rejected(
        "webhooks.create",
        json!({"events": ["webset.created"], "url": "hooks.example.com/exa"}),
        &[(
            "url",
            "`url` must be a URL that starts with http:// or https://; got `hooks.example.com/exa`; did you mean `https://hooks.example.com/exa`?",
        )],
    );
    for url in [
        "ftp://example.com",
        "https://",
        "https://a b",
        "nonsense",
        "",
    ] {
        let arguments = json!({"events": ["webset.created"], "url": url});
        assert!(run("webhooks.create", arguments).is_err(), "{url}");
    }
    assert_rejected(
        "events.list",
        json!({"createdAfter": "last week", "createdBefore": "2026-02-30"}),
        &[
            (
                "createdBefore",
                "`createdBefore` must be a date or a date-time such as `2026-01-31T09:00:00Z`; got `2026-02-30`",
            ),
            (
                "createdAfter",
                "`createdAfter` must be a date or a date-time such as `2026-01-31T09:00:00Z`; got `last week`",
            ),
        ],
    );
}

#[test]
fn counts_problems_beyond_the_limit() {
    let types = vec!["webset.creatd"; 100];
    let error = run("events.list", json!({"types": types})).unwrap_err();
    assert_eq!(error.problems.len(), 26);
    assert_eq!(error.problems[25].message, "and 75 more such problems");
}

#[test]
fn shortens_long_names_and_values() {
    let long = "x".repeat(1_000_000);
    let error = run(
        "items.list",
        json!({"websetId": "w", long.clone(): 1, "limit": long}),
    );
    let text = error.unwrap_err().to_string();
    assert!(text.len() < 1_000, "{}", text.len());
}

/// A second name for an argument that is given is neither dropped nor read as another argument.
#[test]
fn second_name_for_an_argument() {
    for (operation, arguments, path) in [
        ("answer", json!({"query": "a", "question": "b"}), "query"),
        ("search", json!({"query": "a", "q": "b"}), "query"),
        (
            "get_contents",
            json!({"urls": ["https://a.example/"], "url": "https://b.example/"}),
            "urls",
        ),
        (
            "search",
            json!({"query": "x", "startPublishedDate": "2026-01-01T00:00:00Z", "since": "2025-01-01"}),
            "startPublishedDate",
        ),
    ] {
        let error = run(operation, arguments).unwrap_err();
        assert_eq!(error.problems[0].path, path);
        assert!(error.problems[0].message.contains("but differ"), "{error}");
    }
}

//! What is said when a call is refused.

use serde_json::json;

use super::{InputSchema, refused, run, run_with};

#[test]
fn everything_is_told_at_once() {
    refused(
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
    refused(
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
    let refused = run_with("closed", &InputSchema::new(schema), json!({"a": 1})).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there is no argument `a`; none are taken"
    );
}

#[test]
fn missing_arguments() {
    refused(
        "get_contents",
        json!({"url": "https://exa.ai"}),
        &[(
            "urls",
            "`urls` is required: a list of strings; `url` was given, did you mean `urls`?",
        )],
    );
    refused(
        "search",
        json!({"query": null}),
        &[("query", "`query` must be a string; got null")],
    );
    refused(
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
    refused(
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
    refused(
        "items.list",
        json!({"websetId": "w", "limit": 500, "cursor": ""}),
        &[
            ("cursor", "`cursor` must not be empty"),
            ("limit", "`limit` must be at most 100; got 500"),
        ],
    );
    refused(
        "search",
        json!({"query": "x", "includeText": ["a", "b"], "userIdentifier": "a b",
               "contents": {"livecrawlTimeout": 0}}),
        &[
            (
                "userIdentifier",
                "`userIdentifier` must match `^[A-Za-z0-9_-]+$`; got `a b`",
            ),
            (
                "includeText",
                "`includeText` must have at most 1 entry; got 2",
            ),
            (
                "contents.livecrawlTimeout",
                "`contents.livecrawlTimeout` must be above 0; got 0",
            ),
        ],
    );
    let long = "a".repeat(301);
    let shown = "a".repeat(80);
    refused(
        "websets.create",
        json!({"externalId": long}),
        &[(
            "externalId",
            &format!("`externalId` must have at most 300 characters; got 301: `{shown}…`"),
        )],
    );
    refused(
        "webhooks.create",
        json!({"events": [], "url": "https://exa.ai"}),
        &[("events", "`events` must have at least 1 entry; got 0")],
    );
}

#[test]
fn listed_values() {
    refused(
        "search",
        json!({"query": "x", "type": "deeep"}),
        &[(
            "type",
            "`type` must be one of neural, fast, auto, deep, deep-reasoning, instant, deep-lite, lite, keyword, hybrid; got `deeep`; did you mean `deep`?",
        )],
    );
    refused(
        "imports.create",
        json!({"size": 1, "count": 1, "format": "xlsx", "entity": "company"}),
        &[("format", "`format` must be `csv`; got `xlsx`")],
    );
}

#[test]
fn formats() {
    refused(
        "webhooks.create",
        json!({"events": ["webset.created"], "url": "hooks.example.com/exa"}),
        &[(
            "url",
            "`url` must be an address that starts with http:// or https://; got `hooks.example.com/exa`; did you mean `https://hooks.example.com/exa`?",
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
    refused(
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
fn many_problems_are_counted() {
    let types = vec!["nonsense"; 100];
    let refused = run("events.list", json!({"types": types})).unwrap_err();
    assert_eq!(refused.problems.len(), 26);
    assert_eq!(refused.problems[25].text, "and 75 more such problems");
}

#[test]
fn long_names_and_values_are_cut() {
    let long = "x".repeat(1_000_000);
    let refused = run(
        "items.list",
        json!({"websetId": "w", long.clone(): 1, "limit": long}),
    );
    let text = refused.unwrap_err().to_string();
    assert!(text.len() < 1_000, "{}", text.len());
}

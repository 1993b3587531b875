//! Corrections and their notes.

use serde_json::json;

use super::{assert_corrected, assert_unchanged, run};

#[test]
fn numbers_and_texts() {
    assert_corrected(
        "items.list",
        json!({"websetId": "ws_1", "limit": "5"}),
        json!({"websetId": "ws_1", "limit": 5}),
        &["`limit`: read \"5\" as the number 5"],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "numResults": " 5.0 "}),
        json!({"query": "x", "numResults": 5}),
        &["`numResults`: read \" 5.0 \" as the number 5"],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "numResults": 5.0}),
        json!({"query": "x", "numResults": 5}),
        &["`numResults`: read 5.0 as the whole number 5"],
    );
    assert_corrected(
        "websets.get",
        json!({"websetId": 5}),
        json!({"websetId": "5"}),
        &["`websetId`: read the number 5 as the string \"5\""],
    );
    // A number type accepts fractions.
    assert_unchanged(
        "searches.create",
        json!({"websetId": "ws_1", "query": "x", "count": 5.0}),
    );
}

#[test]
fn booleans() {
    assert_corrected(
        "search",
        json!({"query": "x", "moderation": "True", "contents": {"text": "true"}}),
        json!({"query": "x", "moderation": true, "contents": {"text": true}}),
        &[
            "`moderation`: read \"True\" as true",
            "`contents.text`: read \"true\" as true",
        ],
    );
    assert_corrected(
        "websets.update",
        json!({"websetId": "ws_1", "metadata": {"active": true, "n": 7}}),
        json!({"websetId": "ws_1", "metadata": {"active": "true", "n": "7"}}),
        &[
            "`metadata.active`: read true as the string \"true\"",
            "`metadata.n`: read the number 7 as the string \"7\"",
        ],
    );
}

#[test]
fn single_values_for_lists() {
    assert_corrected(
        "get_contents",
        json!({"urls": "https://exa.ai/a,b"}),
        json!({"urls": ["https://exa.ai/a,b"]}),
        &["`urls`: put the single value into a list"],
    );
    assert_corrected(
        "get_contents",
        json!({"urls": "https://exa.ai, https://example.com"}),
        json!({"urls": ["https://exa.ai", "https://example.com"]}),
        &["`urls`: split \"https://exa.ai, https://example.com\" at the commas"],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "includeText": "bread, butter", "includeDomains": "a.com, b.org"}),
        json!({"query": "x", "includeText": ["bread, butter"], "includeDomains": ["a.com", "b.org"]}),
        &[
            "`includeText`: put the single value into a list",
            "`includeDomains`: split \"a.com, b.org\" at the commas",
        ],
    );
    assert_corrected(
        "events.list",
        json!({"types": "webset.created,WEBSET_IDLE"}),
        json!({"types": ["webset.created", "webset.idle"]}),
        &[
            "`types`: split \"webset.created,WEBSET_IDLE\" at the commas",
            "`types[1]`: read \"WEBSET_IDLE\" as \"webset.idle\"",
        ],
    );
    assert_corrected(
        "agent.monitors.entities.add",
        json!({"monitorId": "m", "entities": {"name": "Exa", "domain": "exa.ai"}}),
        json!({"monitorId": "m", "entities": [{"name": "Exa", "domain": "exa.ai"}]}),
        &["`entities`: put the single value into a list"],
    );
}

#[test]
fn json_in_texts() {
    assert_corrected(
        "websets.create",
        json!({"search": "{\"query\": \"x\", \"criteria\": \"[\\\"a\\\"]\"}"}),
        json!({"search": {"query": "x", "criteria": [{"description": "a"}]}}),
        &[
            "`search`: read the JSON text as an object",
            "`search.criteria`: read the JSON text as a list",
            "`search.criteria[0]`: read \"a\" as {\"description\":\"a\"}",
        ],
    );
    assert_corrected(
        "search",
        json!("{\"query\": \"x\"}"),
        json!({"query": "x"}),
        &["`arguments`: read the JSON text as an object"],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "contents": {"text": "{\"max_characters\": 5}"}}),
        json!({"query": "x", "contents": {"text": {"maxCharacters": 5}}}),
        &[
            "`contents.text`: read the JSON text as an object",
            "`contents.text.max_characters`: read as `maxCharacters`",
        ],
    );
}

#[test]
fn enum_values() {
    assert_corrected(
        "search",
        json!({"query": "x", "category": "Financial_Report", "type": "DEEP LITE"}),
        json!({"query": "x", "category": "financial report", "type": "deep-lite"}),
        &[
            "`category`: read \"Financial_Report\" as \"financial report\"",
            "`type`: read \"DEEP LITE\" as \"deep-lite\"",
        ],
    );
    assert_corrected(
        "searches.create",
        json!({"websetId": "w", "query": "x", "count": 1, "entity": {"Type": "COMPANY"}}),
        json!({"websetId": "w", "query": "x", "count": 1, "entity": {"type": "company"}}),
        &[
            "`entity.Type`: read as `type`",
            "`entity.type`: read \"COMPANY\" as \"company\"",
        ],
    );
}

#[test]
fn strings_as_shorthand_of_objects() {
    assert_corrected(
        "searches.create",
        json!({"websetId": "w", "query": "x", "count": 1,
               "entity": "research paper", "criteria": ["a", {"description": "b"}]}),
        json!({"websetId": "w", "query": "x", "count": 1,
               "entity": {"type": "research_paper"},
               "criteria": [{"description": "a"}, {"description": "b"}]}),
        &[
            "`entity`: read \"research paper\" as {\"type\":\"research_paper\"}",
            "`criteria[0]`: read \"a\" as {\"description\":\"a\"}",
        ],
    );
    assert_corrected(
        "searches.create",
        json!({"websetId": "w", "query": "x", "count": 1, "criteria": "one, two"}),
        json!({"websetId": "w", "query": "x", "count": 1, "criteria": [{"description": "one, two"}]}),
        &[
            "`criteria`: put the single value into a list",
            "`criteria[0]`: read \"one, two\" as {\"description\":\"one, two\"}",
        ],
    );
    assert_corrected(
        "enrichments.create",
        json!({"websetId": "w", "description": "x", "format": "options", "options": ["a", "b"]}),
        json!({"websetId": "w", "description": "x", "format": "options",
               "options": [{"label": "a"}, {"label": "b"}]}),
        &[
            "`options[0]`: read \"a\" as {\"label\":\"a\"}",
            "`options[1]`: read \"b\" as {\"label\":\"b\"}",
        ],
    );
    assert_corrected(
        "websets.preview",
        json!({"search": "AI startups"}),
        json!({"search": {"query": "AI startups"}}),
        &["`search`: read \"AI startups\" as {\"query\":\"AI startups\"}"],
    );
}

#[test]
fn nulls_and_dates() {
    assert_corrected(
        "search",
        json!({"query": "x", "userIdentifier": null, "contents": {"filterEmptyResults": null}}),
        json!({"query": "x", "contents": {}}),
        &[
            "`userIdentifier`: left out, because null is not allowed",
            "`contents.filterEmptyResults`: left out, because null is not allowed",
        ],
    );
    assert_unchanged(
        "search",
        json!({"query": "x", "numResults": null, "contents": {"text": null}}),
    );
    assert_unchanged(
        "search_monitors.update",
        json!({"monitorId": "m", "name": null, "trigger": null, "metadata": null}),
    );
    for (given, wanted) in [
        ("2026-01-05", "2026-01-05T00:00:00Z"),
        ("2026-01-05T10:30:00", "2026-01-05T10:30:00Z"),
        ("2026-01-05 10:30", "2026-01-05T10:30:00Z"),
    ] {
        assert_corrected(
            "search",
            json!({"query": "x", "startPublishedDate": given}),
            json!({"query": "x", "startPublishedDate": wanted}),
            &[&format!(
                "`startPublishedDate`: read \"{given}\" as \"{wanted}\""
            )],
        );
    }
}

#[test]
fn end_of_a_period_includes_its_last_day() {
    assert_corrected(
        "search",
        json!({"query": "x", "endPublishedDate": "2026-06-30"}),
        json!({"query": "x", "endPublishedDate": "2026-06-30T23:59:59.999Z"}),
        &["`endPublishedDate`: read \"2026-06-30\" as \"2026-06-30T23:59:59.999Z\""],
    );
}

#[test]
fn other_words_for_listed_values() {
    assert_corrected(
        "imports.create",
        json!({"csvContent": "name\nExa", "entity": {"type": "people"}}),
        json!({"csvContent": "name\nExa", "entity": {"type": "person"}}),
        &["`entity.type`: read \"people\" as \"person\""],
    );
    // Where the API accepts any text, it is sent.
    assert_unchanged(
        "search",
        json!({"query": "x", "category": "research paper"}),
    );
}

#[test]
fn counts_notes_beyond_the_limit() {
    let domains: Vec<u32> = (0..100).collect();
    let checked = run("search", json!({"query": "x", "includeDomains": domains})).unwrap();
    assert_eq!(checked.corrections.len(), 26);
    assert_eq!(checked.corrections[25], "and 75 more such notes");
}

#[test]
fn null_counts_as_no_arguments() {
    assert_corrected("websets.list", json!(null), json!({}), &[]);
}

#[test]
fn adds_constants() {
    assert_corrected(
        "monitors.create",
        json!({"websetId": "ws_1", "cadence": {"cron": "0 9 * * 1"},
            "behavior": {"config": {"count": 5}}}),
        json!({"websetId": "ws_1", "cadence": {"cron": "0 9 * * 1"},
            "behavior": {"config": {"count": 5}, "type": "search"}}),
        &["`behavior.type`: added \"search\", the only possible value"],
    );
    // In a union the constant selects the variant, so it is not guessed.
    let error = run(
        "websets.create",
        json!({"search": {"query": "q", "entity": {"description": "x"}}}),
    );
    assert!(error.is_err(), "{error:?}");
}

//! Names: other spellings, aliases, wrappers and unknown names.

use serde_json::json;

use super::{InputSchema, assert_corrected, assert_rejected, assert_unchanged, run_with};

#[test]
fn names_at_every_depth() {
    assert_corrected(
        "search",
        json!({"query": "x", "num_results": 3, "Include-Domains": ["a.com"],
               "contents": {"max_age_hours": 1, "text": {"MaxCharacters": 9}}}),
        json!({"query": "x", "numResults": 3, "includeDomains": ["a.com"],
               "contents": {"maxAgeHours": 1, "text": {"maxCharacters": 9}}}),
        &[
            "`num_results`: read as `numResults`",
            "`Include-Domains`: read as `includeDomains`",
            "`contents.max_age_hours`: read as `maxAgeHours`",
            "`contents.text.MaxCharacters`: read as `maxCharacters`",
        ],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "numResults": null, "num_results": 4, "user_location": null}),
        json!({"query": "x", "numResults": 4, "userLocation": null}),
        &[
            "`num_results`: read as `numResults`",
            "`user_location`: read as `userLocation`",
        ],
    );
    assert_corrected(
        "search",
        json!({"query": "x", "user_identifier": null}),
        json!({"query": "x"}),
        &[
            "`user_identifier`: read as `userIdentifier`",
            "`userIdentifier`: left out, because null is not allowed",
        ],
    );
    // A correctly spelt argument is not overwritten.
    assert_rejected(
        "search",
        json!({"query": "x", "numResults": 3, "num_results": 4}),
        &[(
            "num_results",
            "there is no argument `num_results`; did you mean `numResults`?",
        )],
    );
    // Names in maps are arbitrary.
    assert_unchanged(
        "websets.update",
        json!({"websetId": "ws_1", "metadata": {"Web_Set": "a"}}),
    );
    assert_unchanged(
        "search",
        json!({"query": "x", "outputSchema": {"type": "object", "properties": {"Num_Results": {}}}}),
    );
}

#[test]
fn aliases_and_wrappers() {
    assert_corrected(
        "items.list",
        json!({"id": "ws_1"}),
        json!({"websetId": "ws_1"}),
        &["`id`: read as `websetId`"],
    );
    assert_corrected(
        "items.list",
        json!({"limit": 5, "WEBSET": "ws_1"}),
        json!({"limit": 5, "websetId": "ws_1"}),
        &["`WEBSET`: read as `websetId`"],
    );
    assert_corrected(
        "items.list",
        json!({"webset_id": "ws_1", "id": null}),
        json!({"websetId": "ws_1"}),
        &[
            "`id`: left out, because null is not allowed",
            "`webset_id`: read as `websetId`",
        ],
    );
    assert_corrected(
        "items.list",
        json!({"websetId": "ws_1", "id": "ws_1"}),
        json!({"websetId": "ws_1"}),
        &["`id`: read as `websetId`"],
    );
    assert_corrected(
        "items.list",
        json!({"websetId": null, "id": "ws_1"}),
        json!({"websetId": "ws_1"}),
        &["`id`: read as `websetId`"],
    );
    for wrapper in ["args", "params", "arguments", "body"] {
        let note = format!("`{wrapper}`: took the arguments out of it");
        assert_corrected(
            "websets.create",
            json!({wrapper: {"externalId": "a"}}),
            json!({"externalId": "a"}),
            &[&note],
        );
    }
    assert_corrected(
        "items.list",
        json!({"args": {"params": "{\"id\": \"ws_1\"}"}}),
        json!({"websetId": "ws_1"}),
        &[
            "`args`: took the arguments out of it",
            "`params`: took the arguments out of it",
            "`id`: read as `websetId`",
        ],
    );
    // A declared property of that name is not a wrapper.
    let schema = json!({"type": "object", "properties": {"body": {"type": "object"}}});
    let checked = run_with(
        "own.body",
        &InputSchema::new(schema),
        json!({"body": {"a": 1}}),
    )
    .unwrap();
    assert_eq!(checked.corrections, Vec::<String>::new());
}

#[test]
fn unknown_names_in_open_schemas() {
    // An unknown name may be new in the API.
    let new = json!({"query": "x", "somethingNew": {"a": [1]}, "contents": {"brandNew": 1}});
    assert_corrected(
        "search",
        new.clone(),
        new,
        &[
            "`somethingNew` is not in the spec; it was sent as it is",
            "`contents.brandNew` is not in the spec; it was sent as it is",
        ],
    );
    // A misspelled or misplaced name is an error, because Exa would silently ignore it.
    for (operation, call, name, meant) in [
        (
            "search",
            json!({"query": "x", "querry": "y"}),
            "querry",
            "query",
        ),
        (
            "search",
            json!({"query": "x", "highlights": "y"}),
            "highlights",
            "contents.highlights",
        ),
        (
            "websets.create",
            json!({"query": "x"}),
            "query",
            "search.query",
        ),
        (
            "websets.create",
            json!({"search": {"query": "x", "coutn": 5}}),
            "search.coutn",
            "count",
        ),
        (
            "searches.create",
            json!({"websetId": "w", "query": "x", "count": 1, "behaviour": "append"}),
            "behaviour",
            "behavior",
        ),
    ] {
        let problem = format!("there is no argument `{name}`; did you mean `{meant}`?");
        assert_rejected(operation, call, &[(name, &problem)]);
    }
    // A misspelled required argument is reported once.
    assert_rejected(
        "search",
        json!({"querry": "x", "numResult": 500}),
        &[
            (
                "query",
                "`query` is required: a string; `querry` was given, did you mean `query`?",
            ),
            (
                "numResult",
                "there is no argument `numResult`; did you mean `numResults`?",
            ),
        ],
    );
}

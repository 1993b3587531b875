//! Messages about values of the wrong type.

use serde_json::{Value, json};

use super::assert_rejected;

#[test]
fn explains_unions_by_the_closest_variant() {
    let entity =
        |entity: Value| json!({"websetId": "w", "query": "x", "count": 1, "entity": entity});
    let types = "one of company, person, article, research_paper, custom";
    assert_rejected(
        "searches.create",
        entity(json!({"type": "compny"})),
        &[(
            "entity.type",
            &format!("`entity.type` must be {types}; got `compny`; did you mean `company`?"),
        )],
    );
    assert_rejected(
        "searches.create",
        entity(json!({"description": "databases"})),
        &[(
            "entity.type",
            &format!("`entity.type` is required: {types}"),
        )],
    );
    assert_rejected(
        "searches.create",
        entity(json!("compnay")),
        &[(
            "entity",
            &format!(
                "`entity` must be an object whose `type` is {types}; got the string `compnay`; did you mean `company`?"
            ),
        )],
    );
    assert_rejected(
        "searches.create",
        entity(json!({"type": "custom", "description": "x"})),
        &[(
            "entity.description",
            "`entity.description` must have at least 2 characters; got `x`",
        )],
    );
    assert_rejected(
        "search",
        json!({"query": "x", "contents": {"text": 5, "highlights": {"maxCharacters": 0}}}),
        &[
            (
                "contents.text",
                "`contents.text` must be true or false or an object; got the number 5",
            ),
            (
                "contents.highlights.maxCharacters",
                "`contents.highlights.maxCharacters` must be at least 1; got 0",
            ),
        ],
    );
}

#[test]
fn wrong_types() {
    assert_rejected(
        "search",
        json!({"query": ["a", "b"], "numResults": "many", "includeDomains": "", "contents": [1]}),
        &[
            (
                "query",
                "`query` must be a string; got the list `[\"a\",\"b\"]`",
            ),
            (
                "numResults",
                "`numResults` must be a whole number; got the string `many`",
            ),
            (
                "includeDomains",
                "`includeDomains` must be a list of strings; got an empty string",
            ),
            (
                "contents",
                "`contents` must be an object; got the list `[1]`",
            ),
        ],
    );
    assert_rejected(
        "search",
        json!({"query": true}),
        &[("query", "`query` must be a string; got true")],
    );
    // Truncated JSON is neither an entry nor a shorthand.
    assert_rejected(
        "websets.create",
        json!({"search": "{\"query\": \"x\"", "enrichments": "[\"a\""}),
        &[
            (
                "search",
                "`search` must be an object with `query`; got the string `{\"query\": \"x\"`",
            ),
            (
                "enrichments",
                "`enrichments` must be a list of objects; got the string `[\"a\"`",
            ),
        ],
    );
}

#[test]
fn arguments_that_are_not_an_object() {
    for (given, shown) in [
        (json!([1]), "the list `[1]`"),
        (json!("hello"), "the string `hello`"),
        (json!(7), "the number 7"),
        (json!(true), "true"),
    ] {
        let text = format!("the arguments must be an object; got {shown}");
        assert_rejected("search", given, &[("arguments", &text)]);
    }
}

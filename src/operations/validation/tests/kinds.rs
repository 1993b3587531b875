//! What is said about values of the wrong kind.

use serde_json::{Value, json};

use super::refused;

#[test]
fn unions_are_explained_by_the_closest_form() {
    let entity =
        |entity: Value| json!({"websetId": "w", "query": "x", "count": 1, "entity": entity});
    let types = "one of company, person, article, research_paper, custom";
    refused(
        "searches.create",
        entity(json!({"type": "compny"})),
        &[(
            "entity.type",
            &format!("`entity.type` must be {types}; got `compny`; did you mean `company`?"),
        )],
    );
    refused(
        "searches.create",
        entity(json!({"description": "databases"})),
        &[(
            "entity.type",
            &format!("`entity.type` is required: {types}"),
        )],
    );
    refused(
        "searches.create",
        entity(json!("compnay")),
        &[(
            "entity",
            &format!(
                "`entity` must be an object whose `type` is {types}; got the string `compnay`; did you mean `company`?"
            ),
        )],
    );
    refused(
        "searches.create",
        entity(json!({"type": "custom", "description": "x"})),
        &[(
            "entity.description",
            "`entity.description` must have at least 2 characters; got `x`",
        )],
    );
    refused(
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
fn kinds() {
    refused(
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
    refused(
        "search",
        json!({"query": true}),
        &[("query", "`query` must be a string; got true")],
    );
    // JSON that was cut off is neither an entry nor a shorthand.
    refused(
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
fn arguments_that_are_no_object() {
    for (given, shown) in [
        (json!([1]), "the list `[1]`"),
        (json!("hello"), "the string `hello`"),
        (json!(7), "the number 7"),
        (json!(true), "true"),
    ] {
        let text = format!("the arguments must be an object; got {shown}");
        refused("search", given, &[("arguments", &text)]);
    }
}

//! Enum values that the specs do not list.

use serde_json::{Value, json};

use super::{InputSchema, run, run_with};

/// Asserts that arguments are sent as they are, with one note about each of these values.
#[track_caller]
fn assert_sent(operation: &str, given: Value, values: &[(&str, &str)]) {
    let validated = run(operation, given.clone());
    let validated = validated.unwrap_or_else(|error| panic!("{given} was rejected: {error}"));
    assert_eq!(Value::Object(validated.arguments), given);
    let starts = values
        .iter()
        .map(|(path, value)| format!("`{path}`: `{value}` is not a known value ("));
    for (note, start) in validated.corrections.iter().zip(starts) {
        assert!(note.starts_with(&start), "{note}");
        assert!(note.ends_with("; it was sent as it is"), "{note}");
    }
    assert_eq!(validated.corrections.len(), values.len());
}

#[track_caller]
fn assert_rejected(operation: &str, given: Value, part: &str) {
    match run(operation, given.clone()) {
        Ok(validated) => panic!("{given} was accepted: {validated:?}"),
        Err(error) => assert!(error.to_string().contains(part), "{error}"),
    }
}

#[test]
fn plausible_values_are_sent_with_a_note() {
    assert_sent(
        "search",
        json!({"query": "x", "type": "quantum"}),
        &[("type", "quantum")],
    );
    let validated = run("search", json!({"query": "x", "type": "quantum"})).unwrap();
    let [note] = validated.corrections.as_slice() else {
        panic!("{validated:?}")
    };
    assert!(note.contains("auto") && note.contains("deep"), "{note}");
}

#[test]
fn nested_values_and_lists_are_open_too() {
    assert_sent(
        "websets.create",
        json!({"search": {"query": "x"}, "enrichments": [
            {"description": "a", "format": "text"}, {"description": "b", "format": "rating"}]}),
        &[("enrichments[1].format", "rating")],
    );
    assert_sent(
        "webhooks.create",
        json!({"url": "https://a.example", "events": ["webset.created", "billing.exhausted"]}),
        &[("events[1]", "billing.exhausted")],
    );
}

#[test]
fn misspelled_values_are_not_sent() {
    for (operation, given) in [
        ("search", json!({"query": "x", "type": "deeep"})),
        ("search", json!({"query": "x", "type": "insatnt"})),
        (
            "webhooks.create",
            json!({"url": "https://a.example", "events": ["webset.creatd"]}),
        ),
    ] {
        assert_rejected(operation, given, "did you mean");
    }
    let corrected = run("search", json!({"query": "x", "type": "AUTO"})).unwrap();
    assert_eq!(corrected.arguments["type"], "auto");
}

/// The API takes other texts as hints, so only the spelling of a listed value is corrected.
#[test]
fn texts_beside_listed_values_are_sent() {
    let search = |category: &str| json!({"query": "x", "category": category});
    let note = |given: &str, meant: &str| {
        format!(
            "`category`: `{given}` is not a known value; did you mean `{meant}`? It was sent as it is"
        )
    };
    for (given, sent, notes) in [
        ("company", "company", vec![]),
        ("github", "github", vec![]),
        ("research paper", "research paper", vec![]),
        ("the history of tea", "the history of tea", vec![]),
        (
            "Company",
            "company",
            vec!["`category`: read \"Company\" as \"company\"".to_owned()],
        ),
        (
            "personal-site",
            "personal site",
            vec!["`category`: read \"personal-site\" as \"personal site\"".to_owned()],
        ),
        ("compnay", "compnay", vec![note("compnay", "company")]),
        (
            "financial reports",
            "financial reports",
            vec![note("financial reports", "financial report")],
        ),
    ] {
        let validated = run("search", search(given)).unwrap();
        assert_eq!(Value::Object(validated.arguments), search(sent));
        assert_eq!(validated.corrections, notes, "{given}");
    }
    // Beside a value that is invalid as well.
    let mut both = search("Company");
    both["numResults"] = json!("5");
    let validated = run("search", both).unwrap();
    assert_eq!(
        Value::Object(validated.arguments),
        json!({"query": "x", "category": "company", "numResults": 5})
    );
    assert_eq!(
        validated.corrections.len(),
        2,
        "{:?}",
        validated.corrections
    );
}

#[test]
fn values_of_another_type_or_form_are_rejected() {
    for value in [
        json!(5),
        json!(true),
        json!(["auto"]),
        json!({}),
        json!(""),
        json!("a b c"),
    ] {
        let given = json!({"query": "x", "type": value});
        assert_rejected("search", given, "`type` must be");
    }
}

/// Nobody knows the fields of a new variant, so it is sent as it is; those of a known variant are checked.
#[test]
fn new_variants_of_unions_are_sent() {
    let search =
        |entity: Value| json!({"websetId": "w", "query": "x", "count": 1, "entity": entity});
    assert_sent(
        "searches.create",
        search(json!({"type": "podcast", "language": "de"})),
        &[("entity.type", "podcast")],
    );
    assert_rejected(
        "searches.create",
        search(json!({"type": "compnay"})),
        "did you mean `company`?",
    );
    assert_rejected(
        "searches.create",
        search(json!({"type": "custom"})),
        "entity.description",
    );
    assert_rejected(
        "searches.create",
        search(json!({})),
        "`entity.type` is required",
    );
    assert_rejected("searches.create", search(json!(7)), "must be an object");
}

#[test]
fn lists_of_a_union_are_one_list() {
    let schema = json!({"type": "object", "properties": {"crawl": {"anyOf": [
        {"type": "string", "enum": ["never", "always"]}, {"type": "string", "const": "auto"},
        {"type": "integer"}]}}});
    let schema = InputSchema::new(schema);
    let run = |crawl: Value| run_with("union", &schema, json!({"crawl": crawl}));
    let validated = run(json!("weekly")).unwrap();
    assert_eq!(
        validated.corrections,
        [
            "`crawl`: `weekly` is not a known value (one of never, always, auto); it was sent as it is"
        ]
    );
    for (given, meant) in [("neer", "never"), ("auot", "auto")] {
        let error = run(json!(given)).unwrap_err().to_string();
        let expected = format!("did you mean `{meant}`?");
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(run(json!("Never")).unwrap().arguments["crawl"], "never");
}

#[test]
fn variants_without_a_tag_are_open() {
    let schema = json!({"type": "object", "properties": {"text": {"anyOf": [
        {"type": "boolean"},
        {"type": "object", "required": ["size"], "properties": {
            "verbosity": {"type": "string", "enum": ["compact", "full"]},
            "size": {"type": "integer", "enum": [1, 2]}}}]}}});
    let schema = InputSchema::new(schema);
    let run = |text: Value| run_with("union", &schema, json!({"text": text}));
    let validated = run(json!({"verbosity": "outline", "size": 3})).unwrap();
    assert_eq!(validated.corrections.len(), 2, "{validated:?}");
    assert!(run(json!({"verbosity": "outline"})).is_err());
    assert!(run(json!({"verbosity": "outline", "size": "big"})).is_err());
    assert!(run(json!("outline")).is_err());
}

//! The requests of the search tools.

use serde_json::{Value, json};

use super::Fixture;

const SEARCH: &str = "POST /search";

/// Returns the body that most tools send for a query: text is included in the price, and is there for later.
fn body(query: &str, more: Value) -> Value {
    let mut body = json!({"query": query, "contents": {"highlights": true, "text": true}});
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[test]
fn web_search() {
    let mut fixture = Fixture::start();
    let usual = json!({"numResults": 10, "type": "auto"});
    fixture.assert_sends(
        "web_search_exa",
        json!({"query": "heat pumps"}),
        SEARCH,
        body("heat pumps", usual),
    );
    let three = json!({"numResults": 3, "type": "auto"});
    let call = json!({"query": "heat pumps", "numResults": 3});
    fixture.assert_sends("web_search_exa", call, SEARCH, body("heat pumps", three));
}

#[test]
fn category_is_extracted_from_the_query() {
    let mut fixture = Fixture::start();
    for (given, query, category) in [
        ("category:news fusion", "fusion", "news"),
        ("fusion category:company", "fusion", "company"),
        (
            "fusion category:\"personal site\" blog",
            "fusion blog",
            "personal site",
        ),
        (
            "Category:People engineers in Berlin",
            "engineers in Berlin",
            "people",
        ),
    ] {
        let expected = body(
            query,
            json!({"category": category, "numResults": 10, "type": "auto"}),
        );
        fixture.assert_sends("web_search_exa", json!({"query": given}), SEARCH, expected);
    }
    // An unknown category stays part of the query.
    for query in [
        "category:cats pictures",
        "category theory",
        "subcategory:newsletter",
    ] {
        let expected = body(query, json!({"numResults": 10, "type": "auto"}));
        fixture.assert_sends("web_search_exa", json!({"query": query}), SEARCH, expected);
    }
}

#[test]
fn operation_arguments_are_passed_on() {
    let mut fixture = Fixture::start();
    let more = json!({"includeDomains": ["a.example"], "startPublishedDate": "2026-01-31T00:00:00Z",
        "category": "news", "type": "deep", "betas": ["b"]});
    let mut call = more.clone();
    call["query"] = json!("x");
    let response = fixture.server.call("web_search_exa", call).success();
    assert_eq!(response.get("corrections"), None);
    let request = fixture.recorder.only_request();
    assert_eq!(request.header("exa-beta"), ["b"]);
    let mut expected = body("x", more);
    expected["numResults"] = json!(10);
    expected.as_object_mut().expect("an object").remove("betas");
    assert_eq!(request.json(), Some(expected));
    // The argument takes precedence over a category in the query.
    let call = json!({"query": "category:news x", "category": "company"});
    let (_, body, _) = fixture.request("web_search_exa", call);
    assert_eq!(body.expect("a body")["category"], "company");
}

#[test]
fn code_company_people_and_linkedin() {
    let mut fixture = Fixture::start();
    for (tool, argument, suffix, fixed, count) in [
        (
            "get_code_context_exa",
            "query",
            "",
            json!({"type": "fast"}),
            8,
        ),
        (
            "company_research_exa",
            "companyName",
            " company",
            json!({"type": "auto", "category": "company"}),
            5,
        ),
        (
            "people_search_exa",
            "query",
            " profile",
            json!({"type": "auto", "category": "people"}),
            5,
        ),
        (
            "linkedin_search_exa",
            "query",
            " LinkedIn profile",
            json!({"type": "auto", "category": "people"}),
            5,
        ),
    ] {
        for wanted in [None, Some(7)] {
            let mut call = json!({argument: "Ada Lovelace"});
            if let Some(wanted) = wanted {
                call["numResults"] = json!(wanted);
            }
            let mut expected = body(&format!("Ada Lovelace{suffix}"), fixed.clone());
            expected["numResults"] = json!(wanted.unwrap_or(count));
            // Like its official namesake, it shows passages only.
            if tool == "get_code_context_exa" {
                expected["contents"] = json!({"highlights": true});
            }
            fixture.assert_sends(tool, call, SEARCH, expected);
        }
    }
}

#[test]
fn advanced_search_with_all_its_arguments() {
    let mut fixture = Fixture::start();
    let same = json!({
        "query": "x", "numResults": 25, "type": "fast", "category": "news",
        "includeDomains": ["a.example"], "excludeDomains": ["b.example"],
        "startPublishedDate": "2026-01-01T00:00:00Z", "endPublishedDate": "2026-02-01T00:00:00Z",
        "startCrawlDate": "2026-01-02T00:00:00Z", "endCrawlDate": "2026-02-02T00:00:00Z",
        "includeText": ["must"], "excludeText": ["not"], "userLocation": "DE", "moderation": true,
        "additionalQueries": ["y"],
    });
    let moved = json!({
        "textMaxCharacters": 100, "contextMaxCharacters": 200, "enableSummary": true,
        "summaryQuery": "s", "enableHighlights": true, "highlightsMaxCharacters": 300,
        "highlightsNumSentences": 2, "highlightsPerUrl": 4, "highlightsQuery": "h",
        "maxAgeHours": 24, "livecrawlTimeout": 5000, "subpages": 3, "subpageTarget": ["about"],
    });
    let mut call = same.clone();
    let fields = call.as_object_mut().expect("an object");
    fields.extend(moved.as_object().expect("an object").clone());
    assert_eq!(fields.len(), 28);
    let mut expected = same;
    expected["contents"] = json!({
        "text": {"maxCharacters": 100}, "context": {"maxCharacters": 200}, "summary": {"query": "s"},
        "highlights": {"maxCharacters": 300, "numSentences": 2, "highlightsPerUrl": 4, "query": "h"},
        "maxAgeHours": 24, "livecrawlTimeout": 5000, "subpages": 3, "subpageTarget": ["about"],
    });
    fixture.assert_sends("web_search_advanced_exa", call, SEARCH, expected);
}

#[test]
fn advanced_search_requests_text_by_default() {
    let mut fixture = Fixture::start();
    let tool = "web_search_advanced_exa";
    for (more, contents) in [
        (json!({}), json!({"text": {"maxCharacters": 1000}})),
        (
            json!({"enableSummary": true}),
            json!({"text": {"maxCharacters": 1000}, "summary": true}),
        ),
        (
            json!({"enableHighlights": true}),
            json!({"text": {"maxCharacters": 1000}, "highlights": true}),
        ),
        (
            json!({"enableSummary": false, "enableHighlights": false}),
            json!({"text": {"maxCharacters": 1000}}),
        ),
        (
            json!({"textMaxCharacters": 9}),
            json!({"text": {"maxCharacters": 9}}),
        ),
    ] {
        let mut call = more;
        call["query"] = json!("x");
        let expected =
            json!({"query": "x", "numResults": 10, "type": "auto", "contents": contents});
        fixture.assert_sends(tool, call, SEARCH, expected);
    }
    // Disabled means disabled, even with further options for it.
    let call = json!({"query": "x", "enableSummary": false, "summaryQuery": "s"});
    let (_, body, _) = fixture.request(tool, call);
    let text = json!({"text": {"maxCharacters": 1000}});
    assert_eq!(body.expect("a body")["contents"], text);
}

#[test]
fn deep_search() {
    let mut fixture = Fixture::start();
    let usual = body("x", json!({"numResults": 10, "type": "deep"}));
    fixture.assert_sends("deep_search_exa", json!({"objective": "x"}), SEARCH, usual);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let call = json!({"objective": "x", "search_queries": ["y", "z"], "type": "deep-reasoning",
        "numResults": 4, "highlightMaxCharacters": 50, "outputSchema": schema, "systemPrompt": "s",
        "structuredOutput": true});
    let expected = json!({"query": "x", "additionalQueries": ["y", "z"], "type": "deep-reasoning",
        "numResults": 4, "contents": {"highlights": {"maxCharacters": 50}}, "outputSchema": schema,
        "systemPrompt": "s"});
    fixture.assert_sends("deep_search_exa", call, SEARCH, expected);
    let call = json!({"objective": "x", "structuredOutput": true});
    let expected = body(
        "x",
        json!({"numResults": 10, "type": "deep", "outputSchema": {"type": "object"}}),
    );
    fixture.assert_sends("deep_search_exa", call, SEARCH, expected);
}

//! Answers cost no more tokens than those of the official server with the same information.
//!
//! `benches/tokens.mjs` compares with the server itself; this test has its layout: one field a line.

use serde_json::{Value, json};

use super::Fixture;

fn page(number: usize) -> Value {
    let url =
        format!("https://site{number}.example.com/articles/2026/{number}/heat-pumps-in-old-houses");
    json!({
        "id": url, "url": url, "title": format!("Heat pumps in old houses, part {number}"),
        "publishedDate": format!("2026-03-{:02}T08:30:00.000Z", number + 1), "author": format!("Author {number}"),
        "score": 0.345_67, "text": "The whole text goes on and on. ".repeat(100),
        "highlights": [
            format!("In part {number}, the installers measure how much heat every room of the house loses."),
            "They then choose a unit that is neither too large nor too small, and insulate the roof.",
        ],
    })
}

/// Returns the lines that the official server writes for a page.
fn official_page(page: &Value, labels: &[(&str, &str)]) -> String {
    let field = |(label, name): &(&str, &str)| match &page[*name] {
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            format!("{label}:\n{}", parts.join("\n"))
        }
        value => format!("{label}: {}", value.as_str().expect("a text")),
    };
    labels.iter().map(field).collect::<Vec<_>>().join("\n")
}

const SEARCH: [(&str, &str); 5] = [
    ("Title", "title"),
    ("URL", "url"),
    ("Published", "publishedDate"),
    ("Author", "author"),
    ("Highlights", "highlights"),
];

const CODE: [(&str, &str); 3] = [
    ("Title", "title"),
    ("URL", "url"),
    ("Code/Highlights", "highlights"),
];

#[test]
fn searches_cost_no_more_than_the_official_ones() {
    let count = |text: &str| bpe_openai::o200k_base().count(text);
    for (tool, argument, labels) in [
        ("web_search_exa", "query", &SEARCH[..]),
        ("company_research_exa", "companyName", &SEARCH[..]),
        ("people_search_exa", "query", &SEARCH[..]),
        ("get_code_context_exa", "query", &CODE[..]),
    ] {
        for size in [5, 8, 10] {
            let pages: Vec<Value> = (0..size).map(page).collect();
            let official: Vec<String> = pages
                .iter()
                .map(|page| official_page(page, labels))
                .collect();
            let official = official.join("\n\n---\n\n");
            // The code tool requests passages only.
            let results: Vec<Value> = pages
                .iter()
                .map(|page| {
                    let mut page = page.clone();
                    if tool == "get_code_context_exa" {
                        page.as_object_mut().expect("a page").remove("text");
                    }
                    page
                })
                .collect();
            let body = json!({"results": results, "costDollars": {"total": 0.007}, "requestId": "b5947044c4b78efa"});
            let mut fixture = Fixture::with_tools("classic", &body);
            let call = json!({argument: "heat pumps", "numResults": size});
            let own = fixture.server.call_raw(tool, call).text;
            for page in &pages {
                for passage in page["highlights"].as_array().expect("passages") {
                    let passage = passage.as_str().expect("a text");
                    assert!(own.contains(passage), "{own}");
                }
                assert!(
                    own.contains(page["title"].as_str().expect("a title")),
                    "{own}"
                );
                assert!(own.contains(page["url"].as_str().expect("a URL")), "{own}");
            }
            let (mine, theirs) = (count(&own), count(&official));
            assert!(mine <= theirs, "{tool} {size}: {mine} > {theirs}: {own}");
        }
    }
}

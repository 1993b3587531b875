//! Results stay within `max_tokens`: they are truncated cleanly, with links to what is left out.

use serde_json::{Value, json};

use super::consistency::{envelope_problems, missing_from_text};
use super::{Fixture, cache_id, merge, samples};

/// Returns a search response with many long results.
fn many(count: usize) -> Value {
    let page = |number: usize| {
        json!({"url": format!("https://a.example/{number}"), "title": format!("Page {number}"),
            "text": samples::long_text(&format!("topic {number}")).repeat(3)})
    };
    json!({"results": (0..count).map(page).collect::<Vec<_>>()})
}

fn tokens(structured: &Value) -> u64 {
    structured["metadata"]["tokenEstimate"]
        .as_u64()
        .expect("a number")
}

#[test]
fn default_limit_is_ten_thousand_tokens() {
    for format in ["markdown", "json"] {
        let mut fixture = Fixture::with_response(&many(40));
        let options = json!({"content_level": "full", "output_format": format});
        let outcome = fixture.search(options);
        let links = outcome.links.clone();
        let (text, structured) = outcome.into_parts();
        assert!(
            (5_000..=10_000).contains(&tokens(&structured)),
            "{}",
            tokens(&structured)
        );
        assert_eq!(envelope_problems(&structured), Vec::<String>::new());
        let returned = structured["metadata"]["returned"]
            .as_u64()
            .expect("a number");
        assert!(returned > 3 && returned < 40, "{returned}");
        assert_eq!(
            structured["metadata"]["leftOut"],
            json!({"results": 40 - returned, "from": returned + 1})
        );
        let more = structured["metadata"]["more"]
            .as_str()
            .expect("a suggested call");
        assert!(more.contains(&format!("offset {returned}")), "{more}");
        assert!(more.contains("larger max_tokens"), "{more}");
        if format == "markdown" {
            let left_out = 40 - returned;
            let line = format!("Left out: {left_out} results from {} on", returned + 1);
            assert!(text.contains(&line), "{text}");
        }
        // Omitted results have links, or one link to the whole result if there are many.
        let id = cache_id(&structured);
        assert_eq!(links.len(), 21);
        assert_eq!(
            links[0]["uri"],
            format!("exa://results/{id}/{}", returned + 1)
        );
        assert_eq!(links[0]["name"], format!("Page {returned}"));
        assert_eq!(links[20]["uri"], format!("exa://results/{id}"));
        for link in links {
            assert_eq!(link["mimeType"], "text/markdown");
        }
    }
}

#[test]
fn exact_fit_is_not_truncated() {
    for format in ["markdown", "json"] {
        let mut fixture = Fixture::with_response(&many(5));
        let view = |limit: u64| json!({"content_level": "full", "output_format": format, "max_tokens": limit});
        // The result is cached from now on, which adds the same text to each view.
        fixture.search(view(100_000)).into_parts();
        let (_, whole) = fixture.search(view(100_000)).into_parts();
        let (_, tight) = fixture.search(view(tokens(&whole))).into_parts();
        assert_eq!(tight["results"], whole["results"], "{format}");
        let (_, less) = fixture.search(view(tokens(&whole) - 1)).into_parts();
        assert!(less["metadata"]["leftOut"].is_object(), "{format}");
    }
}

/// The smallest limit is met in every format and at every level.
#[test]
fn smallest_budgets_hold() {
    let url = |number: usize| format!("https://example{number}.com/a/long/path/to/page");
    let page = |number: usize| {
        json!({"id": url(number), "url": url(number), "title": format!("A fairly long title of page {number}"),
            "publishedDate": "2024-05-01T00:00:00.000Z", "author": "Someone", "score": 0.345_678,
            "text": "Some words of it. ".repeat(400)})
    };
    let response = json!({"requestId": "30b92d3e-f7ca-4638-90d5-ae7acb27f3a7", "resolvedSearchType": "neural",
        "results": (0..10).map(page).collect::<Vec<_>>(), "costDollars": {"total": 0.008}});
    let mut fixture = Fixture::with_response(&response);
    for format in ["markdown", "json"] {
        for level in ["summary", "standard", "full"] {
            for most in [200, 220, 250, 300, 400] {
                let options =
                    json!({"output_format": format, "content_level": level, "max_tokens": most});
                let outcome = fixture.search(options.clone());
                let structured = outcome.structured.expect("structured content");
                assert!(tokens(&structured) <= most, "{options}: {structured}");
                let more = structured["metadata"]["more"]
                    .as_str()
                    .expect("a suggested call");
                assert!(
                    more.contains("offset") && more.contains("max_tokens"),
                    "{more}"
                );
            }
        }
    }
}

#[test]
fn short_results_have_no_links() {
    let mut fixture = Fixture::with_response(&samples::pages());
    for level in ["summary", "standard", "full"] {
        let outcome = fixture.search(json!({"content_level": level}));
        assert_eq!(outcome.links, Vec::<Value>::new(), "{level}");
    }
}

#[test]
fn every_limit_holds() {
    let responses = [
        many(30),
        samples::research(),
        samples::items(),
        samples::answer(),
        json!({"results": [], "context": samples::long_text("x").repeat(30)}),
    ];
    for response in responses {
        let mut fixture = Fixture::with_response(&response);
        for limit in [300, 500, 1_000, 3_000, 9_000, 100_000] {
            for format in ["markdown", "json"] {
                for level in ["summary", "standard", "full"] {
                    let options = json!({"max_tokens": limit, "output_format": format, "content_level": level});
                    let (text, structured) = fixture.search(options.clone()).into_parts();
                    assert!(
                        tokens(&structured) <= limit,
                        "{} for {options}: {text}",
                        tokens(&structured)
                    );
                    assert_eq!(
                        envelope_problems(&structured),
                        Vec::<String>::new(),
                        "{options}"
                    );
                    if format == "markdown" {
                        assert_eq!(
                            missing_from_text(&text, &structured),
                            Vec::<String>::new(),
                            "{options}"
                        );
                    }
                }
            }
        }
    }
}

/// The smallest limit leaves little more than the header, but does not fail.
#[test]
fn minimum_limit_still_shows_content() {
    let mut fixture = Fixture::with_response(&many(3));
    let (_, structured) = fixture
        .search(json!({"max_tokens": 200, "content_level": "full"}))
        .into_parts();
    assert!(tokens(&structured) <= 200, "{}", tokens(&structured));
    assert_eq!(structured["results"][0]["title"], "Page 0");
    // A limit below the size of the header is exceeded with a warning.
    let (_, structured) = fixture
        .search(json!({"max_tokens": 20, "content_level": "full"}))
        .into_parts();
    let warnings = structured["metadata"]["warnings"].to_string();
    assert!(
        warnings.contains("max_tokens 20 is too small"),
        "{warnings}"
    );
    assert!(tokens(&structured) < 300, "{}", tokens(&structured));
}

/// A single result that is too long is truncated at the end of a sentence and links to the full text.
#[test]
fn long_result_is_cut_at_a_boundary() {
    let whole = samples::long_text("heat").repeat(20);
    let page = json!({"url": "https://a.example/", "title": "T", "text": whole, "author": "A"});
    let mut fixture = Fixture::with_response(
        &json!({"results": [page, {"url": "https://b.example/", "title": "U"}]}),
    );
    let outcome = fixture.search(json!({"content_level": "full", "max_tokens": 1_000}));
    let links = outcome.links.clone();
    let (text, structured) = outcome.into_parts();
    let part = structured["results"][0]["text"].as_str().expect("a string");
    let excerpt = part.strip_suffix('…').expect("a mark where it was cut");
    assert!(whole.starts_with(excerpt), "{excerpt}");
    assert!(excerpt.ends_with('.') && excerpt.len() > 1_000, "{excerpt}");
    assert_eq!(structured["results"][0]["author"], "A");
    assert_eq!(
        structured["metadata"]["leftOut"],
        json!({"results": 1, "from": 2, "shortened": [1]})
    );
    assert!(
        text.contains("Left out: 1 results from 2 on; parts of 1\n"),
        "{text}"
    );
    let id = cache_id(&structured);
    assert_eq!(links[0]["uri"], format!("exa://results/{id}/1"));
    let options = json!({"cache_id": id, "index": 1, "max_tokens": 1_000_000});
    let (_, structured) = fixture.search(options).into_parts();
    assert_eq!(structured["results"][0]["text"].as_str(), Some(&*whole));
}

/// Following the offsets of the results returns everything once.
#[test]
fn offsets_page_through_the_whole_result() {
    let mut fixture = Fixture::with_response(&many(25));
    let (_, mut structured) = fixture
        .search(json!({"content_level": "full", "max_tokens": 5_000}))
        .into_parts();
    let mut titles = Vec::new();
    loop {
        let results = structured["results"].as_array().expect("results");
        titles.extend(results.iter().map(|result| result["title"].clone()));
        assert!(titles.len() <= 25, "{titles:?}");
        let Some(next) = structured["metadata"]["leftOut"]["from"].as_u64() else {
            break;
        };
        let next = next - 1;
        assert_eq!(next as usize, titles.len());
        let more = structured["metadata"]["more"]
            .as_str()
            .expect("a suggested call");
        assert!(more.contains(&format!("offset {next}")), "{more}");
        let view = json!({"cache_id": cache_id(&structured), "offset": next, "content_level": "full", "max_tokens": 5_000});
        structured = fixture.search(view).into_parts().1;
    }
    let all: Vec<Value> = (0..25)
        .map(|number| json!(format!("Page {number}")))
        .collect();
    assert_eq!(titles, all);
    assert_eq!(fixture.take_request_count(), 1);
}

/// With filters, offsets count filtered results, and indexes refer to the whole result.
#[test]
fn offsets_count_filtered_entries() {
    let mut response = many(30);
    for (number, page) in response["results"]
        .as_array_mut()
        .expect("pages")
        .iter_mut()
        .enumerate()
    {
        page["score"] = json!(if number % 2 == 0 { 0.9 } else { 0.1 });
    }
    let mut fixture = Fixture::with_response(&response);
    let filters = json!({"minScore": 0.5});
    let mut options = json!({"content_level": "full", "max_tokens": 4_000, "filters": filters});
    let mut titles = Vec::new();
    for _ in 0..15 {
        let (_, structured) = fixture.search(options.clone()).into_parts();
        let results = structured["results"].as_array().expect("results");
        titles.extend(results.iter().map(|result| result["title"].clone()));
        let more = structured["metadata"]["more"].as_str().unwrap_or_default();
        let offset = more
            .split("offset ")
            .nth(1)
            .and_then(|rest| rest.split([' ', ',']).next());
        let Some(offset) = offset.and_then(|offset| offset.parse::<usize>().ok()) else {
            break;
        };
        options = merge(
            options,
            &json!({"cache_id": cache_id(&structured), "offset": offset}),
        );
    }
    let even: Vec<Value> = (0..30)
        .step_by(2)
        .map(|number| json!(format!("Page {number}")))
        .collect();
    assert_eq!(titles, even);
}

/// Ten megabytes, and two of every other JSON shape.
#[test]
fn huge_response_is_handled() {
    let prose = "A sentence of some words. ".repeat(400_000);
    let word = "x".repeat(2_000_000);
    let entry = |number: usize| json!({"id": format!("i{number}"), "title": "T"});
    let field = |number: usize| (format!("field{number}"), json!("some value"));
    let mut deep = json!("end");
    for _ in 0..50 {
        deep = json!({"a": [deep, "filler ".repeat(6_000)]});
    }
    let responses = [
        json!({"results": [{"url": "https://a.example/", "title": "T", "text": prose}]}),
        json!({"results": [{"url": "https://a.example/", "title": word.clone(), "text": word.clone()}]}),
        json!({"results": (0..60_000).map(entry).collect::<Vec<_>>()}),
        json!({"results": [(0..60_000).map(field).collect::<serde_json::Map<_, _>>()]}),
        json!({"results": [{"id": "x", "list": vec![json!("some value"); 150_000]}]}),
        json!({"results": [{"id": "x", "deep": deep}]}),
        json!({"results": [], "answer": word.clone(), "context": "Some words. ".repeat(150_000)}),
    ];
    for (number, response) in responses.iter().enumerate() {
        let mut fixture = Fixture::with_response(response);
        for options in [
            json!({"content_level": "full"}),
            json!({"content_level": "summary"}),
            json!({"output_format": "json", "max_tokens": 500}),
        ] {
            let (text, structured) = fixture.search(options.clone()).into_parts();
            let limit = options["max_tokens"].as_u64().unwrap_or(10_000);
            assert!(
                tokens(&structured) <= limit,
                "{number} {options}: {}",
                tokens(&structured)
            );
            assert!(text.len() < 60_000, "{number} {options}: {}", text.len());
        }
        fixture.server.shut_down();
    }
}

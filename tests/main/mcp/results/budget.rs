//! Answers stay within their tokens: cut at good places, with links and words for what is left out.

use serde_json::{Value, json};

use super::same::{misshapen, unsaid};
use super::{Desk, cache_id, joined, specimens};

/// A search with many pages of some length.
fn many(count: usize) -> Value {
    let page = |number: usize| {
        json!({"url": format!("https://a.example/{number}"), "title": format!("Page {number}"),
            "text": specimens::long_text(&format!("topic {number}")).repeat(3)})
    };
    json!({"results": (0..count).map(page).collect::<Vec<_>>()})
}

fn tokens(shown: &Value) -> u64 {
    shown["metadata"]["tokenEstimate"]
        .as_u64()
        .expect("a number")
}

#[test]
fn default_limit_is_ten_thousand_tokens() {
    for format in ["markdown", "json"] {
        let mut desk = Desk::answering(&many(40));
        let options = json!({"content_level": "full", "output_format": format});
        let outcome = desk.search(options);
        let links = outcome.links.clone();
        let (text, shown) = outcome.shown();
        assert!(
            (5_000..=10_000).contains(&tokens(&shown)),
            "{}",
            tokens(&shown)
        );
        assert_eq!(misshapen(&shown), Vec::<String>::new());
        let returned = shown["metadata"]["returned"].as_u64().expect("a number");
        assert!(returned > 3 && returned < 40, "{returned}");
        assert_eq!(
            shown["metadata"]["leftOut"],
            json!({"results": 40 - returned, "from": returned})
        );
        let more = shown["metadata"]["more"].as_str().expect("a way");
        assert!(more.contains(&format!("offset {returned}")), "{more}");
        assert!(more.contains("larger max_tokens"), "{more}");
        if format == "markdown" {
            let left_out = 40 - returned;
            let line = format!("Left out: {left_out} results from {returned} on");
            assert!(text.contains(&line), "{text}");
        }
        // Results that were left out have links, and the whole answer where those are many.
        let id = cache_id(&shown);
        assert_eq!(links.len(), 21);
        assert_eq!(links[0]["uri"], format!("exa://results/{id}/{returned}"));
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
        let mut desk = Desk::answering(&many(5));
        let look = |limit: u64| json!({"content_level": "full", "output_format": format, "max_tokens": limit});
        // Kept from then on, which each of the looks says in the same words.
        desk.search(look(100_000)).shown();
        let (_, whole) = desk.search(look(100_000)).shown();
        let (_, tight) = desk.search(look(tokens(&whole))).shown();
        assert_eq!(tight["results"], whole["results"], "{format}");
        let (_, less) = desk.search(look(tokens(&whole) - 1)).shown();
        assert!(less["metadata"]["leftOut"].is_object(), "{format}");
    }
}

/// The least that can be asked for is met, in every form and at every level.
#[test]
fn smallest_budgets_hold() {
    let url = |number: usize| format!("https://example{number}.com/a/long/path/to/page");
    let page = |number: usize| {
        json!({"id": url(number), "url": url(number), "title": format!("A fairly long title of page {number}"),
            "publishedDate": "2024-05-01T00:00:00.000Z", "author": "Someone", "score": 0.345_678,
            "text": "Some words of it. ".repeat(400)})
    };
    let answer = json!({"requestId": "30b92d3e-f7ca-4638-90d5-ae7acb27f3a7", "resolvedSearchType": "neural",
        "results": (0..10).map(page).collect::<Vec<_>>(), "costDollars": {"total": 0.008}});
    let mut desk = Desk::answering(&answer);
    for format in ["markdown", "json"] {
        for level in ["summary", "standard", "full"] {
            for most in [200, 220, 250, 300, 400] {
                let options =
                    json!({"output_format": format, "content_level": level, "max_tokens": most});
                let outcome = desk.search(options.clone());
                let shown = outcome.structured.expect("structured content");
                assert!(tokens(&shown) <= most, "{options}: {shown}");
                let more = shown["metadata"]["more"].as_str().expect("a way");
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
    let mut desk = Desk::answering(&specimens::pages());
    for level in ["summary", "standard", "full"] {
        let outcome = desk.search(json!({"content_level": level}));
        assert_eq!(outcome.links, Vec::<Value>::new(), "{level}");
    }
}

#[test]
fn every_limit_holds() {
    let answers = [
        many(30),
        specimens::research(),
        specimens::items(),
        specimens::answer(),
        json!({"results": [], "context": specimens::long_text("x").repeat(30)}),
    ];
    for answer in answers {
        let mut desk = Desk::answering(&answer);
        for limit in [300, 500, 1_000, 3_000, 9_000, 100_000] {
            for format in ["markdown", "json"] {
                for level in ["summary", "standard", "full"] {
                    let options = json!({"max_tokens": limit, "output_format": format, "content_level": level});
                    let (text, shown) = desk.search(options.clone()).shown();
                    assert!(
                        tokens(&shown) <= limit,
                        "{} for {options}: {text}",
                        tokens(&shown)
                    );
                    assert_eq!(misshapen(&shown), Vec::<String>::new(), "{options}");
                    if format == "markdown" {
                        assert_eq!(unsaid(&text, &shown), Vec::<String>::new(), "{options}");
                    }
                }
            }
        }
    }
}

/// The least limit leaves hardly more than the head, but no failure.
#[test]
fn minimum_limit_still_shows_content() {
    let mut desk = Desk::answering(&many(3));
    let (_, shown) = desk
        .search(json!({"max_tokens": 200, "content_level": "full"}))
        .shown();
    assert!(tokens(&shown) <= 200, "{}", tokens(&shown));
    assert_eq!(shown["results"][0]["title"], "Page 0");
    // Less than the head takes is answered all the same, and told.
    let (_, shown) = desk
        .search(json!({"max_tokens": 20, "content_level": "full"}))
        .shown();
    let warnings = shown["metadata"]["warnings"].to_string();
    assert!(
        warnings.contains("max_tokens 20 is too small"),
        "{warnings}"
    );
    assert!(tokens(&shown) < 300, "{}", tokens(&shown));
}

/// A result that alone is too long is cut where a sentence ends, and can be had whole.
#[test]
fn long_result_is_cut_at_a_boundary() {
    let whole = specimens::long_text("heat").repeat(20);
    let page = json!({"url": "https://a.example/", "title": "T", "text": whole, "author": "A"});
    let mut desk =
        Desk::answering(&json!({"results": [page, {"url": "https://b.example/", "title": "U"}]}));
    let outcome = desk.search(json!({"content_level": "full", "max_tokens": 1_000}));
    let links = outcome.links.clone();
    let (text, shown) = outcome.shown();
    let part = shown["results"][0]["text"].as_str().expect("a text");
    let kept = part.strip_suffix('…').expect("a mark where it was cut");
    assert!(whole.starts_with(kept), "{kept}");
    assert!(kept.ends_with('.') && kept.len() > 1_000, "{kept}");
    assert_eq!(shown["results"][0]["author"], "A");
    assert_eq!(
        shown["metadata"]["leftOut"],
        json!({"results": 1, "from": 1, "shortened": [0]})
    );
    assert!(
        text.contains("Left out: 1 results from 1 on; parts of 0\n"),
        "{text}"
    );
    let id = cache_id(&shown);
    assert_eq!(links[0]["uri"], format!("exa://results/{id}/0"));
    let options = json!({"cache_id": id, "index": 0, "max_tokens": 1_000_000});
    let (_, shown) = desk.search(options).shown();
    assert_eq!(shown["results"][0]["text"].as_str(), Some(&*whole));
}

/// Following the offsets that answers name gives everything once.
#[test]
fn offsets_page_through_the_whole_result() {
    let mut desk = Desk::answering(&many(25));
    let (_, mut shown) = desk
        .search(json!({"content_level": "full", "max_tokens": 5_000}))
        .shown();
    let mut titles = Vec::new();
    loop {
        let results = shown["results"].as_array().expect("results");
        titles.extend(results.iter().map(|result| result["title"].clone()));
        assert!(titles.len() <= 25, "{titles:?}");
        let Some(next) = shown["metadata"]["leftOut"]["from"].as_u64() else {
            break;
        };
        assert_eq!(next as usize, titles.len());
        let more = shown["metadata"]["more"].as_str().expect("a way");
        assert!(more.contains(&format!("offset {next}")), "{more}");
        let look = json!({"cache_id": cache_id(&shown), "offset": next, "content_level": "full", "max_tokens": 5_000});
        shown = desk.search(look).shown().1;
    }
    let all: Vec<Value> = (0..25)
        .map(|number| json!(format!("Page {number}")))
        .collect();
    assert_eq!(titles, all);
    assert_eq!(desk.asked(), 1);
}

/// With filters, offsets count what passed them, and indexes stay those of the whole answer.
#[test]
fn offsets_count_filtered_entries() {
    let mut answer = many(30);
    for (number, page) in answer["results"]
        .as_array_mut()
        .expect("pages")
        .iter_mut()
        .enumerate()
    {
        page["score"] = json!(if number % 2 == 0 { 0.9 } else { 0.1 });
    }
    let mut desk = Desk::answering(&answer);
    let filters = json!({"minScore": 0.5});
    let mut options = json!({"content_level": "full", "max_tokens": 4_000, "filters": filters});
    let mut titles = Vec::new();
    for _ in 0..15 {
        let (_, shown) = desk.search(options.clone()).shown();
        let results = shown["results"].as_array().expect("results");
        titles.extend(results.iter().map(|result| result["title"].clone()));
        let more = shown["metadata"]["more"].as_str().unwrap_or_default();
        let offset = more
            .split("offset ")
            .nth(1)
            .and_then(|rest| rest.split([' ', ',']).next());
        let Some(offset) = offset.and_then(|offset| offset.parse::<usize>().ok()) else {
            break;
        };
        options = joined(
            options,
            &json!({"cache_id": cache_id(&shown), "offset": offset}),
        );
    }
    let even: Vec<Value> = (0..30)
        .step_by(2)
        .map(|number| json!(format!("Page {number}")))
        .collect();
    assert_eq!(titles, even);
}

/// Ten megabytes, and two in every other shape that JSON has.
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
    let answers = [
        json!({"results": [{"url": "https://a.example/", "title": "T", "text": prose}]}),
        json!({"results": [{"url": "https://a.example/", "title": word.clone(), "text": word.clone()}]}),
        json!({"results": (0..60_000).map(entry).collect::<Vec<_>>()}),
        json!({"results": [(0..60_000).map(field).collect::<serde_json::Map<_, _>>()]}),
        json!({"results": [{"id": "x", "list": vec![json!("some value"); 150_000]}]}),
        json!({"results": [{"id": "x", "deep": deep}]}),
        json!({"results": [], "answer": word.clone(), "context": "Some words. ".repeat(150_000)}),
    ];
    for (number, answer) in answers.iter().enumerate() {
        let mut desk = Desk::answering(answer);
        for options in [
            json!({"content_level": "full"}),
            json!({"content_level": "summary"}),
            json!({"output_format": "json", "max_tokens": 500}),
        ] {
            let (text, shown) = desk.search(options.clone()).shown();
            let limit = options["max_tokens"].as_u64().unwrap_or(10_000);
            assert!(
                tokens(&shown) <= limit,
                "{number} {options}: {}",
                tokens(&shown)
            );
            assert!(text.len() < 60_000, "{number} {options}: {}", text.len());
        }
        desk.server.end();
    }
}

//! Search, similar pages, contents and answers.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn results_match_the_request() {
    let server = Server::start().await;
    let client = server.client();
    let found = client
        .ok(
            "search",
            json!({ "query": "tidal power", "numResults": 37 }),
        )
        .await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 37);
    for result in results {
        for part in ["text", "highlights", "summary", "subpages", "extras"] {
            assert!(result.get(part).is_none(), "{part} was not asked for");
        }
        for part in ["id", "url", "title", "publishedDate"] {
            assert!(!result[part].is_null(), "{part} is missing");
        }
        assert!(result.get("score").is_none(), "auto has no scores");
    }
    let fast = json!({ "query": "tidal power", "type": "fast" });
    let fast = client.ok("search", fast).await;
    let fast = fast["results"].as_array().unwrap().iter();
    let scores: Vec<f64> = fast
        .map(|result| result["score"].as_f64().unwrap())
        .collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
    assert_eq!(found["resolvedSearchType"], "neural");
    assert!(found["costDollars"]["total"].as_f64().unwrap() > 0.0);
    assert_eq!(found["requestId"].as_str().unwrap().len(), 32);
    assert!(found.get("output").is_none());

    let again = client
        .ok(
            "search",
            json!({ "query": "tidal power", "numResults": 37 }),
        )
        .await;
    assert_eq!(found["results"], again["results"]);
    assert_ne!(found["requestId"], again["requestId"]);
}

#[tokio::test]
async fn filters_are_applied() {
    let server = Server::start().await;
    let client = server.client();
    let found = client
        .ok(
            "search",
            json!({
                "query": "größe der 電池", "numResults": 20,
                "includeDomains": ["a.example", "b.example/blog"],
                "startPublishedDate": "2024-02-01", "endPublishedDate": "2024-02-10T00:00:00.000Z",
                "includeText": ["dry room"], "contents": { "text": true },
            }),
        )
        .await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 20);
    for result in results {
        let url = result["url"].as_str().unwrap();
        assert!(
            url.starts_with("https://a.example/") || url.starts_with("https://b.example/blog/"),
            "{url}"
        );
        let date = result["publishedDate"].as_str().unwrap();
        assert!(("2024-02-01".."2024-02-11").contains(&date), "{date}");
        assert!(result["text"].as_str().unwrap().contains("dry room"));
    }
    assert_eq!(found["statuses"].as_array().unwrap().len(), 20);

    let first = found["results"][0]["url"].as_str().unwrap();
    let same = client
        .ok("get_contents", json!({ "urls": [first], "text": true }))
        .await;
    assert_eq!(
        same["results"][0]["text"], found["results"][0]["text"],
        "a fetched page has the same text"
    );
    assert_eq!(
        same["results"][0]["publishedDate"],
        found["results"][0]["publishedDate"]
    );

    let none = client.ok("search", json!({ "query": "x", "includeDomains": ["a.example"], "excludeDomains": ["a.example"] })).await;
    assert_eq!(none["results"], json!([]));
}

#[tokio::test]
async fn contents_match_the_options() {
    let server = Server::start().await;
    let client = server.client();
    let contents = json!({
        "text": { "maxCharacters": 80 }, "highlights": { "query": "costs", "maxCharacters": 100 },
        "summary": { "schema": { "type": "object", "required": ["price"], "properties": { "price": { "type": "integer" } } } },
        "subpages": 2, "subpageTarget": ["about us"], "extras": { "links": 3, "imageLinks": 1 },
    });
    let found = client
        .ok(
            "search",
            json!({ "query": "tidal power", "numResults": 2, "contents": contents }),
        )
        .await;
    for result in found["results"].as_array().unwrap() {
        assert_eq!(result["text"].as_str().unwrap().chars().count(), 80);
        let highlights = result["highlights"].as_array().unwrap();
        assert!(!highlights.is_empty());
        assert!(result.get("highlightScores").is_none());
        assert!(
            highlights
                .iter()
                .map(|text| text.as_str().unwrap().chars().count())
                .sum::<usize>()
                <= 100
        );
        let summary: Value = serde_json::from_str(result["summary"].as_str().unwrap()).unwrap();
        assert!(summary["price"].is_i64());
        assert_eq!(result["subpages"].as_array().unwrap().len(), 2);
        assert!(
            result["subpages"][0]["url"]
                .as_str()
                .unwrap()
                .ends_with("/about-us")
        );
        assert_eq!(result["extras"]["links"].as_array().unwrap().len(), 3);
        assert_eq!(result["extras"]["imageLinks"].as_array().unwrap().len(), 1);
    }
    let context = client
        .ok(
            "search",
            json!({ "query": "tidal power", "context": { "maxCharacters": 50 } }),
        )
        .await;
    assert_eq!(context["context"].as_str().unwrap().chars().count(), 50);
}

#[tokio::test]
async fn single_urls_can_fail() {
    let server = Server::start().await;
    let urls = json!([
        "https://a.example/fine",
        "https://a.example/missing-page",
        "https://a.example/livecrawl-timeout",
        "https://a.example/timeout",
        "https://a.example/http-451",
        "https://a.example/unavailable",
        "https://a.example/not-cached",
        "https://a.example/broken",
        "ftp://a.example",
        "a.example/no scheme"
    ]);
    let body = server
        .client()
        .ok(
            "get_contents",
            json!({ "urls": urls, "text": true, "livecrawl": "always" }),
        )
        .await;
    let tags: Vec<&str> = body["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|status| status["error"]["tag"].as_str().unwrap_or("ok"))
        .collect();
    assert_eq!(
        tags,
        [
            "ok",
            "CRAWL_NOT_FOUND",
            "CRAWL_LIVECRAWL_TIMEOUT",
            "CRAWL_TIMEOUT",
            "CRAWL_HTTP_451",
            "SOURCE_NOT_AVAILABLE",
            "CONTENT_NOT_CACHED",
            "CRAWL_UNKNOWN_ERROR",
            "UNSUPPORTED_URL",
            "ok"
        ]
    );
    assert_eq!(body["results"].as_array().unwrap().len(), 2);
    assert_eq!(body["results"][1]["id"], "a.example/no scheme");
    assert_eq!(body["statuses"][0]["source"], "crawled");
    assert_eq!(body["statuses"][4]["error"]["httpStatusCode"], 451);
}

#[tokio::test]
async fn deep_searches_have_synthesized_output() {
    let server = Server::start().await;
    let client = server.client();
    let deep = client
        .ok(
            "search",
            json!({ "query": "who makes tidal turbines", "type": "deep" }),
        )
        .await;
    assert!(deep["output"]["content"].is_string());
    assert_eq!(deep["output"]["grounding"][0]["field"], "content");
    let schema = json!({ "type": "object", "required": ["makers"], "properties": { "makers": { "type": "array", "items": { "type": "string" } } } });
    let shaped = client
        .ok(
            "search",
            json!({ "query": "who makes tidal turbines", "type": "deep", "outputSchema": schema }),
        )
        .await;
    assert!(shaped["output"]["content"]["makers"].is_array());
    assert_eq!(shaped["output"]["grounding"][0]["field"], "makers");
    let warned = client
        .ok(
            "search",
            json!({ "query": "x", "additionalQueries": ["y"] }),
        )
        .await;
    assert_eq!(warned["warnings"][0]["path"], "/additionalQueries");
    assert_eq!(warned["warnings"][0]["code"], "IGNORED_FIELD");
}

#[tokio::test]
async fn answers_have_citations() {
    let server = Server::start().await;
    let client = server.client();
    let plain = client
        .ok(
            "answer",
            json!({ "query": "Who invented the heat pump?", "text": true }),
        )
        .await;
    assert!(plain["answer"].is_string());
    assert_eq!(plain["citations"].as_array().unwrap().len(), 5);
    assert!(plain["citations"][0]["text"].is_string());
    let schema = json!({ "type": "object", "required": ["year"], "properties": { "year": { "type": "integer", "minimum": 1800, "maximum": 1900 } } });
    let shaped = client
        .ok(
            "answer",
            json!({ "query": "When?", "outputSchema": schema }),
        )
        .await;
    assert!((1800..=1900).contains(&shaped["answer"]["year"].as_i64().unwrap()));
    assert!(shaped["citations"][0].get("text").is_none());
}

#[tokio::test]
async fn similar_pages_exclude_the_source() {
    let server = Server::start().await;
    let args = json!({ "url": "https://open-ledger.example/2024/01/01/tidal-power", "excludeSourceDomain": true, "numResults": 50 });
    let found = server.client().ok("find_similar", args).await;
    let urls: Vec<&str> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["url"].as_str().unwrap())
        .collect();
    assert_eq!(urls.len(), 50);
    assert!(!urls.iter().any(|url| url.contains("open-ledger.example")));
    assert!(urls[0].contains("tidal-power"), "{}", urls[0]);
}

#[tokio::test]
async fn validates_beyond_the_schema() {
    let server = Server::start().await;
    let client = server.client();
    let dynamic = json!({ "query": "x", "contents": { "highlights": { "dynamic": true } } });
    assert_eq!(
        client.fails("search", dynamic.clone()).await,
        (400, "INVALID_REQUEST".into())
    );
    let mut with_beta = dynamic;
    with_beta["betas"] = json!(["dynamic-highlights-2026-08-28"]);
    client.ok("search", with_beta).await;
    let long = json!({ "query": "x", "includeText": ["one two three four five six"] });
    assert_eq!(client.fails("search", long).await.0, 400);
    assert_eq!(
        client.fails("get_contents", json!({ "urls": [] })).await,
        (400, "INVALID_REQUEST_BODY".into())
    );
    let broken = json!({ "query": "x", "outputSchema": { "type": "object", "properties": { "a": { "type": "nonsense" } } } });
    assert_eq!(
        client.fails("answer", broken).await,
        (400, "INVALID_JSON_SCHEMA".into())
    );
}

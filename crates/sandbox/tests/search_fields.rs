//! Newer arguments of searches and contents: their rules, and what they do.

use serde_json::{Value, json};

use crate::support::{Server, merged};

const HIGHLIGHTS: &str = "dynamic-highlights-2026-08-28";

fn refused() -> (u16, String) {
    (400, "INVALID_REQUEST".into())
}

#[tokio::test]
async fn types_have_their_prices_and_scores() {
    let server = Server::start().await;
    let client = server.client();
    for (name, price, has_score) in [
        ("lite", 0.004, false),
        ("auto", 0.007, false),
        ("fast", 0.007, true),
        ("instant", 0.004, true),
        ("deep-lite", 0.012, false),
        ("deep", 0.012, false),
        ("deep-reasoning", 0.015, true),
    ] {
        let found = client
            .ok("search", json!({ "query": "x", "type": name }))
            .await;
        assert_eq!(found["costDollars"]["total"], price, "{name}");
        assert_eq!(
            found["results"][0].get("score").is_some(),
            has_score,
            "{name}"
        );
    }
    let args =
        json!({ "query": "x", "numResults": 13, "contents": { "text": true, "summary": {} } });
    let cost = client.ok("search", args).await["costDollars"].clone();
    assert_eq!(
        cost,
        json!({ "total": 0.023, "search": { "neural": 0.01 }, "summary": 0.013 })
    );
    let args = json!({ "urls": ["https://a.example/", "https://b.example/"], "text": true, "summary": {} });
    let cost = client.ok("get_contents", args).await["costDollars"].clone();
    assert_eq!(
        cost,
        json!({ "total": 0.004, "contents": { "text": 0.002, "summary": 0.002 } })
    );
}

#[tokio::test]
async fn lite_names_the_field_that_it_rejects() {
    let server = Server::start().await;
    let client = server.client();
    let args = json!({ "query": "x", "type": "lite", "numResults": 3, "userLocation": "DE", "moderation": true,
        "includeDomains": ["a.example"], "startPublishedDate": "2024-01-01",
        "contents": { "text": true, "highlights": true }, "stream": false });
    client.ok("search", args).await;
    for (field, value) in [
        ("outputSchema", json!({ "type": "text" })),
        ("systemPrompt", json!("Be brief")),
        ("stream", json!(true)),
        ("contents", json!({ "summary": {} })),
        ("contents", json!({ "maxAgeHours": 0 })),
        ("contents", json!({ "subpages": 1 })),
    ] {
        let mut args = json!({ "query": "x", "type": "lite" });
        args[field] = value.clone();
        let response = client.call("search", args).await;
        assert_eq!(
            (response.status, response.tag()),
            refused(),
            "{field} {value}"
        );
        let message = response.json()["error"].as_str().unwrap().to_owned();
        assert!(message.contains(field), "{message}");
    }
}

#[tokio::test]
async fn entity_categories_reject_dates_and_excluded_domains() {
    let server = Server::start().await;
    let client = server.client();
    let filters = [
        ("startPublishedDate", json!("2024-01-01")),
        ("endPublishedDate", json!("2024-01-01")),
        ("excludeDomains", json!(["a.example"])),
    ];
    for (name, value) in filters {
        for category in ["company", "people"] {
            let mut search = json!({ "query": "x", "category": category });
            search[name] = value.clone();
            assert_eq!(
                client.fails("search", search).await,
                refused(),
                "{category} {name}"
            );
            let mut similar = json!({ "url": "https://a.example/x", "category": category });
            similar[name] = value.clone();
            assert_eq!(
                client.fails("find_similar", similar).await,
                refused(),
                "{category} {name}"
            );
        }
        let mut news = json!({ "query": "x", "category": "news" });
        news[name] = value;
        client.ok("search", news).await;
    }
    client
        .ok(
            "search",
            json!({ "query": "x", "category": "people", "includeDomains": ["a.example"] }),
        )
        .await;
}

#[tokio::test]
async fn highlights_have_a_verbosity() {
    let server = Server::start().await;
    let client = server.client();
    let count = |body: &Value| body["results"][0]["highlights"].as_array().unwrap().len();
    let mut counts = Vec::new();
    for verbosity in ["low", "medium", "high"] {
        let highlights = json!({ "verbosity": verbosity });
        let args = json!({ "query": "x", "contents": { "highlights": highlights } });
        assert_eq!(
            client.fails("search", args.clone()).await,
            refused(),
            "without its token"
        );
        let client = client
            .clone()
            .header("exa-beta", &format!("other, {HIGHLIGHTS}"));
        counts.push(count(&client.ok("search", args).await));
        let args = json!({ "urls": ["https://a.example/"], "highlights": highlights });
        client.ok("get_contents", args).await;
    }
    assert!(
        counts.windows(2).all(|pair| pair[0] < pair[1]),
        "{counts:?}"
    );
    let client = client.header("exa-beta", HIGHLIGHTS);
    for highlights in [
        json!({ "verbosity": "low", "maxCharacters": 100 }),
        json!({ "verbosity": "low", "numSentences": 2 }),
        json!({ "dynamic": true, "maxCharacters": 100 }),
    ] {
        let args = json!({ "urls": ["https://a.example/"], "highlights": highlights });
        assert_eq!(
            client.fails("get_contents", args).await,
            refused(),
            "{highlights}"
        );
    }
    let args = json!({ "urls": ["https://a.example/"], "highlights": { "dynamic": false, "maxCharacters": 100 } });
    client.ok("get_contents", args).await;
}

#[tokio::test]
async fn snapshots_return_older_versions() {
    let server = Server::start().await;
    let client = server.client();
    let clock = client.send("GET", "/sandbox/clock", None).await.json();
    let today = clock["now"].as_str().unwrap()[..10].to_owned();
    let contents = json!({ "text": true, "snapshotAsOf": today });
    let found = client
        .ok("search", json!({ "query": "x", "contents": contents }))
        .await;
    let at = found["results"][0]["snapshotAt"].as_str().unwrap();
    assert!(at < today.as_str(), "{at}");
    assert_eq!(found["statuses"][0]["status"], "success");
    let plain = client
        .ok(
            "search",
            json!({ "query": "x", "contents": { "text": true } }),
        )
        .await;
    assert!(plain["results"][0].get("snapshotAt").is_none());
    let args =
        json!({ "urls": ["https://a.example/"], "text": true, "snapshotAsOf": "2020-01-01" });
    let old = client.ok("get_contents", args).await;
    assert_eq!(old["results"], json!([]));
    assert_eq!(
        old["statuses"][0]["error"],
        json!({ "tag": "CONTENT_NOT_CACHED", "httpStatusCode": null })
    );
    for (name, value) in [
        ("livecrawl", json!("always")),
        ("maxAgeHours", json!(1)),
        ("livecrawlTimeout", json!(1_000)),
        ("subpages", json!(1)),
    ] {
        let mut args =
            json!({ "urls": ["https://a.example/"], "text": true, "snapshotAsOf": today });
        args[name] = value;
        assert_eq!(
            client.fails("get_contents", args).await,
            refused(),
            "{name}"
        );
    }
    for extra in [json!({ "type": "deep" }), json!({ "category": "news" })] {
        let args = merged(json!({ "query": "x", "contents": contents }), &extra);
        assert_eq!(client.fails("search", args).await, refused(), "{extra}");
    }
}

#[tokio::test]
async fn compliance_needs_stored_text_or_highlights() {
    let server = Server::start().await;
    let client = server.client();
    let text = json!({ "text": true });
    client
        .ok(
            "search",
            json!({ "query": "x", "type": "fast", "compliance": "hipaa", "contents": text }),
        )
        .await;
    for args in [
        json!({ "query": "x", "compliance": "hipaa", "contents": text }),
        json!({ "query": "x", "type": "deep", "compliance": "hipaa", "contents": text }),
        json!({ "query": "x", "type": "fast", "compliance": "hipaa" }),
        json!({ "query": "x", "type": "fast", "compliance": "hipaa", "contents": { "text": true, "maxAgeHours": 0 } }),
    ] {
        assert_eq!(
            client.fails("search", args.clone()).await,
            refused(),
            "{args}"
        );
    }
    let urls = json!(["https://a.example/"]);
    client
        .ok(
            "get_contents",
            json!({ "urls": urls, "text": true, "compliance": "hipaa" }),
        )
        .await;
    let args = json!({ "urls": urls, "compliance": "hipaa" });
    assert_eq!(client.fails("get_contents", args).await, refused());
    let unknown = json!({ "urls": urls, "text": true, "compliance": "gdpr" });
    assert_eq!(client.fails("get_contents", unknown).await.0, 400);
}

#[tokio::test]
async fn warnings_and_notices_are_left_out_when_empty() {
    let server = Server::start().await;
    let client = server.client();
    let plain = client.ok("search", json!({ "query": "x" })).await;
    assert!(plain.get("warnings").is_none() && plain.get("notices").is_none());
    let args = json!({ "query": "x sandbox-relax", "startCrawlDate": "2024-01-01T00:00:00Z",
        "contents": { "highlights": { "highlightsPerUrl": 2 } } });
    let response = client.ok("search", args).await;
    let paths: Vec<&str> = response["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["/startCrawlDate", "/contents/highlights/highlightsPerUrl"]
    );
    assert_eq!(response["notices"][0]["code"], "RESTRICTIONS_RELAXED");
    assert!(response["notices"][0]["details"].is_object());
    let deep = json!({ "query": "x", "type": "deep", "additionalQueries": ["y"] });
    assert!(client.ok("search", deep).await.get("warnings").is_none());
}

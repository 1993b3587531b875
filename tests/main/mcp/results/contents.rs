//! The contents of pages: what is requested, what is shown, and what is left out.

use serde_json::{Value, json};

use super::{Fixture, cache_id};

/// Returns a page with every kind of content.
fn page(url: &str) -> Value {
    let text = "A sentence of some words. ".repeat(400);
    json!({
        "id": url, "url": url, "title": "T", "text": text, "highlights": ["One.", "Two."], "summary": "Short.",
        "image": "https://a.example/i.png", "entities": [{"name": "Acme"}],
        "extras": {"links": ["https://a.example/l"]},
        "subpages": [{"id": "b", "url": "https://a.example/b", "title": "B", "text": "Below."}],
    })
}

fn contents(args: Value, options: Value) -> (Value, String, Value) {
    let mut fixture = Fixture::with_response(&json!({"results": [page("https://a.example/")]}));
    let (text, structured) = fixture
        .call_operation("get_contents", args, options)
        .into_parts();
    let body = fixture.recorder.only_request().json().expect("a body");
    (body, text, structured)
}

fn urls() -> Value {
    json!(["https://a.example/"])
}

/// Without a content option, the text is returned as `web_fetch_exa` returns it.
#[test]
fn contents_include_text_by_default() {
    for (level, least, most) in [
        ("summary", 0, 0),
        ("standard", 2_900, 3_010),
        ("full", 10_000, 11_000),
    ] {
        let options = json!({"content_level": level});
        let (body, _, structured) = contents(json!({"urls": urls()}), options);
        assert_eq!(body, json!({"urls": urls(), "text": true}));
        let text = structured["results"][0]["text"]
            .as_str()
            .unwrap_or_default();
        let length = text.chars().count();
        assert!((least..=most).contains(&length), "{level}: {length}");
    }
    for option in [
        json!({"highlights": true}),
        json!({"summary": {"query": "q"}}),
        json!({"text": false}),
    ] {
        let mut args = json!({"urls": urls()});
        args.as_object_mut()
            .expect("an object")
            .extend(option.as_object().expect("an object").clone());
        assert_eq!(contents(args.clone(), json!({})).0, args);
    }
    // Subpages are no content of their own.
    let (body, ..) = contents(json!({"urls": urls(), "subpages": 2}), json!({}));
    assert_eq!(body["text"], json!(true));
}

#[test]
fn all_requested_contents_are_shown() {
    let args = json!({"urls": urls(), "text": true, "highlights": true, "summary": true, "subpages": 1,
        "extras": {"links": 1}});
    let (_, text, structured) = contents(args, json!({}));
    let page = &structured["results"][0];
    let shown = page["text"].as_str().expect("a text");
    assert!(shown.chars().count() >= 2_900, "{}", shown.len());
    assert_eq!(page["highlights"], json!(["One.", "Two."]));
    assert_eq!(page["summary"], "Short.");
    assert_eq!(page["subpages"][0]["text"], "Below.");
    assert_eq!(page["extras"]["links"][0], "https://a.example/l");
    for part in [
        "Two.",
        "Short.",
        "Below.",
        "https://a.example/l",
        "A sentence of some words.",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

/// What a level leaves out is named, together with the way to get it.
#[test]
fn omitted_contents_are_named() {
    let mut fixture = Fixture::with_response(&json!({"results": [page("https://a.example/")]}));
    let args = json!({"query": "q", "contents": {"text": true, "highlights": true}});
    let (text, structured) = fixture
        .call_operation("search", args, json!({}))
        .into_parts();
    assert_eq!(
        structured["metadata"]["leftOut"]["fields"],
        json!(["text", "entities"])
    );
    assert!(text.contains("Left out: text; entities"), "{text}");
    let more = structured["metadata"]["more"].as_str().expect("a call");
    assert!(more.contains("content_level \"full\""), "{more}");
    let view = json!({"cache_id": cache_id(&structured), "content_level": "full"});
    let (_, structured) = fixture
        .call_operation("search", json!({}), view)
        .into_parts();
    assert!(structured["results"][0]["text"].is_string());
    assert_eq!(
        structured["results"][0]["entities"],
        json!([{"name": "Acme"}])
    );
}

/// If everything is shown, nothing more is offered.
#[test]
fn nothing_more_is_offered_if_all_is_shown() {
    let page = json!({"id": "https://a.example/", "url": "https://a.example/", "title": "T", "image": "i",
        "publishedDate": "2024-05-31T08:30:00.000Z", "score": 0.123_456, "highlights": ["One."]});
    let mut fixture = Fixture::with_response(&json!({"requestId": "r-1", "results": [page]}));
    let (text, structured) = fixture.search(json!({})).into_parts();
    assert_eq!(structured["metadata"].get("more"), None, "{structured}");
    assert_eq!(structured["results"][0]["score"], 0.12);
    for hidden in ["More:", "r-1", "cache_id", "08:30", "0.123"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
    assert!(text.contains("2024-05-31"), "{text}");
}

/// Only pages that could not be read have a status.
#[test]
fn failed_pages_are_reported() {
    let response = json!({
        "results": [page("https://a.example/")],
        "statuses": [
            {"id": "https://a.example/", "status": "success", "source": "cached"},
            {"id": "https://gone.example/", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404}},
        ],
    });
    let mut fixture = Fixture::with_response(&response);
    let args = json!({"urls": ["https://a.example/", "https://gone.example/"]});
    let (text, structured) = fixture
        .call_operation("get_contents", args, json!({}))
        .into_parts();
    assert_eq!(
        structured["statuses"],
        json!([{"id": "https://gone.example/", "error": "CRAWL_NOT_FOUND 404"}])
    );
    assert!(
        text.contains("Failed: https://gone.example/ · CRAWL_NOT_FOUND 404"),
        "{text}"
    );
    assert!(!text.contains("success"), "{text}");
}

/// Pages that a filter removes have no status either.
#[test]
fn filtered_pages_have_no_status() {
    let urls = ["https://a.example/", "https://b.example/"];
    let status = |url: &&str| json!({"id": url, "status": "success", "source": "cached"});
    let response = json!({
        "results": urls.iter().map(|url| page(url)).collect::<Vec<_>>(),
        "statuses": urls.iter().map(status).collect::<Vec<_>>(),
    });
    let mut fixture = Fixture::with_response(&response);
    let options = json!({"filters": {"excludeDomains": ["b.example"]}, "content_level": "full"});
    let (text, structured) = fixture
        .call_operation("get_contents", json!({"urls": urls, "text": true}), options)
        .into_parts();
    let statuses = structured["statuses"].as_array().expect("statuses");
    assert_eq!(statuses.len(), 1, "{structured}");
    assert!(!text.contains("b.example"), "{text}");
    assert_eq!(structured["metadata"]["totalResults"], 2);
    assert_eq!(structured["metadata"]["matching"], 1);
    assert!(
        text.starts_with("get_contents: 1 result, 2 before filters"),
        "{text}"
    );
}

#[test]
fn only_web_addresses_are_read() {
    let mut fixture = Fixture::with_tools("default,classic", &json!({"results": []}));
    for url in [
        "ftp://a.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "a.example",
        "",
    ] {
        let args = json!({"urls": ["https://a.example/", url]});
        let failure = fixture
            .call_operation("get_contents", args.clone(), json!({}))
            .failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_contains(&["urls[1]"]);
        fixture.server.call_raw("web_fetch_exa", args).failure();
    }
    assert_eq!(fixture.take_request_count(), 0);
}

/// Values are shown as they are, in code where Markdown would interpret them.
#[test]
fn values_are_not_escaped() {
    let values = [
        "0 9 * * 1",
        "*/5 * * * *",
        "https://a.example/_x_/y_z?a=[1]",
        "[title](https://b.example/)",
        "<b>bold</b>",
        "C:\\*",
        "a & b &amp; c",
    ];
    let record = json!({"id": "m", "values": values.iter().enumerate()
        .map(|(number, value)| (format!("field{number}"), json!(value)))
        .collect::<serde_json::Map<_, _>>()});
    let mut fixture = Fixture::with_response(&record);
    let (text, _) = fixture
        .call_operation("monitors.get", json!({"monitorId": "m"}), json!({}))
        .into_parts();
    for value in values {
        assert!(text.contains(value), "no {value} in {text}");
    }
    assert!(!text.contains("\\_") && !text.contains("\\["), "{text}");
}

/// Citations in an answer have the numbers of the results.
#[test]
fn citations_match_the_numbers() {
    let answer = json!({"answer": "Heat pumps move heat. [1] They work in the cold. [2]", "citations": [
        {"id": "https://a.example/", "url": "https://a.example/", "title": "First"},
        {"id": "https://b.example/", "url": "https://b.example/", "title": "Second"},
    ]});
    let mut fixture = Fixture::with_response(&answer);
    let (text, structured) = fixture
        .call_operation("answer", json!({"query": "q"}), json!({}))
        .into_parts();
    assert!(text.contains("move heat. [1] They"), "{text}");
    assert!(
        text.contains("### 1. [First]") && text.contains("### 2. [Second]"),
        "{text}"
    );
    let view = json!({"cache_id": cache_id(&structured), "index": 2});
    let (_, structured) = fixture
        .call_operation("answer", json!({}), view)
        .into_parts();
    assert_eq!(structured["results"][0]["title"], "Second");
}

/// A list as CSV, with columns by the names that the text shows.
#[test]
fn lists_are_shown_as_csv() {
    let item = |number: usize| {
        let company = json!({"name": format!("Acme, {number}")});
        let properties = json!({"type": "company", "url": format!("https://a{number}.example/"), "company": company});
        json!({"id": format!("item_{number}"), "properties": properties, "createdAt": "2024-05-11T08:30:00.000Z"})
    };
    let items: Vec<Value> = (1..=300).map(item).collect();
    let mut fixture = Fixture::with_response(&json!({"data": items, "hasMore": false}));
    let args = json!({"websetId": "w"});
    let options = json!({"output_format": "csv", "fields": ["id", "name", "url"]});
    let (text, structured) = fixture
        .call_operation("items.list", args.clone(), options)
        .into_parts();
    assert_eq!(structured["metadata"]["returned"], 300);
    assert!(
        text.contains("\n#,id,name,url\n1,item_1,\"Acme, 1\",https://a1.example/\n"),
        "{text}"
    );
    assert!(text.contains("\n300,item_300,"), "{text}");
    let options = json!({"output_format": "csv", "fields": ["wrong"]});
    let (_, structured) = fixture
        .call_operation("items.list", args, options)
        .into_parts();
    let warning = structured["metadata"]["warnings"][0]
        .as_str()
        .expect("a warning");
    assert!(
        warning.contains("wrong") && warning.contains("properties"),
        "{warning}"
    );
}

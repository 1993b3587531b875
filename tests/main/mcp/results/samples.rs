//! One small sample response of each kind.

use serde_json::{Value, json};

/// Returns a text of several paragraphs, longer than the excerpt of level `standard`.
pub(super) fn long_text(topic: &str) -> String {
    let paragraph = |number: usize| {
        format!(
            "Part {number} says something about {topic}. It goes on for a while, so that a level has something to \
             leave out. Figures follow: {number}, {}, {}. Then it ends.",
            number * 7,
            number * 11
        )
    };
    let paragraphs: Vec<String> = (1..=10).map(paragraph).collect();
    format!("# All about {topic}\n\n{}", paragraphs.join("\n\n"))
}

fn page(host: &str, topic: &str, date: &str, score: f64) -> Value {
    let url = format!("https://{host}/articles/{}", topic.replace(' ', "-"));
    json!({
        "id": url, "url": url, "title": format!("All about {topic}"), "publishedDate": format!("{date}T08:30:00.000Z"),
        "author": "Ada Example", "score": score, "image": format!("https://{host}/cover.png"),
        "favicon": format!("https://{host}/favicon.ico"), "text": long_text(topic),
        "highlights": [format!("Part 1 says something about {topic}."), "Figures follow: 1, 7, 11."],
        "highlightScores": [0.91, 0.52],
    })
}

/// A search with all fields of each result.
pub(super) fn pages() -> Value {
    json!({
        "requestId": "b5947044c4b78efa9552a7c89b306d95", "resolvedSearchType": "neural", "searchTime": 812.5,
        "results": [
            page("alpha.example", "heat pumps", "2024-05-31", 0.93),
            page("news.beta.example", "solid state batteries", "2023-01-15", 0.71),
            page("gamma.example", "fusion energy", "2022-11-02", 0.34),
        ],
        "costDollars": {"total": 0.007, "search": {"neural": 0.005}, "contents": {"text": 0.002}},
    })
}

/// Page contents, one of which failed.
pub(super) fn contents() -> Value {
    json!({
        "requestId": "e492118ccdedcba5088bfc4357a8a125",
        "results": [page("alpha.example", "heat pumps", "2024-05-31", 0.93)],
        "statuses": [
            {"id": "https://alpha.example/articles/heat-pumps", "status": "success", "source": "cached"},
            {"id": "https://gone.example/", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404}},
        ],
        "costDollars": {"total": 0.001},
    })
}

/// A response of the `answer` operation.
pub(super) fn answer() -> Value {
    json!({
        "requestId": "c1", "answer": "Heat pumps move heat; they do not make it. [1] They work in the cold as well. [2]",
        "citations": [
            page("alpha.example", "heat pumps", "2024-05-31", 0.9),
            page("gamma.example", "cold winters", "2022-11-02", 0.8),
        ],
        "costDollars": {"total": 0.005},
    })
}

/// A completed research task with numeric dates.
pub(super) fn research() -> Value {
    let report = [long_text("heat pumps"), long_text("gas heating")].join("\n\n");
    json!({
        "researchId": "r_01", "status": "completed", "createdAt": 1_717_144_200_000_i64, "model": "exa-research",
        "instructions": "Compare heat pumps with gas heating", "outputSchema": null,
        "finishedAt": 1_717_144_260_000_i64,
        "output": {"content": report, "parsed": null},
        "costDollars": {"total": 0.25, "numPages": 12, "numSearches": 4, "reasoningTokens": 8000},
    })
}

/// A completed agent run.
pub(super) fn run() -> Value {
    json!({
        "id": "agent_run_01", "object": "agent_run", "status": "completed", "stopReason": null,
        "createdAt": "2024-05-31T08:30:00.000Z", "completedAt": "2024-05-31T08:31:00.000Z",
        "request": {"query": "Find makers of heat pumps"},
        "output": {"text": long_text("makers of heat pumps"), "structured": null, "grounding": [
            {"field": "content", "citations": [{"url": "https://alpha.example/", "title": "Alpha"}], "confidence": "high"},
        ]},
        "usage": {"searches": 4, "emails": 0}, "costDollars": {"total": 0.16}, "error": null,
    })
}

fn item(number: usize, name: &str) -> Value {
    let url = format!("https://{}.example/", name.to_lowercase());
    let references =
        json!([{"title": "Source", "snippet": "A passage that supports this.", "url": url}]);
    json!({
        "id": format!("item_{number}"), "object": "webset_item", "source": "search", "sourceId": "search_1",
        "websetId": "webset_1",
        "properties": {
            "type": "company", "url": url, "description": format!("{name} makes heat pumps in Berlin."),
            "content": long_text(name),
            "company": {"name": name, "location": "Berlin, Germany", "employees": 40 * number, "industry": "Energy"},
        },
        "evaluations": [{"criterion": "makes heat pumps", "reasoning": "The page says so.", "satisfied": "yes", "references": references}],
        "enrichments": [{
            "object": "enrichment_result", "status": "completed", "format": "number", "result": [format!("{}", 40 * number)],
            "reasoning": "Taken from the page.", "references": references, "enrichmentId": "enrichment_1",
        }],
        "createdAt": format!("2024-05-{:02}T08:30:00.000Z", 10 + number), "updatedAt": "2024-06-01T08:30:00.000Z",
    })
}

/// Webset items with enrichments, with a next page.
pub(super) fn items() -> Value {
    json!({"data": [item(1, "Acme"), item(2, "Borealis")], "hasMore": true, "nextCursor": "cursor_2"})
}

/// A webset.
pub(super) fn webset() -> Value {
    let search = json!({
        "id": "search_1", "object": "webset_search", "status": "completed", "query": "heat pump makers in Berlin",
        "entity": {"type": "company"}, "criteria": [{"description": "makes heat pumps", "successRate": 85}], "count": 2,
        "progress": {"found": 2, "analyzed": 6, "completion": 100, "timeLeft": null}, "exclude": [],
        "createdAt": "2024-05-10T08:30:00.000Z",
    });
    json!({
        "id": "webset_1", "object": "webset", "status": "idle", "externalId": null, "title": "Heat pump makers",
        "searches": [search], "imports": [], "monitors": [], "metadata": {"team": "energy"},
        "enrichments": [{"id": "enrichment_1", "object": "webset_enrichment", "status": "completed",
            "description": "Number of employees", "format": "number"}],
        "createdAt": "2024-05-10T08:30:00.000Z", "updatedAt": "2024-06-01T08:30:00.000Z",
    })
}

/// A list of records without URLs.
pub(super) fn websets() -> Value {
    let mut other = webset();
    other["id"] = json!("webset_2");
    other["title"] = json!("Cold | winters");
    other["status"] = json!("running");
    json!({"data": [webset(), other], "hasMore": false, "nextCursor": null})
}

/// A list of events.
pub(super) fn events() -> Value {
    json!({"data": [
        {"id": "event_2", "object": "event", "type": "webset.idle", "data": webset(), "createdAt": "2024-05-10T08:31:00.000Z"},
        {"id": "event_1", "object": "event", "type": "webset.item.created", "data": item(1, "Acme"), "createdAt": "2024-05-10T08:30:30.000Z"},
    ], "hasMore": false, "nextCursor": null})
}

/// A failed monitor run.
pub(super) fn monitor_runs() -> Value {
    json!({"data": [{
        "id": "run_1", "monitorId": "monitor_1", "status": "failed", "output": null, "failReason": "the search found nothing",
        "startedAt": "2024-05-10T08:30:00.000Z", "failedAt": "2024-05-10T08:30:09.000Z", "createdAt": "2024-05-10T08:30:00.000Z",
    }], "hasMore": false, "nextCursor": null})
}

//! `/search` and `/findSimilar`.

use serde_json::{Map, Value, json};

use super::contents::ContentsOptions;
use super::cost::Cost;
use super::output::{grounding, prose, structured};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::page::score;
use crate::corpus::{Page, PageQuery, host_of};
use crate::http::stream;
use crate::json::{count, set};
use crate::rng::Rng;
use crate::state::Account;

const DEFAULT_COUNT: u64 = 10;

/// `POST /search`.
pub(crate) fn search(account: &mut Account, call: &Call) -> ApiResult {
    let seed = account.data_seed();
    let query = call.text("query");
    let contents = ContentsOptions::new(call.get("contents"), query, seed);
    contents.validate(call)?;
    let pages = page_query(call, query)?.run(seed);
    let search_type = resolve_type(call.opt_text("type").unwrap_or("auto"));
    let output = output(call, query, seed, search_type, &pages)?;
    if call.flag("stream") {
        let cost = cost(call, &contents, &pages);
        let output = output.unwrap_or_else(|| query.into());
        let citations = pages.iter().map(Page::to_json).collect();
        let events = stream_events(call, &output, citations, &cost);
        return Ok(ApiResponse::Events(events));
    }
    let mut body = common_response(call, &contents, &pages);
    set(&mut body, "resolvedSearchType", search_type);
    set(&mut body, "searchType", search_type);
    let mut rng = Rng::new(seed, &["time", query]);
    set(&mut body, "searchTime", rng.between(180, 1_900));
    let warnings = warnings(call, search_type);
    if !warnings.is_empty() {
        set(&mut body, "warnings", warnings);
    }
    if let Some(content) = output {
        let grounding = grounding(&content, &pages);
        let output = json!({ "grounding": grounding, "content": content });
        set(&mut body, "output", output);
    }
    if contents.any() {
        let statuses = pages.iter().map(
            |page| json!({ "id": page.url, "status": "success", "source": contents.source() }),
        );
        set(&mut body, "statuses", statuses.collect::<Value>());
    }
    ApiResponse::ok(body)
}

/// `POST /findSimilar`.
pub(crate) fn find_similar(account: &mut Account, call: &Call) -> ApiResult {
    let seed = account.data_seed();
    let url = call.text("url");
    if !host_of(url).contains('.') || url.contains(char::is_whitespace) {
        let message = format!("'{url}' is not an address");
        return Err(ApiError::new(400, "INVALID_URLS", message));
    }
    let topic = Page::at(seed, url).title;
    let contents = ContentsOptions::new(call.get("contents"), &topic, seed);
    contents.validate(call)?;
    let mut query = page_query(call, &topic)?;
    if call.flag("excludeSourceDomain") {
        query.exclude_domains.push(host_of(url).to_owned());
    }
    let pages = query.run(seed);
    ApiResponse::ok(common_response(call, &contents, &pages))
}

/// Returns the fields that both responses have.
fn common_response(call: &Call, contents: &ContentsOptions, pages: &[Page]) -> Value {
    let category = call.opt_text("category");
    let cost = cost(call, contents, pages);
    let mut body = json!({
        "requestId": call.request_id,
        "results": results(contents, pages, category),
        "costDollars": cost.to_json(),
    });
    if let Some(context) = contents.context(call.get("context"), pages) {
        set(&mut body, "context", context);
    }
    body
}

/// Returns the cost; similar pages cost as much as a search.
fn cost(call: &Call, contents: &ContentsOptions, pages: &[Page]) -> Cost {
    let search_type = call.opt_text("type").unwrap_or("auto");
    Cost::search(search_type, pages.len()).with_results(contents, pages.len())
}

/// Returns pages as results, best first.
pub(crate) fn results(
    contents: &ContentsOptions,
    pages: &[Page],
    category: Option<&str>,
) -> Vec<Value> {
    let results = pages.iter().enumerate().map(|(rank, page)| {
        let mut result = contents.result(page);
        set(&mut result, "score", score(rank));
        if let Some(entity) = entity(page, category) {
            set(&mut result, "entities", json!([entity]));
        }
        result
    });
    results.collect()
}

/// Returns the entity of a company's or a person's page.
fn entity(page: &Page, category: Option<&str>) -> Option<Value> {
    let id = format!(
        "https://entities.example/{}",
        page.title.to_lowercase().replace(' ', "-")
    );
    match category? {
        "company" => Some(json!({
            "id": id, "type": "company", "version": 1,
            "properties": { "name": page.title, "description": page.sentences().into_iter().nth(1), "foundedYear": 2019 },
        })),
        "people" => Some(json!({
            "id": id, "type": "person", "version": 1,
            "properties": { "name": page.title, "location": null, "workHistory": [] },
        })),
        _ => None,
    }
}

/// Reads the filters of a request.
fn page_query(call: &Call, query: &str) -> Result<PageQuery, ApiError> {
    let texts = |name: &str| call.texts(name).into_iter().map(str::to_owned).collect();
    let count = call.get("numResults").and_then(count);
    let query = PageQuery {
        query: query.to_owned(),
        count: usize::try_from(count.unwrap_or(DEFAULT_COUNT)).unwrap_or(0),
        category: call.opt_text("category").map(str::to_owned),
        include_domains: texts("includeDomains"),
        exclude_domains: texts("excludeDomains"),
        start: call.time("startPublishedDate")?,
        end: call.time("endPublishedDate")?,
        include_text: texts("includeText"),
        exclude_text: texts("excludeText"),
    };
    for (name, list) in [
        ("includeText", &query.include_text),
        ("excludeText", &query.exclude_text),
    ] {
        if let Some(long) = list.iter().find(|text| text.split_whitespace().count() > 5) {
            return Err(ApiError::invalid(format!(
                "{name}: '{long}' has more than 5 words"
            )));
        }
    }
    let mut domains = query.include_domains.iter().chain(&query.exclude_domains);
    if let Some(invalid) =
        domains.find(|name| name.trim().is_empty() || name.contains(char::is_whitespace))
    {
        return Err(ApiError::invalid(format!("'{invalid}' is not a domain")));
    }
    Ok(query)
}

/// Resolves `auto` and the older names.
fn resolve_type(search_type: &str) -> &str {
    match search_type {
        "auto" | "hybrid" => "neural",
        "lite" => "fast",
        other => other,
    }
}

/// Returns the synthesized content of deep searches and of requests with a schema.
fn output(
    call: &Call,
    query: &str,
    seed: u64,
    search_type: &str,
    pages: &[Page],
) -> Result<Option<Value>, ApiError> {
    let schema = call.get("outputSchema");
    if let Some(object) = structured(schema, seed, query)? {
        return Ok(Some(object));
    }
    let has_output = search_type.starts_with("deep") || schema.is_some() || call.flag("stream");
    Ok(has_output.then(|| prose(query, pages).into()))
}

fn warnings(call: &Call, search_type: &str) -> Vec<Value> {
    let mut warnings = Vec::new();
    if call.get("additionalQueries").is_some() && !search_type.starts_with("deep") {
        warnings.push(json!({
            "code": "IGNORED_PARAMETER",
            "path": "additionalQueries",
            "message": "additionalQueries has an effect with the deep types only",
        }));
    }
    for name in ["startCrawlDate", "endCrawlDate", "useAutoprompt"] {
        if call.get(name).is_some() {
            warnings.push(json!({ "code": "DEPRECATED_PARAMETER", "path": name, "message": format!("{name} has no effect") }));
        }
    }
    warnings
}

/// Returns an OpenAI-style stream: chunks of the output, the citations, and `[DONE]`.
pub(super) fn stream_events(
    call: &Call,
    output: &Value,
    citations: Vec<Value>,
    cost: &Cost,
) -> Vec<String> {
    let text = output
        .as_str()
        .map_or_else(|| output.to_string(), str::to_owned);
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": call.request_id,
            "object": "chat.completion.chunk",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
    };
    let mut events: Vec<String> = text
        .split_inclusive(' ')
        .collect::<Vec<_>>()
        .chunks(6)
        .map(|words| {
            stream::data(chunk(
                json!({ "role": "assistant", "content": words.concat() }),
                Value::Null,
            ))
        })
        .collect();
    let mut last = chunk(Value::Object(Map::new()), "stop".into());
    set(&mut last, "citations", citations);
    set(&mut last, "costDollars", cost.to_json());
    events.push(stream::data(last));
    events.push(stream::done());
    events
}

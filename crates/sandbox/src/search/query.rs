//! `/search` and `/findSimilar`.

use serde_json::{Value, json};

use super::contents::ContentsOptions;
use super::cost::Cost;
use super::output::{grounding, prose, structured};
use super::rules;
use super::stream::{self, SearchParts};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::page::score;
use crate::corpus::{Page, PageQuery, host_of};
use crate::json::{count, set};
use crate::rng::Rng;
use crate::state::Account;
use crate::time::iso;

const DEFAULT_COUNT: u64 = 10;

/// `POST /search`.
pub(crate) fn search(account: &mut Account, call: &Call) -> ApiResult {
    let seed = account.data_seed();
    let query = call.text("query");
    let contents = ContentsOptions::new(call.get("contents"), query, seed);
    rules::validate(call, &contents)?;
    let pages = page_query(call, query)?.run(seed);
    let search_type = call.opt_text("type").unwrap_or("auto");
    let content = output_content(call, query, seed, search_type, &pages)?;
    let output = content.map(|content| {
        let grounding = grounding(&content, &pages);
        json!({ "grounding": grounding, "content": content })
    });
    let mut rng = Rng::new(seed, &["time", query]);
    let search_time = rng.between(180, 1_900);
    let warnings = rules::warnings(call);
    let mut body = common_response(account, call, &contents, &pages);
    if call.flag("stream") {
        let cost = cost(call, &contents, &pages);
        let parts = SearchParts {
            output: output.unwrap_or_default(),
            results: body.get("results").cloned().unwrap_or_default(),
            warnings,
            search_time,
        };
        return Ok(ApiResponse::Events(stream::search(call, parts, &cost)));
    }
    set(&mut body, "resolvedSearchType", resolved_type(search_type));
    set(&mut body, "searchTime", search_time);
    for (name, list) in [("warnings", warnings), ("notices", rules::notices(call))] {
        if !list.is_empty() {
            set(&mut body, name, list);
        }
    }
    if let Some(output) = output {
        set(&mut body, "output", output);
    }
    if contents.any() {
        let is_stored = contents.is_stored(account.now());
        let statuses = pages.iter().map(|page| match is_stored {
            true => json!({ "id": page.url, "status": "success", "source": contents.source() }),
            false => {
                let error = json!({ "tag": "CONTENT_NOT_CACHED", "httpStatusCode": null });
                json!({ "id": page.url, "status": "error", "error": error })
            }
        });
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
    rules::validate_category(call)?;
    let mut query = page_query(call, &topic)?;
    if call.flag("excludeSourceDomain") {
        query.exclude_domains.push(host_of(url).to_owned());
    }
    let pages = query.run(seed);
    ApiResponse::ok(common_response(account, call, &contents, &pages))
}

/// Returns the fields that both responses have, and charges their cost.
fn common_response(
    account: &mut Account,
    call: &Call,
    contents: &ContentsOptions,
    pages: &[Page],
) -> Value {
    let category = call.opt_text("category");
    let cost = cost(call, contents, pages);
    account.charge("search", cost.total());
    let no_contents = ContentsOptions::default();
    let is_stored = contents.is_stored(account.now());
    let stored = if is_stored { contents } else { &no_contents };
    let mut results = results(stored, pages, category);
    if has_scores(call.opt_text("type")) {
        for (rank, result) in results.iter_mut().enumerate() {
            set(result, "score", score(rank));
        }
    }
    let mut body = json!({
        "requestId": call.request_id,
        "results": results,
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
    let results = pages.iter().map(|page| {
        let mut result = contents.result(page);
        if let Some(entity) = entity(page, category) {
            set(&mut result, "entities", json!([entity]));
        }
        result
    });
    results.collect()
}

/// Returns the entity that a page is about.
fn entity(page: &Page, category: Option<&str>) -> Option<Value> {
    let id = format!(
        "https://entities.example/{}",
        page.title.to_lowercase().replace(' ', "-")
    );
    let (kind, properties) = match category? {
        "company" => ("company", company_properties(page)),
        "people" => ("person", person_properties(page)),
        "publication" => ("publication", publication_properties(page)),
        _ => return None,
    };
    Some(json!({ "id": id, "type": kind, "version": 1, "properties": properties }))
}

fn company_properties(page: &Page) -> Value {
    json!({
        "name": page.title,
        "description": page.sentences().into_iter().nth(1),
        "foundedYear": 2019,
        "workforce": { "total": 120 },
        "headquarters": null,
        "financials": null,
        "webTraffic": null,
        "research": null,
    })
}

fn person_properties(page: &Page) -> Value {
    let (first, last) = page.title.split_once(' ').unwrap_or((&page.title, ""));
    json!({
        "name": page.title,
        "firstName": first,
        "lastName": last,
        "location": null,
        "workHistory": [],
        "educationHistory": [],
        "research": null,
    })
}

fn publication_properties(page: &Page) -> Value {
    let published = iso(page.published);
    json!({
        "title": page.title,
        "year": published.get(..4).and_then(|year| year.parse::<u64>().ok()),
        "date": published.get(..10),
        "type": "article",
        "language": "en",
        "citationCount": 12,
        "authors": [],
        "referenceCount": 30,
        "abstract": page.sentences().into_iter().nth(1),
        "doi": null,
    })
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

/// Returns the type that a response reports.
fn resolved_type(search_type: &str) -> &str {
    match search_type {
        "auto" => "neural",
        other => other,
    }
}

/// Whether results have a score: only those of the legacy types do.
fn has_scores(search_type: Option<&str>) -> bool {
    matches!(search_type, Some("fast" | "instant" | "deep-reasoning"))
}

/// Returns the synthesized content of deep searches and of requests with a schema.
fn output_content(
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

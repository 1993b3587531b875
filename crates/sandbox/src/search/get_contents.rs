//! `/contents`: single URLs can fail while the call succeeds.

use serde_json::{Value, json};

use super::contents::ContentsOptions;
use super::cost::Cost;
use super::rules::validate_compliance;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::Page;
use crate::json::set;
use crate::rng::Rng;
use crate::state::Account;

/// `POST /contents`.
pub(crate) fn get_contents(account: &mut Account, call: &Call) -> ApiResult {
    let seed = account.data_seed();
    let mut urls = call.texts("urls");
    urls.extend(call.texts("ids"));
    if urls.is_empty() {
        let message = "urls must name at least one address";
        return Err(ApiError::new(400, "INVALID_URLS", message));
    }
    let contents = ContentsOptions::new(Some(&Value::Object(call.args.clone())), "", seed);
    contents.validate(call)?;
    validate_compliance(call, &contents, &[])?;
    let is_stored = contents.is_stored(account.now());
    let fetch_error = |url: &str| match fetch_error(url) {
        None if !is_stored => Some(("CONTENT_NOT_CACHED".to_owned(), None)),
        error => error,
    };
    let (mut pages, mut results) = (Vec::new(), Vec::new());
    for url in urls.iter().filter(|url| fetch_error(url).is_none()) {
        let page = Page::at(seed, url);
        let mut result = contents.result(&page);
        // The id repeats the request, even if the URL had no scheme.
        set(&mut result, "id", *url);
        results.push(result);
        pages.push(page);
    }
    let source = contents.source();
    let statuses = urls.iter().map(|url| status(url, source, fetch_error(url)));
    let cost = Cost::default().with_pages(&contents, pages.len());
    account.charge("contents", cost.total());
    let mut body = json!({
        "requestId": call.request_id,
        "results": results,
        "statuses": statuses.collect::<Value>(),
        "searchTime": Rng::new(seed, &urls).between(40, 900),
        "costDollars": cost.to_json(),
    });
    if let Some(context) = contents.context(None, &pages) {
        set(&mut body, "context", context);
    }
    ApiResponse::ok(body)
}

/// Returns tag and HTTP status of the error that a URL simulates.
fn fetch_error(url: &str) -> Option<(String, Option<u16>)> {
    let has_scheme = url.contains("://");
    if (has_scheme && !url.starts_with("http://") && !url.starts_with("https://"))
        || url.trim().is_empty()
    {
        return Some(("UNSUPPORTED_URL".to_owned(), None));
    }
    if let Some(status) = refused_status(url) {
        return Some((format!("CRAWL_HTTP_{status}"), Some(status)));
    }
    let (tag, status) = match url {
        _ if url.contains("missing") => ("CRAWL_NOT_FOUND", Some(404)),
        _ if url.contains("livecrawl-timeout") => ("CRAWL_LIVECRAWL_TIMEOUT", Some(408)),
        _ if url.contains("timeout") => ("CRAWL_TIMEOUT", Some(408)),
        _ if url.contains("unavailable") => ("SOURCE_NOT_AVAILABLE", Some(403)),
        _ if url.contains("not-cached") => ("CONTENT_NOT_CACHED", None),
        _ if url.contains("broken") => ("CRAWL_UNKNOWN_ERROR", Some(500)),
        _ => return None,
    };
    Some((tag.to_owned(), status))
}

/// Returns the status with which the site refuses a URL such as `https://a.example/http-403`.
fn refused_status(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("/http-")?;
    let status = rest.get(..3)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

fn status(url: &str, source: &str, error: Option<(String, Option<u16>)>) -> Value {
    match error {
        None => json!({ "id": url, "status": "success", "source": source }),
        Some((tag, code)) => {
            let error = json!({ "tag": tag, "httpStatusCode": code });
            json!({ "id": url, "status": "error", "source": source, "error": error })
        }
    }
}

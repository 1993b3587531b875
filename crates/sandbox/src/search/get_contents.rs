//! `/contents`: single URLs can fail while the call succeeds.

use serde_json::{Value, json};

use super::contents::ContentsOptions;
use super::cost::Cost;
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
    let (mut pages, mut results) = (Vec::new(), Vec::new());
    for url in urls.iter().filter(|url| fetch_error(url).is_none()) {
        let page = Page::at(seed, url);
        let mut result = contents.result(&page);
        // The id repeats the request, even if the URL had no scheme.
        set(&mut result, "id", *url);
        results.push(result);
        pages.push(page);
    }
    let statuses = urls.iter().map(|url| status(url, contents.source()));
    let mut body = json!({
        "requestId": call.request_id,
        "results": results,
        "statuses": statuses.collect::<Value>(),
        "searchTime": Rng::new(seed, &urls).between(40, 900),
        "costDollars": Cost::default().with_pages(&contents, pages.len()).to_json(),
    });
    if let Some(context) = contents.context(None, &pages) {
        set(&mut body, "context", context);
    }
    ApiResponse::ok(body)
}

/// Returns tag and HTTP status of the error that a URL simulates.
fn fetch_error(url: &str) -> Option<(&'static str, Option<u16>)> {
    let has_scheme = url.contains("://");
    if (has_scheme && !url.starts_with("http://") && !url.starts_with("https://"))
        || url.trim().is_empty()
    {
        Some(("UNSUPPORTED_URL", None))
    } else if url.contains("missing") {
        Some(("CRAWL_NOT_FOUND", Some(404)))
    } else if url.contains("timeout") {
        Some(("CRAWL_LIVECRAWL_TIMEOUT", Some(408)))
    } else {
        None
    }
}

fn status(url: &str, source: &str) -> Value {
    match fetch_error(url) {
        None => json!({ "id": url, "status": "success", "source": source }),
        Some((tag, code)) => {
            json!({ "id": url, "status": "error", "error": { "tag": tag, "httpStatusCode": code } })
        }
    }
}

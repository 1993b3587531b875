//! `/contents`: single addresses can fail while the call succeeds.

use serde_json::{Value, json};

use super::contents::Contents;
use super::cost::Cost;
use crate::call::{Call, Outcome, Reply};
use crate::corpus::Page;
use crate::failure::Failure;
use crate::random::Dice;
use crate::state::Account;

/// `POST /contents`.
pub(crate) fn get_contents(account: &mut Account, call: &Call) -> Outcome {
    let seed = account.data_seed();
    let urls: Vec<&str> = call
        .list("urls")
        .iter()
        .chain(call.list("ids"))
        .filter_map(Value::as_str)
        .collect();
    if urls.is_empty() {
        return Err(Failure::new(
            400,
            "INVALID_URLS",
            "urls must name at least one address",
        ));
    }
    let contents = Contents::new(Some(&call.args), "", seed);
    contents.check(call)?;
    let good: Vec<&str> = urls
        .iter()
        .copied()
        .filter(|url| problem(url).is_none())
        .collect();
    let pages: Vec<Page> = good.iter().map(|url| Page::at(seed, url)).collect();
    let statuses: Vec<Value> = urls
        .iter()
        .map(|url| status(url, contents.source()))
        .collect();
    let results: Vec<Value> = good
        .iter()
        .zip(&pages)
        .map(|(url, page)| result(&contents, url, page))
        .collect();
    let mut body = json!({
        "requestId": call.request_id,
        "results": results,
        "statuses": statuses,
        "searchTime": Dice::new(seed, &urls).between(40, 900),
        "costDollars": Cost::default().with_pages(&contents, pages.len()).to_json(),
    });
    if let (Value::Object(fields), Some(context)) = (&mut body, contents.context(None, &pages)) {
        fields.insert("context".into(), context.into());
    }
    Reply::ok(body)
}

/// A result goes by the id it was asked for, even where its address had to be completed.
fn result(contents: &Contents, id: &str, page: &Page) -> Value {
    let mut result = contents.result(page);
    if let Value::Object(fields) = &mut result {
        fields.insert("id".into(), id.into());
    }
    result
}

/// Why an address cannot be fetched, which the address itself says.
fn problem(url: &str) -> Option<(&'static str, Option<u16>)> {
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
    match problem(url) {
        None => json!({ "id": url, "status": "success", "source": source }),
        Some((tag, code)) => {
            json!({ "id": url, "status": "error", "error": { "tag": tag, "httpStatusCode": code } })
        }
    }
}

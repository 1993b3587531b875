//! `/answer`.

use serde_json::{Value, json};

use super::cost::Cost;
use super::output::{prose, structured};
use super::stream;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::{Page, PageQuery};
use crate::json::set;
use crate::state::Account;

/// Number of pages that an answer cites.
const SOURCES: usize = 5;

/// `POST /answer`.
pub(crate) fn answer(account: &mut Account, call: &Call) -> ApiResult {
    let seed = account.data_seed();
    let query = call.text("query");
    let pages = PageQuery::new(query, SOURCES).run(seed);
    let answer = structured(call.get("outputSchema"), seed, query)?
        .unwrap_or_else(|| prose(query, &pages).into());
    let citations: Vec<Value> = pages
        .iter()
        .map(|page| citation(page, call.flag("text")))
        .collect();
    let cost = Cost::answer();
    account.charge("answer", cost.total());
    if call.flag("stream") {
        let events = stream::answer(call, &answer, citations, &cost);
        return Ok(ApiResponse::Events(events));
    }
    ApiResponse::ok(json!({
        "requestId": call.request_id,
        "answer": answer,
        "citations": citations,
        "costDollars": cost.to_json(),
    }))
}

fn citation(page: &Page, with_text: bool) -> Value {
    let mut citation = page.to_json();
    if with_text {
        set(&mut citation, "text", page.text());
    }
    citation
}

//! `/answer`.

use serde_json::{Value, json};

use super::cost::Cost;
use super::output::{prose, structured};
use super::query::pieces;
use crate::call::{Call, Outcome, Reply};
use crate::corpus::{Find, Page};
use crate::state::Account;

/// Pages an answer rests on.
const SOURCES: usize = 5;

/// `POST /answer`.
pub(crate) fn answer(account: &mut Account, call: &Call) -> Outcome {
    let seed = account.data_seed();
    let query = call.text("query");
    let pages = Find {
        query: query.to_owned(),
        count: SOURCES,
        ..Find::default()
    }
    .run(seed);
    let answer = structured(call.get("outputSchema"), seed, query)?
        .unwrap_or_else(|| prose(query, &pages).into());
    let citations: Vec<Value> = pages
        .iter()
        .map(|page| citation(page, call.flag("text")))
        .collect();
    if call.flag("stream") {
        let text = answer
            .as_str()
            .map_or_else(|| answer.to_string(), str::to_owned);
        return Ok(Reply::Events(pieces(
            call,
            &text,
            citations,
            &Cost::answer(),
        )));
    }
    Reply::ok(json!({
        "requestId": call.request_id,
        "answer": answer,
        "citations": citations,
        "costDollars": Cost::answer().to_json(),
    }))
}

fn citation(page: &Page, with_text: bool) -> Value {
    let mut citation = page.to_json();
    if let (Value::Object(fields), true) = (&mut citation, with_text) {
        fields.insert("text".into(), page.text().into());
    }
    citation
}

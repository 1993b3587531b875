//! `POST /websets/v0/websets/preview`: how a query would be read, without creating anything.

use serde_json::{Value, json};

use super::Wanted;
use crate::call::{Call, Outcome, Reply};
use crate::corpus::entity::{self, Kind};
use crate::failure::Failure;
use crate::random::hash;
use crate::state::Account;
use crate::time::iso;
use crate::{corpus, ids};

pub(crate) fn preview(account: &mut Account, call: &Call) -> Outcome {
    let wanted = Wanted::of(&call.or_null("search"), 10);
    if corpus::words_of(&wanted.query).is_empty() {
        return Err(Failure::new(
            422,
            "UNABLE_TO_GENERATE_RESPONSE",
            "The query says nothing to look for",
        ));
    }
    let kind = Kind::of(&wanted.entity);
    let criteria: Vec<Value> = wanted
        .criteria
        .iter()
        .map(|description| json!({ "description": description }))
        .collect();
    let seed = account.data_seed();
    let count = if call.flag("withItems") {
        wanted.count
    } else {
        0
    };
    let items: Vec<Value> = (0..count)
        .map(|index| {
            let hash = hash(seed, &["preview", &wanted.query, &index.to_string()]);
            json!({
                "id": ids::id("item", account.now(), hash),
                "properties": entity::found(seed, kind, &wanted.query, index),
                "createdAt": iso(account.now()),
            })
        })
        .collect();
    Reply::ok(json!({
        "search": { "entity": wanted.entity, "criteria": criteria },
        "enrichments": suggestions(kind),
        "items": items,
    }))
}

/// Columns worth adding for a kind of entity.
fn suggestions(kind: Kind) -> Value {
    match kind {
        Kind::Company => json!([
            { "description": "Year the company was founded", "format": "date" },
            { "description": "Number of employees", "format": "number" },
            { "description": "Funding stage", "format": "options", "options": [{ "label": "Seed" }, { "label": "Series A" }, { "label": "Later" }] },
        ]),
        Kind::Person => json!([
            { "description": "Work email address", "format": "email" },
            { "description": "LinkedIn profile", "format": "url" },
        ]),
        _ => json!([{ "description": "Summary in two sentences", "format": "text" }]),
    }
}

//! `POST /websets/v0/websets/preview`: how a query is interpreted, without creating anything.

use serde_json::{Value, json};

use super::SearchSpec;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::entity::{self, EntityKind};
use crate::rng::hash;
use crate::state::Account;
use crate::time::iso;
use crate::{corpus, ids};

pub(crate) fn preview(account: &mut Account, call: &Call) -> ApiResult {
    let spec = SearchSpec::from_request(&call.or_null("search"));
    if corpus::words_of(&spec.query).is_empty() {
        return Err(ApiError::new(422, "", "The query says nothing to look for"));
    }
    let kind = EntityKind::from_json(&spec.entity);
    let criteria = spec.criteria.iter();
    let criteria: Value = criteria
        .map(|description| json!({ "description": description }))
        .collect();
    let seed = account.data_seed();
    let count = if call.flag("withItems") {
        spec.count
    } else {
        0
    };
    let items: Vec<Value> = (0..count)
        .map(|index| {
            let hash = hash(seed, &["preview", &spec.query, &index.to_string()]);
            json!({
                "id": ids::id("item", account.now(), hash),
                "properties": entity::generate(seed, kind, &spec.query, index),
                "createdAt": iso(account.now()),
            })
        })
        .collect();
    ApiResponse::ok(json!({
        "search": { "entity": spec.entity, "criteria": criteria },
        "enrichments": suggested_enrichments(kind),
        "items": items,
    }))
}

/// Enrichments to suggest for a kind of entity.
fn suggested_enrichments(kind: EntityKind) -> Value {
    match kind {
        EntityKind::Company => json!([
            { "description": "Year the company was founded", "format": "date" },
            { "description": "Number of employees", "format": "number" },
            { "description": "Funding stage", "format": "options", "options": [{ "label": "Seed" }, { "label": "Series A" }, { "label": "Later" }] },
        ]),
        EntityKind::Person => json!([
            { "description": "Work email address", "format": "email" },
            { "description": "LinkedIn profile", "format": "url" },
        ]),
        _ => json!([{ "description": "Summary in two sentences", "format": "text" }]),
    }
}

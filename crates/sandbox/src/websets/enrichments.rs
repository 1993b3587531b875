//! Enrichments: columns that are filled in for every item, present and future.

use serde_json::{Value, json};

use super::items::EnrichmentResult;
use super::webset::Webset;
use crate::call::{Call, Outcome, Reply};
use crate::corpus::{start_of, value};
use crate::failure::Failure;
use crate::state::Account;
use crate::time::iso;

/// One enrichment.
pub(crate) struct Enrichment {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) description: String,
    pub(super) format: String,
    pub(super) options: Vec<String>,
    metadata: Value,
    created: u64,
    updated: u64,
}

impl Enrichment {
    /// Adds an enrichment to a webset; all items are looked at again for its sake.
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        request: &Value,
    ) -> Result<String, Failure> {
        account.need_room(1)?;
        let description = request
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let options = labels(request.get("options"));
        let format = request.get("format").and_then(Value::as_str);
        let format = format.unwrap_or(if options.is_empty() {
            value::format_for(description)
        } else {
            "options"
        });
        check(format, &options)?;
        let id = account.id("enrichment");
        let enrichment = Enrichment {
            status: "pending",
            description: description.to_owned(),
            format: format.to_owned(),
            options,
            metadata: request
                .get("metadata")
                .cloned()
                .unwrap_or_else(|| json!({})),
            created: account.now(),
            updated: account.now(),
            id: id.clone(),
        };
        for item in webset.items.values_mut() {
            item.results.extend(enrichment.blank(account.now()));
        }
        webset.enrichments.insert(&id, enrichment);
        webset.updated = account.now();
        account.wake(webset, 1);
        Ok(id)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    /// What a new item starts with; nothing when the enrichment was canceled.
    pub(super) fn blank(&self, now: u64) -> Option<EnrichmentResult> {
        (self.status != "canceled").then(|| EnrichmentResult {
            enrichment: self.id.clone(),
            format: self.format.clone(),
            status: "pending",
            value: None,
            since: now,
        })
    }

    pub(super) fn turn(&mut self, status: &'static str, now: u64) {
        self.status = status;
        self.updated = now;
    }

    pub(super) fn cancel_all(webset: &mut Webset, now: u64) {
        let ids: Vec<String> = webset.enrichments.ids().map(str::to_owned).collect();
        for id in ids {
            cancel_one(webset, &id, now);
        }
    }

    pub(super) fn to_json(&self, webset: &str) -> Value {
        let options: Vec<Value> = self
            .options
            .iter()
            .map(|label| json!({ "label": label }))
            .collect();
        json!({
            "id": self.id,
            "object": "webset_enrichment",
            "status": self.status,
            "websetId": webset,
            "title": start_of(&self.description, 60),
            "description": self.description,
            "format": self.format,
            "options": if options.is_empty() { Value::Null } else { options.into() },
            "instructions": null,
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn change(&mut self, call: &Call, now: u64) -> Result<(), Failure> {
        let format = call.opt_text("format").unwrap_or(&self.format).to_owned();
        let options = call
            .get("options")
            .map_or_else(|| self.options.clone(), |options| labels(Some(options)));
        check(&format, &options)?;
        self.format = format;
        self.options = options;
        if let Some(description) = call.opt_text("description") {
            description.clone_into(&mut self.description);
        }
        if call.get("metadata").is_some() {
            self.metadata = call.metadata();
        }
        self.updated = now;
        Ok(())
    }
}

fn labels(options: Option<&Value>) -> Vec<String> {
    let list = options
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .filter_map(|option| option.get("label")?.as_str())
        .map(str::to_owned)
        .collect()
}

fn check(format: &str, options: &[String]) -> Result<(), Failure> {
    if format == "options" && options.is_empty() {
        return Err(Failure::invalid(
            "options: the format options needs at least one",
        ));
    }
    Ok(())
}

fn cancel_one(webset: &mut Webset, id: &str, now: u64) {
    let Some(enrichment) = webset
        .enrichments
        .get_mut(id)
        .filter(|enrichment| enrichment.is_pending())
    else {
        return;
    };
    enrichment.status = "canceled";
    enrichment.updated = now;
    for item in webset.items.values_mut() {
        let unfinished = item
            .results
            .iter_mut()
            .filter(|result| result.enrichment == id && result.status == "pending");
        unfinished.for_each(|result| result.status = "canceled");
    }
}

fn shown(webset: &Webset, id: &str) -> Result<Value, Failure> {
    let enrichment = webset
        .enrichments
        .get(id)
        .ok_or_else(|| Failure::not_found("Enrichment", id))?;
    Ok(enrichment.to_json(&webset.id))
}

/// `POST /websets/v0/websets/{webset}/enrichments`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    let request = Value::Object(call.args.clone());
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        let id = Enrichment::add(account, webset, &request)?;
        shown(webset, &id)
    })?;
    Reply::ok(json)
}

/// `GET /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(shown(account.webset_of(call)?, call.text("enrichmentId"))?)
}

/// `PATCH /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("enrichmentId");
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        let enrichment = webset
            .enrichments
            .get_mut(id)
            .ok_or_else(|| Failure::not_found("Enrichment", id))?;
        enrichment.change(call, account.now())?;
        shown(webset, id)
    })?;
    Reply::ok(json)
}

/// `DELETE /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("enrichmentId");
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        cancel_one(webset, id, account.now());
        let json = shown(webset, id)?;
        webset.enrichments.remove(id);
        for item in webset.items.values_mut() {
            item.results.retain(|result| result.enrichment != id);
        }
        webset.updated = account.now();
        Ok(json)
    })?;
    Reply::ok(json)
}

/// `POST /websets/v0/websets/{webset}/enrichments/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("enrichmentId");
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        cancel_one(webset, id, account.now());
        shown(webset, id)
    })?;
    Reply::ok(json)
}

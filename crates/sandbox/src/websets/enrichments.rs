//! Enrichments: columns that are filled in for every item, present and future.

use serde_json::{Value, json};

use super::items::EnrichmentResult;
use super::webset::Webset;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::{truncate, value};
use crate::json::{items, metadata, opt_text, text};
use crate::state::{Account, Resource};
use crate::time::iso;

/// One enrichment.
pub(crate) struct Enrichment {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) description: String,
    format: String,
    pub(super) options: Vec<String>,
    metadata: Value,
    created: u64,
    updated: u64,
}

impl Resource for Enrichment {
    const NAME: &'static str = "Enrichment";
}

impl Enrichment {
    /// Adds an enrichment to a webset and requests its value for all items.
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        request: &Value,
    ) -> Result<String, ApiError> {
        account.ensure_capacity(1)?;
        let description = text(request, "description");
        let options = request.get("options").map(parse_options);
        let options = options.unwrap_or_default();
        let format = opt_text(request, "format").unwrap_or(if options.is_empty() {
            value::format_for(description)
        } else {
            "options"
        });
        validate(format, &options)?;
        let id = account.new_id("enrichment");
        let enrichment = Enrichment {
            status: "pending",
            description: description.to_owned(),
            format: format.to_owned(),
            options,
            metadata: metadata(request),
            created: account.now(),
            updated: account.now(),
            id: id.clone(),
        };
        for item in webset.items.values_mut() {
            let result = enrichment.pending_result(account.now());
            item.results.extend(result);
        }
        webset.enrichments.insert(&id, enrichment);
        webset.updated = account.now();
        webset.wake(account, 1);
        Ok(id)
    }

    /// Returns the initial result of an item; `None` if the enrichment is canceled.
    pub(super) fn pending_result(&self, now: u64) -> Option<EnrichmentResult> {
        (self.status != "canceled").then(|| EnrichmentResult {
            enrichment: self.id.clone(),
            format: self.format.clone(),
            status: "pending",
            value: None,
            requested: now,
        })
    }

    /// Whether the description asks for a failure.
    pub(super) fn asks_for_failure(&self) -> bool {
        self.description.contains("sandbox-fail")
    }

    pub(super) fn set_status(&mut self, status: &'static str, now: u64) {
        self.status = status;
        self.updated = now;
    }

    /// Cancels a pending enrichment and its pending results.
    pub(super) fn cancel(webset: &mut Webset, id: &str, now: u64) {
        let enrichment = webset.enrichments.get_mut(id);
        let Some(enrichment) = enrichment.filter(|enrichment| enrichment.status == "pending")
        else {
            return;
        };
        enrichment.set_status("canceled", now);
        let results = webset.items.values_mut().flat_map(|item| &mut item.results);
        results
            .filter(|result| result.enrichment == id && result.status == "pending")
            .for_each(|result| result.status = "canceled");
    }

    pub(super) fn to_json(&self, webset: &str) -> Value {
        let labels = self.options.iter().map(|label| json!({ "label": label }));
        let options = (!self.options.is_empty()).then(|| labels.collect::<Value>());
        json!({
            "id": self.id,
            "object": "webset_enrichment",
            "status": self.status,
            "websetId": webset,
            "title": truncate(&self.description, 60),
            "description": self.description,
            "format": self.format,
            "options": options,
            "instructions": null,
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn update(&mut self, call: &Call, now: u64) -> Result<(), ApiError> {
        let format = call.opt_text("format").unwrap_or(&self.format).to_owned();
        let options = call.get("options").map(parse_options);
        let options = options.unwrap_or_else(|| self.options.clone());
        validate(&format, &options)?;
        self.format = format;
        self.options = options;
        if let Some(description) = call.opt_text("description") {
            description.clone_into(&mut self.description);
        }
        call.update_metadata(&mut self.metadata);
        self.updated = now;
        Ok(())
    }
}

fn parse_options(options: &Value) -> Vec<String> {
    let labels = items(options).iter();
    let labels = labels.filter_map(|option| opt_text(option, "label"));
    labels.map(str::to_owned).collect()
}

fn validate(format: &str, options: &[String]) -> Result<(), ApiError> {
    if format == "options" && options.is_empty() {
        return Err(ApiError::invalid(
            "options: the format options needs at least one",
        ));
    }
    Ok(())
}

fn enrichment_json(webset: &Webset, id: &str) -> Result<Value, ApiError> {
    Ok(webset.enrichments.find(id)?.to_json(&webset.id))
}

/// `POST /websets/v0/websets/{webset}/enrichments`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    let request = Value::Object(call.args.clone());
    account.change_webset(call, |account, webset| {
        let id = Enrichment::add(account, webset, &request)?;
        enrichment_json(webset, &id)
    })
}

/// `GET /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let webset = account.requested_webset(call)?;
    ApiResponse::ok(enrichment_json(webset, call.text("enrichmentId"))?)
}

/// `PATCH /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("enrichmentId");
    account.change_webset(call, |account, webset| {
        let enrichment = webset.enrichments.find_mut(id)?;
        enrichment.update(call, account.now())?;
        enrichment_json(webset, id)
    })
}

/// `DELETE /websets/v0/websets/{webset}/enrichments/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("enrichmentId");
    account.change_webset(call, |account, webset| {
        Enrichment::cancel(webset, id, account.now());
        let enrichment = webset.enrichments.delete(id)?;
        for item in webset.items.values_mut() {
            item.results.retain(|result| result.enrichment != id);
        }
        webset.updated = account.now();
        Ok(enrichment.to_json(&webset.id))
    })
}

/// `POST /websets/v0/websets/{webset}/enrichments/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("enrichmentId");
    account.change_webset(call, |account, webset| {
        Enrichment::cancel(webset, id, account.now());
        enrichment_json(webset, id)
    })
}

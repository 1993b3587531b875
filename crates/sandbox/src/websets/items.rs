//! Items of a webset, with evaluations and the results of enrichments.

use serde_json::{Value, json};

use super::searches::WebsetSearch;
use super::sources::SourceLookup;
use super::webset::Webset;
use super::{events, reference};
use crate::call::{ApiResponse, ApiResult, Call};
use crate::json::text;
use crate::state::{Account, Order, Paging, Resource};
use crate::time::iso;

/// One item.
pub(crate) struct Item {
    id: String,
    /// `import` or `search`.
    source: &'static str,
    source_id: String,
    pub(super) properties: Value,
    pub(super) evaluations: Vec<Value>,
    /// One result per enrichment.
    pub(super) results: Vec<EnrichmentResult>,
    created: u64,
    pub(super) updated: u64,
}

/// The value that an enrichment found for an item.
pub(super) struct EnrichmentResult {
    pub(super) enrichment: String,
    pub(super) format: String,
    pub(super) status: &'static str,
    pub(super) value: Option<String>,
    pub(super) requested: u64,
}

impl Resource for Item {
    const NAME: &'static str = "Item";
}

impl Item {
    /// Adds an item to a webset and returns true, unless the webset contains its URL already.
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        source: &ItemSource<'_>,
        properties: Value,
    ) -> bool {
        let url = Item::url_of(&properties);
        if !webset.urls.insert(url.clone()) {
            return false;
        }
        let (source, source_id, evaluations) = match source {
            ItemSource::Import(id) => {
                let evaluations = webset.evaluate_import(id, &url);
                ("import", (*id).to_owned(), evaluations)
            }
            ItemSource::Search(search) => {
                let evaluations = evaluate(&search.spec.criteria, &url);
                ("search", search.id.clone(), evaluations)
            }
        };
        let id = account.new_id("item");
        let enrichments = webset.enrichments.values();
        let item = Item {
            source,
            source_id,
            evaluations,
            properties,
            results: enrichments
                .filter_map(|enrichment| enrichment.pending_result(account.now()))
                .collect(),
            created: account.now(),
            updated: account.now(),
            id: id.clone(),
        };
        let json = item.to_json(&webset.id);
        webset.items.insert(&id, item);
        events::record(account, "webset.item.created", json);
        true
    }

    /// Returns the URL in an item's properties, which identifies the item.
    pub(super) fn url_of(properties: &Value) -> String {
        text(properties, "url").to_owned()
    }

    /// Whether an enrichment that was requested by `time` is still pending.
    pub(super) fn is_due(&self, time: u64) -> bool {
        self.results.iter().any(|result| result.is_due(time))
    }

    /// Whether an enrichment is still pending.
    pub(super) fn is_pending(&self) -> bool {
        self.is_due(u64::MAX)
    }

    pub(super) fn to_json(&self, webset: &str) -> Value {
        let url = Item::url_of(&self.properties);
        json!({
            "id": self.id,
            "object": "webset_item",
            "source": self.source,
            "sourceId": self.source_id,
            "websetId": webset,
            "properties": self.properties,
            "evaluations": self.evaluations,
            "enrichments": self.results.iter().map(|result| result.to_json(&url)).collect::<Value>(),
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }
}

/// The origin of an item.
pub(super) enum ItemSource<'a> {
    /// The id of an import or of another webset.
    Import(&'a str),
    Search(&'a WebsetSearch),
}

/// Evaluates the criteria of the search that found an item: it meets all of them.
pub(super) fn evaluate(criteria: &[String], url: &str) -> Vec<Value> {
    let evaluations = criteria.iter().map(|criterion| {
        json!({
            "criterion": criterion,
            "reasoning": "The made-up page says so.",
            "satisfied": "yes",
            "references": [reference(url, "Source")],
        })
    });
    evaluations.collect()
}

impl EnrichmentResult {
    /// Whether the result was requested by `time` and is still pending.
    pub(super) fn is_due(&self, time: u64) -> bool {
        self.status == "pending" && self.requested <= time
    }

    fn to_json(&self, url: &str) -> Value {
        let is_done = self.value.is_some();
        let references: Value = is_done
            .then(|| reference(url, "Source"))
            .into_iter()
            .collect();
        json!({
            "object": "enrichment_result",
            "status": self.status,
            "format": self.format,
            "result": self.value.as_ref().map(|value| vec![value]),
            "reasoning": is_done.then_some("Taken from the made-up page."),
            "references": references,
            "enrichmentId": self.enrichment,
        })
    }
}

/// Adds the records of imports and the items of other websets. Imports are added by a later tick,
/// when they are complete.
pub(super) fn add_from_sources(account: &mut Account, webset: &mut Webset, sources: &[Value]) {
    for source in sources {
        let id = text(source, "id");
        if text(source, "source") == "import" {
            webset.imports.push(id.to_owned());
            webset.pending_imports.push(id.to_owned());
        } else {
            let own = Some(&*webset);
            let lookup = SourceLookup { account, own };
            let properties = lookup.properties(std::slice::from_ref(source));
            add_all(account, webset, id, properties);
        }
    }
}

/// Adds the contents of a source, except excluded ones, while the account has capacity.
pub(super) fn add_all(
    account: &mut Account,
    webset: &mut Webset,
    source: &str,
    properties: Vec<Value>,
) {
    let own = Some(&*webset);
    let excluded = SourceLookup { account, own }.urls(&webset.excludes);
    // The webset is not in its table at this point, so its items are subtracted here.
    let capacity = account.remaining_capacity().saturating_sub(webset.size());
    for properties in properties
        .into_iter()
        .filter(|properties| !excluded.contains(&Item::url_of(properties)))
        .take(capacity)
    {
        Item::add(account, webset, &ItemSource::Import(source), properties);
    }
}

/// `GET /websets/v0/websets/{webset}/items`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 20, 100)?;
    let webset = account.requested_webset(call)?;
    let source = call.opt_text("sourceId");
    let rows = webset
        .items
        .rows()
        .filter(|(_, item)| source.is_none_or(|source| item.source_id == source));
    ApiResponse::ok(paging.page(rows, Order::OldestFirst, |item| item.to_json(&webset.id)))
}

/// `GET /websets/v0/websets/{webset}/items/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let webset = account.requested_webset(call)?;
    let item = webset.items.find(call.text("itemId"))?;
    ApiResponse::ok(item.to_json(&webset.id))
}

/// `DELETE /websets/v0/websets/{webset}/items/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    account.change_webset(call, |account, webset| {
        let item = webset.items.delete(call.text("itemId"))?;
        webset.urls.remove(&Item::url_of(&item.properties));
        webset.updated = account.now();
        Ok(item.to_json(&webset.id))
    })
}

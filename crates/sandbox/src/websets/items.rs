//! Items of a webset, with evaluations and the results of enrichments.

use serde_json::{Value, json};

use super::reference;
use super::searches::Search;
use super::sources::Sources;
use super::webset::Webset;
use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging};
use crate::time::iso;

/// One item.
pub(crate) struct Item {
    pub(super) id: String,
    /// Whether it comes from an import; otherwise from a search.
    pub(super) imported: bool,
    pub(super) source_id: String,
    pub(super) properties: Value,
    pub(super) evaluations: Vec<Value>,
    /// Results by enrichment.
    pub(super) results: Vec<EnrichmentResult>,
    pub(super) created: u64,
    pub(super) updated: u64,
}

/// What an enrichment found out about an item.
pub(super) struct EnrichmentResult {
    pub(super) enrichment: String,
    pub(super) format: String,
    pub(super) status: &'static str,
    pub(super) value: Option<String>,
    /// When it was asked for.
    pub(super) since: u64,
}

impl Item {
    /// Adds an item to a webset, unless its address is there already.
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        source: &Source<'_>,
        properties: Value,
    ) -> bool {
        let address = Item::address(&properties);
        if !webset.addresses.insert(address.clone()) {
            return false;
        }
        let id = account.id("item");
        let item = Item {
            imported: source.search.is_none(),
            source_id: source.id.to_owned(),
            evaluations: source
                .search
                .map(|search| evaluations(search, &address))
                .unwrap_or_default(),
            properties,
            results: webset
                .enrichments
                .values()
                .filter_map(|enrichment| enrichment.blank(account.now()))
                .collect(),
            created: account.now(),
            updated: account.now(),
            id: id.clone(),
        };
        let json = item.to_json(&webset.id);
        webset.items.insert(&id, item);
        account.record("webset.item.created", json);
        true
    }

    /// The address of an item's properties; two items with the same one are the same.
    pub(super) fn address(properties: &Value) -> String {
        properties
            .get("url")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// Whether an enrichment that was asked for by `then` still has to look at it.
    pub(super) fn is_due(&self, then: u64) -> bool {
        self.results.iter().any(|result| result.is_due(then))
    }

    /// Whether an enrichment still has to look at it.
    pub(super) fn is_pending(&self) -> bool {
        self.results.iter().any(|result| result.status == "pending")
    }

    pub(super) fn to_json(&self, webset: &str) -> Value {
        let address = Item::address(&self.properties);
        json!({
            "id": self.id,
            "object": "webset_item",
            "source": if self.imported { "import" } else { "search" },
            "sourceId": self.source_id,
            "websetId": webset,
            "properties": self.properties,
            "evaluations": self.evaluations,
            "enrichments": self.results.iter().map(|result| result.to_json(&address)).collect::<Vec<_>>(),
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }
}

/// Where an item comes from.
pub(super) struct Source<'a> {
    pub(super) id: &'a str,
    pub(super) search: Option<&'a [String]>,
}

impl<'a> Source<'a> {
    /// A search with these criteria.
    pub(super) fn search(search: &'a Search) -> Self {
        Source {
            id: &search.id,
            search: Some(&search.wanted.criteria),
        }
    }
}

/// Items of a webset meet all criteria of the search that found them.
pub(super) fn evaluations(criteria: &[String], address: &str) -> Vec<Value> {
    let each = criteria.iter().map(|criterion| {
        json!({
            "criterion": criterion,
            "reasoning": "The made-up page says so.",
            "satisfied": "yes",
            "references": [reference(address, "Source")],
        })
    });
    each.collect()
}

impl EnrichmentResult {
    pub(super) fn is_due(&self, then: u64) -> bool {
        self.status == "pending" && self.since <= then
    }

    fn to_json(&self, address: &str) -> Value {
        let done = self.value.is_some();
        let references = if done {
            vec![reference(address, "Source")]
        } else {
            Vec::new()
        };
        json!({
            "object": "enrichment_result",
            "status": self.status,
            "format": self.format,
            "result": self.value.as_ref().map(|value| vec![value]),
            "reasoning": done.then_some("Taken from the made-up page."),
            "references": references,
            "enrichmentId": self.enrichment,
        })
    }
}

/// Makes the records of imports and other websets items of a webset. Imports that are not complete
/// yet are waited for.
pub(super) fn take_in(account: &mut Account, webset: &mut Webset, entries: &[Value]) {
    for entry in entries {
        let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
        if entry.get("source").and_then(Value::as_str) == Some("import") {
            webset.imports.push(id.to_owned());
            webset.waiting.push(id.to_owned());
        } else {
            let sources = Sources {
                account,
                own: Some(webset),
            };
            let all = sources.properties(std::slice::from_ref(entry));
            add_all(account, webset, id, all);
        }
    }
}

/// Adds what an import or another webset holds, as far as there is room for it.
pub(super) fn add_all(account: &mut Account, webset: &mut Webset, source: &str, all: Vec<Value>) {
    let sources = Sources {
        account,
        own: Some(webset),
    };
    let excluded = sources.addresses(&webset.excludes);
    // The webset itself is out of its table at this point, so its own items count extra.
    let room = account.room().saturating_sub(webset.size());
    for properties in all
        .into_iter()
        .filter(|one| !excluded.contains(&Item::address(one)))
        .take(room)
    {
        Item::add(
            account,
            webset,
            &Source {
                id: source,
                search: None,
            },
            properties,
        );
    }
}

/// `GET /websets/v0/websets/{webset}/items`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 20, 100)?;
    let webset = account.webset_of(call)?;
    let source = call.opt_text("sourceId");
    let rows = webset
        .items
        .placed()
        .filter(|(_, item)| source.is_none_or(|source| item.source_id == source));
    Reply::ok(paging.page(rows, Order::OldestFirst, |item| item.to_json(&webset.id)))
}

/// `GET /websets/v0/websets/{webset}/items/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    let webset = account.webset_of(call)?;
    let id = call.text("itemId");
    let item = webset
        .items
        .get(id)
        .ok_or_else(|| Failure::not_found("Item", id))?;
    Reply::ok(item.to_json(&webset.id))
}

/// `DELETE /websets/v0/websets/{webset}/items/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("itemId");
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        let item = webset
            .items
            .remove(id)
            .ok_or_else(|| Failure::not_found("Item", id))?;
        webset.addresses.remove(&Item::address(&item.properties));
        webset.updated = account.now();
        Ok(item.to_json(&webset.id))
    })?;
    Reply::ok(json)
}

//! Websets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::enrichments::Enrichment;
use super::items::{self, Item};
use super::searches::WebsetSearch;
use super::sources::SourceLookup;
use super::{SearchSpec, events};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::truncate;
use crate::json::{set, text};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::iso;

/// Maximum number of items that `expand=items` returns.
const MAX_EXPANDED_ITEMS: usize = 100;
/// Maximum length of a title.
const MAX_TITLE: usize = 80;

/// A webset with its searches, enrichments and items.
pub(crate) struct Webset {
    pub(super) id: String,
    external_id: Option<String>,
    title: Option<String>,
    pub(super) searches: Table<WebsetSearch>,
    pub(super) enrichments: Table<Enrichment>,
    pub(super) items: Table<Item>,
    /// URLs of the items; a webset contains no entity twice.
    pub(super) urls: HashSet<String>,
    /// Imports whose records are or will become items.
    pub(super) imports: Vec<String>,
    /// Sources whose records are evaluated by the criteria of the first search.
    evaluated: HashSet<String>,
    /// Imports whose records have not been added yet.
    pub(super) pending_imports: Vec<String>,
    pub(super) excludes: Vec<Value>,
    metadata: Value,
    created: u64,
    pub(super) updated: u64,
    /// Whether the next tick is scheduled.
    pub(super) tick_scheduled: bool,
}

impl Resource for Webset {
    const NAME: &'static str = "Webset";

    fn size(&self) -> usize {
        1 + self.searches.len() + self.enrichments.len() + self.items.len()
    }
}

impl Webset {
    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }

    /// Whether `name` is the id or the externalId.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.id == name || self.external_id.as_deref() == Some(name)
    }

    /// Whether a search is active or an enrichment is pending.
    pub(super) fn is_busy(&self) -> bool {
        self.searches.values().any(WebsetSearch::is_active)
            || self.items.values().any(Item::is_pending)
    }

    fn status(&self) -> &'static str {
        let started = self.items.len() > 0 || self.searches.values().any(WebsetSearch::is_running);
        match (self.is_busy(), started) {
            (true, true) => "running",
            (true, false) => "pending",
            (false, _) if !self.pending_imports.is_empty() => "pending",
            (false, _) => "idle",
        }
    }

    pub(super) fn to_json(&self, account: &Account) -> Value {
        let now = account.now();
        let searches = self.searches.values();
        let enrichments = self.enrichments.values();
        let imports = self.imports.iter();
        let imports = imports.filter_map(|id| account.imports.get(id));
        let monitors = account.monitors.values();
        let monitors = monitors.filter(|monitor| monitor.webset == self.id);
        json!({
            "id": self.id,
            "object": "webset",
            "status": self.status(),
            "externalId": self.external_id,
            "title": self.title,
            "dashboardUrl": format!("https://sandbox.example/websets/{}", self.id),
            "searches": searches.map(|search| search.to_json(&self.id, now)).collect::<Value>(),
            "imports": imports.map(|import| import.to_json()).collect::<Value>(),
            "enrichments": enrichments.map(|enrichment| enrichment.to_json(&self.id)).collect::<Value>(),
            "monitors": monitors.map(|monitor| monitor.to_json(now)).collect::<Value>(),
            "excludes": self.excludes,
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    /// Returns the evaluations of an imported item, if its source asks for them.
    pub(super) fn evaluate_import(&self, source: &str, url: &str) -> Vec<Value> {
        let search = self.searches.values().next();
        let search = search.filter(|_| self.evaluated.contains(source));
        search.map_or_else(Vec::new, |search| {
            items::evaluate(&search.spec.criteria, url)
        })
    }

    /// Whether the text is a part of the title, of a query or of a name.
    fn mentions(&self, text: &str) -> bool {
        let queries = self
            .searches
            .values()
            .map(|search| search.spec.query.as_str());
        let names = [
            self.title.as_deref(),
            self.external_id.as_deref(),
            Some(&self.id),
        ];
        let mut texts = queries.chain(names.into_iter().flatten());
        texts.any(|part| part.to_lowercase().contains(text))
    }

    /// Sets the title to the query of the first search.
    pub(super) fn set_default_title(&mut self, query: &str) {
        self.title.get_or_insert_with(|| truncate(query, MAX_TITLE));
    }

    /// Schedules the next tick, unless it is scheduled already.
    pub(super) fn wake(&mut self, account: &mut Account, delay: u64) {
        if !self.tick_scheduled {
            self.tick_scheduled = true;
            let due = account.now().saturating_add(delay);
            account.schedule_at(due, ScheduledStep::Webset(self.id.clone()));
        }
    }

    fn cancel_work(&mut self, account: &mut Account, reason: &'static str) {
        for id in self.searches.ids_where(|_| true) {
            WebsetSearch::cancel(account, self, &id, Some(reason));
        }
        for id in self.enrichments.ids_where(|_| true) {
            Enrichment::cancel(self, &id, account.now());
        }
    }
}

/// Returns the ids of the sources with `evaluate`.
fn evaluated_sources(sources: &[Value]) -> HashSet<String> {
    let is_evaluated = |source: &&Value| {
        let flag = source.get("evaluate");
        flag.and_then(Value::as_bool) == Some(true)
    };
    let sources = sources.iter().filter(is_evaluated);
    sources
        .map(|source| text(source, "id").to_owned())
        .collect()
}

impl Account {
    /// Returns the id of the webset with this id or externalId.
    pub(super) fn webset_id(&self, name: &str) -> Result<String, ApiError> {
        if self.websets.contains(name) {
            return Ok(name.to_owned());
        }
        let mut websets = self.websets.values();
        let webset = websets.find(|webset| webset.has_name(name));
        webset
            .map(|webset| webset.id.clone())
            .ok_or_else(|| Webset::not_found(name))
    }

    /// Returns the webset that a request refers to.
    pub(super) fn requested_webset(&self, call: &Call) -> Result<&Webset, ApiError> {
        self.websets.find(&self.webset_id(call.text("websetId"))?)
    }

    /// Changes a webset while the rest of the account stays usable.
    pub(super) fn with_webset<R>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Account, &mut Webset) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let id = self.webset_id(name)?;
        let (sequence, mut webset) = self
            .websets
            .take(&id)
            .ok_or_else(|| Webset::not_found(name))?;
        let result = change(self, &mut webset);
        self.websets.put(sequence, &id, webset);
        result
    }

    /// Changes the webset that a request refers to; the result of `change` is the response.
    pub(super) fn change_webset(
        &mut self,
        call: &Call,
        change: impl FnOnce(&mut Account, &mut Webset) -> Result<Value, ApiError>,
    ) -> ApiResult {
        self.with_webset(call.text("websetId"), change)
            .and_then(ApiResponse::ok)
    }
}

/// `POST /websets/v0/websets`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(3 + call.list("enrichments").len())?;
    let external_id = call.opt_text("externalId").map(str::to_owned);
    if let Some(name) = &external_id
        && account.webset_id(name).is_ok()
    {
        let message = format!("A webset with the externalId {name} exists already");
        return Err(ApiError::new(409, "", message));
    }
    let sources = SourceLookup { account, own: None };
    sources.validate(call.list("import"))?;
    sources.validate(call.list("exclude"))?;
    let id = account.new_id("webset");
    let mut webset = Webset {
        external_id,
        title: call.opt_text("title").map(str::to_owned),
        searches: Table::default(),
        enrichments: Table::default(),
        items: Table::default(),
        urls: HashSet::new(),
        imports: Vec::new(),
        evaluated: evaluated_sources(call.list("import")),
        pending_imports: Vec::new(),
        excludes: call.list("exclude").to_vec(),
        metadata: call.metadata(),
        created: account.now(),
        updated: account.now(),
        tick_scheduled: false,
        id: id.clone(),
    };
    for enrichment in call.list("enrichments") {
        Enrichment::add(account, &mut webset, enrichment)?;
    }
    let json = webset.to_json(account);
    events::record(account, "webset.created", json);
    if let Some(search) = call.get("search") {
        let spec = SearchSpec::from_request(search);
        webset.set_default_title(&spec.query);
        WebsetSearch::add(account, &mut webset, spec, search)?;
    }
    items::add_from_sources(account, &mut webset, call.list("import"));
    webset.wake(account, 1);
    let json = webset.to_json(account);
    account.websets.insert(&id, webset);
    ApiResponse::created(json)
}

/// `GET /websets/v0/websets/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let webset = account.requested_webset(call)?;
    let mut json = webset.to_json(account);
    if call.texts("expand").contains(&"items") {
        let items = webset.items.values().take(MAX_EXPANDED_ITEMS);
        let items: Value = items.map(|item| item.to_json(&webset.id)).collect();
        set(&mut json, "items", items);
    }
    ApiResponse::ok(json)
}

/// `GET /websets/v0/websets`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 100)?;
    let search = call.opt_text("search").map(str::to_lowercase);
    let rows = account.websets.rows();
    let rows = rows.filter(|(_, webset)| search.as_ref().is_none_or(|text| webset.mentions(text)));
    let to_json = |webset: &Webset| webset.to_json(account);
    ApiResponse::ok(paging.page(rows, Order::NewestFirst, to_json))
}

/// `POST /websets/v0/websets/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    account.change_webset(call, |account, webset| {
        call.update_metadata(&mut webset.metadata);
        if let Some(title) = call.opt_text("title") {
            webset.title = Some(title.to_owned());
        }
        webset.updated = account.now();
        Ok(webset.to_json(account))
    })
}

/// `POST /websets/v0/websets/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> ApiResult {
    account.change_webset(call, |account, webset| {
        let was_busy = webset.is_busy();
        webset.cancel_work(account, "webset_canceled");
        webset.pending_imports.clear();
        webset.updated = account.now();
        let json = webset.to_json(account);
        if was_busy {
            events::record(account, "webset.idle", json.clone());
        }
        Ok(json)
    })
}

/// `DELETE /websets/v0/websets/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    let id = account.webset_id(call.text("websetId"))?;
    let mut webset = account.websets.delete(&id)?;
    webset.cancel_work(account, "webset_deleted");
    let json = webset.to_json(account);
    account.monitors.retain_mut(|monitor| monitor.webset != id);
    events::record(account, "webset.deleted", json.clone());
    ApiResponse::ok(json)
}

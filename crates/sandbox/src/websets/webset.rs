//! Websets themselves.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Wanted;
use super::enrichments::Enrichment;
use super::items;
use super::items::Item;
use super::searches::Search;
use super::sources::Sources;
use crate::call::{Call, Outcome, Reply};
use crate::corpus::start_of;
use crate::failure::Failure;
use crate::state::{Account, Order, Paging, Step, Table};
use crate::time::iso;

/// Items shown by `expand=items`.
const EXPANDED: usize = 100;
const USUAL_COUNT: u64 = 10;

/// A webset with all it holds.
pub(crate) struct Webset {
    pub(super) id: String,
    pub(super) external_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) searches: Table<Search>,
    pub(super) enrichments: Table<Enrichment>,
    pub(super) items: Table<Item>,
    /// Addresses of the items; a webset holds no entity twice.
    pub(super) addresses: HashSet<String>,
    /// Imports whose records are or will be items.
    pub(super) imports: Vec<String>,
    /// Those of them that have not been taken in yet.
    pub(super) waiting: Vec<String>,
    pub(super) excludes: Vec<Value>,
    pub(super) metadata: Value,
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Whether a tick is planned.
    pub(super) ticking: bool,
}

impl Webset {
    pub(crate) fn size(&self) -> usize {
        1 + self.searches.len() + self.enrichments.len() + self.items.len()
    }

    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }

    /// Whether this is its id or externalId.
    pub(super) fn goes_by(&self, name: &str) -> bool {
        self.id == name || self.external_id.as_deref() == Some(name)
    }

    /// Whether searches or enrichments still have something to do.
    pub(super) fn busy(&self) -> bool {
        self.searches.values().any(Search::is_active) || self.items.values().any(Item::is_pending)
    }

    fn status(&self) -> &'static str {
        let started = self
            .searches
            .values()
            .any(|search| search.status() == "running")
            || self.items.len() > 0;
        match (self.busy(), started) {
            (true, true) => "running",
            (true, false) => "pending",
            (false, _) if !self.waiting.is_empty() => "pending",
            (false, _) => "idle",
        }
    }
}

impl Account {
    pub(super) fn webset_json(&self, webset: &Webset) -> Value {
        let imports: Vec<Value> = webset
            .imports
            .iter()
            .filter_map(|id| self.imports.get(id))
            .map(|import| import.to_json())
            .collect();
        let monitors: Vec<Value> = self
            .monitors
            .values()
            .filter(|monitor| monitor.webset == webset.id)
            .map(|monitor| monitor.to_json(self.now()))
            .collect();
        json!({
            "id": webset.id,
            "object": "webset",
            "status": webset.status(),
            "externalId": webset.external_id,
            "title": webset.title,
            "dashboardUrl": format!("https://sandbox.example/websets/{}", webset.id),
            "searches": webset.searches.values().map(|search| search.to_json(&webset.id, self.now())).collect::<Vec<_>>(),
            "imports": imports,
            "enrichments": webset.enrichments.values().map(|enrichment| enrichment.to_json(&webset.id)).collect::<Vec<_>>(),
            "monitors": monitors,
            "excludes": webset.excludes,
            "metadata": webset.metadata,
            "createdAt": iso(webset.created),
            "updatedAt": iso(webset.updated),
        })
    }

    /// The id of a webset named by its id or its externalId.
    pub(super) fn webset_id(&self, name: &str) -> Result<String, Failure> {
        if self.websets.contains(name) {
            return Ok(name.to_owned());
        }
        let by_name = self
            .websets
            .values()
            .find(|webset| webset.external_id.as_deref() == Some(name));
        by_name
            .map(|webset| webset.id.clone())
            .ok_or_else(|| Failure::not_found("Webset", name))
    }

    /// The webset a request is about.
    pub(super) fn webset_of(&self, call: &Call) -> Result<&Webset, Failure> {
        let name = call.text("websetId");
        let id = self.webset_id(name)?;
        self.websets
            .get(&id)
            .ok_or_else(|| Failure::not_found("Webset", name))
    }

    /// Works on a webset while the rest of the account stays usable.
    pub(super) fn with_webset<R>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Account, &mut Webset) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let id = self.webset_id(name)?;
        let (place, mut webset) = self
            .websets
            .take(&id)
            .ok_or_else(|| Failure::not_found("Webset", name))?;
        let result = work(self, &mut webset);
        self.websets.put(place, &id, webset);
        result
    }

    /// Plans the next look at a webset's work, unless one is planned.
    pub(super) fn wake(&mut self, webset: &mut Webset, after: u64) {
        if !webset.ticking {
            webset.ticking = true;
            self.after(after, Step::Webset(webset.id.clone()));
        }
    }
}

/// `POST /websets/v0/websets`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(3 + call.list("enrichments").len())?;
    let external_id = call.opt_text("externalId").map(str::to_owned);
    if let Some(name) = &external_id
        && account.webset_id(name).is_ok()
    {
        return Err(Failure::new(
            409,
            "CONFLICT",
            format!("A webset with the externalId {name} exists already"),
        ));
    }
    let sources = Sources { account, own: None };
    sources.check(call.list("import"))?;
    sources.check(call.list("exclude"))?;
    let id = account.id("webset");
    let mut webset = Webset {
        external_id,
        title: None,
        searches: Table::default(),
        enrichments: Table::default(),
        items: Table::default(),
        addresses: HashSet::new(),
        imports: Vec::new(),
        waiting: Vec::new(),
        excludes: call.list("exclude").to_vec(),
        metadata: call.metadata(),
        created: account.now(),
        updated: account.now(),
        ticking: false,
        id: id.clone(),
    };
    for description in call.list("enrichments") {
        Enrichment::add(account, &mut webset, description)?;
    }
    let json = account.webset_json(&webset);
    account.record("webset.created", json);
    if let Some(description) = call.get("search") {
        let wanted = Wanted::of(description, USUAL_COUNT);
        webset.title = Some(start_of(&wanted.query, 80));
        Search::add(account, &mut webset, wanted, description)?;
    }
    items::take_in(account, &mut webset, call.list("import"));
    account.wake(&mut webset, 1);
    let json = account.webset_json(&webset);
    account.websets.insert(&id, webset);
    Reply::created(json)
}

/// `GET /websets/v0/websets/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    let webset = account.webset_of(call)?;
    let mut json = account.webset_json(webset);
    let expanded = call
        .list("expand")
        .iter()
        .any(|part| part.as_str() == Some("items"));
    if let (Value::Object(fields), true) = (&mut json, expanded) {
        let items = webset
            .items
            .values()
            .take(EXPANDED)
            .map(|item| item.to_json(&webset.id));
        fields.insert("items".into(), items.collect());
    }
    Reply::ok(json)
}

/// `GET /websets/v0/websets`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 100)?;
    Reply::ok(
        paging.page(account.websets.placed(), Order::NewestFirst, |webset| {
            account.webset_json(webset)
        }),
    )
}

/// `POST /websets/v0/websets/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        if call.get("metadata").is_some() {
            webset.metadata = call.metadata();
        }
        webset.updated = account.now();
        Ok(account.webset_json(webset))
    })?;
    Reply::ok(json)
}

/// `POST /websets/v0/websets/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> Outcome {
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        let was_busy = webset.busy();
        let ids: Vec<String> = webset.searches.ids().map(str::to_owned).collect();
        for id in ids {
            Search::cancel(account, webset, &id, Some("webset_canceled"));
        }
        Enrichment::cancel_all(webset, account.now());
        webset.waiting.clear();
        webset.updated = account.now();
        let json = account.webset_json(webset);
        if was_busy {
            account.record("webset.idle", json.clone());
        }
        Ok(json)
    })?;
    Reply::ok(json)
}

/// `DELETE /websets/v0/websets/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = account.webset_id(call.text("websetId"))?;
    let mut webset = account
        .websets
        .remove(&id)
        .ok_or_else(|| Failure::not_found("Webset", &id))?;
    let searches: Vec<String> = webset.searches.ids().map(str::to_owned).collect();
    for search in searches {
        Search::cancel(account, &mut webset, &search, Some("webset_deleted"));
    }
    Enrichment::cancel_all(&mut webset, account.now());
    let json = account.webset_json(&webset);
    account.monitors.retain(|monitor| monitor.webset != id);
    account.record("webset.deleted", json.clone());
    Reply::ok(json)
}

//! Searches of a webset: created, running, and then completed, failed or canceled.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::sources::SourceLookup;
use super::webset::Webset;
use super::{SEARCH_DURATION, SearchSpec, events};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::json::{list, metadata, opt_text};
use crate::rng::Rng;
use crate::state::{Account, Resource};
use crate::time::iso;

/// The share of its duration that a search waits before it runs, as a divisor.
const START_DIVISOR: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStatus {
    Created,
    Running,
    Completed,
    Failed,
    Canceled,
}

impl SearchStatus {
    fn as_str(self) -> &'static str {
        match self {
            SearchStatus::Created => "created",
            SearchStatus::Running => "running",
            SearchStatus::Completed => "completed",
            SearchStatus::Failed => "failed",
            SearchStatus::Canceled => "canceled",
        }
    }
}

/// One search.
pub(crate) struct WebsetSearch {
    pub(super) id: String,
    pub(super) status: SearchStatus,
    pub(super) spec: SearchSpec,
    /// Success rate per criterion, in percent.
    rates: Vec<u64>,
    pub(super) overrides: bool,
    exclude: Value,
    scope: Value,
    metadata: Value,
    recall: bool,
    max_people: Value,
    pub(super) found: u64,
    pub(super) analyzed: u64,
    /// Index of the next candidate.
    pub(super) next: u64,
    /// URLs that the search must not return.
    pub(super) excluded: HashSet<String>,
    /// The candidates of a search with a scope.
    pub(super) pool: Option<Vec<Value>>,
    created: u64,
    pub(super) updated: u64,
    /// Time from creation to completion, in milliseconds.
    duration: u64,
    canceled_at: Option<u64>,
    canceled_reason: Option<&'static str>,
}

impl Resource for WebsetSearch {
    const NAME: &'static str = "Search";
}

impl WebsetSearch {
    /// Adds a search to a webset; `request` has the fields that are not in the [`SearchSpec`].
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        spec: SearchSpec,
        request: &Value,
    ) -> Result<String, ApiError> {
        account.ensure_capacity(1)?;
        let id = account.new_id("search");
        let search = WebsetSearch::new(account, webset, spec, request, &id)?;
        let json = search.to_json(&webset.id, account.now());
        webset.searches.insert(&id, search);
        webset.updated = account.now();
        events::record(account, "webset.search.created", json);
        webset.wake(account, 1);
        Ok(id)
    }

    fn new(
        account: &Account,
        webset: &Webset,
        spec: SearchSpec,
        request: &Value,
        id: &str,
    ) -> Result<WebsetSearch, ApiError> {
        let own = Some(webset);
        let sources = SourceLookup { account, own };
        let (exclude, scope) = (list(request, "exclude"), list(request, "scope"));
        sources.validate(exclude)?;
        sources.validate(scope)?;
        let mut excluded = sources.urls(exclude);
        excluded.extend(sources.urls(&webset.excludes));
        let pool = (!scope.is_empty()).then(|| sources.properties(scope));
        let mut rng = account.rng(&["rates", &spec.query]);
        let rates = spec.criteria.iter().map(|_| rng.between(55, 98));
        Ok(WebsetSearch {
            rates: rates.collect(),
            status: SearchStatus::Created,
            overrides: opt_text(request, "behavior") != Some("append"),
            exclude: exclude.into(),
            scope: scope.into(),
            metadata: metadata(request),
            max_people: request
                .get("maxPeoplePerCompany")
                .cloned()
                .unwrap_or_default(),
            recall: request.get("recall").and_then(Value::as_bool) == Some(true),
            found: 0,
            analyzed: 0,
            next: 0,
            excluded,
            pool,
            created: account.now(),
            updated: account.now(),
            duration: account.scaled(SEARCH_DURATION),
            canceled_at: None,
            canceled_reason: None,
            spec,
            id: id.to_owned(),
        })
    }

    /// Cancels an active search; one that has ended does not change.
    pub(super) fn cancel(
        account: &mut Account,
        webset: &mut Webset,
        id: &str,
        reason: Option<&'static str>,
    ) {
        let now = account.now();
        let search = webset.searches.get_mut(id);
        let Some(search) = search.filter(|search| search.is_active()) else {
            return;
        };
        search.set_canceled(reason, now);
        let json = search.to_json(&webset.id, now);
        webset.updated = now;
        events::record(account, "webset.search.canceled", json);
    }

    fn set_canceled(&mut self, reason: Option<&'static str>, now: u64) {
        self.status = SearchStatus::Canceled;
        self.canceled_at = Some(now);
        self.canceled_reason = reason;
        self.updated = now;
    }

    /// Ends the search, in the way that its query asks for, and returns the event to record.
    pub(super) fn end(&mut self, now: u64) -> &'static str {
        self.updated = now;
        if self.spec.query.contains("sandbox-out-of-credits") {
            self.set_canceled(Some("out_of_credits"), now);
            return "webset.search.canceled";
        }
        if self.spec.query.contains("sandbox-fail") {
            self.status = SearchStatus::Failed;
            // There is no event of its own for a failure.
            return "webset.search.updated";
        }
        self.status = SearchStatus::Completed;
        "webset.search.completed"
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.status, SearchStatus::Created | SearchStatus::Running)
    }

    pub(super) fn is_running(&self) -> bool {
        self.status == SearchStatus::Running
    }

    /// The time at which the search starts to run.
    pub(super) fn starts_at(&self) -> u64 {
        self.created + self.duration / START_DIVISOR
    }

    pub(super) fn ends_at(&self) -> u64 {
        self.created + self.duration
    }

    /// The number of items that the search should have found by now.
    pub(super) fn expected_items(&self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.starts_at());
        let total = self.ends_at().saturating_sub(self.starts_at()).max(1);
        let expected =
            u128::from(self.spec.count) * u128::from(elapsed.min(total)) / u128::from(total);
        u64::try_from(expected).unwrap_or(u64::MAX)
    }

    pub(super) fn to_json(&self, webset: &str, now: u64) -> Value {
        let criteria: Vec<Value> = self
            .spec
            .criteria
            .iter()
            .zip(&self.rates)
            .map(|(description, rate)| json!({ "description": description, "successRate": if self.found > 0 { *rate } else { 0 } }))
            .collect();
        json!({
            "id": self.id,
            "object": "webset_search",
            "status": self.status.as_str(),
            "websetId": webset,
            "query": self.spec.query,
            "entity": self.spec.entity,
            "criteria": criteria,
            "count": self.spec.count,
            "maxPeoplePerCompany": self.max_people,
            "behavior": if self.overrides { "override" } else { "append" },
            "exclude": self.exclude,
            "scope": self.scope,
            "progress": self.progress(now),
            "recall": self.recall_json(),
            "metadata": self.metadata,
            "canceledAt": self.canceled_at.map(iso),
            "canceledReason": self.canceled_reason,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn progress(&self, now: u64) -> Value {
        let completion = match self.status {
            SearchStatus::Completed => 100,
            _ => (self.found * 100 / self.spec.count).min(99),
        };
        let time_left = self
            .is_active()
            .then(|| self.ends_at().saturating_sub(now).div_ceil(1_000));
        json!({ "found": self.found, "analyzed": self.analyzed, "completion": completion, "timeLeft": time_left })
    }

    /// Estimates the number of matches that exist, once the search is complete.
    fn recall_json(&self) -> Value {
        if !self.recall || self.status != SearchStatus::Completed {
            return Value::Null;
        }
        let total = self.found + Rng::new(0, &["recall", &self.spec.query]).between(5, 60);
        json!({
            "expected": {
                "total": total,
                "confidence": "medium",
                "bounds": { "min": total * 4 / 5, "max": total * 6 / 5 },
            },
            "reasoning": "A made-up estimate.",
        })
    }
}

fn search_json(account: &Account, webset: &Webset, id: &str) -> Result<Value, ApiError> {
    let search = webset.searches.find(id)?;
    Ok(search.to_json(&webset.id, account.now()))
}

/// `POST /websets/v0/websets/{webset}/searches`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    let request = Value::Object(call.args.clone());
    account.change_webset(call, |account, webset| {
        let spec = SearchSpec::from_request(&request);
        webset.set_default_title(&spec.query);
        let id = WebsetSearch::add(account, webset, spec, &request)?;
        search_json(account, webset, &id)
    })
}

/// `GET /websets/v0/websets/{webset}/searches/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let webset = account.requested_webset(call)?;
    ApiResponse::ok(search_json(account, webset, call.text("searchId"))?)
}

/// `POST /websets/v0/websets/{webset}/searches/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("searchId");
    account.change_webset(call, |account, webset| {
        WebsetSearch::cancel(account, webset, id, None);
        search_json(account, webset, id)
    })
}

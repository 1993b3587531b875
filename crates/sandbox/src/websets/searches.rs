//! Searches of a webset: created, running, completed or canceled.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::sources::Sources;
use super::webset::Webset;
use super::{SEARCH, Wanted};
use crate::call::{Call, Outcome, Reply, list_of};
use crate::failure::Failure;
use crate::random::Dice;
use crate::state::{Account, Table};
use crate::time::iso;

/// Part of a search's time that passes before it runs, as a divisor.
const START: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Created,
    Running,
    Completed,
    Canceled,
}

/// One search.
pub(crate) struct Search {
    pub(super) id: String,
    pub(super) state: Status,
    pub(super) wanted: Wanted,
    /// Success rate of every criterion, in percent.
    rates: Vec<u64>,
    pub(super) overrides: bool,
    exclude: Value,
    scope: Value,
    metadata: Value,
    recall: bool,
    pub(super) found: u64,
    pub(super) analyzed: u64,
    /// Candidate to look at next.
    pub(super) next: u64,
    /// Addresses that must not be found.
    pub(super) excluded: HashSet<String>,
    /// The only candidates, when a scope was given.
    pub(super) pool: Option<Vec<Value>>,
    pub(super) created: u64,
    pub(super) updated: u64,
    /// How long it takes from creation to completion.
    pub(super) span: u64,
    canceled_at: Option<u64>,
    canceled_reason: Option<&'static str>,
}

impl Search {
    /// Adds a search to a webset; `request` holds the parts [`Wanted`] leaves out.
    pub(super) fn add(
        account: &mut Account,
        webset: &mut Webset,
        wanted: Wanted,
        request: &Value,
    ) -> Result<String, Failure> {
        account.need_room(1)?;
        let id = account.id("search");
        let search = Search::new(account, webset, wanted, request, &id)?;
        let json = search.to_json(&webset.id, account.now());
        webset.searches.insert(&id, search);
        webset.updated = account.now();
        account.record("webset.search.created", json);
        account.wake(webset, 1);
        Ok(id)
    }

    fn new(
        account: &Account,
        webset: &Webset,
        wanted: Wanted,
        request: &Value,
        id: &str,
    ) -> Result<Search, Failure> {
        let sources = Sources {
            account,
            own: Some(webset),
        };
        let (exclude, scope) = (list_of(request, "exclude"), list_of(request, "scope"));
        sources.check(exclude)?;
        sources.check(scope)?;
        let mut excluded = sources.addresses(exclude);
        excluded.extend(sources.addresses(&webset.excludes));
        let pool = (!scope.is_empty()).then(|| sources.properties(scope));
        let mut dice = account.dice(&["rates", &wanted.query]);
        let rates = wanted.criteria.iter().map(|_| dice.between(55, 98));
        let metadata = request.get("metadata").cloned();
        Ok(Search {
            rates: rates.collect(),
            state: Status::Created,
            overrides: request.get("behavior").and_then(Value::as_str) != Some("append"),
            exclude: exclude.into(),
            scope: scope.into(),
            metadata: metadata.unwrap_or_else(|| json!({})),
            recall: request.get("recall").and_then(Value::as_bool) == Some(true),
            found: 0,
            analyzed: 0,
            next: 0,
            excluded,
            pool,
            created: account.now(),
            updated: account.now(),
            span: account.span(SEARCH),
            canceled_at: None,
            canceled_reason: None,
            wanted,
            id: id.to_owned(),
        })
    }

    /// Cancels a search that is not over; one that is stays as it is.
    pub(super) fn cancel(
        account: &mut Account,
        webset: &mut Webset,
        id: &str,
        reason: Option<&'static str>,
    ) {
        let now = account.now();
        let Some(search) = webset
            .searches
            .get_mut(id)
            .filter(|search| search.is_active())
        else {
            return;
        };
        search.state = Status::Canceled;
        search.canceled_at = Some(now);
        search.canceled_reason = reason;
        search.updated = now;
        let json = search.to_json(&webset.id, now);
        webset.updated = now;
        account.record("webset.search.canceled", json);
    }

    pub(super) fn is_active(&self) -> bool {
        matches!(self.state, Status::Created | Status::Running)
    }

    pub(super) fn status(&self) -> &'static str {
        match self.state {
            Status::Created => "created",
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Canceled => "canceled",
        }
    }

    /// When it starts to run.
    pub(super) fn starts(&self) -> u64 {
        self.created + self.span / START
    }

    pub(super) fn ends(&self) -> u64 {
        self.created + self.span
    }

    /// How many items it should have found by now.
    pub(super) fn due(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.starts());
        let whole = self.ends().saturating_sub(self.starts()).max(1);
        let part =
            u128::from(self.wanted.count) * u128::from(passed.min(whole)) / u128::from(whole);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    pub(super) fn to_json(&self, webset: &str, now: u64) -> Value {
        let criteria: Vec<Value> = self
            .wanted
            .criteria
            .iter()
            .zip(&self.rates)
            .map(|(description, rate)| json!({ "description": description, "successRate": if self.found > 0 { *rate } else { 0 } }))
            .collect();
        json!({
            "id": self.id,
            "object": "webset_search",
            "status": self.status(),
            "websetId": webset,
            "query": self.wanted.query,
            "entity": self.wanted.entity,
            "criteria": criteria,
            "count": self.wanted.count,
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
        let completion = match self.state {
            Status::Completed => 100,
            _ => (self.found * 100 / self.wanted.count).min(99),
        };
        let left = self
            .is_active()
            .then(|| self.ends().saturating_sub(now).div_ceil(1_000));
        json!({ "found": self.found, "analyzed": self.analyzed, "completion": completion, "timeLeft": left })
    }

    /// An estimate of how many there are, once the search has looked around.
    fn recall_json(&self) -> Value {
        if !self.recall || self.state != Status::Completed {
            return Value::Null;
        }
        let total = self.found + Dice::new(0, &["recall", &self.wanted.query]).between(5, 60);
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

/// `POST /websets/v0/websets/{webset}/searches`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    let request = Value::Object(call.args.clone());
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        let wanted = Wanted::of(&request, 10);
        if webset.title.is_none() {
            webset.title = Some(crate::corpus::start_of(&wanted.query, 80));
        }
        let id = Search::add(account, webset, wanted, &request)?;
        shown(account, webset, &id)
    })?;
    Reply::ok(json)
}

/// `GET /websets/v0/websets/{webset}/searches/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(shown(
        account,
        account.webset_of(call)?,
        call.text("searchId"),
    )?)
}

/// `POST /websets/v0/websets/{webset}/searches/{id}/cancel`.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> Outcome {
    let json = account.with_webset(call.text("websetId"), |account, webset| {
        Search::cancel(account, webset, call.text("searchId"), None);
        shown(account, webset, call.text("searchId"))
    })?;
    Reply::ok(json)
}

fn shown(account: &Account, webset: &Webset, id: &str) -> Result<Value, Failure> {
    let search =
        Table::get(&webset.searches, id).ok_or_else(|| Failure::not_found("Search", id))?;
    Ok(search.to_json(&webset.id, account.now()))
}

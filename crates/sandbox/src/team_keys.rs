//! Team management: the API keys of a team. A managed key is used by its id; a deleted one no longer works,
//! and one whose budget is used up is refused until the budget grows.

use std::collections::HashSet;
use std::ops::Range;

use exa_mcp_model::MicroDollars;
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::ids;
use crate::json::set;
use crate::rng::hash;
use crate::state::{Resource, SandboxState, Table};
use crate::time::{DAY, iso};

/// Maximum number of managed keys.
const MAX_KEYS: usize = 1_000;
/// How far a usage report goes back.
const MAX_LOOKBACK: u64 = 180 * DAY;
/// Length of the period of a usage report if the request names none.
const DEFAULT_PERIOD: u64 = 30 * DAY;

/// One managed key.
pub(crate) struct TeamKey {
    id: String,
    name: Value,
    rate_limit: Value,
    budget_cents: Option<u64>,
    created: u64,
    updated: u64,
}

/// All managed keys.
#[derive(Default)]
pub(crate) struct TeamKeys {
    keys: Table<TeamKey>,
    deleted: HashSet<String>,
    /// Service keys whose names do not tell; they were used for team management first.
    service_keys: HashSet<String>,
}

impl Resource for TeamKey {
    const NAME: &'static str = "API key";
}

impl TeamKeys {
    /// Rejects a key of the wrong kind. The name of a key may tell its kind; otherwise its first use does.
    pub(crate) fn check_kind(
        &mut self,
        key: &str,
        for_team: bool,
        is_known: bool,
    ) -> Result<(), ApiError> {
        let is_service = is_named_service_key(key) || self.service_keys.contains(key);
        match (for_team, is_service) {
            (true, false) if is_known || self.service_keys.len() >= MAX_KEYS => {
                Err(invalid_key("Invalid service key"))
            }
            (true, false) => {
                self.service_keys.insert(key.to_owned());
                Ok(())
            }
            (false, true) => Err(invalid_key("Invalid API key: this is a service key")),
            _ => Ok(()),
        }
    }

    /// Rejects a key that was deleted, or whose budget is used up.
    pub(crate) fn check(&self, key: &str, spent: MicroDollars) -> Result<(), ApiError> {
        if self.deleted.contains(key) {
            return Err(invalid_key("Invalid API key: it was deleted"));
        }
        match self.keys.get(key) {
            Some(managed) if managed.is_over_budget(spent) => {
                let message = "The budget of this API key is used up";
                Err(ApiError::new(402, "API_KEY_BUDGET_EXCEEDED", message).at_gateway())
            }
            _ => Ok(()),
        }
    }
}

impl TeamKey {
    fn is_over_budget(&self, spent: MicroDollars) -> bool {
        let budget = self.budget_cents.map(|cents| cents.saturating_mul(10_000));
        budget.is_some_and(|budget| spent >= MicroDollars::new(budget))
    }

    fn to_json(&self, spent: MicroDollars) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "rateLimit": self.rate_limit,
            "budgetCents": self.budget_cents,
            "isOverBudget": self.is_over_budget(spent),
        })
    }

    /// Sets the fields that a request has; null removes a budget.
    fn update(&mut self, call: &Call) -> Result<(), ApiError> {
        if call
            .get("rateLimit")
            .and_then(Value::as_i64)
            .is_some_and(|limit| limit < 1)
        {
            return Err(ApiError::invalid("rateLimit must be at least 1"));
        }
        for (name, field) in [
            ("name", &mut self.name),
            ("rateLimit", &mut self.rate_limit),
        ] {
            if let Some(value) = call.get(name) {
                *field = value.clone();
            }
        }
        if let Some(budget) = call.get("budgetCents") {
            self.budget_cents = budget.as_u64();
        }
        Ok(())
    }
}

/// Whether the name of a key tells that it is a service key.
fn is_named_service_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("service") || key.contains("svc")
}

/// The error for a missing key, or one of the wrong kind.
pub(crate) fn invalid_key(message: &str) -> ApiError {
    ApiError::new(401, "INVALID_API_KEY", message).at_gateway()
}

/// Returns what a key has spent.
fn spent(state: &mut SandboxState, id: &str) -> MicroDollars {
    state.account(id).charges.total()
}

fn team_id(state: &SandboxState) -> String {
    ids::uuid(hash(state.seed(), &["team"]))
}

/// Returns a key with the fields that responses about a single key have.
fn detailed(state: &mut SandboxState, id: &str) -> Result<Value, ApiError> {
    let (spent, team) = (spent(state, id), team_id(state));
    let key = state.team_keys.keys.find(id)?;
    let mut json = key.to_json(spent);
    set(&mut json, "teamId", team);
    set(&mut json, "createdAt", iso(key.created));
    Ok(json)
}

/// Returns a key as the response of a change.
fn changed(state: &mut SandboxState, id: &str) -> ApiResult {
    let mut json = detailed(state, id)?;
    let user = ids::uuid(hash(state.seed(), &["user"]));
    set(&mut json, "userId", user);
    let key = state.team_keys.keys.find(id)?;
    if key.updated != key.created {
        set(&mut json, "updatedAt", iso(key.updated));
    }
    ApiResponse::ok(json!({ "apiKey": json }))
}

/// `POST /api-keys`.
pub(crate) fn create(state: &mut SandboxState, call: &Call) -> ApiResult {
    if state.team_keys.keys.len() >= MAX_KEYS {
        return Err(ApiError::invalid(format!(
            "A team may have {MAX_KEYS} keys"
        )));
    }
    let (now, number) = (state.now(), state.team_keys.keys.inserted());
    let id = ids::uuid(hash(state.seed(), &["team key", &number.to_string()]));
    let mut key = TeamKey {
        id: id.clone(),
        name: format!("Key {}", number + 1).into(),
        rate_limit: Value::Null,
        budget_cents: None,
        created: now,
        updated: now,
    };
    key.update(call)?;
    state.team_keys.keys.insert(&id, key);
    changed(state, &id)
}

/// `GET /api-keys`: all keys, or the one that `api_key_id` names.
pub(crate) fn list(state: &mut SandboxState, call: &Call) -> ApiResult {
    if let Some(id) = call.opt_text("api_key_id") {
        return single(state, id);
    }
    let mut keys = Vec::new();
    for id in state.team_keys.keys.ids_where(|_| true) {
        let spent = spent(state, &id);
        keys.extend(state.team_keys.keys.get(&id).map(|key| key.to_json(spent)));
    }
    ApiResponse::ok(json!({ "apiKeys": keys }))
}

/// `GET /api-keys/{id}`.
pub(crate) fn get(state: &mut SandboxState, call: &Call) -> ApiResult {
    single(state, call.text("keyId"))
}

fn single(state: &mut SandboxState, id: &str) -> ApiResult {
    let json = detailed(state, id)?;
    ApiResponse::ok(json!({ "apiKey": json }))
}

/// `PUT /api-keys/{id}`.
pub(crate) fn update(state: &mut SandboxState, call: &Call) -> ApiResult {
    let (now, id) = (state.now(), call.text("keyId"));
    let key = state.team_keys.keys.find_mut(id)?;
    key.update(call)?;
    // The first update in the millisecond of the creation is still an update.
    key.updated = now.max(key.created + 1);
    changed(state, id)
}

/// `DELETE /api-keys/{id}`.
pub(crate) fn delete(state: &mut SandboxState, call: &Call) -> ApiResult {
    let id = call.text("keyId");
    state.team_keys.keys.delete(id)?;
    state.team_keys.deleted.insert(id.to_owned());
    ApiResponse::ok(json!({ "success": true }))
}

/// `GET /api-keys/{id}/usage`.
pub(crate) fn usage(state: &mut SandboxState, call: &Call) -> ApiResult {
    let (now, id) = (state.now(), call.text("keyId"));
    let name = state.team_keys.keys.find(id)?.name.clone();
    let period = period(now, call)?;
    let sums = state.account(id).charges.by_name(&period);
    let total: MicroDollars = sums.values().map(|(_, cost)| *cost).sum();
    let breakdown = sums.iter().map(|(name, (quantity, cost))| {
        json!({
            "price_id": format!("price_{}", name.replace(' ', "_")),
            "price_name": name,
            "quantity": quantity,
            "amount_usd": cost.dollars(),
        })
    });
    let breakdown: Value = breakdown.collect();
    ApiResponse::ok(json!({
        "id": id,
        "api_key_id": id,
        "api_key_name": name,
        "team_id": team_id(state),
        "period": { "start": iso(period.start), "end": iso(period.end) },
        "total_cost_usd": total.dollars(),
        "cost_breakdown": breakdown,
        "metadata": { "generated_at": iso(now) },
    }))
}

/// Returns the period of a usage report: the last thirty days, unless the request names another.
fn period(now: u64, call: &Call) -> Result<Range<u64>, ApiError> {
    let end = call.time("end_date")?.unwrap_or(now + 1);
    let start = call.time("start_date")?;
    let start = start.unwrap_or_else(|| end.saturating_sub(DEFAULT_PERIOD));
    if start >= end {
        return Err(ApiError::invalid("start_date must be before end_date"));
    }
    if start < now.saturating_sub(MAX_LOOKBACK) {
        return Err(ApiError::invalid("start_date may be 180 days ago at most"));
    }
    Ok(start..end)
}

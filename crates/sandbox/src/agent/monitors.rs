//! Agent monitors (beta): facts about entities that are refreshed regularly.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::entities::{self, Entity, Field};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call, list_response};
use crate::json::{set, text};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::{DAY, HOUR, iso, parse_period};

/// Duration of the creation, and the wait before the first refresh, at time scale 1.
const CREATION: u64 = 600;
/// Duration of a refresh at time scale 1.
const REFRESH: u64 = 2_000;
/// Maximum number of changes per monitor.
const MAX_CHANGES: usize = 2_000;

/// One agent monitor.
pub(crate) struct AgentMonitor {
    id: String,
    phase: Phase,
    cadence: String,
    fields: Vec<Field>,
    entities: Table<WatchedEntity>,
    changes: Table<ContentChange>,
    version: u64,
    /// Number of completed refreshes.
    rounds: u64,
    created: u64,
    refreshed: Option<u64>,
    refresh_started: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Creating,
    AwaitingFirstRefresh,
    Refreshing,
    Idle,
}

struct WatchedEntity {
    entity: Entity,
    contents: Map<String, Value>,
    updated: Option<u64>,
}

struct ContentChange {
    entity: Value,
    field: Value,
    content: Value,
    version: u64,
    at: u64,
}

/// A request that carried an `Idempotency-Key`, and the monitor that it created.
pub(crate) struct IdempotentRequest {
    body: Map<String, Value>,
    monitor: String,
}

impl Resource for AgentMonitor {
    const NAME: &'static str = "Agent monitor";
    const NOT_FOUND_TAG: &'static str = "MONITOR_NOT_FOUND";

    fn size(&self) -> usize {
        1 + self.entities.len()
    }
}

impl AgentMonitor {
    fn new(account: &mut Account, call: &Call) -> Self {
        let mut monitor = AgentMonitor {
            id: account.new_id("agent_monitor"),
            phase: Phase::Creating,
            cadence: call.text("cadence").to_owned(),
            fields: Field::from_call(account, call),
            entities: Table::default(),
            changes: Table::default(),
            version: 1,
            rounds: 0,
            created: account.now(),
            refreshed: None,
            refresh_started: None,
        };
        monitor.watch(Entity::from_call(account, call));
        monitor
    }

    fn watch(&mut self, entities: Vec<Entity>) {
        for entity in entities {
            let id = entity.id.clone();
            let watched = WatchedEntity {
                entity,
                contents: Map::new(),
                updated: None,
            };
            self.entities.insert(&id, watched);
        }
    }

    fn to_json(&self) -> Value {
        let status = match (self.phase, self.refreshed) {
            (Phase::Creating, _) => "creating",
            (_, None) => "pending_first_refresh",
            _ => "active",
        };
        let total = self.entities.len();
        let progress = |running: bool, started: Option<u64>| {
            let processed = if running { 0 } else { total };
            json!({
                "state": if running { "running" } else { "idle" },
                "entitiesProcessed": processed,
                "entitiesTotal": total,
                "startedAt": started.map(iso),
            })
        };
        let compute_units = total * self.fields.len();
        json!({
            "id": self.id,
            "object": "agent_monitor",
            "status": status,
            "cadence": self.cadence,
            "fields": self.fields.iter().map(Field::to_json).collect::<Value>(),
            "entityCount": total,
            "version": self.version,
            "createdAt": iso(self.created),
            "lastRefreshAt": self.refreshed.map(iso),
            "refresh": progress(self.phase == Phase::Refreshing, self.refresh_started),
            "creation": progress(self.phase == Phase::Creating, Some(self.created)),
            "usage": {
                "totalAcus": compute_units as u64 * self.rounds,
                "lastRefreshAcus": if self.rounds > 0 { compute_units } else { 0 },
            },
            "sourceRunId": null,
        })
    }

    /// Refreshes the contents: fields without a value get one, about a third of the others change.
    fn refresh(&mut self, seed: u64, now: u64) {
        self.rounds += 1;
        self.version += 1;
        self.refreshed = Some(now);
        let round = self.rounds;
        for watched in self.entities.values_mut() {
            for field in &self.fields {
                let is_new = !watched.contents.contains_key(&field.id);
                if !is_new && !field.changes(seed, &watched.entity, round) {
                    continue;
                }
                let content = field.content(seed, &watched.entity, round, now);
                watched.contents.insert(field.id.clone(), content.clone());
                watched.updated = Some(now);
                let change = ContentChange {
                    entity: watched.entity.to_json(),
                    field: field.to_brief_json(),
                    content,
                    version: self.version,
                    at: now,
                };
                let id = self.changes.inserted().to_string();
                self.changes.insert_bounded(&id, change, MAX_CHANGES);
            }
        }
    }
}

impl WatchedEntity {
    fn to_json(&self) -> Value {
        json!({ "entity": self.entity.to_json(), "contents": self.contents })
    }
}

impl ContentChange {
    fn to_json(&self) -> Value {
        json!({
            "type": "content.upserted",
            "entity": self.entity,
            "field": self.field,
            "content": self.content,
            "version": self.version,
            "createdAt": iso(self.at),
        })
    }
}

/// Rejects a request without the beta token that agent monitors need.
pub(super) fn require_beta(call: &Call) -> Result<(), ApiError> {
    call.require_beta("agent-monitors-2026-08-04", "Agent monitors")
}

/// Parses a cadence such as `12h` or `7d`; at least six hours.
fn parse_cadence(text: &str) -> Result<u64, ApiError> {
    let period = parse_period(text).filter(|period| *period >= 6 * HOUR);
    period.ok_or_else(|| {
        ApiError::invalid(format!(
            "cadence: '{text}' is not a time such as 12h or 7d, of at least 6h"
        ))
    })
}

/// Advances a monitor to its next phase.
pub(crate) fn advance(account: &mut Account, id: &str) {
    let (now, seed) = (account.now(), account.data_seed());
    let request_time = account.request_time();
    let step = ScheduledStep::AgentMonitor(id.to_owned());
    let Some(monitor) = account.agent_monitors.get_mut(id) else {
        return;
    };
    match monitor.phase {
        Phase::Creating => {
            monitor.phase = Phase::AwaitingFirstRefresh;
            account.schedule_after(CREATION, step);
        }
        Phase::AwaitingFirstRefresh | Phase::Idle => {
            monitor.phase = Phase::Refreshing;
            monitor.refresh_started = Some(now);
            account.schedule_after(REFRESH, step);
        }
        Phase::Refreshing => {
            monitor.refresh(seed, now);
            monitor.phase = Phase::Idle;
            // Refreshes that the clock jumped over are skipped.
            let cadence = parse_cadence(&monitor.cadence).unwrap_or(DAY);
            account.schedule_at(request_time.max(now) + cadence, step);
        }
    }
}

/// Returns the monitor that an earlier request with the same idempotency key created.
fn find_idempotent(
    account: &Account,
    key: &str,
    body: &Map<String, Value>,
) -> Result<Option<Value>, ApiError> {
    let Some(earlier) = account.idempotent.get(key) else {
        return Ok(None);
    };
    if earlier.body != *body {
        let message = "This Idempotency-Key was used with another body";
        return Err(ApiError::new(409, "IDEMPOTENCY_CONFLICT", message));
    }
    let monitor = account.agent_monitors.get(&earlier.monitor);
    Ok(monitor.map(AgentMonitor::to_json))
}

/// Stores an idempotent request. All are dropped once there are far more than there can be monitors.
fn remember(
    requests: &mut HashMap<String, IdempotentRequest>,
    key: String,
    request: IdempotentRequest,
) {
    const MAX_KEYS: usize = 10_000;
    if requests.len() >= MAX_KEYS {
        requests.clear();
    }
    requests.insert(key, request);
}

/// `POST /agent/monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let mut body = call.args.clone();
    body.remove("betas");
    body.remove("idempotencyKey");
    let key = call.opt_text("idempotencyKey");
    if let Some(key) = key
        && let Some(earlier) = find_idempotent(account, key, &body)?
    {
        return ApiResponse::ok(earlier);
    }
    account.ensure_capacity(1 + call.list("entities").len())?;
    parse_cadence(call.text("cadence"))?;
    entities::validate(call, true)?;
    let monitor = AgentMonitor::new(account, call);
    let (json, id) = (monitor.to_json(), monitor.id.clone());
    if let Some(key) = key {
        let monitor = id.clone();
        let request = IdempotentRequest { body, monitor };
        remember(&mut account.idempotent, key.to_owned(), request);
    }
    account.agent_monitors.insert(&id, monitor);
    account.schedule_after(CREATION, ScheduledStep::AgentMonitor(id));
    ApiResponse::ok(json)
}

/// `GET /agent/monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let monitor = account.agent_monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.to_json())
}

/// `GET /agent/monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let paging = Paging::from_call(call, 25, 100)?;
    let monitors = account.agent_monitors.rows();
    list_response(paging.page(monitors, Order::NewestFirst, AgentMonitor::to_json))
}

/// `DELETE /agent/monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let id = call.text("monitorId");
    account.agent_monitors.delete(id)?;
    account.cancel_step(&ScheduledStep::AgentMonitor(id.to_owned()));
    ApiResponse::ok(json!({ "id": id, "object": "agent_monitor.deleted", "deleted": true }))
}

/// `POST /agent/monitors/{id}/entities`.
pub(crate) fn add_entities(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let id = call.text("monitorId");
    let monitor = account.agent_monitors.find(id)?;
    entities::validate(call, false)?;
    let is_watched = |domain: &str| {
        let mut entities = monitor.entities.values();
        entities.any(|watched| watched.entity.domain == domain)
    };
    let given = call.list("entities");
    let mut domains = given.iter().map(|entity| text(entity, "domain"));
    if let Some(domain) = domains.find(|domain| is_watched(domain)) {
        let message = format!("The domain {domain} is watched already");
        return Err(ApiError::new(409, "ENTITY_EXISTS", message));
    }
    account.ensure_capacity(given.len())?;
    let entities = Entity::from_call(account, call);
    let monitor = account.agent_monitors.find_mut(id)?;
    monitor.watch(entities);
    monitor.version += 1;
    let is_idle = monitor.phase == Phase::Idle;
    let json = monitor.to_json();
    if is_idle {
        // New entities do not wait for the next regular refresh.
        let step = ScheduledStep::AgentMonitor(id.to_owned());
        account.cancel_step(&step);
        account.schedule_after(CREATION, step);
    }
    ApiResponse::ok(json)
}

/// `GET /agent/monitors/{id}/entities`.
pub(crate) fn list_entities(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let monitor = account.agent_monitors.find(call.text("monitorId"))?;
    let paging = Paging::from_call(call, 50, 200)?;
    let since = call.time("since")?;
    let rows = monitor.entities.rows().filter(|(_, watched)| {
        since.is_none_or(|since| watched.updated.is_some_and(|at| at >= since))
    });
    let page = paging.page(rows, Order::OldestFirst, WatchedEntity::to_json);
    versioned_list(page, monitor.version)
}

/// `GET /agent/monitors/{id}/changes`.
pub(crate) fn list_changes(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let monitor = account.agent_monitors.find(call.text("monitorId"))?;
    let paging = Paging::from_call(call, 50, 200)?;
    let since = call.time("since")?;
    let changes = monitor.changes.rows();
    let rows = changes.filter(|(_, change)| since.is_none_or(|since| change.at >= since));
    let page = paging.page(rows, Order::OldestFirst, ContentChange::to_json);
    versioned_list(page, monitor.version)
}

fn versioned_list(mut page: Value, version: u64) -> ApiResult {
    set(&mut page, "version", version);
    list_response(page)
}

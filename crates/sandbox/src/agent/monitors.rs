//! Agent monitors (beta): facts about entities, kept up to date.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::runs::as_list;
use super::values::{self, Entity, Field};
use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging, Step, Table};
use crate::time::{DAY, HOUR, iso};

/// Token that every request to agent monitors needs.
pub(super) const BETA: &str = "agent-monitors-2026-08-04";
/// From creation to the first refresh, and how long a refresh takes, at time scale 1.
const CREATION: u64 = 600;
const REFRESH: u64 = 2_000;
/// Changes kept of one monitor.
const MOST_CHANGES: usize = 2_000;

/// One agent monitor.
pub(crate) struct AgentMonitor {
    id: String,
    phase: Phase,
    cadence: String,
    fields: Vec<Field>,
    watched: Table<Watched>,
    changes: Table<Change>,
    version: u64,
    rounds: u64,
    created: u64,
    refreshed: Option<u64>,
    refresh_started: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Creating,
    AwaitingFirst,
    Refreshing,
    Resting,
}

struct Watched {
    entity: Entity,
    contents: Map<String, Value>,
    updated: Option<u64>,
}

struct Change {
    entity: Value,
    field: Value,
    content: Value,
    version: u64,
    at: u64,
}

/// A request that carried an `Idempotency-Key`, and the monitor it made.
pub(crate) struct Idempotent {
    body: Map<String, Value>,
    monitor: String,
}

impl AgentMonitor {
    fn new(account: &mut Account, call: &Call) -> Self {
        let fields = call.list("fields").iter();
        let mut monitor = AgentMonitor {
            id: account.id("agent_monitor"),
            phase: Phase::Creating,
            cadence: call.text("cadence").to_owned(),
            fields: fields
                .map(|given| Field::read(given, account.id("field")))
                .collect(),
            watched: Table::default(),
            changes: Table::default(),
            version: 1,
            rounds: 0,
            created: account.now(),
            refreshed: None,
            refresh_started: None,
        };
        watch(account, &mut monitor, call.list("entities"));
        monitor
    }

    pub(crate) fn size(&self) -> usize {
        1 + self.watched.len()
    }

    fn to_json(&self) -> Value {
        let status = match (self.phase, self.refreshed) {
            (Phase::Creating, _) => "creating",
            (_, None) => "pending_first_refresh",
            _ => "active",
        };
        let total = self.watched.len();
        let progress = |running: bool, started: Option<u64>| {
            let processed = if running { 0 } else { total };
            json!({
                "state": if running { "running" } else { "idle" },
                "entitiesProcessed": processed,
                "entitiesTotal": total,
                "startedAt": started.map(iso),
            })
        };
        let acus = total * self.fields.len();
        json!({
            "id": self.id,
            "object": "agent_monitor",
            "status": status,
            "cadence": self.cadence,
            "fields": self.fields.iter().map(Field::to_json).collect::<Vec<_>>(),
            "entityCount": total,
            "version": self.version,
            "createdAt": iso(self.created),
            "lastRefreshAt": self.refreshed.map(iso),
            "refresh": progress(self.phase == Phase::Refreshing, self.refresh_started),
            "creation": progress(self.phase == Phase::Creating, Some(self.created)),
            "usage": { "totalAcus": acus as u64 * self.rounds, "lastRefreshAcus": if self.rounds > 0 { acus } else { 0 } },
            "sourceRunId": null,
        })
    }

    /// Looks everything up again. The first look fills every field, later ones change a few.
    fn refresh(&mut self, seed: u64, now: u64) {
        self.rounds += 1;
        self.version += 1;
        self.refreshed = Some(now);
        let mut changes = Vec::new();
        for watched in self.watched.values_mut() {
            let round = self.rounds;
            for field in &self.fields {
                let fresh = !watched.contents.contains_key(&field.id);
                if !fresh && !field.changes(seed, &watched.entity, round) {
                    continue;
                }
                let content = field.content(seed, &watched.entity, round, now);
                watched.contents.insert(field.id.clone(), content.clone());
                watched.updated = Some(now);
                changes.push(Change {
                    entity: watched.entity.to_json(),
                    field: field.brief(),
                    content,
                    version: self.version,
                    at: now,
                });
            }
        }
        for change in changes {
            let id = format!("{}", self.changes.len() as u64 + self.version * 1_000_000);
            self.changes.insert(&id, change);
        }
        self.changes.shrink_to(MOST_CHANGES);
    }
}

impl Watched {
    fn to_json(&self) -> Value {
        json!({ "entity": self.entity.to_json(), "contents": self.contents })
    }
}

impl Change {
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

/// Milliseconds of a cadence such as `12h` or `7d`; at least six hours.
fn cadence(text: &str) -> Result<u64, Failure> {
    let digits = |part: &str| part.parse::<u64>().ok().filter(|number| *number <= 10_000);
    let span = match (text.strip_suffix('h'), text.strip_suffix('d')) {
        (Some(hours), _) => digits(hours).map(|hours| hours * HOUR),
        (_, Some(days)) => digits(days).map(|days| days * DAY),
        _ => None,
    };
    span.filter(|span| *span >= 6 * HOUR).ok_or_else(|| {
        Failure::invalid(format!(
            "cadence: '{text}' is not a time such as 12h or 7d, of at least 6h"
        ))
    })
}

impl Account {
    /// Moves a monitor on: created, waiting, refreshing, at rest until the next refresh.
    pub(crate) fn step_agent_monitor(&mut self, id: &str) {
        let (now, seed, target) = (self.now(), self.data_seed(), self.target());
        let Some(monitor) = self.agent_monitors.get_mut(id) else {
            return;
        };
        let due = match monitor.phase {
            Phase::Creating => {
                monitor.phase = Phase::AwaitingFirst;
                now + self.span(CREATION)
            }
            Phase::AwaitingFirst | Phase::Resting => {
                monitor.phase = Phase::Refreshing;
                monitor.refresh_started = Some(now);
                now + self.span(REFRESH)
            }
            Phase::Refreshing => {
                monitor.refresh(seed, now);
                monitor.phase = Phase::Resting;
                // Refreshes missed while the clock jumped are not made up for.
                target.max(now) + cadence(&monitor.cadence).unwrap_or(DAY)
            }
        };
        self.at(due, Step::AgentMonitor(id.to_owned()));
    }

    fn agent_monitor_of(&mut self, call: &Call) -> Result<&mut AgentMonitor, Failure> {
        call.need_beta(BETA, "Agent monitors")?;
        let id = call.text("monitorId");
        self.agent_monitors.get_mut(id).ok_or_else(|| unknown(id))
    }

    /// The monitor an earlier request with the same key made.
    fn replay(&self, key: &str, body: &Map<String, Value>) -> Result<Option<Value>, Failure> {
        let Some(earlier) = self.idempotent.get(key) else {
            return Ok(None);
        };
        if earlier.body != *body {
            let message = "This Idempotency-Key was used with another body";
            return Err(Failure::new(409, "IDEMPOTENCY_CONFLICT", message));
        }
        Ok(self
            .agent_monitors
            .get(&earlier.monitor)
            .map(AgentMonitor::to_json))
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(
        404,
        "MONITOR_NOT_FOUND",
        format!("Agent monitor {id} not found"),
    )
}

fn watch(account: &mut Account, monitor: &mut AgentMonitor, entities: &[Value]) {
    for given in entities {
        let id = account.id("entity");
        let entity = Entity::read(given, id.clone());
        monitor.watched.insert(
            &id,
            Watched {
                entity,
                contents: Map::new(),
                updated: None,
            },
        );
    }
}

/// `POST /agent/monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    call.need_beta(BETA, "Agent monitors")?;
    let mut body = call.args.clone();
    body.remove("betas");
    let key = body
        .remove("idempotencyKey")
        .and_then(|key| key.as_str().map(str::to_owned));
    if let Some(key) = &key
        && let Some(earlier) = account.replay(key, &body)?
    {
        return Reply::ok(earlier);
    }
    account.need_room(1 + call.list("entities").len())?;
    cadence(call.text("cadence"))?;
    values::check(call, true)?;
    let monitor = AgentMonitor::new(account, call);
    let (json, id) = (monitor.to_json(), monitor.id.clone());
    if let Some(key) = key {
        let monitor = id.clone();
        remember(&mut account.idempotent, key, Idempotent { body, monitor });
    }
    account.agent_monitors.insert(&id, monitor);
    let pause = account.span(CREATION);
    account.after(pause, Step::AgentMonitor(id));
    Reply::ok(json)
}

/// Keeps an idempotent request; far more keys than there can be monitors are forgotten at once.
fn remember(known: &mut HashMap<String, Idempotent>, key: String, request: Idempotent) {
    const MOST_KEYS: usize = 10_000;
    if known.len() >= MOST_KEYS {
        known.clear();
    }
    known.insert(key, request);
}

/// `GET /agent/monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(account.agent_monitor_of(call)?.to_json())
}

/// `GET /agent/monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    call.need_beta(BETA, "Agent monitors")?;
    let paging = Paging::of(call, 25, 100)?;
    Reply::ok(as_list(paging.page(
        account.agent_monitors.placed(),
        Order::NewestFirst,
        AgentMonitor::to_json,
    )))
}

/// `DELETE /agent/monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    account.agent_monitor_of(call)?;
    let id = call.text("monitorId");
    account.agent_monitors.remove(id);
    account.unplan(&Step::AgentMonitor(id.to_owned()));
    Reply::ok(json!({ "id": id, "object": "agent_monitor.deleted", "deleted": true }))
}

/// `POST /agent/monitors/{id}/entities`.
pub(crate) fn add_entities(account: &mut Account, call: &Call) -> Outcome {
    let monitor = account.agent_monitor_of(call)?;
    values::check(call, false)?;
    let known: Vec<String> = monitor
        .watched
        .values()
        .map(|watched| watched.entity.domain.clone())
        .collect();
    let domain = |given: &Value| {
        given
            .get("domain")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if let Some(twice) = call
        .list("entities")
        .iter()
        .map(domain)
        .find(|domain| known.contains(domain))
    {
        return Err(Failure::new(
            409,
            "ENTITY_EXISTS",
            format!("The domain {twice} is watched already"),
        ));
    }
    account.need_room(call.list("entities").len())?;
    let id = call.text("monitorId");
    let (place, mut monitor) = account.agent_monitors.take(id).ok_or_else(|| unknown(id))?;
    watch(account, &mut monitor, call.list("entities"));
    monitor.version += 1;
    // New entities are looked up at once, not with the next regular refresh.
    if monitor.phase == Phase::Resting {
        let step = Step::AgentMonitor(id.to_owned());
        account.unplan(&step);
        let pause = account.span(CREATION);
        account.after(pause, step);
    }
    let json = monitor.to_json();
    account.agent_monitors.put(place, id, monitor);
    Reply::ok(json)
}

/// `GET /agent/monitors/{id}/entities`.
pub(crate) fn list_entities(account: &mut Account, call: &Call) -> Outcome {
    let monitor = account.agent_monitor_of(call)?;
    let paging = Paging::of(call, 50, 200)?;
    let since = call.time("since")?;
    let rows = monitor.watched.placed().filter(|(_, watched)| {
        since.is_none_or(|since| watched.updated.is_some_and(|at| at >= since))
    });
    let page = paging.page(rows, Order::OldestFirst, Watched::to_json);
    Reply::ok(versioned(page, monitor.version))
}

/// `GET /agent/monitors/{id}/changes`.
pub(crate) fn list_changes(account: &mut Account, call: &Call) -> Outcome {
    let monitor = account.agent_monitor_of(call)?;
    let paging = Paging::of(call, 50, 200)?;
    let since = call.time("since")?;
    let rows = monitor
        .changes
        .placed()
        .filter(|(_, change)| since.is_none_or(|since| change.at >= since));
    let page = paging.page(rows, Order::OldestFirst, Change::to_json);
    Reply::ok(versioned(page, monitor.version))
}

fn versioned(page: Value, version: u64) -> Value {
    let mut page = as_list(page);
    if let Value::Object(fields) = &mut page {
        fields.insert("version".into(), version.into());
    }
    page
}

//! Backtests (beta): what a monitor would have found in the past.

use serde_json::{Value, json};

use super::monitors::BETA;
use super::values::{self, Entity, Field};
use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Step};
use crate::time::{DAY, iso};

/// How long a backtest takes, in milliseconds at time scale 1.
const SPAN: u64 = 3_000;
/// How long its result can be fetched.
const KEPT: u64 = 7 * DAY;
/// The period looked at when the request names none.
const USUAL_PERIOD: u64 = 30 * DAY;

/// One backtest.
pub(crate) struct Backtest {
    id: String,
    done: bool,
    entities: Vec<Entity>,
    fields: Vec<Field>,
    start: u64,
    end: u64,
    created: u64,
}

impl Backtest {
    fn to_json(&self, seed: u64) -> Value {
        let mut backtest = json!({
            "id": self.id,
            "object": "agent_monitor.backtest",
            "status": if self.done { "completed" } else { "running" },
            "startTime": iso(self.start),
            "endTime": iso(self.end),
            "createdAt": iso(self.created),
            "expiresAt": iso(self.created + KEPT),
        });
        if let (Value::Object(fields), true) = (&mut backtest, self.done) {
            let rows = self.entities.iter().map(|entity| {
                json!({ "entity": entity.to_json(), "contents": values::contents(seed, entity, &self.fields, 0, self.end) })
            });
            fields.insert("data".into(), rows.collect());
            fields.insert("failedEntities".into(), json!([]));
            fields.insert("warnings".into(), json!([]));
        }
        backtest
    }
}

impl Account {
    pub(crate) fn step_backtest(&mut self, id: &str) {
        if let Some(backtest) = self.backtests.get_mut(id) {
            backtest.done = true;
        }
    }
}

/// `POST /agent/monitors/backtest`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    call.need_beta(BETA, "Agent monitors")?;
    account.need_room(1)?;
    values::check(call, true)?;
    let (start, end) = period(account.now(), call)?;
    let id = account.id("backtest");
    let backtest = Backtest {
        id: id.clone(),
        done: false,
        entities: call
            .list("entities")
            .iter()
            .map(|given| Entity::read(given, account.id("entity")))
            .collect(),
        fields: call
            .list("fields")
            .iter()
            .map(|given| Field::read(given, account.id("field")))
            .collect(),
        start,
        end,
        created: account.now(),
    };
    let json = backtest.to_json(account.data_seed());
    account.backtests.insert(&id, backtest);
    let span = account.span(SPAN);
    account.after(span, Step::Backtest(id));
    Reply::ok(json)
}

/// Start and end are given together or not at all.
fn period(now: u64, call: &Call) -> Result<(u64, u64), Failure> {
    match (call.time("startTime")?, call.time("endTime")?) {
        (None, None) => Ok((now - USUAL_PERIOD, now)),
        (Some(start), Some(end)) if start < end && end <= now => Ok((start, end)),
        (Some(_), Some(_)) => Err(Failure::invalid(
            "startTime must be before endTime, and both must be in the past",
        )),
        _ => Err(Failure::invalid(
            "startTime and endTime must be given together",
        )),
    }
}

/// `GET /agent/monitors/backtest/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    call.need_beta(BETA, "Agent monitors")?;
    let id = call.text("backtestId");
    let now = account.now();
    let backtest = account
        .backtests
        .get(id)
        .filter(|backtest| now <= backtest.created + KEPT);
    let backtest = backtest.ok_or_else(|| {
        Failure::new(
            404,
            "BACKTEST_NOT_FOUND",
            format!("Backtest {id} not found"),
        )
    })?;
    Reply::ok(backtest.to_json(account.data_seed()))
}

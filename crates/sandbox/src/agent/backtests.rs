//! Backtests (beta): what a monitor would have found in the past.

use serde_json::{Value, json};

use super::entities::{self, Entity, Field};
use super::monitors::require_beta;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::json::set;
use crate::state::{Account, Resource, ScheduledStep};
use crate::time::{DAY, iso};

/// Duration of a backtest, in milliseconds at time scale 1.
const DURATION: u64 = 3_000;
/// Lifetime of a backtest.
const LIFETIME: u64 = 7 * DAY;

/// One backtest.
pub(crate) struct Backtest {
    id: String,
    completed: bool,
    entities: Vec<Entity>,
    fields: Vec<Field>,
    start: u64,
    end: u64,
    created: u64,
}

impl Resource for Backtest {
    const NAME: &'static str = "Backtest";
    const NOT_FOUND_TAG: &'static str = "BACKTEST_NOT_FOUND";
}

impl Backtest {
    fn to_json(&self, seed: u64) -> Value {
        let mut backtest = json!({
            "id": self.id,
            "object": "agent_monitor.backtest",
            "status": if self.completed { "completed" } else { "running" },
            "startTime": iso(self.start),
            "endTime": iso(self.end),
            "createdAt": iso(self.created),
            "expiresAt": iso(self.expires()),
        });
        if self.completed {
            let rows = self.entities.iter().map(|entity| {
                let contents = entities::contents(seed, entity, &self.fields, 0, self.end);
                json!({ "entity": entity.to_json(), "contents": contents })
            });
            set(&mut backtest, "data", rows.collect::<Value>());
            set(&mut backtest, "failedEntities", json!([]));
            set(&mut backtest, "warnings", json!([]));
        }
        backtest
    }

    fn expires(&self) -> u64 {
        self.created + LIFETIME
    }
}

/// Completes a backtest.
pub(crate) fn complete(account: &mut Account, id: &str) {
    if let Some(backtest) = account.backtests.get_mut(id) {
        backtest.completed = true;
    }
}

/// `POST /agent/monitors/backtest`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    account.ensure_capacity(1)?;
    entities::validate(call, true)?;
    let (start, end) = parse_period(account.now(), call)?;
    let id = account.new_id("backtest");
    let backtest = Backtest {
        id: id.clone(),
        completed: false,
        entities: Entity::from_call(account, call),
        fields: Field::from_call(account, call),
        start,
        end,
        created: account.now(),
    };
    let json = backtest.to_json(account.data_seed());
    account.backtests.insert(&id, backtest);
    account.schedule_after(DURATION, ScheduledStep::Backtest(id));
    ApiResponse::ok(json)
}

/// Returns start and end, both of which a request must name.
fn parse_period(now: u64, call: &Call) -> Result<(u64, u64), ApiError> {
    match (call.time("startTime")?, call.time("endTime")?) {
        (Some(start), Some(end)) if start < end && end <= now => Ok((start, end)),
        (Some(_), Some(_)) => Err(ApiError::invalid(
            "startTime must be before endTime, and both must be in the past",
        )),
        _ => Err(ApiError::invalid("startTime and endTime must be given")),
    }
}

/// `GET /agent/monitors/backtest/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let id = call.text("backtestId");
    let backtest = account.backtests.find(id)?;
    if account.now() > backtest.expires() {
        return Err(Backtest::not_found(id));
    }
    ApiResponse::ok(backtest.to_json(account.data_seed()))
}

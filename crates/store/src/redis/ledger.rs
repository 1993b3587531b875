//! Reservations and slots in Redis.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, Script};
use serde::{Deserialize, Serialize};

use super::{MAX_LUA_INTEGER, RedisStore, key, milliseconds};
use crate::ledger::{
    BudgetCounters, BudgetState, ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit,
};
use crate::{CounterOp, CounterUpdate, StoreError};

/// How long a settled reservation is remembered, for requests that arrive late.
const SETTLED_RETENTION: Duration = Duration::from_secs(60 * 60);

/// How long claims are retained.
const CLAIM_RETENTION: Duration = Duration::from_secs(180 * 24 * 60 * 60);

static RESERVE: LazyLock<Script> = script!("reserve.lua");
static SETTLE: LazyLock<Script> = script!("settle.lua");
static REASSIGN: LazyLock<Script> = script!("reassign.lua");
static ACQUIRE_SLOT: LazyLock<Script> = script!("acquire_slot.lua");

/// The stored form of a reservation.
#[derive(Serialize, Deserialize)]
struct ReservationRecord {
    #[serde(rename = "v")]
    version: u32,
    holder: String,
    amount: u64,
    budgets: Vec<BudgetCounters>,
    body: String,
}

fn encode(reservation: &Reservation) -> String {
    let record = ReservationRecord {
        version: 1,
        holder: reservation.holder.clone(),
        amount: reservation.amount,
        budgets: reservation.budgets.clone(),
        body: reservation.body.clone(),
    };
    serde_json::to_string(&record).unwrap_or_default()
}

fn reservations_key() -> String {
    key(&["reservations"])
}

fn settled_key(id: &str) -> String {
    key(&["settled", id])
}

fn slots_key(name: &str) -> String {
    key(&["slots", name])
}

fn counter_key(subject: &str) -> String {
    key(&["count", subject])
}

impl RedisStore {
    pub(super) async fn run_reserve(
        &self,
        reservation: &Reservation,
    ) -> Result<ReserveOutcome, StoreError> {
        let mut script = RESERVE.prepare_invoke();
        script
            .key(reservations_key())
            .key(settled_key(&reservation.id))
            .key(key(&["subjects"]))
            .arg(&reservation.id)
            .arg(encode(reservation))
            .arg(reservation.amount.min(MAX_LUA_INTEGER));
        for budget in &reservation.budgets {
            let limit = budget
                .limit
                .map(|limit| limit.min(MAX_LUA_INTEGER).to_string());
            script
                .arg(counter_key(&budget.subject))
                .arg(&budget.subject)
                .arg(&budget.spent)
                .arg(&budget.reserved)
                .arg(limit.unwrap_or_default());
        }
        let reply: Vec<String> = self.run(&mut script).await?;
        let mut reply = reply.into_iter();
        let outcome = reply.next().unwrap_or_default();
        let values: Vec<u64> = reply.map(|text| text.parse().unwrap_or(0)).collect();
        let states = values.chunks_exact(2).map(|pair| BudgetState {
            spent: pair.first().copied().unwrap_or_default(),
            reserved: pair.last().copied().unwrap_or_default(),
        });
        let states = states.collect();
        Ok(match outcome.as_str() {
            "held" => ReserveOutcome::Held(states),
            "exceeded" => ReserveOutcome::Exceeded(states),
            _ => ReserveOutcome::AlreadySettled,
        })
    }

    pub(super) async fn run_settle(
        &self,
        reservation: &Reservation,
        updates: &[CounterUpdate],
    ) -> Result<bool, StoreError> {
        let log: Vec<String> = updates.iter().map(describe).collect();
        let mut script = SETTLE.prepare_invoke();
        script
            .key(reservations_key())
            .key(settled_key(&reservation.id))
            .key(key(&["subjects"]))
            .arg(&reservation.id)
            .arg(log.join(" "))
            .arg(milliseconds(Some(SETTLED_RETENTION)))
            .arg(1)
            .arg(reservation.amount.min(MAX_LUA_INTEGER))
            .arg(reservation.budgets.len());
        for budget in &reservation.budgets {
            script
                .arg(counter_key(&budget.subject))
                .arg(&budget.reserved);
        }
        for update in updates {
            let CounterOp::Add(value) = update.op else {
                continue;
            };
            script
                .arg(counter_key(&update.subject))
                .arg(&update.subject)
                .arg(&update.name)
                .arg(value.min(MAX_LUA_INTEGER));
        }
        self.run(&mut script).await
    }

    pub(super) async fn run_reassign(
        &self,
        current: &Reservation,
        changed: &Reservation,
        claim: Option<&str>,
    ) -> Result<ReassignOutcome, StoreError> {
        let mut script = REASSIGN.prepare_invoke();
        script.key(reservations_key());
        if let Some(claim) = claim {
            script.key(key(&["claim", claim]));
        }
        script
            .arg(&current.id)
            .arg(encode(current))
            .arg(encode(changed))
            .arg(milliseconds(Some(CLAIM_RETENTION)));
        let outcome: String = self.run(&mut script).await?;
        Ok(match outcome.as_str() {
            "done" => ReassignOutcome::Done,
            "claimed" => ReassignOutcome::Claimed,
            _ => ReassignOutcome::Gone,
        })
    }

    pub(super) async fn read_reservations(&self) -> Result<Vec<Reservation>, StoreError> {
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(reservations_key());
        let found: Vec<(String, String)> = self.command(&command).await?;
        let decoded = found.into_iter().filter_map(|(id, text)| {
            let record: ReservationRecord = serde_json::from_str(&text).ok()?;
            Some(Reservation {
                id,
                holder: record.holder,
                amount: record.amount,
                budgets: record.budgets,
                body: record.body,
            })
        });
        let mut reservations: Vec<Reservation> = decoded.collect();
        reservations.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(reservations)
    }

    pub(super) async fn run_acquire_slot(
        &self,
        slot: &Slot,
        limit: Option<SlotLimit>,
    ) -> Result<bool, StoreError> {
        let durable = u8::from(slot.is_durable);
        let mut script = ACQUIRE_SLOT.prepare_invoke();
        let max_groups = limit.map(|limit| limit.max_groups.min(MAX_LUA_INTEGER).to_string());
        let counts_durable = limit.is_some_and(|limit| limit.counts_durable);
        script
            .key(slots_key(&slot.key))
            .arg(&slot.id)
            .arg(format!("{} {durable} {}", slot.group, slot.holder))
            .arg(&slot.group)
            .arg(max_groups.unwrap_or_default())
            .arg(u8::from(counts_durable));
        self.run(&mut script).await
    }

    pub(super) async fn delete_slot(&self, name: &str, id: &str) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("HDEL").arg(slots_key(name)).arg(id);
        self.command(&command).await
    }

    pub(super) async fn read_slots(&self, name: &str) -> Result<Vec<Slot>, StoreError> {
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(slots_key(name));
        let found: Vec<(String, String)> = self.command(&command).await?;
        let decoded = found.into_iter().filter_map(|(id, text)| {
            let mut parts = text.splitn(3, ' ');
            Some(Slot {
                key: name.to_owned(),
                id,
                group: parts.next()?.to_owned(),
                is_durable: parts.next()? == "1",
                holder: parts.next()?.to_owned(),
            })
        });
        let mut slots: Vec<Slot> = decoded.collect();
        slots.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(slots)
    }
}

/// Describes an update in the record of a settled reservation, for operators who investigate a counter.
fn describe(update: &CounterUpdate) -> String {
    match update.op {
        CounterOp::Add(amount) => format!("{}={amount}", update.name),
        CounterOp::RaiseTo(minimum) => format!("{}>{minimum}", update.name),
    }
}

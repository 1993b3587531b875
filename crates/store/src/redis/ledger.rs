//! Reservations and slots in Redis.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, Script};
use serde::{Deserialize, Serialize};

use super::super::ledger::{
    BudgetCounters, BudgetState, Reassigned, Reservation, Reserved, Slot, SlotLimit,
};
use super::super::{CountChange, Step, StoreError};
use super::{LARGEST, RedisStore, key, milliseconds};

/// How long it is known that a reservation is settled, for requests about it that arrive late.
const SETTLED_KEPT: Duration = Duration::from_secs(60 * 60);

/// How long a claim is known.
const CLAIMS_KEPT: Duration = Duration::from_secs(180 * 24 * 60 * 60);

static RESERVE: LazyLock<Script> = script!("reserve.lua");
static SETTLE: LazyLock<Script> = script!("settle.lua");
static REASSIGN: LazyLock<Script> = script!("reassign.lua");
static OCCUPY: LazyLock<Script> = script!("occupy.lua");

/// A reservation as it is written.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(rename = "v")]
    version: u32,
    #[serde(rename = "holder")]
    holder: String,
    #[serde(rename = "amount")]
    amount: u64,
    #[serde(rename = "budgets")]
    budgets: Vec<BudgetCounters>,
    #[serde(rename = "body")]
    body: String,
}

fn record(reservation: &Reservation) -> String {
    let record = Record {
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
    pub(super) async fn reserve_money(&self, wanted: &Reservation) -> Result<Reserved, StoreError> {
        let mut script = RESERVE.prepare_invoke();
        script
            .key(reservations_key())
            .key(settled_key(&wanted.id))
            .key(key(&["subjects"]))
            .arg(&wanted.id)
            .arg(record(wanted))
            .arg(wanted.amount.min(LARGEST));
        for budget in &wanted.budgets {
            let most = budget.most.map(|most| most.min(LARGEST).to_string());
            script
                .arg(counter_key(&budget.subject))
                .arg(&budget.subject)
                .arg(&budget.spent)
                .arg(&budget.reserved)
                .arg(most.unwrap_or_default());
        }
        let answer: Vec<String> = self.run(&mut script).await?;
        let mut answer = answer.into_iter();
        let outcome = answer.next().unwrap_or_default();
        let numbers: Vec<u64> = answer.map(|text| text.parse().unwrap_or(0)).collect();
        let states = numbers.chunks_exact(2).map(|pair| BudgetState {
            spent: pair.first().copied().unwrap_or_default(),
            reserved: pair.last().copied().unwrap_or_default(),
        });
        let states = states.collect();
        Ok(match outcome.as_str() {
            "held" => Reserved::Held(states),
            "exceeded" => Reserved::Exceeded(states),
            _ => Reserved::Closed,
        })
    }

    pub(super) async fn settle_money(
        &self,
        settled: &Reservation,
        changes: &[CountChange],
    ) -> Result<bool, StoreError> {
        let spent: Vec<String> = changes.iter().map(shown).collect();
        let mut script = SETTLE.prepare_invoke();
        script
            .key(reservations_key())
            .key(settled_key(&settled.id))
            .key(key(&["subjects"]))
            .arg(&settled.id)
            .arg(spent.join(" "))
            .arg(milliseconds(Some(SETTLED_KEPT)))
            .arg(1)
            .arg(settled.amount.min(LARGEST))
            .arg(settled.budgets.len());
        for budget in &settled.budgets {
            script
                .arg(counter_key(&budget.subject))
                .arg(&budget.reserved);
        }
        for change in changes {
            let Step::Add(value) = change.step else {
                continue;
            };
            script
                .arg(counter_key(&change.subject))
                .arg(&change.subject)
                .arg(&change.name)
                .arg(value.min(LARGEST));
        }
        self.run(&mut script).await
    }

    pub(super) async fn reassign_reservation(
        &self,
        present: &Reservation,
        changed: &Reservation,
        claim: Option<&str>,
    ) -> Result<Reassigned, StoreError> {
        let mut script = REASSIGN.prepare_invoke();
        script.key(reservations_key());
        if let Some(claim) = claim {
            script.key(key(&["claim", claim]));
        }
        script
            .arg(&present.id)
            .arg(record(present))
            .arg(record(changed))
            .arg(milliseconds(Some(CLAIMS_KEPT)));
        let outcome: String = self.run(&mut script).await?;
        Ok(match outcome.as_str() {
            "done" => Reassigned::Done,
            "claimed" => Reassigned::Claimed,
            _ => Reassigned::Gone,
        })
    }

    pub(super) async fn all_reservations(&self) -> Result<Vec<Reservation>, StoreError> {
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(reservations_key());
        let found: Vec<(String, String)> = self.command(&command).await?;
        let read = found.into_iter().filter_map(|(id, text)| {
            let record: Record = serde_json::from_str(&text).ok()?;
            Some(Reservation {
                id,
                holder: record.holder,
                amount: record.amount,
                budgets: record.budgets,
                body: record.body,
            })
        });
        let mut reservations: Vec<Reservation> = read.collect();
        reservations.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(reservations)
    }

    pub(super) async fn occupy_slot(
        &self,
        slot: &Slot,
        limit: Option<SlotLimit>,
    ) -> Result<bool, StoreError> {
        let lasting = u8::from(slot.is_lasting);
        let mut script = OCCUPY.prepare_invoke();
        let most = limit.map(|limit| limit.most.min(LARGEST).to_string());
        let counts_lasting = limit.is_some_and(|limit| limit.counts_lasting);
        script
            .key(slots_key(&slot.key))
            .arg(&slot.id)
            .arg(format!("{} {lasting} {}", slot.group, slot.holder))
            .arg(&slot.group)
            .arg(most.unwrap_or_default())
            .arg(u8::from(counts_lasting));
        self.run(&mut script).await
    }

    pub(super) async fn vacate_slot(&self, name: &str, id: &str) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("HDEL").arg(slots_key(name)).arg(id);
        self.command(&command).await
    }

    pub(super) async fn all_slots(&self, name: &str) -> Result<Vec<Slot>, StoreError> {
        let mut command = Cmd::new();
        command.arg("HGETALL").arg(slots_key(name));
        let found: Vec<(String, String)> = self.command(&command).await?;
        let read = found.into_iter().filter_map(|(id, text)| {
            let mut parts = text.splitn(3, ' ');
            Some(Slot {
                key: name.to_owned(),
                id,
                group: parts.next()?.to_owned(),
                is_lasting: parts.next()? == "1",
                holder: parts.next()?.to_owned(),
            })
        });
        let mut slots: Vec<Slot> = read.collect();
        slots.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(slots)
    }
}

/// A change in the mark of a settled reservation, for whoever looks into why a counter is as it is.
fn shown(change: &CountChange) -> String {
    match change.step {
        Step::Add(by) => format!("{}={by}", change.name),
        Step::Reach(to) => format!("{}>{to}", change.name),
    }
}

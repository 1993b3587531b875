//! Reservations and slots in a SQLite file.

use rusqlite::{OptionalExtension, Result, Transaction, params};

use super::{counters, signed, unsigned};
use crate::counters::CounterUpdate;
use crate::ledger::{
    BudgetCounters, BudgetState, ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit,
    fits,
};

/// How long claims are retained, in milliseconds.
const CLAIM_RETENTION: u64 = 180 * 24 * 60 * 60 * 1_000;

/// Creates the tables.
pub(super) const MIGRATION: &str = "
    CREATE TABLE reservations (
        id TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        amount INTEGER NOT NULL,
        budgets TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE claims (
        name TEXT PRIMARY KEY,
        reservation TEXT NOT NULL,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX claims_by_age ON claims (created);
    CREATE TABLE slots (
        key TEXT NOT NULL,
        id TEXT NOT NULL,
        grouping TEXT NOT NULL,
        holder TEXT NOT NULL,
        lasting INTEGER NOT NULL,
        PRIMARY KEY (key, id)
    ) STRICT, WITHOUT ROWID;
";

pub(super) fn reserve(
    transaction: &Transaction<'_>,
    reservation: &Reservation,
) -> Result<ReserveOutcome> {
    let sql = "SELECT 1 FROM reservations WHERE id = ?";
    let known = transaction.query_row(sql, [&reservation.id], |_| Ok(()));
    if known.optional()?.is_some() {
        return Ok(ReserveOutcome::Held(states(
            transaction,
            &reservation.budgets,
        )?));
    }
    let before = states(transaction, &reservation.budgets)?;
    if !fits(reservation.amount, &reservation.budgets, &before) {
        return Ok(ReserveOutcome::Exceeded(before));
    }
    let mut add = transaction.prepare_cached(counters::ADD)?;
    for budget in &reservation.budgets {
        add.execute(params![
            budget.subject,
            budget.reserved,
            signed(reservation.amount)
        ])?;
    }
    transaction.execute(
        "INSERT INTO reservations (id, holder, amount, budgets, body) VALUES (?, ?, ?, ?, ?)",
        params![
            reservation.id,
            reservation.holder,
            signed(reservation.amount),
            serde_json::to_string(&reservation.budgets).unwrap_or_default(),
            reservation.body
        ],
    )?;
    Ok(ReserveOutcome::Held(states(
        transaction,
        &reservation.budgets,
    )?))
}

fn states(transaction: &Transaction<'_>, budgets: &[BudgetCounters]) -> Result<Vec<BudgetState>> {
    let sql = "SELECT value FROM counters WHERE subject = ? AND name = ?";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut value = |subject: &str, name: &str| {
        let found = statement.query_row([subject, name], |row| row.get(0));
        Ok::<_, rusqlite::Error>(found.optional()?.map_or(0, unsigned))
    };
    let mut states = Vec::with_capacity(budgets.len());
    for budget in budgets {
        states.push(BudgetState {
            spent: value(&budget.subject, &budget.spent)?,
            reserved: value(&budget.subject, &budget.reserved)?,
        });
    }
    Ok(states)
}

pub(super) fn settle(
    transaction: &Transaction<'_>,
    reservation: &Reservation,
    updates: &[CounterUpdate],
) -> Result<bool> {
    let sql = "DELETE FROM reservations WHERE id = ?";
    if transaction.execute(sql, [&reservation.id])? == 0 {
        return Ok(false);
    }
    for budget in &reservation.budgets {
        transaction.execute(
            "UPDATE counters SET value = max(0, value - ?) WHERE subject = ? AND name = ?",
            params![signed(reservation.amount), budget.subject, budget.reserved],
        )?;
    }
    counters::update(transaction, updates)?;
    Ok(true)
}

pub(super) fn reassign(
    transaction: &Transaction<'_>,
    current: &Reservation,
    changed: &Reservation,
    claim: Option<&str>,
    now: u64,
) -> Result<ReassignOutcome> {
    let sql = "SELECT 1 FROM reservations WHERE id = ? AND holder = ? AND body = ?";
    let known = [&current.id, &current.holder, &current.body];
    let known = transaction.query_row(sql, known, |_| Ok(()));
    if known.optional()?.is_none() {
        return Ok(ReassignOutcome::Gone);
    }
    if let Some(claim) = claim {
        let oldest = signed(now.saturating_sub(CLAIM_RETENTION));
        transaction.execute("DELETE FROM claims WHERE created < ?", [oldest])?;
        transaction.execute(
            "INSERT INTO claims (name, reservation, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            params![claim, changed.id, signed(now)],
        )?;
        let sql = "SELECT reservation FROM claims WHERE name = ?";
        let owner: String = transaction.query_row(sql, [claim], |row| row.get(0))?;
        if owner != changed.id {
            return Ok(ReassignOutcome::Claimed);
        }
    }
    transaction.execute(
        "UPDATE reservations SET holder = ?, body = ? WHERE id = ?",
        params![changed.holder, changed.body, changed.id],
    )?;
    Ok(ReassignOutcome::Done)
}

pub(super) fn reservations(transaction: &Transaction<'_>) -> Result<Vec<Reservation>> {
    let sql = "SELECT id, holder, amount, budgets, body FROM reservations ORDER BY id";
    let mut statement = transaction.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let budgets: String = row.get(3)?;
        Ok(Reservation {
            id: row.get(0)?,
            holder: row.get(1)?,
            amount: unsigned(row.get(2)?),
            budgets: serde_json::from_str(&budgets).unwrap_or_default(),
            body: row.get(4)?,
        })
    })?;
    rows.collect()
}

pub(super) fn acquire_slot(
    transaction: &Transaction<'_>,
    slot: &Slot,
    limit: Option<SlotLimit>,
) -> Result<bool> {
    if let Some(limit) = limit {
        let others = slots(transaction, &slot.key)?;
        let others = others.iter().filter(|other| other.id != slot.id);
        if !limit.allows(others.map(|other| (other.group.as_str(), other.is_durable))) {
            return Ok(false);
        }
    }
    transaction.execute(
        "INSERT INTO slots (key, id, grouping, holder, lasting) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET holder = excluded.holder",
        params![slot.key, slot.id, slot.group, slot.holder, slot.is_durable],
    )?;
    Ok(true)
}

pub(super) fn release_slot(transaction: &Transaction<'_>, key: &str, id: &str) -> Result<()> {
    let sql = "DELETE FROM slots WHERE key = ? AND id = ?";
    transaction.execute(sql, [key, id]).map(drop)
}

pub(super) fn slots(transaction: &Transaction<'_>, key: &str) -> Result<Vec<Slot>> {
    let sql = "SELECT id, grouping, holder, lasting FROM slots WHERE key = ? ORDER BY id";
    let mut statement = transaction.prepare_cached(sql)?;
    let rows = statement.query_map([key], |row| {
        Ok(Slot {
            key: key.to_owned(),
            id: row.get(0)?,
            group: row.get(1)?,
            holder: row.get(2)?,
            is_durable: row.get(3)?,
        })
    })?;
    rows.collect()
}

//! Counters in a SQLite file.

use std::ops::Range;

use rusqlite::{Result, Transaction, params};

use super::{signed, unsigned};
use crate::counters::{Counter, CounterOp, CounterUpdate};

/// How many counters one transaction deletes, because it blocks all other writers.
const DELETE_BATCH: u32 = 500;

/// Creates the table.
pub(super) const MIGRATION: &str = "
    CREATE TABLE counters (
        subject TEXT NOT NULL,
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (subject, name)
    ) STRICT, WITHOUT ROWID;
";

/// Adds to a counter, saturating at the largest value.
pub(super) const ADD: &str = "
    INSERT INTO counters (subject, name, value) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET value = value + min(excluded.value, 9223372036854775807 - value)";

pub(super) fn update(transaction: &Transaction<'_>, updates: &[CounterUpdate]) -> Result<()> {
    let mut add = transaction.prepare_cached(ADD)?;
    let mut raise = transaction.prepare_cached(
        "INSERT INTO counters (subject, name, value) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
    )?;
    for update in updates {
        let (statement, value) = match update.op {
            CounterOp::Add(amount) => (&mut add, amount),
            CounterOp::RaiseTo(minimum) => (&mut raise, minimum),
        };
        statement.execute(params![update.subject, update.name, signed(value)])?;
    }
    Ok(())
}

/// Deletes some counters and returns whether more may be left.
pub(super) fn delete(transaction: &Transaction<'_>, subjects: &Range<String>) -> Result<bool> {
    let deleted = transaction.execute(
        "DELETE FROM counters WHERE (subject, name) IN (
             SELECT subject, name FROM counters WHERE subject >= ?1 AND subject < ?2 LIMIT ?3)",
        params![subjects.start, subjects.end, DELETE_BATCH],
    )?;
    Ok(deleted >= DELETE_BATCH as usize)
}

pub(super) fn list(transaction: &Transaction<'_>, subject: Option<&str>) -> Result<Vec<Counter>> {
    let sql = match subject {
        Some(_) => "SELECT subject, name, value FROM counters WHERE subject = ?1 ORDER BY name",
        None => "SELECT subject, name, value FROM counters WHERE ?1 IS NULL ORDER BY subject, name",
    };
    let mut statement = transaction.prepare(sql)?;
    let rows = statement.query_map([subject], |row| {
        Ok(Counter {
            subject: row.get(0)?,
            name: row.get(1)?,
            value: unsigned(row.get(2)?),
        })
    })?;
    rows.collect()
}

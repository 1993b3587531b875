//! Numbers in a SQLite file.

use std::ops::Range;

use rusqlite::{Result, Transaction, params};

use super::counters::{Count, CountChange, Step};
use super::sqlite::{signed, unsigned};

/// Numbers that are forgotten in one transaction: while it lasts, nobody else can write.
const AT_ONCE: u32 = 500;

/// The step of the schema that makes the table.
pub(super) const MIGRATION: &str = "
    CREATE TABLE counters (
        subject TEXT NOT NULL,
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (subject, name)
    ) STRICT, WITHOUT ROWID;
";

/// Adds to a number. A sum that is too large to count is the largest number, not an error.
pub(super) const ADD: &str = "
    INSERT INTO counters (subject, name, value) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET value = value + min(excluded.value, 9223372036854775807 - value)";

pub(super) fn change(transaction: &Transaction<'_>, changes: &[CountChange]) -> Result<()> {
    let mut add = transaction.prepare_cached(ADD)?;
    let mut reach = transaction.prepare_cached(
        "INSERT INTO counters (subject, name, value) VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
    )?;
    for change in changes {
        let (statement, value) = match change.step {
            Step::Add(by) => (&mut add, by),
            Step::Reach(to) => (&mut reach, to),
        };
        statement.execute(params![change.subject, change.name, signed(value)])?;
    }
    Ok(())
}

/// Forgets some numbers; says whether there may be more.
pub(super) fn forget(transaction: &Transaction<'_>, subjects: &Range<String>) -> Result<bool> {
    let gone = transaction.execute(
        "DELETE FROM counters WHERE (subject, name) IN (
             SELECT subject, name FROM counters WHERE subject >= ?1 AND subject < ?2 LIMIT ?3)",
        params![subjects.start, subjects.end, AT_ONCE],
    )?;
    Ok(gone >= AT_ONCE as usize)
}

pub(super) fn list(transaction: &Transaction<'_>, subject: Option<&str>) -> Result<Vec<Count>> {
    let sql = match subject {
        Some(_) => "SELECT subject, name, value FROM counters WHERE subject = ?1 ORDER BY name",
        None => "SELECT subject, name, value FROM counters WHERE ?1 IS NULL ORDER BY subject, name",
    };
    let mut statement = transaction.prepare(sql)?;
    let rows = statement.query_map([subject], |row| {
        Ok(Count {
            subject: row.get(0)?,
            name: row.get(1)?,
            value: unsigned(row.get(2)?),
        })
    })?;
    rows.collect()
}

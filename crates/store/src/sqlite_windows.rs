//! Windows in a SQLite file.

use rusqlite::{OptionalExtension, Result, Transaction, params};

use super::sqlite::{signed, unsigned};
use super::windows::{Taken, Window};

/// Ended windows that are forgotten whenever something is taken from one: more than are begun.
const AT_ONCE: u32 = 100;

/// The step of the schema that makes the table.
pub(super) const MIGRATION: &str = "
    CREATE TABLE windows (
        key TEXT PRIMARY KEY,
        used INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX windows_by_end ON windows (ends);
";

pub(super) fn take(transaction: &Transaction<'_>, window: &Window, now: u64) -> Result<Taken> {
    let sql = "SELECT used, ends FROM windows WHERE key = ?";
    let present = transaction.query_row(sql, [&window.key], |row| {
        Ok((unsigned(row.get(0)?), unsigned(row.get(1)?)))
    });
    let (taken, kept) = window.take(present.optional()?, now);
    if let Some((used, ends)) = kept {
        transaction.execute(
            "DELETE FROM windows WHERE key IN (SELECT key FROM windows WHERE ends <= ? LIMIT ?)",
            params![signed(now), AT_ONCE],
        )?;
        transaction.execute(
            "INSERT INTO windows (key, used, ends) VALUES (?, ?, ?)
             ON CONFLICT DO UPDATE SET used = excluded.used, ends = excluded.ends",
            params![window.key, signed(used), signed(ends)],
        )?;
    }
    Ok(taken)
}

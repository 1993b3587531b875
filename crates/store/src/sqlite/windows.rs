//! Rate-limit windows in a SQLite file.

use rusqlite::{OptionalExtension, Result, Transaction, params};

use super::{signed, unsigned};
use crate::windows::{WindowDecision, WindowRequest, WindowState};

/// How many expired windows each write deletes: more than it creates, so that they do not accumulate.
const DELETE_BATCH: u32 = 100;

/// Creates the table.
pub(super) const MIGRATION: &str = "
    CREATE TABLE windows (
        key TEXT PRIMARY KEY,
        used INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX windows_by_end ON windows (ends);
";

pub(super) fn consume(
    transaction: &Transaction<'_>,
    request: &WindowRequest,
    now: u64,
) -> Result<WindowDecision> {
    let sql = "SELECT used, ends FROM windows WHERE key = ?";
    let current = transaction.query_row(sql, [&request.key], |row| {
        Ok(WindowState {
            used: unsigned(row.get(0)?),
            ends_at: unsigned(row.get(1)?),
        })
    });
    let (decision, state) = request.decide(current.optional()?, now);
    if let Some(WindowState { used, ends_at }) = state {
        transaction.execute(
            "DELETE FROM windows WHERE key IN (SELECT key FROM windows WHERE ends <= ? LIMIT ?)",
            params![signed(now), DELETE_BATCH],
        )?;
        transaction.execute(
            "INSERT INTO windows (key, used, ends) VALUES (?, ?, ?)
             ON CONFLICT DO UPDATE SET used = excluded.used, ends = excluded.ends",
            params![request.key, signed(used), signed(ends_at)],
        )?;
    }
    Ok(decision)
}

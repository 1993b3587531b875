//! Tries whether a SQLite store can be written, with writes that a full disk refuses.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Transaction, params};

use super::sqlite::signed;

/// As much as an ordinary document needs: several pages.
const BYTES: usize = 32 * 1024;

/// Who owns the one document that is written again and again.
const OWNER: &str = "system";
const COLLECTION: &str = "probe";

/// Files that were written beside stores so far.
static PROBES: AtomicU64 = AtomicU64::new(0);

/// Writes a document. Its text differs from the last one, since SQLite does not write what is the same.
pub(super) fn write(transaction: &Transaction<'_>, now: u64) -> rusqlite::Result<()> {
    let body = format!("{now:016x}").repeat(BYTES / 16);
    let now = signed(now);
    transaction.execute(
        "INSERT INTO documents (owner, collection, id, body, revision, created, modified, expires)
         VALUES (?1, ?2, 'probe', ?3, 1, ?4, ?4, NULL)
         ON CONFLICT (owner, collection, id)
         DO UPDATE SET body = ?3, revision = revision + 1, modified = ?4",
        params![OWNER, COLLECTION, body, now],
    )?;
    Ok(())
}

/// Writes a file beside the store: what SQLite writes may still fit into room that its log has kept.
pub(super) fn write_beside(path: &Path) -> std::io::Result<()> {
    let probe = name(path);
    let result = fill(&probe);
    // What is left of it would only take room.
    let removed = fs::remove_file(&probe);
    result.and(removed)
}

/// Several may try at once, here and in other processes.
fn name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    name.push(format!("-probe-{}-{number}", std::process::id()));
    name.into()
}

fn fill(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[0x55; BYTES])?;
    // Some file systems find out late that there is no room.
    file.sync_data()
}

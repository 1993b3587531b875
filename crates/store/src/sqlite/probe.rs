//! Probes whether a SQLite store is writable, with writes that fail on a full disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Transaction, params};

use super::signed;

/// The size of a typical document: several pages.
const PROBE_SIZE: usize = 32 * 1024;

/// The key of the one document that every probe overwrites.
const OWNER: &str = "system";
const COLLECTION: &str = "probe";

/// Numbers the probe files of this process.
static PROBE_COUNT: AtomicU64 = AtomicU64::new(0);

/// Writes a document. Its body differs from the last one, because SQLite skips unchanged pages.
pub(super) fn write(transaction: &Transaction<'_>, now: u64) -> rusqlite::Result<()> {
    let body = format!("{now:016x}").repeat(PROBE_SIZE / 16);
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

/// Writes a file next to the store, because a document may still fit into space that the log has allocated.
pub(super) fn write_file(path: &Path) -> std::io::Result<()> {
    let probe = probe_path(path);
    let result = fill(&probe);
    let removed = fs::remove_file(&probe);
    result.and(removed)
}

/// Returns a unique path, because several processes may probe at the same time.
fn probe_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    let number = PROBE_COUNT.fetch_add(1, Ordering::Relaxed);
    name.push(format!("-probe-{}-{number}", std::process::id()));
    name.into()
}

fn fill(path: &Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[0x55; PROBE_SIZE])?;
    // Some file systems only notice a full disk now.
    file.sync_data()
}

//! Opening, protecting and migrating the SQLite file.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::{SqliteError, counters, ledger, windows};
use crate::StoreError;

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The same when closing the file.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Marks the file as ours ("exam" in ASCII), so that a file of another program is never overwritten.
const APPLICATION_ID: i32 = 0x6578_616d;

/// The migrations from an empty file to the current schema. `user_version` counts those that a file has.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE documents (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        collection TEXT NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        revision INTEGER NOT NULL,
        created INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        expires INTEGER,
        UNIQUE (owner, collection, id)
    ) STRICT;
    CREATE INDEX documents_by_owner ON documents (owner, collection, number);
    CREATE INDEX documents_by_collection ON documents (collection, number);
    CREATE INDEX documents_by_end ON documents (expires) WHERE expires IS NOT NULL;
",
    counters::MIGRATION,
    windows::MIGRATION,
    ledger::MIGRATION,
];

/// Opens the file, or creates it.
pub(super) fn open(path: &Path) -> Result<Connection, SqliteError> {
    prepare(path)?;
    // No SQLITE_OPEN_URI: a path that looks like a URI is still a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    migrate(&mut connection)?;
    use_write_ahead_log(&connection)?;
    // With a write-ahead log this is safe against a crash of the process.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// Switches to a write-ahead log. The busy timeout does not apply here, so this retries itself.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// Writes the write-ahead log into the file, so that the file is complete on its own.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), SqliteError> {
    connection.busy_timeout(CLOSE_TIMEOUT)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Creates the file, readable only by its owner. SQLite copies the permissions to its companion files.
#[cfg(unix)]
pub(super) fn prepare(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn prepare(path: &Path) -> std::io::Result<()> {
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => fs::create_dir_all(parent),
        None => Ok(()),
    }
}

/// Rejects a file that a newer version of the program has upgraded.
pub(super) fn check_version(transaction: &Transaction<'_>) -> Result<(), SqliteError> {
    let mut statement = transaction.prepare_cached("PRAGMA user_version")?;
    let version: i64 = statement.query_row([], |row| row.get(0))?;
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(()),
        _ => {
            let supported = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
            Err(StoreError::newer(&version.to_string(), None, supported).into())
        }
    }
}

/// Applies the missing migrations.
fn migrate(connection: &mut Connection) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pragma =
        |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let empty = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION_ID && !empty {
        return Err(SqliteError::Foreign);
    }
    check_version(&transaction)?;
    let applied = usize::try_from(version).unwrap_or(usize::MAX);
    let missing = MIGRATIONS.get(applied..).unwrap_or_default();
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    if !missing.is_empty() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    Ok(transaction.commit()?)
}

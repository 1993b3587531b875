//! The file of a SQLite store: made, guarded, and brought up to date.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::StoreError;
use super::sqlite::Fault;
use super::sqlite_counters as counters;
use super::sqlite_ledger as ledger;
use super::sqlite_windows as windows;

/// How long to wait for another process that is writing.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait for others at the end.
const CLOSING: Duration = Duration::from_secs(1);

/// Marks the file as ours ("exam" in ASCII), so that no other program's file is ever written to.
const APPLICATION: i32 = 0x6578_616d;

/// The steps from an empty file to the present schema; a file remembers how many it has taken.
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

/// Opens the file; makes it first where there is none.
pub(super) fn open(path: &Path) -> Result<Connection, Fault> {
    prepare(path)?;
    // Without the flag for URIs: a path is a path, whatever it looks like.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    migrate(&mut connection)?;
    use_write_ahead_log(&connection)?;
    // With a write-ahead log this survives the end of the process at any moment.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(connection)
}

/// SQLite does not wait for others here by itself.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + PATIENCE;
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

/// Writes the write-ahead log into the file, so that the file alone has everything.
pub(super) fn checkpoint(connection: &Connection) -> Result<(), Fault> {
    connection.busy_timeout(CLOSING)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Makes the file, readable for its owner alone; SQLite gives the files beside it the same rights.
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

/// Refuses a file that a newer program has changed.
pub(super) fn check_version(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let mut statement = transaction.prepare_cached("PRAGMA user_version")?;
    let version: i64 = statement.query_row([], |row| row.get(0))?;
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(()),
        _ => {
            let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
            Err(StoreError::newer(&version.to_string(), None, known).into())
        }
    }
}

/// Brings the schema up to date.
fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pragma =
        |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let empty = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION && !empty {
        return Err(Fault::Foreign);
    }
    check_version(&transaction)?;
    let taken = usize::try_from(version).unwrap_or(usize::MAX);
    let steps = MIGRATIONS.get(taken..).unwrap_or_default();
    for step in steps {
        transaction.execute_batch(step)?;
    }
    if !steps.is_empty() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    Ok(transaction.commit()?)
}

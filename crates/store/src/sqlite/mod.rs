//! A store in a SQLite file, which outlives the process and which several processes may share.

mod counters;
mod file;
mod ledger;
mod liveness;
mod probe;
mod windows;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use tokio::task::spawn_blocking;

use self::file::{check_version, checkpoint, open, prepare};
use super::memory::check_revision;
use super::{
    Clock, Counter, CounterUpdate, Document, DocumentKey, DocumentQuery, LivenessGuard,
    ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit, Store, StoreError, StoreFuture,
    WindowDecision, WindowRequest, WriteOptions, expiry, system_clock,
};
use exa_mcp_model::lock;

/// The columns of a [`Document`].
const COLUMNS: &str = "owner, id, body, revision, number, created, modified";

/// A store in a SQLite file. Clones share the connection.
#[derive(Clone)]
pub struct SqliteStore {
    database: Arc<Database>,
    clock: Clock,
}

struct Database {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
    /// Acquired before the connection, so that thousands of waiting calls do not block a thread each.
    queue: tokio::sync::Mutex<()>,
    /// Why the last transaction was rejected, if it was.
    blocking_error: Mutex<Option<StoreError>>,
}

/// An error of the SQLite backend.
#[derive(Debug, thiserror::Error)]
pub(super) enum SqliteError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("the file belongs to another program; choose another path")]
    Foreign,
}

impl SqliteStore {
    /// Creates a store in this file. The first use opens or creates the file.
    pub fn new(path: PathBuf) -> Self {
        Self::with_clock(path, system_clock())
    }

    pub(super) fn with_clock(path: PathBuf, clock: Clock) -> Self {
        let connection = Mutex::new(None);
        let database = Arc::new(Database {
            path,
            connection,
            queue: tokio::sync::Mutex::default(),
            blocking_error: Mutex::default(),
        });
        Self { database, clock }
    }

    /// Runs a read-only transaction.
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, SqliteError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.run(TransactionBehavior::Deferred, work)
    }

    /// Runs a transaction that excludes other writers.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, SqliteError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        self.run(TransactionBehavior::Immediate, work)
    }

    /// Runs a closure with the path of the database, on a blocking thread.
    fn with_path<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let database = Arc::clone(&self.database);
        Box::pin(async move {
            let result = spawn_blocking(move || work(&database.path)).await;
            let result = result.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            result.map_err(|error| StoreError::Unavailable(error.to_string()))
        })
    }

    /// Runs a transaction on a blocking thread.
    fn run<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, SqliteError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let (database, now) = (Arc::clone(&self.database), (self.clock)());
        Box::pin(async move {
            let _queued = database.queue.lock().await;
            let own = Arc::clone(&database);
            let work = move || own.transact(behavior, |transaction| work(transaction, now));
            match spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            }
        })
    }
}

impl Database {
    fn transact<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, StoreError> {
        let mut connection = lock(&self.connection);
        let result = self.try_transact(&mut connection, behavior, work);
        let result = result.map_err(|error| self.store_error(error));
        let blocking_error = match &result {
            Err(error @ StoreError::Newer(_)) => Some(error.clone()),
            _ => None,
        };
        *lock(&self.blocking_error) = blocking_error;
        result
    }

    /// Writes the write-ahead log into the file and closes it. The log stays while another process has the file open.
    fn close(&self) -> Result<(), StoreError> {
        let connection = lock(&self.connection).take();
        let Some(connection) = connection else {
            return Ok(());
        };
        let result = checkpoint(&connection);
        let closed = connection.close().map_err(|(_, error)| error);
        let result = result.and_then(|()| Ok(closed?));
        result.map_err(|error| self.store_error(error))
    }

    fn store_error(&self, error: SqliteError) -> StoreError {
        match error {
            SqliteError::Store(error) => error,
            error => StoreError::Unavailable(format!("{}: {error}", self.path.display())),
        }
    }

    fn try_transact<T>(
        &self,
        connection: &mut Option<Connection>,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(open(&self.path)?),
        };
        let transaction = connection.transaction_with_behavior(behavior)?;
        // A newer version of the program may have upgraded the file since it was opened.
        check_version(&transaction)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}

fn read_document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        owner: row.get(0)?,
        id: row.get(1)?,
        body: row.get(2)?,
        revision: unsigned(row.get(3)?),
        sequence: unsigned(row.get(4)?),
        created_at: unsigned(row.get(5)?),
        modified_at: unsigned(row.get(6)?),
    })
}

/// SQLite only has signed integers. No stored value exceeds them.
fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn find(
    transaction: &Transaction<'_>,
    key: &DocumentKey,
    now: u64,
) -> Result<Option<Document>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE owner = ? AND collection = ? AND id = ?
         AND (expires IS NULL OR expires > ?)"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let params = params![key.owner.as_str(), key.collection, key.id, signed(now)];
    statement.query_row(params, read_document).optional()
}

fn put(
    transaction: &Transaction<'_>,
    key: &DocumentKey,
    body: &str,
    options: WriteOptions,
    now: u64,
) -> Result<u64, SqliteError> {
    transaction.execute("DELETE FROM documents WHERE expires <= ?", [signed(now)])?;
    let current = find(transaction, key, now)?;
    check_revision(options.expected, current.as_ref())?;
    let expires = options.time_to_live.map(|time| signed(expiry(now, time)));
    if let Some(current) = current {
        let revision = current.revision + 1;
        transaction.execute(
            "UPDATE documents SET body = ?, revision = ?, modified = ?, expires = ? WHERE number = ?",
            params![body, signed(revision), signed(now), expires, signed(current.sequence)],
        )?;
        return Ok(revision);
    }
    let owner = key.owner.as_str();
    if let Some(max) = options.max_documents {
        let sql = "SELECT count(*) FROM documents WHERE owner = ? AND collection = ?";
        let count = transaction.query_row(sql, [owner, key.collection], |row| row.get(0))?;
        if unsigned(count) >= max as u64 {
            return Err(StoreError::TooMany(max).into());
        }
    }
    transaction.execute(
        "INSERT INTO documents (owner, collection, id, body, revision, created, modified, expires)
         VALUES (?, ?, ?, ?, 1, ?, ?, ?)",
        params![
            owner,
            key.collection,
            key.id,
            body,
            signed(now),
            signed(now),
            expires
        ],
    )?;
    Ok(1)
}

fn list(
    transaction: &Transaction<'_>,
    query: &DocumentQuery,
    now: u64,
) -> Result<Vec<Document>, rusqlite::Error> {
    let owner_filter = match query.owner {
        Some(_) => "owner = ?1",
        None => "?1 IS NULL",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE {owner_filter} AND collection = ?2 AND number < ?3
         AND (expires IS NULL OR expires > ?4) ORDER BY number DESC LIMIT ?5"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let before = signed(query.before.unwrap_or(u64::MAX));
    let limit = signed(query.limit as u64);
    let owner = query.owner.as_ref().map(|owner| owner.as_str());
    let params = params![owner, query.collection, before, signed(now), limit];
    statement.query_map(params, read_document)?.collect()
}

impl Store for SqliteStore {
    fn may_contain_data(&self) -> bool {
        self.database.path.exists()
    }

    fn put(&self, key: DocumentKey, body: String, options: WriteOptions) -> StoreFuture<'_, u64> {
        self.write(move |transaction, now| put(transaction, &key, &body, options, now))
    }

    fn get(&self, key: DocumentKey) -> StoreFuture<'_, Option<Document>> {
        self.read(move |transaction, now| Ok(find(transaction, &key, now)?))
    }

    fn delete(&self, key: DocumentKey) -> StoreFuture<'_, bool> {
        self.write(move |transaction, now| {
            let existed = find(transaction, &key, now)?.is_some();
            let sql = "DELETE FROM documents WHERE owner = ? AND collection = ? AND id = ?";
            transaction.execute(sql, [key.owner.as_str(), key.collection, &key.id])?;
            Ok(existed)
        })
    }

    fn list(&self, query: DocumentQuery) -> StoreFuture<'_, Vec<Document>> {
        self.read(move |transaction, now| Ok(list(transaction, &query, now)?))
    }

    fn mark_alive(&self, name: String) -> StoreFuture<'_, LivenessGuard> {
        self.with_path(move |path| {
            prepare(path)?;
            liveness::acquire(path, &name).map(LivenessGuard::new)
        })
    }

    fn is_alive(&self, name: String) -> StoreFuture<'_, bool> {
        self.with_path(move |path| liveness::is_held(path, &name))
    }

    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
        self.write(move |transaction, _| Ok(counters::update(transaction, &updates)?))
    }

    fn counters(&self, subject: Option<String>) -> StoreFuture<'_, Vec<Counter>> {
        self.read(move |transaction, _| Ok(counters::list(transaction, subject.as_deref())?))
    }

    fn delete_counters(&self, subjects: Range<String>) -> StoreFuture<'_, bool> {
        self.write(move |transaction, _| Ok(counters::delete(transaction, &subjects)?))
    }

    fn consume(&self, request: WindowRequest) -> StoreFuture<'_, WindowDecision> {
        self.write(move |transaction, now| Ok(windows::consume(transaction, &request, now)?))
    }

    fn reserve(&self, reservation: Reservation) -> StoreFuture<'_, ReserveOutcome> {
        self.write(move |transaction, _| Ok(ledger::reserve(transaction, &reservation)?))
    }

    fn settle(
        &self,
        reservation: Reservation,
        updates: Vec<CounterUpdate>,
    ) -> StoreFuture<'_, bool> {
        self.write(move |transaction, _| Ok(ledger::settle(transaction, &reservation, &updates)?))
    }

    fn reassign(
        &self,
        current: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> StoreFuture<'_, ReassignOutcome> {
        self.write(move |transaction, now| {
            let claim = claim.as_deref();
            Ok(ledger::reassign(
                transaction,
                &current,
                &changed,
                claim,
                now,
            )?)
        })
    }

    fn reservations(&self) -> StoreFuture<'_, Vec<Reservation>> {
        self.read(move |transaction, _| Ok(ledger::reservations(transaction)?))
    }

    fn acquire_slot(&self, slot: Slot, limit: Option<SlotLimit>) -> StoreFuture<'_, bool> {
        self.write(move |transaction, _| Ok(ledger::acquire_slot(transaction, &slot, limit)?))
    }

    fn release_slot(&self, key: String, id: String) -> StoreFuture<'_, ()> {
        self.write(move |transaction, _| Ok(ledger::release_slot(transaction, &key, &id)?))
    }

    fn slots(&self, key: String) -> StoreFuture<'_, Vec<Slot>> {
        self.read(move |transaction, _| Ok(ledger::slots(transaction, &key)?))
    }

    fn check(&self) -> StoreFuture<'_, String> {
        let description = format!("SQLite file {}", self.database.path.display());
        let write = self.write(move |transaction, now| Ok(probe::write(transaction, now)?));
        let write_file = self.with_path(probe::write_file);
        Box::pin(async move {
            write.await?;
            write_file.await?;
            Ok(description)
        })
    }

    fn verify(&self) -> StoreFuture<'_, ()> {
        self.read(|_, _| Ok(()))
    }

    fn blocking_error(&self) -> Option<StoreError> {
        lock(&self.database.blocking_error).clone()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        let database = Arc::clone(&self.database);
        Box::pin(async move {
            let _queued = database.queue.lock().await;
            let own = Arc::clone(&database);
            match spawn_blocking(move || own.close()).await {
                Ok(result) => result,
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            }
        })
    }
}

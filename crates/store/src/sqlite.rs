//! Documents in a SQLite file: they outlive the process, and several processes may share them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use tokio::task::spawn_blocking;

use super::memory::check;
use super::sqlite_counters as counters;
use super::sqlite_file::{check_version, checkpoint, open, prepare};
use super::sqlite_ledger as ledger;
use super::sqlite_probe as probe;
use super::sqlite_windows as windows;
use super::{
    Clock, Count, CountChange, Document, LivenessGuard, Pending, Place, Query, Reassigned,
    Reservation, Reserved, Rules, Slot, SlotLimit, Store, StoreError, Taken, Window, end, liveness,
    system_clock,
};
use exa_mcp_model::lock;

/// The columns of a [`Document`].
const COLUMNS: &str = "owner, id, body, revision, number, created, modified";

/// Documents in a SQLite file.
#[derive(Clone)]
pub struct SqliteStore {
    file: Arc<File>,
    clock: Clock,
}

struct File {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
    /// Who waits for the connection must not block a thread meanwhile: there could be thousands.
    turn: tokio::sync::Mutex<()>,
    /// Why the file was refused last, if it was.
    refusal: Mutex<Option<StoreError>>,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("it is the file of another program; choose another path")]
    Foreign,
}

impl SqliteStore {
    /// A store in this file. The file is neither opened nor made before the first use.
    pub fn new(path: PathBuf) -> Self {
        Self::with_clock(path, system_clock())
    }

    pub(super) fn with_clock(path: PathBuf, clock: Clock) -> Self {
        let connection = Mutex::new(None);
        let file = Arc::new(File {
            path,
            connection,
            turn: tokio::sync::Mutex::default(),
            refusal: Mutex::default(),
        });
        Self { file, clock }
    }

    /// Reads in one transaction.
    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, Fault> + Send + 'static,
    ) -> Pending<'static, T> {
        self.run(TransactionBehavior::Deferred, work)
    }

    /// Reads and writes in one transaction, which no other process comes between.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, Fault> + Send + 'static,
    ) -> Pending<'static, T> {
        self.run(TransactionBehavior::Immediate, work)
    }

    /// Does some work with files beside this one, on a thread that may block.
    fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> std::io::Result<T> + Send + 'static,
    ) -> Pending<'static, T> {
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let result = spawn_blocking(move || work(&file.path)).await;
            let result = result.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            result.map_err(|error| StoreError::Unavailable(error.to_string()))
        })
    }

    /// Does some work in one transaction, on a thread that may block.
    fn run<T: Send + 'static>(
        &self,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>, u64) -> Result<T, Fault> + Send + 'static,
    ) -> Pending<'static, T> {
        let (file, now) = (Arc::clone(&self.file), (self.clock)());
        Box::pin(async move {
            let _turn = file.turn.lock().await;
            let own = Arc::clone(&file);
            let work = move || own.transact(behaviour, |transaction| work(transaction, now));
            match spawn_blocking(work).await {
                Ok(result) => result,
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            }
        })
    }
}

impl File {
    fn transact<T>(
        &self,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut connection = lock(&self.connection);
        let result = self.try_transact(&mut connection, behaviour, work);
        let result = result.map_err(|fault| self.error(fault));
        let refusal = match &result {
            Err(error @ StoreError::Newer(_)) => Some(error.clone()),
            _ => None,
        };
        *lock(&self.refusal) = refusal;
        result
    }

    /// Writes the log into the file and closes it. The log stays where another process uses the file.
    fn close(&self) -> Result<(), StoreError> {
        let connection = lock(&self.connection).take();
        let Some(connection) = connection else {
            return Ok(());
        };
        let result = checkpoint(&connection);
        let closed = connection.close().map_err(|(_, error)| error);
        let result = result.and_then(|()| Ok(closed?));
        result.map_err(|fault| self.error(fault))
    }

    fn error(&self, fault: Fault) -> StoreError {
        match fault {
            Fault::Store(error) => error,
            fault => StoreError::Unavailable(format!("{}: {fault}", self.path.display())),
        }
    }

    fn try_transact<T>(
        &self,
        connection: &mut Option<Connection>,
        behaviour: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(open(&self.path)?),
        };
        let transaction = connection.transaction_with_behavior(behaviour)?;
        // A newer program may have changed the file since it was opened.
        check_version(&transaction)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}

fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        owner: row.get(0)?,
        id: row.get(1)?,
        body: row.get(2)?,
        revision: unsigned(row.get(3)?),
        number: unsigned(row.get(4)?),
        created: unsigned(row.get(5)?),
        modified: unsigned(row.get(6)?),
    })
}

/// SQLite knows signed integers only; ours never grow beyond them.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn find(
    transaction: &Transaction<'_>,
    place: &Place,
    now: u64,
) -> Result<Option<Document>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE owner = ? AND collection = ? AND id = ?
         AND (expires IS NULL OR expires > ?)"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let place = params![
        place.owner.as_str(),
        place.collection,
        place.id,
        signed(now)
    ];
    statement.query_row(place, document).optional()
}

fn put(
    transaction: &Transaction<'_>,
    place: &Place,
    body: &str,
    rules: Rules,
    now: u64,
) -> Result<u64, Fault> {
    transaction.execute("DELETE FROM documents WHERE expires <= ?", [signed(now)])?;
    let present = find(transaction, place, now)?;
    check(rules.expected, present.as_ref())?;
    let expires = rules.time_to_live.map(|time| signed(end(now, time)));
    if let Some(present) = present {
        let revision = present.revision + 1;
        transaction.execute(
            "UPDATE documents SET body = ?, revision = ?, modified = ?, expires = ? WHERE number = ?",
            params![body, signed(revision), signed(now), expires, signed(present.number)],
        )?;
        return Ok(revision);
    }
    let owner = place.owner.as_str();
    if let Some(most) = rules.most {
        let sql = "SELECT count(*) FROM documents WHERE owner = ? AND collection = ?";
        let count = transaction.query_row(sql, [owner, place.collection], |row| row.get(0))?;
        if unsigned(count) >= most as u64 {
            return Err(StoreError::TooMany(most).into());
        }
    }
    transaction.execute(
        "INSERT INTO documents (owner, collection, id, body, revision, created, modified, expires)
         VALUES (?, ?, ?, ?, 1, ?, ?, ?)",
        params![
            owner,
            place.collection,
            place.id,
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
    query: &Query,
    now: u64,
) -> Result<Vec<Document>, rusqlite::Error> {
    let whose = match query.owner {
        Some(_) => "owner = ?1",
        None => "?1 IS NULL",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM documents WHERE {whose} AND collection = ?2 AND number < ?3
         AND (expires IS NULL OR expires > ?4) ORDER BY number DESC LIMIT ?5"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    let before = signed(query.before.unwrap_or(u64::MAX));
    let limit = signed(query.limit as u64);
    let owner = query.owner.as_ref().map(|owner| owner.as_str());
    let rows = params![owner, query.collection, before, signed(now), limit];
    statement.query_map(rows, document)?.collect()
}

impl Store for SqliteStore {
    fn is_made(&self) -> bool {
        self.file.path.exists()
    }

    fn put(&self, place: Place, body: String, rules: Rules) -> Pending<'_, u64> {
        self.write(move |transaction, now| put(transaction, &place, &body, rules, now))
    }

    fn get(&self, place: Place) -> Pending<'_, Option<Document>> {
        self.read(move |transaction, now| Ok(find(transaction, &place, now)?))
    }

    fn delete(&self, place: Place) -> Pending<'_, bool> {
        self.write(move |transaction, now| {
            let there = find(transaction, &place, now)?.is_some();
            let sql = "DELETE FROM documents WHERE owner = ? AND collection = ? AND id = ?";
            transaction.execute(sql, [place.owner.as_str(), place.collection, &place.id])?;
            Ok(there)
        })
    }

    fn list(&self, query: Query) -> Pending<'_, Vec<Document>> {
        self.read(move |transaction, now| Ok(list(transaction, &query, now)?))
    }

    fn announce(&self, name: String) -> Pending<'_, LivenessGuard> {
        self.beside(move |path| {
            prepare(path)?;
            liveness::show(path, &name).map(LivenessGuard::new)
        })
    }

    fn lives(&self, name: String) -> Pending<'_, bool> {
        self.beside(move |path| liveness::is_shown(path, &name))
    }

    fn count(&self, changes: Vec<CountChange>) -> Pending<'_, ()> {
        self.write(move |transaction, _| Ok(counters::change(transaction, &changes)?))
    }

    fn counts(&self, subject: Option<String>) -> Pending<'_, Vec<Count>> {
        self.read(move |transaction, _| Ok(counters::list(transaction, subject.as_deref())?))
    }

    fn forget(&self, subjects: Range<String>) -> Pending<'_, bool> {
        self.write(move |transaction, _| Ok(counters::forget(transaction, &subjects)?))
    }

    fn take(&self, window: Window) -> Pending<'_, Taken> {
        self.write(move |transaction, now| Ok(windows::take(transaction, &window, now)?))
    }

    fn reserve(&self, wanted: Reservation) -> Pending<'_, Reserved> {
        self.write(move |transaction, _| Ok(ledger::reserve(transaction, &wanted)?))
    }

    fn settle(&self, settled: Reservation, changes: Vec<CountChange>) -> Pending<'_, bool> {
        self.write(move |transaction, _| Ok(ledger::settle(transaction, &settled, &changes)?))
    }

    fn reassign(
        &self,
        present: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> Pending<'_, Reassigned> {
        self.write(move |transaction, now| {
            let claim = claim.as_deref();
            Ok(ledger::reassign(
                transaction,
                &present,
                &changed,
                claim,
                now,
            )?)
        })
    }

    fn reservations(&self) -> Pending<'_, Vec<Reservation>> {
        self.read(move |transaction, _| Ok(ledger::reservations(transaction)?))
    }

    fn occupy(&self, slot: Slot, limit: Option<SlotLimit>) -> Pending<'_, bool> {
        self.write(move |transaction, _| Ok(ledger::occupy(transaction, &slot, limit)?))
    }

    fn vacate(&self, key: String, id: String) -> Pending<'_, ()> {
        self.write(move |transaction, _| Ok(ledger::vacate(transaction, &key, &id)?))
    }

    fn slots(&self, key: String) -> Pending<'_, Vec<Slot>> {
        self.read(move |transaction, _| Ok(ledger::slots(transaction, &key)?))
    }

    fn check(&self) -> Pending<'_, String> {
        let place = format!("SQLite file {}", self.file.path.display());
        let write = self.write(move |transaction, now| Ok(probe::write(transaction, now)?));
        let beside = self.beside(probe::write_beside);
        Box::pin(async move {
            write.await?;
            beside.await?;
            Ok(place)
        })
    }

    fn confirm(&self) -> Pending<'_, ()> {
        self.read(|_, _| Ok(()))
    }

    fn refusal(&self) -> Option<StoreError> {
        lock(&self.file.refusal).clone()
    }

    fn close(&self) -> Pending<'_, ()> {
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let _turn = file.turn.lock().await;
            let own = Arc::clone(&file);
            match spawn_blocking(move || own.close()).await {
                Ok(result) => result,
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            }
        })
    }
}

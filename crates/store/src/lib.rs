//! Storage shared by the servers of one deployment: documents, counters, rate-limit windows, budget
//! reservations and messages.
//!
//! [`Store`] is the one trait. [`MemoryStore`] forgets everything with the process, [`SqliteStore`] persists
//! to a file that several processes may open, and [`RedisStore`] is shared by servers on several machines.
//! [`StoreConfig`] parses `EXA_MCP_STORE` and opens the store it names. Every call is one atomic operation, so
//! any number of processes may use a store at the same time.
//!
//! A document is JSON text under a [`DocumentKey`]: an owner, a collection such as `notes`, and an id. The
//! [`mod@format`] module versions that JSON.
//!
//! ```
//! use exa_mcp_model::Identity;
//! use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreConfig, StoreError, WriteOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = "memory:".parse::<StoreConfig>()?.open();
//! let key = DocumentKey {
//!     owner: Identity::user("ann"),
//!     collection: "notes",
//!     id: "todo".to_owned(),
//! };
//! let create = WriteOptions {
//!     expected: ExpectedRevision::Absent,
//!     ..WriteOptions::default()
//! };
//! assert_eq!(store.put(key.clone(), "{}".to_owned(), create).await?, 1);
//!
//! // Creating it again fails: the document exists.
//! let again = store.put(key.clone(), "{}".to_owned(), create).await;
//! assert_eq!(again, Err(StoreError::Conflict));
//! assert_eq!(store.get(key).await?.map(|document| document.revision), Some(1));
//! # Ok(())
//! # }
//! ```

mod config;
mod counters;
pub mod format;
mod ledger;
mod memory;
mod pubsub;
mod redis;
mod sqlite;
#[cfg(test)]
mod tests;
mod windows;

use std::any::Any;
use std::future::{Future, ready};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

pub use config::{STORE_VARIABLE, StoreConfig, StoreConfigError};
pub use counters::{Counter, CounterBatch, CounterOp, CounterUpdate};
pub use ledger::{
    BudgetCounters, BudgetState, ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit,
};
pub use memory::{MemoryLimits, MemoryStore};
pub use pubsub::StoreMessage;
pub use redis::{RedisAddress, RedisStore};
pub use sqlite::SqliteStore;
pub use windows::{MemoryWindows, WindowDecision, WindowRequest};

use exa_mcp_model::{Identity, time};

/// Implements the methods of [`Store`] by delegating to a field `store`, except `update_counters`, `publish` and
/// `subscribe`. For test doubles.
#[cfg(any(test, feature = "test-util"))]
#[macro_export]
macro_rules! delegate_store_methods {
    () => {
        $crate::delegate_store_methods! {
            fn put(
                key: $crate::DocumentKey,
                body: String,
                options: $crate::WriteOptions
            ) -> u64;
            fn get(key: $crate::DocumentKey) -> Option<$crate::Document>;
            fn delete(key: $crate::DocumentKey) -> bool;
            fn list(query: $crate::DocumentQuery) -> Vec<$crate::Document>;
            fn counters(subject: Option<String>) -> Vec<$crate::Counter>;
            fn delete_counters(subjects: std::ops::Range<String>) -> bool;
            fn consume(request: $crate::WindowRequest) -> $crate::WindowDecision;
            fn reserve(reservation: $crate::Reservation) -> $crate::ReserveOutcome;
            fn settle(
                reservation: $crate::Reservation,
                updates: Vec<$crate::CounterUpdate>
            ) -> bool;
            fn reassign(
                current: $crate::Reservation,
                changed: $crate::Reservation,
                claim: Option<String>
            ) -> $crate::ReassignOutcome;
            fn reservations() -> Vec<$crate::Reservation>;
            fn acquire_slot(
                slot: $crate::Slot,
                limit: Option<$crate::SlotLimit>
            ) -> bool;
            fn release_slot(key: String, id: String) -> ();
            fn slots(key: String) -> Vec<$crate::Slot>;
            fn mark_alive(name: String) -> $crate::LivenessGuard;
            fn is_alive(name: String) -> bool;
            fn check() -> String;
        }
    };
    ($(fn $method:ident($($name:ident: $kind:ty),*) -> $output:ty;)*) => {
        $(fn $method(&self, $($name: $kind),*) -> $crate::StoreFuture<'_, $output> {
            self.store.$method($($name),*)
        })*
    };
}

/// The future that a [`Store`] method returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A storage backend. Each method is one atomic operation.
pub trait Store: Send + Sync + 'static {
    /// Creates or replaces a document and returns its new revision.
    fn put(&self, key: DocumentKey, body: String, options: WriteOptions) -> StoreFuture<'_, u64>;

    /// Returns a document, or `None` if it does not exist or has expired.
    fn get(&self, key: DocumentKey) -> StoreFuture<'_, Option<Document>>;

    /// Deletes a document and returns whether it existed.
    fn delete(&self, key: DocumentKey) -> StoreFuture<'_, bool>;

    /// Lists documents, newest first.
    fn list(&self, query: DocumentQuery) -> StoreFuture<'_, Vec<Document>>;

    /// Applies all updates, or none if the store fails.
    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()>;

    /// Applies a batch exactly once, however often it is sent.
    ///
    /// A remote store may apply a batch and lose the response, so a writer must be able to resend a batch of
    /// unknown outcome. It sends the next batch only after this one succeeded.
    fn update_counters_once(&self, batch: CounterBatch) -> StoreFuture<'_, ()> {
        self.update_counters(batch.updates)
    }

    /// Returns the counters of one subject, or of all.
    fn counters(&self, subject: Option<String>) -> StoreFuture<'_, Vec<Counter>>;

    /// Deletes a bounded number of counters whose subjects are in the range. Returns whether more may be left.
    fn delete_counters(&self, subjects: Range<String>) -> StoreFuture<'_, bool>;

    /// Consumes an amount from a rate-limit window. Concurrent callers never get more than its limit in total.
    fn consume(&self, request: WindowRequest) -> StoreFuture<'_, WindowDecision>;

    /// Reserves an amount if every budget has enough left. Concurrent callers never exceed a budget in total.
    /// Idempotent.
    fn reserve(&self, reservation: Reservation) -> StoreFuture<'_, ReserveOutcome>;

    /// Releases what a reservation set aside and applies the updates. Returns `false`, and changes nothing, if the
    /// reservation is already settled.
    fn settle(
        &self,
        reservation: Reservation,
        updates: Vec<CounterUpdate>,
    ) -> StoreFuture<'_, bool>;

    /// Changes the holder and the body of a reservation that is still as `current` describes it. A claim belongs to
    /// the reservation that names it first.
    fn reassign(
        &self,
        current: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> StoreFuture<'_, ReassignOutcome>;

    /// Returns all reservations that are not settled.
    fn reservations(&self) -> StoreFuture<'_, Vec<Reservation>>;

    /// Acquires a slot if the limit allows another one, and returns whether it did. Idempotent.
    fn acquire_slot(&self, slot: Slot, limit: Option<SlotLimit>) -> StoreFuture<'_, bool>;

    /// Releases a slot. Idempotent.
    fn release_slot(&self, key: String, id: String) -> StoreFuture<'_, ()>;

    /// Returns the slots in use under a key.
    fn slots(&self, key: String) -> StoreFuture<'_, Vec<Slot>>;

    /// Returns whether the store may contain data. Must not create anything to find out.
    fn may_contain_data(&self) -> bool {
        true
    }

    /// Returns whether documents outlive the process, so that other processes see them.
    fn is_shared(&self) -> bool {
        true
    }

    /// Returns whether servers on several machines may share it, so that a client may switch between them.
    fn is_remote(&self) -> bool {
        false
    }

    /// Marks a process as alive until the guard is dropped or the process ends, even by a crash.
    fn mark_alive(&self, name: String) -> StoreFuture<'_, LivenessGuard>;

    /// Returns whether the process of this name is alive.
    fn is_alive(&self, name: String) -> StoreFuture<'_, bool>;

    /// Sends messages to all servers that are subscribed to the store, including this one. A message may arrive
    /// twice.
    fn publish(&self, _messages: Vec<String>) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Subscribes to messages; `None` if the store does not connect servers. Must be called inside a runtime.
    fn subscribe(&self) -> Option<broadcast::Receiver<StoreMessage>> {
        None
    }

    /// Flushes and closes the store when the server shuts down. Later calls open it again.
    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Writes a probe to see whether the store works, and returns a short description of it.
    fn check(&self) -> StoreFuture<'_, String>;

    /// Verifies that this still is the store of the first call; see [`Store::blocking_error`].
    fn verify(&self) -> StoreFuture<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Returns why the server must reject requests, as of the last call: the store was replaced by another one, or
    /// a newer version of the program upgraded it.
    fn blocking_error(&self) -> Option<StoreError> {
        None
    }

    /// Returns the value of this name on which all servers agree: the value of the first caller.
    fn get_or_init(&self, _name: &'static str, value: String) -> StoreFuture<'_, String> {
        Box::pin(ready(Ok(value)))
    }
}

/// Marks a process as alive until dropped.
pub struct LivenessGuard(
    #[expect(dead_code, reason = "only its drop matters")] Box<dyn Any + Send + Sync>,
);

impl LivenessGuard {
    fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}

/// Identifies a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// The identity that owns the document.
    pub owner: Identity,
    /// The kind of document, such as `notes`.
    pub collection: &'static str,
    /// The id, unique within the owner's collection.
    pub id: String,
}

/// Conditions and lifetime of a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// How long the document lives; forever if `None`.
    pub time_to_live: Option<Duration>,
    /// How many documents the owner may have in the collection.
    pub max_documents: Option<usize>,
    /// The revision that the write replaces.
    pub expected: ExpectedRevision,
}

/// The revision that a write expects to replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedRevision {
    /// Any revision, or no document.
    #[default]
    Any,
    /// No document.
    Absent,
    /// This revision: the document is unchanged since it was read.
    Exact(u64),
}

/// Selects documents to list.
#[derive(Clone, Debug)]
pub struct DocumentQuery {
    /// Only documents of this owner.
    pub owner: Option<Identity>,
    /// The collection to list.
    pub collection: &'static str,
    /// Only documents with a smaller [`Document::sequence`].
    pub before: Option<u64>,
    /// The maximum number of documents.
    pub limit: usize,
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The owner, as stored.
    pub owner: String,
    /// The id.
    pub id: String,
    /// The content.
    pub body: Arc<str>,
    /// Starts at 1 and grows by one with each write.
    pub revision: u64,
    /// The position in the order of creation. Stays the same when the document changes.
    pub sequence: u64,
    /// When the document was created, in milliseconds since 1970.
    pub created_at: u64,
    /// When the document was last written, in milliseconds since 1970.
    pub modified_at: u64,
}

/// An error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The owner has reached the limit of documents in the collection.
    #[error("The limit of {0} stored entries is reached. Delete some, then try again.")]
    TooMany(usize),
    /// The store as a whole is full.
    #[error(
        "The store is full. Delete something, or use a file: set EXA_MCP_STORE to sqlite:PATH."
    )]
    Full,
    /// The stored revision is not the expected one.
    #[error("Someone else changed this at the same time. Read it again, then try again.")]
    Conflict,
    /// The store cannot be reached or fails.
    #[error("The store is unavailable: {0}")]
    Unavailable(String),
    /// A newer version of the program has upgraded the store.
    #[error(
        "The store is unavailable: {0}. Nothing was changed in it. Update this program, or set EXA_MCP_STORE to \
         another store."
    )]
    Newer(String),
    /// The store holds other data than when this process started.
    #[error(
        "The store holds other data than when this server started: it lost its data or was replaced. Tokens, \
         revocations and identities may differ, so all requests are rejected. Restore the data, or restart all \
         servers to accept the store as it is."
    )]
    Replaced,
}

impl StoreError {
    /// Creates a [`StoreError::Newer`] for a store in format version `found`.
    fn newer(found: &str, program: Option<&str>, supported: u32) -> Self {
        let program = program.filter(|program| !program.is_empty());
        let writer = program.map_or("a newer version".to_owned(), |it| format!("version {it}"));
        Self::Newer(format!(
            "{writer} of this program wrote it in version {found} of the format; this is version {}, which supports \
             versions up to {supported} of the format",
            env!("CARGO_PKG_VERSION")
        ))
    }
}

/// Returns the time in milliseconds since 1970. Tests supply their own.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

fn system_clock() -> Clock {
    Arc::new(time::now)
}

/// Returns when something expires that starts now.
fn expiry(now: u64, time_to_live: Duration) -> u64 {
    now.saturating_add(u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX))
}

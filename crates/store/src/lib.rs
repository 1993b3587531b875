//! What outlives a call: small documents, each owned by an identity.
//!
//! A document is JSON text at a [`Place`]: an owner, a collection such as `notes`, and an id. There is
//! one trait and an implementation for each way of keeping; a call of any of them is one atomic step, so
//! that several processes may share a store.

mod config;
mod counters;
pub mod format;
mod ledger;
mod liveness;
mod memory;
mod pubsub;
mod redis;
mod sqlite;
mod sqlite_counters;
mod sqlite_file;
mod sqlite_ledger;
mod sqlite_probe;
mod sqlite_windows;
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
pub use counters::{Batch, Count, CountChange, Step};
pub use ledger::{BudgetCounters, BudgetState, Reassigned, Reservation, Reserved, Slot, SlotLimit};
pub use memory::{Bounds, MemoryStore};
pub use pubsub::StoreMessage;
pub use redis::{RedisAddress, RedisStore};
pub use sqlite::SqliteStore;
pub use windows::Windows;
pub use windows::{Taken, Window};

use exa_mcp_model::{Identity, time};

/// Implements the methods of [`Store`] by those of a field `store`, apart from counting and messages. For stores
/// in tests.
#[cfg(any(test, feature = "test-util"))]
#[macro_export]
macro_rules! kept_in_memory {
    () => {
        $crate::kept_in_memory! {
            fn put(place: $crate::Place, body: String, rules: $crate::Rules) -> u64;
            fn get(place: $crate::Place) -> Option<$crate::Document>;
            fn delete(place: $crate::Place) -> bool;
            fn list(query: $crate::Query) -> Vec<$crate::Document>;
            fn counts(subject: Option<String>) -> Vec<$crate::Count>;
            fn forget(subjects: std::ops::Range<String>) -> bool;
            fn take(window: $crate::Window) -> $crate::Taken;
            fn reserve(wanted: $crate::Reservation) -> $crate::Reserved;
            fn settle(
                settled: $crate::Reservation,
                changes: Vec<$crate::CountChange>
            ) -> bool;
            fn reassign(
                present: $crate::Reservation,
                changed: $crate::Reservation,
                claim: Option<String>
            ) -> $crate::Reassigned;
            fn reservations() -> Vec<$crate::Reservation>;
            fn occupy(
                slot: $crate::Slot,
                limit: Option<$crate::SlotLimit>
            ) -> bool;
            fn vacate(key: String, id: String) -> ();
            fn slots(key: String) -> Vec<$crate::Slot>;
            fn announce(name: String) -> $crate::LivenessGuard;
            fn lives(name: String) -> bool;
            fn check() -> String;
        }
    };
    ($(fn $method:ident($($name:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $method(&self, $($name: $kind),*) -> $crate::Pending<'_, $answer> {
            self.store.$method($($name),*)
        })*
    };
}
/// What a call of a store comes to.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A way of keeping documents.
pub trait Store: Send + Sync + 'static {
    /// Puts a document, in place of an earlier one if there is one, and gives its revision.
    fn put(&self, place: Place, body: String, rules: Rules) -> Pending<'_, u64>;

    /// Gets a document; `None` if there is none, or no longer.
    fn get(&self, place: Place) -> Pending<'_, Option<Document>>;

    /// Deletes a document; says whether there was one.
    fn delete(&self, place: Place) -> Pending<'_, bool>;

    /// Lists documents, the newest first.
    fn list(&self, query: Query) -> Pending<'_, Vec<Document>>;

    /// Changes numbers: all of them, or none.
    fn count(&self, changes: Vec<CountChange>) -> Pending<'_, ()>;

    /// Changes numbers like [`Store::count`], but once however often the batch is told: where an answer may
    /// get lost on its way, a change whose fate is unknown must be safe to repeat. No batch is told before
    /// the one before it is known to be written.
    fn count_once(&self, batch: Batch) -> Pending<'_, ()> {
        self.count(batch.changes)
    }

    /// The numbers of a subject, or of all subjects.
    fn counts(&self, subject: Option<String>) -> Pending<'_, Vec<Count>>;

    /// Forgets the numbers of the subjects from one name on and before another, a bounded part of them at
    /// once; says whether there may be more.
    fn forget(&self, subjects: Range<String>) -> Pending<'_, bool>;

    /// Takes something from a window, or says when to come back. Nobody comes in between: of several who
    /// take at once no more get something than there is.
    fn take(&self, window: Window) -> Pending<'_, Taken>;

    /// Sets money aside, if each budget has enough left. Nobody comes in between: of several who reserve at
    /// once no more get something than there is. Safe to repeat.
    fn reserve(&self, wanted: Reservation) -> Pending<'_, Reserved>;

    /// Settles a reservation: what it set aside is free again, and the counters change. Repeated, it changes
    /// nothing; says whether it changed something.
    fn settle(&self, settled: Reservation, changes: Vec<CountChange>) -> Pending<'_, bool>;

    /// Changes the holder and the body of a reservation, if it still is as it was read. A claim belongs to the
    /// reservation that names it first.
    fn reassign(
        &self,
        present: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> Pending<'_, Reassigned>;

    /// All reservations that are not settled.
    fn reservations(&self) -> Pending<'_, Vec<Reservation>>;

    /// Takes a slot, if the limit allows another one; says whether it did. Safe to repeat.
    fn occupy(&self, slot: Slot, limit: Option<SlotLimit>) -> Pending<'_, bool>;

    /// Gives a slot back. Safe to repeat.
    fn vacate(&self, key: String, id: String) -> Pending<'_, ()>;

    /// The slots that are taken.
    fn slots(&self, key: String) -> Pending<'_, Vec<Slot>>;

    /// Whether there may be something in it; to find out must not make anything.
    fn is_made(&self) -> bool {
        true
    }

    /// Whether documents outlive the process, so that other processes see them.
    fn is_shared(&self) -> bool {
        true
    }

    /// Whether servers on several machines may share it, so that a client of one may come to another.
    fn is_remote(&self) -> bool {
        false
    }

    /// Shows other processes that one of this name lives, for as long as the sign is kept; it goes with
    /// the process, whatever its end.
    fn announce(&self, name: String) -> Pending<'_, LivenessGuard>;

    /// Whether a process of this name lives.
    fn lives(&self, name: String) -> Pending<'_, bool>;

    /// Tells something to all servers that share the store and listen at this moment, this one too. It must do
    /// no harm to hear it twice.
    fn tell(&self, _words: Vec<String>) -> Pending<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// What is told from now on; `None` where there are no others. Must be called inside a runtime.
    fn hear(&self) -> Option<broadcast::Receiver<StoreMessage>> {
        None
    }

    /// Leaves nothing behind that another program would miss: the end of the server. What is used
    /// afterwards is opened again.
    fn close(&self) -> Pending<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Writes something, to see whether documents can be kept, and tells in a few words where.
    fn check(&self) -> Pending<'_, String>;

    /// Looks whether it still is the store that it was at its first use, see [`Store::refusal`].
    fn confirm(&self) -> Pending<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Why nothing must be served with it, as far as was noticed: it holds other data than before, or a
    /// newer program has taken it over.
    fn refusal(&self) -> Option<StoreError> {
        None
    }

    /// Decides a value together with all servers that share the store: the first one does, and all get
    /// what it decided.
    fn agree(&self, _name: &'static str, value: String) -> Pending<'_, String> {
        Box::pin(ready(Ok(value)))
    }
}

/// A sign that a process lives.
pub struct LivenessGuard(
    #[expect(dead_code, reason = "kept for its end")] Box<dyn Any + Send + Sync>,
);

impl LivenessGuard {
    /// A sign that ends with this value.
    fn new(sign: impl Send + Sync + 'static) -> Self {
        Self(Box::new(sign))
    }
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// To whom it belongs.
    pub owner: Identity,
    /// What kind of document it is.
    pub collection: &'static str,
    /// What it is called among its kind.
    pub id: String,
}

/// What must hold for a document to be put, and for how long it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// How long it is kept; for ever without it.
    pub time_to_live: Option<Duration>,
    /// The most documents that its owner may have in its collection.
    pub most: Option<usize>,
    /// What must be there before.
    pub expected: Expected,
}

/// What must be at a place for something to be put there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    #[default]
    Anything,
    /// Nothing.
    Nothing,
    /// The document with this revision: nobody has changed it since it was read.
    Revision(u64),
}

/// Which documents to list.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose; everybody's without it.
    pub owner: Option<Identity>,
    /// Of which kind.
    pub collection: &'static str,
    /// Only those put before the document with this number.
    pub before: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// A kept document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// To whom it belongs.
    pub owner: String,
    /// Its id.
    pub id: String,
    /// Its text.
    pub body: Arc<str>,
    /// Grows by one with each change.
    pub revision: u64,
    /// Its number in the order in which documents were first put.
    pub number: u64,
    /// When it was first put, in milliseconds since 1970.
    pub created: u64,
    /// When it was last put, in milliseconds since 1970.
    pub modified: u64,
}

/// Why a store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The owner has as many documents of the kind as allowed.
    #[error("There is no room for more than {0} of these. Delete some, then try again.")]
    TooMany(usize),
    /// The store as a whole is full.
    #[error(
        "The store is full. Delete something, or keep things in a file: set EXA_MCP_STORE to sqlite:PATH."
    )]
    Full,
    /// Something else is at the place than expected.
    #[error("Someone else changed this at the same time. Read it again, then try again.")]
    Conflict,
    /// The store cannot be used now.
    #[error("The store cannot be used: {0}")]
    Unavailable(String),
    /// A newer program has written it.
    #[error(
        "The store cannot be used: {0}. Nothing was changed in it. Update this program, or set EXA_MCP_STORE to \
         another store."
    )]
    Newer(String),
    /// It holds other data than when this process began.
    #[error(
        "The store holds other data than when this server began: it lost its data or was replaced. Tokens, \
         revocations and identities may differ, so nothing is served. Bring the data back, or restart all \
         servers to accept the store as it is."
    )]
    Replaced,
}

impl StoreError {
    /// A store of a version that a newer program has written, if it is known which.
    fn newer(found: &str, program: Option<&str>, known: u32) -> Self {
        let program = program.filter(|program| !program.is_empty());
        let by = program.map_or("a newer version".to_owned(), |it| format!("version {it}"));
        Self::Newer(format!(
            "{by} of this program has written it, with version {found} of the format; this is version {}, which reads \
             up to version {known} of the format",
            env!("CARGO_PKG_VERSION")
        ))
    }
}

/// Tells the time in milliseconds since 1970; tests have one of their own.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

fn system_clock() -> Clock {
    Arc::new(time::now)
}

/// When something ends that begins now.
fn end(now: u64, time_to_live: Duration) -> u64 {
    now.saturating_add(u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX))
}

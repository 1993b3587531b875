//! A store in Redis, shared by servers on several machines.
//!
//! Each call is one Lua script, hence atomic, and uses the clock of Redis. Names that come from users are
//! percent-encoded before they become part of a key.

/// Loads a script together with the functions that all scripts share.
macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!($file))))
    };
}

mod address;
mod connection;
mod counters;
mod epoch;
mod lease;
mod ledger;
mod pubsub;

use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redis::{Cmd, FromRedisValue, Script, ScriptInvocation};
use tokio::sync::broadcast;

pub use address::RedisAddress;
use connection::RedisConnection;
use epoch::Epoch;
use lease::Lease;

use super::{
    Clock, Counter, CounterBatch, CounterUpdate, Document, DocumentKey, DocumentQuery,
    ExpectedRevision, LivenessGuard, ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit,
    Store, StoreError, StoreFuture, StoreMessage, WindowDecision, WindowRequest, WriteOptions,
};
use exa_mcp_model::ids;

/// The prefix of all keys.
const PREFIX: &str = "exa-mcp:";

/// How long the last batch of a writer is remembered.
const BATCH_RETENTION: Duration = Duration::from_secs(60 * 60);

/// The same for a writer that sends a single batch.
const SINGLE_BATCH_RETENTION: Duration = Duration::from_secs(60);

/// The longest time to live; longer ones are cut to it.
const MAX_TIME_TO_LIVE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How many subjects one round trip reads.
const SUBJECTS_PER_BATCH: usize = 500;

/// The maximum number of documents in a list.
const MAX_LIST: usize = 1_000_000;

/// The largest integer that Lua represents exactly.
const MAX_LUA_INTEGER: u64 = 1 << 53;

static PUT: LazyLock<Script> = script!("put.lua");
static GET: LazyLock<Script> = script!("get.lua");
static DELETE: LazyLock<Script> = script!("delete.lua");
static LIST: LazyLock<Script> = script!("list.lua");
static CONSUME: LazyLock<Script> = script!("consume.lua");
static VERIFY: LazyLock<Script> = script!("verify.lua");
static GET_OR_INIT: LazyLock<Script> = script!("get_or_init.lua");

/// A store in Redis.
pub struct RedisStore {
    connection: Arc<RedisConnection>,
    epoch: Arc<Epoch>,
    /// The messages of other servers, from the first subscription on.
    messages: OnceLock<broadcast::Sender<StoreMessage>>,
    /// The clock of a test; otherwise that of Redis.
    clock: Option<Clock>,
}

impl RedisStore {
    /// Creates a store at this address. The first use connects.
    pub fn new(address: RedisAddress) -> Self {
        let connection = Arc::new(RedisConnection::new(address));
        Self {
            connection,
            epoch: Arc::default(),
            messages: OnceLock::new(),
            clock: None,
        }
    }

    #[cfg(test)]
    pub(super) fn with_clock(address: RedisAddress, clock: Clock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::new(address)
        }
    }

    /// Returns the pub/sub channel. Redis delivers messages across databases, so each has its own channel.
    fn channel(&self) -> String {
        let database = self.connection.address().database().to_string();
        key(&["news", &database])
    }

    /// Returns the time argument of a script; empty to use the clock of Redis.
    fn now(&self) -> String {
        let now = self.clock.as_ref().map(|clock| clock().to_string());
        now.unwrap_or_default()
    }

    /// Runs a script, which fails unless the data is of the epoch that this server knows.
    async fn run<T: FromRedisValue>(
        &self,
        script: &mut ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        self.epoch.bind(&self.connection, script).await?;
        let run = async |mut connection| script.invoke_async(&mut connection).await;
        let result = self.connection.query(run).await;
        self.epoch.observe(&result);
        result
    }

    async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.epoch.get(&self.connection).await?;
        let run = async |mut connection| command.query_async(&mut connection).await;
        self.connection.query(run).await
    }
}

/// Builds a key. Its parts are encoded, so that different parts never build the same key.
fn key(parts: &[&str]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
        .collect();
    format!("{PREFIX}{}", parts.join(":"))
}

fn document_key(document: &DocumentKey) -> String {
    let owner = document.owner.as_str();
    key(&["doc", document.collection, owner, &document.id])
}

/// Returns a unique name.
fn unique_name() -> Result<String, StoreError> {
    ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Reads a document from the fields that a script returns.
fn read_document(fields: Vec<String>) -> Result<Document, StoreError> {
    let invalid = || StoreError::Unavailable("a stored document is not readable".to_owned());
    let [owner, id, body, integers @ ..] = fields.as_slice() else {
        return Err(invalid());
    };
    let integers: Result<Vec<u64>, _> = integers.iter().map(|text| text.parse()).collect();
    let Ok(&[revision, sequence, created_at, modified_at]) = integers.as_deref() else {
        return Err(invalid());
    };
    Ok(Document {
        owner: owner.clone(),
        id: id.clone(),
        body: Arc::from(body.as_str()),
        revision,
        sequence,
        created_at,
        modified_at,
    })
}

impl Store for RedisStore {
    fn put(
        &self,
        document: DocumentKey,
        body: String,
        options: WriteOptions,
    ) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let owner = document.owner.as_str();
            let max = options.max_documents;
            let mut script = PUT.prepare_invoke();
            script
                .key(document_key(&document))
                .key(key(&["own", document.collection, owner]))
                .key(key(&["all", document.collection]))
                .key(key(&["ends"]))
                .key(key(&["number"]))
                .arg(self.now())
                .arg(body)
                .arg(match options.expected {
                    ExpectedRevision::Any => "anything".to_owned(),
                    ExpectedRevision::Absent => "nothing".to_owned(),
                    ExpectedRevision::Exact(revision) => revision.to_string(),
                })
                .arg(max.map(|max| max.to_string()).unwrap_or_default())
                .arg(milliseconds(options.time_to_live))
                .arg(owner)
                .arg(&document.id)
                .arg(unique_name()?);
            let (outcome, revision): (String, u64) = self.run(&mut script).await?;
            match outcome.as_str() {
                "put" => Ok(revision),
                "many" => Err(StoreError::TooMany(max.unwrap_or_default())),
                _ => Err(StoreError::Conflict),
            }
        })
    }

    fn get(&self, document: DocumentKey) -> StoreFuture<'_, Option<Document>> {
        Box::pin(async move {
            let mut script = GET.prepare_invoke();
            script.key(document_key(&document)).arg(self.now());
            let fields: Vec<String> = self.run(&mut script).await?;
            if fields.is_empty() {
                return Ok(None);
            }
            read_document(fields).map(Some)
        })
    }

    fn delete(&self, document: DocumentKey) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let mut script = DELETE.prepare_invoke();
            script.key(document_key(&document)).arg(self.now());
            self.run(&mut script).await
        })
    }

    fn list(&self, query: DocumentQuery) -> StoreFuture<'_, Vec<Document>> {
        Box::pin(async move {
            let mut script = LIST.prepare_invoke();
            let before = query.before.map(|before| before.to_string());
            script
                .key(match &query.owner {
                    Some(owner) => key(&["own", query.collection, owner.as_str()]),
                    None => key(&["all", query.collection]),
                })
                .arg(self.now())
                .arg(before.unwrap_or_default())
                .arg(query.limit.min(MAX_LIST));
            let found: Vec<Vec<String>> = self.run(&mut script).await?;
            found.into_iter().map(read_document).collect()
        })
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn mark_alive(&self, name: String) -> StoreFuture<'_, LivenessGuard> {
        Box::pin(async move {
            self.verify().await?;
            let (connection, epoch) = (Arc::clone(&self.connection), Arc::clone(&self.epoch));
            let lease = Lease::acquire(connection, epoch, key(&["alive", &name])).await?;
            Ok(LivenessGuard::new(lease))
        })
    }

    fn is_alive(&self, name: String) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let alive = key(&["alive", &name]);
            if self.command(Cmd::new().arg("EXISTS").arg(alive)).await? {
                return Ok(true);
            }
            // While Redis was unreachable no lease could be renewed. Give the processes time to do so.
            Ok(self.connection.age().await < lease::DURATION)
        })
    }

    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let batch = CounterBatch {
                writer: unique_name()?,
                sequence: 1,
                updates,
            };
            // It is only sent again if the connection breaks, and then immediately.
            self.apply_batch(&batch, SINGLE_BATCH_RETENTION).await
        })
    }

    fn update_counters_once(&self, batch: CounterBatch) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.apply_batch(&batch, BATCH_RETENTION).await })
    }

    fn counters(&self, subject: Option<String>) -> StoreFuture<'_, Vec<Counter>> {
        Box::pin(async move {
            if let Some(subject) = subject {
                return self.read_counters(&[subject]).await;
            }
            let mut subjects: Vec<String> = self
                .command(Cmd::new().arg("SMEMBERS").arg(key(&["subjects"])))
                .await?;
            subjects.sort();
            let mut counters = Vec::new();
            for chunk in subjects.chunks(SUBJECTS_PER_BATCH) {
                counters.extend(self.read_counters(chunk).await?);
            }
            Ok(counters)
        })
    }

    fn delete_counters(&self, subjects: Range<String>) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            self.verify().await?;
            let mut cursor = 0;
            loop {
                let mut scan = Cmd::new();
                scan.arg("SSCAN").arg(key(&["subjects"])).arg(cursor);
                scan.arg("COUNT").arg(SUBJECTS_PER_BATCH);
                let (next, found): (u64, Vec<String>) = self.command(&scan).await?;
                let expired: Vec<String> = found
                    .into_iter()
                    .filter(|subject| subjects.contains(subject))
                    .collect();
                self.delete_subjects(&expired).await?;
                if next == 0 {
                    return Ok(false);
                }
                cursor = next;
            }
        })
    }

    fn consume(&self, request: WindowRequest) -> StoreFuture<'_, WindowDecision> {
        Box::pin(async move {
            let mut script = CONSUME.prepare_invoke();
            script
                .key(key(&["window", &request.key]))
                .arg(self.now())
                .arg(request.limit.min(MAX_LUA_INTEGER))
                .arg(request.amount.min(MAX_LUA_INTEGER))
                .arg(milliseconds(Some(request.length)));
            let (allowed, used, wait): (bool, u64, u64) = self.run(&mut script).await?;
            Ok(WindowDecision {
                allowed,
                used,
                retry_after: Duration::from_millis(wait),
            })
        })
    }

    fn reserve(&self, reservation: Reservation) -> StoreFuture<'_, ReserveOutcome> {
        Box::pin(async move { self.run_reserve(&reservation).await })
    }

    fn settle(
        &self,
        reservation: Reservation,
        updates: Vec<CounterUpdate>,
    ) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.run_settle(&reservation, &updates).await })
    }

    fn reassign(
        &self,
        current: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> StoreFuture<'_, ReassignOutcome> {
        Box::pin(async move {
            let claim = claim.as_deref();
            self.run_reassign(&current, &changed, claim).await
        })
    }

    fn reservations(&self) -> StoreFuture<'_, Vec<Reservation>> {
        Box::pin(self.read_reservations())
    }

    fn acquire_slot(&self, slot: Slot, limit: Option<SlotLimit>) -> StoreFuture<'_, bool> {
        Box::pin(async move { self.run_acquire_slot(&slot, limit).await })
    }

    fn release_slot(&self, key: String, id: String) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.delete_slot(&key, &id).await })
    }

    fn slots(&self, key: String) -> StoreFuture<'_, Vec<Slot>> {
        Box::pin(async move { self.read_slots(&key).await })
    }

    fn publish(&self, messages: Vec<String>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let channel = self.channel();
            let mut pipe = redis::pipe();
            for message in &messages {
                pipe.cmd("PUBLISH").arg(&channel).arg(message).ignore();
            }
            let query = async |mut connection| pipe.query_async(&mut connection).await;
            self.connection.query(query).await
        })
    }

    fn subscribe(&self) -> Option<broadcast::Receiver<StoreMessage>> {
        let connect = || pubsub::spawn(Arc::clone(&self.connection), self.channel());
        Some(self.messages.get_or_init(connect).subscribe())
    }

    fn check(&self) -> StoreFuture<'_, String> {
        Box::pin(async move {
            self.verify().await?;
            // A read-only replica would pass without a write.
            let mut write = Cmd::new();
            write
                .arg("SET")
                .arg(key(&["check"]))
                .arg(1)
                .arg("PX")
                .arg(1_000);
            self.command::<()>(&write).await?;
            Ok(self.connection.address().to_string())
        })
    }

    fn verify(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut script = VERIFY.prepare_invoke();
            self.run::<i64>(&mut script).await.map(drop)
        })
    }

    fn blocking_error(&self) -> Option<StoreError> {
        self.epoch.blocking_error()
    }

    fn get_or_init(&self, name: &'static str, value: String) -> StoreFuture<'_, String> {
        Box::pin(async move {
            let mut script = GET_OR_INIT.prepare_invoke();
            script.key(key(&["store"])).arg(name).arg(value);
            self.run(&mut script).await
        })
    }
}

/// Formats a duration in milliseconds; empty if there is no limit.
fn milliseconds(time: Option<Duration>) -> String {
    let time = time.map(|time| time.min(MAX_TIME_TO_LIVE).as_millis().to_string());
    time.unwrap_or_default()
}

//! Documents in Redis: several servers on several machines share them.
//!
//! Each call is one script, so nobody comes in between, and the time is Redis's own. Whatever others
//! name is encoded before it becomes part of a key.

/// A script with what all scripts share.
macro_rules! script {
    ($file:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("common.lua"), include_str!($file))))
    };
}

mod address;
mod epoch;
mod lease;
mod ledger;
mod link;
mod pubsub;

use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redis::{Cmd, FromRedisValue, Script, ScriptInvocation};
use tokio::sync::broadcast;

pub use address::RedisAddress;
use epoch::Epoch;
use lease::Lease;
use link::Link;

use super::{
    Batch, Clock, Count, CountChange, Document, Expected, LivenessGuard, Pending, Place, Query,
    Reassigned, Reservation, Reserved, Rules, Slot, SlotLimit, Step, Store, StoreError,
    StoreMessage, Taken, Window,
};
use exa_mcp_model::ids;

/// What all keys begin with.
const PREFIX: &str = "exa-mcp:";

/// How long it is remembered which batch a writer told last.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// How long that is remembered of one who tells a single batch.
const BRIEFLY: Duration = Duration::from_secs(60);

/// The longest life of a document; what is longer lasts as long as this.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Subjects whose numbers are read in one go.
const SUBJECTS_AT_ONCE: usize = 500;

/// The most documents that are listed at once.
const LONGEST_LIST: usize = 1_000_000;

/// The largest number that Lua knows exactly.
const LARGEST: u64 = 1 << 53;

static PUT: LazyLock<Script> = script!("put.lua");
static GET: LazyLock<Script> = script!("get.lua");
static DELETE: LazyLock<Script> = script!("delete.lua");
static LIST: LazyLock<Script> = script!("list.lua");
static COUNT: LazyLock<Script> = script!("count.lua");
static TAKE: LazyLock<Script> = script!("take.lua");
static CONFIRM: LazyLock<Script> = script!("confirm.lua");
static AGREE: LazyLock<Script> = script!("agree.lua");

/// Documents in Redis.
pub struct RedisStore {
    link: Arc<Link>,
    epoch: Arc<Epoch>,
    /// What others tell, once somebody listens.
    news: OnceLock<broadcast::Sender<StoreMessage>>,
    /// Tests have a clock of their own; otherwise it is Redis's.
    clock: Option<Clock>,
}

impl RedisStore {
    /// A store at this address. Nothing is connected before the first use.
    pub fn new(address: RedisAddress) -> Self {
        let link = Arc::new(Link::new(address));
        Self {
            link,
            epoch: Arc::default(),
            news: OnceLock::new(),
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

    /// Where servers tell each other something. Words go to all databases of a Redis, so each has a channel.
    fn channel(&self) -> String {
        let database = self.link.address().database().to_string();
        key(&["news", &database])
    }

    /// The time for a script; without any it looks at Redis's clock.
    fn now(&self) -> String {
        let now = self.clock.as_ref().map(|clock| clock().to_string());
        now.unwrap_or_default()
    }

    /// Runs a script on data of the epoch that this server knows.
    async fn run<T: FromRedisValue>(
        &self,
        script: &mut ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        self.epoch.bind(&self.link, script).await?;
        let run = async |mut connection| script.invoke_async(&mut connection).await;
        let result = self.link.ask(run).await;
        self.epoch.note(&result);
        result
    }

    async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.epoch.get(&self.link).await?;
        let run = async |mut connection| command.query_async(&mut connection).await;
        self.link.ask(run).await
    }

    async fn change_numbers(&self, batch: &Batch, remembered: Duration) -> Result<(), StoreError> {
        let mut script = COUNT.prepare_invoke();
        script
            .key(key(&["batch", &batch.writer]))
            .key(key(&["subjects"]))
            .arg(milliseconds(Some(remembered)))
            .arg(batch.number);
        for change in &batch.changes {
            let (kind, value) = match change.step {
                Step::Add(by) => ("add", by),
                Step::Reach(to) => ("reach", to),
            };
            script
                .arg(key(&["count", &change.subject]))
                .arg(&change.subject)
                .arg(&change.name)
                .arg(kind)
                // Redis knows signed numbers only.
                .arg(value.min(i64::MAX as u64));
        }
        self.run::<i64>(&mut script).await.map(drop)
    }

    /// Forgets the numbers of some subjects. They have no end that Redis knows: where memory is short it may
    /// throw away what has one, and with it what somebody has spent today.
    async fn forget_all(&self, subjects: &[String]) -> Result<(), StoreError> {
        if subjects.is_empty() {
            return Ok(());
        }
        let mut all = redis::pipe();
        for subject in subjects {
            all.cmd("UNLINK").arg(key(&["count", subject])).ignore();
        }
        all.cmd("SREM")
            .arg(key(&["subjects"]))
            .arg(subjects)
            .ignore();
        let ask = async |mut connection| all.query_async(&mut connection).await;
        self.link.ask(ask).await
    }

    async fn numbers(&self, subjects: &[String]) -> Result<Vec<Count>, StoreError> {
        let mut all = redis::pipe();
        for subject in subjects {
            all.cmd("HGETALL").arg(key(&["count", subject]));
        }
        let ask = async |mut connection| all.query_async(&mut connection).await;
        let answers: Vec<Vec<(String, u64)>> = self.link.ask(ask).await?;
        let counts = subjects
            .iter()
            .zip(answers)
            .flat_map(|(subject, mut numbers)| {
                numbers.sort();
                numbers.into_iter().map(|(name, value)| Count {
                    subject: subject.clone(),
                    name,
                    value,
                })
            });
        Ok(counts.collect())
    }
}

/// A key. Its parts are encoded, so that none of them can pass for another.
fn key(parts: &[&str]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
        .collect();
    format!("{PREFIX}{}", parts.join(":"))
}

fn document_key(place: &Place) -> String {
    let owner = place.owner.as_str();
    key(&["doc", place.collection, owner, &place.id])
}

/// A name that nobody else has.
fn mark() -> Result<String, StoreError> {
    ids::random_id().map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Reads a document as the scripts show it.
fn document(fields: Vec<String>) -> Result<Document, StoreError> {
    let foreign = || StoreError::Unavailable("something else is where a document was".to_owned());
    let [owner, id, body, numbers @ ..] = fields.as_slice() else {
        return Err(foreign());
    };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let Ok(&[revision, number, created, modified]) = numbers.as_deref() else {
        return Err(foreign());
    };
    Ok(Document {
        owner: owner.clone(),
        id: id.clone(),
        body: Arc::from(body.as_str()),
        revision,
        number,
        created,
        modified,
    })
}

impl Store for RedisStore {
    fn put(&self, place: Place, body: String, rules: Rules) -> Pending<'_, u64> {
        Box::pin(async move {
            let owner = place.owner.as_str();
            let mut script = PUT.prepare_invoke();
            script
                .key(document_key(&place))
                .key(key(&["own", place.collection, owner]))
                .key(key(&["all", place.collection]))
                .key(key(&["ends"]))
                .key(key(&["number"]))
                .arg(self.now())
                .arg(body)
                .arg(match rules.expected {
                    Expected::Anything => "anything".to_owned(),
                    Expected::Nothing => "nothing".to_owned(),
                    Expected::Revision(revision) => revision.to_string(),
                })
                .arg(rules.most.map(|most| most.to_string()).unwrap_or_default())
                .arg(milliseconds(rules.time_to_live))
                .arg(owner)
                .arg(&place.id)
                .arg(mark()?);
            let (outcome, number): (String, u64) = self.run(&mut script).await?;
            match outcome.as_str() {
                "put" => Ok(number),
                "many" => Err(StoreError::TooMany(rules.most.unwrap_or_default())),
                _ => Err(StoreError::Conflict),
            }
        })
    }

    fn get(&self, place: Place) -> Pending<'_, Option<Document>> {
        Box::pin(async move {
            let mut script = GET.prepare_invoke();
            script.key(document_key(&place)).arg(self.now());
            let fields: Vec<String> = self.run(&mut script).await?;
            match fields.is_empty() {
                true => Ok(None),
                false => document(fields).map(Some),
            }
        })
    }

    fn delete(&self, place: Place) -> Pending<'_, bool> {
        Box::pin(async move {
            let mut script = DELETE.prepare_invoke();
            script.key(document_key(&place)).arg(self.now());
            self.run(&mut script).await
        })
    }

    fn list(&self, query: Query) -> Pending<'_, Vec<Document>> {
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
                .arg(query.limit.min(LONGEST_LIST));
            let found: Vec<Vec<String>> = self.run(&mut script).await?;
            found.into_iter().map(document).collect()
        })
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn announce(&self, name: String) -> Pending<'_, LivenessGuard> {
        Box::pin(async move {
            self.confirm().await?;
            let (link, epoch) = (Arc::clone(&self.link), Arc::clone(&self.epoch));
            let lease = Lease::take(link, epoch, key(&["alive", &name])).await?;
            Ok(LivenessGuard::new(lease))
        })
    }

    fn lives(&self, name: String) -> Pending<'_, bool> {
        Box::pin(async move {
            let alive = key(&["alive", &name]);
            if self.command(Cmd::new().arg("EXISTS").arg(alive)).await? {
                return Ok(true);
            }
            // While Redis was away nobody could renew anything; they get the time to do so.
            Ok(self.link.age().await < lease::LENGTH)
        })
    }

    fn count(&self, changes: Vec<CountChange>) -> Pending<'_, ()> {
        Box::pin(async move {
            let batch = Batch {
                writer: mark()?,
                number: 1,
                changes,
            };
            // Only a connection that broke makes it be told again, and that at once.
            self.change_numbers(&batch, BRIEFLY).await
        })
    }

    fn count_once(&self, batch: Batch) -> Pending<'_, ()> {
        Box::pin(async move { self.change_numbers(&batch, REMEMBERED).await })
    }

    fn counts(&self, subject: Option<String>) -> Pending<'_, Vec<Count>> {
        Box::pin(async move {
            if let Some(subject) = subject {
                return self.numbers(&[subject]).await;
            }
            let mut subjects: Vec<String> = self
                .command(Cmd::new().arg("SMEMBERS").arg(key(&["subjects"])))
                .await?;
            subjects.sort();
            let mut counts = Vec::new();
            for some in subjects.chunks(SUBJECTS_AT_ONCE) {
                counts.extend(self.numbers(some).await?);
            }
            Ok(counts)
        })
    }

    fn forget(&self, subjects: Range<String>) -> Pending<'_, bool> {
        Box::pin(async move {
            self.confirm().await?;
            let mut cursor = 0;
            loop {
                let mut scan = Cmd::new();
                scan.arg("SSCAN").arg(key(&["subjects"])).arg(cursor);
                scan.arg("COUNT").arg(SUBJECTS_AT_ONCE);
                let (next, found): (u64, Vec<String>) = self.command(&scan).await?;
                let old: Vec<String> = found
                    .into_iter()
                    .filter(|subject| subjects.contains(subject))
                    .collect();
                self.forget_all(&old).await?;
                if next == 0 {
                    return Ok(false);
                }
                cursor = next;
            }
        })
    }

    fn take(&self, window: Window) -> Pending<'_, Taken> {
        Box::pin(async move {
            let mut script = TAKE.prepare_invoke();
            script
                .key(key(&["window", &window.key]))
                .arg(self.now())
                .arg(window.most.min(LARGEST))
                .arg(window.amount.min(LARGEST))
                .arg(milliseconds(Some(window.length)));
            let (allowed, used, wait): (bool, u64, u64) = self.run(&mut script).await?;
            Ok(Taken {
                allowed,
                used,
                retry_after: Duration::from_millis(wait),
            })
        })
    }

    fn reserve(&self, wanted: Reservation) -> Pending<'_, Reserved> {
        Box::pin(async move { self.reserve_money(&wanted).await })
    }

    fn settle(&self, settled: Reservation, changes: Vec<CountChange>) -> Pending<'_, bool> {
        Box::pin(async move { self.settle_money(&settled, &changes).await })
    }

    fn reassign(
        &self,
        present: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> Pending<'_, Reassigned> {
        Box::pin(async move {
            let claim = claim.as_deref();
            self.reassign_reservation(&present, &changed, claim).await
        })
    }

    fn reservations(&self) -> Pending<'_, Vec<Reservation>> {
        Box::pin(self.all_reservations())
    }

    fn occupy(&self, slot: Slot, limit: Option<SlotLimit>) -> Pending<'_, bool> {
        Box::pin(async move { self.occupy_slot(&slot, limit).await })
    }

    fn vacate(&self, key: String, id: String) -> Pending<'_, ()> {
        Box::pin(async move { self.vacate_slot(&key, &id).await })
    }

    fn slots(&self, key: String) -> Pending<'_, Vec<Slot>> {
        Box::pin(async move { self.all_slots(&key).await })
    }

    fn tell(&self, words: Vec<String>) -> Pending<'_, ()> {
        Box::pin(async move {
            let channel = self.channel();
            let mut all = redis::pipe();
            for word in &words {
                all.cmd("PUBLISH").arg(&channel).arg(word).ignore();
            }
            let ask = async |mut connection| all.query_async(&mut connection).await;
            self.link.ask(ask).await
        })
    }

    fn hear(&self) -> Option<broadcast::Receiver<StoreMessage>> {
        let begin = || pubsub::listening(Arc::clone(&self.link), self.channel());
        Some(self.news.get_or_init(begin).subscribe())
    }

    fn check(&self) -> Pending<'_, String> {
        Box::pin(async move {
            self.confirm().await?;
            // One that can be read but not written is of no use.
            let mut write = Cmd::new();
            write
                .arg("SET")
                .arg(key(&["check"]))
                .arg(1)
                .arg("PX")
                .arg(1_000);
            self.command::<()>(&write).await?;
            Ok(self.link.address().to_string())
        })
    }

    fn confirm(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let mut script = CONFIRM.prepare_invoke();
            self.run::<i64>(&mut script).await.map(drop)
        })
    }

    fn refusal(&self) -> Option<StoreError> {
        self.epoch.problem()
    }

    fn agree(&self, name: &'static str, value: String) -> Pending<'_, String> {
        Box::pin(async move {
            let mut script = AGREE.prepare_invoke();
            script.key(key(&["store"])).arg(name).arg(value);
            self.run(&mut script).await
        })
    }
}

/// A time to live in milliseconds; empty for ever.
fn milliseconds(time: Option<Duration>) -> String {
    let time = time.map(|time| time.min(LONGEST).as_millis().to_string());
    time.unwrap_or_default()
}

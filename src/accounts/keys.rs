//! Several keys that share the work: the least busy one is used, and one that Exa turned away rests.
//!
//! Keys may belong to different teams of Exa, and what one team made is unknown to the others. So the
//! pool remembers with which key a thing was last found.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::exa::{ApiKey, ExaError, ExaErrorKind};

/// In such a time a key makes no more requests than a second allows. It is a little longer than a second,
/// because some requests take longer on their way to Exa than others.
const WINDOW: Duration = Duration::from_millis(1_050);

/// How long a key rests that Exa turned away without saying for how long.
const COOLDOWN: Duration = Duration::from_secs(180);

/// A key that is refused so often in a row is no key any more.
const MOST_REFUSALS: u32 = 3;

/// The states of a key.
const STATES: [&str; 3] = ["ready", "resting", "refused"];

/// What Exa calls a key or team whose money is used up.
const QUOTA_TAGS: [&str; 3] = [
    "NO_MORE_CREDITS",
    "API_KEY_BUDGET_EXCEEDED",
    "TEAM_BUDGET_EXCEEDED",
];

/// How many things the pool remembers the key of.
const MOST_HOMES: usize = 10_000;

/// Keys that share the work. Clones share their state.
#[derive(Clone)]
pub struct KeyPool(Arc<Pool>);

struct Pool {
    slots: Mutex<Vec<Slot>>,
    homes: Mutex<Homes>,
    /// Requests a second with one key, where they are paced.
    rate: Option<usize>,
    holder: Holder,
}

/// Whose keys they are. This says what becomes of a single key that Exa turns away, and who can help
/// where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holder {
    /// One person's. A single key is always tried, so that it works again at once when its owner has
    /// topped it up; Exa itself says when it is turned away.
    #[default]
    Own,
    /// Those of a server that many share. A single key rests and is out like any of several, and
    /// everybody is told when it is ready.
    Shared,
    /// Nobody's: every client of the server brings one of its own, which is spared as one's own is.
    Clients,
    /// The same for a client that put its key into the address, where none is taken.
    ClientsNotByAddress,
}

impl Holder {
    /// What to do where there is no key.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Own => {
                "No Exa API key is set. Get one at https://dashboard.exa.ai/api-keys, set EXA_API_KEY in \
                 the environment of this server, and restart it."
            }
            Self::Shared => {
                "This server has no Exa API key. Its operator must set EXA_API_KEYS and restart it."
            }
            Self::Clients => {
                "No Exa API key came with the request. Get one at https://dashboard.exa.ai/api-keys, and have \
                 the client send it with every request to this server, in the header `x-api-key` or as \
                 `Authorization: Bearer`."
            }
            Self::ClientsNotByAddress => {
                "Exa API keys in the address are not taken here. Have the client send the key with every \
                 request to this server in the header `x-api-key` or as `Authorization: Bearer`, and take it \
                 out of the address."
            }
        }
    }

    /// Whether a single key is used again at once, however Exa turned it away.
    fn spares_single(self) -> bool {
        self != Self::Shared
    }
}

/// With which key things were found, the oldest first.
#[derive(Default)]
struct Homes {
    places: HashMap<String, usize>,
    order: VecDeque<String>,
}

struct Slot {
    key: ApiKey,
    in_flight: usize,
    calls: u64,
    refusals: u32,
    rests_until: Option<Instant>,
    /// When the latest requests were or will be sent, where they are paced.
    turns: VecDeque<Instant>,
    last_problem: Option<&'static str>,
}

/// A key in use; it counts as busy until this is dropped.
pub struct Lease {
    pool: KeyPool,
    place: usize,
    key: ApiKey,
    wait: Duration,
}

/// No key can be used now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// There is none.
    #[error("no Exa API key is set")]
    Empty(Holder),
    /// Every key rests.
    #[error("all Exa API keys rest; the next is ready in {} seconds", whole_seconds(*.0))]
    AllRest(Duration),
    /// Exa refused every key.
    #[error("Exa refused every API key; set new ones in EXA_API_KEYS")]
    AllRefused,
}

/// How a key stands, for operators; it does not show the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The first characters of a long key.
    pub prefix: String,
    /// `ready`, `resting` or `refused`.
    pub state: &'static str,
    /// Calls under way.
    pub in_flight: usize,
    /// Calls so far.
    pub calls: u64,
    /// How long it rests.
    pub ready_in: Option<Duration>,
    /// Why it last failed.
    pub last_problem: Option<&'static str>,
}

impl KeyPool {
    /// A pool of one person's keys; the same key twice counts once.
    pub fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        Self::paced(keys, None, Holder::Own)
    }

    /// A pool whose keys make at most this many requests a second each.
    pub fn paced(
        keys: impl IntoIterator<Item = ApiKey>,
        rate: Option<u64>,
        holder: Holder,
    ) -> Self {
        let rate = rate.and_then(|rate| usize::try_from(rate).ok());
        let pool = Self(Arc::new(Pool {
            slots: Mutex::default(),
            homes: Mutex::default(),
            rate: rate.filter(|rate| *rate > 0),
            holder,
        }));
        for key in keys {
            pool.add(key);
        }
        pool
    }

    /// Adds a key; one that is there already counts once.
    pub fn add(&self, key: ApiKey) {
        let mut slots = self.slots();
        if slots.iter().all(|slot| slot.key != key) {
            slots.push(Slot {
                key,
                in_flight: 0,
                calls: 0,
                refusals: 0,
                rests_until: None,
                turns: VecDeque::new(),
                last_problem: None,
            });
        }
    }

    /// Whose keys they are.
    pub fn holder(&self) -> Holder {
        self.0.holder
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.slots().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key that is least busy, and among those the one that worked least; for a thing that was
    /// found before, the key that found it. Keys that were tried already are left out.
    pub fn lease(&self, thing: Option<&str>, tried: &[usize]) -> Result<Lease, NoKey> {
        let now = Instant::now();
        let home = thing.and_then(|thing| self.homes().places.get(thing).copied());
        let mut slots = self.slots();
        let ready = slots
            .iter_mut()
            .enumerate()
            .filter(|(place, slot)| slot.is_ready(now) && !tried.contains(place));
        let busy = |place: &usize, slot: &Slot| (Some(*place) != home, slot.in_flight, slot.calls);
        match ready.min_by_key(|(place, slot)| busy(place, slot)) {
            Some((place, slot)) => {
                slot.in_flight += 1;
                slot.calls += 1;
                Ok(Lease {
                    pool: self.clone(),
                    place,
                    key: slot.key.clone(),
                    wait: self
                        .0
                        .rate
                        .map_or(Duration::ZERO, |rate| slot.turn(now, rate)),
                })
            }
            None => Err(self.none_ready(&slots, now)),
        }
    }

    /// Remembers with which key a thing was found, where there are several.
    pub fn remember(&self, thing: &str, lease: &Lease) {
        if self.len() > 1 {
            self.homes().put(thing, lease.place);
        }
    }

    /// Whether a key could be used now that was not tried already.
    pub fn has_ready(&self, tried: &[usize]) -> bool {
        let now = Instant::now();
        let slots = self.slots();
        let mut others = slots.iter().enumerate();
        others.any(|(place, slot)| slot.is_ready(now) && !tried.contains(&place))
    }

    /// Why no key is ready after an error that is the fault of the key with which it came.
    pub fn out_after(&self, error: &ExaError) -> Option<NoKey> {
        Fault::of(error)?;
        let now = Instant::now();
        let slots = self.slots();
        let ready = slots.iter().any(|slot| slot.is_ready(now));
        (!ready).then(|| self.none_ready(&slots, now))
    }

    fn none_ready(&self, slots: &[Slot], now: Instant) -> NoKey {
        let rests = slots.iter().filter(|slot| slot.refusals < MOST_REFUSALS);
        let next = rests.filter_map(|slot| slot.rests_until).min();
        match (slots.is_empty(), next) {
            (true, _) => NoKey::Empty(self.holder()),
            (false, Some(next)) => NoKey::AllRest(next.saturating_duration_since(now)),
            (false, None) => NoKey::AllRefused,
        }
    }

    /// How many keys are in each state.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let states = self.states();
        let count = |name| states.iter().filter(|key| key.state == name).count();
        STATES.map(|name| (name, count(name))).to_vec()
    }

    /// How all keys stand.
    pub fn states(&self) -> Vec<KeyState> {
        let now = Instant::now();
        self.slots().iter().map(|slot| slot.state(now)).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn homes(&self) -> MutexGuard<'_, Homes> {
        self.0.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Homes {
    fn put(&mut self, thing: &str, place: usize) {
        if self.places.insert(thing.to_owned(), place).is_some() {
            return;
        }
        self.order.push_back(thing.to_owned());
        if self.order.len() > MOST_HOMES
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }
}

/// Whole seconds, after which a wait is over for certain.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs_f64().ceil() as u64).max(1)
}

impl NoKey {
    /// In how many seconds the next key is ready, if one ever is.
    pub fn seconds(&self) -> Option<u64> {
        match self {
            Self::AllRest(wait) => Some(whole_seconds(*wait)),
            Self::Empty(_) | Self::AllRefused => None,
        }
    }
}

/// What is wrong with a key.
#[derive(Clone, Copy)]
enum Fault {
    RateLimited,
    OutOfCredits,
    Refused,
}

impl Fault {
    /// What an error says against the key with which it came, if anything.
    fn of(error: &ExaError) -> Option<Self> {
        let tag = error.tag.as_deref().unwrap_or_default();
        match error.kind {
            ExaErrorKind::Api(429) => Some(Self::RateLimited),
            ExaErrorKind::Api(402) => Some(Self::OutOfCredits),
            _ if QUOTA_TAGS.contains(&tag) => Some(Self::OutOfCredits),
            ExaErrorKind::Api(401) => Some(Self::Refused),
            _ => None,
        }
    }
}

impl Slot {
    fn is_ready(&self, now: Instant) -> bool {
        self.refusals < MOST_REFUSALS && self.rests_until.is_none_or(|until| until <= now)
    }

    fn state(&self, now: Instant) -> KeyState {
        let ready_in = self
            .rests_until
            .filter(|until| *until > now)
            .map(|until| until - now);
        KeyState {
            prefix: self.key.prefix(),
            state: match (self.refusals >= MOST_REFUSALS, ready_in.is_some()) {
                (true, _) => "refused",
                (false, true) => "resting",
                (false, false) => "ready",
            },
            in_flight: self.in_flight,
            calls: self.calls,
            ready_in,
            last_problem: self.last_problem,
        }
    }

    /// Takes the next turn and says how long to wait for it. What a second allows goes out at once; each
    /// further request waits until the one so many before it is long enough ago.
    fn turn(&mut self, now: Instant, rate: usize) -> Duration {
        while self.turns.front().is_some_and(|turn| *turn + WINDOW <= now) {
            self.turns.pop_front();
        }
        let before = self.turns.len().checked_sub(rate);
        let before = before.and_then(|place| self.turns.get(place));
        let turn = before.map_or(now, |before| (*before + WINDOW).max(now));
        self.turns.push_back(turn);
        turn.saturating_duration_since(now)
    }

    fn rest(&mut self, wait: Option<Duration>, problem: &'static str) {
        let until = Instant::now() + wait.unwrap_or(COOLDOWN);
        self.rests_until = Some(self.rests_until.map_or(until, |known| known.max(until)));
        self.last_problem = Some(problem);
    }
}

impl Lease {
    /// The key.
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Where the key stands in the pool.
    pub fn place(&self) -> usize {
        self.place
    }

    /// How long to wait before the key is used.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Notes how the call went; says whether another key might do better.
    pub fn report(&self, outcome: Result<(), &ExaError>) -> bool {
        let mut slots = self.pool.slots();
        let is_spared = slots.len() == 1 && self.pool.holder().spares_single();
        let Some(slot) = slots.get_mut(self.place).filter(|_| !is_spared) else {
            return false;
        };
        let Err(error) = outcome else {
            slot.refusals = 0;
            return false;
        };
        match Fault::of(error) {
            Some(Fault::RateLimited) => slot.rest(error.retry_after, "rate limited"),
            Some(Fault::OutOfCredits) => slot.rest(error.retry_after, "out of credits"),
            Some(Fault::Refused) => {
                slot.refusals += 1;
                slot.last_problem = Some("refused");
            }
            None => return false,
        }
        // A stream that failed on its way has told something already, and is not asked for again.
        error.kind != ExaErrorKind::Stream
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(slot) = self.pool.slots().get_mut(self.place) {
            slot.in_flight = slot.in_flight.saturating_sub(1);
        }
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

//! Several keys that share the work: the least busy one is used, and one that Exa turned away cools down.
//!
//! Exa limits operations apart from each other: searches go on while the credits of Websets are used up. So a key
//! has a circuit breaker for itself and one for each class of operations.
//!
//! Keys may belong to different teams of Exa, and what one team made is unknown to the others. So the
//! pool remembers with which key a thing was last found.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Secret;
use super::circuit_breaker::{CircuitBreaker, KeyCondition, KeyFault, Ticket, Verdict};
use crate::exa::{ApiKey, ExaError, ExaErrorKind};

/// In such a time a key makes no more requests than a second allows. It is a little longer than a second,
/// because some requests take longer on their way to Exa than others.
const WINDOW: Duration = Duration::from_millis(1_050);

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
    /// Those of a server that many share. A single key cools down like any of several, and everybody is
    /// told when it is ready.
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
    /// Opens when Exa does not accept the key at all.
    breaker: CircuitBreaker,
    /// Open when Exa accepts the key, but not for operations of these classes.
    classes: BTreeMap<&'static str, CircuitBreaker>,
    /// When the latest requests were or will be sent, where they are paced.
    turns: VecDeque<Instant>,
    last_problem: Option<KeyFault>,
}

/// A key in use; it counts as busy until this is dropped.
pub struct Lease {
    pool: KeyPool,
    place: usize,
    key: ApiKey,
    wait: Duration,
    class: &'static str,
    ticket: Ticket,
    class_ticket: Ticket,
}

/// No key can be used now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// There is none.
    #[error("no Exa API key is set")]
    Empty(Holder),
    /// Exa turned every key away; the next one is tried after this time.
    #[error("{}; the next is ready in {} seconds", reason(*.fault), whole_seconds(*.wait))]
    CoolingDown {
        /// How long that is.
        wait: Duration,
        /// What is wrong with all of them, where it is the same.
        fault: Option<KeyFault>,
    },
}

fn reason(fault: Option<KeyFault>) -> &'static str {
    match fault {
        Some(KeyFault::RateLimited) => "all Exa API keys are rate-limited",
        Some(KeyFault::OutOfCredits) => "all Exa API keys are out of credits",
        Some(KeyFault::Rejected) => {
            "Exa rejected every API key; unless that passes, the operator must set new ones in EXA_API_KEYS"
        }
        Some(KeyFault::Forbidden) => "no Exa API key is allowed to do this",
        None => "all Exa API keys are cooling down",
    }
}

/// How a key stands, for operators; it does not show the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The first characters of a long key.
    pub prefix: String,
    /// Whether it can be used.
    pub condition: KeyCondition,
    /// Calls under way.
    pub in_flight: usize,
    /// Calls so far.
    pub calls: u64,
    /// How long until a call may be made with it; `None` if one may be made now.
    pub ready_in: Option<Duration>,
    /// Faults in a row.
    pub failures: u32,
    /// Why it last failed.
    pub last_problem: Option<KeyFault>,
    /// The classes of operations for which it cannot be used now, though it can for others.
    pub limited_classes: Vec<&'static str>,
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
                breaker: CircuitBreaker::default(),
                classes: BTreeMap::new(),
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
    /// found before, the key that found it. Keys that were tried already, and those that Exa does not accept for
    /// this class of operations, are left out.
    pub fn lease(
        &self,
        class: &'static str,
        thing: Option<&str>,
        tried: &[usize],
    ) -> Result<Lease, NoKey> {
        let now = Instant::now();
        let home = thing.and_then(|thing| self.homes().places.get(thing).copied());
        let mut slots = self.slots();
        let ready = slots
            .iter_mut()
            .enumerate()
            .filter(|(place, slot)| slot.allows(class, now) && !tried.contains(place));
        let busy = |place: &usize, slot: &Slot| (Some(*place) != home, slot.in_flight, slot.calls);
        match ready.min_by_key(|(place, slot)| busy(place, slot)) {
            Some((place, slot)) => {
                slot.in_flight += 1;
                slot.calls += 1;
                Ok(Lease {
                    pool: self.clone(),
                    place,
                    key: slot.key.clone(),
                    class,
                    ticket: slot.breaker.admit(now),
                    class_ticket: slot.classes.entry(class).or_default().admit(now),
                    wait: self
                        .0
                        .rate
                        .map_or(Duration::ZERO, |rate| slot.turn(now, rate)),
                })
            }
            None => Err(self.none_ready(class, &slots, now)),
        }
    }

    /// Remembers with which key a thing was found, where there are several.
    pub fn remember(&self, thing: &str, lease: &Lease) {
        if self.len() > 1 {
            self.homes().put(thing, lease.place);
        }
    }

    /// Whether a thing may exist although these keys denied it: the key with which it was found is not among them.
    /// Of a thing that `exists` for certain, any other key may be that one.
    pub fn may_have(&self, thing: &str, exists: bool, denied: &[usize]) -> bool {
        let home = self.homes().places.get(thing).copied();
        match home {
            Some(home) => !denied.contains(&home),
            None => exists && denied.len() < self.len(),
        }
    }

    /// Whether a key could be used now for this class that was not tried already.
    pub fn has_ready(&self, class: &'static str, tried: &[usize]) -> bool {
        let now = Instant::now();
        let slots = self.slots();
        let mut others = slots.iter().enumerate();
        others.any(|(place, slot)| slot.allows(class, now) && !tried.contains(&place))
    }

    /// Why no key is ready after an error that is the fault of the key with which it came.
    pub fn out_after(&self, class: &'static str, error: &ExaError) -> Option<NoKey> {
        KeyFault::of(error)?;
        let now = Instant::now();
        let slots = self.slots();
        let ready = slots.iter().any(|slot| slot.allows(class, now));
        (!ready).then(|| self.none_ready(class, &slots, now))
    }

    fn none_ready(&self, class: &'static str, slots: &[Slot], now: Instant) -> NoKey {
        let Some((first, others)) = slots.split_first() else {
            return NoKey::Empty(self.holder());
        };
        let fault = first.fault(class, now);
        let is_same = others.iter().all(|slot| slot.fault(class, now) == fault);
        let waits = slots.iter().filter_map(|slot| slot.wait(class, now));
        NoKey::CoolingDown {
            // Keys that were tried already may be ready; they are not worth waiting for.
            wait: waits.min().unwrap_or_default(),
            fault: fault.filter(|_| is_same),
        }
    }

    /// Returns how many keys are in each state.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let states = self.states();
        let count = |condition| {
            let those = states.iter().filter(|key| key.condition == condition);
            those.count()
        };
        let all = KeyCondition::ALL.iter();
        all.map(|condition| (condition.as_str(), count(*condition)))
            .collect()
    }

    /// Returns how all keys stand.
    pub fn states(&self) -> Vec<KeyState> {
        let now = Instant::now();
        self.slots().iter().map(|slot| slot.state(now)).collect()
    }

    /// Returns how all keys stand, each with an id that stays the same as long as the secret does.
    pub(super) fn identified(&self, secret: &Secret) -> Vec<(String, KeyState)> {
        let now = Instant::now();
        let slots = self.slots();
        let states = slots.iter();
        states
            .map(|slot| (slot.id(secret), slot.state(now)))
            .collect()
    }

    /// Forgets all faults of the key with this id; returns how it stood before. `None` if there is no
    /// such key.
    pub(super) fn reset(&self, secret: &Secret, id: &str) -> Option<KeyState> {
        let mut slots = self.slots();
        let slot = slots.iter_mut().find(|slot| slot.id(secret) == id)?;
        let before = slot.state(Instant::now());
        slot.breaker.close();
        slot.classes.clear();
        slot.last_problem = None;
        Some(before)
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
    /// Returns in how many seconds the next key is ready, if one ever is.
    pub fn seconds(&self) -> Option<u64> {
        match self {
            Self::CoolingDown { wait, .. } => Some(whole_seconds(*wait)),
            Self::Empty(_) => None,
        }
    }
}

impl Slot {
    fn id(&self, secret: &Secret) -> String {
        secret.digest("key id", self.key.expose()).name()
    }

    /// The breakers that a call of this class passes.
    fn breakers(&self, class: &'static str) -> impl Iterator<Item = &CircuitBreaker> {
        [&self.breaker].into_iter().chain(self.classes.get(class))
    }

    fn allows(&self, class: &'static str, now: Instant) -> bool {
        self.breakers(class).all(|breaker| breaker.allows(now))
    }

    fn wait(&self, class: &'static str, now: Instant) -> Option<Duration> {
        let waits = self.breakers(class).filter_map(|breaker| breaker.wait(now));
        waits.max()
    }

    /// The fault that keeps the key from being used for this class.
    fn fault(&self, class: &'static str, now: Instant) -> Option<KeyFault> {
        let mut closed = self.breakers(class).filter(|breaker| !breaker.allows(now));
        closed.find_map(CircuitBreaker::fault)
    }

    /// How the key stands: as badly as for any class of operations.
    fn state(&self, now: Instant) -> KeyState {
        let all = || [&self.breaker].into_iter().chain(self.classes.values());
        let classes = self.classes.iter();
        let limited = classes.filter(|(_, breaker)| !breaker.allows(now));
        KeyState {
            prefix: self.key.prefix(),
            condition: all()
                .map(|breaker| breaker.condition(now))
                .max()
                .unwrap_or(KeyCondition::Ready),
            in_flight: self.in_flight,
            calls: self.calls,
            ready_in: all().filter_map(|breaker| breaker.wait(now)).max(),
            failures: all()
                .map(CircuitBreaker::failures)
                .max()
                .unwrap_or_default(),
            last_problem: self.last_problem,
            limited_classes: limited.map(|(class, _)| *class).collect(),
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

    /// Whether the call finds out if the key works again.
    pub fn is_probe(&self) -> bool {
        self.ticket.is_probe || self.class_ticket.is_probe
    }

    /// Learns from how the call went; returns whether another key might do better.
    pub fn report(&self, outcome: Result<(), &ExaError>) -> bool {
        let mut slots = self.pool.slots();
        let is_spared = slots.len() == 1 && self.pool.holder().spares_single();
        let Some(slot) = slots.get_mut(self.place).filter(|_| !is_spared) else {
            return false;
        };
        let verdict = Verdict::of(outcome);
        let is_forbidden = outcome.is_err_and(|error| error.kind == ExaErrorKind::Api(403));
        self.tell(slot, verdict, is_forbidden);
        match verdict {
            // A stream that failed on its way has told something already, and is not asked for again.
            Verdict::Fault(..) => outcome.is_err_and(|error| error.kind != ExaErrorKind::Stream),
            // Another team may be allowed to do what this one is not.
            _ => is_forbidden,
        }
    }

    /// Counts a refusal (403) against the key, because another key was allowed to make the same call. On its own
    /// such a refusal says as much about the call.
    pub fn report_forbidden(&self) {
        if let Some(slot) = self.pool.slots().get_mut(self.place) {
            let class = slot.classes.entry(self.class).or_default();
            class.count(KeyFault::Forbidden, Instant::now());
            slot.last_problem = Some(KeyFault::Forbidden);
        }
    }

    fn tell(&self, slot: &mut Slot, verdict: Verdict, is_forbidden: bool) {
        let now = Instant::now();
        let (of_key, of_class) = match verdict {
            // Whether that is about the key or about the call shows with another key.
            Verdict::Accepted if is_forbidden => (verdict, Verdict::Unknown),
            Verdict::Fault(fault, _) if fault.concerns_class() => (Verdict::Accepted, verdict),
            Verdict::Fault(..) => (verdict, Verdict::Unknown),
            verdict => (verdict, verdict),
        };
        slot.breaker.report(self.ticket, of_key, now);
        let class = slot.classes.entry(self.class).or_default();
        class.report(self.class_ticket, of_class, now);
        if let Verdict::Fault(fault, _) = verdict {
            slot.last_problem = Some(fault);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(slot) = self.pool.slots().get_mut(self.place) {
            slot.in_flight = slot.in_flight.saturating_sub(1);
            // A probe whose caller went away must not keep the key from everybody.
            let now = Instant::now();
            slot.breaker.release(self.ticket, now);
            if let Some(class) = slot.classes.get_mut(self.class) {
                class.release(self.class_ticket, now);
            }
        }
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

//! A pool of API keys: requests use the least busy key, and a key that Exa rejects cools down.
//!
//! Exa limits operations separately: searches continue while the credits of Websets are used up. A key
//! therefore has a circuit breaker for itself and one for each class of operations.
//!
//! Keys may belong to different Exa teams, and one team cannot see what another has created. The pool
//! therefore remembers which key last found a resource.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::circuit_breaker::{CircuitBreaker, KeyCondition, KeyFault, Ticket, Verdict};
use super::key_affinity::KeyAffinity;
use super::{ApiKey, ExaError, ExaErrorKind, KeyOwner};
use exa_mcp_model::lock;

/// The window of the rate limit per key. It is a little longer than a second, because requests take
/// different times to reach Exa.
const WINDOW: Duration = Duration::from_millis(1_050);

/// A pool of API keys. Clones share their state.
#[derive(Clone)]
pub struct KeyPool(Arc<Pool>);

struct Pool {
    slots: Mutex<Vec<Slot>>,
    affinity: Mutex<KeyAffinity>,
    /// The maximum number of requests per second and key, if limited.
    rate: Option<usize>,
    owner: KeyOwner,
}

struct Slot {
    key: ApiKey,
    in_flight: usize,
    calls: u64,
    /// Opens when Exa does not accept the key at all.
    breaker: CircuitBreaker,
    /// Open when Exa accepts the key, but not for operations of this class.
    classes: BTreeMap<&'static str, CircuitBreaker>,
    /// When the latest requests were or will be sent, if the rate is limited.
    send_times: VecDeque<Instant>,
    last_fault: Option<KeyFault>,
}

/// A key in use; the key counts as busy until the lease is dropped.
pub struct KeyLease {
    pool: KeyPool,
    index: usize,
    key: ApiKey,
    wait: Duration,
    class: &'static str,
    ticket: Ticket,
    class_ticket: Ticket,
}

/// No key is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyPoolError {
    /// The pool has no key.
    #[error("no Exa API key is set")]
    Empty(KeyOwner),
    /// All keys are cooling down; the next one is tried after `wait`.
    #[error("{}; the next is ready in {} seconds", reason(*.fault), whole_seconds(*.wait))]
    CoolingDown {
        /// How long until the next key is tried.
        wait: Duration,
        /// The fault of the keys, if all have the same one.
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
        Some(KeyFault::ServerErrors) => "Exa fails with every API key",
        None => "all Exa API keys are cooling down",
    }
}

/// The state of a key, for operators; does not reveal the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The first characters of a long key.
    pub prefix: String,
    /// Its state.
    pub condition: KeyCondition,
    /// Calls in flight.
    pub in_flight: usize,
    /// Calls so far.
    pub calls: u64,
    /// The time until it can be used; `None` if it can be used now.
    pub ready_in: Option<Duration>,
    /// Consecutive faults.
    pub failures: u32,
    /// Its latest fault.
    pub last_fault: Option<KeyFault>,
    /// The classes of operations for which it cannot be used now.
    pub limited_classes: Vec<&'static str>,
}

impl KeyPool {
    /// Creates a pool of the keys of a single user; duplicates are dropped.
    pub fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        Self::with_rate_limit(keys, None, KeyOwner::User)
    }

    /// Creates a pool that sends at most `rate` requests per second with each key.
    pub fn with_rate_limit(
        keys: impl IntoIterator<Item = ApiKey>,
        rate: Option<u64>,
        owner: KeyOwner,
    ) -> Self {
        let rate = rate.and_then(|rate| usize::try_from(rate).ok());
        let pool = Self(Arc::new(Pool {
            slots: Mutex::default(),
            affinity: Mutex::default(),
            rate: rate.filter(|rate| *rate > 0),
            owner,
        }));
        for key in keys {
            pool.add(key);
        }
        pool
    }

    /// Adds a key, unless the pool already has it.
    pub fn add(&self, key: ApiKey) {
        let mut slots = lock(&self.0.slots);
        if slots.iter().all(|slot| slot.key != key) {
            slots.push(Slot {
                key,
                in_flight: 0,
                calls: 0,
                breaker: CircuitBreaker::default(),
                classes: BTreeMap::new(),
                send_times: VecDeque::new(),
                last_fault: None,
            });
        }
    }

    /// Returns who owns the keys.
    pub fn owner(&self) -> KeyOwner {
        self.0.owner
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        lock(&self.0.slots).len()
    }

    /// Returns whether the pool has no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leases the key that last found the resource, or else the least busy one. Skips the keys in `tried`, and
    /// those that are cooling down for this class of operations.
    ///
    /// # Errors
    /// No key is available.
    pub fn lease(
        &self,
        class: &'static str,
        resource: Option<&str>,
        tried: &[usize],
    ) -> Result<KeyLease, KeyPoolError> {
        let now = Instant::now();
        let known = resource.and_then(|resource| lock(&self.0.affinity).get(resource));
        let mut slots = lock(&self.0.slots);
        let ready = slots
            .iter_mut()
            .enumerate()
            .filter(|(index, slot)| slot.allows(class, now) && !tried.contains(index));
        let rank = |index: &usize, slot: &Slot| (Some(*index) != known, slot.in_flight, slot.calls);
        match ready.min_by_key(|(index, slot)| rank(index, slot)) {
            Some((index, slot)) => {
                slot.in_flight += 1;
                slot.calls += 1;
                Ok(KeyLease {
                    pool: self.clone(),
                    index,
                    key: slot.key.clone(),
                    class,
                    ticket: slot.breaker.admit(now),
                    class_ticket: slot.classes.entry(class).or_default().admit(now),
                    wait: self
                        .0
                        .rate
                        .map_or(Duration::ZERO, |rate| slot.schedule(now, rate)),
                })
            }
            None => Err(self.unavailable(class, &slots, now)),
        }
    }

    /// Remembers which key found a resource, if there are several keys.
    pub fn remember(&self, resource: &str, lease: &KeyLease) {
        if self.len() > 1 {
            lock(&self.0.affinity).insert(resource, lease.index);
        }
    }

    /// Returns whether a resource may exist although these keys did not find it: the key that last found it is
    /// not among them. If the resource certainly `exists`, any other key may find it.
    pub fn may_exist(&self, resource: &str, exists: bool, tried: &[usize]) -> bool {
        let known = lock(&self.0.affinity).get(resource);
        match known {
            Some(known) => !tried.contains(&known),
            None => exists && tried.len() < self.len(),
        }
    }

    /// Returns whether a key that is not in `tried` is ready for this class.
    pub fn has_ready(&self, class: &'static str, tried: &[usize]) -> bool {
        let now = Instant::now();
        let slots = lock(&self.0.slots);
        let mut others = slots.iter().enumerate();
        others.any(|(index, slot)| slot.allows(class, now) && !tried.contains(&index))
    }

    /// Returns why no key is ready after an error that is the fault of a key; `None` if one is.
    pub fn unavailable_after(&self, class: &'static str, error: &ExaError) -> Option<KeyPoolError> {
        KeyFault::from_error(error)?;
        let now = Instant::now();
        let slots = lock(&self.0.slots);
        let ready = slots.iter().any(|slot| slot.allows(class, now));
        (!ready).then(|| self.unavailable(class, &slots, now))
    }

    fn unavailable(&self, class: &'static str, slots: &[Slot], now: Instant) -> KeyPoolError {
        let Some((first, others)) = slots.split_first() else {
            return KeyPoolError::Empty(self.owner());
        };
        let fault = first.fault(class, now);
        let is_same = others.iter().all(|slot| slot.fault(class, now) == fault);
        let waits = slots.iter().filter_map(|slot| slot.wait(class, now));
        KeyPoolError::CoolingDown {
            // A key without a wait was already tried.
            wait: waits.min().unwrap_or_default(),
            fault: fault.filter(|_| is_same),
        }
    }

    /// Returns how many keys are in each state.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let states = self.states();
        let count = |condition| {
            let matching = states.iter().filter(|key| key.condition == condition);
            matching.count()
        };
        let all = KeyCondition::ALL.iter();
        all.map(|condition| (condition.as_str(), count(*condition)))
            .collect()
    }

    /// Returns the state of every key.
    pub fn states(&self) -> Vec<KeyState> {
        let now = Instant::now();
        lock(&self.0.slots)
            .iter()
            .map(|slot| slot.state(now))
            .collect()
    }

    /// Returns the state of every key with the id that `id_of` returns for the key.
    pub fn states_with_ids(&self, id_of: impl Fn(&ApiKey) -> String) -> Vec<(String, KeyState)> {
        let now = Instant::now();
        let slots = lock(&self.0.slots);
        let states = slots.iter();
        states
            .map(|slot| (id_of(&slot.key), slot.state(now)))
            .collect()
    }

    /// Clears all faults of the first matching key and returns its previous state, or `None` if no key
    /// matches.
    pub fn reset(&self, matches: impl Fn(&ApiKey) -> bool) -> Option<KeyState> {
        let mut slots = lock(&self.0.slots);
        let slot = slots.iter_mut().find(|slot| matches(&slot.key))?;
        let before = slot.state(Instant::now());
        slot.breaker.close();
        slot.classes.clear();
        slot.last_fault = None;
        Some(before)
    }
}

/// Rounds a wait up to whole seconds.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs_f64().ceil() as u64).max(1)
}

impl KeyPoolError {
    /// Returns the seconds until the next key is ready; `None` if the pool is empty.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::CoolingDown { wait, .. } => Some(whole_seconds(*wait)),
            Self::Empty(_) => None,
        }
    }
}

impl Slot {
    /// Returns the breakers of calls of this class.
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

    /// Returns the fault that prevents the use of the key for this class.
    fn fault(&self, class: &'static str, now: Instant) -> Option<KeyFault> {
        let mut open = self.breakers(class).filter(|breaker| !breaker.allows(now));
        open.find_map(CircuitBreaker::fault)
    }

    /// Returns the state of the key, which is the worst state of any class.
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
            last_fault: self.last_fault,
            limited_classes: limited.map(|(class, _)| *class).collect(),
        }
    }

    /// Schedules the next request and returns how long to wait for it. The first `rate` requests of a window
    /// are sent at once; each later one waits until the request `rate` positions before it leaves the window.
    fn schedule(&mut self, now: Instant, rate: usize) -> Duration {
        while self
            .send_times
            .front()
            .is_some_and(|time| *time + WINDOW <= now)
        {
            self.send_times.pop_front();
        }
        let before = self.send_times.len().checked_sub(rate);
        let before = before.and_then(|index| self.send_times.get(index));
        let time = before.map_or(now, |before| (*before + WINDOW).max(now));
        self.send_times.push_back(time);
        time.saturating_duration_since(now)
    }
}

impl KeyLease {
    /// Returns the key.
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Returns the index of the key in the pool.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns how long to wait before using the key.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns whether the call is a probe of a key that was cooling down.
    pub fn is_probe(&self) -> bool {
        self.ticket.is_probe || self.class_ticket.is_probe
    }

    /// Records the outcome of the call; returns whether another key might succeed.
    pub fn report(&self, outcome: Result<(), &ExaError>) -> bool {
        let mut slots = lock(&self.pool.0.slots);
        let is_exempt = slots.len() == 1 && self.pool.owner().exempts_single_key();
        let others_accepted = self.others_accepted_at(&slots);
        let Some(slot) = slots.get_mut(self.index).filter(|_| !is_exempt) else {
            return false;
        };
        let verdict = Verdict::from_outcome(outcome);
        let is_forbidden = outcome.is_err_and(|error| error.kind == ExaErrorKind::Api(403));
        self.update(slot, verdict, is_forbidden, others_accepted);
        match verdict {
            // A stream that failed has already delivered updates and is not repeated.
            Verdict::Fault(..) => outcome.is_err_and(|error| error.kind != ExaErrorKind::Stream),
            // Another team may be allowed to do what this one is not.
            _ => is_forbidden,
        }
    }

    /// Counts a 403 against the key, because another key was allowed to make the same call. Without that
    /// knowledge, the call itself may be the reason.
    pub fn report_forbidden(&self) {
        if let Some(slot) = lock(&self.pool.0.slots).get_mut(self.index) {
            let class = slot.classes.entry(self.class).or_default();
            class.record_fault(KeyFault::Forbidden, Instant::now());
            slot.last_fault = Some(KeyFault::Forbidden);
        }
    }

    /// Returns when a call of the same class was last accepted with another key.
    fn others_accepted_at(&self, slots: &[Slot]) -> Option<Instant> {
        let all = slots.iter().enumerate();
        let others = all.filter(|(index, _)| *index != self.index);
        let classes = others.filter_map(|(_, slot)| slot.classes.get(self.class));
        classes.filter_map(CircuitBreaker::accepted_at).max()
    }

    fn update(
        &self,
        slot: &mut Slot,
        verdict: Verdict,
        is_forbidden: bool,
        others_accepted: Option<Instant>,
    ) {
        let now = Instant::now();
        let (key_verdict, class_verdict) = match verdict {
            // Another key shows whether this concerns the key or the call.
            Verdict::Accepted if is_forbidden => (verdict, Verdict::Unknown),
            Verdict::Fault(fault, _) if fault.concerns_class() => (Verdict::Accepted, verdict),
            Verdict::Fault(..) => (verdict, Verdict::Unknown),
            verdict => (verdict, verdict),
        };
        slot.breaker.report(self.ticket, key_verdict, now);
        let class = slot.classes.entry(self.class).or_default();
        let ticket = self.class_ticket;
        match verdict {
            Verdict::ServerError => class.report_server_error(ticket, others_accepted, now),
            _ => class.report(ticket, class_verdict, now),
        }
        match verdict {
            Verdict::Fault(fault, _) => slot.last_fault = Some(fault),
            Verdict::ServerError if class.fault() == Some(KeyFault::ServerErrors) => {
                slot.last_fault = class.fault();
            }
            _ => {}
        }
    }
}

impl Drop for KeyLease {
    fn drop(&mut self) {
        if let Some(slot) = lock(&self.pool.0.slots).get_mut(self.index) {
            slot.in_flight = slot.in_flight.saturating_sub(1);
            // A probe whose caller went away must not block the key.
            let now = Instant::now();
            slot.breaker.release(self.ticket, now);
            if let Some(class) = slot.classes.get_mut(self.class) {
                class.release(self.class_ticket, now);
            }
        }
    }
}

#[cfg(test)]
#[path = "tests/key_pool.rs"]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

//! Several keys that share the work: the least busy one is used, and one that Exa turned away rests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::exa::{ApiKey, ExaError, ExaErrorKind};

/// How long a key rests that Exa turned away without saying for how long.
const COOLDOWN: Duration = Duration::from_secs(180);

/// A key that is refused so often in a row is no key any more.
const MOST_REFUSALS: u32 = 3;

/// What Exa calls a key or team whose money is used up.
const QUOTA_TAGS: [&str; 3] = [
    "NO_MORE_CREDITS",
    "API_KEY_BUDGET_EXCEEDED",
    "TEAM_BUDGET_EXCEEDED",
];

/// Keys that share the work. Clones share their state.
#[derive(Clone)]
pub struct KeyPool(Arc<Mutex<Vec<Slot>>>);

struct Slot {
    key: ApiKey,
    in_flight: usize,
    calls: u64,
    refusals: u32,
    rests_until: Option<Instant>,
    last_problem: Option<&'static str>,
}

/// A key in use; it counts as busy until this is dropped.
pub struct Lease {
    pool: KeyPool,
    place: usize,
    key: ApiKey,
}

/// No key can be used now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// There is none.
    #[error("no Exa API key is set")]
    Empty,
    /// Every key rests.
    #[error("all Exa API keys rest; the next is ready in {} seconds", .0.as_secs().max(1))]
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
    /// A pool of these keys; the same key twice counts once.
    pub fn new(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        let pool = Self(Arc::default());
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
                last_problem: None,
            });
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.slots().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key that is least busy, and among those the one that worked least.
    pub fn lease(&self) -> Result<Lease, NoKey> {
        let now = Instant::now();
        let mut slots = self.slots();
        let ready = slots
            .iter_mut()
            .enumerate()
            .filter(|(_, slot)| slot.is_ready(now));
        match ready.min_by_key(|(_, slot)| (slot.in_flight, slot.calls)) {
            Some((place, slot)) => {
                slot.in_flight += 1;
                slot.calls += 1;
                Ok(Lease {
                    pool: self.clone(),
                    place,
                    key: slot.key.clone(),
                })
            }
            None => Err(none_ready(&slots, now)),
        }
    }

    /// Whether another call could use a key now.
    pub fn has_ready(&self) -> bool {
        let now = Instant::now();
        self.slots().iter().any(|slot| slot.is_ready(now))
    }

    /// How all keys stand.
    pub fn states(&self) -> Vec<KeyState> {
        let now = Instant::now();
        self.slots().iter().map(|slot| slot.state(now)).collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn none_ready(slots: &[Slot], now: Instant) -> NoKey {
    let rests = slots.iter().filter(|slot| slot.refusals < MOST_REFUSALS);
    let next = rests.filter_map(|slot| slot.rests_until).min();
    match (slots.is_empty(), next) {
        (true, _) => NoKey::Empty,
        (false, Some(next)) => NoKey::AllRest(next.saturating_duration_since(now)),
        (false, None) => NoKey::AllRefused,
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

    /// Notes how the call went; says whether another key might do better.
    pub fn report(&self, outcome: Result<(), &ExaError>) -> bool {
        let mut slots = self.pool.slots();
        // A single key cannot be spared; Exa itself says when it is turned away.
        let is_alone = slots.len() == 1;
        let Some(slot) = slots.get_mut(self.place).filter(|_| !is_alone) else {
            return false;
        };
        let Err(error) = outcome else {
            slot.refusals = 0;
            return false;
        };
        let quota = error
            .tag
            .as_deref()
            .is_some_and(|tag| QUOTA_TAGS.contains(&tag));
        match error.kind {
            ExaErrorKind::Api(429) => slot.rest(error.retry_after, "rate limited"),
            ExaErrorKind::Api(402) => slot.rest(None, "out of credits"),
            _ if quota => slot.rest(None, "out of credits"),
            ExaErrorKind::Api(401) => {
                slot.refusals += 1;
                slot.last_problem = Some("refused");
            }
            _ => return false,
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pool(count: usize) -> KeyPool {
        KeyPool::new(
            (0..count).map(|number| ApiKey::new(format!("key-number-{number}-secret")).unwrap()),
        )
    }

    fn failure(status: u16) -> ExaError {
        ExaError {
            status: Some(status),
            ..ExaError::new(ExaErrorKind::Api(status), "no".to_owned())
        }
    }

    #[test]
    fn the_work_is_shared() {
        let pool = pool(3);
        let leases: Vec<Lease> = (0..9).map(|_| pool.lease().unwrap()).collect();
        assert!(pool.states().iter().all(|state| state.in_flight == 3));
        drop(leases);
        assert!(
            pool.states()
                .iter()
                .all(|state| state.in_flight == 0 && state.calls == 3)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_was_turned_away_rests() {
        let pool = pool(2);
        let lease = pool.lease().unwrap();
        let turned_away = ExaError {
            retry_after: Some(Duration::from_secs(10)),
            ..failure(429)
        };
        assert!(lease.report(Err(&turned_away)));
        for _ in 0..5 {
            assert_ne!(pool.lease().unwrap().place, lease.place);
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(pool.states().iter().all(|state| state.state == "ready"));
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_rest_the_next_is_named() {
        let pool = pool(2);
        for _ in 0..2 {
            pool.lease().unwrap().report(Err(&failure(402)));
        }
        assert_eq!(pool.lease().err(), Some(NoKey::AllRest(COOLDOWN)));
        assert!(!pool.has_ready());
        tokio::time::advance(COOLDOWN).await;
        assert!(pool.lease().is_ok());
    }

    #[test]
    fn a_refused_key_is_out_after_three_times_in_a_row() {
        let pool = pool(2);
        let all = |outcome: Option<u16>| {
            for _ in 0..2 {
                let failure = outcome.map(failure);
                pool.lease()
                    .unwrap()
                    .report(failure.as_ref().map_or(Ok(()), Err));
            }
        };
        all(Some(401));
        all(Some(401));
        all(None);
        all(Some(401));
        all(Some(401));
        assert!(pool.has_ready());
        all(Some(401));
        assert_eq!(pool.lease().err(), Some(NoKey::AllRefused));
        assert_eq!(KeyPool::new([]).lease().err(), Some(NoKey::Empty));
    }

    #[test]
    fn a_single_key_is_always_tried() {
        let pool = pool(1);
        for status in [429, 402, 401, 401, 401] {
            assert!(!pool.lease().unwrap().report(Err(&failure(status))));
        }
        assert!(pool.has_ready());
    }

    #[test]
    fn states_do_not_show_the_key() {
        let states = format!("{:?}", pool(1).states());
        assert!(
            !states.contains("secret") && states.contains("key-"),
            "{states}"
        );
    }
}

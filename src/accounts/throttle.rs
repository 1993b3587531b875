//! Guessing tokens is made slow: an address that was wrong often must wait.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::Digest;

/// How often an address may be wrong at once.
const TRIES: f64 = 10.0;

/// How long it takes until another try is free.
const REFILL: Duration = Duration::from_secs(6);

/// How many addresses are remembered, and how many tokens that were right.
const MOST: usize = 10_000;

/// How long an address is known for a token that was right.
const TRUSTED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Who was wrong how often.
#[derive(Default)]
pub(super) struct Throttle(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    wrong: HashMap<Source, Bucket>,
    /// Tokens that were right, with the address they came from. Guesses of a neighbour behind the
    /// same address do not lock those out.
    right: HashMap<(Source, u64), Instant>,
    /// When it was last looked for what can be forgotten.
    swept: Option<Instant>,
}

/// Tries that are left.
struct Bucket {
    tries: f64,
    at: Instant,
}

/// An address; of the newer kind a whole network, since everybody has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    V4(u32),
    V6(u64),
    /// Everybody else, when too many addresses were wrong.
    Rest,
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

impl Throttle {
    /// Whether a token may be looked at; if not, how long to wait.
    pub(super) fn admit(&self, address: IpAddr, token: &Digest) -> Result<(), Duration> {
        self.admit_at(address, token, Instant::now())
    }

    fn admit_at(&self, address: IpAddr, token: &Digest, now: Instant) -> Result<(), Duration> {
        let mut memory = self.memory();
        let source = memory.source(address);
        let Some(bucket) = memory.wrong.get_mut(&source) else {
            return Ok(());
        };
        bucket.refill(now);
        if bucket.tries >= 1.0 {
            return Ok(());
        }
        let wait = REFILL.mul_f64(1.0 - bucket.tries);
        let since = memory.right.get(&(Source::from(address), token.number()));
        match since.is_some_and(|since| now.duration_since(*since) < TRUSTED_FOR) {
            true => Ok(()),
            false => Err(wait),
        }
    }

    /// Notes that a token was right.
    pub(super) fn right(&self, address: IpAddr, token: &Digest) {
        let now = Instant::now();
        let mut memory = self.memory();
        let key = (address.into(), token.number());
        if let Some(since) = memory.right.get_mut(&key) {
            *since = now;
            return;
        }
        if memory.right.len() >= MOST && memory.may_sweep(now) {
            memory
                .right
                .retain(|_, since| now.duration_since(*since) < TRUSTED_FOR);
        }
        if memory.right.len() < MOST {
            memory.right.insert(key, now);
        }
    }

    /// Notes that a token was wrong.
    pub(super) fn wrong(&self, address: IpAddr) {
        self.wrong_at(address, Instant::now());
    }

    fn wrong_at(&self, address: IpAddr, now: Instant) {
        let mut memory = self.memory();
        if memory.wrong.len() >= MOST && memory.may_sweep(now) {
            memory.wrong.retain(|_, bucket| {
                bucket.refill(now);
                bucket.tries < TRIES
            });
        }
        let source = memory.source(address);
        let bucket = memory.wrong.entry(source).or_insert(Bucket {
            tries: TRIES,
            at: now,
        });
        bucket.refill(now);
        bucket.tries = (bucket.tries - 1.0).max(0.0);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Whether to look for what can be forgotten: not at every request, since there is much to look at.
    fn may_sweep(&mut self, now: Instant) -> bool {
        let since = |swept| now.saturating_duration_since(swept);
        let due = self.swept.is_none_or(|swept| since(swept) >= REFILL);
        if due {
            self.swept = Some(now);
        }
        due
    }

    /// Under which an address is remembered.
    fn source(&self, address: IpAddr) -> Source {
        let source = Source::from(address);
        match self.wrong.len() >= MOST && !self.wrong.contains_key(&source) {
            true => Source::Rest,
            false => source,
        }
    }
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at);
        let refilled = passed.as_secs_f64() / REFILL.as_secs_f64();
        self.tries = (self.tries + refilled).min(TRIES);
        self.at = now;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::accounts::Secret;

    fn token(text: &str) -> Digest {
        Secret::chosen("test").digest("token", text)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn exhaust(throttle: &Throttle, from: IpAddr, now: Instant) {
        for _ in 0..TRIES as usize {
            assert_eq!(throttle.admit_at(from, &token("guess"), now), Ok(()));
            throttle.wrong_at(from, now);
        }
    }

    #[test]
    fn many_wrong_tokens_must_wait() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let attacker = address("192.0.2.1");
        exhaust(&throttle, attacker, now);
        let wait = throttle
            .admit_at(attacker, &token("guess"), now)
            .unwrap_err();
        assert_eq!(wait, REFILL);
        assert_eq!(
            throttle.admit_at(address("192.0.2.2"), &token("guess"), now),
            Ok(())
        );
        let later = now + REFILL;
        assert_eq!(throttle.admit_at(attacker, &token("guess"), later), Ok(()));
        throttle.wrong_at(attacker, later);
        assert!(throttle.admit_at(attacker, &token("guess"), later).is_err());
    }

    #[test]
    fn a_token_that_was_right_is_not_locked_out_by_a_neighbour() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let shared = address("192.0.2.1");
        throttle.right(shared, &token("mine"));
        exhaust(&throttle, shared, now);
        assert_eq!(throttle.admit_at(shared, &token("mine"), now), Ok(()));
        assert!(throttle.admit_at(shared, &token("other"), now).is_err());
    }

    #[test]
    fn a_network_of_the_newer_kind_is_one_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        exhaust(&throttle, address("2001:db8::1"), now);
        let near = address("2001:db8::ffff:2");
        assert!(throttle.admit_at(near, &token("guess"), now).is_err());
        let mapped = address("::ffff:192.0.2.1");
        exhaust(&throttle, mapped, now);
        assert!(
            throttle
                .admit_at(address("192.0.2.1"), &token("guess"), now)
                .is_err()
        );
    }

    #[test]
    fn memory_is_bounded_and_those_beyond_it_are_throttled_together() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for number in 0..MOST as u32 {
            throttle.wrong_at(IpAddr::V4(number.into()), now);
        }
        let beyond = |number: u32| IpAddr::V4((MOST as u32 + number).into());
        for number in 0..TRIES as u32 {
            throttle.wrong_at(beyond(number), now);
        }
        assert!(throttle.admit_at(beyond(99), &token("guess"), now).is_err());
        assert!(throttle.memory().wrong.len() <= MOST + 1);
    }
}

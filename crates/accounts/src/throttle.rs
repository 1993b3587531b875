//! Limits the wrong tokens that an address may show.
//!
//! Only wrong tokens count, and only they are refused: a token that is right lets its holder in, whatever
//! was guessed from the same address before. Tokens that this server makes have 256 random bits, which
//! nobody guesses at any rate; the limit keeps guesses cheap to refuse and visible in the audit log.

use exa_mcp_model::lock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often an address may be wrong at once.
const TRIES: f64 = 10.0;

/// How long it takes until another try is free.
const REFILL: Duration = Duration::from_secs(6);

/// How many addresses are remembered.
const MOST: usize = 10_000;

/// Who was wrong how often.
#[derive(Default)]
pub(super) struct Throttle(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    wrong: HashMap<Source, Bucket>,
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
    /// Counts a wrong token; returns how long to wait if there were too many.
    pub(super) fn wrong(&self, address: IpAddr) -> Result<(), Duration> {
        self.wrong_at(address, Instant::now())
    }

    fn wrong_at(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut memory = lock(&self.0);
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
        if bucket.tries < 1.0 {
            return Err(REFILL.mul_f64(1.0 - bucket.tries));
        }
        bucket.tries -= 1.0;
        Ok(())
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

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn exhaust(throttle: &Throttle, from: IpAddr, now: Instant) {
        for _ in 0..TRIES as usize {
            assert_eq!(throttle.wrong_at(from, now), Ok(()));
        }
    }

    #[test]
    fn many_wrong_tokens_must_wait() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let attacker = address("192.0.2.1");
        exhaust(&throttle, attacker, now);
        assert_eq!(throttle.wrong_at(attacker, now), Err(REFILL));
        assert_eq!(throttle.wrong_at(address("192.0.2.2"), now), Ok(()));
        let later = now + REFILL;
        assert_eq!(throttle.wrong_at(attacker, later), Ok(()));
        assert!(throttle.wrong_at(attacker, later).is_err());
    }

    #[test]
    fn a_network_of_the_newer_kind_is_one_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        exhaust(&throttle, address("2001:db8::1"), now);
        assert!(throttle.wrong_at(address("2001:db8::ffff:2"), now).is_err());
        exhaust(&throttle, address("::ffff:192.0.2.1"), now);
        assert!(throttle.wrong_at(address("192.0.2.1"), now).is_err());
    }

    #[test]
    fn memory_is_bounded_and_those_beyond_it_are_throttled_together() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for number in 0..MOST as u32 {
            assert_eq!(throttle.wrong_at(IpAddr::V4(number.into()), now), Ok(()));
        }
        let beyond = |number: u32| IpAddr::V4((MOST as u32 + number).into());
        for number in 0..TRIES as u32 {
            assert_eq!(throttle.wrong_at(beyond(number), now), Ok(()));
        }
        assert!(throttle.wrong_at(beyond(99), now).is_err());
        assert!(lock(&throttle.0).wrong.len() <= MOST + 1);
    }
}

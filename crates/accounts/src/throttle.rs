//! Limits how many wrong tokens an address may present.
//!
//! Only wrong tokens count, and only they are rejected: a valid token is accepted whatever was guessed from the same
//! address before. Tokens created by this server have 256 random bits and cannot be guessed at any rate; the limit
//! keeps guesses cheap to reject and visible in the audit log.

use exa_mcp_model::lock;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How many failures in a row an address may have.
const BURST: f64 = 10.0;

/// How long until another attempt is allowed.
const REFILL_INTERVAL: Duration = Duration::from_secs(6);

/// How many addresses are tracked.
const MAX_ADDRESSES: usize = 10_000;

/// A token bucket per address.
#[derive(Default)]
pub(super) struct Throttle(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    by_address: HashMap<AddressKey, Bucket>,
    /// When full buckets were last removed.
    cleaned_at: Option<Instant>,
}

/// The attempts that an address has left.
struct Bucket {
    attempts: f64,
    updated_at: Instant,
}

/// An IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AddressKey {
    V4(u32),
    V6(u64),
    /// All further addresses when too many are tracked.
    Others,
}

impl From<IpAddr> for AddressKey {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

impl Throttle {
    /// Records a wrong token. Fails with the time to wait if there were too many.
    pub(super) fn record_failure(&self, address: IpAddr) -> Result<(), Duration> {
        self.record_failure_at(address, Instant::now())
    }

    fn record_failure_at(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = lock(&self.0);
        if buckets.by_address.len() >= MAX_ADDRESSES && buckets.is_cleanup_due(now) {
            buckets.by_address.retain(|_, bucket| {
                bucket.refill(now);
                bucket.attempts < BURST
            });
        }
        let key = buckets.key(address);
        let bucket = buckets.by_address.entry(key).or_insert(Bucket {
            attempts: BURST,
            updated_at: now,
        });
        bucket.refill(now);
        if bucket.attempts < 1.0 {
            return Err(REFILL_INTERVAL.mul_f64(1.0 - bucket.attempts));
        }
        bucket.attempts -= 1.0;
        Ok(())
    }
}

impl Buckets {
    /// Returns whether to remove full buckets now: not at every request, because that visits all of them.
    fn is_cleanup_due(&mut self, now: Instant) -> bool {
        let elapsed = |at| now.saturating_duration_since(at);
        let due = self
            .cleaned_at
            .is_none_or(|at| elapsed(at) >= REFILL_INTERVAL);
        if due {
            self.cleaned_at = Some(now);
        }
        due
    }

    /// Returns the key under which an address is tracked.
    fn key(&self, address: IpAddr) -> AddressKey {
        let key = AddressKey::from(address);
        if self.by_address.len() >= MAX_ADDRESSES && !self.by_address.contains_key(&key) {
            return AddressKey::Others;
        }
        key
    }
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.updated_at);
        let refilled = elapsed.as_secs_f64() / REFILL_INTERVAL.as_secs_f64();
        self.attempts = (self.attempts + refilled).min(BURST);
        self.updated_at = now;
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
        for _ in 0..BURST as usize {
            assert_eq!(throttle.record_failure_at(from, now), Ok(()));
        }
    }

    #[test]
    fn throttles_repeated_failures() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let attacker = address("192.0.2.1");
        exhaust(&throttle, attacker, now);
        assert_eq!(
            throttle.record_failure_at(attacker, now),
            Err(REFILL_INTERVAL)
        );
        assert_eq!(
            throttle.record_failure_at(address("192.0.2.2"), now),
            Ok(())
        );
        let later = now + REFILL_INTERVAL;
        assert_eq!(throttle.record_failure_at(attacker, later), Ok(()));
        assert!(throttle.record_failure_at(attacker, later).is_err());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        exhaust(&throttle, address("2001:db8::1"), now);
        assert!(
            throttle
                .record_failure_at(address("2001:db8::ffff:2"), now)
                .is_err()
        );
        exhaust(&throttle, address("::ffff:192.0.2.1"), now);
        assert!(
            throttle
                .record_failure_at(address("192.0.2.1"), now)
                .is_err()
        );
    }

    #[test]
    fn limits_tracked_addresses_and_throttles_the_others_together() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for number in 0..MAX_ADDRESSES as u32 {
            assert_eq!(
                throttle.record_failure_at(IpAddr::V4(number.into()), now),
                Ok(())
            );
        }
        let beyond = |number: u32| IpAddr::V4((MAX_ADDRESSES as u32 + number).into());
        for number in 0..BURST as u32 {
            assert_eq!(throttle.record_failure_at(beyond(number), now), Ok(()));
        }
        assert!(throttle.record_failure_at(beyond(99), now).is_err());
        assert!(lock(&throttle.0).by_address.len() <= MAX_ADDRESSES + 1);
    }
}

//! Made-up data must be the same on every run, so there is no randomness: everything is drawn from
//! a hash of what was asked.

use std::hash::Hasher;

use fnv::FnvHasher;

/// A hash of the parts, each part kept apart from the next.
pub(crate) fn hash(seed: u64, parts: &[&str]) -> u64 {
    let mut state = FnvHasher::with_key(FnvHasher::default().finish() ^ mix(seed));
    for part in parts {
        state.write(part.as_bytes());
        state.write_u8(0xff);
    }
    mix(state.finish())
}

/// The finaliser of SplitMix64: neighbouring inputs give unrelated outputs.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A sequence of draws (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64, parts: &[&str]) -> Self {
        Dice(hash(seed, parts))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 up to, but without, `limit`; 0 when `limit` is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True once in `n` draws.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the words; empty when there is none.
    pub(crate) fn word<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(words.len() as u64)).unwrap_or(0);
        words.get(at).copied().unwrap_or_default()
    }
}

//! Deterministic pseudo-random numbers. Generated data must be the same on every run, so every
//! generator is seeded with a hash of the request.

use std::hash::Hasher;

use fnv::FnvHasher;

/// Hashes the parts; `["ab", "c"]` and `["a", "bc"]` differ.
pub(crate) fn hash(seed: u64, parts: &[&str]) -> u64 {
    let mut state = FnvHasher::with_key(FnvHasher::default().finish() ^ mix(seed));
    for part in parts {
        state.write(part.as_bytes());
        state.write_u8(0xff);
    }
    mix(state.finish())
}

/// The finalizer of SplitMix64: neighboring inputs give unrelated outputs.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A pseudo-random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64, parts: &[&str]) -> Self {
        Rng(hash(seed, parts))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Returns an index into a list of this length; 0 if it is empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Returns true with a probability of 1 in `n`.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns one of the texts; empty if there are none.
    pub(crate) fn choose<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        let index = self.index(texts.len());
        texts.get(index).copied().unwrap_or_default()
    }
}

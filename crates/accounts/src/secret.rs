//! Keyed hashes: tokens and keys are known again by them, and cannot be read from them.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use exa_mcp_model::ids::RandomnessError;
use exa_mcp_model::to_hex;

/// Bytes of a secret: as many as the hash takes without folding them.
const LENGTH: usize = 64;

/// What hashes are keyed with.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// A keyed hash of a text.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Secret {
    /// A secret that nobody knows.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn random() -> Result<Self, RandomnessError> {
        Ok(Self::from(Self::random_bytes()?))
    }

    /// The bytes of a secret that is to be kept.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub(super) fn random_bytes() -> Result<[u8; LENGTH], RandomnessError> {
        let mut bytes = [0; LENGTH];
        exa_mcp_model::ids::fill_random(&mut bytes)?;
        Ok(bytes)
    }

    /// The secret that an operator chose.
    pub fn chosen(text: &str) -> Self {
        // Texts of any length become a whole key.
        let short = Self::from([0; LENGTH]);
        let mut bytes = [0; LENGTH];
        let (first, second) = bytes.split_at_mut(LENGTH / 2);
        first.copy_from_slice(&short.digest("first", text).0);
        second.copy_from_slice(&short.digest("second", text).0);
        Self::from(bytes)
    }

    /// The hash of a text. Hashes for different purposes have nothing in common.
    pub fn digest(&self, purpose: &str, text: &str) -> Digest {
        let mut mac = self.0.clone();
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        Digest(mac.finalize().into_bytes().into())
    }
}

impl From<[u8; LENGTH]> for Secret {
    fn from(bytes: [u8; LENGTH]) -> Self {
        Self(Hmac::new(&bytes.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Digest {
    /// A number by which to look for it; how long that takes tells nothing, since nobody can choose
    /// the hash of a text.
    pub(super) fn number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Compares in a time that does not depend on where they differ.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// All of it in letters, to be kept and read again.
    pub(super) fn written(&self) -> String {
        to_hex(&self.0)
    }

    /// Reads what was written.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * index..2 * index + 2)?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Half of it in letters, which is enough to tell people apart.
    pub fn name(&self) -> String {
        to_hex(self.0.iter().take(16))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_known_again_by_the_same_secret_only() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let hash = one.digest("token", "abc");
        assert!(hash.is(&one.digest("token", "abc")));
        assert!(!hash.is(&one.digest("token", "abd")));
        assert!(!hash.is(&one.digest("key", "abc")));
        assert!(!hash.is(&other.digest("token", "abc")));
        assert!(Digest::read(&hash.written()).unwrap().is(&hash));
        assert!(Digest::read("é").is_none() && Digest::read(&"x".repeat(64)).is_none());
        assert_eq!(hash.name().len(), 32);
        assert_eq!(hash.name(), one.digest("token", "abc").name());
    }

    #[test]
    fn a_chosen_secret_is_the_same_after_a_restart() {
        let hash = |secret: &str| Secret::chosen(secret).digest("key", "k").name();
        assert_eq!(hash("mine"), hash("mine"));
        assert_ne!(hash("mine"), hash("yours"));
        let long = "x".repeat(1000);
        assert_ne!(hash(&long), hash(&long[1..]));
    }

    #[test]
    fn nothing_is_shown() {
        let text = format!("{:?}", Secret::chosen("hunter2"));
        assert_eq!(text, "Secret");
    }
}

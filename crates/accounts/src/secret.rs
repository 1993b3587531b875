//! Keyed hashes, which identify tokens and keys without revealing them.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use exa_mcp_model::ids::RandomnessError;
use exa_mcp_model::to_hex;

/// The length of a secret in bytes: the block size of SHA-256.
const SECRET_LENGTH: usize = 64;

/// The key of the hashes.
#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

/// A keyed hash of a text.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Secret {
    /// Creates a random secret.
    ///
    /// # Errors
    /// The operating system does not provide random numbers.
    pub fn random() -> Result<Self, RandomnessError> {
        Ok(Self::from(Self::random_bytes()?))
    }

    /// Returns the bytes of a random secret that is to be stored.
    ///
    /// # Errors
    /// The operating system does not provide random numbers.
    pub(super) fn random_bytes() -> Result<[u8; SECRET_LENGTH], RandomnessError> {
        let mut bytes = [0; SECRET_LENGTH];
        exa_mcp_model::ids::fill_random(&mut bytes)?;
        Ok(bytes)
    }

    /// Derives a secret from a text of any length.
    pub fn from_passphrase(text: &str) -> Self {
        let fixed = Self::from([0; SECRET_LENGTH]);
        let mut bytes = [0; SECRET_LENGTH];
        let (first, second) = bytes.split_at_mut(SECRET_LENGTH / 2);
        first.copy_from_slice(&fixed.digest("first", text).0);
        second.copy_from_slice(&fixed.digest("second", text).0);
        Self::from(bytes)
    }

    /// Returns the hash of a text. Hashes for different purposes are unrelated.
    pub fn digest(&self, purpose: &str, text: &str) -> Digest {
        let mut mac = self.0.clone();
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(text.as_bytes());
        Digest(mac.finalize().into_bytes().into())
    }
}

impl From<[u8; SECRET_LENGTH]> for Secret {
    fn from(bytes: [u8; SECRET_LENGTH]) -> Self {
        Self(Hmac::new(&bytes.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Digest {
    /// Returns a hash-table key. Its lookup time reveals nothing, because nobody can choose the hash of a text.
    pub(super) fn bucket(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Compares in constant time.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// Returns the whole hash in hexadecimal.
    pub(super) fn to_hex(self) -> String {
        to_hex(&self.0)
    }

    /// Parses the result of `to_hex`.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
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

    /// Returns the first half in hexadecimal, which is enough for a unique id.
    pub fn short_hex(&self) -> String {
        to_hex(self.0.iter().take(16))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_secret_purpose_and_text() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let hash = one.digest("token", "abc");
        assert!(hash.is(&one.digest("token", "abc")));
        assert!(!hash.is(&one.digest("token", "abd")));
        assert!(!hash.is(&one.digest("key", "abc")));
        assert!(!hash.is(&other.digest("token", "abc")));
        assert!(Digest::from_hex(&hash.to_hex()).unwrap().is(&hash));
        assert!(Digest::from_hex("é").is_none() && Digest::from_hex(&"x".repeat(64)).is_none());
        assert_eq!(hash.short_hex().len(), 32);
        assert_eq!(hash.short_hex(), one.digest("token", "abc").short_hex());
    }

    #[test]
    fn secrets_from_passphrases_are_stable() {
        let hash = |secret: &str| {
            Secret::from_passphrase(secret)
                .digest("key", "k")
                .short_hex()
        };
        assert_eq!(hash("mine"), hash("mine"));
        assert_ne!(hash("mine"), hash("yours"));
        let long = "x".repeat(1000);
        assert_ne!(hash(&long), hash(&long[1..]));
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let text = format!("{:?}", Secret::from_passphrase("hunter2"));
        assert_eq!(text, "Secret");
    }
}

//! Identifiers that nobody can guess.

/// Letters and digits that are not mistaken for each other.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// How many letters an identifier has; each is five random bits.
const LENGTH: usize = 20;

/// The system has no randomness to give.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("The operating system gave no random numbers ({0}). Try again.")]
pub struct RandomnessError(getrandom::Error);

/// An identifier with a hundred random bits.
///
/// # Errors
/// The operating system gives no random numbers.
pub fn random_id() -> Result<String, RandomnessError> {
    let mut bytes = [0; LENGTH];
    fill_random(&mut bytes)?;
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).map(|b| char::from(*b));
    Ok(bytes.iter().filter_map(letter).collect())
}

/// Fills a buffer with random bytes.
///
/// # Errors
/// The operating system gives no random numbers.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), RandomnessError> {
    getrandom::fill(bytes).map_err(RandomnessError)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_are_long_and_differ() {
        let ids: HashSet<String> = (0..1000).map(|_| random_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert!(id.len() == LENGTH && id.bytes().all(|byte| ALPHABET.contains(&byte)));
        }
    }
}

//! Random identifiers.

/// Letters and digits that are easy to tell apart.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// The number of characters of an identifier; each has five random bits.
const LENGTH: usize = 20;

/// The operating system provides no random numbers.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("The operating system provided no random numbers ({0}). Try again.")]
pub struct RandomnessError(getrandom::Error);

/// Returns an identifier with 100 random bits.
///
/// # Errors
/// The operating system provides no random numbers.
pub fn random_id() -> Result<String, RandomnessError> {
    let mut bytes = [0; LENGTH];
    fill_random(&mut bytes)?;
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).map(|b| char::from(*b));
    Ok(bytes.iter().filter_map(letter).collect())
}

/// Fills a buffer with random bytes.
///
/// # Errors
/// The operating system provides no random numbers.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), RandomnessError> {
    getrandom::fill(bytes).map_err(RandomnessError)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_are_unique_and_well_formed() {
        let ids: HashSet<String> = (0..1000).map(|_| random_id().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert!(id.len() == LENGTH && id.bytes().all(|byte| ALPHABET.contains(&byte)));
        }
    }
}

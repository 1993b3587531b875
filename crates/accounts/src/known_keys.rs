//! Keys of clients that Exa has accepted: a made-up key costs nothing, a paid call does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use exa_mcp_model::{Identity, lock};

/// The most keys that are remembered; the one that was accepted longest ago makes way.
const MAX_KEYS: usize = 10_000;

/// How long a key is remembered after Exa last accepted it.
const REMEMBERED_FOR: Duration = Duration::from_secs(60 * 60);

/// Keys that Exa has accepted, by the identities of their holders. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys(Arc<Mutex<HashMap<Identity, Instant>>>);

impl KnownKeys {
    /// Returns whether Exa has accepted the key of this identity within the last hour.
    pub fn contains(&self, owner: &Identity) -> bool {
        let accepted = lock(&self.0).get(owner).copied();
        accepted.is_some_and(|at| at.elapsed() < REMEMBERED_FOR)
    }

    /// Returns what records that Exa accepted the key of this identity.
    pub fn proof(&self, owner: &Identity) -> KeyProof {
        KeyProof {
            keys: self.clone(),
            owner: owner.clone(),
        }
    }
}

/// Notes that Exa has accepted a key.
#[derive(Clone, Debug)]
pub struct KeyProof {
    keys: KnownKeys,
    owner: Identity,
}

impl KeyProof {
    /// Records that a call with the key was answered, and paid for.
    pub fn accept(&self) {
        let mut accepted = lock(&self.keys.0);
        if accepted.len() >= MAX_KEYS && !accepted.contains_key(&self.owner) {
            let oldest = accepted.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(owner, _)| owner.clone()) {
                accepted.remove(&oldest);
            }
        }
        accepted.insert(self.owner.clone(), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_known_for_a_while_after_it_was_accepted() {
        let keys = KnownKeys::default();
        let (one, other) = (Identity::key("one"), Identity::key("other"));
        let proof = keys.proof(&one);
        assert!(!keys.contains(&one));
        proof.accept();
        assert!(keys.contains(&one) && !keys.contains(&other));
        tokio::time::advance(REMEMBERED_FOR).await;
        assert!(!keys.contains(&one));
        proof.accept();
        for count in 0..MAX_KEYS {
            tokio::time::advance(Duration::from_millis(1)).await;
            keys.proof(&Identity::key(&count.to_string())).accept();
        }
        assert!(!keys.contains(&one));
        assert_eq!(lock(&keys.0).len(), MAX_KEYS);
    }
}

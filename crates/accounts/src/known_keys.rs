//! API keys of clients that Exa has accepted. Anyone can invent a key, but only a real one gets a response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use exa_mcp_model::{Identity, lock};

/// The maximum number of remembered keys; the one accepted longest ago is evicted.
const MAX_KEYS: usize = 10_000;

/// How long a key is remembered after Exa last accepted it.
const REMEMBERED_FOR: Duration = Duration::from_secs(60 * 60);

/// Keys that Exa has accepted, by the identity of their owner. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys(Arc<Mutex<HashMap<Identity, Instant>>>);

impl KnownKeys {
    /// Returns whether Exa has accepted the key of this identity within the last hour.
    pub fn contains(&self, owner: &Identity) -> bool {
        let accepted = lock(&self.0).get(owner).copied();
        accepted.is_some_and(|at| at.elapsed() < REMEMBERED_FOR)
    }

    /// Returns a handle that records that Exa accepted the key of this identity.
    pub fn proof(&self, owner: &Identity) -> KeyProof {
        KeyProof {
            keys: self.clone(),
            owner: owner.clone(),
        }
    }
}

/// Records that Exa has accepted a key.
#[derive(Clone, Debug)]
pub struct KeyProof {
    keys: KnownKeys,
    owner: Identity,
}

impl KeyProof {
    /// Records that a paid call with the key succeeded.
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
    async fn remembers_accepted_keys_for_an_hour() {
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

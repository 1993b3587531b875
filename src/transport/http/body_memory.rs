//! Memory for long bodies, of which no address can take all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use exa_mcp_accounts::ClientAddress;
use exa_mcp_model::lock;

/// Bodies up to this length need nothing of the shared memory.
pub(super) const FREE_BYTES: usize = 64 * 1024;

/// Bytes of long bodies at once, of everybody together, unless a single one may be longer.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The part of the memory that one address may take.
const PART_OF_ADDRESS: usize = 4;

/// Memory for long bodies. Clones share everything.
#[derive(Clone)]
pub(super) struct BodyMemory(Arc<Inner>);

struct Inner {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    bytes: usize,
    by_address: HashMap<ClientAddress, usize>,
}

/// Memory for one body, until this is dropped.
pub(super) struct ReservedMemory {
    memory: BodyMemory,
    address: ClientAddress,
    bytes: usize,
}

impl BodyMemory {
    /// Memory for bodies of which the longest has `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self(Arc::new(Inner {
            most: MAX_BYTES.max(longest.saturating_mul(PART_OF_ADDRESS)),
            taken: Mutex::default(),
        }))
    }

    /// Takes memory for a body, if there is enough.
    pub(super) fn reserve(&self, address: ClientAddress, bytes: usize) -> Option<ReservedMemory> {
        let mut taken = lock(&self.0.taken);
        let own = taken.by_address.get(&address).copied().unwrap_or_default();
        let own = own.checked_add(bytes)?;
        let all = taken.bytes.checked_add(bytes)?;
        if all > self.0.most || own > self.0.most / PART_OF_ADDRESS {
            return None;
        }
        taken.bytes = all;
        taken.by_address.insert(address, own);
        drop(taken);
        Some(ReservedMemory {
            memory: self.clone(),
            address,
            bytes,
        })
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        let mut taken = lock(&self.memory.0.taken);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        if let Some(own) = taken.by_address.get_mut(&self.address) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn no_address_takes_all() {
        let memory = BodyMemory::new(1_000);
        let address = |last| ClientAddress::from(IpAddr::from([192, 0, 2, last]));
        let quarter = MAX_BYTES / PART_OF_ADDRESS;
        let first = memory.reserve(address(1), quarter).unwrap();
        assert!(memory.reserve(address(1), 1).is_none());
        let others: Vec<_> = (2..=4)
            .map(|last| memory.reserve(address(last), quarter).unwrap())
            .collect();
        assert!(memory.reserve(address(5), 1).is_none());
        drop(first);
        assert!(memory.reserve(address(5), quarter).is_some());
        drop(others);
        let taken = memory.0.taken.lock().unwrap();
        assert!(taken.bytes == 0 && taken.by_address.is_empty());
    }

    #[test]
    fn the_longest_body_always_fits() {
        let longest = MAX_BYTES;
        let memory = BodyMemory::new(longest);
        assert!(
            memory
                .reserve(IpAddr::from([192, 0, 2, 1]).into(), longest)
                .is_some()
        );
    }
}

//! Memory for large request bodies, shared fairly between addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use exa_mcp_accounts::ClientAddress;
use exa_mcp_model::lock;

/// Bodies up to this size are not counted.
pub(super) const UNTRACKED_BYTES: usize = 64 * 1024;

/// The total size of large bodies at a time, unless a single body may be larger.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// One address may use this fraction of the memory: one fourth.
const ADDRESS_FRACTION: usize = 4;

/// Memory for large request bodies. Clones share the same state.
#[derive(Clone)]
pub(super) struct BodyMemory(Arc<Inner>);

struct Inner {
    capacity: usize,
    usage: Mutex<MemoryUsage>,
}

#[derive(Default)]
struct MemoryUsage {
    bytes: usize,
    by_address: HashMap<ClientAddress, usize>,
}

/// Reserved memory, released on drop.
pub(super) struct ReservedMemory {
    memory: BodyMemory,
    address: ClientAddress,
    bytes: usize,
}

impl BodyMemory {
    /// Creates a pool for bodies of up to `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self(Arc::new(Inner {
            capacity: MAX_BYTES.max(longest.saturating_mul(ADDRESS_FRACTION)),
            usage: Mutex::default(),
        }))
    }

    /// Reserves memory for a body, if enough is free.
    pub(super) fn reserve(&self, address: ClientAddress, bytes: usize) -> Option<ReservedMemory> {
        let mut usage = lock(&self.0.usage);
        let address_bytes = usage.by_address.get(&address).copied().unwrap_or_default();
        let address_bytes = address_bytes.checked_add(bytes)?;
        let total_bytes = usage.bytes.checked_add(bytes)?;
        if total_bytes > self.0.capacity || address_bytes > self.0.capacity / ADDRESS_FRACTION {
            return None;
        }
        usage.bytes = total_bytes;
        usage.by_address.insert(address, address_bytes);
        drop(usage);
        Some(ReservedMemory {
            memory: self.clone(),
            address,
            bytes,
        })
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        let mut usage = lock(&self.memory.0.usage);
        usage.bytes = usage.bytes.saturating_sub(self.bytes);
        if let Some(address_bytes) = usage.by_address.get_mut(&self.address) {
            *address_bytes = address_bytes.saturating_sub(self.bytes);
            if *address_bytes == 0 {
                usage.by_address.remove(&self.address);
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
    fn one_address_cannot_take_everything() {
        let memory = BodyMemory::new(1_000);
        let address = |last| ClientAddress::from(IpAddr::from([192, 0, 2, last]));
        let quarter = MAX_BYTES / ADDRESS_FRACTION;
        let first = memory.reserve(address(1), quarter).unwrap();
        assert!(memory.reserve(address(1), 1).is_none());
        let others: Vec<_> = (2..=4)
            .map(|last| memory.reserve(address(last), quarter).unwrap())
            .collect();
        assert!(memory.reserve(address(5), 1).is_none());
        drop(first);
        assert!(memory.reserve(address(5), quarter).is_some());
        drop(others);
        let usage = memory.0.usage.lock().unwrap();
        assert!(usage.bytes == 0 && usage.by_address.is_empty());
    }

    #[test]
    fn the_largest_body_always_fits() {
        let longest = MAX_BYTES;
        let memory = BodyMemory::new(longest);
        assert!(
            memory
                .reserve(IpAddr::from([192, 0, 2, 1]).into(), longest)
                .is_some()
        );
    }
}

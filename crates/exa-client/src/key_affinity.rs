//! Remembers which key of a pool last found a resource.

use std::collections::{HashMap, VecDeque};

/// The maximum number of remembered resources.
const MAX_RESOURCES: usize = 10_000;

/// The key that last found each resource.
#[derive(Default)]
pub(super) struct KeyAffinity {
    indexes: HashMap<String, usize>,
    /// Resources, oldest first.
    order: VecDeque<String>,
}

impl KeyAffinity {
    /// Returns the index of the key that last found a resource.
    pub(super) fn get(&self, resource: &str) -> Option<usize> {
        self.indexes.get(resource).copied()
    }

    pub(super) fn insert(&mut self, resource: &str, index: usize) {
        if self.indexes.insert(resource.to_owned(), index).is_some() {
            return;
        }
        self.order.push_back(resource.to_owned());
        if self.order.len() > MAX_RESOURCES
            && let Some(oldest) = self.order.pop_front()
        {
            self.indexes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_oldest_resources() {
        let mut affinity = KeyAffinity::default();
        for number in 0..MAX_RESOURCES + 10 {
            affinity.insert(&number.to_string(), 1);
        }
        assert_eq!(
            (affinity.indexes.len(), affinity.order.len()),
            (MAX_RESOURCES, MAX_RESOURCES)
        );
        assert_eq!((affinity.get("11"), affinity.get("9")), (Some(1), None));
    }
}

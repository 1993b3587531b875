//! Remembers which key of a pool last found a resource.

use std::collections::{HashMap, VecDeque};

/// How many resources the pool remembers the key of.
const MAX_REMEMBERED: usize = 10_000;

/// The key that last found each resource, the oldest first.
#[derive(Default)]
pub(super) struct KeyAffinity {
    places: HashMap<String, usize>,
    order: VecDeque<String>,
}

impl KeyAffinity {
    /// Returns the index of the key that last found a resource.
    pub(super) fn place(&self, resource: &str) -> Option<usize> {
        self.places.get(resource).copied()
    }

    pub(super) fn put(&mut self, resource: &str, place: usize) {
        if self.places.insert(resource.to_owned(), place).is_some() {
            return;
        }
        self.order.push_back(resource.to_owned());
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut affinity = KeyAffinity::default();
        for number in 0..MAX_REMEMBERED + 10 {
            affinity.put(&number.to_string(), 1);
        }
        assert_eq!(
            (affinity.places.len(), affinity.order.len()),
            (MAX_REMEMBERED, MAX_REMEMBERED)
        );
        assert_eq!((affinity.place("11"), affinity.place("9")), (Some(1), None));
    }
}

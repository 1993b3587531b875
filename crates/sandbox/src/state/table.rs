//! Objects by id, in the order they were made.

use std::collections::{BTreeMap, HashMap};

/// A table of objects.
pub(crate) struct Table<T> {
    rows: BTreeMap<u64, (String, T)>,
    places: HashMap<String, u64>,
    next: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            rows: BTreeMap::new(),
            places: HashMap::new(),
            next: 0,
        }
    }
}

impl<T> Table<T> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn insert(&mut self, id: &str, row: T) {
        let place = self.next;
        self.next += 1;
        self.put(place, id, row);
    }

    /// Puts a row back where [`Table::take`] found it.
    pub(crate) fn put(&mut self, place: u64, id: &str, row: T) {
        self.places.insert(id.to_owned(), place);
        self.rows.insert(place, (id.to_owned(), row));
    }

    /// Takes a row out together with its place, to work on it while the rest stays usable.
    pub(crate) fn take(&mut self, id: &str) -> Option<(u64, T)> {
        let place = self.places.remove(id)?;
        let (_, row) = self.rows.remove(&place)?;
        Some((place, row))
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<T> {
        self.take(id).map(|(_, row)| row)
    }

    /// Drops the oldest rows until at most `limit` are left.
    pub(crate) fn shrink_to(&mut self, limit: usize) {
        while self.rows.len() > limit {
            if let Some((_, (id, _))) = self.rows.pop_first() {
                self.places.remove(&id);
            }
        }
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.rows.get(self.places.get(id)?).map(|(_, row)| row)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.rows.get_mut(self.places.get(id)?).map(|(_, row)| row)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.rows.values().map(|(_, row)| row)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.values_mut().map(|(_, row)| row)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.rows.values().map(|(id, _)| id.as_str())
    }

    /// Rows with their places, oldest first.
    pub(crate) fn placed(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.rows.iter().map(|(place, (_, row))| (*place, row))
    }

    /// Keeps the rows that pass.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.rows.retain(|_, (id, row)| {
            let kept = keep(row);
            if !kept {
                self.places.remove(id);
            }
            kept
        });
    }
}

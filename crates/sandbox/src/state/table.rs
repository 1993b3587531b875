//! Objects by id, in creation order.

use std::collections::{BTreeMap, HashMap};

use crate::api_error::ApiError;

/// An object that requests refer to by id.
pub(crate) trait Resource {
    /// Name in "not found" messages.
    const NAME: &'static str;
    /// Tag of "not found" errors.
    const NOT_FOUND_TAG: &'static str = "NOT_FOUND";

    /// How much of the account's capacity the object uses.
    fn size(&self) -> usize {
        1
    }

    /// The error for an id that does not exist.
    fn not_found(id: &str) -> ApiError {
        let message = format!("{} {id} not found", Self::NAME);
        ApiError::new(404, Self::NOT_FOUND_TAG, message)
    }
}

/// A table of objects.
pub(crate) struct Table<T> {
    /// Rows by sequence number.
    rows: BTreeMap<u64, (String, T)>,
    sequence_by_id: HashMap<String, u64>,
    next_sequence: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            rows: BTreeMap::new(),
            sequence_by_id: HashMap::new(),
            next_sequence: 0,
        }
    }
}

impl<T> Table<T> {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows inserted so far.
    pub(crate) fn inserted(&self) -> u64 {
        self.next_sequence
    }

    pub(crate) fn insert(&mut self, id: &str, row: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.put(sequence, id, row);
    }

    /// Inserts a row, and removes the oldest ones while there are more than `max`.
    pub(crate) fn insert_bounded(&mut self, id: &str, row: T, max: usize) {
        self.insert(id, row);
        while self.rows.len() > max {
            if let Some((_, (id, _))) = self.rows.pop_first() {
                self.sequence_by_id.remove(&id);
            }
        }
    }

    /// Puts a row back where [`Table::take`] found it.
    pub(crate) fn put(&mut self, sequence: u64, id: &str, row: T) {
        self.sequence_by_id.insert(id.to_owned(), sequence);
        self.rows.insert(sequence, (id.to_owned(), row));
    }

    /// Takes a row out with its sequence number, so that the account can be borrowed meanwhile.
    pub(crate) fn take(&mut self, id: &str) -> Option<(u64, T)> {
        let sequence = self.sequence_by_id.remove(id)?;
        let (_, row) = self.rows.remove(&sequence)?;
        Some((sequence, row))
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<T> {
        self.take(id).map(|(_, row)| row)
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.sequence_by_id.contains_key(id)
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        let sequence = self.sequence_by_id.get(id)?;
        self.rows.get(sequence).map(|(_, row)| row)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        let sequence = self.sequence_by_id.get(id)?;
        self.rows.get_mut(sequence).map(|(_, row)| row)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.rows.values().map(|(_, row)| row)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.values_mut().map(|(_, row)| row)
    }

    /// Returns the ids of the rows that match.
    pub(crate) fn ids_where(&self, matches: impl Fn(&T) -> bool) -> Vec<String> {
        let rows = self.rows.values().filter(|(_, row)| matches(row));
        rows.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the rows with their sequence numbers, oldest first.
    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.rows.iter().map(|(number, (_, row))| (*number, row))
    }

    /// Removes the rows for which `keep` returns false.
    pub(crate) fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.rows.retain(|_, (id, row)| {
            let stays = keep(row);
            if !stays {
                self.sequence_by_id.remove(id);
            }
            stays
        });
    }
}

impl<T: Resource> Table<T> {
    /// Returns the row with this id, or a 404.
    pub(crate) fn find(&self, id: &str) -> Result<&T, ApiError> {
        self.get(id).ok_or_else(|| T::not_found(id))
    }

    /// Returns the row with this id for changes, or a 404.
    pub(crate) fn find_mut(&mut self, id: &str) -> Result<&mut T, ApiError> {
        self.get_mut(id).ok_or_else(|| T::not_found(id))
    }

    /// Removes the row with this id, or returns a 404.
    pub(crate) fn delete(&mut self, id: &str) -> Result<T, ApiError> {
        self.remove(id).ok_or_else(|| T::not_found(id))
    }

    /// The capacity that all rows use.
    pub(crate) fn size(&self) -> usize {
        self.values().map(T::size).sum()
    }
}

//! Typed views of lists and maps.

use std::fmt;
use std::marker::PhantomData;
use std::slice;

use serde_json::{Map, Value, map};

use super::View;

/// A list of `T` in a response.
///
/// Iteration skips items of another type; [`List::json`] has all of them.
pub struct List<'a, T> {
    items: &'a [Value],
    item: PhantomData<fn() -> T>,
}

impl<'a, T: View<'a>> List<'a, T> {
    /// Returns the number of items.
    pub fn len(self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(self) -> bool {
        self.items.is_empty()
    }

    /// Returns an item, or `None` if it is of another type.
    pub fn get(self, index: usize) -> Option<T> {
        T::read(self.items.get(index)?)
    }

    /// Returns the items.
    pub fn iter(self) -> ListIter<'a, T> {
        self.into_iter()
    }

    /// Returns the JSON of all items.
    pub fn json(self) -> &'a [Value] {
        self.items
    }
}

impl<'a, T> View<'a> for List<'a, T> {
    fn read(json: &'a Value) -> Option<Self> {
        let items = json.as_array()?;
        Some(Self {
            items,
            item: PhantomData,
        })
    }
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self {
            items: &[],
            item: PhantomData,
        }
    }
}

impl<T> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items).finish()
    }
}

impl<'a, T: View<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        ListIter {
            items: self.items.iter(),
            item: PhantomData,
        }
    }
}

/// Iterates over a [`List`].
#[derive(Debug)]
pub struct ListIter<'a, T> {
    items: slice::Iter<'a, Value>,
    item: PhantomData<fn() -> T>,
}

impl<'a, T: View<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.items.find_map(T::read)
    }
}

/// A map from text to `T` in a response.
///
/// Iteration skips values of another type; [`Entries::json`] has all of them.
pub struct Entries<'a, T> {
    entries: Option<&'a Map<String, Value>>,
    value: PhantomData<fn() -> T>,
}

impl<'a, T: View<'a>> Entries<'a, T> {
    /// Returns the number of entries.
    pub fn len(self) -> usize {
        self.entries.map_or(0, Map::len)
    }

    /// Returns whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key, or `None` if it is absent or of another type.
    pub fn get(self, key: &str) -> Option<T> {
        T::read(self.entries?.get(key)?)
    }

    /// Returns the entries.
    pub fn iter(self) -> EntriesIter<'a, T> {
        self.into_iter()
    }

    /// Returns the JSON of all entries.
    pub fn json(self) -> Option<&'a Map<String, Value>> {
        self.entries
    }
}

impl<'a, T> View<'a> for Entries<'a, T> {
    fn read(json: &'a Value) -> Option<Self> {
        let entries = Some(json.as_object()?);
        Some(Self {
            entries,
            value: PhantomData,
        })
    }
}

impl<T> Clone for Entries<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entries<'_, T> {}

impl<T> Default for Entries<'_, T> {
    fn default() -> Self {
        Self {
            entries: None,
            value: PhantomData,
        }
    }
}

impl<T> PartialEq for Entries<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl<T> fmt::Debug for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.entries.into_iter().flatten())
            .finish()
    }
}

impl<'a, T: View<'a>> IntoIterator for Entries<'a, T> {
    type Item = (&'a str, T);
    type IntoIter = EntriesIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        EntriesIter {
            entries: self.entries.map(Map::iter),
            value: PhantomData,
        }
    }
}

/// Iterates over [`Entries`].
#[derive(Debug)]
pub struct EntriesIter<'a, T> {
    entries: Option<map::Iter<'a>>,
    value: PhantomData<fn() -> T>,
}

impl<'a, T: View<'a>> Iterator for EntriesIter<'a, T> {
    type Item = (&'a str, T);

    fn next(&mut self) -> Option<Self::Item> {
        let read = |(key, value): (&'a String, &'a Value)| Some((key.as_str(), T::read(value)?));
        self.entries.as_mut()?.find_map(read)
    }
}

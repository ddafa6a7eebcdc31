//! Map with names as keys and lookups by borrowed names.

use hashbrown::HashTable;

use super::domain_set::Key;
use super::name::{Name, NameRef};

#[derive(Clone, Debug)]
pub(crate) struct NameMap<T> {
    key: Key,
    entries: HashTable<(u64, Name, T)>,
}

impl<T> NameMap<T> {
    pub(crate) fn new(key: Key) -> NameMap<T> {
        NameMap { key, entries: HashTable::new() }
    }

    pub(crate) fn get(&self, name: NameRef<'_>) -> Option<&T> {
        let found = self.entries.find(self.key.hash(name), |(_, have, _)| have.as_ref() == name);
        found.map(|(_, _, value)| value)
    }

    pub(crate) fn get_mut(&mut self, name: NameRef<'_>) -> Option<&mut T> {
        let found = self.entries.find_mut(self.key.hash(name), |(_, have, _)| have.as_ref() == name);
        found.map(|(_, _, value)| value)
    }

    /// Returns all entries in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, &T)> {
        self.entries.iter().map(|(_, name, value)| (name.as_ref(), value))
    }

    /// Returns the value of the name; inserts one if there is none.
    pub(crate) fn entry(&mut self, name: NameRef<'_>, make: impl FnOnce() -> T) -> &mut T {
        let hash = self.key.hash(name);
        let entry = self.entries.entry(hash, |(_, have, _)| have.as_ref() == name, |(hash, _, _)| *hash);
        &mut entry.or_insert_with(|| (hash, name.to_owned(), make())).into_mut().2
    }
}

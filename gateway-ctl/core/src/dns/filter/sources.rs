//! Loaded lists: the names of all in one table, and the other rules of each list beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_model::{Id, State};

use crate::dns::address_set::Nets;
use crate::dns::decision::Cause;
use crate::dns::domain_set::{Key, Table, Tag};
use crate::dns::lists::{Format, List, ListRule};

/// All loaded lists, by the id of the object that configures them. A clone shares them. A list is replaced without a
/// change to the others.
#[derive(Clone, Debug)]
pub struct Lists {
    table: Arc<Table>,
    loaded: BTreeMap<Id, LoadedList>,
}

#[derive(Clone, Debug)]
pub(super) struct LoadedList {
    pub tag: Tag,
    pub format: Format,
    pub rules: Arc<[ListRule]>,
    pub nets: Arc<Nets>,
}

/// All list numbers are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at most {} lists can be loaded", Tag::LAST)]
pub struct TooManyLists;

impl Lists {
    pub fn new(key: Key) -> Lists {
        Lists { table: Arc::new(Table::new(key)), loaded: BTreeMap::new() }
    }

    /// Returns the hash key that lists must be read with.
    pub fn key(&self) -> Key {
        *self.table.key()
    }

    /// Replaces the list of an object.
    pub fn put(&mut self, id: Id, list: List) -> Result<(), TooManyLists> {
        let tag = match self.loaded.get(&id) {
            Some(loaded) => loaded.tag,
            None => self.free_tag().ok_or(TooManyLists)?,
        };
        Arc::make_mut(&mut self.table).put(tag, &list.names);
        let loaded =
            LoadedList { tag, format: list.format, rules: list.rules.into(), nets: Arc::new(list.nets) };
        self.loaded.insert(id, loaded);
        Ok(())
    }

    /// Removes the list of an object.
    pub fn take(&mut self, id: Id) {
        if let Some(loaded) = self.loaded.remove(&id) {
            Arc::make_mut(&mut self.table).take(loaded.tag);
        }
    }

    /// Returns the ids of objects whose list is loaded.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.loaded.keys().copied()
    }

    /// Returns the number of names in all lists.
    pub fn names(&self) -> usize {
        self.table.len()
    }

    /// Returns the memory of the names, in bytes.
    pub fn memory(&self) -> usize {
        self.table.memory()
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn free_tag(&self) -> Option<Tag> {
        let taken: std::collections::BTreeSet<u16> =
            self.loaded.values().map(|loaded| loaded.tag.number()).collect();
        (1..=Tag::LAST).find(|number| !taken.contains(number)).and_then(Tag::new)
    }

    /// Returns the lists whose object exists and is enabled, in the order of their ids.
    pub(super) fn active<'a>(
        &'a self,
        state: &'a State,
    ) -> impl Iterator<Item = (Id, Cause, &'a LoadedList)> + 'a {
        self.loaded.iter().filter_map(|(id, loaded)| Some((*id, cause(*id, state)?, loaded)))
    }
}

/// Returns the kind of a list, from the object that configures it.
fn cause(id: Id, state: &State) -> Option<Cause> {
    if state.dns_allowlist.get(id).is_some_and(|list| list.enabled && list.url.is_some()) {
        Some(Cause::Allowlist)
    } else if state.dns_blocklist.get(id).is_some_and(|list| list.enabled && list.url.is_some()) {
        Some(Cause::Blocklist)
    } else {
        state.threat_feeds.get(id).filter(|feed| feed.enabled).map(|_| Cause::Feed)
    }
}

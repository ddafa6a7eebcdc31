//! Loaded lists: the names of all in one table, and the other rules of each list beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_model::kinds::{Device, DnsBlock};
use gateway_model::{Id, State};

use super::entry::ClientSelector;
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

    /// Returns the lists whose object exists and applies to clients, in the order of their ids.
    pub(super) fn active<'a>(&'a self, state: &'a State) -> impl Iterator<Item = ActiveList<'a>> + 'a {
        self.loaded.iter().filter_map(|(id, loaded)| {
            let (cause, clients) = cause_and_clients(*id, state)?;
            Some(ActiveList { id: *id, cause, clients, loaded })
        })
    }
}

/// A list that applies to clients.
pub(super) struct ActiveList<'a> {
    pub id: Id,
    pub cause: Cause,
    pub clients: ClientSelector,
    pub loaded: &'a LoadedList,
}

/// Returns the kind of a list and its clients, from the object that configures it.
fn cause_and_clients(id: Id, state: &State) -> Option<(Cause, ClientSelector)> {
    if state.dns_allowlist.get(id).is_some_and(|list| list.enabled && list.url.is_some()) {
        return Some((Cause::Allowlist, ClientSelector::default()));
    }
    if let Some(list) = state.dns_blocklist.get(id).filter(|list| list.url.is_some()) {
        let clients =
            if list.enabled { ClientSelector::default() } else { clients_of_telemetry_list(list, state)? };
        return Some((Cause::Blocklist, clients));
    }
    let feed = state.threat_feeds.get(id).filter(|feed| feed.enabled);
    feed.map(|_| (Cause::Feed, ClientSelector::default()))
}

/// Returns the devices whose privacy classes name a list. `None` if there are none.
fn clients_of_telemetry_list(list: &DnsBlock, state: &State) -> Option<ClientSelector> {
    let name = list.name.as_deref()?;
    let has_list = |device: &&Device| state.telemetry_lists_of(device).contains(name);
    let devices: Vec<Id> = state.devices.iter().filter(has_list).map(|device| device.meta.id).collect();
    (!devices.is_empty()).then(|| ClientSelector::devices(devices))
}

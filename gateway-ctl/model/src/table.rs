//! Rows of one kind: by id, by unique and shared keys, by slot. Cheap to clone, with a record of changes.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::cow::CowMap;
use crate::id::{Id, Revision};
use crate::resource::{Keys, Resource};

/// Slots are indices of per-CPU counters in the kernel: 1 up to this, exclusive. 0 means "none" there.
pub(crate) const SLOTS: u32 = 131_072;

/// Rows of one kind.
#[derive(Clone, Debug)]
pub struct Table<R> {
    rows: CowMap<Id, Arc<R>>,
    unique: CowMap<Arc<str>, Id>,
    shared: CowMap<(Arc<str>, Id), ()>,
    slots: CowMap<u32, Id>,
    next_slot: u32,
    revision: Revision,
    dirty: BTreeSet<Id>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Table {
            rows: CowMap::default(),
            unique: CowMap::default(),
            shared: CowMap::default(),
            slots: CowMap::default(),
            next_slot: 1,
            revision: Revision(0),
            dirty: BTreeSet::new(),
        }
    }
}

/// A unique key that another row has already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyClash {
    pub field: String,
    pub existing: Id,
}

impl<R: Resource> Table<R> {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Iterates in id order, which is the order of creation.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &R> {
        self.rows.iter().map(|(_, row)| row.as_ref())
    }

    pub fn arcs(&self) -> impl DoubleEndedIterator<Item = &Arc<R>> {
        self.rows.iter().map(|(_, row)| row)
    }

    /// Returns the ids of the rows that do not lie at the same place in memory in the other table. Rows are shared until
    /// they change, so few of most tables are to be compared.
    pub fn not_in<'a>(&'a self, other: &'a Table<R>) -> impl Iterator<Item = Id> + use<'a, R> {
        let mut others = other.rows.iter().peekable();
        self.rows.iter().filter_map(move |(id, row)| {
            while others.next_if(|(other, _)| *other < id).is_some() {}
            let is_same = others.peek().is_some_and(|(other, have)| *other == id && Arc::ptr_eq(have, row));
            (!is_same).then_some(*id)
        })
    }

    pub fn get(&self, id: Id) -> Option<&Arc<R>> {
        self.rows.get(&id)
    }

    pub fn contains(&self, id: Id) -> bool {
        self.rows.contains_key(&id)
    }

    /// Returns the row with a unique key (see [`Resource::keys`]).
    pub fn by_key(&self, key: &str) -> Option<&Arc<R>> {
        self.get(*self.unique.get(key)?)
    }

    /// All rows with this shared key, in the order of the ids.
    pub fn with_key<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a Arc<R>> + use<'a, R> {
        let key: Arc<str> = key.into();
        let from = (key.clone(), Id::NIL);
        self.shared
            .range_from(Bound::Included(&from))
            .take_while(move |((have, _), ())| *have == key)
            .filter_map(|((_, id), ())| self.get(*id))
    }

    /// The row that has this slot, lifted or not.
    pub(crate) fn slot_owner(&self, slot: u32) -> Option<Id> {
        self.slots.get(&slot).copied()
    }

    /// Returns the revision of the last change of any row: the version of the collection.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Ids of the rows that were written or removed in this draft.
    pub fn dirty(&self) -> &BTreeSet<Id> {
        &self.dirty
    }

    pub fn next_slot(&self) -> u32 {
        self.next_slot
    }

    pub(crate) fn begin(&mut self) {
        self.dirty.clear();
    }

    /// The next free slot, without taking it. Slots are given out in a circle, so that a number is not
    /// soon taken again.
    pub(crate) fn free_slot(&self) -> Option<u32> {
        if self.rows.len() + 1 >= R::SLOTS as usize {
            return None;
        }
        let next = if self.next_slot >= R::SLOTS { 1 } else { self.next_slot.max(1) };
        (next..R::SLOTS).chain(1..next).find(|slot| !self.slots.contains_key(slot))
    }

    /// Returns the unique key of `row` that another row has.
    pub(crate) fn key_clash(&self, row: &R) -> Option<KeyClash> {
        let id = row.meta().id;
        let keys = Keys::of(row);
        keys.unique.iter().find_map(|(field, key)| {
            let existing = *self.unique.get(key.as_ref())?;
            (existing != id).then(|| KeyClash { field: field.clone(), existing })
        })
    }

    /// Writes the row, which must not clash, at the revision of its metadata.
    pub(crate) fn put(&mut self, row: R) -> Result<(), KeyClash> {
        if let Some(clash) = self.key_clash(&row) {
            return Err(clash);
        }
        let id = row.meta().id;
        if let Some(old) = self.rows.get(&id).cloned() {
            self.unindex(&old);
        }
        let keys = Keys::of(&row);
        for (_, key) in keys.unique {
            self.unique.insert(key, id);
        }
        for key in keys.shared {
            self.shared.insert((key, id), ());
        }
        self.slots.insert(row.meta().slot, id);
        if row.meta().slot >= self.next_slot {
            self.next_slot = row.meta().slot + 1;
        }
        self.revision = self.revision.max(row.meta().revision);
        self.rows.insert(id, Arc::new(row));
        self.dirty.insert(id);
        Ok(())
    }

    pub(crate) fn take(&mut self, id: Id, revision: Revision) -> Option<Arc<R>> {
        let row = self.rows.remove(&id)?;
        self.unindex(&row);
        self.slots.remove(&row.meta().slot);
        self.revision = self.revision.max(revision);
        self.dirty.insert(id);
        Some(row)
    }

    /// Takes the row out for a while: its slot stays its own, and the table counts as unchanged.
    pub(crate) fn detach(&mut self, id: Id) -> Option<Arc<R>> {
        let row = self.rows.remove(&id)?;
        self.unindex(&row);
        Some(row)
    }

    /// Puts a detached row back as it was, and the version of the collection with it.
    pub(crate) fn reattach(&mut self, row: Arc<R>, revision: Revision) -> Result<(), KeyClash> {
        if let Some(clash) = self.key_clash(&row) {
            return Err(clash);
        }
        let id = row.meta().id;
        if let Some(old) = self.rows.get(&id).cloned() {
            self.unindex(&old);
        }
        let keys = Keys::of(row.as_ref());
        for (_, key) in keys.unique {
            self.unique.insert(key, id);
        }
        for key in keys.shared {
            self.shared.insert((key, id), ());
        }
        self.rows.insert(id, row);
        self.dirty.remove(&id);
        self.revision = revision;
        Ok(())
    }

    /// Takes a write back: the row, the version of the collection, and whether the row was written before in this
    /// draft.
    pub(crate) fn restore(&mut self, row: Arc<R>, revision: Revision, dirty: bool) -> Result<(), KeyClash> {
        let id = row.meta().id;
        self.reattach(row, revision)?;
        if dirty {
            self.dirty.insert(id);
        }
        Ok(())
    }

    /// Gives up a detached row for good.
    pub(crate) fn discard(&mut self, id: Id, slot: u32, revision: Revision) {
        self.slots.remove(&slot);
        self.revision = self.revision.max(revision);
        self.dirty.insert(id);
    }

    /// Restores what the rows do not contain for the store: the next slot, and the version of the collection (deletions
    /// leave no row).
    pub fn resume(&mut self, next_slot: u32, revision: Revision) {
        self.next_slot = self.next_slot.max(next_slot);
        self.revision = self.revision.max(revision);
        self.dirty.clear();
    }

    fn unindex(&mut self, row: &R) {
        let id = row.meta().id;
        let keys = Keys::of(row);
        for (_, key) in keys.unique {
            self.unique.remove(key.as_ref());
        }
        for key in keys.shared {
            self.shared.remove(&(key, id));
        }
    }
}

impl<'a, R: Resource> IntoIterator for &'a Table<R> {
    type Item = &'a R;
    type IntoIter = Box<dyn Iterator<Item = &'a R> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Device;
    use crate::resource::Meta;

    fn device(id: u128, name: &str) -> Device {
        let mut device = Device { name: name.to_owned(), ..Device::default() };
        device.meta = Meta { id: Id::from_u128(id), ..Meta::default() };
        device
    }

    #[test]
    fn rows_that_two_tables_do_not_share_are_found() {
        let mut before = Table::default();
        for id in [2, 4, 6, 8] {
            before.put(device(id, "a")).unwrap();
        }
        let mut after = before.clone();
        let ids = |rows: &[u128]| rows.iter().map(|id| Id::from_u128(*id)).collect::<Vec<_>>();
        assert_eq!(after.not_in(&before).collect::<Vec<_>>(), ids(&[]));
        after.put(device(1, "new")).unwrap();
        after.put(device(4, "changed")).unwrap();
        after.take(Id::from_u128(6), Revision(1));
        after.put(device(9, "new")).unwrap();
        assert_eq!(after.not_in(&before).collect::<Vec<_>>(), ids(&[1, 4, 9]));
        assert_eq!(before.not_in(&after).collect::<Vec<_>>(), ids(&[4, 6]));
        assert_eq!(before.not_in(&Table::default()).collect::<Vec<_>>(), ids(&[2, 4, 6, 8]));
    }
}

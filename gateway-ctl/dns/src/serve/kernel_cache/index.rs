//! Index of the entries in the kernel cache, with the log record of each.

use gateway_common::maps::{DnsCache, MapSpec as _};
use gateway_common::wire::{DnsCacheKey, DnsCacheValue};
use hashbrown::HashMap;

use crate::query_log::RecordTemplate;

pub(super) struct Entry {
    pub id: u64,
    pub template: RecordTemplate,
    /// Rarely read, and boxed to keep the entry small.
    end: Box<Expiry>,
}

struct Expiry {
    key: DnsCacheKey,
    until: u64,
}

#[derive(Default)]
pub(super) struct CacheIndex {
    slots: Vec<Option<Entry>>,
    free: Vec<u16>,
    /// Slot index of the newest entry of each key.
    newest: HashMap<DnsCacheKey, u16, rapidhash::fast::RandomState>,
    serial: u64,
}

/// Bits of an id that hold the slot index.
const INDEX_BITS: u32 = 16;
/// Time that an entry stays in the index after its end, for hits reported late.
const GRACE_NS: u64 = 1_000_000_000;

const _: () = assert!(DnsCache::CAPACITY <= 1 << INDEX_BITS);

impl CacheIndex {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds an answer with its log record and sets its id. An answer with the same key and record keeps its id. None:
    /// the index is full.
    pub(super) fn add(
        &mut self,
        key: &DnsCacheKey,
        value: &mut DnsCacheValue,
        template: RecordTemplate,
    ) -> Option<()> {
        let known = self.newest.get(key).and_then(|slot_index| self.slots[usize::from(*slot_index)].as_mut());
        if let Some(known) = known.filter(|known| known.template.is_same(&template)) {
            known.end.until = known.end.until.max(value.until);
            (value.id, value.tail) = (known.id, known.id);
            return Some(());
        }
        let slot_index = match self.free.pop() {
            Some(slot_index) => slot_index,
            None if self.slots.len() < DnsCache::CAPACITY as usize => {
                self.slots.push(None);
                u16::try_from(self.slots.len() - 1).ok()?
            }
            None => return None,
        };
        self.serial += 1;
        let id = self.serial << INDEX_BITS | u64::from(slot_index);
        (value.id, value.tail) = (id, id);
        let end = Box::new(Expiry { key: *key, until: value.until });
        self.slots[usize::from(slot_index)] = Some(Entry { id, template, end });
        self.newest.insert(*key, slot_index);
        Some(())
    }

    pub(super) fn find(&self, id: u64) -> Option<&Entry> {
        let slot_index = usize::try_from(id & ((1 << INDEX_BITS) - 1)).ok()?;
        self.slots.get(slot_index)?.as_ref().filter(|entry| entry.id == id)
    }

    /// Removes expired entries. Returns those of their keys that have no newer entry.
    pub(super) fn sweep(&mut self, now: u64) -> Vec<DnsCacheKey> {
        let mut gone = Vec::new();
        for (slot_index, slot) in (0..).zip(&mut self.slots) {
            if slot.as_ref().is_none_or(|entry| now < entry.end.until.saturating_add(GRACE_NS)) {
                continue;
            }
            let Some(entry) = slot.take() else { continue };
            self.free.push(slot_index);
            if self.newest.get(&entry.end.key) == Some(&slot_index) {
                self.newest.remove(&entry.end.key);
                gone.push(entry.end.key);
            }
        }
        gone
    }
}

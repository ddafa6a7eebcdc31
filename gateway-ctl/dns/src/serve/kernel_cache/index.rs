//! What the dataplane was given to answer by itself, with all that the log says of it.

use gateway_common::maps::{Answers, MapSpec as _};
use gateway_common::wire::{AnswerKey, AnswerValue};
use hashbrown::HashMap;

use crate::query_log::Draft;

pub struct Entry {
    pub id: u64,
    pub draft: Draft,
    /// Seldom looked at.
    end: Box<End>,
}

struct End {
    key: AnswerKey,
    until: u64,
}

#[derive(Default)]
pub struct Kept {
    slots: Vec<Option<Entry>>,
    free: Vec<u16>,
    /// The newest of each key.
    places: HashMap<AnswerKey, u16, rapidhash::fast::RandomState>,
    serial: u64,
}

/// Bits of an id that say the place.
const PLACE: u32 = 16;
/// Nanoseconds that an entry is known after its end: what was given out of it may still be told of.
const GRACE: u64 = 1_000_000_000;

const _: () = assert!(Answers::CAPACITY <= 1 << PLACE);

impl Kept {
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Numbers an answer; none when there is no room. One that is told again has the same number.
    pub fn add(&mut self, key: &AnswerKey, value: &mut AnswerValue, draft: Draft) -> Option<()> {
        let known = self.places.get(key).and_then(|place| self.slots[usize::from(*place)].as_mut());
        if let Some(known) = known.filter(|known| known.draft.is_same(&draft)) {
            known.end.until = known.end.until.max(value.until);
            (value.id, value.tail) = (known.id, known.id);
            return Some(());
        }
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.slots.len() < Answers::CAPACITY as usize => {
                self.slots.push(None);
                u16::try_from(self.slots.len() - 1).ok()?
            }
            None => return None,
        };
        self.serial += 1;
        let id = self.serial << PLACE | u64::from(place);
        (value.id, value.tail) = (id, id);
        let end = Box::new(End { key: *key, until: value.until });
        self.slots[usize::from(place)] = Some(Entry { id, draft, end });
        self.places.insert(*key, place);
        Some(())
    }

    pub fn find(&self, id: u64) -> Option<&Entry> {
        let place = usize::try_from(id & ((1 << PLACE) - 1)).ok()?;
        self.slots.get(place)?.as_ref().filter(|entry| entry.id == id)
    }

    /// Forgets what has ended; the keys that no newer entry has.
    pub fn sweep(&mut self, now: u64) -> Vec<AnswerKey> {
        let mut gone = Vec::new();
        for (place, slot) in (0..).zip(&mut self.slots) {
            if slot.as_ref().is_none_or(|entry| now < entry.end.until.saturating_add(GRACE)) {
                continue;
            }
            let Some(entry) = slot.take() else { continue };
            self.free.push(place);
            if self.places.get(&entry.end.key) == Some(&place) {
                self.places.remove(&entry.end.key);
                gone.push(entry.end.key);
            }
        }
        gone
    }
}

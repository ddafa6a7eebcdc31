//! Set of listed names. A lookup returns the lists that have a name or a parent of it, with their effects.
//!
//! An entry consists of 59 bits of a keyed hash of the name, the number of its list, its effect and its form. The first
//! bits of the hash select one of 4096 shards; all else is one word in that shard. The words of a shard are in
//! ascending order with gaps (linear probing). A lookup reads one or two cache lines.
//!
//! A list is replaced by a merge: shards are copied, never changed. Readers of the previous table continue to read it.
//! With a million entries, a name that is not listed has the hash of a listed one with a probability of 1 in 5 · 10^11.
//! Without the key, colliding names cannot be predicted.
//!
//! Decision 0123 says why.

mod names;

use std::sync::Arc;

pub use names::{Effect, Form, Key, NameCollector, Names, compared};
use names::{SAYS, SAYS_BITS, depth};

use super::name::NameRef;

/// Number of a list in the table: 1 to [`Tag::LAST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u16);

impl Tag {
    pub const LAST: u16 = (1 << TAG_BITS) - 1;

    pub const fn new(number: u16) -> Option<Tag> {
        if number == 0 || number > Tag::LAST { None } else { Some(Tag(number)) }
    }

    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the number in a word of the table.
    const fn of(word: u64) -> Tag {
        Tag((word >> SAYS_BITS) as u16 & Tag::LAST)
    }
}

const SHARD_BITS: u32 = 12;
const TAG_BITS: u32 = 12;
/// Bits of a table word that are not part of the hash.
const LOW: u64 = (1 << (SAYS_BITS + TAG_BITS)) - 1;

/// Slots that are compared at once, from the home slot of a word on. Few words are further away.
const WINDOW: usize = 8;
/// Names that are looked up at once.
const LANES: usize = 8;
/// Suffixes that are loaded at once.
const PREFETCHED: usize = 64;
/// Suffixes of nearly all names, and of any name.
const FEW_SUFFIXES: usize = 12;
const MAX_SUFFIXES: usize = 128;

/// Words of one shard, in ascending order. Gaps are zero.
#[derive(Clone, Debug)]
struct Shard {
    slots: Arc<[u64]>,
    /// Number of home slots. Words that overflow lie behind them.
    homes: u32,
}

impl Shard {
    /// Builds a shard with four of five slots occupied, and a whole window behind the last home slot.
    fn of(sorted: &[u64], room: &mut Vec<u64>) -> Shard {
        let homes = sorted.len() + sorted.len() / 4 + 1;
        let homes = u32::try_from(homes).unwrap_or(u32::MAX);
        room.clear();
        for word in sorted {
            room.resize(room.len().max(home(*word, homes)), 0);
            room.push(*word);
        }
        if !sorted.is_empty() {
            room.resize(room.len().max(homes as usize) + WINDOW - 1, 0);
        }
        Shard { slots: room.as_slice().into(), homes }
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().copied().filter(|word| *word != 0)
    }
}

/// Returns the home slot of a word. It ascends with the hash.
fn home(word: u64, homes: u32) -> usize {
    (((word >> 32) * u64::from(homes)) >> 32) as usize
}

/// State of one list in the table.
#[derive(Clone, Copy, Debug)]
struct ListState {
    tag: Tag,
    names: usize,
    depths: u128,
}

/// Names of all lists. A clone shares unchanged shards with its original.
#[derive(Clone, Debug)]
pub struct Table {
    key: Key,
    shards: Vec<Shard>,
    lists: Vec<ListState>,
    /// Bit n: there are names with n labels.
    depths: u128,
}

/// Name of a list: its hash, without the bits that are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedName {
    pub hash: u64,
    pub tag: Tag,
    pub effect: Effect,
    pub form: Form,
}

/// Match of a list: it has the queried name or a parent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    pub tag: Tag,
    pub effect: Effect,
    /// The name in the list.
    pub name: NameRef<'a>,
    pub form: Form,
}

impl Table {
    pub fn new(key: Key) -> Table {
        let empty = Shard { slots: Arc::default(), homes: 0 };
        Table { key, shards: vec![empty; 1 << SHARD_BITS], lists: Vec::new(), depths: 0 }
    }

    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Returns the number of names in all lists. A name in two lists counts twice.
    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.names).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.depths == 0
    }

    /// Reports whether a list has the root.
    pub(super) const fn has_root(&self) -> bool {
        self.depths & 1 != 0
    }

    /// Returns the memory used, in bytes.
    pub fn memory(&self) -> usize {
        let words: usize = self.shards.iter().map(|shard| shard.slots.len()).sum();
        size_of::<Table>() + self.shards.capacity() * (size_of::<Shard>() + 16) + words * size_of::<u64>()
    }

    /// Replaces the names of a list.
    pub fn put(&mut self, tag: Tag, names: &Names) {
        let had = self.lists.iter().any(|list| list.tag == tag);
        if !had && names.is_empty() {
            return;
        }
        self.lists.retain(|list| list.tag != tag);
        if !names.is_empty() {
            self.lists.push(ListState { tag, names: names.len(), depths: names.depths });
        }
        self.depths = self.lists.iter().fold(0, |depths, list| depths | list.depths);
        let (mut rest, mut merged, mut room) = (names.words.as_slice(), Vec::new(), Vec::new());
        for (number, shard) in (0u64..).zip(&mut self.shards) {
            let mine = rest.partition_point(|word| word >> (64 - SHARD_BITS) == number);
            let (new, others) = rest.split_at(mine);
            rest = others;
            let is_old = |word: u64| (word >> SAYS_BITS) as u16 & Tag::LAST == tag.0;
            if new.is_empty() && !(had && shard.words().any(is_old)) {
                continue;
            }
            merge(shard.words().filter(|word| !is_old(*word)), new, tag, &mut merged);
            *shard = Shard::of(&merged, &mut room);
        }
    }

    /// Removes a list.
    pub fn take(&mut self, tag: Tag) {
        self.put(tag, &Names::default());
    }

    /// Returns the names of all lists, in the order of their hashes.
    pub fn names(&self) -> impl Iterator<Item = ListedName> + '_ {
        (0u64..).zip(&self.shards).flat_map(|(number, shard)| {
            shard.words().map(move |word| ListedName {
                hash: number << (64 - SHARD_BITS) | (word & !LOW) >> SHARD_BITS,
                tag: Tag::of(word),
                effect: Effect::of(word >> 2),
                form: Form::of(word),
            })
        })
    }

    /// Calls `found` for each list that has the name or a parent of it, longest names first.
    pub fn find<'a>(&self, name: NameRef<'a>, found: impl FnMut(Hit<'a>)) {
        self.walk(name, 0, |_, _, _| {}, found);
    }

    /// Works as [`Table::find`], and calls `each` for the names whose number of labels is a bit of `also`. The
    /// arguments of `each` are the hash, the name, and whether it is the whole name.
    pub(super) fn walk<'a>(
        &self,
        name: NameRef<'a>,
        also: u128,
        mut each: impl FnMut(u64, NameRef<'a>, bool),
        mut found: impl FnMut(Hit<'a>),
    ) {
        let mut lanes = [(0, NameRef::ROOT); LANES];
        let (mut count, mut maybe, mut left, whole) = (0, 0u32, depth(name), name.wire().len());
        let (mut few, mut any);
        let hashes: &mut [u64] = if (left as usize) < FEW_SUFFIXES {
            few = [0; FEW_SUFFIXES];
            &mut few
        } else {
            any = [0; MAX_SUFFIXES];
            &mut any
        };
        self.key.listed().hash_suffixes(name.wire(), hashes);
        for (hash, suffix) in hashes.iter().copied().zip(name.suffixes()) {
            let (here, there) = (self.depths >> left & 1 != 0, also >> left & 1 != 0);
            left = left.saturating_sub(1);
            if !here && !there {
                continue;
            }
            if there {
                each(hash, suffix, suffix.wire().len() == whole);
            }
            if here {
                // No branch depends on these reads, so the reads of all names overlap.
                maybe |= u32::from(self.may_have(hash)) << count;
                lanes[count] = (hash, suffix);
                count += 1;
            }
            if count == LANES {
                self.probe_lanes(&lanes, maybe, whole, &mut found);
                (count, maybe) = (0, 0);
            }
        }
        self.probe_lanes(&lanes, maybe, whole, &mut found);
    }

    fn probe_lanes<'a>(
        &self,
        lanes: &[(u64, NameRef<'a>); LANES],
        mut maybe: u32,
        whole: usize,
        found: &mut impl FnMut(Hit<'a>),
    ) {
        while maybe != 0 {
            let (hash, name) = lanes[maybe.trailing_zeros() as usize % LANES];
            maybe &= maybe - 1;
            self.probe(hash, name, name.wire().len() == whole, found);
        }
    }

    /// Loads into the cache what a lookup of these names in wire format reads. No read waits for another, so all of them
    /// take hardly longer than one. Names behind the first few are left out.
    pub fn prefetch<'a>(&self, names: impl Iterator<Item = &'a [u8]>) {
        let (mut hashes, mut used) = ([0; PREFETCHED], 0);
        for name in names {
            let start = used;
            let end = start + self.key.listed().hash_suffixes(name, &mut hashes[start..]);
            for index in start..end {
                let labels = end - 1 - index;
                // Others are not looked up.
                if self.depths >> labels & 1 != 0 {
                    hashes[used] = hashes[index];
                    used += 1;
                }
            }
        }
        let words = hashes[..used].iter().filter_map(|hash| self.window(*hash));
        std::hint::black_box(words.fold(0, |sum, window| sum ^ window[0] ^ window[WINDOW - 1]));
    }

    /// Returns the words from the home slot of a hash on; `None` if the shard is empty.
    fn window(&self, hash: u64) -> Option<&[u64; WINDOW]> {
        let shard = &self.shards[(hash >> (64 - SHARD_BITS)) as usize];
        let want = hash << SHARD_BITS & !LOW;
        shard.slots.get(home(want, shard.homes)..).and_then(<[u64]>::first_chunk::<WINDOW>)
    }

    /// Returns false if no list has the name with this hash.
    fn may_have(&self, hash: u64) -> bool {
        let want = hash << SHARD_BITS & !LOW;
        let Some(window) = self.window(hash) else { return false };
        let here = window.iter().fold(false, |here, word| here | (word & !LOW == want));
        let last = window[WINDOW - 1];
        here | (last != 0) & (last & !LOW < want)
    }

    /// Calls `found` for each list that has the name with this hash, for the name itself or for a subdomain.
    fn probe<'a>(&self, hash: u64, name: NameRef<'a>, itself: bool, found: &mut impl FnMut(Hit<'a>)) {
        let shard = &self.shards[(hash >> (64 - SHARD_BITS)) as usize];
        let want = hash << SHARD_BITS & !LOW;
        for word in shard.slots.get(home(want, shard.homes)..).unwrap_or_default() {
            let form = Form::of(*word);
            match (word & !LOW).cmp(&want) {
                _ if *word == 0 => return,
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal if form.is_for(itself) => {
                    found(Hit { tag: Tag::of(*word), effect: Effect::of(word >> 2), name, form });
                }
                std::cmp::Ordering::Equal => {}
                std::cmp::Ordering::Greater => return,
            }
        }
    }
}

/// Merges the words of the shard and of the list in ascending order.
fn merge(old: impl Iterator<Item = u64>, new: &[u64], tag: Tag, merged: &mut Vec<u64>) {
    merged.clear();
    let tagged = |word: &u64| word << SHARD_BITS & !LOW | u64::from(tag.0) << SAYS_BITS | word & SAYS;
    let mut new = new.iter().map(tagged).peekable();
    for word in old {
        while let Some(first) = new.next_if(|first| *first < word) {
            merged.push(first);
        }
        merged.push(word);
    }
    merged.extend(new);
}

#[cfg(test)]
mod tests;

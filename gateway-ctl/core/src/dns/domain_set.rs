//! Set of listed names. A lookup returns the lists that have a name or a parent of it, with their effects.
//!
//! An entry consists of 59 bits of a keyed hash of the name, the number of its list, its effect and its form. The first
//! bits of the hash select one of 4096 shards; all else is one word in that shard. The words of a shard are in
//! ascending order with gaps (linear probing). A lookup reads one or two cache lines.
//!
//! A list is replaced by a merge: shards are copied, never changed. Readers of the previous table continue to read it.
//! The probability that two names share a hash is 1 in 10^11 for a million entries. Without the key, colliding names
//! cannot be predicted.

use std::fmt;
use std::sync::Arc;

use gateway_common::dns_filter::UNUSED_BITS;
use gateway_common::wire::NameKey;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use super::name::NameRef;

/// Key of the hashes. It prevents attackers from constructing collisions.
#[derive(Clone, Copy)]
pub struct Key {
    /// Of maps with names as keys, each of which has one name to look up.
    secrets: RapidSecrets,
    /// Of sets of listed names, here and in the kernel.
    listed: NameKey,
}

impl Key {
    pub const fn new(random: u64) -> Key {
        Key { secrets: RapidSecrets::seed(random), listed: NameKey::new(random) }
    }

    pub const fn listed(&self) -> &NameKey {
        &self.listed
    }

    pub(super) fn hash(&self, name: NameRef<'_>) -> u64 {
        rapidhash_v3_seeded(name.wire(), &self.secrets)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Names that an entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The name itself, without its subdomains: a line of a hosts file.
    Itself = 1,
    /// Subdomains only.
    Below = 2,
    Both = 3,
}

impl Form {
    pub const fn is_for(self, itself: bool) -> bool {
        self as u8 & if itself { 1 } else { 2 } != 0
    }

    const fn of(bits: u64) -> Form {
        match bits & 3 {
            1 => Form::Itself,
            2 => Form::Below,
            _ => Form::Both,
        }
    }
}

/// Effect of a list on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    Block = 0,
    Allow = 1,
    /// `$important`: overrides exceptions too.
    BlockAlways = 2,
    AllowAlways = 3,
    Nxdomain = 4,
    NoData = 5,
    Refuse = 6,
}

impl Effect {
    pub const fn allows(self) -> bool {
        matches!(self, Effect::Allow | Effect::AllowAlways)
    }

    pub const fn is_important(self) -> bool {
        matches!(self, Effect::BlockAlways | Effect::AllowAlways)
    }

    const fn of(bits: u64) -> Effect {
        match bits & 7 {
            1 => Effect::Allow,
            2 => Effect::BlockAlways,
            3 => Effect::AllowAlways,
            4 => Effect::Nxdomain,
            5 => Effect::NoData,
            6 => Effect::Refuse,
            _ => Effect::Block,
        }
    }
}

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
/// Bits of effect and form.
const SAYS_BITS: u32 = 5;
const SAYS: u64 = (1 << SAYS_BITS) - 1;
const _: () = assert!(SAYS_BITS == UNUSED_BITS);
/// Bits of a table word that are not part of the hash.
const LOW: u64 = (1 << (SAYS_BITS + TAG_BITS)) - 1;

/// Returns a hash of a listed name without the bits that are not compared.
pub(super) const fn compared(hash: u64) -> u64 {
    hash & !SAYS
}

/// Slots that are compared at once, from the home slot of a word on. Few words are further away.
const WINDOW: usize = 8;
/// Names that are looked up at once.
const LANES: usize = 8;
/// Suffixes of nearly all names, and of any name.
const FEW_SUFFIXES: usize = 12;
const MAX_SUFFIXES: usize = 128;

/// Names of one list before the merge into the table: hashes in ascending order, each with form and effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    words: Vec<u64>,
    depths: u128,
}

impl Names {
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Collector of the names of one list, in any order.
#[derive(Debug)]
pub struct NameCollector {
    key: Key,
    words: Vec<u64>,
    depths: u128,
}

impl NameCollector {
    pub fn new(key: Key) -> NameCollector {
        NameCollector { key, words: Vec::new(), depths: 0 }
    }

    pub fn add(&mut self, name: NameRef<'_>, form: Form, effect: Effect) {
        self.depths |= 1 << depth(name);
        self.words.push(compared(self.key.listed.hash(name.wire())) | (effect as u64) << 2 | form as u64);
    }

    pub fn finish(mut self) -> Names {
        self.words.sort_unstable();
        // Words that differ only in their form become one entry with both forms.
        self.words.dedup_by(|next, kept| {
            let same = (*next ^ *kept) >> 2 == 0;
            *kept |= if same { *next } else { 0 };
            same
        });
        self.words.shrink_to_fit();
        Names { words: self.words, depths: self.depths }
    }
}

/// Returns the number of labels of a name, at most 127.
fn depth(name: NameRef<'_>) -> u32 {
    let (wire, mut at, mut labels) = (name.wire(), 0, 0);
    while wire[at] != 0 {
        at += 1 + usize::from(wire[at]);
        labels += 1;
    }
    labels
}

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
        self.key.listed.hash_suffixes(name.wire(), hashes);
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

    /// Returns false if no list has the name with this hash.
    fn may_have(&self, hash: u64) -> bool {
        let shard = &self.shards[(hash >> (64 - SHARD_BITS)) as usize];
        let want = hash << SHARD_BITS & !LOW;
        let Some(window) =
            shard.slots.get(home(want, shard.homes)..).and_then(<[u64]>::first_chunk::<WINDOW>)
        else {
            return false;
        };
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
mod tests {
    use std::collections::BTreeMap;

    use gateway_model::domain::DomainName;
    use proptest::prelude::*;

    use super::super::name::Name;
    use super::*;

    const KEY: Key = Key::new(0x5eed);

    fn name(text: &str) -> Name {
        Name::from(&DomainName::parse(text).expect("a name"))
    }

    fn names(entries: &[(&str, Form, Effect)]) -> Names {
        let mut collect = NameCollector::new(KEY);
        entries.iter().for_each(|(text, form, effect)| collect.add(name(text).as_ref(), *form, *effect));
        collect.finish()
    }

    fn found(table: &Table, asked: &str) -> Vec<(u16, String, Effect)> {
        let (asked, mut hits) = (name(asked), Vec::new());
        table.find(asked.as_ref(), |hit| hits.push((hit.tag.0, hit.name.to_string(), hit.effect)));
        hits
    }

    fn tag(number: u16) -> Tag {
        Tag::new(number).expect("a tag")
    }

    #[test]
    fn every_list_that_has_the_name_or_one_above_it_is_found() {
        let mut table = Table::new(KEY);
        table.put(
            tag(1),
            &names(&[
                ("ads.example", Form::Both, Effect::Block),
                ("exact.example", Form::Itself, Effect::Block),
            ]),
        );
        table.put(
            tag(Tag::LAST),
            &names(&[
                ("ads.example", Form::Below, Effect::Nxdomain),
                ("www.ads.example", Form::Both, Effect::Allow),
            ]),
        );
        assert_eq!(found(&table, "ads.example"), [(1, "ads.example".to_owned(), Effect::Block)]);
        assert_eq!(
            found(&table, "www.ads.example"),
            [
                (4095, "www.ads.example".to_owned(), Effect::Allow),
                (1, "ads.example".to_owned(), Effect::Block),
                (4095, "ads.example".to_owned(), Effect::Nxdomain),
            ]
        );
        assert_eq!(found(&table, "exact.example").len(), 1);
        assert_eq!(found(&table, "www.exact.example"), []);
        assert_eq!(found(&table, "example"), []);
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn a_name_given_with_both_forms_is_one_entry() {
        let both =
            names(&[("a.example", Form::Below, Effect::Block), ("a.example", Form::Itself, Effect::Block)]);
        assert_eq!(both.words, names(&[("a.example", Form::Both, Effect::Block)]).words);
    }

    #[test]
    fn readers_of_the_previous_table_keep_reading_it() {
        let mut table = Table::new(KEY);
        table.put(tag(1), &names(&[("a.example", Form::Both, Effect::Block)]));
        let before = table.clone();
        table.put(tag(1), &names(&[("b.example", Form::Both, Effect::Block)]));
        assert_eq!((found(&before, "a.example").len(), found(&before, "b.example").len()), (1, 0));
        assert_eq!((found(&table, "a.example").len(), found(&table, "b.example").len()), (0, 1));
        table.take(tag(1));
        assert!(table.is_empty() && found(&table, "b.example").is_empty());
    }

    #[test]
    fn a_table_takes_less_than_twelve_bytes_a_name() {
        let mut collect = NameCollector::new(KEY);
        for number in 0..200_000u32 {
            let label = number.to_be_bytes().map(|byte| [b'a' + (byte >> 4), b'a' + (byte & 15)]).concat();
            let wire = [&[8][..], &label, b"\x07example\0"].concat();
            collect.add(NameRef::new(&wire).expect("a name"), Form::Both, Effect::Block);
        }
        let names = collect.finish();
        let mut table = Table::new(KEY);
        let empty = table.memory();
        table.put(tag(1), &names);
        assert_eq!(names.len(), 200_000);
        let used = table.memory() - empty;
        assert!(used < 200_000 * 12, "{used} bytes");
    }

    proptest! {
        /// Compares puts and takes of lists in any order with plain maps.
        #[test]
        fn lookup_agrees_with_a_map_of_names(
            edits in prop::collection::vec(
                (1u16..5, prop::collection::vec(("[ab](\\.[ab]){0,4}", 1u8..4, 0u64..7), 0..30)),
                1..8,
            ),
            asked in prop::collection::vec("[abc](\\.[ab]){0,5}", 1..30),
        ) {
            let mut table = Table::new(KEY);
            let mut plain: BTreeMap<u16, BTreeMap<(String, Effect), u8>> = BTreeMap::new();
            for (list, entries) in &edits {
                let mut collect = NameCollector::new(KEY);
                let kept = plain.entry(*list).or_default();
                kept.clear();
                for (text, form, effect) in entries {
                    let (form, effect) = (Form::of(u64::from(*form)), Effect::of(*effect));
                    collect.add(name(text).as_ref(), form, effect);
                    *kept.entry((text.clone(), effect)).or_default() |= form as u8;
                }
                table.put(tag(*list), &collect.finish());
            }
            prop_assert_eq!(table.len(), plain.values().map(BTreeMap::len).sum::<usize>());
            for asked in &asked {
                let mut want = Vec::new();
                for (list, entries) in &plain {
                    for ((text, effect), form) in entries {
                        let itself = text == asked;
                        let below = asked.ends_with(&format!(".{text}"));
                        if (itself && form & 1 != 0) || (below && form & 2 != 0) {
                            want.push((*list, text.clone(), *effect));
                        }
                    }
                }
                let mut have = found(&table, asked);
                have.sort();
                want.sort();
                prop_assert_eq!(have, want);
            }
        }
    }
}

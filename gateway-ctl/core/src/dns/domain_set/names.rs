//! Names of one list: their hashes, with the form and the effect of each.

use std::collections::HashSet;
use std::fmt;

use gateway_common::dns_filter::UNUSED_BITS;
use gateway_common::wire::NameKey;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::dns::name::NameRef;

/// Bits of effect and form.
pub(super) const SAYS_BITS: u32 = 5;
pub(super) const SAYS: u64 = (1 << SAYS_BITS) - 1;
const _: () = assert!(SAYS_BITS == UNUSED_BITS);

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

    pub(in crate::dns) fn hash(&self, name: NameRef<'_>) -> u64 {
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

    pub(super) const fn of(bits: u64) -> Form {
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

    pub(super) const fn of(bits: u64) -> Effect {
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

/// Returns a hash of a listed name without the bits that are not compared.
pub const fn compared(hash: u64) -> u64 {
    hash & !SAYS
}

/// Names of one list before the merge into the table: hashes in ascending order, each with form and effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub(super) words: Vec<u64>,
    /// Bit n: there are names with n labels.
    pub(super) depths: u128,
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
        self.words.push(self.word(name, form, effect));
    }

    /// Removes entries that were added with this form and effect.
    pub fn remove<'a>(&mut self, entries: impl Iterator<Item = (NameRef<'a>, Form, Effect)>) {
        let entries: HashSet<u64> =
            entries.map(|(name, form, effect)| self.word(name, form, effect)).collect();
        self.words.retain(|word| !entries.contains(word));
    }

    fn word(&self, name: NameRef<'_>, form: Form, effect: Effect) -> u64 {
        compared(self.key.listed.hash(name.wire())) | (effect as u64) << 2 | form as u64
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
pub(super) fn depth(name: NameRef<'_>) -> u32 {
    let (wire, mut at, mut labels) = (name.wire(), 0, 0);
    while wire[at] != 0 {
        at += 1 + usize::from(wire[at]);
        labels += 1;
    }
    labels
}

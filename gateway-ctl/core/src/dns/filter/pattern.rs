//! Patterns of names, and the index of entries whose pattern may match a name.
//!
//! Most patterns end with labels without a wildcard. The index finds them by the hash of these labels, like plain
//! names. All other patterns (expressions, and names that end with a wildcard) form one set that is run once on each
//! name.

use gateway_model::pattern::{AdblockTarget, Pattern, matches_wildcard};
use hashbrown::HashTable;
use regex::bytes::{Regex, RegexSet, RegexSetBuilder};

use crate::dns::domain_set::{Form, Key};
use crate::dns::name::{MAX, Name, NameRef};

/// Test of an entry on a name.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Name(Name, Form),
    /// Matches the whole name; if not anchored, also from any later label on.
    Wildcard {
        pattern: Box<[u8]>,
        anchored: bool,
    },
    Regex(Regex),
}

impl Test {
    pub(super) fn of(pattern: &Pattern) -> Test {
        match pattern {
            Pattern::Exact(name) => Test::Name(Name::from(name), Form::Itself),
            Pattern::Suffix(name) => Test::Name(Name::from(name), Form::Both),
            Pattern::Wildcard(text) => Test::wildcard(text, true),
            Pattern::Regex(regex) => Test::Regex(regex.clone()),
            Pattern::Adblock(rule) => Test::of_adblock(&rule.target),
        }
    }

    pub(super) fn of_adblock(target: &AdblockTarget) -> Test {
        match target {
            AdblockTarget::Suffix(name) => Test::Name(Name::from(name), Form::Both),
            AdblockTarget::Exact(name) => Test::Name(Name::from(name), Form::Itself),
            AdblockTarget::Below(name) => Test::Name(Name::from(name), Form::Below),
            AdblockTarget::SuffixWildcard(text) => Test::wildcard(text, false),
            AdblockTarget::Wildcard(text) => Test::wildcard(text, true),
            AdblockTarget::Regex(regex) => Test::Regex(regex.clone()),
        }
    }

    fn wildcard(text: &str, anchored: bool) -> Test {
        Test::Wildcard { pattern: text.as_bytes().into(), anchored }
    }

    /// Returns the looseness of the pattern. A lower value is more specific.
    pub(super) fn looseness(&self) -> u16 {
        match self {
            Test::Name(_, Form::Itself) => 0,
            // A name has at most 127 labels.
            Test::Name(name, _) => 128 - name.as_ref().labels().count() as u16,
            Test::Wildcard { .. } => 200,
            Test::Regex(_) => 201,
        }
    }

    /// Returns the form of a test that is a name.
    pub(super) const fn form(&self) -> Option<Form> {
        match self {
            Test::Name(_, form) => Some(*form),
            Test::Wildcard { .. } | Test::Regex(_) => None,
        }
    }

    /// Returns the key of the pattern in the index.
    pub(super) fn found_by(&self) -> FoundBy {
        match self {
            Test::Name(name, _) => FoundBy::Anchor(name.clone()),
            Test::Wildcard { pattern, anchored } => match anchor(pattern) {
                Some(name) => FoundBy::Anchor(name),
                None => FoundBy::Expression(expression(pattern, *anchored)),
            },
            Test::Regex(regex) => FoundBy::Expression(regex.as_str().to_owned()),
        }
    }

    /// Returns whether a name that the index found matches. `itself`: the index found it by the whole name.
    pub(super) fn is_match(&self, itself: bool, name: NameRef<'_>) -> bool {
        if let Test::Name(_, form) = self {
            return form.is_for(itself);
        }
        let mut room = [0; MAX];
        let text = text(name, &mut room);
        match self {
            Test::Name(_, form) => form.is_for(itself),
            Test::Wildcard { pattern, anchored: true } => matches_wildcard(pattern, text),
            Test::Wildcard { pattern, .. } => {
                let later = memchr::memchr_iter(b'.', text).map(|at| at + 1);
                std::iter::once(0).chain(later).any(|start| matches_wildcard(pattern, &text[start..]))
            }
            Test::Regex(regex) => regex.is_match(text),
        }
    }
}

pub(super) enum FoundBy {
    /// Name that every match is or ends with.
    Anchor(Name),
    /// Expression that matches the same names.
    Expression(String),
}

/// Returns the labels behind the last wildcard.
fn anchor(pattern: &[u8]) -> Option<Name> {
    let last = pattern.rsplit(|b| *b == b'.').take_while(|label| !label.contains(&b'*'));
    let labels: Vec<&[u8]> = last.collect();
    let mut wire = Vec::with_capacity(pattern.len() + 1);
    for label in labels.iter().rev() {
        wire.push(u8::try_from(label.len()).ok()?);
        wire.extend_from_slice(label);
    }
    wire.push(0);
    NameRef::new(&wire).filter(|name| !name.is_root()).map(NameRef::to_owned)
}

fn expression(pattern: &[u8], anchored: bool) -> String {
    let mut text = (if anchored { "^" } else { "(?:^|\\.)" }).to_owned();
    for byte in pattern {
        match byte {
            b'*' => text.push_str("[\\x00-\\xff]*"),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('$');
    text
}

/// Returns the text of a name, as patterns match it.
pub(super) fn text<'a>(name: NameRef<'_>, room: &'a mut [u8; MAX]) -> &'a [u8] {
    let mut at = 0;
    for label in name.labels() {
        if at > 0 {
            room[at] = b'.';
            at += 1;
        }
        room[at..at + label.len()].copy_from_slice(label);
        at += label.len();
    }
    &room[..at]
}

/// Index of entries by their pattern. It holds the indexes of the entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    names: HashTable<AnchoredPattern>,
    /// Bit n: there are names with n labels.
    depths: u128,
    free: Vec<u32>,
    /// None if the expressions together are too large: then each is matched separately.
    set: Option<RegexSet>,
}

#[derive(Clone, Debug)]
struct AnchoredPattern {
    hash: u64,
    name: Name,
    entries: Vec<u32>,
}

/// Maximum memory of all expressions together, in bytes.
const SET_SIZE: usize = 64 << 20;

impl Index {
    pub(super) fn new<'a>(key: &Key, tests: impl Iterator<Item = &'a Test>) -> Index {
        let mut index = Index::default();
        let mut expressions = Vec::new();
        for (place, test) in (0u32..).zip(tests) {
            match test.found_by() {
                FoundBy::Anchor(name) => index.anchor(key.listed().hash(name.as_ref().wire()), name, place),
                FoundBy::Expression(expression) => {
                    index.free.push(place);
                    expressions.push(expression);
                }
            }
        }
        if !expressions.is_empty() {
            let mut builder = RegexSetBuilder::new(&expressions);
            builder.unicode(false).case_insensitive(true).size_limit(SET_SIZE).nest_limit(32);
            index.set = builder.build().ok();
        }
        index
    }

    fn anchor(&mut self, hash: u64, name: Name, place: u32) {
        self.depths |= 1 << name.as_ref().labels().count();
        match self.names.find_mut(hash, |anchored| anchored.name == name) {
            Some(anchored) => anchored.entries.push(place),
            None => {
                let anchored = AnchoredPattern { hash, name, entries: vec![place] };
                self.names.insert_unique(hash, anchored, |anchored| anchored.hash);
            }
        }
    }

    /// Returns the label counts with entries. Bit n: there are entries for names with n labels.
    pub(super) const fn depths(&self) -> u128 {
        self.depths
    }

    /// Returns the indexes of entries for this name, or for names that end with it.
    pub(super) fn anchored(&self, hash: u64, name: NameRef<'_>) -> &[u32] {
        self.names.find(hash, |anchored| anchored.name.as_ref() == name).map_or(&[], |found| &found.entries)
    }

    /// Reports the indexes of entries without an anchor that match, or that may match.
    pub(super) fn free(&self, text: &[u8], mut found: impl FnMut(u32)) {
        match &self.set {
            _ if self.free.is_empty() => {}
            None => self.free.iter().for_each(|place| found(*place)),
            // The list of matches costs an allocation.
            Some(set) if !set.is_match(text) => {}
            Some(set) => set.matches(text).iter().for_each(|index| found(self.free[index])),
        }
    }

    pub(super) const fn has_free(&self) -> bool {
        !self.free.is_empty()
    }
}

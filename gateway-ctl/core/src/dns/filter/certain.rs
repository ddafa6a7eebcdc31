//! Part of the filter that the kernel evaluates: names whose block depends on nothing but the name.
//!
//! Entries with conditions, entries that allow or rewrite, and patterns are in it as undecided names: a query that one
//! of them could match is the resolver's. So are queries that entries with different answers match. Entries without an
//! anchor could match each name; they limit the kinds of answers that a client may get from the kernel.

use std::iter::from_fn;
use std::sync::Arc;

use gateway_common::dns_filter::FilterKind;
use gateway_common::wire::NameKey;

use super::entry::{Entry, RuleConditions, RuleEffect, Tier};
use super::pattern::FoundBy;
use super::{Filter, Source};
use crate::dns::decision::{Action, Cause, ClientIdentity, Decision, RuleSource};
use crate::dns::domain_set::{Effect, Form, ListedName, Table, compared};

/// Names whose block is certain, and those that need the resolver.
#[derive(Clone, Debug)]
pub struct CertainBlocks {
    /// Names of entries, in ascending order.
    names: Vec<CertainName>,
    table: Arc<Table>,
    /// Kind of each effect, by the number of the list in the table. `None`: the list does not apply.
    lists: Vec<Option<[u32; EFFECTS.len()]>>,
    /// Kinds that are certain for each client.
    kinds: u32,
    /// Conditions of entries that could match any name, for some clients.
    limits: Vec<RuleConditions>,
}

/// Hash of a name, with the kinds of the name itself and of its subdomains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertainName {
    pub hash: u64,
    pub itself: u32,
    pub below: u32,
}

const EFFECTS: [Effect; 7] = [
    Effect::Block,
    Effect::Allow,
    Effect::BlockAlways,
    Effect::AllowAlways,
    Effect::Nxdomain,
    Effect::NoData,
    Effect::Refuse,
];

/// Actions and causes of the kinds. The cause is the source of the extended error (RFC 8914); those without one have
/// one kind.
const ACTIONS: [Action; 4] = [Action::Block, Action::Nxdomain, Action::NoData, Action::Refuse];
const CAUSES: [Cause; 5] = [Cause::Canary, Cause::Blocklist, Cause::Feed, Cause::Rule, Cause::Privacy];
const _: () = assert!(ACTIONS.len() * CAUSES.len() == FilterKind::COUNT as usize);

/// Returns the kind of a block; undecided for other actions.
fn kind_of(action: &Action, cause: Cause) -> u32 {
    let action = ACTIONS.iter().position(|kind| kind == action);
    let cause = CAUSES.iter().position(|kind| *kind == cause);
    let number = action.zip(cause).map(|(action, cause)| action * CAUSES.len() + cause + 1);
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(FilterKind::UNDECIDED.0)
}

/// Returns each kind of a block with a decision that has its answer.
pub fn decisions() -> impl Iterator<Item = (FilterKind, Decision)> {
    ACTIONS.iter().flat_map(|action| CAUSES.iter().map(move |cause| (action, *cause))).map(
        |(action, cause)| {
            let because = Some(RuleSource { cause, id: None, rule: "".into(), through: None });
            (FilterKind(kind_of(action, cause)), Decision { action: action.clone(), because })
        },
    )
}

impl Filter {
    /// Returns the blocks that depend on the name only.
    pub fn certain_blocks(&self) -> CertainBlocks {
        let source = |place: usize| self.sources.get(place).map(Source::kinds);
        let lists = self.by_tag.iter().map(|place| place.and_then(|place| source(place.into()))).collect();
        let kinds = if self.table.has_root() { 0 } else { (1 << (FilterKind::COUNT + 1)) - 2 };
        let (table, names, limits) = (self.table.clone(), Vec::new(), Vec::new());
        let mut blocks = CertainBlocks { names, table, lists, kinds, limits };
        for entry in self.entries.iter().filter(|entry| entry.tier != Tier::Log) {
            blocks.add(entry);
        }
        blocks.names.sort_unstable();
        blocks
    }
}

impl Source {
    /// Returns the kind of each effect.
    fn kinds(&self) -> [u32; EFFECTS.len()] {
        let kind = |effect| match self.clients.is_restricted() {
            true => FilterKind::UNDECIDED.0,
            false => kind_of(&self.action(effect), self.cause),
        };
        EFFECTS.map(kind)
    }
}

impl CertainBlocks {
    fn add(&mut self, entry: &Entry) {
        let kind = match (&entry.effect, &entry.conditions) {
            (RuleEffect::Do(action), None) => kind_of(action, entry.cause),
            _ => FilterKind::UNDECIDED.0,
        };
        match (entry.test.found_by(), entry.test.form()) {
            (FoundBy::Anchor(name), form) if !name.as_ref().is_root() => {
                let kind = if form.is_some() { kind } else { FilterKind::UNDECIDED.0 };
                let hash = self.key().hash(name.as_ref().wire());
                self.names.push(CertainName::new(hash, form.unwrap_or(Form::Both), kind));
            }
            _ => match &entry.conditions {
                Some(conditions) => self.limits.push(RuleConditions::clone(conditions)),
                // Where such an entry decides, its answer must be the same.
                None if kind == FilterKind::UNDECIDED.0 => self.kinds = 0,
                None => self.kinds &= FilterKind(kind).bit(),
            },
        }
    }

    pub fn key(&self) -> &NameKey {
        self.table.key().listed()
    }

    /// Reports whether both have the same names with the same kinds. Compares tables by their identity.
    pub fn has_same_names(&self, other: &CertainBlocks) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.names == other.names && self.lists == other.lists
    }

    /// Returns the kinds of answers that are certain for a client, a bit for each.
    pub fn kinds(&self, asker: &ClientIdentity) -> u32 {
        match self.limits.iter().any(|limit| limit.may_hold_for(asker)) {
            true => 0,
            false => self.kinds,
        }
    }

    /// Returns each name once, in ascending order.
    pub fn names(&self) -> impl Iterator<Item = CertainName> + '_ {
        let mut listed = self.table.names().filter_map(|name| self.listed(name)).peekable();
        let mut own = self.names.iter().copied().peekable();
        let mut next = move |after: Option<u64>| {
            let is_next = |name: &CertainName| after.is_none_or(|hash| hash == name.hash);
            let is_own = match (own.peek(), listed.peek()) {
                (Some(own), Some(listed)) => own.hash <= listed.hash,
                (own, _) => own.is_some(),
            };
            if is_own { own.next_if(is_next) } else { listed.next_if(is_next) }
        };
        from_fn(move || {
            let mut name = next(None)?;
            while let Some(other) = next(Some(name.hash)) {
                let (itself, below) = (merge(name.itself, other.itself), merge(name.below, other.below));
                name = CertainName { itself, below, ..name };
            }
            Some(name)
        })
    }

    /// Returns a name of a list; `None` if the list does not apply.
    fn listed(&self, name: ListedName) -> Option<CertainName> {
        let kinds = self.lists.get(usize::from(name.tag.number()))?.as_ref()?;
        Some(CertainName::new(name.hash, name.form, kinds[name.effect as usize]))
    }
}

impl CertainName {
    fn new(hash: u64, form: Form, kind: u32) -> CertainName {
        let of = |itself| if form.is_for(itself) { kind } else { 0 };
        CertainName { hash: compared(hash), itself: of(true), below: of(false) }
    }
}

/// Returns the kind of a name with two entries.
const fn merge(kind: u32, other: u32) -> u32 {
    match (kind, other) {
        (0, kind) | (kind, 0) => kind,
        (kind, other) if kind == other => kind,
        _ => FilterKind::UNDECIDED.0,
    }
}

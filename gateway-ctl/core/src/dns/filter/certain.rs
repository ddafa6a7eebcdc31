//! Part of the filter that the kernel evaluates: names whose block depends on nothing but the name.
//!
//! Entries with conditions, entries that allow or rewrite, and patterns are in it as undecided names: a query that one
//! of them could match is the resolver's. So are queries that entries with different answers match. Entries without an
//! anchor could match each name; they limit the kinds of answers that a client may get from the kernel.

use std::sync::Arc;

use gateway_common::dns_filter::FilterKind;
use gateway_common::wire::{FilterSlot, NameKey};

use super::entry::{Entry, RuleConditions, RuleEffect, Tier};
use super::pattern::FoundBy;
use super::{Filter, Source};
use crate::dns::decision::{Action, Cause, ClientIdentity, Decision, RuleSource};
use crate::dns::domain_set::{Effect, Form, ListedName};

/// Names whose block is certain, and those that need the resolver.
#[derive(Clone, Debug)]
pub struct CertainBlocks {
    key: NameKey,
    /// Names of entries, each with its kinds.
    names: Vec<FilterSlot>,
    lists: Vec<CertainList>,
    /// Kinds that are certain for each client.
    kinds: u32,
    /// Conditions of entries that could match any name, for some clients.
    limits: Vec<RuleConditions>,
}

#[derive(Clone, Debug)]
struct CertainList {
    listed: Arc<[ListedName]>,
    /// Kind of each effect.
    kinds: [u32; 7],
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
        let (key, lists) = (*self.table.key().kernel(), self.sources.iter().map(Source::certain).collect());
        let kinds = if self.table.has_root() { 0 } else { (1 << (FilterKind::COUNT + 1)) - 2 };
        let mut blocks = CertainBlocks { key, names: Vec::new(), lists, kinds, limits: Vec::new() };
        for entry in self.entries.iter().filter(|entry| entry.tier != Tier::Log) {
            blocks.add(entry);
        }
        blocks.names.sort_unstable();
        blocks
    }
}

impl Source {
    fn certain(&self) -> CertainList {
        let kind = |effect| match self.clients.is_restricted() {
            true => FilterKind::UNDECIDED.0,
            false => kind_of(&self.action(effect), self.cause),
        };
        CertainList { listed: self.listed.clone(), kinds: EFFECTS.map(kind) }
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
                let hash = self.key.hash(name.as_ref().wire());
                self.names.push(slot(hash, form.unwrap_or(Form::Both), kind));
            }
            _ => match &entry.conditions {
                Some(conditions) => self.limits.push(RuleConditions::clone(conditions)),
                // Where such an entry decides, its answer must be the same.
                None if kind == FilterKind::UNDECIDED.0 => self.kinds = 0,
                None => self.kinds &= FilterKind(kind).bit(),
            },
        }
    }

    pub const fn key(&self) -> &NameKey {
        &self.key
    }

    /// Reports whether both have the same names with the same kinds. Compares lists by their identity.
    pub fn has_same_names(&self, other: &CertainBlocks) -> bool {
        self.key == other.key
            && self.names == other.names
            && self.lists.len() == other.lists.len()
            && self
                .lists
                .iter()
                .zip(&other.lists)
                .all(|(list, other)| Arc::ptr_eq(&list.listed, &other.listed) && list.kinds == other.kinds)
    }

    /// Returns the kinds of answers that are certain for a client, a bit for each.
    pub fn kinds(&self, asker: &ClientIdentity) -> u32 {
        match self.limits.iter().any(|limit| limit.may_hold_for(asker)) {
            true => 0,
            false => self.kinds,
        }
    }

    /// Returns each name once, with its kinds, in ascending order.
    pub fn slots(&self) -> Vec<FilterSlot> {
        let count = self.lists.iter().map(|list| list.listed.len()).sum::<usize>();
        let mut slots = Vec::with_capacity(self.names.len() + count);
        slots.extend_from_slice(&self.names);
        for list in &self.lists {
            slots.extend(list.listed.iter().map(|name| {
                slot(name.hash(), name.form(), list.kinds[name.effect() as usize % list.kinds.len()])
            }));
        }
        slots.sort_unstable();
        slots.dedup_by(|next, kept| {
            let same = next.with_kinds(0, 0) == kept.with_kinds(0, 0);
            if same {
                let ((itself, below), (other, others)) = (kept.kinds(), next.kinds());
                *kept = kept.with_kinds(merge(itself, other), merge(below, others));
            }
            same
        });
        slots
    }
}

fn slot(hash: FilterSlot, form: Form, kind: u32) -> FilterSlot {
    let of = |itself| if form.is_for(itself) { kind } else { 0 };
    hash.with_kinds(of(true), of(false))
}

/// Returns the kind of a name with two entries.
const fn merge(kind: u32, other: u32) -> u32 {
    match (kind, other) {
        (0, kind) | (kind, 0) => kind,
        (kind, other) if kind == other => kind,
        _ => FilterKind::UNDECIDED.0,
    }
}

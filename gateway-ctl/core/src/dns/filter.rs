//! DNS filter: decides the action on a query, and on names and addresses of its answer, and reports the deciding entry.
//!
//! The first match in this order decides:
//!
//! 0. blocks of privacy classes: names of public resolvers, and AAAA records;
//! 1. filter rules with `$important` that allow, then those with another action;
//! 2. filter rules that allow, the domains of the allowlist and the lists of the allowlist;
//! 3. filter rules with another action;
//! 4. the canaries of browsers and systems;
//! 5. the domains of the blocklist;
//! 6. threat feeds, then the lists of the blocklist, those included that privacy classes name for their devices. In
//!    each, important entries come before others, and exceptions before entries that block. An exception applies only
//!    to lists of its own kind;
//! 7. filter rules that note.
//!
//! Within one step, the order is by scope: device, group, privacy class, everyone. Then the most specific pattern wins:
//! the name itself, a longer suffix, a wildcard, an expression. Then the older entry wins. In a response policy zone
//! the longest name decides.
//!
//! A local address of a public name is a case of rebinding, unless a rule of steps 1 and 2 allows the name.
//!
//! Rewrites apply where no rule of steps 1 and 3 acts: a rule that allows a name does not disable its rewrite. Names
//! and addresses of an answer are checked against steps 1 to 3 and 5 to 6 only, because no client queried them. They
//! pass if the queried name is allowed in an earlier step than the one that would block them.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::{Id, State};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::address_set::Nets;
use super::decision::{Action, Cause, ClientIdentity, Decision, Question, RuleSource};
use super::domain_set::{Effect, Form, Hit, Table};
use super::lists::Format;
use super::name::{MAX, NameRef};
use super::rebinding::Rebinding;

mod canaries;
mod certain;
mod compile;
mod entry;
mod pattern;
mod privacy;
mod sources;
#[cfg(test)]
mod tests;

pub use canaries::Canaries;
pub use certain::{CertainBlocks, CertainName, decisions as block_decisions};
pub use sources::{Lists, TooManyLists};

use entry::{ClientSelector, Entry, Level, RuleEffect, RuleMatch, Tier};
use pattern::Index;
use sources::ActiveList;

/// Inputs of the filter beside the stored state.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time zone of schedules.
    pub zone: TimeZone,
    pub canaries: Canaries,
}

/// Compiled filter: all entries and lists that a query is checked against.
#[derive(Clone, Debug)]
pub struct Filter {
    entries: Vec<Entry>,
    index: Index,
    table: Arc<Table>,
    sources: Vec<Source>,
    /// Indexes into `sources` by the number of the list in the table.
    by_tag: Vec<Option<u16>>,
    zone: TimeZone,
    rebinding: Option<Rebinding>,
    /// Clients that get no certificates of DNSCrypt servers.
    no_dnscrypt: Option<ClientSelector>,
}

#[derive(Clone, Debug)]
struct Source {
    id: Id,
    cause: Cause,
    clients: ClientSelector,
    format: Format,
    nets: Arc<Nets>,
}

/// Match of an entry or list.
#[derive(Clone, Copy)]
struct EntryMatch<'a> {
    rank: Rank,
    cause: Cause,
    what: MatchedSource<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    tier: Tier,
    level: Level,
    looseness: u16,
    /// Entries come before lists.
    age: u32,
}

#[derive(Clone, Copy)]
enum MatchedSource<'a> {
    Entry(&'a Entry, RuleMatch),
    Name(Hit<'a>, &'a Source),
    Address(ipnet::IpNet, Effect, &'a Source),
}

/// Part of a message that is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Question,
    Answer,
}

/// Best match of each group that competes separately.
#[derive(Clone, Copy, Default)]
struct BestMatches<'a> {
    /// Best match of steps 1 to 5.
    own: Option<EntryMatch<'a>>,
    rewrite: Option<EntryMatch<'a>>,
    feed: Option<EntryMatch<'a>>,
    blocklist: Option<EntryMatch<'a>>,
    note: Option<EntryMatch<'a>>,
}

impl Filter {
    pub fn new(state: &State, lists: &Lists, options: Options) -> Filter {
        let mut entries = compile::stored(state, options.canaries);
        let (mut sources, mut by_tag) = (Vec::new(), Vec::new());
        for ActiveList { id, cause, clients, loaded } in lists.active(state) {
            entries.extend(compile::of_list(id, cause, &clients, loaded));
            let tag = usize::from(loaded.tag.number());
            by_tag.resize(by_tag.len().max(tag + 1), None);
            by_tag[tag] = u16::try_from(sources.len()).ok();
            let (format, nets) = (loaded.format, loaded.nets.clone());
            sources.push(Source { id, cause, clients, format, nets });
        }
        let key = lists.key();
        let index = Index::new(&key, entries.iter().map(|entry| &entry.test));
        Filter {
            entries,
            index,
            table: lists.table().clone(),
            sources,
            by_tag,
            zone: options.zone,
            rebinding: None,
            no_dnscrypt: privacy::no_dnscrypt(state),
        }
    }

    /// Creates a filter with the entries that hold although filtering is off: blocks, and local names that are denied.
    pub fn of_blocks(state: &State, lists: &Lists, options: Options) -> Filter {
        let entries = privacy::entries(state);
        let index = Index::new(&lists.key(), entries.iter().map(|entry| &entry.test));
        let (sources, by_tag) = (Vec::new(), Vec::new());
        Filter {
            entries,
            index,
            table: lists.table().clone(),
            sources,
            by_tag,
            zone: options.zone,
            rebinding: None,
            no_dnscrypt: privacy::no_dnscrypt(state),
        }
    }

    /// Adds the protection against rebinding.
    #[must_use]
    pub fn with_rebinding(self, rebinding: Option<Rebinding>) -> Filter {
        Filter { rebinding, ..self }
    }

    /// Loads what the decisions on a few names in wire format read from memory.
    pub fn prefetch<'a>(&self, names: impl Iterator<Item = &'a [u8]>) {
        self.table.prefetch(names);
    }

    /// Returns the decision on a query.
    pub fn decide(&self, asker: &ClientIdentity, question: Question<'_>, now: Timestamp) -> Decision {
        if let Some(clients) = &self.no_dnscrypt
            && privacy::is_dnscrypt_certificate(question.name)
            && clients.is_match(asker)
        {
            let because = RuleSource {
                cause: Cause::Privacy,
                id: None,
                rule: privacy::DNSCRYPT_CERTIFICATES.into(),
                through: None,
            };
            return Decision { action: Action::Nxdomain, because: Some(because) };
        }
        let best = self.best(asker, question, now, Part::Question);
        best.winner().map_or(Decision::PASS, |found| self.decision(found, question, None))
    }

    /// Returns the decision on an answer whose CNAME chain contains a name.
    pub fn inspect_name(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        target: NameRef<'_>,
        now: Timestamp,
    ) -> Decision {
        let through = Question { name: target, ..question };
        let best = self.best(asker, through, now, Part::Answer);
        let Some(found) = best.winner() else { return Decision::PASS };
        if !found.rank.tier.allows() && self.is_allowed_earlier(asker, question, now, found) {
            return Decision::PASS;
        }
        self.decision(found, through, Some(target.to_string().into()))
    }

    /// Returns the decision on an answer that contains an address, as a record or as a hint.
    pub fn inspect_address(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        address: IpAddr,
        now: Timestamp,
    ) -> Decision {
        let mut best = BestMatches::default();
        for (age, source) in self.sources.iter().enumerate().filter(|(_, source)| !source.nets.is_empty()) {
            if source.clients.is_match(asker)
                && let Some((net, effect)) = source.nets.find(address)
            {
                let rank = Rank { tier: source.tier(effect), ..Rank::of_list(0, age) };
                best.add(EntryMatch {
                    rank,
                    cause: source.cause,
                    what: MatchedSource::Address(net, effect, source),
                });
            }
        }
        let rebinding = || self.rebinding(asker, question, address, now).unwrap_or(Decision::PASS);
        let Some(found) = best.winner() else { return rebinding() };
        if found.rank.tier.allows() || self.is_allowed_earlier(asker, question, now, found) {
            return rebinding();
        }
        self.decision(found, question, Some(address.to_string().into()))
    }

    /// Returns the decision on a local address of a public name. Names that a user allows or rewrites may have one.
    fn rebinding(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        address: IpAddr,
        now: Timestamp,
    ) -> Option<Decision> {
        let rebinding = self.rebinding.as_ref().filter(|rebinding| rebinding.is_local(address))?;
        let best = self.best(asker, question, now, Part::Question);
        let is_intended = best.rewrite.is_some()
            || best.own.is_some_and(|found| found.rank.tier.allows() || found.is_answer());
        if is_intended || rebinding.is_exempt(question.name) {
            return None;
        }
        let through = Some(address.to_string().into());
        let because = RuleSource { cause: Cause::Rebinding, id: None, rule: "local address".into(), through };
        Some(Decision { action: Action::NoData, because: Some(because) })
    }

    /// Returns all matches, the deciding one first, then the others in order of precedence.
    pub fn explain(&self, asker: &ClientIdentity, question: Question<'_>, now: Timestamp) -> Vec<Decision> {
        let mut all = Vec::new();
        self.find(asker, question, now, Part::Question, |found| all.push(found));
        let mut best = BestMatches::default();
        all.iter().for_each(|found| best.add(*found));
        let decisive = best.winner().map(|found| found.rank);
        all.sort_by_key(|found| (Some(found.rank) != decisive, found.rank));
        all.into_iter().map(|found| self.decision(found, question, None)).collect()
    }

    /// Returns whether the queried name is allowed in an earlier step than the one of this match.
    fn is_allowed_earlier(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        now: Timestamp,
        against: EntryMatch<'_>,
    ) -> bool {
        let best = self.best(asker, question, now, Part::Answer);
        let own = best.own.filter(|found| found.rank.tier.allows());
        let list = match against.cause {
            Cause::Feed => best.feed,
            Cause::Blocklist => best.blocklist,
            _ => None,
        };
        let allows = |found: EntryMatch<'_>| found.rank.tier.allows() && found.rank.tier < against.rank.tier;
        own.is_some_and(allows) || (best.own.is_none() && list.is_some_and(allows))
    }

    fn best<'a>(
        &'a self,
        asker: &ClientIdentity,
        question: Question<'a>,
        now: Timestamp,
        part: Part,
    ) -> BestMatches<'a> {
        let mut best = BestMatches::default();
        self.find(asker, question, now, part, |found| best.add(found));
        best
    }

    fn find<'a>(
        &'a self,
        asker: &ClientIdentity,
        question: Question<'a>,
        now: Timestamp,
        part: Part,
        found: impl FnMut(EntryMatch<'a>),
    ) {
        let found = std::cell::RefCell::new(found);
        // In response policy zones the longest name decides, and names come in that order.
        let mut zones = Vec::new();
        let entry = |place: u32, itself: bool| {
            if let Some(matched) = self.matched(place, asker, question, now, part, itself) {
                (found.borrow_mut())(matched);
            }
        };
        self.table.walk(
            question.name,
            self.index.depths(),
            |hash, suffix, itself| {
                self.index.anchored(hash, suffix).iter().for_each(|place| entry(*place, itself));
            },
            |hit| {
                let number = self.by_tag.get(usize::from(hit.tag.number())).copied().flatten();
                let Some(source) = number.and_then(|place| self.sources.get(usize::from(place))) else {
                    return;
                };
                if !source.clients.is_match(asker) {
                    return;
                }
                if source.format == Format::Rpz {
                    if zones.contains(&hit.tag) {
                        return;
                    }
                    zones.push(hit.tag);
                }
                let looseness = hit.looseness(question.name);
                let rank = Rank::of_list(looseness, usize::from(number.unwrap_or_default()));
                let rank = Rank { tier: source.tier(hit.effect), ..rank };
                (found.borrow_mut())(EntryMatch {
                    rank,
                    cause: source.cause,
                    what: MatchedSource::Name(hit, source),
                });
            },
        );
        if self.index.has_free() {
            let mut room = [0; MAX];
            self.index.free(pattern::text(question.name, &mut room), |place| entry(place, true));
        }
    }

    fn matched<'a>(
        &'a self,
        place: u32,
        asker: &ClientIdentity,
        question: Question<'a>,
        now: Timestamp,
        part: Part,
        itself: bool,
    ) -> Option<EntryMatch<'a>> {
        let entry = self.entries.get(place as usize)?;
        // Answers of lists, which are response policy zones, apply to each name of a chain.
        let foreign = match entry.cause {
            Cause::Rewrite | Cause::Canary | Cause::Privacy | Cause::Rebinding => true,
            Cause::Rule => matches!(entry.effect, RuleEffect::Answers(_)),
            Cause::Allowlist | Cause::Blocklist | Cause::Feed => false,
        };
        if (part == Part::Answer && foreign) || !entry.test.is_match(itself, question.name) {
            return None;
        }
        let met = entry.meets(asker, question.name, question.qtype, now, &self.zone)?;
        let looseness = entry.test.looseness();
        let rank = Rank { tier: entry.tier, level: met.level, looseness, age: place };
        Some(EntryMatch { rank, cause: entry.cause, what: MatchedSource::Entry(entry, met) })
    }

    fn decision(&self, found: EntryMatch<'_>, question: Question<'_>, through: Option<Arc<str>>) -> Decision {
        let (action, id, rule) = match found.what {
            MatchedSource::Entry(entry, met) => {
                let action = match &entry.effect {
                    RuleEffect::Answers(_) if met.implied => Action::Addresses(Vec::new()),
                    _ if met.implied => Action::NoData,
                    effect => effect.action(question),
                };
                (action, entry.id, entry.text.clone())
            }
            MatchedSource::Name(hit, source) => {
                (source.action(hit.effect), Some(source.id), source.text(&hit).into())
            }
            MatchedSource::Address(net, effect, source) => {
                let text = if net.prefix_len() == net.max_prefix_len() {
                    net.addr().to_string()
                } else {
                    net.to_string()
                };
                (source.action(effect), Some(source.id), text.into())
            }
        };
        Decision { action, because: Some(RuleSource { cause: found.cause, id, rule, through }) }
    }
}

impl EntryMatch<'_> {
    const fn is_answer(&self) -> bool {
        matches!(self.what, MatchedSource::Entry(Entry { effect: RuleEffect::Answers(_), .. }, _))
    }
}

impl<'a> BestMatches<'a> {
    fn add(&mut self, found: EntryMatch<'a>) {
        let place = match (found.cause, found.rank.tier) {
            (Cause::Rewrite, _) => &mut self.rewrite,
            (_, Tier::Log) => &mut self.note,
            (_, tier) if tier <= Tier::Blocklist => &mut self.own,
            (Cause::Feed, _) => &mut self.feed,
            _ => &mut self.blocklist,
        };
        if place.is_none_or(|best| found.rank < best.rank) {
            *place = Some(found);
        }
    }

    fn winner(self) -> Option<EntryMatch<'a>> {
        let acts = |found: &EntryMatch<'a>| !found.rank.tier.allows();
        let rule = self.own.filter(|own| own.rank.tier <= Tier::Act && acts(own));
        let list = self.feed.filter(acts).or(self.blocklist.filter(acts)).or(self.feed).or(self.blocklist);
        rule.or(self.rewrite).or(self.own).or(list).or(self.note)
    }
}

impl Rank {
    /// Returns the rank of a list entry. Lists apply to everyone.
    fn of_list(looseness: u16, place: usize) -> Rank {
        let age = u32::try_from(place).unwrap_or(u32::MAX / 2).saturating_add(u32::MAX / 2);
        Rank { tier: Tier::ListAct, level: Level::Everyone, looseness, age }
    }
}

impl Hit<'_> {
    fn looseness(&self, qname: NameRef<'_>) -> u16 {
        // A name has at most 127 labels.
        if self.name == qname { 0 } else { 128 - self.name.labels().count() as u16 }
    }
}

impl Source {
    fn tier(&self, effect: Effect) -> Tier {
        match (self.cause, effect) {
            (Cause::Allowlist, _) => Tier::Allow,
            (_, Effect::AllowAlways) => Tier::ListAllowAlways,
            (_, Effect::Allow) => Tier::ListAllow,
            (_, Effect::BlockAlways) => Tier::ListActAlways,
            _ => Tier::ListAct,
        }
    }

    fn action(&self, effect: Effect) -> Action {
        match effect {
            _ if self.tier(effect).allows() => Action::Pass,
            Effect::Nxdomain => Action::Nxdomain,
            Effect::NoData => Action::NoData,
            Effect::Refuse => Action::Refuse,
            _ => Action::Block,
        }
    }

    /// Returns the entry in the syntax of its list.
    fn text(&self, hit: &Hit<'_>) -> String {
        let name = hit.name;
        let rule = self.format == Format::Adblock
            || (self.format != Format::Rpz && (hit.effect.allows() || hit.effect.is_important()));
        match hit.form {
            Form::Below => format!("*.{name}"),
            form if rule => {
                let exception = if hit.effect.allows() { "@@" } else { "" };
                let from = if form == Form::Itself { "|" } else { "||" };
                let important = if hit.effect.is_important() { "$important" } else { "" };
                format!("{exception}{from}{name}^{important}")
            }
            _ => name.to_string(),
        }
    }
}

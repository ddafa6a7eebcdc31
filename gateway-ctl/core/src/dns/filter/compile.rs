//! Compiler of filter entries from the stored state (rules, own domains, rewrites, canaries) and from the rules of
//! lists.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_model::domain::{DomainName, DomainOrWildcard};
use gateway_model::kinds::dns_filter_rule::FilterAction;
use gateway_model::kinds::dns_rewrite::Answer as Rewritten;
use gateway_model::kinds::{DnsFilterRule, DnsRewrite};
use gateway_model::pattern::{AdblockRule, Pattern};
use gateway_model::{Id, State};

use super::canaries::Canaries;
use super::entry::{Answers, ClientSelector, Entry, Hours, RuleConditions, RuleEffect, Tier};
use super::pattern::Test;
use super::privacy;
use super::sources::LoadedList;
use crate::dns::decision::{Action, Cause};
use crate::dns::domain_set::Form;
use crate::dns::lists::{Answer, ListRule, ListRuleEffect};
use crate::dns::name::Name;

/// Returns the entries of all stored objects, older ones first.
pub(super) fn stored(state: &State, canaries: Canaries) -> Vec<Entry> {
    let mut entries: Vec<Entry> = state
        .dns_filter_rules
        .iter()
        .filter(|rule| rule.enabled)
        .filter_map(|rule| of_rule(rule, state))
        .collect();
    let domain = |cause: Cause, tier: Tier, effect: RuleEffect| {
        move |(id, domain): (Id, &DomainName)| Entry {
            cause,
            id: Some(id),
            text: domain.as_str().into(),
            tier,
            effect: effect.clone(),
            test: Test::Name(Name::from(domain), Form::Both),
            conditions: None,
        }
    };
    let allowed = state.dns_allowlist.iter().filter(|entry| entry.enabled);
    let allowed = allowed.filter_map(|entry| Some((entry.meta.id, entry.domain.as_ref()?)));
    entries.extend(allowed.map(domain(Cause::Allowlist, Tier::Allow, RuleEffect::Pass)));
    let blocked = state.dns_blocklist.iter().filter(|entry| entry.enabled);
    let blocked = blocked.filter_map(|entry| Some((entry.meta.id, entry.domain.as_ref()?)));
    entries.extend(blocked.map(domain(Cause::Blocklist, Tier::Blocklist, RuleEffect::Do(Action::Block))));
    entries.extend(rewrites(state));
    entries.extend(canaries.entries());
    entries.extend(privacy::entries(state));
    entries
}

fn of_rule(rule: &DnsFilterRule, state: &State) -> Option<Entry> {
    let pattern = Pattern::parse(rule.r#match, &rule.pattern).ok()?;
    let effect = match rule.action {
        FilterAction::Block => RuleEffect::Do(Action::Block),
        FilterAction::Nxdomain => RuleEffect::Do(Action::Nxdomain),
        FilterAction::Refuse => RuleEffect::Do(Action::Refuse),
        FilterAction::Allow | FilterAction::Log => RuleEffect::Pass,
        FilterAction::Rewrite => RuleEffect::Answers(answers_of(rule.answer.as_deref()?)?),
    };
    let mut conditions = RuleConditions::default();
    let mut important = false;
    if let Pattern::Adblock(adblock) = &pattern {
        conditions = RuleConditions::of_adblock(adblock, Some(state));
        important = adblock.important;
    }
    let own: Vec<u16> = rule.qtypes.iter().filter_map(crate::dns::rtype::of_query).collect();
    match (conditions.types.is_empty(), own.is_empty()) {
        (_, true) => {}
        (true, false) => conditions.types = own,
        // Both conditions apply. An empty intersection matches no type.
        (false, false) => conditions.types.retain(|qtype| own.contains(qtype)),
    }
    if conditions.types.is_empty() && !rule.qtypes.is_empty() {
        return None;
    }
    conditions.scope = ClientSelector::of(&rule.scope, state);
    if let Some(schedule) = &rule.schedule {
        match Hours::read(schedule) {
            Some(hours) => conditions.hours = Some(hours),
            // An invalid schedule fails closed: a rule that allows is dropped, any other rule applies at all times.
            None if rule.action == FilterAction::Allow => return None,
            None => {}
        }
    }
    let tier = match (rule.action, important) {
        (FilterAction::Allow, true) => Tier::AllowAlways,
        (FilterAction::Allow, false) => Tier::Allow,
        (FilterAction::Log, _) => Tier::Log,
        (_, true) => Tier::ActAlways,
        (_, false) => Tier::Act,
    };
    Some(Entry {
        cause: Cause::Rule,
        id: Some(rule.meta.id),
        text: rule.pattern.as_str().into(),
        tier,
        effect,
        test: Test::of(&pattern),
        conditions: conditions.boxed(),
    })
}

fn answers_of(text: &str) -> Option<Answers> {
    match text.parse::<IpAddr>() {
        Ok(address) => Some(Answers { addresses: vec![address], ..Answers::default() }),
        Err(_) => {
            let name = DomainName::parse(text).ok()?;
            Some(Answers { name: Some(Name::from(&name)), ..Answers::default() })
        }
    }
}

/// Returns one entry for each domain. Its rewrites answer together, under the id of the first.
fn rewrites(state: &State) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
    for rewrite in state.dns_rewrites.iter().filter(|rewrite| rewrite.enabled) {
        let (Ok(domain), Some(answer)) =
            (DomainOrWildcard::parse(&rewrite.domain), Rewritten::parse(&rewrite.answer))
        else {
            continue;
        };
        let index = *indexes.entry(rewrite.domain.as_str()).or_insert_with(|| {
            entries.push(of_rewrite(rewrite, &domain));
            entries.len() - 1
        });
        let RuleEffect::Answers(answers) = &mut entries[index].effect else { continue };
        match answer {
            Rewritten::Address(address) => answers.addresses.push(address),
            Rewritten::Name(name) => answers.name = Some(Name::from(&name)),
            Rewritten::KeepA => answers.keep_four = true,
            Rewritten::KeepAaaa => answers.keep_six = true,
        }
    }
    entries
}

fn of_rewrite(rewrite: &DnsRewrite, domain: &DomainOrWildcard) -> Entry {
    let form = if domain.wildcard { Form::Below } else { Form::Itself };
    Entry {
        cause: Cause::Rewrite,
        id: Some(rewrite.meta.id),
        text: rewrite.domain.as_str().into(),
        tier: Tier::Act,
        effect: RuleEffect::Answers(Answers::default()),
        test: Test::Name(Name::from(&domain.name), form),
        conditions: None,
    }
}

/// Returns entries for those rules of a list that are more than a name.
pub(super) fn of_list(id: Id, cause: Cause, clients: &ClientSelector, loaded: &LoadedList) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut indexes: BTreeMap<(&Name, Form), usize> = BTreeMap::new();
    let entry = |rule: &ListRule, tier, effect, test, conditions: RuleConditions| Entry {
        cause,
        id: Some(id),
        text: rule.text.clone(),
        tier,
        effect,
        test,
        conditions: RuleConditions { scope: clients.clone(), ..conditions }.boxed(),
    };
    let always = RuleConditions::default;
    let act = if cause == Cause::Allowlist { Tier::Allow } else { Tier::ListAct };
    for rule in loaded.rules.iter() {
        match &rule.effect {
            ListRuleEffect::Adblock(adblock) => {
                let tier = adblock_tier(adblock, cause);
                let effect = if tier.allows() { RuleEffect::Pass } else { RuleEffect::Do(Action::Block) };
                let conditions = RuleConditions::of_adblock(adblock, None);
                entries.push(entry(rule, tier, effect, Test::of_adblock(&adblock.target), conditions));
            }
            // Entries of an allowlist give no answer of their own.
            ListRuleEffect::Answer { name, form, .. } if cause == Cause::Allowlist => {
                entries.push(entry(rule, act, RuleEffect::Pass, Test::Name(name.clone(), *form), always()));
            }
            ListRuleEffect::Answer { name, form, answer } => {
                let index = *indexes.entry((name, *form)).or_insert_with(|| {
                    let effect = RuleEffect::Answers(Answers { alone: true, ..Answers::default() });
                    entries.push(entry(rule, act, effect, Test::Name(name.clone(), *form), always()));
                    entries.len() - 1
                });
                let RuleEffect::Answers(answers) = &mut entries[index].effect else { continue };
                match answer {
                    Answer::Address(address) => answers.addresses.push(*address),
                    Answer::Name(name) => answers.name = Some(name.clone()),
                }
            }
        }
    }
    entries
}

/// Returns the tier of an adblock rule. Every rule on an allowlist allows, in any syntax.
fn adblock_tier(rule: &AdblockRule, cause: Cause) -> Tier {
    match (cause, rule.exception, rule.important) {
        (Cause::Allowlist, _, _) => Tier::Allow,
        (_, true, true) => Tier::ListAllowAlways,
        (_, true, false) => Tier::ListAllow,
        (_, false, true) => Tier::ListActAlways,
        (_, false, false) => Tier::ListAct,
    }
}

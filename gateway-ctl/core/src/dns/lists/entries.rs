//! Entries of a list: names, rules and networks as the formats parse them, with a report of the lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::pattern::{AdblockRule, AdblockTarget};

use super::page::PageSigns;
use crate::dns::address_set::NetCollector;
use crate::dns::domain_set::{Effect, Form, NameCollector};
use crate::dns::name::{Name, NameRef};
use crate::doh_servers::FeedServers;

pub(super) const NOTES: usize = 10;
const TOO_MANY: Reason = Cow::Borrowed("there are too many rules with wildcards, expressions or modifiers");

const NO_ROOM: Reason = Cow::Borrowed("the kernel program has no room for it; the resolver blocks it");

const OTHER_REASONS: Reason = Cow::Borrowed("other reasons");

/// Maximum number of reasons that are counted apart: a list may have words of its own in them.
const REASONS: usize = 20;

/// Maximum number of entries of a list that are more than a name. Each of them is compiled.
const MAX_RULES: usize = 20_000;

/// Entry that is more than a name.
#[derive(Clone, Debug)]
pub struct ListRule {
    /// Text in the list.
    pub text: Arc<str>,
    pub effect: ListRuleEffect,
}

#[derive(Clone, Debug)]
pub enum ListRuleEffect {
    /// Rule with wildcards, an expression or modifiers, but without a restriction to clients.
    Adblock(Box<AdblockRule>),
    /// Local data of a response policy zone.
    Answer { name: Name, form: Form, answer: Answer },
}

/// Local data in an answer of a response policy zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Address(IpAddr),
    Name(Name),
}

/// Parse statistics of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: u64,
    /// Parsed entries, including duplicates.
    pub taken: u64,
    /// Entries that could not be parsed.
    pub ignored: u64,
    /// The first ignored entries.
    pub notes: Vec<Note>,
    /// Ignored entries by reason.
    pub reasons: Vec<ReasonCount>,
    pub page: PageSigns,
}

/// Reason why a line was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Line number, from 1.
    pub line: u64,
    pub reason: Reason,
}

/// Number of lines that were ignored for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonCount {
    /// Reason without the words of the line.
    pub reason: Reason,
    pub lines: u64,
    /// Number of the first of them, from 1.
    pub first_line: u64,
}

impl Report {
    fn count(&mut self, reason: &Reason) {
        let mut reason = without_quotations(reason);
        if self.reasons.len() >= REASONS && self.reasons.iter().all(|known| known.reason != reason) {
            reason = OTHER_REASONS;
        }
        match self.reasons.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.lines += 1,
            None => self.reasons.push(ReasonCount { reason, lines: 1, first_line: self.lines }),
        }
    }
}

/// Replaces quoted words of the line, which differ from line to line, by an ellipsis.
fn without_quotations(reason: &Reason) -> Reason {
    if !reason.contains('"') {
        return reason.clone();
    }
    let (mut general, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for letter in reason.chars() {
        match letter {
            '"' if !is_escaped => {
                is_quoted = !is_quoted;
                general.push_str(if is_quoted { "…" } else { "" });
            }
            _ if !is_quoted => general.push(letter),
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    general.into()
}

pub type Reason = Cow<'static, str>;

/// Collector that the format parsers fill.
#[derive(Debug)]
pub(super) struct ListCollector {
    pub names: NameCollector,
    pub rules: Vec<ListRule>,
    pub nets: NetCollector,
    pub report: Report,
    pub servers: Option<FeedServers>,
    /// Rules that other rules of the list disable, in their one spelling.
    pub disabled: BTreeMap<String, Box<AdblockRule>>,
}

impl ListCollector {
    /// Notes a rule that the list disables (`$badfilter`), wherever in the list it is.
    pub(super) fn disable(&mut self, rule: &AdblockRule) {
        if self.disabled.len() < MAX_RULES {
            self.disabled.insert(rule.to_string(), Box::new(rule.clone()));
            self.report.taken += 1;
        } else {
            self.ignore(TOO_MANY);
        }
    }

    /// Removes the disabled rules.
    pub(super) fn remove_disabled(&mut self) {
        if self.disabled.is_empty() {
            return;
        }
        let is_disabled = |rule: &ListRule| match &rule.effect {
            ListRuleEffect::Adblock(rule) => self.disabled.contains_key(&rule.to_string()),
            ListRuleEffect::Answer { .. } => false,
        };
        self.rules.retain(|rule| !is_disabled(rule));
        let names: Vec<_> = self.disabled.values().filter_map(|rule| as_name(rule)).collect();
        self.names.remove(names.iter().map(|(name, form, effect)| (name.as_ref(), *form, *effect)));
        if let Some(servers) = &mut self.servers {
            for (name, ..) in &names {
                servers.names.remove(&name.to_string());
            }
        }
    }

    pub(super) fn name(&mut self, name: NameRef<'_>, form: Form, effect: Effect) {
        self.names.add(name, form, effect);
        self.report.taken += 1;
        if let Some(servers) = self.servers.as_mut().filter(|_| !effect.allows())
            && !servers.add_name(name.to_string())
        {
            self.note(NO_ROOM);
        }
    }

    pub(super) fn rule(&mut self, text: &str, effect: ListRuleEffect) {
        if self.rules.len() < MAX_RULES {
            self.rules.push(ListRule { text: text.into(), effect });
            self.report.taken += 1;
        } else {
            self.ignore(TOO_MANY);
        }
    }

    pub(super) fn net(&mut self, net: ipnet::IpNet, effect: Effect) {
        if net.prefix_len() == 0 {
            self.ignore("all addresses are no entry of a list".into());
        } else {
            self.nets.add(net, effect);
            self.report.taken += 1;
            if let Some(servers) = self.servers.as_mut().filter(|_| !effect.allows())
                && !servers.add_network(net)
            {
                self.note(NO_ROOM);
            }
        }
    }

    pub(super) fn ignore(&mut self, reason: Reason) {
        self.report.ignored += 1;
        self.report.count(&reason);
        self.note(reason);
    }

    fn note(&mut self, reason: Reason) {
        if self.report.notes.len() < NOTES {
            self.report.notes.push(Note { line: self.report.lines, reason });
        }
    }
}

/// Returns the entry of a rule that is only a name.
pub(super) fn as_name(rule: &AdblockRule) -> Option<(Name, Form, Effect)> {
    if !rule.types.is_empty() || !rule.not_types.is_empty() || !rule.deny_allow.is_empty() {
        return None;
    }
    let effect = match (rule.exception, rule.important) {
        (false, false) => Effect::Block,
        (false, true) => Effect::BlockAlways,
        (true, false) => Effect::Allow,
        (true, true) => Effect::AllowAlways,
    };
    match &rule.target {
        AdblockTarget::Suffix(name) => Some((Name::from(name), Form::Both, effect)),
        AdblockTarget::Exact(name) => Some((Name::from(name), Form::Itself, effect)),
        AdblockTarget::Below(name) => Some((Name::from(name), Form::Below, effect)),
        AdblockTarget::SuffixWildcard(_) | AdblockTarget::Wildcard(_) | AdblockTarget::Regex(_) => None,
    }
}

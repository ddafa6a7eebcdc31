//! IP rules of the gateway: those in its priority range with its protocol number.
//!
//! The kernel identifies a rule by all its fields, not by its priority: several rules may share one. So the whole
//! rule is the key. A change adds the new rule before it removes the old one.

use std::collections::BTreeMap;

use gateway_core::plan::{Family, RuleAction as Action, RuleKey, RuleValue, names};
use ipnet::IpNet;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteHeader, RouteProtocol};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};

use super::backend::{ABSENT, Backend, PRESENT};
use super::netlink::{Error, Netlink, collect, settled};

#[derive(Clone, Debug)]
pub struct Rules {
    netlink: Netlink,
}

/// A rule of the gateway as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstalledRule {
    pub rule_key: RuleKey,
    pub fields: RuleField,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleField {
    Plain(RuleValue),
    /// A rule with selectors or an action that the gateway never uses.
    Foreign(String),
}

/// Kernel value for "no suppression".
const NO_SUPPRESSION: u32 = u32::MAX;
const OURS: RouteProtocol = RouteProtocol::Other(names::ROUTE_PROTOCOL);

impl Rules {
    pub fn new(netlink: Netlink) -> Self {
        Self { netlink }
    }

    /// Returns the rules of a plan in the form that the kernel reports.
    pub fn want(rules: &BTreeMap<RuleKey, RuleValue>) -> BTreeMap<InstalledRule, ()> {
        let rules = rules.iter().map(|(key, value)| {
            let mut value = value.clone();
            if let Some((mark, mask)) = &mut value.fwmark {
                *mark &= *mask;
            }
            (InstalledRule { rule_key: key.clone(), fields: RuleField::Plain(value) }, ())
        });
        rules.collect()
    }

    /// Reports whether the rule blocks packets. Such a rule is the first to be added and the last to be removed.
    pub fn blocks(rule: &InstalledRule) -> bool {
        match &rule.fields {
            RuleField::Plain(value) => matches!(value.action, Action::Prohibit | Action::Unreachable),
            RuleField::Foreign(_) => false,
        }
    }

    /// Reports whether the rule is for replies of this host, from a tunnel's address or from a foreign address. It
    /// must exist for as long as such replies are possible. Without it they leave through the uplink, or not at all.
    pub fn answers(rule: &InstalledRule) -> bool {
        let here = |value: &RuleValue| value.input_interface.as_deref() == Some("lo");
        matches!(&rule.fields, RuleField::Plain(value) if value.source.is_some() || here(value))
    }

    /// Returns the gateway's rules with their original messages.
    async fn found(&self) -> Result<Vec<(InstalledRule, RuleMessage)>, Error> {
        let mut found = Vec::new();
        for (family, version) in [(Family::V4, IpVersion::V4), (Family::V6, IpVersion::V6)] {
            let messages = collect("rules", self.netlink.handle()?.rule().get(version).execute()).await?;
            found.extend(messages.into_iter().filter_map(|message| Some((rule(family, &message)?, message))));
        }
        Ok(found)
    }
}

impl Backend for Rules {
    type Key = InstalledRule;
    type Value = ();
    type Error = Error;

    const NAME: &'static str = "rules";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<InstalledRule, ()>, Error> {
        Ok(self.found().await?.into_iter().map(|(rule, _)| (rule, ())).collect())
    }

    async fn put(&self, key: &InstalledRule, _want: &(), _have: Option<&()>) -> Result<(), Error> {
        let RuleField::Plain(value) = &key.fields else {
            return Err(Error::Unsupported("such a rule cannot be wanted"));
        };
        let RuleValue { source, fwmark, input_interface, output_interface, action, suppress_prefix_length } =
            value;
        if !(names::RULE_FIRST..=names::RULE_LAST).contains(&key.rule_key.priority) {
            return Err(Error::Unsupported("the priority is outside of our range"));
        }
        let mut request = self.netlink.handle()?.rule().add().priority(key.rule_key.priority);
        request = match action {
            Action::Table(table) => request.table_id(*table).action(RuleAction::ToTable),
            Action::Prohibit => request.action(RuleAction::Prohibit),
            Action::Unreachable => request.action(RuleAction::Unreachable),
        };
        if let Some(interface) = input_interface {
            request = request.input_interface(interface);
        }
        if let Some(interface) = output_interface {
            request = request.output_interface(interface);
        }
        let message = request.message_mut();
        message.header.family = match key.rule_key.family {
            Family::V4 => AddressFamily::Inet,
            Family::V6 => AddressFamily::Inet6,
        };
        if !matches!(action, Action::Table(_)) {
            // The builder's default is the main table, which the kernel would report as a lookup.
            message.header.table = RouteHeader::RT_TABLE_UNSPEC;
        }
        message.attributes.push(RuleAttribute::Protocol(OURS));
        if let Some(source) = source {
            message.header.src_len = source.prefix_len();
            message.attributes.push(RuleAttribute::Source(source.addr()));
        }
        if let Some((mark, mask)) = fwmark {
            message.attributes.extend([RuleAttribute::FwMark(*mark), RuleAttribute::FwMask(*mask)]);
        }
        if let Some(length) = suppress_prefix_length {
            message.attributes.push(RuleAttribute::SuppressPrefixLen(*length));
        }
        settled("add the rule", request.execute().await, &[libc::EEXIST])
    }

    async fn remove(&self, key: &InstalledRule, _have: &()) -> Result<(), Error> {
        for (rule, mut message) in self.found().await? {
            if rule == *key {
                // These flags report the state of the interface and do not select.
                message.header.flags -=
                    RuleFlags::IifDetached | RuleFlags::OifDetached | RuleFlags::Unresolved;
                let request = self.netlink.handle()?.rule().del(message);
                settled("remove the rule", request.execute().await, &[libc::ENOENT])?;
            }
        }
        Ok(())
    }

    fn resource(key: &InstalledRule) -> String {
        let family = match key.rule_key.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        };
        let text = match &key.fields {
            RuleField::Plain(value) => show(value),
            RuleField::Foreign(text) => text.clone(),
        };
        format!("{family} {}: {text}", key.rule_key.priority)
    }

    fn differences(expected: Option<&()>, actual: Option<&()>) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&()>| value.map_or(ABSENT, |()| PRESENT).to_owned();
        vec![("rule", show(expected), show(actual))]
    }
}

/// Returns `None` for a foreign rule.
fn rule(family: Family, message: &RuleMessage) -> Option<InstalledRule> {
    let mut priority = 0;
    let mut protocol = None;
    let mut table = u32::from(message.header.table);
    let (mut mark, mut mask) = (None, None);
    let (mut input_interface, mut output_interface) = (None, None);
    let mut suppress_prefix_length = None;
    let header = &message.header;
    let mut source = None;
    let mut foreign = header.dst_len != 0 || header.tos != 0 || header.flags.contains(RuleFlags::Invert);
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Source(address) => source = Some(*address),
            RuleAttribute::Priority(number) => priority = *number,
            RuleAttribute::Protocol(number) => protocol = Some(*number),
            RuleAttribute::Table(number) => table = *number,
            RuleAttribute::FwMark(number) => mark = Some(*number),
            RuleAttribute::FwMask(number) => mask = Some(*number),
            RuleAttribute::Iifname(name) => input_interface = Some(name.clone()),
            RuleAttribute::Oifname(name) => output_interface = Some(name.clone()),
            RuleAttribute::SuppressPrefixLen(NO_SUPPRESSION) => {}
            RuleAttribute::SuppressPrefixLen(length) => suppress_prefix_length = Some(*length),
            RuleAttribute::SuppressIfGroup(NO_SUPPRESSION) => {}
            _ => foreign = true,
        }
    }
    if protocol != Some(OURS) || !(names::RULE_FIRST..=names::RULE_LAST).contains(&priority) {
        return None;
    }
    let source = source.and_then(|address| IpNet::new(address, header.src_len).ok());
    foreign |= source.is_none() && header.src_len != 0;
    let action = match header.action {
        RuleAction::ToTable => Some(Action::Table(table)),
        RuleAction::Prohibit => Some(Action::Prohibit),
        RuleAction::Unreachable => Some(Action::Unreachable),
        _ => None,
    };
    let fields = match action {
        Some(action) if !foreign => {
            let fwmark = mask.map(|mask| (mark.unwrap_or_default(), mask));
            RuleField::Plain(RuleValue {
                source,
                fwmark,
                input_interface,
                output_interface,
                action,
                suppress_prefix_length,
            })
        }
        _ => RuleField::Foreign(format!("{:?} with {:?}", header.action, message.attributes)),
    };
    Some(InstalledRule { rule_key: RuleKey { family, priority }, fields })
}

fn show(value: &RuleValue) -> String {
    let RuleValue { source, fwmark, input_interface, output_interface, action, suppress_prefix_length } =
        value;
    let mut text = source.map_or_else(|| "from all".to_owned(), |source| format!("from {source}"));
    if let Some((mark, mask)) = fwmark {
        text.push_str(&format!(" fwmark {mark:#x}/{mask:#x}"));
    }
    if let Some(interface) = input_interface {
        text.push_str(&format!(" iif {interface}"));
    }
    if let Some(interface) = output_interface {
        text.push_str(&format!(" oif {interface}"));
    }
    match action {
        Action::Table(table) => text.push_str(&format!(" lookup {table}")),
        Action::Prohibit => text.push_str(" prohibit"),
        Action::Unreachable => text.push_str(" unreachable"),
    }
    if let Some(length) = suppress_prefix_length {
        text.push_str(&format!(" suppress_prefixlength {length}"));
    }
    text
}

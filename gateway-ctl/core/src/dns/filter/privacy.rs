//! Entries for blocks of privacy classes, which are names of public resolvers and AAAA records, and for trust classes
//! whose devices may not resolve local names.

use gateway_model::domain::DomainName;
use gateway_model::pattern::Pattern;
use gateway_model::settings::groups::{DhcpConfig, HostBlocks, PrivacyBlocks};
use gateway_model::{Device, Id, State};

use super::entry::{ClientSelector, Entry, RuleConditions, RuleEffect, Tier};
use super::pattern::Test;
use crate::dns::decision::{Action, Cause};
use crate::dns::domain_set::Form;
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;
use crate::dns::zones::special_use;
use crate::doh_servers;

pub(super) fn entries(state: &State) -> Vec<Entry> {
    let blocks: PrivacyBlocks = state.group();
    let mut entries = local_names(state);
    if let Some(scope) = scope(state, &blocks, |blocks| blocks.block_doh) {
        let names = doh_servers::NAMES.iter().filter_map(|text| Some((text, DomainName::parse(text).ok()?)));
        entries.extend(names.map(|(text, name)| {
            let test = Test::Name(Name::from(&name), Form::Both);
            entry(
                text,
                test,
                Action::Nxdomain,
                RuleConditions { scope: scope.clone(), ..RuleConditions::default() },
            )
        }));
    }
    if let Some(scope) = scope(state, &blocks, |blocks| blocks.block_ipv6) {
        let conditions = RuleConditions { types: vec![rtype::AAAA], scope, ..RuleConditions::default() };
        entries.push(entry("*", Test::of(&Pattern::Wildcard("*".to_owned())), Action::NoData, conditions));
    }
    entries
}

/// Names at which clients of DNSCrypt request the certificate of a server, in the clear.
pub(super) const DNSCRYPT_CERTIFICATES: &str = "2.dnscrypt-cert.*";

/// Returns the clients that get no certificates of DNSCrypt servers: those without DNS over HTTPS or over TLS.
pub(super) fn no_dnscrypt(state: &State) -> Option<ClientSelector> {
    scope(state, &state.group(), |blocks| blocks.block_doh || blocks.block_dot)
}

/// Reports whether a name is that of a certificate of a DNSCrypt server, of either version of the protocol.
pub(super) fn is_dnscrypt_certificate(name: NameRef<'_>) -> bool {
    matches!(name.wire(), [1, b'1' | b'2', rest @ ..] if rest.starts_with(b"\x0ddnscrypt-cert"))
}

/// Returns entries that hide names of the LAN from devices whose trust class does not let them resolve those.
fn local_names(state: &State) -> Vec<Entry> {
    let is_denied = |device: &&Device| state.trust_class_of(device).is_some_and(|class| !class.dns_local);
    let devices: Vec<Id> = state.devices.iter().filter(is_denied).map(|device| device.meta.id).collect();
    if devices.is_empty() {
        return Vec::new();
    }
    let scope = ClientSelector::devices(devices);
    let of_hosts = state.group::<DhcpConfig>().domain;
    let zones = state.dns_zones.iter().filter(|zone| zone.enabled).map(|zone| zone.name.to_string());
    let names = std::iter::once(of_hosts).chain(zones).chain(special_use::reverse());
    let entry_of = |text: String| {
        let test = Test::Name(Name::from(&DomainName::parse(&text).ok()?), Form::Both);
        let conditions = RuleConditions { scope: scope.clone(), ..RuleConditions::default() };
        Some(entry(&text, test, Action::Nxdomain, conditions))
    };
    names.filter_map(entry_of).collect()
}

/// Returns the clients with a block, or `None` if there are none.
fn scope(state: &State, blocks: &PrivacyBlocks, has: impl Fn(&HostBlocks) -> bool) -> Option<ClientSelector> {
    if has(&blocks.all) {
        return Some(ClientSelector::default());
    }
    let devices = state.devices.iter().filter(|device| has(&blocks.of(device, state)));
    let devices: Vec<Id> = devices.map(|device| device.meta.id).collect();
    (!devices.is_empty()).then(|| ClientSelector::devices(devices))
}

fn entry(text: &str, test: Test, action: Action, conditions: RuleConditions) -> Entry {
    Entry {
        cause: Cause::Privacy,
        id: None,
        text: text.into(),
        tier: Tier::Privacy,
        effect: RuleEffect::Do(action),
        test,
        conditions: conditions.boxed(),
    }
}

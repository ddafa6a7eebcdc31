//! Interfaces that the configuration names and that the host does not have.

use std::collections::BTreeSet;

use gateway_core::facts::Facts;
use gateway_model::kinds::bridge::BridgeSourceType;
use gateway_model::kinds::hops::{Hop, HopType};
use gateway_model::settings::Bootstrap;
use gateway_model::settings::groups::{DhcpConfig, InterfacesConfig};
use gateway_model::{State, Warning, decode};
use serde_json::Value;

/// The interfaces of the host, and those that the gateway makes.
pub(crate) struct Interfaces<'a> {
    facts: &'a Facts,
    made: BTreeSet<&'a str>,
    /// Names of uplinks, by which hops may name their interfaces.
    uplinks: BTreeSet<String>,
}

impl<'a> Interfaces<'a> {
    pub(crate) fn new(config: &'a Bootstrap, facts: &'a Facts) -> Interfaces<'a> {
        let bridges = config.network.bridges.iter().map(|bridge| bridge.name.as_str());
        let vlans = config.network.vlans.iter().map(|vlan| vlan.name.as_str());
        let uplinks = config.all_uplinks().iter().map(|wan| wan.display_name().to_owned()).collect();
        Interfaces { facts, made: bridges.chain(vlans).collect(), uplinks }
    }

    /// Reports whether the host lacks this interface. Without observations of the kernel none is missing.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        !self.facts.links.is_empty() && !self.facts.links.contains_key(name) && !self.made.contains(name)
    }

    /// Returns a warning if the host lacks this interface.
    pub(crate) fn warning(&self, path: impl Into<String>, name: &str) -> Option<Warning> {
        let is_lo = name == "lo" && !self.facts.links.is_empty();
        let message = if is_lo {
            "unusable_interface: lo is the loopback interface, by which nothing leaves.".to_owned()
        } else if self.lacks(name) {
            format!("interface_missing: This host has no interface {name}.")
        } else {
            return None;
        };
        Some(Warning::new(path, message))
    }

    /// Returns a warning if a hop names an interface that the host lacks.
    pub(crate) fn hop_warning(&self, path: impl Into<String>, hop: &Hop) -> Option<Warning> {
        let is_named = hop.r#type == HopType::Interface && !self.uplinks.contains(&hop.target);
        is_named.then(|| self.warning(path, &hop.target))?
    }
}

/// Returns a warning for each hop of an object, as it is shown, that names an interface which the host lacks.
pub(crate) fn missing_hops(config: &Bootstrap, facts: &Facts, object: &Value) -> Vec<Warning> {
    let known = Interfaces::new(config, facts);
    let hops = object["hops"].as_array().into_iter().flatten().enumerate();
    let named = hops.filter_map(|(index, hop)| Some((index, decode::from_value::<Hop>(hop).ok()?)));
    named.filter_map(|(index, hop)| known.hop_warning(format!("hops[{index}].target"), &hop)).collect()
}

/// Returns a warning for each interface that the configuration names and the host lacks.
pub(crate) fn missing_interfaces(state: &State, config: &Bootstrap, facts: &Facts) -> Vec<Warning> {
    let known = Interfaces::new(config, facts);
    let mut named: Vec<(String, String)> = Vec::new();
    let mut add = |path: String, name: &str| named.push((path, name.to_owned()));
    for lan in config.lans() {
        add("network.lan_iface".into(), lan.as_str());
    }
    if config.network.wans.is_empty() {
        add("network.wan_iface".into(), config.network.wan_iface.as_str());
    }
    for (index, wan) in config.network.wans.iter().enumerate() {
        add(format!("network.wans[{index}].interface"), wan.interface.as_str());
    }
    for bridge in &config.network.bridges {
        bridge.ports.iter().for_each(|port| add("network.bridges".into(), port.as_str()));
    }
    for vlan in &config.network.vlans {
        add("network.vlans".into(), vlan.parent.as_str());
    }
    let interfaces: InterfacesConfig = state.group();
    interfaces.0.keys().for_each(|name| add("interfaces".into(), name.as_str()));
    if let Some(name) = state.group::<DhcpConfig>().interface {
        add("dhcp.interface".into(), name.as_str());
    }
    for segment in state.segments.iter() {
        if let Some(name) = &segment.interface {
            add(format!("segments.{:?}.interface", segment.name), name.as_str());
        }
    }
    for bridge in state.bridges.iter() {
        let source = bridge.source.iter().filter(|source| source.r#type == BridgeSourceType::Interface);
        source.for_each(|source| add(format!("bridges.{:?}.source", bridge.name), &source.value));
    }
    let mut warnings: Vec<Warning> =
        named.into_iter().filter_map(|(path, name)| known.warning(path, &name)).collect();
    let policies = state.routing_policies.iter().map(|policy| (&policy.name, &policy.hops));
    let profiles = state.profiles.iter().map(|profile| (&profile.name, &profile.hops));
    let chains = state.chains.iter().map(|chain| (&chain.name, &chain.hops));
    for (kind, all) in [
        ("routing_policies", policies.collect::<Vec<_>>()),
        ("profiles", profiles.collect()),
        ("chains", chains.collect()),
    ] {
        for (name, hops) in all {
            let path = |index: usize| format!("{kind}.{name:?}.hops[{index}]");
            let of_hops = hops.iter().enumerate();
            warnings.extend(of_hops.filter_map(|(index, hop)| known.hop_warning(path(index), hop)));
        }
    }
    warnings
}

//! Warnings about a list of uplinks that is valid, but may not have the expected effect.

use gateway_core::facts::Facts;
use gateway_model::Warning;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::groups::{InterfaceConfig, InterfacesConfig};
use gateway_model::settings::uplink::Wan;
use ipnet::IpNet;
use serde_json::Value;

use crate::endpoints::interfaces::presence::Interfaces;

/// Fields of an uplink whose omission is doubtful: they take their defaults, whatever the uplink had before.
const EXPLICIT: [&str; 2] = ["enabled", "balance"];

/// Returns warnings about fields that a request should name and does not. `uplinks` is the list as it was sent.
pub(super) fn unnamed_fields(uplinks: &Value) -> Vec<Warning> {
    let list = uplinks.as_array().into_iter().flatten().enumerate();
    let lacks = |wan: &Value, field: &str| wan.is_object() && wan.get(field).is_none();
    list.flat_map(|(index, wan)| {
        EXPLICIT.iter().filter(|field| lacks(wan, field)).map(move |field| {
            let message = format!("not_explicit: {field} was not sent, so it is true.");
            Warning::new(format!("uplinks[{index}].{field}"), message)
        })
    })
    .collect()
}

/// Returns the warnings. Each message begins with a code. `interfaces` are the configured networks by interface.
pub(super) fn advice(config: &Bootstrap, facts: &Facts, interfaces: &InterfacesConfig) -> Vec<Warning> {
    let network = &config.network;
    let known = Interfaces::new(config, facts);
    let enabled = || network.wans.iter().filter(|wan| wan.enabled);
    let mut warnings = Vec::new();
    let mut warn = |path: String, text: String| warnings.push(Warning::new(path, text));
    if network.wans.is_empty() {
        let message = format!(
            "default_uplink: The list is empty, so the only uplink is {}, which is network.wan_iface.",
            network.wan_iface
        );
        warn("uplinks".into(), message);
    } else if enabled().next().is_none() {
        warn("uplinks".into(), "no_enabled_uplink: No uplink is enabled, so nothing leaves.".into());
    }
    if !network.wans.is_empty() && !network.wans.iter().any(|wan| wan.interface == network.wan_iface) {
        let message = format!(
            "wan_iface_not_listed: {} is network.wan_iface, and no uplink while there is a list.",
            network.wan_iface
        );
        warn("uplinks".into(), message);
    }
    if network.wan_balance && enabled().filter(|wan| wan.balance).count() < 2 {
        let message =
            "balance_needs_two: Fewer than two enabled uplinks have balance, so nothing is balanced.";
        warn("wan_balance".into(), message.into());
    }
    for (index, wan) in network.wans.iter().enumerate() {
        let path = |field: &str| format!("uplinks[{index}].{field}");
        if network.wans[..index].iter().any(|other| other.interface == wan.interface) {
            let message = format!("duplicate_interface: {} is given twice; the first counts.", wan.interface);
            warn(path("interface"), message);
        }
        if !network.wan_balance && wan.weight != 1 {
            let message = "weight_ignored_when_not_balancing: Weights count while wan_balance is true.";
            warn(path("weight"), message.into());
        }
        if wan.probe.targets.len() == 1 {
            let message = "single_probe_target: If this target is down, the uplink counts as down.";
            warn(path("probe.targets"), message.into());
        }
        if let Some(message) = foreign_gateway(wan, facts, interfaces) {
            warn(path("gateway"), message);
        }
        if let Some(warning) = known.warning(path("interface"), wan.interface.as_str()) {
            warn(warning.path, warning.message);
        }
    }
    warnings
}

/// Compares the gateway with the networks that the interface has and those that it is to have.
fn foreign_gateway(wan: &Wan, facts: &Facts, interfaces: &InterfacesConfig) -> Option<String> {
    let gateway = wan.gateway_address()?;
    let observed = facts.addresses.get(wan.interface.as_str()).into_iter().flatten().copied();
    let configured = interfaces.0.get(&wan.interface).and_then(InterfaceConfig::network);
    let networks: Vec<IpNet> = observed.chain(configured).collect();
    let is_near = networks.iter().any(|network| network.contains(&gateway));
    (!networks.is_empty() && !is_near)
        .then(|| format!("gateway_not_in_subnet: {gateway} is in no network of {}.", wan.interface))
}

#[cfg(test)]
mod tests {
    use gateway_core::facts::Link;
    use gateway_model::settings::parse;
    use serde_json::json;

    use super::*;

    fn codes(config: &str) -> Vec<(String, String)> {
        let config = parse(config).expect("a configuration");
        let mut facts = Facts::default();
        facts.addresses.insert("eth0".to_owned(), ["198.51.100.2/24".parse().expect("a network")].into());
        let code = |warning: Warning| {
            let code = warning.message.split_once(':').expect("a code").0.to_owned();
            (warning.path, code)
        };
        let interfaces = json!({"eth4": {"method": "static", "address": "10.4.0.2", "prefix": 24}});
        let interfaces = serde_json::from_value(interfaces).expect("a configuration");
        for name in ["lo", "eth0", "eth2", "eth4", "ppp0"] {
            facts.links.insert(name.to_owned(), Link::default());
        }
        advice(&config, &facts, &interfaces).into_iter().map(code).collect()
    }

    #[test]
    fn each_doubt_has_a_code() {
        let found = codes(
            "network: { wan_iface: ppp0, wans: [{interface: eth0, gateway: 192.0.2.1, weight: 2}, {interface: eth2, \
             enabled: false, probe: {targets: [192.0.2.9]}}] }",
        );
        let expected = [
            ("uplinks", "wan_iface_not_listed"),
            ("uplinks[0].weight", "weight_ignored_when_not_balancing"),
            ("uplinks[0].gateway", "gateway_not_in_subnet"),
            ("uplinks[1].probe.targets", "single_probe_target"),
        ];
        assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
        let found = codes(
            "network: { wan_iface: eth0, wan_balance: true, wans: [{interface: eth0}, {interface: eth2, balance: false}] }",
        );
        assert_eq!(found, [("wan_balance".to_owned(), "balance_needs_two".to_owned())]);
    }

    #[test]
    fn an_empty_list_missing_interfaces_and_foreign_networks_are_true_warnings() {
        let of = |config: &str| codes(config).into_iter().map(|(path, code)| format!("{path} {code}"));
        let found: Vec<String> = of("network: { wan_iface: eth0, wans: [] }").collect();
        assert_eq!(found, ["uplinks default_uplink"]);
        let found: Vec<String> =
            of("network: { wan_iface: eth0, wans: [{interface: eth0}, {interface: nope9}, {interface: lo}, \
             {interface: eth4, gateway: 10.5.0.1}] }")
            .collect();
        assert_eq!(
            found,
            [
                "uplinks[1].interface interface_missing",
                "uplinks[2].interface unusable_interface",
                "uplinks[3].gateway gateway_not_in_subnet",
            ]
        );
        let sent = json!([{"interface": "eth0", "enabled": true}, {"interface": "eth2", "balance": false}]);
        let paths: Vec<String> = unnamed_fields(&sent).into_iter().map(|warning| warning.path).collect();
        assert_eq!(paths, ["uplinks[0].balance", "uplinks[1].enabled"]);
    }
}

//! Warnings about a list of uplinks that is valid, but may not have the expected effect.

use gateway_core::facts::Facts;
use gateway_model::Warning;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::uplink::Wan;

/// Returns the warnings. Each message begins with a code.
pub fn advice(config: &Bootstrap, facts: &Facts) -> Vec<Warning> {
    let network = &config.network;
    let enabled = || network.wans.iter().filter(|wan| wan.enabled);
    let mut warnings = Vec::new();
    let mut warn = |path: String, text: String| warnings.push(Warning::new(path, text));
    if enabled().next().is_none() {
        warn("uplinks".into(), "no_enabled_uplink: No uplink is enabled, so nothing leaves.".into());
    }
    if !network.wans.iter().any(|wan| wan.interface == network.wan_iface) {
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
        if let Some(message) = foreign_gateway(wan, facts) {
            warn(path("gateway"), message);
        }
    }
    warnings
}

fn foreign_gateway(wan: &Wan, facts: &Facts) -> Option<String> {
    let gateway = wan.gateway_address()?;
    let networks = facts.addresses.get(wan.interface.as_str())?;
    let is_near = networks.iter().any(|network| network.contains(&gateway));
    (!networks.is_empty() && !is_near)
        .then(|| format!("gateway_not_in_subnet: {gateway} is in no network of {}.", wan.interface))
}

#[cfg(test)]
mod tests {
    use gateway_model::settings::parse;

    use super::*;

    fn codes(config: &str) -> Vec<(String, String)> {
        let config = parse(config).expect("a configuration");
        let mut facts = Facts::default();
        facts.addresses.insert("eth0".to_owned(), ["198.51.100.2/24".parse().expect("a network")].into());
        let code = |warning: Warning| {
            let code = warning.message.split_once(':').expect("a code").0.to_owned();
            (warning.path, code)
        };
        advice(&config, &facts).into_iter().map(code).collect()
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
}

//! The reconcile loop over the real backends.

use std::sync::Arc;

use gateway_common::wire::Mark;
use gateway_core::plan::{
    AddressKey, Family, LinkSettings, NftRuleset, Plan, RouteKey, RouteValue, RuleAction, RuleKey, RuleValue,
    SecretKey, WireGuardDevice, names,
};
use gateway_ctl::engines::EgressEngines;
use gateway_ctl::os::Outcome;
use gateway_ctl::os::openvpn::{OpenVpn, Resolver};
use gateway_ctl::os::wireguard::WireGuard;
use gateway_ctl::reconcile::{Check, Dataplane, Existing, Kernel, Subsystems, install_default_deny};

use super::{ip, namespace, netlink, within};

/// Dataplane without programs: these tests cover everything else.
struct NoDataplane;

impl Dataplane for NoDataplane {
    async fn apply(&self, _plan: &Plan, _check: Check) -> Outcome {
        Outcome::default()
    }
}

fn plan() -> Plan {
    let mut plan = Plan::default();
    let device = WireGuardDevice {
        tunnel_id: "exit-a".into(),
        private_key: SecretKey([7; 32]),
        listen_port: Some(51820),
        fwmark: Mark(0x4770_0000),
        mtu: 1420,
        peers: Default::default(),
    };
    plan.wireguard.insert("gw-a".into(), device);
    plan.links.insert("gw-a".into(), LinkSettings { up: true, mtu: 1420 });
    for address in ["10.9.0.2/32", "fd00:9::2/128"] {
        plan.addresses.insert(
            AddressKey { interface: "gw-a".into(), address: address.parse().expect("an address") },
            (),
        );
    }
    for family in [Family::V4, Family::V6] {
        let destination = if family == Family::V4 { "0.0.0.0/0" } else { "::/0" }.parse().expect("a network");
        let key = |metric| RouteKey { table: 47001, destination, metric };
        plan.routes.insert(key(10), RouteValue::Unicast { interface: "gw-a".into(), gateway: None });
        plan.routes.insert(key(names::METRIC_LAST), RouteValue::Unreachable);
        let mut rule = |priority, fwmark, input: Option<&str>, action| {
            let input_interface = input.map(str::to_owned);
            let value = RuleValue {
                source: None,
                fwmark,
                input_interface,
                output_interface: None,
                action,
                suppress_prefix_length: None,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        };
        rule(4701, Some((0x4700_0001, u32::MAX)), None, RuleAction::Table(47001));
        rule(4900, None, Some("lan0"), RuleAction::Prohibit);
    }
    for name in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.conf.all.src_valid_mark"] {
        plan.sysctls.insert(name.into(), "1".into());
    }
    // Enabling forwarding resets this one.
    plan.sysctls.insert("net.ipv4.conf.all.accept_redirects".into(), "1".into());
    plan.nft = NftRuleset {
        lan: vec!["lan0".into()],
        tunnels: vec!["gw-a".into()],
        uplinks: vec!["wan0".into()],
        open_udp: vec![51820],
        open_tcp: vec![],
        proxied: true,
        dns_port: 53,
        ..NftRuleset::default()
    };
    plan
}

async fn subsystems() -> Subsystems<Kernel, NoDataplane> {
    let openvpn = OpenVpn::new(std::env::temp_dir().join("no-openvpn-here"), Resolver::new(&[]));
    let engines = EgressEngines {
        wireguard: Arc::new(WireGuard::new().await),
        openvpn: Arc::new(openvpn),
        transports: Arc::default(),
        relay: Arc::default(),
    };
    Subsystems::new(Kernel::new(netlink(), engines.backends(netlink())), NoDataplane)
}

fn assert_ok(outcomes: &std::collections::BTreeMap<&str, Outcome>) {
    assert!(outcomes.values().all(Outcome::is_ok), "{outcomes:#?}");
}

#[test]
fn a_plan_is_installed_maintained_and_removed() {
    let ns = namespace("plan");
    ns.ip("link add lan0 type bridge\nlink set lan0 up").expect("set-up");
    within(&ns, async || {
        assert!(install_default_deny(&["lan0".to_owned()], Existing::Keep).await.is_ok());
        let mut subsystems = subsystems().await;
        let outcomes = subsystems.run(&plan(), Check::Maps).await;
        assert_ok(&outcomes);
        assert!(ip(&ns, "-o link show gw-a").contains("mtu 1420"));
        assert!(ip(&ns, "addr show dev gw-a").contains("10.9.0.2/32"));
        assert!(ip(&ns, "route show table 47001").contains("default dev gw-a"));
        assert!(ip(&ns, "-6 route show table 47001").contains("default dev gw-a"));
        let rules = ip(&ns, "rule show");
        assert!(rules.contains("4701:") && rules.contains("4900:"), "{rules}");
        assert!(!rules.contains("6999:"), "the base block's rule is no longer needed: {rules}");
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap();
        assert_eq!(read("ipv4/ip_forward").trim(), "1");
        assert_eq!(read("ipv6/conf/all/forwarding").trim(), "1");
        assert_eq!(read("ipv4/conf/all/accept_redirects").trim(), "1");
        assert!(
            ns.run("nft", &["list", "chain", "inet", "gateway", "postrouting"]).unwrap().contains("gw-a")
        );

        let again = subsystems.run(&plan(), Check::Maps).await;
        assert!(again.values().all(|outcome| *outcome == Outcome::default()), "{again:#?}");

        assert_ok(&subsystems.run(&Plan::default(), Check::Maps).await);
        assert!(!ip(&ns, "-o link show").contains("gw-a"));
        assert!(!ip(&ns, "rule show").contains("proto 71"));
        assert!(!ip(&ns, "route show table all").contains("proto 71"));
        assert!(!ip(&ns, "-6 route show table all").contains("proto 71"));
    });
}

#[test]
fn a_new_process_finds_what_the_old_one_left() {
    let ns = namespace("again");
    ns.ip("link add lan0 type bridge\nlink set lan0 up").expect("set-up");
    within(&ns, async || {
        let mut without_tunnel = plan();
        without_tunnel.wireguard.clear();
        without_tunnel.links.clear();
        without_tunnel.addresses.clear();
        without_tunnel.routes.retain(|_, value| *value == RouteValue::Unreachable);
        assert_ok(&subsystems().await.run(&without_tunnel, Check::Maps).await);
        let outcomes = subsystems().await.run(&without_tunnel, Check::Maps).await;
        assert!(outcomes.values().all(|outcome| *outcome == Outcome::default()), "{outcomes:#?}");
        ip(&ns, "rule add lookup main priority 4800 protocol 71");
        let outcomes = subsystems().await.run(&without_tunnel, Check::Maps).await;
        assert_eq!(
            (outcomes["rules"].removed, outcomes["rules"].drift.len()),
            (1, 0),
            "an orphan, not drift"
        );
    });
}

#[test]
fn outside_changes_are_reported_and_repaired_in_one_run() {
    let ns = namespace("drift");
    ns.ip("link add lan0 type bridge\nlink set lan0 up").expect("set-up");
    within(&ns, async || {
        let mut subsystems = subsystems().await;
        assert_ok(&subsystems.run(&plan(), Check::Maps).await);
        ns.ip(
            "rule del priority 4900\nroute del default table 47001 metric 10\naddr del 10.9.0.2/32 dev gw-a\n\
               link set gw-a mtu 1300",
        )
        .expect("outsider");
        ns.nft("add rule inet gateway input accept\n").expect("outsider");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").expect("outsider");
        let outcomes = subsystems.run(&plan(), Check::Maps).await;
        assert_ok(&outcomes);
        for name in ["rules", "addresses", "routes", "links", "nft", "sysctl"] {
            assert!(!outcomes[name].drift.is_empty(), "{name}: {outcomes:#?}");
            assert!(outcomes[name].drift.iter().all(|entry| entry.repaired), "{name}: {outcomes:#?}");
        }
        let again = subsystems.run(&plan(), Check::Maps).await;
        assert!(again.values().all(|outcome| *outcome == Outcome::default()), "{again:#?}");
    });
}

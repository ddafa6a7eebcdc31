//! Prefixes that an uplink delegates: from a real server to hosts that configure themselves.

use std::net::{IpAddr, Ipv6Addr};

use gateway_tests::delegating_router::DelegatingRouter;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{WAN_V6, server};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;
use crate::e2e::ipv6_lan::{ADDRESSES, DEFAULT_ROUTES, configure_itself, wait_until_shown};

/// Prefixes of 40 bits, out of which prefixes are delegated.
const POOL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x500, 0, 0, 0, 0, 0);
const OTHER_POOL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x600, 0, 0, 0, 0, 0);
/// A network of a public service, which a hostile uplink delegates.
const PUBLIC_POOL: Ipv6Addr = Ipv6Addr::new(0x2a00, 0x1450, 0x4000, 0, 0, 0, 0, 0);
const OF_PUBLIC_POOL: &str = "2a00:1450:40";
/// Beginnings of addresses out of them.
const OF_POOL: &str = "2001:db8:5";
const OF_OTHER_POOL: &str = "2001:db8:6";
const LIFETIMES: (u32, u32) = (3000, 4000);

fn prepare(pool: Ipv6Addr) -> (Testbed, DelegatingRouter) {
    let testbed = Testbed::prepare().expect("scene");
    testbed.daemon.configure(&json!({"network": {"ipv6": {"enabled": true}}})).expect("configured");
    let router = delegate(&testbed, pool);
    (testbed, router)
}

fn delegate(testbed: &Testbed, pool: Ipv6Addr) -> DelegatingRouter {
    let router = DelegatingRouter::start(&testbed.network.internet, "up0", pool, WAN_V6, LIFETIMES);
    router.expect("a delegating router")
}

#[test]
fn hosts_use_a_delegated_prefix_while_its_uplink_is_usable() {
    let (mut testbed, router) = prepare(POOL);
    testbed.daemon.start().expect("started");
    let network = &testbed.network;
    let tv = &network.tv;
    configure_itself(tv);
    wait_until_shown(tv, ADDRESSES, OF_POOL, true);
    wait_until_shown(tv, DEFAULT_ROUTES, "default", true);
    let answer = ask_server(tv, server(true));
    let Some(IpAddr::V6(seen)) = answer.seen() else { panic!("{answer}\n{}", router.log()) };
    assert_eq!(seen.segments()[..2], POOL.segments()[..2], "{answer}");
    assert_eq!(seen.segments()[2] & 0xff00, POOL.segments()[2], "an address of the host, not of the gateway");

    network.internet.ip("link set up0 down").expect("down");
    wait_until_shown(tv, ADDRESSES, "deprecated", true);
    wait_until_shown(tv, DEFAULT_ROUTES, "default", false);
    network.internet.ip("link set up0 up\naddress replace 2001:db8:113::1/64 dev up0 nodad").expect("up");
    network.gateway.ip("route replace default via 2001:db8:113::1").expect("a route");
    wait_until_shown(tv, ADDRESSES, "deprecated", false);
    wait_until_shown(tv, ADDRESSES, OF_POOL, true);

    let set = json!({"value": false});
    testbed.api().put("/settings/network.ipv6.delegation", &set).expect("set");
    wait_until_shown(tv, ADDRESSES, "deprecated", true);
    wait_ok(SOON, "the prefix to be released", || {
        anyhow::ensure!(router.log().contains("DHCP6_RELEASE_PD "), "{}", router.log());
        Ok(())
    })
    .expect("released");
    let own = network.gateway.run("ip", &["-6", "address", "show", "dev", "eth1"]).expect("addresses");
    assert!(!own.contains(OF_POOL), "{own}");
}

#[test]
fn a_prefix_survives_a_restart_and_a_changed_one_replaces_it() {
    let (mut testbed, router) = prepare(POOL);
    testbed.daemon.start().expect("started");
    configure_itself(&testbed.network.tv);
    wait_until_shown(&testbed.network.tv, ADDRESSES, OF_POOL, true);
    let address = |testbed: &Testbed| {
        let shown = testbed.network.tv.namespace.run("ip", ADDRESSES).expect("addresses");
        shown.split_whitespace().find(|word| word.starts_with(OF_POOL)).expect("an address").to_owned()
    };
    let before = address(&testbed);
    assert!(testbed.daemon.terminate().expect("ended").success());
    testbed.daemon.start().expect("started again");
    wait_until_shown(&testbed.network.tv, DEFAULT_ROUTES, "default", true);
    wait_until_shown(&testbed.network.tv, ADDRESSES, "deprecated", false);
    assert_eq!(address(&testbed), before);
    assert!(!router.log().contains("DHCP6_RELEASE_PD "), "a restart releases nothing");

    assert!(testbed.daemon.terminate().expect("ended").success());
    drop(router);
    let _router = delegate(&testbed, OTHER_POOL);
    testbed.daemon.start().expect("started again");
    wait_until_shown(&testbed.network.tv, ADDRESSES, OF_OTHER_POOL, true);
    wait_until_shown(&testbed.network.tv, ADDRESSES, "deprecated", true);
    let shown =
        testbed.network.tv.namespace.run("ip", &["-6", "address", "show", "dev", "eth0", "-deprecated"]);
    let preferred = shown.expect("addresses");
    assert!(preferred.contains(OF_OTHER_POOL) && !preferred.contains(&before), "{preferred}");
    let answer = ask_server(&testbed.network.tv, server(true));
    let Some(IpAddr::V6(seen)) = answer.seen() else { panic!("{answer}") };
    assert_eq!(seen.segments()[2] & 0xff00, OTHER_POOL.segments()[2], "{answer}");
}

/// A hostile uplink delegates a prefix that holds a public service, so that traffic to it would count as LAN.
#[test]
fn a_network_of_a_public_service_is_used_only_by_the_switch() {
    let (mut testbed, router) = prepare(PUBLIC_POOL);
    testbed.daemon.start().expect("started");
    let network = &testbed.network;
    configure_itself(&network.tv);
    wait_ok(SOON, "the prefix to be refused", || {
        let enforce = testbed.api().get("/enforce").map_err(anyhow::Error::msg)?.to_string();
        anyhow::ensure!(enforce.contains("is a network of Google"), "{enforce}\n{}", router.log());
        Ok(())
    })
    .expect("refused");
    let own = || network.gateway.run("ip", &["-6", "address", "show", "dev", "eth1"]).expect("addresses");
    assert!(!own().contains(OF_PUBLIC_POOL), "{}", own());

    let set = json!({"value": true});
    testbed.api().put("/settings/network.ipv6.trust_delegation", &set).expect("set");
    wait_until_shown(&network.tv, ADDRESSES, OF_PUBLIC_POOL, true);
    assert!(own().contains(OF_PUBLIC_POOL), "{}", own());
}

//! Router advertisements on the LAN: those of other routers, and the withdrawal of IPv6 from blocked hosts.

use std::net::Ipv6Addr;
use std::time::Duration;

use gateway_common::checksum::{fold, sum};
use gateway_tests::frames::{FrameSender, mac};
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, Topology};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);
/// Deadline of a withdrawal.
const WITHDRAWN: Duration = Duration::from_secs(5);

/// Returns the frame of a router advertisement with this lifetime and the prefix 2001:db8:66::/64.
pub(crate) fn advertisement(from: [u8; 6], router: Ipv6Addr, lifetime: u16) -> Vec<u8> {
    let mut message = vec![134, 0, 0, 0, 64, 0];
    message.extend(lifetime.to_be_bytes());
    message.extend([0; 8]);
    message.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0]);
    message.extend([0x20, 1, 0xd, 0xb8, 0, 0x66, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut packet = vec![0x60, 0, 0, 0, 0, 48, 58, 255];
    packet.extend(router.octets());
    packet.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let pseudo = [&packet[8..], &[0, 0, 0, 48, 0, 0, 0, 58]].concat();
    let checksum = !fold(u32::from(fold(sum(&pseudo))) + u32::from(fold(sum(&message))));
    message[2..4].copy_from_slice(&checksum.to_ne_bytes());
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1];
    frame.extend(from);
    frame.extend([0x86, 0xdd]);
    [frame, packet, message].concat()
}

/// Returns a function that announces the gateway as a router for the hosts of the LAN.
pub(crate) fn announcer(network: &Topology) -> impl Fn() -> anyhow::Result<()> {
    let link =
        network.gateway.run("ip", &["-json", "address", "show", "dev", "eth1"]).expect("its addresses");
    let link: Value = serde_json::from_str(&link).expect("JSON");
    let addresses = link[0]["addr_info"].as_array().expect("addresses");
    let router = addresses.iter().find(|address| address["scope"] == "link").expect("a link-local address");
    let router: Ipv6Addr = router["local"].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let gateway = mac(link[0]["address"].as_str().expect("a MAC address"));
    let sender = FrameSender::open(&network.gateway, "eth1").expect("a sender");
    move || sender.send(&advertisement(gateway, router, 1800))
}

/// Makes a host use the routers that announce themselves.
pub(crate) fn accept_advertisements(host: &Host) {
    for (key, value) in [("accept_ra", "2"), ("accept_ra_defrtr", "1")] {
        host.namespace.sysctl(&format!("net.ipv6.conf.eth0.{key}"), value).expect("set");
    }
}

#[test]
fn another_router_on_the_lan_is_reported_until_it_takes_its_word_back() {
    let testbed = Testbed::start().expect("scene");
    let tv = &testbed.network.tv;
    let sender = FrameSender::open(&tv.namespace, "eth0").expect("a sender");
    let listed = || -> anyhow::Result<Value> {
        Ok(testbed.api().get("/privacy/leak-monitor")?["foreign_routers"].clone())
    };
    assert_eq!(listed().expect("the monitor"), json!([]));
    let router = wait_ok(SOON, "the router to be listed", || {
        sender.send(&advertisement(mac(tv.mac), ROUTER, 1800))?;
        let listed = listed()?;
        anyhow::ensure!(listed.as_array().is_some_and(|list| list.len() == 1), "{listed}");
        Ok(listed[0].clone())
    })
    .expect("listed");
    assert_eq!(router["address"], "fe80::66", "{router}");
    assert_eq!(router["mac"], tv.mac, "{router}");
    assert_eq!(router["prefixes"], json!(["2001:db8:66::/64"]), "{router}");
    wait_ok(SOON, "the router to be gone", || {
        sender.send(&advertisement(mac(tv.mac), ROUTER, 0))?;
        let listed = listed()?;
        anyhow::ensure!(listed == json!([]), "{listed}");
        Ok(())
    })
    .expect("gone");
}

/// Hosts take their default route from an announcement of the gateway. The one that is blocked loses it.
#[test]
fn ipv6_is_withdrawn_from_a_blocked_host_and_from_no_other() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    let announce = announcer(network);
    let default_routes = |host: &Host| {
        host.namespace.run("ip", &["-6", "route", "show", "default", "proto", "ra"]).expect("routes")
    };
    for host in [&network.laptop, &network.tv] {
        accept_advertisements(host);
        wait_ok(SOON, "the host to use the gateway", || {
            announce()?;
            anyhow::ensure!(!default_routes(host).is_empty(), "{} has no route", host.name);
            Ok(())
        })
        .expect("a route");
    }
    let block = json!({"enabled": true, "scope": {"device_id": laptop}});
    testbed.api().post("/privacy/block-ipv6", &block).expect("switched");
    wait_ok(WITHDRAWN, "the laptop to lose its route", || {
        let routes = default_routes(&network.laptop);
        anyhow::ensure!(routes.is_empty(), "{routes}");
        Ok(())
    })
    .expect("withdrawn");
    assert!(!default_routes(&network.tv).is_empty(), "the tv lost its route, too");
}

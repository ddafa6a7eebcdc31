//! All source types of a policy. VLANs need a kernel with VLAN devices; their tests are in the `vm` suite.

use gateway_tests::services::{DNS, HTTP, HTTP_OTHER, IDENT};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{other_server, server, wan};
use gateway_tests::traffic::{TIMEOUT, ask, ask_udp};
use serde_json::json;

use crate::e2e::{FAMILIES, assert_direct, assert_nothing_leaked, assert_the_tap_sees, assert_through};

/// Returns a daemon with a tunnel to exit A.
fn scene_with_exit_a() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed
}

#[test]
fn all_means_every_host_of_the_lan() {
    let testbed = scene_with_exit_a();
    testbed.policy(&policy("all", 10, ("all", ""), &["wg-a"])).expect("policy");
    testbed.network.tap.reset();
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_through(&testbed.network.tv, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn an_interface_means_what_comes_in_by_it() {
    let testbed = scene_with_exit_a();
    testbed.policy(&policy("lan", 10, ("interface", "eth1"), &["wg-a"])).expect("policy");
    testbed.network.tap.reset();
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_subnet_means_the_addresses_in_it_and_no_others() {
    let testbed = scene_with_exit_a();
    let subnets = "192.168.10.0/28,fd00:10::10/124";
    testbed.policy(&policy("half", 10, ("subnet", subnets), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
    assert_direct(&testbed.network.tv);
}

#[test]
fn the_innermost_subnet_is_not_what_counts_but_the_lowest_number() {
    let testbed = scene_with_exit_a();
    let outer = "192.168.10.0/24,fd00:10::/64";
    let inner = "192.168.10.10/32,fd00:10::10/128";
    testbed.store_policy(&policy("outer", 10, ("subnet", outer), &["wg-a"])).expect("policy");
    testbed.policy(&policy("inner", 20, ("subnet", inner), &[])).expect("policy");
    testbed.network.tap.reset();
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_device_is_known_by_its_hardware_address_whatever_its_address() {
    let testbed = scene_with_exit_a();
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.policy(&policy("laptop", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    assert_through(&network.laptop, &network.exit_a);
    network
        .laptop
        .namespace
        .ip("address del 192.168.10.10/24 dev eth0\naddress add 192.168.10.99/24 dev eth0\n\
             route replace default via 192.168.10.1\naddress add fd00:10::99/64 dev eth0 nodad\n\
             address del fd00:10::10/64 dev eth0")
        .expect("another address");
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
    assert_direct(&network.tv);
}

#[test]
fn a_group_means_its_members() {
    let testbed = scene_with_exit_a();
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.device(&network.tv).expect("device");
    let group = create(testbed.api(), "/device-groups", &json!({"name": "work", "members": [laptop]}))
        .expect("group");
    testbed.policy(&policy("work", 10, ("device_group", &group), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
    assert_direct(&network.tv);
}

#[test]
fn a_destination_means_traffic_to_it_and_to_nothing_else() {
    let testbed = scene_with_exit_a();
    let network = &testbed.network;
    let other = format!("{}/32,{}/128", other_server(false), other_server(true));
    testbed.policy(&policy("there", 10, ("destination", &other), &["wg-a"])).expect("policy");
    for ipv6 in FAMILIES {
        let there = ask(&network.laptop, (other_server(ipv6), HTTP).into(), TIMEOUT);
        assert_eq!(there.seen(), Some(network.exit_a.address(ipv6)), "{there}");
        let elsewhere = ask(&network.laptop, (server(ipv6), HTTP).into(), TIMEOUT);
        assert_eq!(elsewhere.seen(), Some(wan(ipv6)), "{elsewhere}");
    }
}

#[test]
fn a_destination_with_a_port_means_that_port_of_tcp_and_udp() {
    let testbed = scene_with_exit_a();
    let network = &testbed.network;
    let ports = FAMILIES.map(|ipv6| {
        let length = if ipv6 { 128 } else { 32 };
        let (open, close) = if ipv6 { ("[", "]") } else { ("", "") };
        format!("{open}{0}/{length}{close}:{HTTP_OTHER},{open}{0}/{length}{close}:{IDENT}", server(ipv6))
    });
    testbed.policy(&policy("ports", 10, ("destination", &ports.join(",")), &["wg-a"])).expect("policy");
    for ipv6 in FAMILIES {
        let exit = Some(network.exit_a.address(ipv6));
        let tcp = ask(&network.laptop, (server(ipv6), HTTP_OTHER).into(), TIMEOUT);
        assert_eq!(tcp.seen(), exit, "{tcp}");
        let udp = ask_udp(&network.laptop, (server(ipv6), IDENT).into(), TIMEOUT);
        assert_eq!(udp.seen(), exit, "{udp}");
        let other_port = ask(&network.laptop, (server(ipv6), HTTP).into(), TIMEOUT);
        assert_eq!(other_port.seen(), Some(wan(ipv6)), "{other_port}");
        let other_host = ask(&network.laptop, (other_server(ipv6), HTTP_OTHER).into(), TIMEOUT);
        assert_eq!(other_host.seen(), Some(wan(ipv6)), "{other_host}");
    }
}

#[test]
fn a_blocked_port_is_blocked_for_everyone_and_dns_with_it() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let everywhere = format!("0.0.0.0/0:{DNS},[::/0]:{DNS}");
    testbed.policy(&policy("no dns", 10, ("destination", &everywhere), &[])).expect("policy");
    assert_the_tap_sees(&testbed, &network.laptop);
    for ipv6 in FAMILIES {
        for host in [&network.laptop, &network.tv] {
            let answer = ask_udp(host, (server(ipv6), DNS).into(), crate::e2e::BLOCKED);
            assert_eq!(answer.seen(), None, "{answer}");
            assert_eq!(network.services.seen(DNS, wan(ipv6)), 0);
        }
    }
    assert_nothing_leaked(&testbed);
    assert_direct(&network.laptop);
}

//! Identity of DNS clients: that of the packet. Policies apply to the first query of a host, whatever the gateway's
//! neighbour table says about its address. The upstream's log decides: the tap takes DNS of the gateway for housekeeping.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_tests::dns::{A, AAAA, Client, Upstream};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::e2e::dns_policy::resolving;
use crate::e2e::{BLOCKED, FAMILIES, SOON};

const GATEWAY_MAC: &str = "02:00:00:10:00:01";

/// States of the neighbour table in which a query arrives.
const STATES: [&str; 4] = ["no carrier before", "flushed", "failed", "new address"];

fn resolver(ipv6: bool) -> IpAddr {
    if ipv6 { LAN_V6.into() } else { LAN_V4.into() }
}

/// Adds permanent entries of the gateway to a host, as a host has them that goes on while the gateway forgets.
fn knows_the_gateway(host: &Host) {
    for ipv6 in FAMILIES {
        let entry = format!("neigh replace {} lladdr {GATEWAY_MAC} dev eth0 nud permanent", resolver(ipv6));
        host.namespace.ip(&entry).expect("an entry");
    }
}

/// Brings the neighbour table into a state. `number` makes new addresses unique.
fn prepare(testbed: &Testbed, host: &Host, state: &str, number: u16) {
    let network = &testbed.network;
    match state {
        "no carrier before" => {
            network.lan.ip("link set to-gateway down\nlink set to-gateway up").expect("a flap");
            wait_for(SOON, "the carrier", || {
                network
                    .gateway
                    .run("ip", &["-br", "link", "show", "eth1"])
                    .is_ok_and(|link| link.contains("UP"))
            })
            .expect("it is back");
        }
        "flushed" => drop(network.gateway.run("ip", &["neigh", "flush", "dev", "eth1"]).expect("flushed")),
        "failed" => {
            for address in [IpAddr::from(host.v4), host.v6.into()] {
                let entry = format!("neigh replace {address} dev eth1 nud failed");
                network.gateway.ip(&entry).expect("an entry");
            }
        }
        _ => {
            let addresses = (format!("192.168.10.{}", 100 + number), format!("fd00:10::a:{number}"));
            set_addresses(host, &addresses.0, &addresses.1);
        }
    }
}

/// Replaces the addresses of a host, so that each packet has one of them as its source.
fn set_addresses(host: &Host, v4: &str, v6: &str) {
    host.namespace
        .ip(&format!(
            "address flush dev eth0 scope global\naddress add {v4}/24 dev eth0\n\
             address add {v6}/64 dev eth0 nodad\nroute replace default via {LAN_V4}\n\
             route replace default via {LAN_V6}"
        ))
        .expect("new addresses");
    knows_the_gateway(host);
}

/// Sends a query until it is answered: an answer is lost while the gateway does not find the host.
fn ask(host: &Host, ipv6: bool, name: &str, kind: u16, state: &str) {
    let client = Client::of(host, resolver(ipv6)).and_then(|client| client.with_timeout(BLOCKED));
    let mut client = client.expect("a client");
    wait_for(SOON, &format!("an answer for {name}, {state}, IPv6 {ipv6}"), || client.ask(name, kind).is_ok())
        .expect("it comes");
}

/// Queries a name after each state, over both families. Returns the names.
fn first_queries(testbed: &Testbed, host: &Host, label: &str, number: &mut u16) -> Vec<String> {
    let mut names = Vec::new();
    set_addresses(host, &host.v4.to_string(), &host.v6.to_string());
    for state in STATES {
        for ipv6 in FAMILIES {
            *number += 1;
            prepare(testbed, host, state, *number);
            let name = format!("q{number}.{label}.example");
            ask(host, ipv6, &name, A, state);
            names.push(name);
        }
    }
    names
}

fn assert_asked_by(upstream: &Upstream, name: &str, by: IpAddr) {
    let askers = upstream.askers(name);
    assert!(!askers.is_empty() && askers.iter().all(|asker| *asker == by), "{name}: {askers:?}, not {by}");
}

/// Returns the records of the query log for a name.
fn logged(testbed: &Testbed, name: &str) -> Vec<Value> {
    let log = testbed.api().get(&format!("/dns/log?domain={name}")).expect("the log");
    log.as_array().cloned().unwrap_or_default()
}

#[test]
fn first_query_takes_the_policy_whatever_the_neighbour_table_says() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let laptop = &network.laptop;
    let device = testbed.device(laptop).expect("device");
    let group = json!({"name": "family", "members": [device]});
    let group = create(testbed.api(), "/device-groups", &group).expect("group");
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    knows_the_gateway(laptop);
    let sources = [
        ("device", device.as_str()),
        ("device_group", group.as_str()),
        ("interface", "eth1"),
        ("subnet", "192.168.10.0/24,fd00:10::/64"),
        ("all", ""),
    ];
    let (mut number, mut stored) = (0, None);
    for (kind, value) in sources {
        let wanted = policy("by-tunnel", 10, (kind, value), &["a"]);
        match &stored {
            None => stored = Some(testbed.policy(&wanted).expect("policy")),
            Some(id) => testbed.replace_policy(id, &wanted).expect("policy"),
        }
        for name in first_queries(&testbed, laptop, kind.trim_start_matches("device_"), &mut number) {
            assert_asked_by(&upstream, &name, network.exit_a.address(false));
        }
    }
    // Each query is the device's, for filters and for the log.
    wait_for(SOON, "records of the device", || {
        let records = logged(&testbed, "q1.device.example");
        !records.is_empty() && records.iter().all(|record| record["client"]["device_id"] == device.as_str())
    })
    .expect("they name it");
}

#[test]
fn fqdn_policy_matches_the_first_packet_whatever_the_neighbour_table_says() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let laptop = &network.laptop;
    testbed.device(laptop).expect("device");
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("films", 10, ("domain", "films.example"), &["a"])).expect("policy");
    // A device, and a host that is none.
    for host in [laptop, &network.tv] {
        knows_the_gateway(host);
        let base = if host.name == "tv" { 50 } else { 0 };
        for (number, state) in (1..).zip(STATES) {
            for (ipv6, kind) in [(false, A), (true, AAAA)] {
                prepare(&testbed, host, state, base + 2 * number + u16::from(ipv6));
                ask(host, ipv6, "films.example", kind, state);
                let seen = ask_server(host, server(ipv6)).seen();
                assert_eq!(seen, Some(network.exit_a.address(ipv6)), "{}, {state}", host.name);
            }
        }
    }
}

#[test]
fn two_hosts_with_one_address_are_distinguished_by_their_packets() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let (laptop, tv) = (&network.laptop, &network.tv);
    let device = testbed.device(laptop).expect("device");
    // An unknown host with the address of a device counts as that device. This one is another device.
    testbed.device(tv).expect("device");
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("by-tunnel", 10, ("device", &device), &["a"])).expect("policy");
    let claims =
        format!("address add {}/24 dev eth0\naddress add {}/64 dev eth0 nodad", laptop.v4, laptop.v6);
    tv.namespace.ip(&claims).expect("the laptop's addresses");
    [laptop, tv].into_iter().for_each(knows_the_gateway);
    let (exit, direct) = (network.exit_a.address(false), wan(false));
    for (round, entry) in [laptop.mac, tv.mac].into_iter().enumerate() {
        for ipv6 in FAMILIES {
            let address: IpAddr = if ipv6 { laptop.v6.into() } else { laptop.v4.into() };
            let entry = format!("neigh replace {address} lladdr {entry} dev eth1 nud permanent");
            network.gateway.ip(&entry).expect("an entry");
            for (host, by) in [(laptop, exit), (tv, direct), (laptop, exit), (tv, direct)] {
                let name = format!("{}{round}.v{}.example", host.name, if ipv6 { 6 } else { 4 });
                let socket = host.namespace.within(|| UdpSocket::bind((address, 0))).expect("a socket");
                let to = SocketAddr::new(resolver(ipv6), 53);
                // Only one of them gets its answer, so both only send, until the upstream has the query.
                wait_for(SOON, "the query at the upstream", || {
                    socket.send_to(&query(&name), to).expect("sent");
                    std::thread::sleep(Duration::from_millis(20));
                    !upstream.askers(&name).is_empty()
                })
                .expect("it arrives");
                assert_asked_by(&upstream, &name, by);
            }
        }
    }
}

/// Returns a query for the IPv4 addresses of a name.
fn query(name: &str) -> Vec<u8> {
    let mut message = b"\x07\x09\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    message
}

#[test]
fn connection_takes_the_policy_of_the_host_that_opened_it() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let laptop = &network.laptop;
    let device = testbed.device(laptop).expect("device");
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("by-tunnel", 10, ("device", &device), &["a"])).expect("policy");
    knows_the_gateway(laptop);
    for (number, state) in (1..).zip(STATES) {
        for ipv6 in FAMILIES {
            let number = 2 * number + u16::from(ipv6);
            prepare(&testbed, laptop, state, number);
            let (name, at) = (format!("t{number}.example"), format!("@{}", resolver(ipv6)));
            laptop.namespace.run("dig", &["+short", "+tcp", &at, &name, "A"]).expect("dig");
            assert_asked_by(&upstream, &name, network.exit_a.address(false));
        }
    }
}

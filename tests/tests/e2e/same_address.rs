//! Tunnels with the same address, as VPN providers give it to all their customers: a tunnel is its leg, not its address.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TIMEOUT, UdpFlow, connections};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::{BLOCKED, FAMILIES, SOON, assert_nothing_leaked, assert_through, wait_until_through};

/// Returns a gateway with two tunnels of one address, the laptop in the older and the television in the newer one. A third
/// one with the address is used by no policy, and never comes up.
fn start() -> (Testbed, [String; 2], String) {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let older = testbed.tunnel("wg-a", &network.exit_a).expect("the older tunnel");
    let body = network.exit_b.tunnel_with_address_of(&network.exit_a, "wg-b").expect("the same address");
    let newer = create(testbed.api(), "/tunnels", &body).expect("the newer tunnel");
    testbed.bring_up(&newer).expect("up");
    let mut unused = body.clone();
    unused["name"] = json!("wg-c");
    // The server does not know it by this key.
    unused["peers"][0]["public_key"] = json!(network.exit_a.keys.public);
    create(testbed.api(), "/tunnels", &unused).expect("the unused tunnel");
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    testbed.policy(&policy("older", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    testbed.policy(&policy("newer", 10, ("device", &tv), &["wg-b"])).expect("policy");
    (testbed, [older, newer], laptop)
}

#[test]
fn each_of_the_tunnels_with_one_address_carries_its_traffic() {
    let (testbed, tunnels, _) = start();
    let network = &testbed.network;
    network.tap.reset();
    // In both orders: the last one to come up must not be the one that works.
    for _ in 0..2 {
        assert_through(&network.laptop, &network.exit_a);
        assert_through(&network.tv, &network.exit_b);
    }
    for tunnel in &tunnels {
        let object = testbed.api().get(&format!("/tunnels/{tunnel}")).expect("a tunnel");
        assert_eq!((&object["status"], &object["healthy"]), (&json!("up"), &json!(true)), "{object}");
    }
    for (tunnel, host, exit) in
        [(&tunnels[0], &network.laptop, &network.exit_a), (&tunnels[1], &network.tv, &network.exit_b)]
    {
        testbed.bring_down(tunnel).expect("down");
        testbed.bring_up(tunnel).expect("up again");
        wait_until_through(host, exit);
    }
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn pool_of_tunnels_with_one_address_loses_no_connection_and_fails_over() {
    let (testbed, _, laptop) = start();
    let network = &testbed.network;
    let mut pool = policy("pool", 5, ("device", &laptop), &["wg-a", "wg-b"]);
    pool["splitting"] = json!(true);
    testbed.policy(&pool).expect("policy");
    network.tap.reset();
    for ipv6 in FAMILIES {
        let seen = connections(&network.laptop, server(ipv6), 20).expect("twenty connections");
        for exit in [&network.exit_a, &network.exit_b] {
            let count = seen.iter().filter(|seen| **seen == exit.address(ipv6)).count();
            assert_eq!(count, 10, "by {}: {seen:?}", exit.place.label);
        }
    }
    network.exit_a.kill9().expect("killed");
    wait_ok(2 * SOON, "all connections to take the tunnel that is left", || {
        for ipv6 in FAMILIES {
            let seen = connections(&network.laptop, server(ipv6), 4)?;
            anyhow::ensure!(seen.iter().all(|seen| *seen == network.exit_b.address(ipv6)), "{seen:?}");
        }
        Ok(())
    })
    .expect("failover");
    assert_nothing_leaked(&testbed);
}

/// Without an address of its own, the tunnel of a flow is known by the flow alone (CVE-2019-14899).
#[test]
fn server_of_one_tunnel_cannot_answer_for_the_other() {
    let (testbed, ..) = start();
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        let to = SocketAddr::from((server(ipv6), IDENT));
        let flow = UdpFlow::open(&network.laptop, to).expect("a flow");
        flow.ask(TIMEOUT).expect("an answer by the older tunnel");
        let place = network.exit_a.place;
        let client = if ipv6 { IpAddr::from(place.client_v6()) } else { place.client_v4().into() };
        let prefix = if ipv6 { 128 } else { 32 };
        let nodad = if ipv6 { " nodad" } else { "" };
        let other = &network.exit_b.namespace;
        other.ip(&format!("address add {}/{prefix} dev lo{nodad}", to.ip())).expect("the server's address");
        // Source NAT keeps the port of the client.
        let port = flow.port().expect("a port");
        let forge = || UdpSocket::bind(to)?.send_to(b"forged", SocketAddr::from((client, port)));
        for _ in 0..3 {
            other.within(forge).expect("sent");
        }
        assert!(!flow.hears(BLOCKED), "the server of the other tunnel is heard");
        flow.ask(TIMEOUT).expect("the flow goes on");
    }
}

/// Packets of this host from a shared address, such as replies to the remote end, leave by the tunnel that they are for.
#[test]
fn both_remote_ends_reach_the_gateway_by_the_shared_address() {
    let (testbed, ..) = start();
    let network = &testbed.network;
    network.settle().expect("silence");
    network.tap.reset();
    let place = network.exit_a.place;
    for exit in [&network.exit_a, &network.exit_b] {
        for address in [place.client_v4().to_string(), place.client_v6().to_string()] {
            let probe = || exit.namespace.run("ping", &["-n", "-c", "1", "-W", "1", &address]);
            wait_ok(SOON, &format!("{} to reach {address}", exit.place.label), probe).expect("a reply");
        }
    }
    // Sockets that are bound to an interface take its tunnel.
    for (interface, exit) in [("wg-wg-a", &network.exit_a), ("wg-wg-b", &network.exit_b)] {
        let remote = exit.place.inner_v4.to_string();
        let ping = ["-n", "-c", "1", "-W", "1", "-I", interface, &remote];
        let reach = || network.gateway.run("ping", &ping);
        wait_ok(SOON, &format!("the gateway to reach {remote}"), reach).expect("a reply");
    }
    assert_nothing_leaked(&testbed);
}

/// An address of the LAN is not a tunnel's, whatever the file says: the LAN would lose the host, or its gateway.
#[test]
fn address_of_the_lan_is_refused_and_cuts_no_host_off() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_through_uplink(&testbed);
    for address in ["192.168.10.20/32", "192.168.10.1/32", "fd00:10::20/128", "203.0.113.2/32"] {
        let mut tunnel = network.exit_a.tunnel("wg-a");
        tunnel["addresses"] = json!([address]);
        let id = create(testbed.api(), "/tunnels", &tunnel).expect("a tunnel");
        testbed.api().act(&format!("/tunnels/{id}/up")).expect("up");
        let bare = address.split('/').next().unwrap_or_default();
        wait_ok(SOON, "the tunnel to be refused", || {
            let object = testbed.api().get(&format!("/tunnels/{id}"))?;
            let reason = object["last_error"].as_str().unwrap_or_default();
            anyhow::ensure!(object["healthy"] == false && reason.contains(bare), "{object}");
            Ok(())
        })
        .expect("refused");
        assert_through_uplink(&testbed);
        testbed.api().delete(&format!("/tunnels/{id}")).expect("deleted");
    }
}

fn assert_through_uplink(testbed: &Testbed) {
    for host in [&testbed.network.laptop, &testbed.network.tv] {
        crate::e2e::assert_direct(host);
    }
}

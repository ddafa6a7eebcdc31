//! Hops of several tunnels: each hop is really transported inside the previous one, for any underlay of the first.

use std::net::IpAddr;

use gateway_tests::services::IDENT;
use gateway_tests::tap::Counts;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::{TIMEOUT, TcpFlow, UdpFlow, transfer};
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_the_tap_sees, assert_through,
    wait_until_through,
};

/// Returns a policy whose hops are given with their types.
pub(super) fn path(name: &str, source: (&str, &str), hops: &[(&str, &str)], more: Value) -> Value {
    let mut path = policy(name, 10, source, &[]);
    path["hops"] = hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    path.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    path
}

/// Returns the exits whose packets were on an uplink.
fn seen(counts: &Counts) -> Vec<IpAddr> {
    counts.endpoints.keys().copied().collect()
}

/// Reports whether an echo request of this size passes without fragmentation.
fn passes(host: &Host, address: &str, size: u32) -> bool {
    let ping = ["-n", "-c", "1", "-W", "1", "-M", "do", "-s", &size.to_string(), address];
    host.namespace.run("ping", &ping).is_ok()
}

/// Returns the payload size of an echo request for a packet of this size.
fn echo_of(packet: u32, ipv6: bool) -> u32 {
    packet - 8 - if ipv6 { 40 } else { 20 }
}

/// Asserts the path MTU: a packet of this size passes with the DF bit, one byte more does not. Bulk data passes both
/// ways without fragments of the outer packets.
fn assert_size(testbed: &Testbed, host: &Host, mtu: u32) {
    for ipv6 in FAMILIES {
        let address = server(ipv6).to_string();
        let fits = echo_of(mtu, ipv6);
        assert!(passes(host, &address, fits), "{fits} bytes to {address} do not pass");
        assert!(!passes(host, &address, fits + 1), "{} bytes to {address} pass", fits + 1);
        let took = transfer(host, server(ipv6), 4 << 20);
        took.unwrap_or_else(|error| panic!("bulk to {address}: {error}"));
    }
    assert_eq!(testbed.network.tap.counts().fragments, 0);
}

#[test]
fn a_tunnel_inside_a_tunnel_shows_only_the_outer_one() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    assert_the_tap_sees(&testbed, &network.tv);
    testbed
        .policy(&path("nested", ("device", &laptop), &[("vpn", "wg-a"), ("vpn", "wg-b")], json!({})))
        .expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_b);
    assert_size(&testbed, &network.laptop, 1340);
    let counts = assert_nothing_leaked(&testbed);
    assert_eq!(seen(&counts), [network.exit_a.address(false)], "{counts}");
}

#[test]
fn a_chain_works_like_hops_and_fails_closed() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let outer = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let hops = json!([{"type": "vpn", "target": "wg-a"}, {"type": "vpn", "target": "wg-b"}]);
    create(testbed.api(), "/chains", &json!({"name": "two", "hops": hops})).expect("chain");
    assert_the_tap_sees(&testbed, &network.tv);
    let by_chain = path("by-chain", ("device", &laptop), &[], json!({"chain": "two"}));
    testbed.policy(&by_chain).expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_b);
    let counts = assert_nothing_leaked(&testbed);
    assert_eq!(seen(&counts), [network.exit_a.address(false)], "{counts}");
    testbed.bring_down(&outer).expect("down");
    assert_blocked(&network.laptop);
    let counts = assert_nothing_leaked(&testbed);
    // The inner tunnel is up and must not send handshakes to its exit from here.
    assert_eq!(counts.endpoints.get(&network.exit_b.address(false)), None, "{counts}");
}

#[test]
fn a_tunnel_takes_the_uplink_that_its_path_begins_with() {
    let (testbed, second) = Testbed::start_with_two_uplinks().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    assert_the_tap_sees(&testbed, &network.tv);
    let hops = [("interface", "eth2"), ("vpn", "wg-a"), ("vpn", "wg-b")];
    let id = testbed.policy(&path("by-two", ("device", &laptop), &hops[..2], json!({}))).expect("policy");
    wait_until_through(&network.laptop, &network.exit_a);
    network.tap.reset();
    second.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_size(&testbed, &network.laptop, 1420);
    let (one, two) = (assert_nothing_leaked(&testbed), second.counts());
    assert!(two.is_clean(), "{two}");
    assert_eq!(seen(&two), [network.exit_a.address(false)], "{two}");
    assert_eq!(one.endpoints.get(&network.exit_a.address(false)), None, "{one}");

    testbed.replace_policy(&id, &path("by-two", ("device", &laptop), &hops, json!({}))).expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);
    network.tap.reset();
    second.reset();
    assert_through(&network.laptop, &network.exit_b);
    let (one, two) = (assert_nothing_leaked(&testbed), second.counts());
    assert!(two.is_clean(), "{two}");
    assert_eq!((seen(&one), seen(&two)), (vec![], vec![network.exit_a.address(false)]), "{one}\n{two}");
}

#[test]
fn failing_over_moves_new_flows_at_once_and_flows_stay_where_they_are_when_the_first_is_back() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let first = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    assert_the_tap_sees(&testbed, &network.tv);
    let hops = [("vpn", "wg-a"), ("vpn", "wg-b"), ("interface", "eth0")];
    let failover = |hops: &[(&str, &str)], sticky: &str| {
        path("one-of", ("device", &laptop), hops, json!({"hop_mode": "failover", "sticky": sticky}))
    };
    let id = testbed.policy(&failover(&hops[..2], "flow")).expect("policy");
    let open = || {
        FAMILIES.map(|ipv6| {
            let udp = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("UDP flow");
            (ipv6, udp, TcpFlow::open(&network.laptop, server(ipv6)).expect("TCP flow"))
        })
    };
    let seen_as = |flows: &mut [(bool, UdpFlow, TcpFlow); 2], exit: &Exit| {
        for (ipv6, udp, tcp) in flows {
            assert_eq!(answer(udp), exit.address(*ipv6));
            assert_eq!(tcp.ask(TIMEOUT).seen(), Some(exit.address(*ipv6)));
        }
    };
    network.tap.reset();
    testbed.bring_down(&first).expect("down");
    let mut flows = open();
    seen_as(&mut flows, &network.exit_b);
    testbed.bring_up(&first).expect("up");
    wait_until_through(&network.laptop, &network.exit_a);
    seen_as(&mut flows, &network.exit_b);

    // The mechanism that keeps the flows of a source together also moves them together.
    testbed.bring_down(&first).expect("down");
    testbed.replace_policy(&id, &failover(&hops[..2], "source")).expect("policy");
    let mut flows = open();
    seen_as(&mut flows, &network.exit_b);
    testbed.bring_up(&first).expect("up");
    for (ipv6, udp, _) in &flows {
        moves(udp, network.exit_a.address(*ipv6));
    }
    assert_nothing_leaked(&testbed);

    // Direct traffic also returns to the tunnel.
    testbed.bring_down(&first).expect("down");
    testbed.replace_policy(&id, &failover(&[hops[0], hops[2]], "flow")).expect("policy");
    let flows = open();
    for (ipv6, udp, _) in &flows {
        assert_eq!(udp.ask(TIMEOUT).expect("answer"), wan(*ipv6));
    }
    testbed.bring_up(&first).expect("up");
    for (ipv6, udp, _) in &flows {
        moves(udp, network.exit_a.address(*ipv6));
    }
    network.tap.reset();
    for (ipv6, udp, _) in &flows {
        assert_eq!(udp.ask(TIMEOUT).expect("answer"), network.exit_a.address(*ipv6));
    }
    assert_nothing_leaked(&testbed);
}

/// Returns the source address that the server sees. A datagram may be lost, as on any network; a wrong address is
/// returned.
fn answer(flow: &UdpFlow) -> IpAddr {
    wait_ok(SOON, "an answer", || Ok(flow.ask(BLOCKED)?)).expect("an answer")
}

/// Waits until the server sees a flow from this address.
fn moves(flow: &UdpFlow, to: IpAddr) {
    wait_ok(SOON, &format!("the flow to move to {to}"), || {
        let seen = flow.ask(BLOCKED)?;
        anyhow::ensure!(seen == to, "it is seen as {seen}");
        Ok(())
    })
    .expect("moved");
}

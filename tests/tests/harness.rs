//! Self-test of the harness without the daemon: its network transports traffic, its servers report correct addresses,
//! and its tap detects a leak.

use std::process::Stdio;
use std::time::Duration;

use gateway_tests::netns::Prefix;
use gateway_tests::process::Process;
use gateway_tests::services::{DNS, HTTP, HTTP_OTHER, IDENT};
use gateway_tests::topology::{Topology, other_server, server, wan};
use gateway_tests::traffic::{
    self, Answer, Load, TIMEOUT, TcpFlow, UdpFlow, ask, ask_server, ask_udp, connections, ping,
};
use gateway_tests::wait::wait_for;

const FAMILIES: [bool; 2] = [false, true];

#[test]
fn without_forwarding_nothing_of_the_lan_reaches_the_uplink() {
    let network = Topology::build().expect("network");
    for ipv6 in FAMILIES {
        let answer = ask(&network.laptop, (server(ipv6), HTTP).into(), Duration::from_millis(300));
        assert_eq!(answer.seen(), None, "{answer}");
    }
    network.settle().expect("silence");
    let counts = network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
    assert!(network.services.seen_at_all().is_empty());
}

#[test]
fn plain_forwarding_carries_both_families_and_the_server_sees_the_gateway() {
    let network = Topology::build().expect("network");
    network.forward_plainly().expect("forwarding");
    for ipv6 in FAMILIES {
        for host in [&network.laptop, &network.tv] {
            let seen = connections(host, server(ipv6), 3).expect("connections");
            assert_eq!(seen, vec![wan(ipv6); 3]);
        }
        for port in [HTTP_OTHER, HTTP] {
            let answer = ask(&network.laptop, (other_server(ipv6), port).into(), TIMEOUT);
            assert_eq!(answer.seen(), Some(wan(ipv6)), "{answer}");
        }
        let answer = ask_udp(&network.laptop, (server(ipv6), IDENT).into(), TIMEOUT);
        assert_eq!(answer.seen(), Some(wan(ipv6)), "{answer}");
        wait_for(TIMEOUT, "an echo reply", || ping(&network.laptop, server(ipv6))).expect("it answers");
        assert_eq!(network.services.seen(HTTP, wan(ipv6)), 7);
    }
}

#[test]
fn flows_live_on_and_tell_under_which_address_they_are_seen() {
    let network = Topology::build().expect("network");
    network.forward_plainly().expect("forwarding");
    for ipv6 in FAMILIES {
        let mut tcp = TcpFlow::open(&network.laptop, server(ipv6)).expect("TCP flow");
        let udp = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("UDP flow");
        for _ in 0..3 {
            assert_eq!(tcp.ask(TIMEOUT).seen(), Some(wan(ipv6)));
            assert_eq!(udp.ask(TIMEOUT).expect("answer"), wan(ipv6));
        }
    }
}

#[test]
fn the_tap_counts_a_deliberate_leak_packet_by_packet() {
    let network = Topology::build().expect("network");
    network.forward_plainly().expect("forwarding");
    for ipv6 in FAMILIES {
        let before = network.tap.reset();
        assert!(before.is_clean() || ipv6, "{before}");
        let flow = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("flow");
        for _ in 0..25 {
            flow.ask(TIMEOUT).expect("answer");
        }
        let counts = network.tap.counts();
        let (leaked, other) =
            if ipv6 { (counts.leaked.v6, counts.leaked.v4) } else { (counts.leaked.v4, counts.leaked.v6) };
        assert_eq!((leaked, other, counts.missed), (25, 0, 0), "{counts}");
        assert!(counts.samples[0].contains("Leak") && counts.samples[0].contains("17"), "{counts}");
    }
}

#[test]
fn the_tap_names_dns_and_traffic_without_masquerade() {
    let network = Topology::build().expect("network");
    network.gateway.forward().expect("forwarding");
    for ipv6 in FAMILIES {
        // A private address gets no answer, but the packet has left.
        let answer = ask_udp(&network.tv, (server(ipv6), DNS).into(), Duration::from_millis(100));
        assert_eq!(answer.seen(), None);
    }
    wait_for(TIMEOUT, "both packets at the tap", || network.tap.counts().leaked.total() == 2).expect("leak");
    let counts = network.tap.counts();
    assert_eq!((counts.leaked.v4, counts.leaked.v6, counts.leaked_dns), (1, 1, 2), "{counts}");
    assert!(counts.samples.iter().any(|sample| sample.contains("192.168.10.20")), "{counts}");
    assert!(counts.samples.iter().any(|sample| sample.contains("fd00:10::20")), "{counts}");
}

#[test]
fn the_load_leaks_every_packet_through_a_plain_router_and_the_tap_misses_none() {
    let network = Topology::build().expect("network");
    network.forward_plainly().expect("forwarding");
    let load = Load::start(&network.laptop).expect("load");
    load.run_for(500).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(wan(ipv6), TIMEOUT).expect("answers");
    }
    let sent = load.stop();
    network.settle().expect("silence");
    let counts = network.tap.counts();
    // Connections use more packets than the one that is counted as sent.
    assert!(counts.leaked.v4 >= sent.v4 && counts.leaked.v6 >= sent.v6, "sent {sent:?}, {counts}");
    assert_eq!((counts.missed, counts.unknown.total()), (0, 0), "{counts}");
}

#[test]
fn a_tunnel_to_an_exit_is_no_leak_and_the_server_sees_the_exit() {
    let network = Topology::build().expect("network");
    for exit in [&network.exit_a, &network.exit_b] {
        let interface =
            network.prefix.interface(if exit.place.label == "exit-a" { "client-c" } else { "client-d" });
        let mut engine = network.gateway.command("wireguard-go");
        engine.args(["--foreground", &interface]).stdout(Stdio::null()).stderr(Stdio::null());
        let engine = Process::spawn(engine).expect("wireguard-go");
        let configuration = exit.configuration_file();
        let without_address: String = configuration
            .lines()
            .filter(|line| !line.starts_with("Address"))
            .map(|l| format!("{l}\n"))
            .collect();
        let socket = format!("/var/run/wireguard/{interface}.sock");
        wait_for(TIMEOUT, "control socket", || std::path::Path::new(&socket).exists()).expect("engine");
        network
            .gateway
            .feed("wg", &["setconf", &interface, "/dev/stdin"], &without_address)
            .expect("setconf");
        network
            .gateway
            .ip(&format!(
                "address add {}/24 dev {interface}\naddress add {}/64 dev {interface}\nlink set {interface} up\n\
                 route add {}/32 dev {interface}\nroute add {}/128 dev {interface}",
                exit.place.client_v4(),
                exit.place.client_v6(),
                server(false),
                server(true)
            ))
            .expect("addresses");
        network.gateway.forward().expect("forwarding");
        network
            .gateway
            .nft(&format!(
                "table inet plain {{\n chain out {{\n type nat hook postrouting priority srcnat\n \
                 oifname \"{interface}\" masquerade\n }}\n}}\n"
            ))
            .expect("masquerade");
        for ipv6 in FAMILIES {
            let answer = ask_server(&network.laptop, server(ipv6));
            assert_eq!(answer.seen(), Some(exit.address(ipv6)), "{answer}");
        }
        let counts = network.tap.reset();
        // Two handshake messages and two connections, independent of their number of packets.
        assert!(counts.is_clean() && counts.tunnel.v4 > 6, "{counts}");
        drop(engine);
        std::fs::remove_file(socket).expect("the engine's control socket");
    }
}

#[test]
fn an_exit_that_is_killed_answers_no_more_until_it_is_started_again() {
    let network = Topology::build().expect("network");
    let interface = || network.exit_a.namespace.run("ip", &["-o", "link"]).expect("links");
    let name = network.prefix.interface(network.exit_a.place.label);
    assert!(interface().contains(&name));
    network.exit_a.kill9().expect("killed");
    wait_for(TIMEOUT, "the tunnel interface to vanish", || !interface().contains(&name)).expect("gone");
    network.exit_a.start().expect("started again");
    assert!(interface().contains(&name));
}

#[test]
fn a_refused_connection_and_a_silent_one_are_distinguished() {
    let network = Topology::build().expect("network");
    network.forward_plainly().expect("forwarding");
    let closed = traffic::ask(&network.laptop, (server(false), 9).into(), TIMEOUT);
    assert!(matches!(closed, Answer::Rejected { .. }), "{closed}");
    network
        .gateway
        .nft("table inet silence {\n chain f {\n type filter hook forward priority 0\n drop\n }\n}\n")
        .expect("drop");
    let silent = traffic::ask(&network.laptop, (server(false), HTTP).into(), Duration::from_millis(300));
    assert!(matches!(silent, Answer::Silence), "{silent}");
}

#[test]
fn a_network_leaves_nothing_behind() {
    let network = Topology::build().expect("network");
    let paths: Vec<_> =
        [&network.gateway, &network.internet, &network.laptop.namespace, &network.exit_a.namespace]
            .into_iter()
            .map(|namespace| namespace.path())
            .collect();
    let socket = format!("/var/run/wireguard/{}.sock", network.prefix.interface(network.exit_a.place.label));
    assert!(paths.iter().all(|path| path.exists()) && std::path::Path::new(&socket).exists());
    drop(network);
    assert!(!paths.iter().any(|path| path.exists()) && !std::path::Path::new(&socket).exists());
}

#[test]
fn prefixes_never_repeat() {
    let (one, two) = (Prefix::unique().expect("one"), Prefix::unique().expect("two"));
    assert_ne!(one.name("x"), two.name("x"));
    assert!(one.interface("exit-a").len() < 16);
}

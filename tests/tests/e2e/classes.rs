//! Trust and privacy classes of devices on real packets: administration, floors, time, and the resolver of the gateway
//! itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};

use gateway_tests::dns::{A, Client};
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::dns_policy::{client, reply, resolving};
use crate::e2e::{BLOCKED, FAMILIES, SOON};

fn reaches(host: &Host, to: SocketAddr) -> bool {
    host.namespace.within(|| TcpStream::connect_timeout(&to, BLOCKED)).is_ok()
}

fn set(testbed: &Testbed, device: &str, field: &str, value: &str) {
    let path = format!("/devices/{device}");
    let mut object = testbed.api().get(&path).expect("the device").clone();
    object[field] = json!(value);
    testbed.api().put(&path, &object).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

#[test]
fn only_devices_that_may_administer_reach_api_and_ssh() {
    let mut testbed = Testbed::prepare().expect("a network");
    testbed.daemon.configure(&json!({"listen": {"api_addr": "0.0.0.0:8080"}})).expect("configured");
    testbed.daemon.start().expect("daemon");
    let network = &testbed.network;
    let gateway: IpAddr = LAN_V4.into();
    let ssh = network.gateway.within(|| std::net::TcpListener::bind((gateway, 22))).expect("a server");
    let at = |port| SocketAddr::new(gateway, port);
    let reached = |host: &Host| [at(8080), at(22), at(53)].map(|to| reaches(host, to));
    let laptop = testbed.device(&network.laptop).expect("device");
    assert_eq!(reached(&network.laptop), [true; 3], "nobody is named yet");
    assert_eq!(reached(&network.tv), [true; 3]);

    let open = network.tv.namespace.within(|| TcpStream::connect(at(22))).expect("a connection");
    let port = open.local_addr().expect("its address").port();
    let mut accepted = std::iter::repeat_with(|| ssh.accept().expect("a connection"));
    let (mut server, _) = accepted.find(|(_, from)| from.port() == port).expect("the connection");
    set(&testbed, &laptop, "trust_class", "trusted");
    assert_eq!(reached(&network.laptop), [true; 3]);
    assert_eq!(reached(&network.tv), [false, false, true], "an unknown host");
    std::io::Write::write_all(&mut &open, b"still there?").expect("sent");
    server.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    assert!(std::io::Read::read(&mut server, &mut [0; 16]).is_err(), "a session that has begun goes on");

    testbed.device(&network.tv).expect("device");
    assert_eq!(reached(&network.tv), [false, false, true], "a device of the class `standard`");
    let question = json!({"mac": network.tv.mac, "destination": "192.168.10.1:8080", "protocol": "tcp"});
    let answer = testbed.api().post("/policy/evaluate", &question).expect("explained");
    let sentence = answer["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("does not let it administer the gateway"), "{sentence}");
}

#[test]
fn policy_that_fails_open_blocks_devices_with_a_floor() {
    let testbed = Testbed::start().expect("a network");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.device(&network.tv).expect("device");
    testbed.tunnel("exit", &network.exit_a).expect("a tunnel");
    let policy = json!({
        "name": "all", "source_type": "all", "fail_policy": "fail-open", "hops": [{"type": "vpn", "target": "exit"}]
    });
    testbed.policy(&policy).expect("a policy");
    set(&testbed, &laptop, "privacy_class", "strict");
    for ipv6 in FAMILIES {
        for host in [&network.laptop, &network.tv] {
            let expected = Some(network.exit_a.address(ipv6));
            assert_eq!(ask_server(host, server(ipv6)).seen(), expected, "{}", host.name);
        }
    }
    testbed.bring_down("exit").expect("down");
    for ipv6 in FAMILIES {
        wait_ok(SOON, "the policy to fail open", || {
            let seen = ask_server(&network.tv, server(ipv6)).seen();
            anyhow::ensure!(seen == Some(wan(ipv6)), "{seen:?}");
            Ok(())
        })
        .expect("open");
        assert_eq!(ask_server(&network.laptop, server(ipv6)).seen(), None, "the floor is fail-degraded");
    }
}

/// An NTP query of version 4.
fn ntp_query() -> [u8; 48] {
    let mut query = [0; 48];
    query[0] = 0x23;
    query[40..].copy_from_slice(b"sendtime");
    query
}

#[test]
fn ntp_queries_to_any_server_are_answered_by_the_gateway() {
    let testbed = Testbed::start().expect("a network");
    let network = &testbed.network;
    let at = |ipv6| SocketAddr::new(server(ipv6), 123);
    let servers =
        FAMILIES.map(|ipv6| network.internet.within(|| UdpSocket::bind(at(ipv6))).expect("a server"));
    let ask = |ipv6: bool| {
        let outside: SocketAddr = if ipv6 { ([0u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
        let socket = network.laptop.namespace.within(|| UdpSocket::bind(outside)).expect("a socket");
        socket.connect(at(ipv6)).expect("connected");
        socket.set_read_timeout(Some(BLOCKED)).expect("a timeout");
        socket.send(&ntp_query()).expect("sent");
        let mut answer = [0; 48];
        socket.recv(&mut answer).map(|length| (length, answer))
    };
    for ipv6 in FAMILIES {
        let (length, answer) = ask(ipv6).expect("an answer from the address that was asked");
        assert_eq!((length, answer[0] & 7, &answer[24..32]), (48, 4, &b"sendtime"[..]));
    }
    testbed.api().put("/settings/privacy.blocks", &json!({"value": {"all": {}}})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    for (ipv6, server) in FAMILIES.into_iter().zip(&servers) {
        assert!(ask(ipv6).is_err(), "the server gives no answer");
        server.set_read_timeout(Some(BLOCKED)).expect("a timeout");
        let mut query = [0; 64];
        let (length, _) = server.recv_from(&mut query).expect("a query, and none before");
        assert_eq!(query[..length], ntp_query());
        assert!(server.recv_from(&mut query).is_err(), "only one query left");
    }
}

#[test]
fn queries_of_the_gateway_itself_are_answered_by_its_resolver_in_mode_system() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let rewrite = json!({"domain": "host.example", "answer": "192.0.2.7"});
    testbed.api().post("/dns/rewrites", &rewrite).expect("stored");
    let dig = |to: IpAddr, more: &[&str]| {
        let server = format!("@{to}");
        let arguments = [&["+short", "+tries=1", "+timeout=2", &server, "host.example", "A"], more].concat();
        network.gateway.run("dig", &arguments).map(|text| text.trim().to_owned())
    };
    // The servers of the internet refuse names that they do not have.
    assert_ne!(dig(server(false), &[]).unwrap_or_default(), "192.0.2.7");
    testbed.api().put("/privacy/dns-mode", &json!({"mode": "system"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    for ipv6 in FAMILIES {
        for more in [&[][..], &["+tcp"]] {
            let answer = dig(server(ipv6), more).expect("an answer");
            assert_eq!(answer, "192.0.2.7", "IPv6: {ipv6}, {more:?}");
        }
    }
    // The resolver itself still reaches its upstream.
    let answer = client(&network.laptop).ask("www.example", A).expect("an answer");
    assert_eq!(answer, reply(server(false)));
    assert_eq!(upstream.askers("www.example"), [wan(false)]);
    let mut of_host = Client::of(&network.laptop, LAN_V6.into()).expect("a client");
    assert_eq!(of_host.ask("host.example", A).expect("an answer").addresses, [Ipv4Addr::new(192, 0, 2, 7)]);
}

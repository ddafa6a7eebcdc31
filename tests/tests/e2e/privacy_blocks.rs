//! Blocks of privacy classes: two devices of different classes send the same packets at once.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use gateway_tests::dns::{A, AAAA, Reply};
use gateway_tests::testbed::create;
use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::dns_policy::{client, reply, resolving};
use crate::e2e::{BLOCKED, SOON};

/// Address of a public resolver, which the internet of the test has for itself.
const PUBLIC_RESOLVER: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 1);

/// Fate of a packet on its way to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrived,
    Stopped,
}

/// Connects. A client that is stopped learns it at once.
fn tcp(host: &Host, internet: &TcpListener) -> Fate {
    let to = internet.local_addr().expect("its address");
    // The kernel limits the rate of its errors; a retransmitted segment gets one.
    match host.namespace.within(|| TcpStream::connect_timeout(&to, SOON)) {
        Ok(_) => {
            internet.accept().expect("the connection");
            Fate::Arrived
        }
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::TimedOut, "no error about {to}");
            Fate::Stopped
        }
    }
}

/// Connects, sends bytes and returns their fate.
fn stream(host: &Host, internet: &TcpListener, bytes: &[u8]) -> Fate {
    let to = internet.local_addr().expect("its address");
    let client = host.namespace.within(|| TcpStream::connect_timeout(&to, SOON)).expect("a connection");
    let (mut server, _) = internet.accept().expect("a connection");
    server.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    (&client).write_all(bytes).expect("sent");
    match server.read(&mut [0; 64]) {
        Ok(length) if length == bytes.len() => Fate::Arrived,
        Ok(length) => panic!("{length} bytes"),
        Err(_) => Fate::Stopped,
    }
}

/// Sends datagrams of one flow. Returns the fate of the last one.
fn udp(host: &Host, internet: &UdpSocket, datagrams: &[&[u8]]) -> Fate {
    let to = internet.local_addr().expect("its address");
    let socket = host.namespace.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    internet.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    let mut fate = Fate::Stopped;
    for datagram in datagrams {
        let _ = socket.send_to(datagram, to);
        let mut buffer = [0; 2048];
        fate = match internet.recv_from(&mut buffer) {
            Ok((length, _)) if buffer[..length] == **datagram => Fate::Arrived,
            Ok(_) => panic!("another datagram"),
            Err(_) => Fate::Stopped,
        };
    }
    fate
}

/// Asks a DNS over HTTPS server of this name, at the address of the listener, and returns the fate of the ClientHello.
fn ask_doh(host: &Host, internet: &TcpListener, name: &str) -> Fate {
    let to = internet.local_addr().expect("its address");
    let url = format!("https://{name}:{}/dns-query", to.port());
    let resolve = format!("{name}:{}:{}", to.port(), to.ip());
    // One query, so one connection.
    let limits = ["--silent", "--ipv4", "--max-time", "3"];
    let query = ["--doh-insecure", "--doh-url", &url, "--resolve", &resolve, "https://www.example/"];
    let mut curl = Command::new("curl");
    curl.args(limits).args(query).stdout(Stdio::null()).stderr(Stdio::null());
    let mut curl = host.namespace.within(|| curl.spawn()).expect("curl");
    let (mut stream, _) = internet.accept().expect("a connection");
    stream.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    let mut first = [0; 1];
    let read = stream.read(&mut first);
    drop(stream);
    curl.kill().expect("killed");
    curl.wait().expect("ended");
    match read {
        // A handshake record.
        Ok(1) if first == [0x16] => Fate::Arrived,
        Ok(_) => panic!("no TLS: {first:?}"),
        Err(_) => Fate::Stopped,
    }
}

/// A binding request without attributes (RFC 8489, section 6).
fn binding_request() -> Vec<u8> {
    [&[0u8, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat()
}

/// The visible beginning of an Initial packet, padded (RFC 9000, section 14.1).
fn quic_initial() -> Vec<u8> {
    let mut packet = [&[0xc3u8, 0, 0, 0, 1, 8][..], &[9; 8], &[0, 0]].concat();
    packet.resize(1200, 0);
    packet
}

#[test]
fn two_classes_at_once() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let device = testbed.api().get(&format!("/devices/{laptop}")).expect("the device");
    let mut device = device.clone();
    device["privacy_class"] = json!("isolated");
    testbed.device(&network.tv).expect("device");
    network.internet.ip(&format!("address add {PUBLIC_RESOLVER}/32 dev lo\n")).expect("an address");
    let listener = |at: SocketAddr| network.internet.within(|| TcpListener::bind(at)).expect("a server");
    let receiver = |at: SocketAddr| network.internet.within(|| UdpSocket::bind(at)).expect("a server");
    let at = |port| SocketAddr::new(server(false), port);
    let doh = listener((PUBLIC_RESOLVER, 443).into());
    let dot = listener(at(853));
    let https = listener(at(443));
    let high_tcp = listener(at(50_000));
    let doq = receiver(at(784));
    let quic = receiver(at(443));
    let high = receiver(at(50_000));
    let turn = receiver(at(3478));
    let mdns = receiver(at(5353));
    let (stun, initial) = (binding_request(), quic_initial());
    // RFC 9287.
    let greased = [&[initial[0] & 0xbf], &initial[1..]].concat();

    let both = |host: &Host| {
        [
            ("DoH", tcp(host, &doh)),
            ("DoH by name", ask_doh(host, &https, "doh.opendns.com")),
            ("DoH by name at another port", ask_doh(host, &high_tcp, "eu.dns.nextdns.io")),
            ("HTTPS by name", ask_doh(host, &https, "www.example.com")),
            ("STUN in TCP", stream(host, &high_tcp, &stun)),
            ("TCP", stream(host, &high_tcp, b"media")),
            ("DoT", tcp(host, &dot)),
            ("HTTPS", tcp(host, &https)),
            ("DoQ", udp(host, &doq, &[b"x"])),
            ("HTTP/3", udp(host, &quic, &[&initial])),
            ("QUIC at another port", udp(host, &high, &[&initial])),
            ("QUIC without the fixed bit", udp(host, &high, &[&greased])),
            ("STUN at any port", udp(host, &high, &[&stun])),
            ("TURN port", udp(host, &turn, &[b"x"])),
            ("media", udp(host, &high, &[b"media"])),
            ("media of a call", udp(host, &high, &[&stun, b"media"])),
            ("mDNS to a stranger", udp(host, &mdns, &[b"x"])),
        ]
    };
    let open = |host: &Host| {
        for (what, fate) in both(host) {
            let expected = if what.starts_with("mDNS") { Fate::Stopped } else { Fate::Arrived };
            assert_eq!(fate, expected, "{what} of {}", host.name);
        }
    };
    open(&network.laptop);
    testbed.api().put(&format!("/devices/{laptop}"), &device).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    for (what, fate) in both(&network.laptop) {
        let expected = match what {
            "HTTPS" | "HTTPS by name" | "TCP" | "media" => Fate::Arrived,
            _ => Fate::Stopped,
        };
        assert_eq!(fate, expected, "{what}");
    }
    open(&network.tv);

    assert_eq!(ask_server(&network.laptop, server(true)).seen(), None, "IPv6 of the laptop");
    let connect = || TcpStream::connect_timeout(&(server(true), 443).into(), SOON);
    let error = network.laptop.namespace.within(connect).expect_err("blocked");
    // ICMPv6 destination unreachable, communication administratively prohibited (RFC 4443, section 3.1).
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(ask_server(&network.laptop, server(false)).seen().is_some());
    assert!(ask_server(&network.tv, server(true)).seen().is_some(), "IPv6 of the tv");
    let mut names = (client(&network.laptop), client(&network.tv));
    let nothing = Reply { rcode: 0, addresses: Vec::new() };
    wait_ok(SOON, "the resolver to hide AAAA records", || {
        let answer = names.0.ask("www.example", AAAA)?;
        anyhow::ensure!(answer == nothing, "{answer:?}");
        Ok(())
    })
    .expect("hidden");
    assert_eq!(names.0.ask("www.example", A).expect("an answer"), reply(server(false)));
    assert_eq!(names.1.ask("www.example", AAAA).expect("an answer"), reply(server(true)));
    assert_eq!(names.0.ask("dns.google", A).expect("an answer").rcode, 3, "the name of a resolver");
    assert_eq!(names.1.ask("dns.google", A).expect("an answer").rcode, 0);
    let monitor = testbed.api().get("/privacy/leak-monitor").expect("the monitor");
    let counted = monitor["counters"].as_array().expect("counters");
    let counter = |name: &str| counted.iter().filter_map(|policy| policy[name].as_u64()).sum::<u64>();
    for name in
        ["dns_bypass", "doh_hits", "stun_blocked", "ipv6_blocked", "quic_blocked", "discovery_dropped"]
    {
        assert!(counter(name) > 0, "{name}: {monitor}");
    }
    assert_eq!(counter("wrong_egress_packets"), 0, "{monitor}");
    assert!(monitor["since"].is_string(), "{monitor}");
    assert_eq!(monitor["observed_pct"], 100.0, "{monitor}");
    let question = json!({"mac": network.laptop.mac, "destination": "1.1.1.1:443", "protocol": "tcp"});
    let answer = testbed.api().post("/policy/evaluate", &question).expect("explained");
    assert_eq!(answer["decision"], "block", "{answer}");
    let sentence = answer["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("DNS over HTTPS"), "{sentence}");
}

/// The switch for all hosts is in force with the answer, and cuts a flow that runs.
#[test]
fn a_switch_for_all_ends_running_calls() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let at = SocketAddr::new(server(false), 50_000);
    let internet = network.internet.within(|| UdpSocket::bind(at)).expect("a server");
    internet.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    let call = network.tv.namespace.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    let arrives = |datagram: &[u8]| {
        let _ = call.send_to(datagram, at);
        internet.recv_from(&mut [0; 64]).is_ok()
    };
    assert!(arrives(&binding_request()) && arrives(b"media"));
    testbed.api().post("/privacy/block-webrtc", &json!({"enabled": true})).expect("switched");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert!(!arrives(b"media"), "the call goes on");
    testbed.api().post("/privacy/block-webrtc", &json!({"enabled": false})).expect("switched");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert!(arrives(b"media"), "the call may go on again");
}

/// Answers each request with this text.
fn publish(at: TcpListener, text: String) {
    std::thread::spawn(move || {
        for stream in at.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let length = text.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
            );
        }
    });
}

/// Feeds of the category `doh` add to the built-in list.
#[test]
fn feeds_of_resolvers_block_what_they_list() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let listener = |port: u16| {
        let at = SocketAddr::new(server(false), port);
        network.internet.within(|| TcpListener::bind(at)).expect("a server")
    };
    let (https, high) = (listener(443), listener(50_000));
    testbed.api().put("/settings/dns.list_private_targets", &json!({"value": true})).expect("stored");
    publish(listener(8081), format!("{}\n", server(false)));
    publish(
        listener(8082),
        "||resolver.example^\n||other.example^$important\n@@||not.resolver.example^\n||page.example^$script\n||page.example^$popup\n"
            .to_owned(),
    );
    let before = testbed.api().get("/privacy/status").expect("the status")["lists"].clone();
    testbed.api().post("/privacy/block-doh", &json!({"enabled": true})).expect("switched");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_eq!(tcp(&network.laptop, &https), Fate::Arrived);
    assert_eq!(ask_doh(&network.laptop, &high, "doh.resolver.example"), Fate::Arrived);
    assert_eq!(before["updated"], serde_json::Value::Null, "{before}");

    let feeds = [(8081, "ip"), (8082, "adblock")].map(|(port, format)| {
        let url = format!("http://{}:{port}/list", server(false));
        let feed = json!({"name": format, "url": url, "format": format, "category": "doh"});
        create(testbed.api(), "/dns/threat-feeds", &feed).expect("stored")
    });
    wait_ok(SOON, "the feeds to count", || {
        let lists = testbed.api().get("/privacy/status")?["lists"].clone();
        let more = |key: &str| lists[key].as_u64().zip(before[key].as_u64()).map(|(now, then)| now - then);
        let found = (more("doh_ips"), more("doh_domains"), lists["updated"].is_string());
        let feeds = testbed.api().get("/dns/threat-feeds?enabled=true")?;
        anyhow::ensure!(found == (Some(1), Some(2), true), "{lists}, before {before}, {feeds}");
        Ok(())
    })
    .expect("counted");
    let ignored = |feed: &str| {
        testbed.api().get(&format!("/dns/threat-feeds/{feed}")).expect("a feed")["ignored"].clone()
    };
    assert_eq!(ignored(&feeds[0]), json!({"total": 0, "reasons": []}));
    let rules = ignored(&feeds[1]);
    assert_eq!((&rules["total"], &rules["reasons"][0]["lines"]), (&json!(2), &json!(2)), "{rules}");
    assert_eq!(rules["reasons"][0]["first_line"], 4, "{rules}");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_eq!(tcp(&network.laptop, &https), Fate::Stopped, "a listed address");
    assert_eq!(ask_doh(&network.laptop, &high, "doh.resolver.example"), Fate::Stopped, "below a listed name");
    assert_eq!(ask_doh(&network.laptop, &high, "www.example.com"), Fate::Arrived, "another name");

    for feed in feeds {
        testbed.api().delete(&format!("/dns/threat-feeds/{feed}")).expect("deleted");
    }
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_eq!(tcp(&network.laptop, &https), Fate::Arrived, "without the feed");
}

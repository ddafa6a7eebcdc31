//! False positives: ordinary traffic of a device with all privacy blocks, as frames. The table of results is in the docs.

use gateway_common::classify::{Classified, ICMP, ICMPV6, classify};
use gateway_common::decide::decide_ip;
use gateway_common::inspect::decide_inspected;
use gateway_common::verdict::{Reason, Verdict};
use gateway_core::plan_maps::PlanMaps;
use serde_json::json;

use crate::fixture::Fixture;
use crate::frames::{client_hello, frame, quic_initial, segment, udp};

const PAGE: &str = include_str!("../../../../docs/src/ordinary-traffic.md");
const SERVER: &str = "203.0.113.9";
const GATEWAY: &str = "192.168.1.1";

struct Row {
    what: &'static str,
    packets: &'static str,
    /// The result is that of the last frame.
    frames: Vec<Vec<u8>>,
}

/// A connection that opens and sends.
fn tcp(to: &str, port: u16, payload: &[u8]) -> Vec<Vec<u8>> {
    vec![segment(to, port, 2, &[]), segment(to, port, 0x18, payload)]
}

fn icmp(to: &str, kind: u8) -> Vec<u8> {
    let protocol = if to.contains(':') { ICMPV6 } else { ICMP };
    frame(to, protocol, &[&[kind, 0, 0, 0, 0, 7, 0, 1][..], &[0; 56]].concat())
}

/// RTP version 2 with a marker bit, a payload type and 160 bytes (RFC 3550, section 5.1).
fn rtp(sequence: u8) -> Vec<u8> {
    [&[0x80, 0x80 | 111, 0, sequence, 0, 0, 0, 160, 9, 9, 9, 9][..], &[0x55; 160]].concat()
}

fn stun() -> Vec<u8> {
    [&[0u8, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat()
}

fn dns_query() -> Vec<u8> {
    [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3][..], b"www", &[7], b"example", &[0, 0, 1, 0, 1]].concat()
}

fn row(what: &'static str, packets: &'static str, frames: Vec<Vec<u8>>) -> Row {
    Row { what, packets, frames }
}

fn rows() -> Vec<Row> {
    let mut rows = web_and_mail();
    rows.extend(calls_and_games());
    rows.extend(networks());
    rows.extend(asked_for());
    rows
}

fn web_and_mail() -> Vec<Row> {
    vec![
        row(
            "Web page",
            "TLS 1.3 to `www.example.com`, TCP 443",
            tcp(SERVER, 443, &client_hello("www.example.com")),
        ),
        row(
            "Web page of a firm with a resolver",
            "TLS to `www.google.com`",
            tcp(SERVER, 443, &client_hello("www.google.com")),
        ),
        row(
            "Name that ends like a resolver's",
            "TLS to `notdns.google`",
            tcp(SERVER, 443, &client_hello("notdns.google")),
        ),
        row(
            "Web page without TLS",
            "`GET /` to TCP 80",
            tcp(SERVER, 80, b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n"),
        ),
        row("Software update", "TLS to `deb.debian.org`", tcp(SERVER, 443, &client_hello("deb.debian.org"))),
        row(
            "Push messages",
            "TLS to TCP 5223 and 5228",
            [
                tcp(SERVER, 5223, &client_hello("courier.push.example")),
                tcp(SERVER, 5228, &client_hello("mtalk.example")),
            ]
            .concat(),
        ),
        row(
            "Mail",
            "TLS to TCP 993 and 465",
            [
                tcp(SERVER, 993, &client_hello("imap.example")),
                tcp(SERVER, 465, &client_hello("smtp.example")),
            ]
            .concat(),
        ),
        row("Mail with STARTTLS", "`EHLO` to TCP 587", tcp(SERVER, 587, b"EHLO laptop\r\n")),
        row("SSH", "banner to TCP 22", tcp(SERVER, 22, b"SSH-2.0-OpenSSH_9.2\r\n")),
        row("MQTT", "TLS to TCP 8883", tcp(SERVER, 8883, &client_hello("broker.example"))),
        row(
            "Bitcoin",
            "`version` to TCP 8333",
            tcp(SERVER, 8333, &[0xf9, 0xbe, 0xb4, 0xd9, b'v', b'e', b'r', b's', b'i', b'o', b'n', 0]),
        ),
    ]
}

fn calls_and_games() -> Vec<Row> {
    let raknet =
        [0x01, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0, 0xfe, 0xfe, 0xfe, 0xfe, 0xfd, 0xfd, 0xfd, 0xfd];
    vec![
        row(
            "Call by a server, media",
            "RTP (RFC 3550) to UDP 8801",
            vec![udp(SERVER, 8801, &rtp(1)), udp(SERVER, 8801, &rtp(2))],
        ),
        row(
            "Call by SIP",
            "`REGISTER` to UDP 5060, RTP to UDP 16384",
            vec![udp(SERVER, 5060, b"REGISTER sip:example SIP/2.0\r\n"), udp(SERVER, 16_384, &rtp(1))],
        ),
        row(
            "Key exchange of media",
            "DTLS 1.2 ClientHello to UDP 50000",
            vec![udp(
                SERVER,
                50_000,
                &[&[0x16, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 1][..], &[0; 199]].concat(),
            )],
        ),
        row(
            "Game, Source engine",
            "`A2S_INFO` to UDP 27015",
            vec![udp(SERVER, 27_015, b"\xff\xff\xff\xffTSource Engine Query\0")],
        ),
        row(
            "Game, Minecraft",
            "RakNet ping to UDP 19132, handshake to TCP 25565",
            [vec![udp(SERVER, 19_132, &raknet)], tcp(SERVER, 25_565, &[0x10, 0, 0xff, 5, 9])].concat(),
        ),
        row(
            "Game consoles",
            "UDP 3074, 9308 and 45000",
            vec![
                udp(SERVER, 3074, &[0; 40]),
                udp(SERVER, 9308, &[0x20; 64]),
                udp(SERVER, 45_000, &[0xff; 120]),
            ],
        ),
        row(
            "BitTorrent",
            "DHT query and uTP to UDP 6881",
            vec![
                udp(SERVER, 6881, b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"),
                udp(
                    SERVER,
                    6881,
                    &[0x41, 0, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0],
                ),
            ],
        ),
        row("Large datagrams", "1400 bytes of `0xff` to UDP 5000", vec![udp(SERVER, 5000, &[0xff; 1400])]),
    ]
}

fn networks() -> Vec<Row> {
    vec![
        row(
            "Ping and traceroute",
            "ICMP echo, UDP 33434",
            vec![icmp(SERVER, 8), udp(SERVER, 33_434, &[0; 32])],
        ),
        row(
            "VPN of the device, WireGuard",
            "handshake to UDP 51820",
            vec![udp(SERVER, 51_820, &[&[1, 0, 0, 0][..], &[0x21; 144]].concat())],
        ),
        row(
            "VPN of the device, IPsec",
            "IKE to UDP 500 and 4500",
            vec![udp(SERVER, 500, &[0x11; 200]), udp(SERVER, 4500, &[&[0; 4][..], &[0x11; 200]].concat())],
        ),
        row(
            "VPN of the device, OpenVPN",
            "hard reset to UDP 1194",
            vec![udp(SERVER, 1194, &[&[0x38][..], &[3; 53]].concat())],
        ),
        row(
            "DNS to the gateway",
            "query to UDP 53, TCP 853",
            [vec![udp(GATEWAY, 53, &dns_query())], vec![segment(GATEWAY, 853, 2, &[])]].concat(),
        ),
        row("DHCP", "`DISCOVER` to the broadcast address", vec![udp("255.255.255.255", 67, &[1; 300])]),
        row(
            "Printers and players in the LAN",
            "mDNS to 224.0.0.251, SSDP to 239.255.255.250",
            vec![
                udp("224.0.0.251", 5353, &[0; 40]),
                udp("239.255.255.250", 1900, b"M-SEARCH * HTTP/1.1\r\n"),
            ],
        ),
        row(
            "IPv6 in the LAN",
            "neighbour solicitation, TCP to the gateway",
            vec![icmp("ff02::1:ff00:1", 135), segment("fd00:1::1", 443, 2, &[])],
        ),
    ]
}

/// Traffic that the blocks are for.
fn asked_for() -> Vec<Row> {
    vec![
        row("DNS to another resolver", "query to UDP 53 of 8.8.8.8", vec![udp("8.8.8.8", 53, &dns_query())]),
        row("Time", "NTP (RFC 5905) to UDP 123", vec![udp(SERVER, 123, &[&[0x23][..], &[0; 47]].concat())]),
        row("DNS over TLS", "TCP 853", vec![segment(SERVER, 853, 2, &[])]),
        row("DNS over HTTPS, known address", "TCP 443 of 1.1.1.1", vec![segment("1.1.1.1", 443, 2, &[])]),
        row(
            "DNS over HTTPS, known name",
            "TLS to `dns.google`",
            tcp(SERVER, 443, &client_hello("dns.google")),
        ),
        row("HTTP/3", "QUIC to UDP 443", vec![udp(SERVER, 443, &quic_initial())]),
        row(
            "VPN at the port of HTTP/3",
            "WireGuard to UDP 443",
            vec![udp(SERVER, 443, &[&[1, 0, 0, 0][..], &[0x21; 144]].concat())],
        ),
        row(
            "Call from browser to browser",
            "STUN, then RTP, to UDP 50000",
            vec![udp(SERVER, 50_000, &stun()), udp(SERVER, 50_000, &rtp(1))],
        ),
        row(
            "Call by a server, with ICE",
            "STUN, then RTP, to UDP 8801",
            vec![udp(SERVER, 8801, &stun()), udp(SERVER, 8801, &rtp(1))],
        ),
        row("IPv6", "TCP 443 of 2001:db8::9", vec![segment("2001:db8::9", 443, 2, &[])]),
        row("Console behind Teredo", "UDP 3544", vec![udp(SERVER, 3544, &[0; 60])]),
        row("mDNS to the internet", "UDP 5353", vec![udp(SERVER, 5353, &[0; 40])]),
    ]
}

fn result(reason: Reason) -> String {
    match reason {
        Reason::NoPolicy => "passes".to_owned(),
        Reason::ToGateway => "reaches the gateway".to_owned(),
        Reason::LinkLocal => "stays in the LAN".to_owned(),
        Reason::ForcedDns | Reason::ForcedNtp => "answered by the gateway".to_owned(),
        reason => format!("`{}`", reason.as_str()),
    }
}

#[test]
fn all_blocks_stop_what_they_are_for_and_nothing_else() {
    let mut fixture = Fixture::new();
    fixture.network.dns_port = 53;
    let device = json!({"name": "laptop", "mac": "02:00:00:00:00:01", "privacy_class": "isolated"});
    fixture.create("device", device).expect("a device");
    let compiled = fixture.compiled();
    let mut table = String::from("| traffic | packets | result |\n|---|---|---|\n");
    for Row { what, packets, frames } in rows() {
        let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
        let reasons = frames.iter().map(|frame| {
            let Ok(Classified::Ip(mut packet)) = classify(&frame[..], 2) else {
                panic!("{what}: no IP packet")
            };
            let mut verdict = Verdict::DROP;
            decide_inspected(&frame[..], &mut packet, &maps, &mut verdict, decide_ip);
            verdict.reason
        });
        let reasons: Vec<Reason> = reasons.collect();
        let last = *reasons.last().expect("a frame");
        // What passes as a whole passes from the beginning.
        if !last.is_block() {
            assert!(reasons.iter().all(|reason| !reason.is_block()), "{what}: {reasons:?}");
        }
        table.push_str(&format!("| {what} | {packets} | {} |\n", result(last)));
    }
    assert!(PAGE.contains(&table), "docs/src/ordinary-traffic.md has another table than this:\n{table}");
}

//! DNS filter at XDP: the driver answers first queries for blocked names with the bytes of the tcx program, and leaves the
//! same counters, records and samples behind.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gateway_common::dns_filter::FilterKind;
use gateway_common::wire::{
    Address, DeviceValue, FilterClient, FilterClientKey, FilterHit, Mac, RANK_NONE, XdpAnswers, plan_flags,
};
use gateway_dns::serve::kernel_cache::Dataplane as _;
use gateway_tests::netns;

use super::packet::{Packet, Shown, UDP, mac};
use super::report::Report;
use super::xdp_dns::{DnsTestbed, HOSTS};
use crate::kernel::dns_filter::{ADS, EXACT, SERIAL, answer, certain, client, query, reply, table};

/// Host of the queries, and its device.
const HOST: u8 = 2;
const DEVICE: u32 = 5;
/// Resolvers whose queries are redirected.
const FOREIGN: [(&str, &str); 2] = [("192.168.77.2", "203.0.113.53"), ("fd77::2", "2001:db8:9::53")];

/// Returns a gateway whose filter blocks some names for the hosts.
fn build(with_xdp: Option<XdpAnswers>) -> DnsTestbed {
    let mut dns = DnsTestbed::build(with_xdp);
    dns.testbed.change_plan(|plan| {
        plan.header.flags |= plan_flags::FORCED_DNS;
        // Each flow.
        plan.header.sample_every = 1;
        let device =
            DeviceValue { rank: RANK_NONE, number: DEVICE, rank_after: RANK_NONE, ..Default::default() };
        plan.devices_by_mac.insert(mac(HOST), device);
    });
    let undecided = FilterKind::UNDECIDED.0;
    let mut names = vec![
        certain("ads.example", ADS.0, ADS.0),
        certain("exact.example", EXACT.0, 0),
        certain("allowed.ads.example", undecided, undecided),
    ];
    names.extend((0..1000).map(|number| certain(&format!("n{number}.test"), ADS.0, ADS.0)));
    let answers: Vec<_> =
        [ADS, EXACT].into_iter().flat_map(|kind| (0..9).map(move |variant| answer(kind, variant))).collect();
    dns.cache.put_table(&table(&names, SERIAL), &answers).expect("a table");
    put_clients(&dns, &client());
    dns
}

fn put_clients(dns: &DnsTestbed, value: &FilterClient) {
    let interface = dns.testbed.lan;
    for (client, server) in HOSTS {
        let [client, server] =
            [client, server].map(|text| Address::from(text.parse::<std::net::IpAddr>().expect("it is one")));
        for server in [server, Address([0; 4])] {
            dns.cache.put_client(
                &FilterClientKey { client, server, interface, host: Mac::new(mac(HOST)), _pad: 0 },
                value,
            );
        }
    }
}

/// Returns a packet with a query. Each is a flow of its own.
fn packet((client, server): (&str, &str), number: u16, message: &[u8]) -> Packet {
    let source = SocketAddr::new(client.parse().expect("an address"), 30_000 + number);
    let destination = SocketAddr::new(server.parse().expect("an address"), 53);
    Packet { payload: message.to_vec(), ..Packet::from_host(source, destination, UDP, HOST) }
}

fn hits(dns: &DnsTestbed) -> Vec<FilterHit> {
    let mut hits = Vec::new();
    // The gateways have other interfaces, and other clocks.
    dns.cache.take_filter_hits(&mut |hit| {
        let mut hit = FilterHit { time: 0, ..hit };
        hit.query.interface = 0;
        hits.push(hit);
    });
    hits
}

#[test]
fn first_queries_for_blocked_names_are_answered_in_the_driver_as_at_tcx() {
    netns::require_root().expect("root");
    let (mut with, mut without) = (build(Some(XdpAnswers::Redirect)), build(None));
    let types = [(1u16, 0u32), (28, 3), (65, 6)];
    let edns = [(None, 0), (Some((0u16, true)), 1), (Some((0x8000, false)), 2)];
    let mut number = 0;
    let (mut answered, mut evaluated) = (0, Instant::now());
    for ends in HOSTS.into_iter().chain(FOREIGN) {
        for round in 0..30u16 {
            number += 1;
            let (name, kind) = match round % 3 {
                0 => (format!("n{number}.test"), ADS),
                1 => (format!("Www{number}.aDs.example"), ADS),
                _ => ("EXACT.example".to_owned(), EXACT),
            };
            let (qtype, class) = types[usize::from(round) % 3];
            let (options, edns_class) = edns[usize::from(round / 3) % 3];
            let flags = [0, 0x0100, 0x0110][usize::from(round / 9) % 3];
            let message = query(&name, qtype, flags, options);
            let mut packet = packet(ends, number, &message);
            packet.padding = usize::from(round % 4) * 5;
            let (before, asked) = (with.answered(), Instant::now());
            let (on, off) = (with.send(&packet), without.send(&packet));
            assert_eq!(on, off, "{name} {ends:?}");
            let [Shown { bytes, .. }] = &on[..] else { panic!("one answer for {name}: {on:?}") };
            assert!(bytes.ends_with(&reply(&message, &name, kind, class + edns_class)[2..]), "{name}");
            let in_driver = with.answered() - before;
            if round == 0 || in_driver == 0 {
                // The next one is when the verdict has ended.
                let is_due = round == 0 || evaluated.elapsed() > Duration::from_secs(4);
                assert!(is_due && in_driver == 0, "{name} in round {round}: {in_driver}");
                evaluated = asked;
            }
            answered += in_driver;
        }
    }
    assert_eq!((with.answered(), without.answered()), (answered, 0));
    let hits = [hits(&with), hits(&without)];
    assert_eq!((hits[0].len(), &hits[0]), (usize::from(number), &hits[1]));
    let [on, off] = [&mut with, &mut without].map(|dns| Report::read(&mut dns.testbed, &[DEVICE], &[]));
    let samples = on.samples.iter().filter(|sample| sample.destination_port == 53);
    assert_eq!((samples.count(), on.devices[0].packets), (usize::from(number), u64::from(number)));
    assert_eq!(on, off);
}

#[test]
fn other_queries_and_other_clients_go_on() {
    netns::require_root().expect("root");
    let mut dns = build(Some(XdpAnswers::Transmit));
    let blocked = |number: u16| query(&format!("n{number}.test"), 1, 0x0100, None);
    let mut number = 0;
    // Returns the answers of the programs, and those of them in the driver.
    let mut ask = |dns: &mut DnsTestbed, ends, message: &[u8]| {
        number += 1;
        let before = dns.answered();
        let answers = dns.send(&packet(ends, number, message)).len();
        (answers, dns.answered() - before)
    };
    for ends in [HOSTS[0], FOREIGN[0]] {
        // A query that the resolver answers makes the verdict known as well.
        assert_eq!(ask(&mut dns, ends, &query("other.example", 1, 0x0100, None)), (0, 0));
        assert_eq!(ask(&mut dns, ends, &blocked(1)), (1, 1));
        for name in ["allowed.ads.example", "www.exact.example", "test"] {
            assert_eq!(ask(&mut dns, ends, &query(name, 1, 0x0100, None)), (0, 0), "{name}");
        }
        let response = query("n1.test", 1, 0x8100, None);
        assert_eq!(ask(&mut dns, ends, &response), (0, 0), "a response");
        for (what, value) in [
            ("another epoch", FilterClient { epoch: 77, ..client() }),
            ("another table", FilterClient { serial: SERIAL + 1, ..client() }),
            ("no such answer for it", FilterClient { kinds: EXACT.bit(), ..client() }),
            ("no budget", FilterClient { budget: 0, ..client() }),
        ] {
            put_clients(&dns, &value);
            assert_eq!(ask(&mut dns, ends, &blocked(2)), (0, 0), "{what}");
        }
        put_clients(&dns, &FilterClient { budget: 2, ..client() });
        let asked = [(); 3].map(|()| ask(&mut dns, ends, &blocked(3)));
        assert_eq!(asked, [(1, 1), (1, 1), (0, 0)], "the budget ends");
        put_clients(&dns, &client());
        hits(&dns);
    }
    dns.testbed.swap();
    assert_eq!(ask(&mut dns, HOSTS[0], &blocked(4)), (1, 0), "another plan");
    assert_eq!(ask(&mut dns, HOSTS[0], &blocked(4)), (1, 1));
    dns.testbed.change_plan(|plan| {
        plan.devices_by_mac.insert(
            mac(HOST),
            DeviceValue {
                rank: RANK_NONE,
                number: DEVICE,
                flags: gateway_common::wire::device_flags::BLOCKED,
                rank_after: RANK_NONE,
                ..DeviceValue::default()
            },
        );
    });
    assert_eq!(ask(&mut dns, HOSTS[0], &blocked(4)), (0, 0), "a blocked device");
}

#[test]
fn a_full_log_and_a_missing_checksum() {
    netns::require_root().expect("root");
    let mut dns = build(Some(XdpAnswers::Transmit));
    let message = query("ads.example", 1, 0x0100, None);
    assert_eq!(dns.send(&packet(HOSTS[0], 1, &message)).len(), 1);
    dns.assert_answered_without_checksum(&packet(HOSTS[0], 2, &message));
    // Without a place in the log, the resolver answers.
    let mut answers = 2;
    while dns.send(&packet(HOSTS[0], 3, &message)).len() == 1 {
        answers += 1;
        assert!(answers < 20_000, "the ring is never full");
    }
    assert_eq!(hits(&dns).len(), answers);
    assert_eq!(dns.send(&packet(HOSTS[0], 3, &message)).len(), 1, "there is room again");
}

//! DNS at XDP: the driver answers a repeated query with the bytes of the tcx program, once that program has evaluated a
//! query of the same host.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gateway_common::wire::{DNS_VERDICT_LIFETIME, LocalKind, LocalValue, XdpAnswers, XdpCounter};
use gateway_ctl::os::bpf::KernelDnsCache;
use gateway_dns::hooks::{Host, Ingress};
use gateway_dns::serve::kernel_cache::Dataplane as _;
use gateway_dns::serve::kernel_cache::entry::{EntryLifetime, key, value};
use gateway_tests::netns;
use gateway_tests::wait::wait_for;
use ipnet::IpNet;

use super::packet::{Packet, Shown, UDP, mac};
use super::show;
use super::testbed::Testbed;

/// Host of the queries.
const HOST: u8 = 2;
const EPOCH: u64 = 3;
const SECOND: u64 = 1_000_000_000;
/// A query for the IPv4 addresses of `www.example` and its answer, without ids.
const QUERY: &[u8] = b"\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
const ANSWER: &[u8] =
    b"\x81\x80\0\x01\0\x01\0\0\0\0\x03www\x07example\0\0\x01\0\x01\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc6\x12\0\x01";
pub(super) const HOSTS: [(&str, &str); 2] = [("192.168.77.2", "192.168.77.1"), ("fd77::2", "fd77::1")];

pub(super) struct DnsTestbed {
    pub testbed: Testbed,
    pub cache: KernelDnsCache,
}

impl DnsTestbed {
    /// A gateway that has cached the answer for the hosts.
    pub(super) fn build(with_xdp: Option<XdpAnswers>) -> DnsTestbed {
        let mut testbed = Testbed::build();
        testbed.change_plan(|plan| {
            for (_, server) in HOSTS {
                let net: IpNet = IpNet::from(server.parse::<std::net::IpAddr>().expect("an address"));
                plan.locals.insert(net, LocalValue::new(LocalKind::Own));
            }
        });
        if let Some(answers) = with_xdp {
            testbed.answers = answers;
            testbed.use_xdp();
            testbed.turn_on();
        }
        let cache = KernelDnsCache(testbed.programs.answers().expect("its maps").into());
        cache.set_epoch(EPOCH);
        let mut built = DnsTestbed { testbed, cache };
        built.keep_answers();
        built
    }

    fn keep_answers(&mut self) {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = time.tv_sec as u64 * SECOND + time.tv_nsec as u64;
        for (id, (client, server)) in (1u64..).zip(HOSTS) {
            let (address, server) =
                (client.parse().expect("an address"), server.parse().expect("an address"));
            let ingress = Ingress { mac: mac(HOST), interface: self.testbed.lan, vlan: 0 };
            let client = Host { address, ingress: Some(ingress) };
            let message = [&[0, 0], QUERY].concat();
            let key = key(&client, server, self.testbed.lan, &message).expect("short enough");
            let lifetime = EntryLifetime { since: None, now, until: now + 600 * SECOND };
            let mut value = value(&key, &[&[0, 0], ANSWER].concat(), lifetime).expect("short enough");
            (value.id, value.tail, value.epoch) = (id, id, EPOCH);
            self.cache.put(&key, &value);
        }
    }

    /// Sends a frame from the LAN and returns the answers. Without a resolver, the kernel sends an ICMP error instead.
    pub(super) fn send(&mut self, packet: &Packet) -> Vec<Shown> {
        // On a slow machine the lease ends while another gateway is built.
        self.testbed.renew();
        self.testbed.send_from_lan(packet);
        let mut shown = show(&self.testbed.received().0, false);
        shown.retain(|frame| frame.source_port == 53);
        shown
    }

    /// Sends a query over IPv4 without its checksum. The driver answers it without one.
    pub(super) fn assert_answered_without_checksum(&mut self, packet: &Packet) {
        let mut frame = packet.frame();
        frame[40..42].fill(0);
        let before = self.answered();
        self.testbed.send_frame_from_lan(&frame);
        let (to_lan, _) = self.testbed.received();
        let answer = to_lan.iter().find(|frame| frame[23] == UDP).expect("an answer");
        assert_eq!((self.answered(), &answer[40..42]), (before + 1, &[0, 0][..]));
    }

    pub(super) fn answered(&self) -> u64 {
        self.testbed.counted_by_xdp(XdpCounter::Answered)
    }

    fn hits(&self) -> Vec<u64> {
        let mut hits = Vec::new();
        self.cache.take_hits(&mut |hit| hits.push(hit.id));
        hits
    }
}

fn query((client, server): (&str, &str), id: [u8; 2]) -> Packet {
    let source = SocketAddr::new(client.parse().expect("an address"), 40_000);
    let destination = SocketAddr::new(server.parse().expect("an address"), 53);
    Packet { payload: [&id, QUERY].concat(), ..Packet::from_host(source, destination, UDP, 2) }
}

#[test]
fn repeated_queries_are_answered_in_the_driver_with_the_same_bytes() {
    netns::require_root().expect("root");
    let (mut with, mut without) = (DnsTestbed::build(Some(XdpAnswers::Redirect)), DnsTestbed::build(None));
    for (number, host) in (1u64..).zip(HOSTS) {
        let before = with.answered();
        for id in 0..5u8 {
            let packet = query(host, [7, id]);
            let (answer, same) = (with.send(&packet), without.send(&packet));
            assert_eq!(answer.len(), 1, "{host:?} {id}");
            assert_eq!(answer, same, "{host:?} {id}");
            assert_eq!(with.answered(), before + u64::from(id), "the first is evaluated");
        }
        assert_eq!(with.hits(), [number; 5], "each is logged");
        assert_eq!(without.hits(), [number; 5]);
    }
    assert_eq!(without.answered(), 0);
}

#[test]
fn a_verdict_holds_for_one_host_one_plan_and_some_seconds() {
    netns::require_root().expect("root");
    let mut dns = DnsTestbed::build(Some(XdpAnswers::Transmit));
    let packet = query(HOSTS[0], [1, 2]);
    let answered = |dns: &mut DnsTestbed, packet: &Packet| {
        let before = dns.answered();
        (dns.send(packet).len(), dns.answered() - before)
    };
    assert_eq!(answered(&mut dns, &packet), (1, 0));
    assert_eq!(answered(&mut dns, &packet), (1, 1));

    let other = Packet { from: super::packet::mac(3), ..packet.clone() };
    assert_eq!(
        answered(&mut dns, &other),
        (0, 0),
        "the packet cache answers the host that it was filled for"
    );
    let foreign = Packet { to: [2, 0, 0, 0, 9, 9], ..packet.clone() };
    assert_eq!(answered(&mut dns, &foreign).1, 0, "a frame for another host");
    let name = Packet { payload: packet.payload.to_ascii_uppercase(), ..packet.clone() };
    assert_eq!(answered(&mut dns, &name), (0, 0), "another spelling");

    assert_eq!(answered(&mut dns, &packet), (1, 1));
    dns.testbed.swap();
    assert_eq!(answered(&mut dns, &packet), (1, 0), "another plan");
    assert_eq!(answered(&mut dns, &packet), (1, 1));
    dns.testbed.fast_path().set(None).expect("off");
    assert_eq!(answered(&mut dns, &packet), (1, 0), "the fast path is off");
    dns.testbed.turn_on();
    assert_eq!(answered(&mut dns, &packet), (1, 0), "another epoch");
    assert_eq!(answered(&mut dns, &packet), (1, 1));
    wait_for(Duration::from_secs(20), "a query that is evaluated again", || {
        answered(&mut dns, &packet) == (1, 0)
    })
    .expect("the verdict ends");
    assert_eq!(answered(&mut dns, &packet), (1, 1));

    // The gateway has this address no longer.
    dns.testbed.change_plan(|plan| plan.locals.clear());
    assert_eq!(answered(&mut dns, &packet), (0, 0));
}

#[test]
fn without_a_checksum_there_is_none_and_half_a_checksum_is_left_to_the_stack() {
    netns::require_root().expect("root");
    let mut dns = DnsTestbed::build(Some(XdpAnswers::Transmit));
    let packet = query(HOSTS[0], [1, 2]);
    assert_eq!(dns.send(&packet).len(), 1);
    dns.assert_answered_without_checksum(&packet);

    let before = dns.answered();
    let mut frame = packet.frame();
    // The sum of the pseudo-header, as a packet of this machine has it before its checksum is computed.
    let ends = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
    let sum = gateway_common::checksum::fold(gateway_common::checksum::sum(&ends));
    frame[40..42].copy_from_slice(&sum.to_ne_bytes());
    dns.testbed.send_frame_from_lan(&frame);
    dns.testbed.received();
    assert_eq!(dns.answered(), before);
}

#[test]
fn without_the_daemon_the_driver_answers_nothing() {
    netns::require_root().expect("root");
    let mut dns = DnsTestbed::build(Some(XdpAnswers::Transmit));
    let packet = query(HOSTS[0], [1, 2]);
    let evaluated = Instant::now();
    assert_eq!([dns.send(&packet).len(), dns.send(&packet).len()], [1, 1]);
    assert_eq!(dns.answered(), 1);
    // The lease of the fast path is renewed, and the verdict holds for longer than this.
    let DnsTestbed { mut testbed, cache } = dns;
    drop(cache);
    wait_for(Duration::from_secs(3), "a query without an answer", || {
        testbed.send_from_lan(&packet);
        let mut shown = show(&testbed.received().0, false);
        shown.retain(|frame| frame.source_port == 53);
        shown.is_empty()
    })
    .expect("the kernel empties the maps of tail calls");
    assert!(evaluated.elapsed() < Duration::from_nanos(DNS_VERDICT_LIFETIME), "too slow to show it");
}

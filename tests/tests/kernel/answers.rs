//! Answers of the ingress program from the packet cache: each is the resolver's answer with the id of the current
//! query, current TTLs and valid checksums.

use std::net::IpAddr;
use std::time::Duration;

use gateway_common::checksum;
use gateway_common::wire::{DnsCacheKey, DnsCacheValue, LocalKind, LocalValue};
use gateway_core::plan::Dataplane;
use gateway_ctl::os::bpf::{KernelDnsCache, Programs};
use gateway_dns::hooks::{Host, Ingress};
use gateway_dns::serve::kernel_cache::Dataplane as _;
use gateway_dns::serve::kernel_cache::entry::{EntryLifetime, key, value};
use gateway_tests::bpf_run::{Arrival, admit_all, run, run_and_read};
use gateway_tests::netns::{self, Prefix};
use gateway_tests::wait::wait_ok;
use ipnet::IpNet;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub(super) const SENT_BACK: i32 = 7;
pub(super) const GOES_ON: i32 = -1;
pub(super) const EPOCH: u64 = 3;
pub(super) const SECOND: u64 = 1_000_000_000;
const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Addresses and ports of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub client: IpAddr,
    pub server: IpAddr,
}

impl Ends {
    pub(super) fn new(ipv6: bool, client: u8) -> Ends {
        let address = |last: u8| match ipv6 {
            true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)]),
            false => IpAddr::from([192, 168, 10, last]),
        };
        Ends { client: address(client), server: address(1) }
    }

    /// Returns the client as the programs see it.
    pub(super) fn host(self) -> Host {
        Host { address: self.client, ingress: Some(Ingress { mac: CLIENT, interface: 1, vlan: 0 }) }
    }

    /// Returns a frame with a datagram whose checksum is valid.
    pub(super) fn frame(self, message: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + message.len()).expect("short").to_be_bytes();
        let mut udp =
            [&40_001u16.to_be_bytes()[..], &53u16.to_be_bytes(), &length, &[0, 0], message].concat();
        let ends = [octets(self.client), octets(self.server)].concat();
        let pseudo = [&ends[..], &[0, 17], &length, &udp].concat();
        udp[6..8].copy_from_slice(&(!checksum::fold(checksum::sum(&pseudo))).to_ne_bytes());
        let ip = match self.client.is_ipv6() {
            true => [&[0x60, 0, 0, 0][..], &length, &[17, 64], &ends].concat(),
            false => {
                let total = u16::try_from(20 + udp.len()).expect("short").to_be_bytes();
                // No code checks the header checksum before routing.
                [&[0x45, 0][..], &total, &[0, 0, 0, 0, 64, 17, 0, 0], &ends].concat()
            }
        };
        let kind: [u8; 2] = if self.client.is_ipv6() { [0x86, 0xdd] } else { [8, 0] };
        [&[2, 0, 0, 0, 1, 1][..], &CLIENT, &kind, &ip, &udp].concat()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

struct Pins(std::path::PathBuf);

impl Drop for Pins {
    fn drop(&mut self) {
        netns::remove_pins(&self.0);
    }
}

pub(super) struct Testbed {
    programs: Programs,
    pub dns_cache: KernelDnsCache,
    serial: u64,
    _pins: Pins,
}

impl Testbed {
    pub(super) fn new() -> Testbed {
        netns::require_root().expect("root");
        let pins = Pins(Prefix::unique().expect("a prefix").pin_directory());
        let mut programs = Programs::load(&pins.0).expect("the programs load");
        let own = |address: IpAddr| (IpNet::from(address), LocalValue::new(LocalKind::Own));
        let locals = [false, true].map(|ipv6| own(Ends::new(ipv6, 2).server));
        let mut plan = Dataplane { locals: locals.into(), ..Dataplane::default() };
        admit_all(&mut plan, Arrival::default().interface);
        programs.apply(&plan).expect("a plan");
        let dns_cache = KernelDnsCache(programs.answers().expect("its maps").into());
        dns_cache.set_epoch(EPOCH);
        Testbed { programs, dns_cache, serial: 0, _pins: pins }
    }

    fn keep(&mut self, key: &DnsCacheKey, answer: &[u8], span: EntryLifetime) -> DnsCacheValue {
        let mut value = value(key, answer, span).expect("short enough");
        self.serial += 1;
        (value.id, value.tail, value.epoch) = (self.serial, self.serial, EPOCH);
        self.dns_cache.put(key, &value);
        value
    }

    pub(super) fn run(&mut self, frame: &[u8]) -> (i32, Vec<u8>) {
        let program = self.programs.program("gw_ingress").expect("the program");
        let (run, out) = run_and_read(program, frame, Arrival::default()).expect("a test run");
        (run.action, out)
    }

    fn take_hits(&self) -> Vec<u64> {
        let mut given = Vec::new();
        self.dns_cache.take_hits(&mut |answer| given.push(answer.id));
        given
    }
}

pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Returns a span of a minute without TTLs.
fn fixed() -> EntryLifetime {
    EntryLifetime { since: None, now: now(), until: now() + 60 * SECOND }
}

/// Returns a query for a name of one label.
fn question(label: &str, id: [u8; 2], edns: bool) -> Vec<u8> {
    let mut message = vec![id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns), label.len() as u8];
    message.extend_from_slice(label.as_bytes());
    message.extend_from_slice(b"\x07example\0\0\x01\0\x01");
    if edns {
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }
    message
}

/// Returns its answer with one address for each TTL.
fn answer(question: &[u8], label: &str, ttls: &[u32]) -> Vec<u8> {
    let end = 12 + 1 + label.len() + 9 + 4;
    let mut message = question[..end].to_vec();
    (message[2], message[3], message[7], message[11]) = (0x81, 0x80, ttls.len() as u8, 0);
    for (index, ttl) in ttls.iter().enumerate() {
        message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
        message.extend_from_slice(&ttl.to_be_bytes());
        message.extend_from_slice(&[0, 4, 198, 18, 0, index as u8]);
    }
    message
}

/// Returns the message of a frame after checks of its checksums, addresses and ports.
pub(super) fn read(frame: &[u8], ends: Ends) -> Vec<u8> {
    let ip = 14;
    let ipv6 = ends.client.is_ipv6();
    let (header, pseudo) = match ipv6 {
        true => (40, frame[ip + 8..ip + 40].to_vec()),
        false => (20, frame[ip + 12..ip + 20].to_vec()),
    };
    let udp = &frame[ip + header..];
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    assert_eq!(length, udp.len(), "the length of the datagram");
    let total = if ipv6 { 4 } else { 2 };
    let total = usize::from(u16::from_be_bytes([frame[ip + total], frame[ip + total + 1]]));
    assert_eq!(total, length + if ipv6 { 0 } else { 20 }, "the length of the packet");
    if !ipv6 {
        assert_eq!(checksum::fold(checksum::sum(&frame[ip..ip + 20])), 0xffff, "the header's checksum");
    }
    let kind = [0, 17, udp[4], udp[5]];
    assert_eq!(checksum::fold(checksum::sum(&[&pseudo, &kind[..], udp].concat())), 0xffff, "the checksum");
    assert_eq!(pseudo, [octets(ends.server), octets(ends.client)].concat(), "it goes back");
    assert_eq!((&udp[..2], &udp[2..4]), (&53u16.to_be_bytes()[..], &40_001u16.to_be_bytes()[..]));
    assert_eq!(frame[..6], CLIENT);
    udp[8..].to_vec()
}

#[test]
fn cached_answers_are_returned_with_current_ttls() {
    let mut testbed = Testbed::new();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"answers are told again as they a");
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    let cases = ("[a-z]{1,30}", any::<bool>(), any::<bool>(), any::<[u8; 2]>(), 0u32..1000);
    let ttls = prop::collection::vec(1000u32..400_000, 0..=8);
    for round in 0..1500u32 {
        let ((label, edns, ipv6, id, passed), ttls) = {
            let tree = (cases.clone(), ttls.clone()).new_tree(&mut runner).expect("a case");
            proptest::strategy::ValueTree::current(&tree)
        };
        let ends = Ends::new(ipv6, 2);
        let first = question(&label, [9, 9], edns);
        let reply = answer(&first, &label, &ttls);
        let key = key(&ends.host(), ends.server, 1, &first).expect("short enough");
        let instant = now();
        // In the middle of a second, so that no TTL expires meanwhile.
        let since = instant - u64::from(passed) * SECOND - SECOND / 2;
        let span = EntryLifetime { since: Some(since), now: since, until: instant + 60 * SECOND };
        testbed.keep(&key, &reply, span);
        let (action, out) = testbed.run(&ends.frame(&question(&label, id, edns)));
        assert_eq!(action, SENT_BACK, "round {round}");
        let aged: Vec<u32> = ttls.iter().map(|ttl| ttl - passed).collect();
        let mut wanted = answer(&first, &label, &aged);
        wanted[..2].copy_from_slice(&id);
        assert_eq!(read(&out, ends), wanted, "round {round}");
        assert_eq!(testbed.take_hits(), [u64::from(round) + 1]);
        testbed.dns_cache.remove(&[key]);
        assert_eq!(testbed.run(&ends.frame(&first)).0, GOES_ON, "it is forgotten");
    }
}

#[test]
fn nothing_else_is_answered() {
    let mut testbed = Testbed::new();
    let ends = Ends::new(false, 2);
    let asked = question("www", [1, 2], true);
    let reply = answer(&asked, "www", &[60]);
    let kept = key(&ends.host(), ends.server, 1, &asked).expect("short enough");
    let mut value = testbed.keep(&kept, &reply, fixed());
    let frame = ends.frame(&asked);
    let mut wanted = reply.clone();
    wanted[..2].copy_from_slice(&[1, 2]);
    let (action, out) = testbed.run(&frame);
    assert_eq!((action, read(&out, ends)), (SENT_BACK, wanted));

    let mut others = vec![
        ("another client", Ends::new(false, 3).frame(&asked)),
        ("another name", ends.frame(&question("wwx", [1, 2], true))),
        ("letters in another case", ends.frame(&question("wWw", [1, 2], true))),
        ("no EDNS", ends.frame(&question("www", [1, 2], false))),
        ("more behind the question", ends.frame(&[&asked[..], &[0]].concat())),
    ];
    let mut options = frame.clone();
    options[14] = 0x46;
    others.push(("options", options));
    let mut fragment = frame.clone();
    fragment[20] = 0x20;
    others.push(("a fragment", fragment));
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0x00, 0, 0]);
    others.push(("a tag", tagged));
    let mut long = frame.clone();
    long[38..40].copy_from_slice(&2000u16.to_be_bytes());
    others.push(("a length beyond the frame", long));
    for (what, frame) in others {
        let (action, out) = testbed.run(&frame);
        assert_ne!(action, SENT_BACK, "{what}");
        assert_eq!(out, frame, "{what} is left as it is");
    }
    let mut of_another = frame.clone();
    of_another[11] ^= 0x80;
    assert_ne!(testbed.run(&of_another).0, SENT_BACK, "another host with this address");
    let elsewhere = Arrival { interface: 2, ..Arrival::default() };
    let program = testbed.programs.program("gw_ingress").expect("the program");
    // There may be no second interface.
    if let Ok(run) = run(program, &frame, elsewhere) {
        assert_ne!(run.action, SENT_BACK, "another interface");
    }

    // The program's clock is coarse.
    value.until = now() - SECOND;
    testbed.dns_cache.put(&kept, &value);
    assert_eq!(testbed.run(&frame).0, GOES_ON, "its time is over");
    value.until = now() + 60 * SECOND;
    testbed.dns_cache.put(&kept, &value);
    assert_eq!(testbed.run(&frame).0, SENT_BACK);
    testbed.dns_cache.set_epoch(EPOCH + 1);
    assert_eq!(testbed.run(&frame).0, GOES_ON, "its epoch is over");
    testbed.dns_cache.set_epoch(EPOCH);
    assert_eq!(testbed.run(&frame).0, SENT_BACK);
    // Tail sequence of an entry that is being overwritten.
    value.tail += 1;
    testbed.dns_cache.put(&kept, &value);
    assert_eq!(testbed.run(&frame).0, 2, "neither one answer nor the other");
}

/// Returns a testbed with one cached answer: the query in a frame, and the answer.
fn one() -> (Testbed, Vec<u8>, Vec<u8>) {
    let (mut testbed, ends, asked) = (Testbed::new(), Ends::new(false, 2), question("www", [1, 2], false));
    let reply = answer(&asked, "www", &[60]);
    testbed.keep(&key(&ends.host(), ends.server, 1, &asked).expect("short"), &reply, fixed());
    (testbed, ends.frame(&asked), reply)
}

#[test]
fn a_datagram_without_a_checksum_is_answered_without_one() {
    let (mut testbed, mut frame, reply) = one();
    frame[40..42].fill(0);
    let (action, out) = testbed.run(&frame);
    assert_eq!((action, &out[40..42]), (SENT_BACK, &[0, 0][..]));
    // Ethernet frames are padded to 60 bytes.
    frame.extend_from_slice(&[0; 18]);
    let (action, out) = testbed.run(&frame);
    assert_eq!((action, out.len()), (SENT_BACK, 14 + 20 + 8 + reply.len()));
}

#[test]
fn no_cached_answer_is_returned_without_a_log_record() {
    let (mut testbed, frame, _) = one();
    // A full ring: 2 MiB with records of 24 bytes.
    let program = testbed.programs.program("gw_ingress").expect("the program");
    gateway_tests::bpf_run::measure(program, &frame, Arrival::default(), 1).expect("a test run");
    let mut answered = 1;
    while testbed.run(&frame).0 == SENT_BACK {
        answered += 1;
        assert!(answered < 200_000, "the ring is never full");
    }
    assert_eq!(testbed.take_hits().len(), answered);
    assert_eq!(testbed.run(&frame).0, SENT_BACK, "there is room again");
}

#[test]
fn without_the_daemon_the_program_answers_nothing() {
    let (mut testbed, frame, _) = one();
    assert_eq!(testbed.run(&frame).0, SENT_BACK);
    let Testbed { mut programs, dns_cache, _pins, .. } = testbed;
    drop(dns_cache);
    let program = programs.program("gw_ingress").expect("the program");
    // The kernel empties the daemon's program map asynchronously after its last descriptor is closed.
    wait_ok(Duration::from_secs(10), "the packet to go on", || {
        let action = run(program, &frame, Arrival::default())?.action;
        anyhow::ensure!(action == GOES_ON, "{action}");
        Ok(())
    })
    .expect("nobody answers");
}

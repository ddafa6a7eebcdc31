//! An attacker on the LAN: random frames against random states, while only tunnels may be on the uplink.
//!
//! Runs for `GATEWAY_ATTACK_SECONDS` (30). `GATEWAY_ATTACK_SEED` repeats a run.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use gateway_tests::frames::{Body, Forged, FrameSender, mac};
use gateway_tests::services::HTTP;
use gateway_tests::tap::MARK;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{LAN_V4, LAN_V6, WAN_V4, WAN_V6, other_server, server};
use gateway_tests::traffic::ask;
use gateway_tests::wait::{wait_for, wait_ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::nothing_past::sources::{GATEWAY, spoofed};
use crate::nothing_past::{BLOCKED, FAMILIES, SOON, assert_the_tap_sees};

/// Maximum milliseconds between two changes of the state.
const STATE: u64 = 1500;

/// Generator xorshift64*, sufficient for variety and reproducible by its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Returns a relevant address of either side, or a random one.
fn address(random: &mut Random, ipv6: bool) -> IpAddr {
    if ipv6 {
        let fixed: [Ipv6Addr; 9] = [
            "fd00:10::10".parse().expect("an address"),
            "fd00:10::77".parse().expect("an address"),
            "fe80::77".parse().expect("an address"),
            "fd66:1::2".parse().expect("an address"),
            "ff02::1".parse().expect("an address"),
            Ipv6Addr::UNSPECIFIED,
            LAN_V6,
            WAN_V6,
            (u128::from(LAN_V6) & !0xffff_ffff | u128::from(random.next() as u32)).into(),
        ];
        let near = random.pick(&fixed);
        return random.pick(&[near.into(), server(true), other_server(true)]);
    }
    let word = random.next() as u32;
    let fixed: [Ipv4Addr; 10] = [
        Ipv4Addr::new(192, 168, 10, 10),
        Ipv4Addr::new(192, 168, 10, 77),
        Ipv4Addr::new(192, 168, 10, 255),
        Ipv4Addr::new(169, 254, 7, 7),
        Ipv4Addr::new(10, 66, 1, 2),
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::new(224, 0, 0, 251),
        LAN_V4,
        WAN_V4,
        // Never outside the networks of the tests.
        Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) | word & 0x1_ffff),
    ];
    let near = random.pick(&fixed);
    random.pick(&[near.into(), server(false), other_server(false)])
}

fn body(random: &mut Random) -> Body {
    let port = |random: &mut Random| random.pick(&[53, 80, 443, 853, 7007, 4702, 8080, 51820, 9]);
    match random.below(6) {
        0 => Body::Ping,
        1 => Body::Syn { from: random.next() as u16, to: port(random) },
        2 => {
            let protocol = random.pick(&[0, 4, 41, 43, 44, 47, 50, 51, 60, 89, 132, 136, 255]);
            let length = random.below(80) as usize;
            Body::Other { protocol, bytes: [MARK, &random.bytes(length)].concat() }
        }
        _ => {
            let length = random.below(1200) as usize;
            let payload = [MARK, &random.bytes(length)].concat();
            Body::Udp { from: random.next() as u16, to: port(random), payload }
        }
    }
}

/// Returns a frame with a well-formed packet, or a malformed one: tags, fragments, truncation, flipped bits.
fn frame(random: &mut Random, from: [u8; 6]) -> Vec<u8> {
    let ipv6 = random.below(2) == 0;
    let (source, destination) = (address(random, ipv6), address(random, ipv6));
    let hop_limit = random.pick(&[64, 64, 64, 1, 2, 0, 255]);
    let packet = Forged { source, destination, hop_limit, body: body(random) };
    let mut frame = packet.frame(from, GATEWAY);
    match random.below(10) {
        // One or two VLAN tags.
        0 => drop(frame.splice(12..12, [0x81, 0x00, 0x00, random.pick(&[0, 7, 20])])),
        1 => drop(frame.splice(12..12, [0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x14])),
        // A fragment, with a wrong or a correct checksum.
        2 if !ipv6 => frame[20] |= random.pick(&[0x20, 0x01, 0x1f]),
        // Options that the length does not cover.
        3 if !ipv6 => frame[14] = 0x40 | random.pick(&[5, 6, 10, 15]),
        4 => frame.truncate(frame.len().min(14 + random.below(60) as usize)),
        5 => {
            let at = 14 + random.below(frame.len() as u64 - 14) as usize;
            frame[at] ^= 1 << random.below(8);
        }
        _ => {}
    }
    frame
}

/// Applies a random disturbance to the gateway.
fn disturb(testbed: &mut Testbed, tunnel: &str, random: &mut Random) {
    let rules = |testbed: &Testbed| {
        for family in ["-4", "-6"] {
            // A flush ends early when the daemon removes a rule of the list meanwhile.
            let flush = || testbed.network.gateway.run("ip", &[family, "rule", "flush", "protocol", "71"]);
            wait_ok(SOON, "the rules to be flushed", flush).expect("flushed");
        }
    };
    let nft =
        |testbed: &Testbed| drop(testbed.network.gateway.run("nft", &["flush", "ruleset"]).expect("flushed"));
    match random.below(8) {
        0 => drop(testbed.bring_down(tunnel)),
        1 => drop(testbed.api().act(&format!("/tunnels/{tunnel}/up"))),
        2 => {
            let pid = Pid::from_raw(i32::try_from(testbed.daemon.pid().expect("a pid")).expect("a pid"));
            kill(pid, Signal::SIGSTOP).expect("stopped");
            rules(testbed);
            nft(testbed);
            kill(pid, Signal::SIGCONT).expect("continued");
        }
        3 => {
            testbed.daemon.kill9().expect("killed");
            testbed.daemon.spawn().expect("started");
        }
        4 => rules(testbed),
        5 => nft(testbed),
        6 => drop(testbed.api().act("/routing/policies/apply")),
        _ => {}
    }
}

#[test]
fn random_frames_in_random_states_leave_by_the_tunnel_only() {
    let mut testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    let tunnel = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("all", 10, ("all", ""), &["wg-a"])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let text = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = text("GATEWAY_ATTACK_SEED").unwrap_or(0x6e6f_7468_696e_6721);
    let length = Duration::from_secs(text("GATEWAY_ATTACK_SECONDS").unwrap_or(30));
    println!("seed {seed} (GATEWAY_ATTACK_SEED), {} s (GATEWAY_ATTACK_SECONDS)", length.as_secs());
    let mut random = Random(seed | 1);
    let macs = [mac(testbed.network.laptop.mac), mac(testbed.network.tv.mac), [2, 9, 9, 9, 9, 9]];
    let sender = FrameSender::open(&testbed.network.laptop.namespace, "eth0").expect("a sender");
    let (started, mut sent, mut refused) = (Instant::now(), 0u64, 0u64);
    while started.elapsed() < length {
        disturb(&mut testbed, &tunnel, &mut random);
        let next = Instant::now() + Duration::from_millis(random.below(STATE));
        while Instant::now() < next {
            let from = random.pick(&macs);
            // The link rejects frames shorter than a header.
            match sender.send(&frame(&mut random, from)) {
                Ok(()) => sent += 1,
                Err(_) => refused += 1,
            }
        }
        let counts = testbed.network.tap.counts();
        assert!(counts.is_clean(), "after {sent} frames: {counts}");
    }
    println!("{sent} frames sent, {refused} refused by the link");
    assert!(sent > 1000 && refused * 10 < sent, "{sent} sent, {refused} refused");
    // The attacked gateway must be running.
    if testbed.daemon.ended().is_some() {
        panic!("the daemon ended: {}", testbed.daemon.last_words());
    }
    wait_for(SOON, "the daemon to answer", || testbed.api().get("/health").is_ok()).expect("it answers");
    assert!(
        spoofed(&testbed) > sent / 100,
        "the program dropped {} of {sent} frames for their source",
        spoofed(&testbed)
    );
    testbed.bring_up(&tunnel).expect("up");
    for ipv6 in FAMILIES {
        let exit = Some(testbed.network.exit_a.address(ipv6));
        wait_for(SOON, "the tunnel to carry traffic", || {
            ask(&testbed.network.tv, (server(ipv6), HTTP).into(), BLOCKED).seen() == exit
        })
        .expect("it carries traffic");
    }
    testbed.network.settle().expect("silence");
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
}

//! Tap behind the egress guard: counts what leaves past it, and nothing that the guard passed or stopped.

use std::net::UdpSocket;
use std::time::Duration;

use gateway_common::wire::{EgressAllowKey, EgressAllowValue, Mark};
use gateway_core::plan::{Attachment, Dataplane};
use gateway_ctl::os::bpf::Programs;
use gateway_tests::netns::{self, Namespace, Prefix};
use gateway_tests::wait::wait_for;

use crate::kernel::differential::Pins;

/// Timeout for a packet to be counted.
const SOON: Duration = Duration::from_secs(5);
/// Mark of the packets of the test.
const MARK: u32 = Mark::DIRECT.0;
/// A port at which nothing answers.
const NOWHERE: &str = "198.51.100.9:9";

/// A router between a host and an uplink. It forwards everything, with [`MARK`].
struct Router {
    host: Namespace,
    gateway: Namespace,
    internet: Namespace,
}

impl Router {
    fn build(prefix: &Prefix) -> Router {
        let make = |name: &str| Namespace::create(prefix, name).expect("a namespace");
        let (host, gateway, internet) = (make("host"), make("gw"), make("net"));
        let (gateway_name, internet_name) = (gateway.name(), internet.name());
        host.ip(&format!(
            "link add lan type veth peer name lan0 netns {gateway_name}\n\
             address add 192.168.77.2/24 dev lan\nlink set lan up\nroute add default via 192.168.77.1"
        ))
        .expect("a host");
        // Its kernel would send reports of multicast groups, which the guard stops and counts under an empty plan.
        gateway.sysctl("net.ipv6.conf.default.disable_ipv6", "1").expect("no IPv6");
        gateway
            .ip(&format!(
                "link add wan0 type veth peer name net0 netns {internet_name}\n\
                 address add 192.168.77.1/24 dev lan0\nlink set lan0 up\n\
                 address add 198.51.100.2/24 dev wan0\nlink set wan0 up"
            ))
            .expect("a gateway");
        internet.ip("address add 198.51.100.9/24 dev net0\nlink set net0 up").expect("an uplink");
        gateway.forward().expect("forwarding");
        let rules = format!(
            "table inet test {{\n\
             chain stamp {{ type filter hook prerouting priority mangle; iifname lan0 meta mark set {MARK}; }}\n\
             chain outgoing {{ type nat hook postrouting priority srcnat; oifname wan0 masquerade; }}\n}}\n"
        );
        gateway.nft(&rules).expect("rules");
        Router { host, gateway, internet }
    }

    fn send(&self, packets: usize) {
        let socket = self.host.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
        for _ in 0..packets {
            let _ = socket.send_to(b"x", NOWHERE);
        }
    }
}

fn escaped(programs: &Programs) -> u64 {
    programs.escaped().expect("counters").values().map(|counters| counters.packets).sum()
}

fn prevented(programs: &Programs) -> u64 {
    programs.prevented().expect("counters").values().map(|counters| counters.packets).sum()
}

#[test]
fn a_packet_past_the_guard_is_counted_and_others_are_not() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let router = Router::build(&prefix);
    router.gateway.within(|| {
        let mut programs = Programs::load(&pins.0).expect("the programs load");
        let index = nix::net::if_::if_nametoindex("wan0").expect("an index");
        let _tap = programs.tap_guard(index).expect("a tap");

        // Without the guard: whatever the mark allows has not escaped.
        router.send(3);
        wait_for(SOON, "three packets past the guard", || escaped(&programs) == 3).expect("counted");

        let guard = [("wan0".to_owned(), Attachment::Guard)].into();
        assert!(programs.attach(&guard).failed.is_empty());
        let stopped = prevented(&programs);
        router.send(2);
        wait_for(SOON, "two packets stopped", || prevented(&programs) == stopped + 2).expect("stopped");
        assert_eq!(escaped(&programs), 3, "stopped packets did not escape");

        let own =
            EgressAllowValue { v4: u32::from_ne_bytes([198, 51, 100, 2]), ..EgressAllowValue::default() };
        let authorised = [(EgressAllowKey { mark: MARK, index }, own)].into();
        programs.apply(&Dataplane { authorised, ..Dataplane::default() }).expect("a plan");
        let socket = router.internet.within(|| UdpSocket::bind(NOWHERE)).expect("a receiver");
        socket.set_read_timeout(Some(SOON)).expect("a timeout");
        router.send(1);
        socket.recv_from(&mut [0; 8]).expect("the packet that the guard passed");
        assert_eq!((prevented(&programs), escaped(&programs)), (stopped + 2, 3));
    });
}

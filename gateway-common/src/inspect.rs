//! Evaluation of a packet with the names that it shows: by its headers, and again when it completes a ClientHello.

use crate::classify::{IpPacket, TCP};
use crate::client_hello;
use crate::packet::Packet;
use crate::policy_maps::PolicyMaps;
use crate::recorded_verdict::flow_key;
use crate::verdict::Verdict;
use crate::wire::flow_flags::{HELLO, HELLO_OPEN};

/// Evaluates a packet whose headers have been read, and writes the result to `verdict`. `decide` is
/// [`decide_ip`](crate::decide::decide_ip), which the kernel program calls in a form of its own.
#[inline(always)]
pub fn decide_inspected<P: Packet + ?Sized, E: PolicyMaps>(
    packet: &P,
    ip: &mut IpPacket,
    environment: &E,
    verdict: &mut Verdict,
    decide: impl Fn(&IpPacket, &E, &mut Verdict),
) {
    if ip.payload & HELLO != 0 {
        client_hello::begin(packet, ip);
    }
    // One loop, so that the program has one copy of the decision, and its stack.
    for _ in 0..2 {
        decide(ip, environment, verdict);
        if completes(packet, ip, environment, verdict.shown) == 0 {
            break;
        }
    }
}

/// Goes on with a ClientHello of several segments. Returns 1 if the packet completes it.
#[inline(never)]
fn completes<P: Packet + ?Sized, E: PolicyMaps>(
    packet: &P,
    ip: &mut IpPacket,
    environment: &E,
    shown: u8,
) -> u32 {
    if ip.protocol != TCP {
        return 0;
    }
    if ip.payload & HELLO_OPEN == 0 {
        if ip.payload & HELLO != 0 || shown & (HELLO | HELLO_OPEN) != HELLO_OPEN {
            return 0;
        }
        match environment.hello(&flow_key(ip)) {
            Some(progress) => {
                ip.hello = progress;
                client_hello::resume(packet, ip);
            }
            // Forgotten: it ends here, without a name.
            None => ip.payload = HELLO,
        }
    }
    if ip.payload & HELLO_OPEN != 0 {
        environment.remember_hello(&flow_key(ip), &ip.hello);
    }
    (ip.payload & HELLO != 0) as u32
}

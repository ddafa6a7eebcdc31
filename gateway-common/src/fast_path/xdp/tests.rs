//! Checksums of rewritten frames, and the frames that XDP leaves to the tcx program.

use std::net::SocketAddr;

use proptest::prelude::*;
use zerocopy::FromZeros as _;

use super::super::hash::digest;
use super::super::header::tests::{Built, address, built, key_after};
use super::super::header::{ETHERNET, V4, V6, read};
use super::*;
use crate::checksum::sum;
use crate::classify::TCP;

fn parsed<F: Family>(frame: &[u8]) -> (Head, F::Header, u16) {
    let (mut head, mut header) = (Head::default(), F::Header::new_zeroed());
    assert!(read::<F, [u8]>(frame, ETHERNET, &mut head, &mut header), "a packet of the fast path");
    let at = ETHERNET + F::LENGTH + checksum_offset(head.protocol);
    (head, header, u16::from_ne_bytes([frame[at], frame[at + 1]]))
}

fn check<F: Family>(
    packet: &Built,
    source: SocketAddr,
    destination: SocketAddr,
) -> Result<(), TestCaseError> {
    let (head, header, before) = parsed::<F>(&packet.frame());
    let after = checksum_after::<F>(before, &header, &head, &key_after::<F>(source, destination));
    let (_, _, want) = parsed::<F>(&Built { source, destination, ..packet.clone() }.frame());
    // Zero has two forms; TCP uses whichever results.
    let is_zero = |sum: u16| matches!(sum, 0 | 0xffff);
    let same = after == want || head.protocol == TCP && is_zero(after) && is_zero(want);
    prop_assert!(same, "{after:04x} {want:04x}");
    prop_assert!(head.protocol == TCP || after != 0, "a computed checksum is not the mark of none");
    if head.protocol == UDP {
        let none = checksum_after::<F>(0, &header, &head, &key_after::<F>(source, destination));
        prop_assert_eq!(none, 0);
    }
    Ok(())
}

/// The sum of the pseudo-header, computed over its bytes.
fn pseudo_sum(packet: &Built, length: u32) -> u16 {
    let octets = |end: SocketAddr| match end.ip() {
        std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
        std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut bytes = [octets(packet.source), octets(packet.destination)].concat();
    bytes.extend(length.to_be_bytes());
    bytes.extend([0, 0, 0, packet.protocol]);
    fold(sum(&bytes))
}

fn check_unsummed<F: Family>(packet: &Built) -> Result<(), TestCaseError> {
    let (head, header, complete) = parsed::<F>(&packet.frame());
    let partial = pseudo_sum(packet, head.length - F::LENGTH as u32);
    prop_assert!(is_unsummed::<F>(&header, &head, partial));
    prop_assert_eq!(is_unsummed::<F>(&header, &head, complete), complete == partial);
    Ok(())
}

fn endpoint(ipv6: bool) -> impl Strategy<Value = SocketAddr> {
    (address(ipv6), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_checksum_is_that_of_a_packet_built_whole(packet in built(false), source in endpoint(false), destination in endpoint(false)) {
        check::<V4>(&packet, source, destination)?;
        check_unsummed::<V4>(&packet)?;
    }

    #[test]
    fn the_checksum_is_that_of_an_ipv6_packet_built_whole(packet in built(true), source in endpoint(true), destination in endpoint(true)) {
        check::<V6>(&packet, source, destination)?;
        check_unsummed::<V6>(&packet)?;
    }
}

#[test]
fn only_packets_that_tcx_would_send_on_are_taken() {
    let now = Validity { epoch: 5, generation: 9, seed: 77, time: 1000 };
    let key = Key { source: 1, destination: 2, source_port: 3, destination_port: 4, protocol: UDP.into() };
    let host = Mac::new([2; 6]);
    let action = FastAction {
        epoch: 5,
        generation: 9,
        ingress: 3,
        mtu: 1400,
        host,
        flags: fast_flags::FROM_ETHERNET | fast_flags::TO_ETHERNET,
        ..FastAction::default()
    };
    let made = |action: &FastAction, state: FastState| {
        let digest = digest(V4::hash(&key, now.seed), state.port, state.action, action);
        FastState { digest, epoch: 5, ..state }
    };
    let head = Head { length: 1400, hop_limit: 2, protocol: UDP, ..Head::default() };
    let arrival = Arrival { interface: 3, host, is_reply: false };
    let fresh = FastState { confirmed: 1000, probed: 1000, ..FastState::default() };
    let taken = |action: FastAction, state, head: &Head, now: &Validity, arrival: &Arrival| {
        takes((&made(&action, state), &action), V4::hash(&key, now.seed), head, now, arrival)
    };
    assert!(taken(action, fresh, &head, &now, &arrival));
    let old = FastState { confirmed: 1000 - crate::fast_path::PROBE_INTERVAL, probed: 0, ..fresh };
    assert!(!taken(action, old, &head, &now, &arrival), "a probe is of the IP stack");
    assert!(!taken(action, FastState { confirmed: 0, ..fresh }, &head, &now, &arrival), "it is over");
    assert!(!taken(action, FastState { end: FastEnd::Closed as u8, ..fresh }, &head, &now, &arrival));
    for flags in [fast_flags::FROM_ETHERNET, fast_flags::TO_ETHERNET, action.flags | fast_flags::REPLY] {
        assert!(!taken(FastAction { flags, ..action }, fresh, &head, &now, &arrival), "{flags}");
    }
    for head in [
        Head { length: 1401, ..head },
        Head { hop_limit: 1, ..head },
        Head { tcp_flags: 0x11, ..head },
        Head { tcp_flags: 0x04, ..head },
    ] {
        assert!(!taken(action, fresh, &head, &now, &arrival), "{head:?}");
    }
    for now in [Validity { epoch: 6, ..now }, Validity { generation: 8, ..now }, Validity { seed: 1, ..now }]
    {
        assert!(!taken(action, fresh, &head, &now, &arrival), "{now:?}");
    }
    for arrival in [
        Arrival { interface: 4, ..arrival },
        Arrival { host: Mac::new([4; 6]), ..arrival },
        Arrival { is_reply: true, ..arrival },
    ] {
        assert!(!taken(action, fresh, &head, &now, &arrival), "{arrival:?}");
    }
}

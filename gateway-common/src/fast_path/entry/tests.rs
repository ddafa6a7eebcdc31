//! Pairing of packets, and the validity of entries.

use super::super::PENDING_LIFETIME;
use super::super::header::{V4, V6};
use zerocopy::FromZeros as _;

use super::*;
use crate::classify::TCP;
use crate::wire::FastKey4;

fn pair<F: Family>(
    pending: &FastPending,
    leaving: &Leaving<F::Address>,
    links: (FastLink, FastLink),
    arrival: u8,
    seed: u32,
) -> Pair<F> {
    let zeroed = || (F::Key::new_zeroed(), F::Value::new_zeroed());
    let ((key, value), (reply_key, reply)) = (zeroed(), zeroed());
    let mut pair = Pair { key, value, reply_key, reply };
    set_pair(&mut pair, pending, leaving, links, arrival, seed);
    pair
}

fn opposite<F: Family>(value: &F::Value, protocol: u8) -> F::Key {
    let mut key = F::Key::new_zeroed();
    set_opposite::<F>(&mut key, value, protocol);
    key
}

const LAN: FastLink = FastLink { mtu: 1500, ethernet: 1 };
const TUNNEL: FastLink = FastLink { mtu: 1420, ethernet: 0 };
const NOW: u64 = 1 << 40;
const VALID: Validity = Validity { epoch: 5, generation: 9, seed: 77 };

fn v4(last: u8) -> u32 {
    u32::from_ne_bytes([10, 0, 0, last])
}

fn pending() -> FastPending {
    FastPending {
        time: NOW,
        source: Address::v4_word(v4(2)),
        destination: Address::v4_word(v4(9)),
        epoch: VALID.epoch,
        generation: VALID.generation,
        interface: 3,
        mark: Mark::leg(16).0,
        policy: 4,
        device: 6,
        length: 60,
        first: 0x45,
        hop_limit: 64,
        content: [1, 2],
        source_port: 1000,
        destination_port: 443,
        identification: 77,
        host: Mac::new([2, 0, 0, 0, 0, 2]),
        gateway: Mac::new([2, 0, 0, 0, 0, 1]),
        protocol: TCP,
        reason: 10,
        ..FastPending::default()
    }
}

fn leaving() -> Leaving<u32> {
    Leaving {
        source: v4(1),
        destination: v4(9),
        head: Head {
            length: 60,
            headers: 40,
            first: 0x45,
            source_port: 2000,
            destination_port: 443,
            identification: 77,
            protocol: TCP,
            hop_limit: 63,
            tcp_flags: 0x10,
        },
        content: [1, 2],
        mark: Mark::leg(16).0,
        interface: 8,
        to: Mac::new([2, 0, 0, 0, 0, 9]),
        from: Mac::new([2, 0, 0, 0, 0, 8]),
    }
}

#[test]
fn a_packet_is_recognised_whatever_its_translated_source_is() {
    let same =
        |pending: &FastPending, leaving: &Leaving<u32>| is_same_packet::<V4>(pending, leaving, NOW + 1);
    let (before, after) = (pending(), leaving());
    assert!(same(&before, &after));
    let head = |change: fn(&mut Head)| {
        let mut leaving = leaving();
        change(&mut leaving.head);
        leaving
    };
    for other in [
        Leaving { destination: v4(8), ..after },
        Leaving { content: [1, 3], ..after },
        Leaving { mark: Mark::leg(17).0, ..after },
        head(|head| head.destination_port = 444),
        head(|head| head.length = 61),
        head(|head| head.identification = 78),
        head(|head| head.protocol = 17),
        head(|head| head.hop_limit = 62),
        head(|head| head.first = 0xb845),
    ] {
        assert!(!same(&before, &other), "{other:?}");
    }
    assert!(!same(&FastPending { time: 0, ..before }, &after), "a note that was used");
    assert!(!same(&FastPending { ipv6: 1, ..before }, &after));
    assert!(!is_same_packet::<V4>(&before, &after, NOW + PENDING_LIFETIME + 1), "an old note");
    assert!(!is_same_packet::<V4>(&before, &after, NOW - 1), "a note from the future");
}

#[test]
fn a_pair_leads_there_and_back() {
    let pair = pair::<V4>(&pending(), &leaving(), (LAN, TUNNEL), 16, VALID.seed);
    assert_eq!(
        pair.key,
        FastKey4 {
            source: v4(2),
            destination: v4(9),
            source_port: 1000,
            destination_port: 443,
            protocol: TCP.into()
        }
    );
    assert_eq!((pair.value.source, pair.value.destination), (v4(1), v4(9)));
    assert_eq!((pair.value.action.source_port, pair.value.action.destination_port), (2000, 443));
    assert_eq!((pair.value.action.ingress, pair.value.action.egress, pair.value.action.mtu), (3, 8, 1420));
    assert_eq!(pair.value.action.flags, fast_flags::FROM_ETHERNET, "a tunnel has no Ethernet header");
    assert_eq!(opposite::<V4>(&pair.value, TCP), pair.reply_key);
    assert_eq!(opposite::<V4>(&pair.reply, TCP), pair.key);
    assert_eq!((pair.reply.source, pair.reply.destination), (v4(9), v4(2)));
    let back = pair.reply.action;
    assert_eq!((back.source_port, back.destination_port), (443, 1000));
    assert_eq!((back.ingress, back.egress, back.mtu), (8, 3, 1500));
    assert_eq!((back.to, back.from), (pending().host, pending().gateway));
    assert_eq!(back.mark, Mark::arrived_by(16).0);
    for (value, key) in [(&pair.value, &pair.key), (&pair.reply, &pair.reply_key)] {
        assert!(is_valid::<V4>(value, key, &VALID));
        assert!(!is_valid::<V4>(value, key, &Validity { epoch: 6, ..VALID }));
        assert!(!is_valid::<V4>(value, key, &Validity { generation: 10, ..VALID }));
        let other = FastKey4 { source_port: 1, ..*key };
        assert!(!is_valid::<V4>(value, &other, &VALID), "an element that now belongs to another flow");
    }
}

#[test]
fn ipv6_pairs_without_translation_keep_their_addresses() {
    let (source, destination) = (Address([1, 2, 3, 4]), Address([5, 6, 7, 8]));
    let pending = FastPending { source, destination, ipv6: 1, identification: 0, ..pending() };
    let Leaving { head, content, mark, interface, to, from, .. } = leaving();
    let head = Head { identification: 0, source_port: 1000, ..head };
    let leaving = Leaving { source, destination, head, content, mark, interface, to, from };
    assert!(is_same_packet::<V6>(&pending, &leaving, NOW));
    let pair = pair::<V6>(&pending, &leaving, (LAN, LAN), 0, VALID.seed);
    assert_eq!((pair.value.source, pair.value.destination), (source, destination));
    assert_eq!(pair.reply.action.mark, 0, "an interface without a leg");
    assert!(is_valid::<V6>(&pair.reply, &pair.reply_key, &VALID));
}

#[test]
fn an_entry_is_of_one_host_and_one_direction() {
    let pair = pair::<V4>(&pending(), &leaving(), (LAN, TUNNEL), 16, VALID.seed);
    let (host, other) = (pending().host, Mac::new([2, 0, 0, 0, 0, 3]));
    let action = pair.value.action;
    assert!(is_from_same_host(&action, 3, &host, false));
    assert!(!is_from_same_host(&action, 3, &other, false), "another host with its address");
    assert!(!is_from_same_host(&action, 4, &host, false), "another interface");
    assert!(!is_from_same_host(&action, 3, &host, true), "from an uplink");
    assert!(is_from_same_host(&pair.reply.action, 8, &other, true), "the next hop may have several");
    assert!(!is_from_same_host(&pair.reply.action, 3, &other, true), "another interface");
}

#[test]
fn a_closed_flow_is_entered_again_after_its_next_syn_only() {
    let new = FastState { digest: 1, ..FastState::default() };
    let state = |digest: u32, end: FastEnd| FastState { digest, end: end as u32, ..FastState::default() };
    assert_eq!(update(&state(1, FastEnd::None), &new, true), Update::Confirm);
    assert_eq!(update(&state(2, FastEnd::None), &new, true), Update::Insert);
    assert_eq!(update(&state(1, FastEnd::Closed), &new, true), Update::Keep);
    assert_eq!(update(&state(1, FastEnd::Replaced), &new, true), Update::Insert);
    assert_eq!(update(&state(1, FastEnd::Closed), &new, false), Update::Insert, "of another epoch");
}

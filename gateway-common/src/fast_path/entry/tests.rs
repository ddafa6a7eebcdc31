//! Pairing of packets, and the validity of entries.

use super::super::PENDING_LIFETIME;
use super::super::header::{V4, V6};

use super::*;
use crate::classify::TCP;
use crate::wire::Address;

fn pair<F: Family>(
    pending: &FastPending,
    leaving: &Leaving<F::Address>,
    links: (FastLink, FastLink),
    arrival: u8,
) -> Pair<F::Address> {
    let key = Key {
        source: leaving.source,
        destination: leaving.destination,
        source_port: 0,
        destination_port: 0,
        protocol: 0,
    };
    // What the place held before does not show.
    let action = FastAction { address: Address([1; 4]), ..FastAction::default() };
    let (reply_key, reply_action) = (key, action);
    let mut pair = Pair { key, action, port: 0, reply_key, reply_action, reply_port: 0 };
    set_pair::<F>(&mut pair, pending, leaving, links, arrival);
    pair
}

fn rewritten<F: Family>(key: &Key<F::Address>, port: u16, action: &FastAction) -> Key<F::Address> {
    let mut after = *key;
    set_rewritten::<F>(&mut after, key, port, action);
    after
}

fn turned<A: Copy>(key: &Key<A>) -> Key<A> {
    let mut turned = *key;
    turned.set_turned(key);
    turned
}

const LAN: FastLink = FastLink { mtu: 1500, ethernet: 1 };
const TUNNEL: FastLink = FastLink { mtu: 1420, ethernet: 0 };
const NOW: u64 = 1 << 40;
const VALID: Validity = Validity { epoch: 5, generation: 9, seed: 77, time: 1000 };

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
    let pair = pair::<V4>(&pending(), &leaving(), (LAN, TUNNEL), 16);
    let key = Key {
        source: v4(2),
        destination: v4(9),
        source_port: 1000,
        destination_port: 443,
        protocol: TCP.into(),
    };
    assert_eq!(pair.key, key);
    let after = rewritten::<V4>(&pair.key, pair.port, &pair.action);
    assert_eq!(after, Key { source: v4(1), source_port: 2000, ..key });
    assert_eq!((pair.action.ingress, pair.action.egress, pair.action.mtu), (3, 8, 1420));
    assert_eq!(
        pair.action.flags,
        fast_flags::FROM_ETHERNET | fast_flags::TRANSLATED,
        "a tunnel has no Ethernet header"
    );
    assert_eq!(turned(&after), pair.reply_key);
    let back = rewritten::<V4>(&pair.reply_key, pair.reply_port, &pair.reply_action);
    assert_eq!(turned(&back), pair.key);
    let action = pair.reply_action;
    assert_eq!((action.ingress, action.egress, action.mtu), (8, 3, 1500));
    assert_eq!((action.to, action.from), (pending().host, pending().gateway));
    assert_eq!(action.mark, Mark::arrived_by(16).0);
}

#[test]
fn an_entry_is_valid_with_its_key_its_action_and_its_epoch() {
    let Pair { key, action, port, .. } = pair::<V4>(&pending(), &leaving(), (LAN, TUNNEL), 16);
    let of = |key: &Key<u32>| V4::hash(key, VALID.seed);
    let state = FastState::new(TCP, port, 3, hash::digest(of(&key), port, 3, &action), &VALID);
    assert!(is_valid(&state, &action, of(&key), &VALID));
    for now in [
        Validity { epoch: 6, ..VALID },
        Validity { epoch: 5 + (1 << 16), ..VALID },
        Validity { generation: 10, ..VALID },
    ] {
        assert!(!is_valid(&state, &action, of(&key), &now), "{now:?}");
        // Nor is one whose action was made again since.
        let again = FastAction { epoch: now.epoch, generation: now.generation, ..action };
        assert!(!is_valid(&state, &again, of(&key), &now), "{now:?}");
    }
    assert!(!is_valid(&state, &action, V4::hash(&key, 78), &VALID), "another secret");
    let other = Key { source_port: 1, ..key };
    assert!(!is_valid(&state, &action, of(&other), &VALID), "a place that now belongs to another flow");
    let other = FastAction { egress: 9, ..action };
    assert!(!is_valid(&state, &other, of(&key), &VALID), "an action that was replaced");
    for torn in [FastState { port: 1, ..state }, FastState { action: 4, ..state }] {
        assert!(!is_valid(&torn, &action, of(&key), &VALID));
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
    let pair = pair::<V6>(&pending, &leaving, (LAN, LAN), 0);
    assert_eq!(rewritten::<V6>(&pair.key, pair.port, &pair.action), pair.key);
    assert_eq!(rewritten::<V6>(&pair.reply_key, pair.reply_port, &pair.reply_action), pair.reply_key);
    assert_eq!(turned(&pair.key), pair.reply_key);
    assert_eq!(pair.reply_action.mark, 0, "an interface without a leg");
    assert_eq!(pair.action.address, Address([0; 4]), "one action for all addresses of a host");
}

#[test]
fn ipv6_pairs_with_translation_change_the_address_of_the_host() {
    let (source, destination) = (Address([1, 2, 3, 4]), Address([5, 6, 7, 8]));
    let pending = FastPending { source, destination, ipv6: 1, identification: 0, ..pending() };
    let Leaving { head, content, mark, interface, to, from, .. } = leaving();
    let translated = Address([9, 9, 9, 9]);
    let leaving = Leaving { source: translated, destination, head, content, mark, interface, to, from };
    let pair = pair::<V6>(&pending, &leaving, (LAN, LAN), 0);
    let after = rewritten::<V6>(&pair.key, pair.port, &pair.action);
    assert_eq!((after.source, after.destination), (translated, destination));
    let back = rewritten::<V6>(&pair.reply_key, pair.reply_port, &pair.reply_action);
    assert_eq!((back.source, back.destination), (destination, source));
    assert_eq!(turned(&back), pair.key);
}

#[test]
fn a_place_is_free_after_the_epoch_or_the_longest_life() {
    let state = FastState::new(TCP, 1, 2, 3, &VALID);
    let at = |time: u32| Validity { time, ..VALID };
    assert!(!is_free(&state, &at(1000)));
    assert!(!is_free(&state, &at(999)), "confirmed since by another processor");
    assert!(!is_free(&state, &at(1000 + REPLY_LIFETIME - 1)));
    assert!(is_free(&state, &at(1000 + REPLY_LIFETIME)));
    assert!(is_free(&state, &Validity { epoch: 6, ..VALID }));
    assert!(is_free(&FastState::default(), &VALID), "an empty place");
}

#[test]
fn an_entry_is_of_one_host_and_one_direction() {
    let pair = pair::<V4>(&pending(), &leaving(), (LAN, TUNNEL), 16);
    let (host, other) = (pending().host, Mac::new([2, 0, 0, 0, 0, 3]));
    let action = pair.action;
    assert!(is_from_same_host(&action, 3, &host, false));
    assert!(!is_from_same_host(&action, 3, &other, false), "another host with its address");
    assert!(!is_from_same_host(&action, 4, &host, false), "another interface");
    assert!(!is_from_same_host(&action, 3, &host, true), "from an uplink");
    assert!(is_from_same_host(&pair.reply_action, 8, &other, true), "the next hop may have several");
    assert!(!is_from_same_host(&pair.reply_action, 3, &other, true), "another interface");
}

#[test]
fn a_closed_flow_is_entered_again_after_its_next_syn_only() {
    let state = |digest: u32, end: FastEnd| FastState { digest, end: end as u8, ..FastState::default() };
    assert_eq!(update(&state(1, FastEnd::None), 1, true), Update::Confirm);
    assert_eq!(update(&state(2, FastEnd::None), 1, true), Update::Insert);
    assert_eq!(update(&state(1, FastEnd::Closed), 1, true), Update::Keep);
    assert_eq!(update(&state(1, FastEnd::Replaced), 1, true), Update::Insert);
    assert_eq!(update(&state(1, FastEnd::Closed), 1, false), Update::Insert, "of another epoch");
}

//! Tests of the client, with answers of a server.

use proptest::prelude::*;

use super::*;
use crate::dhcp6::{Options, duid};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn net(text: &str) -> Ipv6Net {
    text.parse().unwrap()
}

fn client() -> PrefixDelegation {
    PrefixDelegation::new(duid(CLIENT), None, at(0))
}

fn send(client: &mut PrefixDelegation, now: Duration) -> Option<Message> {
    client.poll_transmit(|| 0.5, now).map(|bytes| Message::parse(&bytes).unwrap())
}

/// Returns the identity association of a server: times, status, and prefixes with their lifetimes.
fn association(times: [u32; 2], status: u16, prefixes: &[(&str, u32, u32)]) -> Vec<u8> {
    let mut content = Vec::from(ASSOCIATION.to_be_bytes());
    content.extend(times.iter().flat_map(|time| time.to_be_bytes()));
    let mut inner = Options::default();
    if status != status::SUCCESS {
        inner.push(option::STATUS, status.to_be_bytes());
    }
    for (text, preferred, valid) in prefixes {
        let net = net(text);
        let mut bytes = [preferred.to_be_bytes(), valid.to_be_bytes()].concat();
        bytes.push(net.prefix_len());
        bytes.extend(net.addr().octets());
        inner.push(option::PREFIX, bytes);
    }
    inner.write(&mut content);
    content
}

fn answer_from(server: [u8; 6], to: &Message, kind: Kind, association: Vec<u8>) -> Message {
    let mut reply = Message::new(kind, to.transaction);
    reply.options.push(option::CLIENT_ID, to.options.duid(option::CLIENT_ID).unwrap());
    reply.options.push(option::SERVER_ID, duid(server));
    reply.options.push(option::PREFIXES, association);
    reply
}

fn answer(to: &Message, kind: Kind, prefixes: &[(&str, u32, u32)]) -> Vec<u8> {
    answer_from(SERVER, to, kind, association([0, 0], status::SUCCESS, prefixes)).bytes()
}

const PREFIX: &[(&str, u32, u32)] = &[("2001:db8:100::/56", 1000, 2000)];

/// Returns a client with a lease since second 2.
fn bound() -> PrefixDelegation {
    let mut client = client();
    let solicit = send(&mut client, at(0)).unwrap();
    assert_eq!(solicit.kind, Kind::Solicit);
    assert!(!client.handle_datagram(&answer(&solicit, Kind::Advertise, PREFIX), at(0)));
    let next = client.poll_timeout();
    let request = send(&mut client, next).unwrap();
    assert_eq!(request.kind, Kind::Request);
    assert_eq!(request.options.duid(option::SERVER_ID), Some(&duid(SERVER)[..]));
    assert!(client.handle_datagram(&answer(&request, Kind::Reply, PREFIX), at(2)));
    client
}

#[test]
fn a_prefix_is_solicited_requested_and_renewed() {
    let mut client = bound();
    let lease = client.lease().unwrap().clone();
    assert_eq!((lease.net, lease.valid_until), (net("2001:db8:100::/56"), at(2002)));
    assert_eq!(client.poll_timeout(), at(502), "half of the preferred lifetime");
    assert_eq!(send(&mut client, at(501)), None);
    let renew = send(&mut client, at(502)).unwrap();
    assert_eq!(renew.kind, Kind::Renew);
    assert!(client.handle_datagram(&answer(&renew, Kind::Reply, PREFIX), at(503)));
    assert_eq!(client.lease().unwrap().valid_until, at(2503));
    assert_eq!(client.phase(), Phase::Bound);
}

#[test]
fn a_silent_server_is_replaced_and_the_prefix_ends_with_its_lifetime() {
    let mut client = bound();
    let mut kinds = Vec::new();
    let mut now = at(2);
    while client.lease().is_some() {
        now = client.poll_timeout();
        if let Some(message) = send(&mut client, now)
            && kinds.last() != Some(&message.kind)
        {
            kinds.push(message.kind);
        }
    }
    assert_eq!((kinds, now), (vec![Kind::Renew, Kind::Rebind, Kind::Solicit], at(2002)));
}

#[test]
fn the_best_offer_of_the_first_interval_is_taken() {
    let mut client = client();
    let solicit = send(&mut client, at(0)).unwrap();
    for (last, preference) in [(7, 10), (8, 20), (9, 15)] {
        let offered = association([0, 0], status::SUCCESS, PREFIX);
        let mut offer = answer_from([2, 0, 0, 0, 0, last], &solicit, Kind::Advertise, offered);
        offer.options.push(option::PREFERENCE, [preference]);
        client.handle_datagram(&offer.bytes(), at(0));
    }
    assert_eq!(send(&mut client, at(0)), None, "it waits for others");
    let next = client.poll_timeout();
    let request = send(&mut client, next).unwrap();
    assert_eq!(request.options.duid(option::SERVER_ID), Some(&duid([2, 0, 0, 0, 0, 8])[..]));
}

#[test]
fn offers_without_a_prefix_are_none() {
    let mut client = client();
    let solicit = send(&mut client, at(0)).unwrap();
    for prefixes in [&[][..], &[("2001:db8::/56", 0, 0)], &[("fe80::/64", 9, 9)], &[("2000::/3", 9, 9)]] {
        client.handle_datagram(&answer(&solicit, Kind::Advertise, prefixes), at(0));
    }
    let none = answer_from(SERVER, &solicit, Kind::Advertise, association([0, 0], status::NO_PREFIX, PREFIX));
    client.handle_datagram(&none.bytes(), at(0));
    let next = client.poll_timeout();
    assert_eq!(send(&mut client, next).unwrap().kind, Kind::Solicit);
}

#[test]
fn a_restart_or_a_new_link_verifies_the_prefix() {
    let stored = Lease::stored(net("2001:db8:100::/56"), duid(SERVER), at(1000), at(2000));
    let mut client = PrefixDelegation::new(duid(CLIENT), Some(stored.clone()), at(0));
    assert!(client.lease().is_some(), "it counts meanwhile");
    let rebind = send(&mut client, at(0)).unwrap();
    assert_eq!(rebind.kind, Kind::Rebind);
    assert_eq!(rebind.options.prefixes(ASSOCIATION).unwrap().prefixes[0].net, stored.net);
    let other = &[("2001:db8:200::/56", 1000, 2000)];
    assert!(client.handle_datagram(&answer(&rebind, Kind::Reply, other), at(1)));
    assert_eq!(client.lease().unwrap().net, net("2001:db8:200::/56"));

    client.handle_link_up(at(100));
    let rebind = send(&mut client, at(100)).unwrap();
    let unknown = answer_from(SERVER, &rebind, Kind::Reply, association([0, 0], status::NO_BINDING, &[]));
    assert!(client.handle_datagram(&unknown.bytes(), at(100)));
    assert_eq!((client.lease(), client.phase()), (None, Phase::Soliciting));

    let mut silent = PrefixDelegation::new(duid(CLIENT), Some(stored.clone()), at(0));
    while silent.lease().is_some() {
        let now = silent.poll_timeout();
        assert!(now <= at(10));
        send(&mut silent, now);
    }
    let ended = PrefixDelegation::new(duid(CLIENT), Some(stored), at(2000));
    assert_eq!((ended.lease(), ended.phase()), (None, Phase::Soliciting));
}

#[test]
fn a_prefix_with_a_lifetime_of_zero_is_gone() {
    let mut client = bound();
    let renew = send(&mut client, at(502)).unwrap();
    let ended = &[("2001:db8:100::/56", 0, 0)];
    assert!(client.handle_datagram(&answer(&renew, Kind::Reply, ended), at(503)));
    assert_eq!(client.lease(), None);
}

#[test]
fn datagrams_of_others_change_nothing() {
    let mut client = bound();
    let renew = send(&mut client, at(502)).unwrap();
    let reply = answer(&renew, Kind::Reply, &[("2001:db8:666::/56", 1000, 2000)]);
    let mut other_transaction = reply.clone();
    other_transaction[3] ^= 1;
    let mut other_client = answer(&renew, Kind::Reply, PREFIX);
    other_client[12] ^= 1;
    let advertise = answer(&renew, Kind::Advertise, PREFIX);
    for datagram in [&other_transaction, &other_client, &advertise, &reply[..reply.len() - 1].to_vec()] {
        assert!(!client.handle_datagram(datagram, at(503)));
    }
    assert!(client.handle_datagram(&reply, at(503)));
    assert!(!client.handle_datagram(&reply, at(504)), "again");
}

#[test]
fn a_release_names_the_prefix_and_its_server() {
    let mut client = bound();
    let release = Message::parse(&client.release(0.5, at(9)).unwrap()).unwrap();
    assert_eq!(release.kind, Kind::Release);
    assert_eq!(release.options.duid(option::SERVER_ID), Some(&duid(SERVER)[..]));
    assert_eq!(release.options.prefixes(ASSOCIATION).unwrap().prefixes[0].net, net("2001:db8:100::/56"));
    assert_eq!(client.release(0.5, at(9)), None);
    assert_eq!(client.lease(), None);
}

proptest! {
    /// Whatever servers answer: no lease outlives its lifetime, no prefix is unfit for hosts, and the client never sends
    /// without a pause.
    #[test]
    fn servers_cannot_break_the_client(
        steps in prop::collection::vec(
            (0..900u64, 0..5u8, any::<[u32; 2]>(), 0..8u16, (0..70u8, 0..3000u32, 0..4000u32), 0.0..1.0f64),
            1..80,
        ),
    ) {
        let mut client = client();
        let mut now = at(0);
        let mut last = None;
        for (pause, event, times, status, (length, preferred, valid), random) in steps {
            now = match event {
                0 => client.poll_timeout().max(now),
                _ => now + at(pause),
            };
            let mut messages = 0;
            while client.poll_timeout() <= now {
                if let Some(sent) = client.poll_transmit(|| random, now) {
                    last = Message::parse(&sent);
                    prop_assert!(last.is_some());
                }
                messages += 1;
                prop_assert!(messages < 3, "{:?}", client);
            }
            if let Some(lease) = client.lease() {
                prop_assert!(lease.valid_until > now);
            }
            if let Some(sent) = &last && event > 1 {
                let text = format!("2001:db8:{:x}::/{length}", random.to_bits() as u16);
                let content = association(times, status, &[(&text, preferred, valid)]);
                let kind = if event == 2 { Kind::Advertise } else { Kind::Reply };
                client.handle_datagram(&answer_from(SERVER, sent, kind, content).bytes(), now);
            }
            if event == 1 {
                client.handle_link_up(now);
            }
            if let Some(lease) = client.lease() {
                prop_assert!(LENGTHS.contains(&lease.net.prefix_len()) && lease.valid_until > now);
            }
        }
    }

    #[test]
    fn any_datagram_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut client = client();
        let _ = send(&mut client, at(0));
        prop_assert!(!client.handle_datagram(&bytes, at(0)));
    }
}

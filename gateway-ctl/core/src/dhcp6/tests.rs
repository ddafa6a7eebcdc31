//! Tests of the messages and of the stateless server.

use proptest::prelude::*;

use super::stateless::{StatelessSettings, answer};
use super::*;
use crate::domain_search;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn settings() -> StatelessSettings {
    StatelessSettings {
        resolvers: vec!["fd00::1".parse().unwrap()],
        domains: vec!["lan".to_owned()],
        refresh: 1800,
    }
}

fn information_request(more: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = Message::new(Kind::InformationRequest, 0x00ab_cdef);
    message.options.push(option::CLIENT_ID, duid([2, 0, 0, 0, 0, 9]));
    message.options.push(option::REQUESTED, [0, 23, 0, 24]);
    for (code, content) in more {
        message.options.push(*code, *content);
    }
    message.bytes()
}

#[test]
fn an_information_request_gets_resolvers_and_domains() {
    let reply = answer(&information_request(&[]), &duid(MAC), &settings()).unwrap();
    let Message { kind, transaction, options } = Message::parse(&reply).unwrap();
    assert_eq!((kind, transaction), (Kind::Reply, 0x00ab_cdef));
    assert_eq!(options.duid(option::CLIENT_ID), Some(&duid([2, 0, 0, 0, 0, 9])[..]));
    assert_eq!(options.duid(option::SERVER_ID), Some(&duid(MAC)[..]));
    let resolver: Ipv6Addr = "fd00::1".parse().unwrap();
    assert_eq!(options.one(option::RESOLVERS), Some(&resolver.octets()[..]));
    assert_eq!(domain_search::parse(options.one(option::DOMAINS).unwrap()), Some(vec!["lan".to_owned()]));
    assert_eq!(options.number(option::REFRESH), Some(1800));
}

#[test]
fn requests_for_addresses_and_for_other_servers_get_no_answer() {
    let other = duid([9; 6]);
    let own = duid(MAC);
    let answered = |more: &[(u16, &[u8])]| answer(&information_request(more), &own, &settings()).is_some();
    assert!(answered(&[(option::SERVER_ID, &own)]));
    assert!(!answered(&[(option::SERVER_ID, &other)]));
    assert!(!answered(&[(option::ADDRESSES, &[0; 12])]));
    assert!(!answered(&[(option::CLIENT_ID, &other)]), "two identifiers");
    let mut solicit = information_request(&[]);
    solicit[0] = 1;
    assert_eq!(answer(&solicit, &own, &settings()), None);
}

#[test]
fn prefixes_with_contradictions_are_none() {
    let association = |renew: u32, rebind: u32, preferred: u32, valid: u32, length: u8| {
        let mut content = Vec::from(7u32.to_be_bytes());
        content.extend(renew.to_be_bytes());
        content.extend(rebind.to_be_bytes());
        let mut prefix = Vec::from(preferred.to_be_bytes());
        prefix.extend(valid.to_be_bytes());
        prefix.push(length);
        prefix.extend("2001:db8:1::".parse::<Ipv6Addr>().unwrap().octets());
        let mut inner = Options::default();
        inner.push(option::PREFIX, prefix);
        inner.write(&mut content);
        let mut options = Options::default();
        options.push(option::PREFIXES, content);
        options.prefixes(7)
    };
    assert_eq!(association(1, 2, 3, 4, 56).unwrap().prefixes.len(), 1);
    assert_eq!(association(3, 2, 3, 4, 56), None, "renewed after it is rebound");
    assert_eq!(association(1, 2, 4, 3, 56).unwrap().prefixes, [], "preferred for longer than valid");
    assert_eq!(association(1, 2, 3, 4, 129).unwrap().prefixes, [], "no prefix length");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(message) = Message::parse(&bytes) {
            prop_assert_eq!(message.bytes(), bytes.clone());
            let _ = message.options.prefixes(7);
            let _ = (message.options.status(), message.options.requests(23), message.options.number(82));
        }
        let _ = answer(&bytes, &duid(MAC), &settings());
    }

    #[test]
    fn damaged_options_are_read_without_a_panic(content in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut options = Options::default();
        options.push(option::PREFIXES, [&7u32.to_be_bytes()[..], &content].concat());
        if let Some(association) = options.prefixes(7) {
            prop_assert!(association.prefixes.iter().all(|prefix| prefix.preferred <= prefix.valid));
        }
    }
}

//! Tests of router advertisements.

use proptest::prelude::*;

use super::*;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

fn packet(options: &[u8]) -> Vec<u8> {
    let mut message = vec![TYPE, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(options);
    packet::seal(ROUTER, ALL_NODES, message)
}

fn prefix_option(net: &str) -> Vec<u8> {
    let net: Ipv6Net = net.parse().unwrap();
    let head = [option::PREFIX, 4, net.prefix_len(), 0xc0];
    [&head[..], &[0, 0, 1, 0], &[0, 0, 0, 9], &[0; 4], &net.addr().octets()].concat()
}

fn prefix(net: &str) -> PrefixInformation {
    let net = net.parse().unwrap();
    PrefixInformation { net, on_link: true, autonomous: true, valid: 256, preferred: 9 }
}

#[test]
fn an_advertisement_shows_router_lifetime_and_prefixes() {
    let mtu = [5, 1, 0, 0, 0, 0, 5, 220];
    let options = [&mtu[..], &prefix_option("2001:db8:9::/64"), &prefix_option("fd00::/48")].concat();
    let expected = RouterAdvertisement {
        lifetime: 0x0708,
        mtu: Some(1500),
        prefixes: vec![prefix("2001:db8:9::/64"), prefix("fd00::/48")],
        ..RouterAdvertisement::of(ROUTER)
    };
    assert_eq!(parse(&packet(&options)), Some(expected));
}

#[test]
fn packets_that_hosts_ignore_are_ignored() {
    let valid = packet(&prefix_option("2001:db8:9::/64"));
    assert!(parse(&valid).is_some());
    // Version, next header, hop limit, source, type, code, checksum.
    for at in [0, 6, 7, 8, 40, 41, 42] {
        let mut other = valid.clone();
        other[at] ^= 0x10;
        assert_eq!(parse(&other), None, "byte {at}");
    }
    assert_eq!(parse(&valid[..valid.len() - 1]), None, "cut off");
    assert_eq!(parse(&packet(&[option::PREFIX, 0, 0, 0, 0, 0, 0, 0])), None, "an option without a length");
    assert_eq!(parse(&packet(&[option::PREFIX, 4, 0, 0])), None, "an option beyond the end");
}

#[test]
fn a_withdrawal_ends_the_router_and_its_prefixes() {
    let nets: Vec<Ipv6Net> = vec!["2001:db8:9::/64".parse().unwrap(), "2001:db8:a::/64".parse().unwrap()];
    let heard = parse(&withdrawal(ROUTER, &nets)).unwrap();
    assert_eq!((heard.source, heard.lifetime, heard.nets().collect::<Vec<_>>()), (ROUTER, 0, nets));
    assert!(heard.prefixes.iter().all(|prefix| prefix.valid == 0 && prefix.preferred == 0));
}

#[test]
fn the_largest_advertisement_fits_in_the_smallest_mtu() {
    let resolvers = |lifetime| Resolvers { lifetime, addresses: vec![Ipv6Addr::LOCALHOST; 9] };
    let all = RouterAdvertisement {
        mac: Some([2; 6]),
        mtu: Some(1280),
        prefixes: vec![prefix("2001:db8:9::/64"); 99],
        resolvers: vec![resolvers(1), resolvers(2)],
        domains: vec![(9, vec!["a".repeat(60) + &".b".repeat(96); 9]); 9],
        ..RouterAdvertisement::of(ROUTER)
    };
    let packet = all.packet();
    assert!(packet.len() <= 1280, "{}", packet.len());
    let heard = parse(&packet).unwrap();
    assert_eq!((heard.prefixes.len(), heard.domains.len()), (MAX_PREFIXES, MAX_DOMAINS));
    assert_eq!(heard.resolvers.iter().map(|group| group.addresses.len()).sum::<usize>(), MAX_RESOLVERS);
}

fn net() -> impl Strategy<Value = Ipv6Net> {
    (any::<u128>(), 0..=128u8).prop_map(|(bits, length)| Ipv6Net::new(bits.into(), length).unwrap().trunc())
}

prop_compose! {
    fn information()(net in net(), on_link: bool, autonomous: bool, valid: u32, preferred: u32) -> PrefixInformation {
        PrefixInformation { net, on_link, autonomous, valid, preferred }
    }
}

prop_compose! {
    fn advertisement()(
        lifetime: u16,
        other_configuration: bool,
        mac in any::<Option<[u8; 6]>>(),
        mtu in any::<Option<u32>>(),
        prefixes in prop::collection::vec(information(), 0..MAX_PREFIXES),
        resolvers in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u128>(), 1..5)), 0..3),
        domain in prop::option::of((any::<u32>(), "[a-z]{1,20}(\\.[a-z]{1,20}){0,2}")),
    ) -> RouterAdvertisement {
        let group = |(lifetime, addresses): (u32, Vec<u128>)| {
            Resolvers { lifetime, addresses: addresses.into_iter().map(Ipv6Addr::from).collect() }
        };
        RouterAdvertisement {
            source: ROUTER,
            lifetime,
            other_configuration,
            mac,
            mtu,
            prefixes,
            resolvers: resolvers.into_iter().map(group).collect(),
            domains: domain.into_iter().map(|(lifetime, domain)| (lifetime, vec![domain])).collect(),
        }
    }
}

proptest! {
    #[test]
    fn any_options_are_read_without_a_panic(options in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&packet(&options));
        let _ = parse(&options);
    }

    #[test]
    fn an_advertisement_that_is_sent_is_read_as_it_was_meant(sent in advertisement()) {
        prop_assert_eq!(parse(&sent.packet()), Some(sent));
    }
}

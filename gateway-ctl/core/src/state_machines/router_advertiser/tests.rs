//! Tests of the announcer.

use proptest::prelude::*;

use super::*;

const LIFETIME: Duration = Duration::from_secs(1800);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn net(text: &str) -> Ipv6Net {
    text.parse().unwrap()
}

fn prefix() -> LinkPrefix {
    LinkPrefix { is_preferred: true, preferred_until: None, valid_until: None }
}

fn content(prefixes: &[(&str, LinkPrefix)]) -> LinkContent {
    LinkContent {
        source: "fe80::1".parse().unwrap(),
        mac: Some([2; 6]),
        is_router: true,
        other_configuration: true,
        mtu: None,
        prefixes: prefixes.iter().map(|(text, prefix)| (net(text), *prefix)).collect(),
        resolvers: vec!["fd00::1".parse().unwrap()],
        domains: vec!["lan".to_owned()],
        lifetime: LIFETIME,
    }
}

/// Lifetimes of the prefixes: valid, preferred.
fn lifetimes(heard: &RouterAdvertisement) -> BTreeMap<Ipv6Net, (u32, u32)> {
    heard.prefixes.iter().map(|prefix| (prefix.net, (prefix.valid, prefix.preferred))).collect()
}

#[test]
fn three_announcements_follow_a_change_and_then_regular_ones() {
    let mut advertiser = RouterAdvertiser::default();
    assert_eq!(advertiser.poll_timeout(), None, "no router");
    advertiser.handle_content(Some(content(&[("fd00::/64", prefix())])), at(0));
    let mut times = Vec::new();
    for _ in 0..5 {
        let now = advertiser.poll_timeout().unwrap();
        let heard = advertiser.poll_transmit(1.0, now).unwrap();
        assert_eq!((heard.lifetime, heard.domains[0].0), (1800, 1800));
        assert_eq!(lifetimes(&heard), [(net("fd00::/64"), (3600, 1800))].into());
        times.push(now.as_secs());
    }
    assert_eq!(times, [0, 16, 32, 632, 1232]);
    advertiser.handle_content(Some(content(&[("fd00::/64", prefix())])), at(1300));
    assert_eq!(advertiser.poll_timeout(), Some(at(1832)), "no change");
}

#[test]
fn solicitations_are_answered_soon_but_not_each() {
    let mut advertiser = RouterAdvertiser::default();
    advertiser.handle_solicitation(1.0, at(0));
    assert_eq!(advertiser.poll_timeout(), None, "no router");
    advertiser.handle_content(Some(content(&[])), at(0));
    for _ in 0..3 {
        advertiser.poll_transmit(1.0, advertiser.poll_timeout().unwrap()).unwrap();
    }
    advertiser.handle_solicitation(1.0, at(100));
    advertiser.handle_solicitation(0.0, at(100));
    assert_eq!(advertiser.poll_timeout(), Some(at(100)));
    assert!(advertiser.poll_transmit(1.0, at(100)).is_some());
    advertiser.handle_solicitation(0.0, at(101));
    assert_eq!(advertiser.poll_transmit(1.0, at(101)), None);
    assert_eq!(advertiser.poll_timeout(), Some(at(103)), "three seconds after the last");
}

#[test]
fn a_prefix_of_an_uplink_that_is_gone_is_deprecated_at_once() {
    let ends = LinkPrefix { preferred_until: Some(at(1000)), valid_until: Some(at(9000)), ..prefix() };
    let mut advertiser = RouterAdvertiser::default();
    advertiser.handle_content(Some(content(&[("2001:db8::/64", ends)])), at(0));
    let heard = advertiser.poll_transmit(1.0, at(0)).unwrap();
    assert_eq!(lifetimes(&heard), [(net("2001:db8::/64"), (3600, 1000))].into());
    let gone = LinkPrefix { is_preferred: false, ..ends };
    advertiser.handle_content(Some(content(&[("2001:db8::/64", gone)])), at(10));
    let heard = advertiser.poll_transmit(1.0, at(10)).unwrap();
    assert_eq!(lifetimes(&heard), [(net("2001:db8::/64"), (3600, 0))].into());
}

#[test]
fn a_former_prefix_is_taken_back_while_hosts_may_use_it() {
    let mut advertiser = RouterAdvertiser::default();
    advertiser.handle_content(Some(content(&[("2001:db8:1::/64", prefix())])), at(0));
    advertiser.poll_transmit(1.0, at(0)).unwrap();
    advertiser.handle_content(Some(content(&[("2001:db8:2::/64", prefix())])), at(10));
    let heard = advertiser.poll_transmit(1.0, at(10)).unwrap();
    let expected = [(net("2001:db8:1::/64"), (0, 0)), (net("2001:db8:2::/64"), (3600, 1800))];
    assert_eq!(lifetimes(&heard), expected.into());
    let mut now = at(10);
    while now < at(3600) {
        assert!(advertiser.announced(now).any(|(known, _)| known == net("2001:db8:1::/64")), "{now:?}");
        now = advertiser.poll_timeout().unwrap();
        let heard = advertiser.poll_transmit(1.0, now).unwrap();
        assert_eq!(lifetimes(&heard).len() == 2, now < at(3600), "{now:?}");
    }
}

#[test]
fn prefixes_from_before_a_restart_are_taken_back_unless_they_came_again() {
    let earlier = [(net("2001:db8:1::/64"), at(500)), (net("2001:db8:2::/64"), at(90_000))];
    let mut advertiser = RouterAdvertiser::new(earlier, at(0));
    advertiser.handle_content(Some(content(&[("2001:db8:1::/64", prefix())])), at(0));
    let heard = advertiser.poll_transmit(1.0, at(0)).unwrap();
    let expected = [(net("2001:db8:1::/64"), (3600, 1800)), (net("2001:db8:2::/64"), (0, 0))];
    assert_eq!(lifetimes(&heard), expected.into());
    let left = advertiser.announced(at(0)).find(|(known, _)| *known == net("2001:db8:2::/64")).unwrap().1;
    assert_eq!(left, MAX_STALE, "hosts keep it for no longer (RFC 4862)");
}

#[test]
fn a_former_resolver_is_taken_back() {
    let mut advertiser = RouterAdvertiser::default();
    advertiser.handle_content(Some(content(&[])), at(0));
    advertiser.poll_transmit(1.0, at(0)).unwrap();
    let other: Ipv6Addr = "fd00::2".parse().unwrap();
    advertiser.handle_content(Some(LinkContent { resolvers: vec![other], ..content(&[]) }), at(10));
    let heard = advertiser.poll_transmit(1.0, at(10)).unwrap();
    let group = |lifetime, address| Resolvers { lifetime, addresses: vec![address] };
    assert_eq!(heard.resolvers, [group(1800, other), group(0, "fd00::1".parse().unwrap())]);
}

#[test]
fn a_link_without_a_router_hears_of_it_and_then_nothing() {
    let mut advertiser = RouterAdvertiser::default();
    advertiser.handle_content(Some(content(&[("fd00::/64", prefix())])), at(0));
    advertiser.poll_transmit(1.0, at(0)).unwrap();
    let last = advertiser.withdraw(at(1)).unwrap();
    assert_eq!((last.lifetime, lifetimes(&last)), (0, [(net("fd00::/64"), (3600, 1800))].into()));
    advertiser.handle_content(None, at(10));
    assert_eq!(advertiser.withdraw(at(10)), None);
    let heard = advertiser.poll_transmit(1.0, at(10)).unwrap();
    assert_eq!((heard.lifetime, lifetimes(&heard)), (0, [(net("fd00::/64"), (0, 0))].into()));
    assert!(!heard.other_configuration);
    let mut last = at(10);
    while let Some(now) = advertiser.poll_timeout() {
        last = now;
        advertiser.poll_transmit(1.0, now).unwrap();
        assert!(now < at(10_000), "it does not end");
    }
    assert!(last >= at(3600), "{last:?}");
}

proptest! {
    /// Whatever happens, announcements to all hosts are three seconds apart, no lifetime is longer than allowed, and a
    /// prefix that hosts may use is in every announcement.
    #[test]
    fn announcements_are_rare_and_forget_no_prefix(
        steps in prop::collection::vec((0..400u64, 0..4u8, prop::collection::btree_set(0..5u16, 0..3), 0.0..1.0f64), 1..60),
    ) {
        let mut advertiser = RouterAdvertiser::default();
        let mut now = at(0);
        let mut last = None;
        let mut used = BTreeMap::<Ipv6Net, Duration>::new();
        for (pause, event, subnets, random) in steps {
            now += Duration::from_millis(pause * 100);
            match event {
                0 => {
                    let prefixes = subnets.iter().map(|subnet| {
                        (Ipv6Net::new(Ipv6Addr::new(0x2001, 0xdb8, *subnet, 0, 0, 0, 0, 0), 64).unwrap(), prefix())
                    });
                    let content = LinkContent { prefixes: prefixes.collect(), ..content(&[]) };
                    advertiser.handle_content(Some(content), now);
                }
                1 => advertiser.handle_content(None, now),
                _ => advertiser.handle_solicitation(random, now),
            }
            if let Some(heard) = advertiser.poll_transmit(random, now) {
                prop_assert!(last.is_none_or(|last| now >= last + MIN_DELAY));
                last = Some(now);
                let shown = lifetimes(&heard);
                for (net, end) in &used {
                    prop_assert!(*end <= now || shown.contains_key(net), "{} at {:?}", net, now);
                }
                for (net, (valid, preferred)) in shown {
                    prop_assert!(valid <= 3600 && preferred <= valid.min(1800));
                    if valid > 0 {
                        used.insert(net, now + seconds(valid));
                    }
                }
            }
            prop_assert!(advertiser.poll_timeout().is_none_or(|next| next <= now + MAX_INTERVAL));
        }
    }
}

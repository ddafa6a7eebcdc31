//! Observations of hosts, and floods of forged ones.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use gateway_model::MacAddr;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

const LAN: &str = "lan0";
/// Maximum number of hosts at an interface.
const CAPACITY: u32 = 4096;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time")
}

fn mac(number: u32) -> MacAddr {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

fn address(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number))
}

fn neighbour(number: u32, seconds: i64, is_confirmed: bool) -> Observation<'static> {
    let evidence = Evidence::Neighbour { address: address(number), is_confirmed };
    Observation { interface: LAN, mac: mac(number), vlan: None, at: at(seconds), evidence }
}

fn observed(observations: impl IntoIterator<Item = Observation<'static>>) -> Hosts {
    let mut hosts = Hosts::default();
    observations.into_iter().for_each(|one| {
        hosts.observe(one, &BTreeSet::new());
    });
    hosts
}

fn host(hosts: &Hosts, number: u32) -> &Host {
    hosts.get(LAN, mac(number)).expect("a host")
}

#[test]
fn a_host_collects_what_is_observed_of_it() {
    let lease = Evidence::Lease {
        address: address(7),
        hostname: Some("laptop".into()),
        vendor_class: Some("android-dhcp-14".into()),
    };
    let name = |name: &str| Evidence::Name { name: name.into(), from: NameSource::Mdns };
    let of = |seconds, evidence| Observation { evidence, ..neighbour(7, seconds, false) };
    let hosts = observed([
        neighbour(7, 10, false),
        of(20, lease),
        of(30, name("Annas-Laptop")),
        of(31, name("\u{202e}\u{7}")),
        neighbour(7, 40, true),
        of(35, Evidence::Traffic { address: address(8) }),
    ]);
    let host = host(&hosts, 7);
    assert_eq!((host.first_seen, host.last_seen, host.confirmed_at), (at(10), at(40), Some(at(40))));
    assert_eq!(host.ips().collect::<Vec<_>>(), [address(8), address(7)]);
    assert_eq!((host.best_name(), host.vendor_class.as_deref()), (Some("laptop"), Some("android-dhcp-14")));
    let names: Vec<&str> = host.names.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(names, ["laptop", "Annas-Laptop"], "a name of control characters is none");
}

#[test]
fn a_new_neighbour_entry_with_an_age_makes_a_host_no_older() {
    let hosts = observed([neighbour(1, 100, true), neighbour(1, 40, false)]);
    assert_eq!((host(&hosts, 1).first_seen, host(&hosts, 1).last_seen), (at(100), at(100)));
}

#[test]
fn a_host_is_online_for_minutes_and_present_for_a_day_if_it_answered() {
    let hosts = observed([neighbour(1, 0, true), neighbour(2, 0, false)]);
    let (answered, silent) = (host(&hosts, 1), host(&hosts, 2));
    assert!(answered.is_online(at(240)) && !answered.is_online(at(241)));
    assert!(answered.is_present(at(86_400)) && !answered.is_present(at(86_401)));
    assert!(!silent.is_present(at(0)), "it may be forged");
}

#[test]
fn ids_depend_on_mac_address_and_interface() {
    let hosts = observed([neighbour(1, 0, true), neighbour(2, 0, true)]);
    let elsewhere = Observation { interface: "lan1", ..neighbour(1, 0, true) };
    let other = observed([elsewhere]);
    let ids: BTreeSet<_> = hosts.iter().chain(other.iter()).map(Host::id).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(hosts.find(host(&hosts, 2).id()), Some(host(&hosts, 2)));
    assert_eq!(host(&observed([neighbour(1, 99, false)]), 1).id(), host(&hosts, 1).id());
}

#[test]
fn a_flood_of_forged_addresses_removes_no_host_that_answers() {
    let real = (0..50).map(|number| neighbour(number, 0, true));
    let forged = (1000..1000 + 3 * CAPACITY).map(|number| neighbour(number, 1, false));
    let mut hosts = observed(real.chain(forged));
    assert_eq!(hosts.len(), CAPACITY as usize);
    assert!((0..50).all(|number| hosts.get(LAN, mac(number)).is_some()));
    assert_eq!(hosts.refused(), u64::from(3 * CAPACITY - (CAPACITY - 50)));
    // A host that answers is kept in the middle of the flood.
    hosts.observe(neighbour(77, 2, true), &BTreeSet::new());
    hosts.observe(neighbour(999_999, 3, false), &BTreeSet::new());
    assert!(host(&hosts, 77).is_confirmed());
}

#[test]
fn a_full_table_of_answering_hosts_gives_way_only_where_one_was_silent_for_a_day() {
    let all = (0..CAPACITY).map(|number| neighbour(number, i64::from(number), true));
    let mut hosts = observed(all);
    let day = 86_400;
    hosts.observe(neighbour(70_000, day, true), &BTreeSet::new());
    assert!(hosts.get(LAN, mac(70_000)).is_none(), "all were seen within a day");
    hosts.observe(neighbour(70_000, day + 5, false), &BTreeSet::new());
    assert!(hosts.get(LAN, mac(70_000)).is_none(), "it never answered");
    // The hosts of devices stay: the next one gives way.
    let devices = BTreeSet::from([mac(0)]);
    hosts.observe(neighbour(70_000, day + 5, true), &devices);
    assert!(hosts.get(LAN, mac(70_000)).is_some() && hosts.get(LAN, mac(0)).is_some());
    assert!(hosts.get(LAN, mac(1)).is_none());
}

#[test]
fn hosts_are_forgotten_by_time_and_with_their_interface() {
    let mut hosts = observed([neighbour(1, 0, true), neighbour(2, 0, false), neighbour(3, 0, true)]);
    let (lans, devices) = ([LAN.to_owned()], BTreeSet::from([mac(3)]));
    let retention = Retention { interfaces: &lans, devices: &devices };
    hosts.expire(at(3601), retention);
    assert!(hosts.get(LAN, mac(2)).is_none(), "it never answered");
    hosts.expire(at(0) + SignedDuration::from_hours(31 * 24), retention);
    let left: Vec<MacAddr> = hosts.iter().map(|host| host.mac).collect();
    assert_eq!(left, [mac(3)], "the host of a device stays");
    hosts.expire(at(0), Retention { interfaces: &[], devices: &devices });
    assert!(hosts.is_empty());
}

#[test]
fn a_forgotten_host_is_new_again() {
    let mut hosts = observed([neighbour(1, 0, true)]);
    let id = host(&hosts, 1).id();
    assert!(hosts.forget(id) && !hosts.forget(id));
    assert!(hosts.observe(neighbour(1, 50, true), &BTreeSet::new()));
    assert_eq!(host(&hosts, 1).first_seen, at(50));
}

#[test]
fn group_addresses_and_zeroes_are_no_hosts() {
    for octets in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        let observation = Observation { mac: MacAddr(octets), ..neighbour(1, 0, true) };
        assert!(observed([observation]).is_empty());
    }
}

/// Observation of one of few hosts, real ones below 100.
fn any_observation() -> impl Strategy<Value = (u32, bool, i64, u8)> {
    (prop_oneof![0u32..20, 100u32..100_000], any::<bool>(), 0i64..5000, 0u8..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_observations_keep_the_hosts_that_answered(
        flood in proptest::collection::vec(any_observation(), 0..400),
        size in 0u32..2 * CAPACITY,
    ) {
        let mut hosts = observed((0..20).map(|number| neighbour(number, 0, true)));
        let forged = (200_000..200_000 + size).map(|number| neighbour(number, 10, false));
        forged.for_each(|one| { hosts.observe(one, &BTreeSet::new()); });
        for (number, is_confirmed, seconds, kind) in flood {
            // Who forges an address does not answer for it.
            let evidence = match kind {
                0 => Evidence::Traffic { address: address(number) },
                1 => Evidence::Name { name: "x".repeat(number as usize % 300), from: NameSource::Mdns },
                _ => Evidence::Neighbour { address: address(number), is_confirmed: is_confirmed && number < 20 },
            };
            hosts.observe(Observation { evidence, ..neighbour(number, seconds, false) }, &BTreeSet::new());
        }
        prop_assert!(hosts.len() <= CAPACITY as usize);
        for number in 0..20 {
            let host = hosts.get(LAN, mac(number));
            prop_assert!(host.is_some_and(|host| host.is_confirmed() && host.first_seen == at(0)));
        }
        for host in hosts.iter() {
            prop_assert!(host.first_seen <= host.last_seen);
            prop_assert!(host.confirmed_at.is_none_or(|confirmed| confirmed <= host.last_seen));
            prop_assert!(host.addresses.len() <= 16 && host.names.iter().all(|name| name.name.chars().count() <= 64));
            prop_assert!(host.addresses.is_sorted_by_key(|(_, seen)| *seen));
        }
        let restored = Hosts::restore(hosts.iter().cloned().collect());
        prop_assert!(restored.iter().eq(hosts.iter()));
    }
}

#[test]
fn hosts_of_an_earlier_run_join_those_that_were_observed_since() {
    let named = |number, name: &str, seconds| Observation {
        evidence: Evidence::Name { name: name.into(), from: NameSource::Mdns },
        ..neighbour(number, seconds, false)
    };
    let earlier = observed([neighbour(1, 0, true), named(1, "earlier", 1), neighbour(2, 0, true)]);
    let mut hosts = observed([named(1, "newer", 100), named(3, "third", 100)]);
    hosts.join(earlier.iter().cloned().collect());
    assert_eq!(hosts.len(), 3);
    let first = host(&hosts, 1);
    assert_eq!((first.first_seen, first.last_seen, first.is_confirmed()), (at(0), at(100), true));
    assert_eq!((first.best_name(), first.ips().count()), (Some("newer"), 1));
    let before = hosts.clone();
    hosts.join(before.iter().cloned().collect());
    assert_eq!(hosts, before, "a host that joins itself stays as it is");
}

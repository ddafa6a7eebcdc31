//! Upstreams of queries whose policy's profile configures DNS.

use std::net::IpAddr;

use gateway_common::wire::device_flags;
use gateway_core::host_egress::{self, HostEgress};
use gateway_core::indexes::Rank;
use gateway_core::profile_dns::{NameServers, of_policy};
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Rank of the only policy.
const FIRST: Option<Rank> = Rank::of_wire(0);

/// Returns the upstreams for the only policy, whose profile has these hops and DNS settings.
fn asked(fixture: &mut Fixture, hops: Value, dns: Value) -> (HostEgress, NameServers) {
    let profile = json!({"name": "p", "hops": hops, "splitting": true, "dns": dns});
    fixture.create("profile", profile).expect("a profile");
    fixture.policy(json!({"name": "all", "priority": 1, "source_type": "all", "profile": "p"}));
    fixture.apply();
    let compiled = fixture.compiled();
    of_policy(&fixture.input(), &compiled, FIRST, host_egress::of_policy(&compiled, FIRST, false))
}

/// Two tunnels, the second with a name server inside it.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    let id = fixture.tunnel("b");
    let dns =
        |tunnel: &mut gateway_model::Tunnel| tunnel.dns = vec!["lan.example".into(), "10.64.0.1".into()];
    fixture.state.update::<gateway_model::Tunnel>(id, None, dns).expect("updated");
    fixture
}

fn vpn(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"type": "vpn", "target": name})).collect()
}

fn addresses(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().expect("an address")).collect()
}

#[test]
fn a_profile_that_says_nothing_changes_nothing() {
    let mut fixture = fixture();
    let (outgoing, servers) = asked(&mut fixture, vpn(&["a", "b"]), json!({}));
    assert!(matches!(&outgoing, HostEgress::Legs(legs) if legs.len() == 2), "{outgoing:?}");
    assert_eq!(servers, NameServers::Usual);
}

#[test]
fn name_servers_of_a_tunnel_are_queried_through_that_tunnel_only() {
    let mut fixture = fixture();
    let (outgoing, servers) = asked(&mut fixture, vpn(&["a", "b"]), json!({"mode": "tunnel"}));
    let leg = fixture.compiled().legs.tunnel("b").expect("its leg").number;
    assert_eq!(
        (outgoing, servers),
        (HostEgress::Legs(vec![leg]), NameServers::Inside(addresses(&["10.64.0.1"])))
    );
}

#[test]
fn a_tunnel_without_name_servers_resolves_nothing_by_its_own() {
    let (outgoing, servers) = asked(&mut fixture(), vpn(&["a"]), json!({"mode": "tunnel"}));
    assert!(matches!(outgoing, HostEgress::Blocked(_)), "{outgoing:?}");
    assert_eq!(servers, NameServers::Usual);
}

#[test]
fn resolvers_of_a_profile_are_queried_through_the_egress_of_the_policy() {
    let mut fixture = fixture();
    let (outgoing, servers) = asked(&mut fixture, vpn(&["a"]), json!({"mode": "custom", "preset": "Quad9"}));
    let leg = fixture.compiled().legs.tunnel("a").expect("its leg").number;
    assert_eq!(outgoing, HostEgress::Legs(vec![leg]));
    assert!(matches!(&servers, NameServers::Of(profile) if profile.name == "p"), "{servers:?}");
    fixture.set_usable("a", false);
    let compiled = fixture.compiled();
    let down = of_policy(&fixture.input(), &compiled, FIRST, host_egress::of_policy(&compiled, FIRST, false));
    assert!(matches!(down, (HostEgress::Blocked(_), NameServers::Usual)), "{down:?}");
}

#[test]
fn a_device_with_a_profile_uses_the_upstreams_of_the_profile() {
    let mut fixture = fixture();
    let dns = json!({"mode": "custom", "upstreams": ["192.0.2.9"]});
    fixture.create("profile", json!({"name": "p", "hops": vpn(&["a"]), "dns": dns})).expect("a profile");
    let device = json!({"name": "laptop", "mac": "02:00:00:00:00:01", "profile": "p"});
    fixture.create("device", device).expect("a device");
    let compiled = fixture.compiled();
    let choice =
        of_policy(&fixture.input(), &compiled, FIRST, host_egress::of_policy(&compiled, FIRST, false));
    assert!(matches!(choice, (HostEgress::Legs(_), NameServers::Of(_))), "{choice:?}");
}

/// Its own queries must not return to it, whether the file or a setting at runtime names it.
#[test]
fn a_device_that_is_an_upstream_is_known_as_a_resolver() {
    let mut fixture = Fixture::new();
    let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
    fixture.device("file", "02:00:00:00:00:01");
    fixture.device("runtime", "02:00:00:00:00:02");
    for (mac, address) in macs.iter().zip(addresses(&["192.168.1.53", "192.168.1.54"])) {
        fixture.facts.neighbours.insert(*mac, [address].into());
    }
    fixture.network.resolvers = addresses(&["192.168.1.53"]);
    let marked = |fixture: &Fixture| {
        let dataplane = fixture.compiled().plan.dataplane;
        macs.map(|mac| dataplane.devices_by_mac[&mac].flags & device_flags::RESOLVER != 0)
    };
    assert_eq!(marked(&fixture), [true, false]);
    fixture.state.set("dns.upstream_servers", json!(["192.168.1.54"]));
    assert_eq!(marked(&fixture), [false, true]);
}

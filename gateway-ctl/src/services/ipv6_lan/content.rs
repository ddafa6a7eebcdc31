//! Content of the announcements: what the plan has for each LAN, as far as the kernel has it already.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use gateway_core::plan::{LanIpv6, LanPrefix};
use gateway_core::state_machines::router_advertiser::{LinkContent, LinkPrefix};
use gateway_model::settings::groups::{DhcpConfig, PrivacyBlocks};
use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};

use crate::world::World;

/// Port at which hosts expect a resolver.
const DNS_PORT: u16 = 53;

/// Returns the content for each LAN interface, with the index of the interface. `now` is the time of the announcers.
pub(super) fn of(world: &World, now: Duration) -> BTreeMap<String, (u32, LinkContent)> {
    let live = world.live();
    let Some(lan_ipv6) = &live.plan.lan_ipv6 else { return BTreeMap::new() };
    let links = lan_ipv6.prefixes.iter().filter_map(|(name, prefixes)| {
        let link = world.facts.links.get(name).filter(|link| link.up)?;
        let own = own_addresses(world, name);
        let source = own.iter().copied().find(Ipv6Addr::is_unicast_link_local)?;
        // Before its address is there, packets from the prefix would count as spoofed.
        let present = prefixes.iter().filter(|prefix| own.contains(&prefix.address)).collect();
        let content = content(world, lan_ipv6, present, now);
        Some((name.clone(), (link.index, LinkContent { source, mac: link.mac, ..content })))
    });
    links.collect()
}

fn own_addresses(world: &World, interface: &str) -> Vec<Ipv6Addr> {
    let addresses = world.facts.addresses.get(interface).into_iter().flatten().map(IpNet::addr);
    let six = addresses.filter_map(|address| match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    });
    six.collect()
}

fn content(world: &World, lan_ipv6: &LanIpv6, mut present: Vec<&LanPrefix>, now: Duration) -> LinkContent {
    let settings = &world.config.network.ipv6;
    let is_blocked = world.state.group::<PrivacyBlocks>().all.block_ipv6;
    if is_blocked {
        // Hosts reach each other and the gateway by them, and nothing else.
        present.retain(|prefix| prefix.address.is_unique_local());
    }
    let mut resolvers = match &settings.rdnss[..] {
        [] => own_resolver(world, &present).into_iter().collect(),
        given => given.to_vec(),
    };
    resolvers.retain(|address| !is_blocked || address.is_unique_local());
    let domain = world.state.group::<DhcpConfig>().domain;
    let prefixes = present.iter().map(|prefix| {
        let until = |end: Option<Timestamp>| end.map(|end| now + left(end, world.now));
        let (preferred_until, valid_until) = (until(prefix.preferred_until), until(prefix.valid_until));
        let link_prefix = LinkPrefix { is_preferred: prefix.is_preferred, preferred_until, valid_until };
        (prefix.net, link_prefix)
    });
    LinkContent {
        source: Ipv6Addr::UNSPECIFIED,
        mac: None,
        is_router: lan_ipv6.is_router && !is_blocked,
        other_configuration: true,
        mtu: settings.mtu,
        prefixes: prefixes.collect(),
        resolvers,
        domains: Some(domain).filter(|domain| !domain.is_empty()).into_iter().collect(),
        lifetime: Duration::from_secs(settings.lifetime_sec.into()),
    }
}

/// Returns the address of the gateway that changes least, if its resolver answers there.
fn own_resolver(world: &World, present: &[&LanPrefix]) -> Option<Ipv6Addr> {
    let listens = world.config.dns.listen_addr;
    let (listens, port) = (listens.ip(), listens.port());
    let usable = present
        .iter()
        .filter(|_| port == DNS_PORT)
        .filter(|prefix| listens.is_unspecified() || listens == prefix.address);
    usable.min_by_key(|prefix| (prefix.uplink.is_some(), !prefix.is_preferred)).map(|prefix| prefix.address)
}

fn left(end: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(now).max(SignedDuration::ZERO)).unwrap_or_default()
}

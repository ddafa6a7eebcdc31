//! Other routers that announce themselves on the LAN. Hosts send IPv6 past the gateway to them.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::link_protocol::LinkProtocol;
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::router_advertisement::{RouterAdvertisement, parse};
use gateway_model::id::MacAddr;
use gateway_model::kinds::alert_rule::AlertKind;
use ipnet::Ipv6Net;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::interval;

use crate::handles::in_memory;
use crate::service::{Context, Service};
use crate::services::link_frames::{Arrival, LinkFrames};

const ALERT: AlertKind = AlertKind::RogueRa;
/// Maximum number of routers that are kept. The addresses of announcements can be forged.
const MAX_ROUTERS: usize = 64;
/// Interval of the search for routers whose lifetime has ended.
const EXPIRY: Duration = Duration::from_secs(5);

/// Router on the LAN that is not this gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForeignRouter {
    pub interface: String,
    /// Link-local address of the router.
    pub address: Ipv6Addr,
    pub mac: MacAddr,
    /// Prefixes that it announces.
    #[schemars(with = "Vec<String>")]
    pub prefixes: Vec<Ipv6Net>,
    pub first_seen: Timestamp,
    pub last_seen: Timestamp,
    /// Time until which hosts use it as a router, if it announces itself no more.
    pub until: Timestamp,
}

/// Routers that hosts of the LAN use now, by interface and address.
#[derive(Clone, Debug, Default)]
pub struct ForeignRouters(Arc<Mutex<BTreeMap<(String, Ipv6Addr), ForeignRouter>>>);

in_memory!(ForeignRouters);

impl ForeignRouters {
    pub fn list(&self) -> Vec<ForeignRouter> {
        self.0.lock().values().cloned().collect()
    }

    /// Takes an announcement. A lifetime of 0 is that of a router that hosts do not use for the internet, such as those
    /// of Thread networks.
    fn note(&self, interface: &str, mac: [u8; 6], heard: RouterAdvertisement, now: Timestamp) {
        let mut routers = self.0.lock();
        let key = (interface.to_owned(), heard.source);
        if heard.lifetime == 0 {
            routers.remove(&key);
            return;
        }
        let known = routers.get(&key).map(|router| router.first_seen);
        if known.is_none() && routers.len() >= MAX_ROUTERS {
            return;
        }
        let router = ForeignRouter {
            interface: interface.to_owned(),
            address: heard.source,
            mac: MacAddr(mac),
            prefixes: heard.nets().collect(),
            first_seen: known.unwrap_or(now),
            last_seen: now,
            until: now + SignedDuration::from_secs(i64::from(heard.lifetime)),
        };
        routers.insert(key, router);
    }

    fn expire(&self, now: Timestamp) {
        self.0.lock().retain(|_, router| router.until > now);
    }
}

/// Returns the service that listens for other routers.
pub fn service(context: &Context) -> Service {
    let routers = context.handles.get::<ForeignRouters>();
    Service::new("foreign_routers", context, run).erases(move |_| {
        routers.0.lock().clear();
        std::future::ready(Ok(()))
    })
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let (routers, frames) = (context.handles.get::<ForeignRouters>(), context.handles.get::<LinkFrames>());
    let mut expiry = interval(EXPIRY);
    loop {
        tokio::select! {
            () = frames.arrived(LinkProtocol::RouterAdvertisement) => {}
            _ = expiry.tick() => routers.expire(context.store.clock().now()),
        }
        let (world, now) = (context.worlds.last(), context.store.clock().now());
        for arrival in frames.take(LinkProtocol::RouterAdvertisement) {
            if let Some(interface) = lan_interface(&world.network, &world.facts, &arrival)
                && let Some(heard) = parse(&arrival.packet)
                && !is_this_host(&world.facts, arrival.mac, heard.source)
            {
                if heard.lifetime == 0 {
                    // The last run may have heard it as a router.
                    context.active_alerts.clear(ALERT, &subject(heard.source, interface));
                }
                routers.note(interface, arrival.mac, heard, now);
            }
        }
        report(&context, &routers);
    }
}

/// Returns the LAN interface at which a packet arrived.
fn lan_interface<'a>(network: &Network, facts: &'a Facts, arrival: &Arrival) -> Option<&'a str> {
    let (name, _) = facts.links.iter().find(|(_, link)| link.index == arrival.interface)?;
    network.lan.contains(name).then_some(name)
}

/// Reports whether this gateway sent a packet. The sender writes both addresses: what has one of them only claims to be
/// this gateway.
fn is_this_host(facts: &Facts, mac: [u8; 6], source: Ipv6Addr) -> bool {
    facts.links.values().any(|link| link.mac == Some(mac)) && is_own(facts, source)
}

fn is_own(facts: &Facts, address: Ipv6Addr) -> bool {
    facts.addresses.values().flatten().any(|net| net.addr() == address)
}

fn report(context: &Context, routers: &ForeignRouters) {
    let facts = &context.worlds.last().facts;
    let now = routers.list();
    for router in &now {
        let ForeignRouter { interface, address, mac, .. } = router;
        let claims_own =
            is_own(facts, *address) || facts.links.values().any(|link| link.mac == Some(mac.octets()));
        let message = match claims_own {
            true => format!("a host on {interface} claims to be this gateway as a router: {address} ({mac})"),
            false => format!("{address} ({mac}) announces itself as a router on {interface}"),
        };
        context.active_alerts.raise_until(ALERT, &subject(*address, interface), router.until, message);
    }
    // A router that the last run heard may be one until its lifetime ends.
    let is_heard = |known: &str| now.iter().any(|router| subject(router.address, &router.interface) == known);
    context.active_alerts.keep(ALERT, is_heard);
}

fn subject(address: Ipv6Addr, interface: &str) -> String {
    format!("{address}%{interface}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lifetime: u16) -> RouterAdvertisement {
        RouterAdvertisement { lifetime, ..RouterAdvertisement::of("fe80::66".parse().unwrap()) }
    }

    #[test]
    fn a_router_is_listed_for_its_lifetime() {
        let routers = ForeignRouters::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        routers.note("lan0", [2; 6], heard(30), at(100));
        routers.note("lan0", [2; 6], heard(30), at(110));
        let [router] = &routers.list()[..] else { panic!("{:?}", routers.list()) };
        assert_eq!((router.first_seen, router.last_seen, router.until), (at(100), at(110), at(140)));
        routers.expire(at(139));
        assert_eq!(routers.list().len(), 1);
        routers.expire(at(140));
        assert_eq!(routers.list(), []);
    }

    #[test]
    fn a_router_without_a_lifetime_is_none() {
        let routers = ForeignRouters::default();
        routers.note("lan0", [2; 6], heard(0), Timestamp::UNIX_EPOCH);
        assert_eq!(routers.list(), []);
        routers.note("lan0", [2; 6], heard(9), Timestamp::UNIX_EPOCH);
        routers.note("lan0", [2; 6], heard(0), Timestamp::UNIX_EPOCH);
        assert_eq!(routers.list(), []);
    }

    #[test]
    fn forged_addresses_fill_no_memory() {
        let routers = ForeignRouters::default();
        for number in 0..1000u128 {
            let source = Ipv6Addr::from(0xfe80u128 << 112 | number);
            routers.note("lan0", [2; 6], RouterAdvertisement { source, ..heard(9) }, Timestamp::UNIX_EPOCH);
        }
        assert_eq!(routers.list().len(), MAX_ROUTERS);
    }

    #[test]
    fn only_others_on_the_lan_count() {
        let link = |index, mac| gateway_core::facts::Link { index, mac: Some(mac), ..Default::default() };
        let links =
            BTreeMap::from([("lan0".to_owned(), link(2, [2; 6])), ("wan0".to_owned(), link(3, [3; 6]))]);
        let facts = Facts { links, ..Facts::default() };
        let network = Network { lan: vec!["lan0".to_owned()], ..Network::default() };
        let arrival = |interface| Arrival { interface, mac: [9; 6], packet: Vec::new() };
        let interface = |interface| lan_interface(&network, &facts, &arrival(interface));
        assert_eq!(interface(2), Some("lan0"));
        assert_eq!(interface(3), None, "the router of the provider");
    }

    #[test]
    fn router_is_this_host_only_if_both_of_its_addresses_are() {
        let link = gateway_core::facts::Link { mac: Some([2; 6]), ..Default::default() };
        let own: Ipv6Addr = "fe80::1".parse().unwrap();
        let mut facts = Facts::default();
        facts.links.insert("lan0".to_owned(), link);
        facts.addresses.insert("lan0".to_owned(), ["fe80::1/64".parse().unwrap()].into());
        for (mac, source, expected) in [
            ([2; 6], own, true),
            ([9; 6], own, false),
            ([2; 6], "fe80::66".parse().unwrap(), false),
            ([9; 6], "fe80::66".parse().unwrap(), false),
        ] {
            assert_eq!(is_this_host(&facts, mac, source), expected, "{mac:?} {source}");
        }
    }
}

//! Interfaces and the programs that they get.
//!
//! Every interface that is neither loopback nor LAN has the guard, whether the configuration lists it or not: an uplink
//! that is disabled, renamed or new is allowed nothing. Excluded are interfaces on which a packet has already passed a
//! guard or belongs to the LAN: ports of bridges and bonds, and lower interfaces of a LAN interface or an uplink (the
//! parent of a VLAN, the Ethernet link of a PPPoE session). The parent of VLANs is not excluded if it has an address, so
//! that packets are routed to it, too, and only VLANs are above it: its guard leaves their packets alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::well_known::is_link_local;
use crate::facts::{Facts, Link, LinkLayer};
use crate::network::Network;
use crate::plan::Attachment;

/// Greatest depth of links above one another (linux/netdevice.h, MAX_NEST_DEV).
const MAX_DEPTH: u8 = 8;

/// Returns the programs by interface. `egress` names the uplinks and tunnels, which may be absent still.
pub fn attachments(
    network: &Network,
    facts: &Facts,
    egress: &BTreeSet<&str>,
) -> BTreeMap<String, Attachment> {
    let mut attachments = BTreeMap::new();
    for name in &network.lan {
        let link = facts.links.get(name);
        // The program reads an Ethernet header. Without it the rules and nftables block the interface.
        if link.is_none_or(|link| link.link_layer == LinkLayer::Ethernet) {
            attachments.insert(name.clone(), Attachment::Ingress);
        }
    }
    for name in egress {
        attachments.entry((*name).to_owned()).or_insert(Attachment::Guard);
    }
    let below = lower_links(network, facts, egress);
    let stack = Stack { facts, below: &below, egress, network };
    for (name, link) in &facts.links {
        let is_excluded = link.link_layer == LinkLayer::Loopback
            || network.lan.contains(name)
            || below.contains(name.as_str())
                && !(has_address(name, facts) && stack.keeps_apart(name, MAX_DEPTH))
            || is_port(link, facts)
            || may_carry_ppp(name, facts);
        if !is_excluded {
            attachments.entry(name.clone()).or_insert(Attachment::Guard);
        }
    }
    attachments
}

/// Reports LAN interfaces whose packets cannot be evaluated.
pub(super) fn unsupported_lans<'a>(
    network: &'a Network,
    facts: &'a Facts,
) -> impl Iterator<Item = Finding> + 'a {
    let links = network.lan.iter().filter_map(|name| Some((name, facts.links.get(name)?)));
    links.filter(|(_, link)| link.link_layer != LinkLayer::Ethernet).map(|(name, _)| Finding {
        code: "lan_without_ethernet",
        policy: None,
        message: format!("LAN interface {name} is no Ethernet link: nothing is forwarded from it"),
    })
}

/// Interfaces below a LAN interface or an uplink, at any depth.
fn lower_links<'a>(network: &'a Network, facts: &'a Facts, egress: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut below = BTreeSet::new();
    let mut next: Vec<&str> = network.lan.iter().map(String::as_str).chain(egress.iter().copied()).collect();
    while let Some(name) = next.pop() {
        let lower = facts.links.get(name).and_then(|link| link.lower.as_deref());
        next.extend(lower.filter(|lower| below.insert(*lower)));
    }
    below
}

/// Returns whether packets are routed to its master and not to itself. A VRF is no such master.
pub(super) fn is_port(link: &Link, facts: &Facts) -> bool {
    let master = link.master.as_ref().and_then(|master| facts.links.get(master));
    master.is_some_and(|master| master.kind != "vrf")
}

/// Interfaces above one another.
struct Stack<'a> {
    network: &'a Network,
    facts: &'a Facts,
    egress: &'a BTreeSet<&'a str>,
    below: &'a BTreeSet<&'a str>,
}

impl Stack<'_> {
    /// Reports whether the guard of an interface can tell its own packets from those of all interfaces above it: they are
    /// VLANs whose packets it leaves alone, or which carry a PPPoE session.
    fn keeps_apart(&self, name: &str, depth: u8) -> bool {
        let mut above =
            self.facts.links.iter().filter(|(_, link)| link.lower.as_deref() == Some(name)).peekable();
        let is_parent = above.peek().is_some();
        let is_apart = |(name, link): (&String, &Link)| {
            let is_evaluated = self.network.lan.contains(name)
                || self.egress.contains(name.as_str())
                || !self.below.contains(name.as_str())
                || is_port(link, self.facts);
            link.vlan.is_some() && (is_evaluated || depth > 0 && self.keeps_apart(name, depth - 1))
        };
        is_parent && above.all(is_apart)
    }
}

/// Reports whether an interface is the parent of VLANs, at any depth, that its guard tells from its own packets.
pub(super) fn keeps_vlans_apart(
    network: &Network,
    facts: &Facts,
    egress: &BTreeSet<&str>,
    name: &str,
) -> bool {
    let below = lower_links(network, facts, egress);
    Stack { facts, below: &below, egress, network }.keeps_apart(name, MAX_DEPTH)
}

/// Reports whether the interface has an address that is not link-local.
fn has_address(name: &str, facts: &Facts) -> bool {
    facts.addresses.get(name).is_some_and(|nets| nets.iter().any(|net| !is_link_local(net.addr())))
}

/// Returns whether the link may carry a PPPoE session. The kernel does not report which link does. Such a link usually
/// has no address, so that nothing else is routed to it.
fn may_carry_ppp(name: &str, facts: &Facts) -> bool {
    facts.links.values().any(|link| link.kind == "ppp")
        && facts.links.get(name).is_some_and(|link| link.kind != "ppp")
        && !has_address(name, facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(links: &[(&str, Link)]) -> Facts {
        Facts {
            links: links.iter().map(|(name, link)| ((*name).to_owned(), link.clone())).collect(),
            ..Facts::default()
        }
    }

    fn network() -> Network {
        Network { lan: vec!["lan0".to_owned()], ..Network::default() }
    }

    fn stacked(kind: &str, lower: &str) -> Link {
        Link { kind: kind.to_owned(), lower: Some(lower.to_owned()), ..Link::default() }
    }

    fn port(master: &str) -> Link {
        Link { master: Some(master.to_owned()), ..Link::default() }
    }

    fn guarded(facts: &Facts, egress: &[&str]) -> Vec<String> {
        let all = attachments(&network(), facts, &egress.iter().copied().collect());
        all.into_iter().filter(|(_, kind)| *kind == Attachment::Guard).map(|(name, _)| name).collect()
    }

    #[test]
    fn every_interface_that_is_not_lan_is_guarded() {
        let loopback = Link { link_layer: LinkLayer::Loopback, ..Link::default() };
        let tun = Link { link_layer: LinkLayer::Other, ..Link::default() };
        let other = Link::default();
        let facts =
            facts(&[("lo", loopback), ("lan0", other.clone()), ("wan9", other.clone()), ("tun0", tun)]);
        assert_eq!(guarded(&facts, &["wan0"]), ["tun0", "wan0", "wan9"]);
        let all = attachments(&network(), &facts, &BTreeSet::new());
        assert_eq!(all.get("lan0"), Some(&Attachment::Ingress));
        assert_eq!(all.get("lo"), None);
    }

    #[test]
    fn interfaces_below_a_lan_or_an_uplink_are_not_guarded_twice() {
        let vlan = |lower| stacked("vlan", lower);
        let bridge = Link { kind: "bridge".to_owned(), ..Link::default() };
        let facts = facts(&[
            ("lan0", vlan("bond0")),
            ("bond0", Link::default()),
            ("eth1", port("bond0")),
            ("wan0", vlan("eth0")),
            ("eth0", Link::default()),
            ("eth0.9", vlan("eth0")),
            ("br0", bridge),
            ("tap0", port("br0")),
        ]);
        assert_eq!(guarded(&facts, &["wan0"]), ["br0", "eth0.9", "wan0"]);
    }

    #[test]
    fn a_vlan_of_a_lan_interface_has_a_program_of_its_own() {
        let lan = ["lan0", "lan0.20"].map(str::to_owned).into();
        let vlan = Link { vlan: Some(("lan0".to_owned(), 20)), ..stacked("vlan", "lan0") };
        let facts = facts(&[("lan0", Link::default()), ("lan0.20", vlan)]);
        let all = attachments(&Network { lan, ..Network::default() }, &facts, &BTreeSet::new());
        assert_eq!(all.values().collect::<Vec<_>>(), [&Attachment::Ingress; 2]);
    }

    #[test]
    fn the_parent_of_a_vlan_is_guarded_if_packets_are_routed_to_it() {
        let vlan = Link { vlan: Some(("eth0".to_owned(), 9)), ..stacked("vlan", "eth0") };
        let mut facts = facts(&[("lan0", vlan), ("eth0", Link::default())]);
        assert_eq!(guarded(&facts, &[]), Vec::<String>::new());
        facts.addresses.insert("eth0".to_owned(), ["fe80::1/64".parse().unwrap()].into());
        assert_eq!(guarded(&facts, &[]), Vec::<String>::new());
        facts.addresses.insert("eth0".to_owned(), ["192.0.2.1/24".parse().unwrap()].into());
        assert_eq!(guarded(&facts, &[]), ["eth0"]);
        // Frames of other links are not distinguished from those of the parent.
        facts.links.insert("macvlan0".to_owned(), stacked("macvlan", "eth0"));
        assert_eq!(guarded(&facts, &["macvlan0"]), ["macvlan0"]);
    }

    #[test]
    fn an_ethernet_link_below_pppoe_is_not_guarded_unless_it_has_an_address() {
        let ppp = Link { kind: "ppp".to_owned(), link_layer: LinkLayer::Other, ..Link::default() };
        let mut facts = facts(&[("ppp0", ppp), ("eth0", Link::default())]);
        assert_eq!(guarded(&facts, &[]), ["ppp0"]);
        facts.addresses.insert("eth0".to_owned(), ["192.0.2.1/24".parse().unwrap()].into());
        assert_eq!(guarded(&facts, &[]), ["eth0", "ppp0"]);
    }

    #[test]
    fn members_of_a_vrf_are_guarded() {
        let vrf = Link { kind: "vrf".to_owned(), ..Link::default() };
        assert_eq!(guarded(&facts(&[("red", vrf), ("eth5", port("red"))]), &[]), ["eth5", "red"]);
    }

    #[test]
    fn a_lan_interface_without_ethernet_gets_no_program_and_is_reported() {
        let facts = facts(&[("lan0", Link { link_layer: LinkLayer::Other, ..Link::default() })]);
        assert!(attachments(&network(), &facts, &BTreeSet::new()).is_empty());
        let findings: Vec<_> = unsupported_lans(&network(), &facts).collect();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].code, "lan_without_ethernet");
    }
}

//! Egress of DNS queries to external resolvers: for a client that of its own query, for a name that of its policy.

use std::net::{IpAddr, SocketAddr};

use gateway_common::classify::DNS_PORT;
use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::ChoiceKind;
use gateway_model::id::MacAddr;
use gateway_model::kinds::Proxy;

use crate::compile::{Compiled, Input, by_leg, named_leg, proxy_address, proxy_login};
use crate::evaluate::{Entry, Protocol, decide_on_behalf, hop_words, legs_of, packet, public_address};
use crate::indexes::{LegId, ProxyIndex, Rank};
use crate::plan::ProxyLogin;

mod blocked;

pub use blocked::hops_down;

/// Port for hosts that may not query resolvers.
const ANY: u16 = 443;

/// Egress of traffic that the gateway itself sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEgress {
    /// As the gateway's own traffic.
    Default,
    /// By one of these legs, in turn.
    Legs(Vec<LegId>),
    /// Over a proxy that is reached by this leg (`None`: the default route).
    Proxy { address: SocketAddr, leg: Option<LegId>, login: Option<ProxyLogin> },
    /// Human-readable reason for which nothing leaves.
    Blocked(String),
}

/// Client of the query.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub mac: Option<MacAddr>,
    pub address: IpAddr,
    /// Index of the interface by which its packet entered, where that was observed.
    pub interface: Option<u32>,
    /// Tag of the packet at that interface, 0 without one.
    pub vlan: u16,
}

/// Returns the egress of a client's query to a resolver, and the rank of its policy.
pub fn of_client(
    input: &Input<'_>,
    compiled: &Compiled,
    client: &Client,
    resolver: IpAddr,
) -> (HostEgress, Option<Rank>) {
    let Client { mac, address, .. } = *client;
    let Some(entry) = entry(input, client) else {
        let why = format!("the network of {address} is not known");
        return (HostEgress::Blocked(why), None);
    };
    let evaluated = |(from, to): (IpAddr, IpAddr)| {
        // By TCP, which every egress takes that takes any traffic.
        let verdict = |port| decide_on_behalf(compiled, &packet(mac, &entry, from, to, Protocol::Tcp, port));
        let by_tcp = verdict(DNS_PORT);
        if by_tcp.reason == Reason::ForcedDns { verdict(ANY) } else { by_tcp }
    };
    let mut packets = vec![(address, resolver)];
    if address.is_ipv6() != resolver.is_ipv6() {
        // The client's query has another address family than the gateway's: the first policy for either applies.
        let far = public_address(compiled, address.is_ipv6(), DNS_PORT, &mut Vec::new());
        let others = mac.and_then(|mac| input.facts.neighbours.get(&mac.octets())).into_iter().flatten();
        let others = others.filter(|other| other.is_ipv6() == resolver.is_ipv6());
        packets = others.map(|other| (*other, resolver)).chain([(address, far)]).collect();
    }
    let verdict = packets.into_iter().map(evaluated).min_by_key(|verdict| verdict.rank);
    let verdict = verdict.expect("there is a packet at least");
    let rank = Rank::of_wire(verdict.rank);
    let out = match (verdict.action, verdict.reason) {
        (Action::Mark, Reason::PolicyEgress | Reason::PolicyProxy) => {
            of_policy(compiled, rank, resolver.is_ipv6())
        }
        (
            Action::Mark,
            Reason::PolicyDirect | Reason::NoPolicy | Reason::ToGateway | Reason::ToLan | Reason::LinkLocal,
        ) => HostEgress::Default,
        (_, Reason::DeviceBlocked) => HostEgress::Blocked("the device is blocked".to_owned()),
        (_, Reason::FloorReject) => {
            HostEgress::Blocked("the privacy classes of the device allow no weaker failure policy".to_owned())
        }
        (_, Reason::TrustInternetDenied | Reason::NoPolicyReject) => {
            HostEgress::Blocked("the device may not reach the internet".to_owned())
        }
        _ => of_policy(compiled, rank, resolver.is_ipv6()),
    };
    (out, rank)
}

/// Returns the ingress LAN interface of a client: the observed one, else that of its address. `None` if it is
/// ambiguous, because policies of one LAN must not apply to another.
fn entry(input: &Input<'_>, client: &Client) -> Option<Entry> {
    let index = |name: &&String| input.facts.links.get(*name).map(|link| link.index);
    let near = |name: &&String| {
        let nets = input.facts.addresses.get(*name).into_iter().flatten();
        nets.into_iter().any(|net| net.contains(&client.address))
    };
    let lan = &input.network.lan;
    let observed = client.interface.and_then(|there| lan.iter().find(|name| index(name) == Some(there)));
    let by_address = || {
        let mut near = lan.iter().filter(near);
        near.next().filter(|_| near.next().is_none())
    };
    let only = || lan.first().filter(|_| lan.len() == 1);
    let entry = Entry::at(input, observed.or_else(by_address).or_else(only)?);
    Some(Entry { vlan: client.vlan, ..entry })
}

/// Returns the egress of a policy's traffic.
pub fn of_policy(compiled: &Compiled, rank: Option<Rank>, ipv6: bool) -> HostEgress {
    let Some(policy) = rank.and_then(|rank| compiled.policy(rank)) else {
        return HostEgress::Blocked("no policy lets the query out".to_owned());
    };
    let choice = if ipv6 { &policy.v6 } else { &policy.v4 };
    let legs = legs_of(choice);
    match choice.kind() {
        ChoiceKind::Direct => HostEgress::Default,
        ChoiceKind::Legs => HostEgress::Legs(legs.into_iter().flatten().collect()),
        ChoiceKind::Proxy => match ProxyIndex::new(choice.proxy)
            .and_then(|proxy| compiled.plan.proxies.get(&proxy))
        {
            Some(target) => match (target.address, legs.first()) {
                (Some(address), Some(leg)) => {
                    HostEgress::Proxy { address, leg: *leg, login: target.login.clone() }
                }
                _ => HostEgress::Blocked(format!("the proxy {} is not known by its address", target.name)),
            },
            None => HostEgress::Blocked(format!("the policy {:?} has no proxy", policy.name)),
        },
        ChoiceKind::Drop | ChoiceKind::Reject => {
            let down: Vec<String> =
                policy.hops.iter().filter(|hop| !hop.usable).map(|hop| hop_words(&hop.hop)).collect();
            HostEgress::Blocked(blocked::reason_of(&policy.name, &down))
        }
    }
}

/// Returns the egress by the named tunnel or uplink.
pub fn by_name(input: &Input<'_>, compiled: &Compiled, name: &str) -> HostEgress {
    match named_leg(input.state, compiled.legs.by_number.values(), name) {
        None => HostEgress::Blocked(format!("there is no tunnel and no uplink {name}")),
        Some(leg) if !leg.usable => HostEgress::Blocked(format!("{name} is not usable: {}", leg.reason)),
        Some(leg) => HostEgress::Legs(vec![leg.number]),
    }
}

/// Returns the egress over a named proxy that is reached by a leg (`None`: the default route).
pub fn to_proxy(input: &Input<'_>, proxy: &Proxy, leg: Option<LegId>) -> Result<HostEgress, String> {
    by_leg(input, proxy, leg).map_err(|why| format!("the proxy {} is not usable: {why}", proxy.name))?;
    let address = proxy_address(input, proxy)
        .ok_or_else(|| format!("the address of the proxy {} is not known", proxy.name))?;
    Ok(HostEgress::Proxy { address, leg, login: proxy_login(proxy) })
}

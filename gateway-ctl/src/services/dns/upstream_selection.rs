//! Selection of the upstreams of a query route, for names without a forwarder.
//!
//! The DNS servers of the policy's profile come first. Otherwise the external filter replaces the upstreams for
//! queries that leave through the gateway's own default route. Queries of clients that a policy sends through another
//! egress keep that egress and the upstreams: the filter would forward them over its own route. Decision 0043 says why.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::compile::{Compiled, Input};
use gateway_core::facts::Facts;
use gateway_core::host_egress::HostEgress;
use gateway_core::indexes::Rank;
use gateway_core::profile_dns::{self, NameServers};
use gateway_dns::hooks::Resolvers;
use gateway_dns::upstream::{Server, of_profile};
use gateway_model::settings::bootstrap::Dns;
use gateway_model::settings::groups::ExtFilterConfig;

/// Port of DNS servers.
const DOMAIN: u16 = 53;

#[derive(Default)]
pub(super) struct UpstreamSelection {
    filter: Option<Filter>,
    /// DNS settings, for the host names of upstreams.
    dns: Dns,
}

/// Query that is forwarded to an upstream.
pub(super) struct ClientQuery<'a> {
    pub input: Input<'a>,
    pub compiled: &'a Compiled,
    /// Rank of the policy that applies, if one does.
    pub rank: Option<Rank>,
    /// Client address; `None`: the gateway itself.
    pub from: Option<IpAddr>,
}

/// External filter in use.
struct Filter {
    /// Servers of the filter; `None` as long as the address of its resolver is unknown.
    servers: Option<Arc<[Server]>>,
    /// Source addresses of the filter's own queries.
    addresses: HashSet<IpAddr>,
}

impl UpstreamSelection {
    /// Creates the selection, with the external filter if it is used.
    pub(super) fn new(filter: Option<&ExtFilterConfig>, facts: &Facts, dns: &Dns) -> UpstreamSelection {
        UpstreamSelection { filter: filter.map(|config| Filter::new(config, facts)), dns: dns.clone() }
    }

    /// Returns egress and upstreams of a query. `outgoing` is the egress of the policy.
    pub(super) fn of(&self, asking: &ClientQuery<'_>, outgoing: HostEgress) -> (HostEgress, Resolvers) {
        let ClientQuery { input, compiled, rank, from } = asking;
        let (outgoing, servers) = profile_dns::of_policy(input, compiled, *rank, outgoing);
        let servers: Vec<Server> = match servers {
            NameServers::Usual => return self.usual(outgoing, *from),
            NameServers::Inside(addresses) => {
                addresses.into_iter().map(|address| Server::plain((address, DOMAIN).into())).collect()
            }
            // The summary of the upstream plan reports their problems.
            NameServers::Of(profile) => of_profile(input.state, &profile, &self.dns, &mut Vec::new()),
        };
        (outgoing, Resolvers::Only(servers.into()))
    }

    /// Returns egress and upstreams where no profile sets DNS servers.
    pub(super) fn usual(&self, outgoing: HostEgress, from: Option<IpAddr>) -> (HostEgress, Resolvers) {
        match &self.filter {
            Some(filter) if outgoing == HostEgress::Default && !filter.is_itself(from) => {
                match &filter.servers {
                    Some(servers) => (outgoing, Resolvers::Only(servers.clone())),
                    None => {
                        let why = "it is not set where the external filter is".to_owned();
                        (HostEgress::Blocked(why), Resolvers::Usual)
                    }
                }
            }
            _ => (outgoing, Resolvers::Usual),
        }
    }

    /// Reports whether the client is the external filter itself.
    pub(super) fn is_itself(&self, from: Option<IpAddr>) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.is_itself(from))
    }
}

impl Filter {
    fn new(config: &ExtFilterConfig, facts: &Facts) -> Filter {
        let Some(resolver) = config.resolver() else {
            return Filter { servers: None, addresses: HashSet::new() };
        };
        // Use all addresses of the host on which the filter runs.
        let hosts = facts.neighbours.values().filter(|addresses| addresses.contains(&resolver.ip()));
        let mut addresses: HashSet<IpAddr> = hosts.flatten().copied().collect();
        addresses.insert(resolver.ip());
        Filter { servers: Some([Server::plain(resolver)].into()), addresses }
    }

    /// Reports whether the client is the filter. Its own queries must not return to it.
    fn is_itself(&self, from: Option<IpAddr>) -> bool {
        // The gateway itself sends queries from any address.
        let here = || self.addresses.iter().any(IpAddr::is_loopback);
        from.map_or_else(here, |from| self.addresses.contains(&from))
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::indexes::LegId;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn filter(resolver: Option<&str>) -> UpstreamSelection {
        let url = if resolver.is_some() { "https://pi.hole".to_owned() } else { String::new() };
        let config = ExtFilterConfig { url, resolver: resolver.map(str::to_owned), ..Default::default() };
        let mut facts = Facts::default();
        let addresses = ["192.168.1.2", "fd00::2"].map(address);
        facts.neighbours.insert([2, 0, 0, 0, 0, 1], addresses.into_iter().collect());
        UpstreamSelection::new(Some(&config), &facts, &Dns::default())
    }

    #[test]
    fn the_filter_gets_queries_of_clients_on_the_default_route() {
        let choice = filter(Some("192.168.1.2"));
        let (outgoing, resolvers) = choice.usual(HostEgress::Default, Some(address("192.168.1.9")));
        assert_eq!(outgoing, HostEgress::Default);
        let Resolvers::Only(servers) = resolvers else { panic!("{resolvers:?}") };
        assert_eq!(&*servers, [Server::plain(([192, 168, 1, 2], 53).into())]);
        assert!(
            matches!(choice.usual(HostEgress::Default, None).1, Resolvers::Only(_)),
            "the gateway itself, too"
        );
        for outgoing in [HostEgress::Legs(vec![LegId::FIRST]), HostEgress::Blocked("down".into())] {
            let reported = choice.usual(outgoing.clone(), Some(address("192.168.1.9")));
            assert_eq!(reported, (outgoing, Resolvers::Usual));
        }
    }

    #[test]
    fn queries_of_the_filter_do_not_return_to_it() {
        let choice = filter(Some("192.168.1.2"));
        for own in ["192.168.1.2", "fd00::2"] {
            let reported = choice.usual(HostEgress::Default, Some(address(own)));
            assert_eq!(reported, (HostEgress::Default, Resolvers::Usual), "{own}");
        }
        assert_eq!(filter(Some("127.0.0.1:5353")).usual(HostEgress::Default, None).1, Resolvers::Usual);
    }

    #[test]
    fn without_an_address_of_the_filter_nothing_replaces_it() {
        let (outgoing, _) = filter(None).usual(HostEgress::Default, Some(address("192.168.1.9")));
        assert!(matches!(outgoing, HostEgress::Blocked(_)), "{outgoing:?}");
        let integrated = UpstreamSelection::default().usual(HostEgress::Default, None);
        assert_eq!(integrated, (HostEgress::Default, Resolvers::Usual));
    }
}

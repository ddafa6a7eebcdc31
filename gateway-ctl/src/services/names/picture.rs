//! What answers are made from, at one instant: the store, the plan at work, what was seen of the network, and how names
//! are to be resolved.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::compile::{Compiled, Input};
use gateway_core::dns::filter::{Filter, Lists, Options as FilterOptions};
use gateway_core::dns::table::Key;
use gateway_core::dns::zones::{Host, Options as ZoneOptions, Zones};
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_dns::signing::Signatures;
use gateway_dns::upstream::{Given, Place, Plan};
use gateway_model::domain::DomainName;
use gateway_model::settings::bootstrap::{Dns, DnsBackend};
use gateway_model::settings::groups::{DhcpConfig, DnsRotation, ExtFilterConfig};
use gateway_model::{Device, State};
use ipnet::IpNet;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::choice::Choice;
use super::secondaries::Copies;
use super::ways::Ways;
use super::{Config, clients, ways};
use crate::engine::{Engine, Lowered, StateView};
use crate::store::Store;

/// TTL of names of machines.
const HOST_TTL: u32 = 60;

pub struct Picture {
    pub state: Arc<State>,
    pub compiled: Arc<Compiled>,
    pub facts: Arc<Facts>,
    network: Network,
    pub dns: Dns,
    pub now: Timestamp,
}

impl Picture {
    pub fn of(config: &Config, store: &Store, engine: &Engine) -> Picture {
        let StateView { state, facts, compiled } = StateView::clone(&engine.view());
        Picture {
            network: engine.network().clone(),
            dns: config.dns_now(&state),
            now: store.clock().now(),
            compiled,
            facts,
            state,
        }
    }

    /// Of a plan that is about to be live.
    pub fn of_lowered(config: &Config, lowered: &Lowered<'_>, network: &Network) -> Picture {
        Picture {
            state: lowered.state.clone(),
            compiled: lowered.compiled.clone(),
            facts: Arc::new(lowered.facts.clone()),
            network: network.clone(),
            dns: config.dns_now(lowered.state),
            now: lowered.now,
        }
    }

    /// Nobody is answered otherwise by the one than by the other.
    pub fn is_like(&self, other: &Picture) -> bool {
        self.state.revision == other.state.revision
            && Arc::ptr_eq(&self.compiled, &other.compiled)
            && self.facts == other.facts
    }

    pub fn input(&self) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now: self.now }
    }

    pub fn upstreams(&self, ways: &Ways) -> Plan {
        let input = self.input();
        let route =
            |egress: &str, proxy: Option<&str>| ways.of_forwarder(&input, &self.compiled, egress, proxy);
        let rotation = self.state.group::<DnsRotation>();
        let given = Given { dns: &self.dns, rotation: &rotation, dnssec: false, route: &route };
        Plan { called: ways::called(&self.state, &self.compiled), ..Plan::of(&self.state, &given) }
    }

    pub fn choice(&self) -> Arc<Choice> {
        let external = self.dns.backend == DnsBackend::Extfilter;
        let filter = external.then(|| self.state.group::<ExtFilterConfig>());
        Arc::new(Choice::new(filter.as_ref(), &self.facts, &self.dns))
    }

    pub fn filter(&self, lists: &Lists) -> Arc<Filter> {
        let options = FilterOptions { zone: TimeZone::system(), canaries: Default::default() };
        Arc::new(Filter::new(&self.state, lists, options))
    }

    pub fn zones(&self, key: Key, copies: &Copies, signatures: &Signatures) -> Arc<Zones> {
        let domain = DomainName::parse(&self.state.group::<DhcpConfig>().domain);
        let options = ZoneOptions {
            key,
            domain: domain.unwrap_or_else(|_| DomainName::parse("lan").expect("a name")),
            hosts: self.state.devices.iter().map(|device| self.host(device)).collect(),
            host_ttl: HOST_TTL,
            copies: copies.current(&self.state),
            signer: Some(Arc::new(signatures.signer(&self.state, self.now))),
        };
        Arc::new(Zones::new(&self.state, &options))
    }

    /// Indexes of the links of the LAN.
    pub fn lan_links(&self) -> Vec<u32> {
        let links = self.network.lan.iter().filter_map(|name| self.facts.links.get(name));
        links.map(|link| link.index).collect()
    }

    /// Networks of the LAN and all addresses of this host.
    pub fn own_networks(&self) -> Vec<IpNet> {
        let addresses =
            self.facts.addresses.iter().flat_map(|(name, nets)| nets.iter().map(move |net| (name, net)));
        let network = |(name, net): (&String, &IpNet)| match self.network.lan.contains(name) {
            true => net.trunc(),
            false => IpNet::from(net.addr()),
        };
        addresses.map(network).collect()
    }

    fn host(&self, device: &Device) -> Host {
        let macs = device.all_macs();
        let seen = macs.iter().filter_map(|mac| self.facts.neighbours.get(&mac.octets())).flatten();
        // A link-local address is of use to nobody who asks for a name.
        let far = seen.filter(|address| !clients::is_link_local(**address));
        Host { name: device.name.clone(), addresses: far.copied().collect() }
    }
}

/// A resolver that stands for all: policies for destinations are asked about it.
pub fn first_upstream(plan: &Plan) -> IpAddr {
    let for_all = plan.groups.iter().filter(|group| group.domain.as_ref().is_root());
    let mut places = for_all.flat_map(|group| &group.servers).filter_map(|server| match server.place {
        Place::Address(address) => Some(address.ip()),
        Place::Name(..) => None,
    });
    // Documentation, which no policy names.
    places.next().unwrap_or(IpAddr::from([192, 0, 2, 53]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(compiled: &Arc<Compiled>, now: &str) -> Picture {
        Picture {
            state: Arc::default(),
            compiled: compiled.clone(),
            facts: Arc::default(),
            network: Network::default(),
            dns: Dns::default(),
            now: now.parse().expect("an instant"),
        }
    }

    #[test]
    fn nobody_is_answered_otherwise_because_time_has_passed() {
        let compiled = Arc::default();
        let before = picture(&compiled, "2026-11-20T10:00:00Z");
        assert!(picture(&compiled, "2026-11-20T10:01:00Z").is_like(&before));
        let mut facts = Facts::default();
        facts.neighbours.insert([2, 0, 0, 0, 0, 1], [IpAddr::from([192, 0, 2, 1])].into());
        let seen = Picture { facts: Arc::new(facts), ..picture(&compiled, "2026-11-20T10:01:00Z") };
        assert!(!seen.is_like(&before));
        assert!(!picture(&Arc::default(), "2026-11-20T10:00:00Z").is_like(&before), "another plan");
    }
}

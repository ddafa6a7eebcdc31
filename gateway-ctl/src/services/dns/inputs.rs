//! Inputs of the resolver at one instant: the gateway's state and the DNS configuration in it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::{Filter, Lists, Options as FilterOptions};
use gateway_core::dns::rebinding::Rebinding;
use gateway_core::dns::zones::{Host, MeshNames, Options as ZoneOptions, Zones};
use gateway_dns::signing::Signatures;
use gateway_dns::upstream::{Plan, PlanInput, ServerAddress};
use gateway_model::Device;
use gateway_model::domain::DomainName;
use gateway_model::settings::bootstrap::{Dns, DnsBackend};
use gateway_model::settings::groups::{DhcpConfig, DnsRotation, ExtFilterConfig};
use gateway_model::settings::keys::MESH_DOMAIN;
use ipnet::IpNet;
use jiff::tz::TimeZone;

use super::query_routes::{self, QueryRoutes};
use super::secondary_zones::SecondaryZones;
use super::upstream_selection::UpstreamSelection;
use crate::os::host_name;
use crate::services::dhcp::own_names;
use crate::world::World;

/// TTL of host names, in seconds.
const HOST_TTL: u32 = 60;

pub(super) struct ResolverInputs {
    pub world: World,
}

impl ResolverInputs {
    pub(super) fn of(world: World) -> ResolverInputs {
        ResolverInputs { world }
    }

    pub(super) fn dns(&self) -> &Dns {
        &self.world.config.dns
    }

    pub(super) fn upstreams(&self, routes: &QueryRoutes) -> Plan {
        let input = self.world.input();
        let route = |egress: &str, proxy: Option<&str>| {
            routes.of_forwarder(&input, self.world.compiled(), egress, proxy)
        };
        let rotation = self.world.state.group::<DnsRotation>();
        let given = PlanInput { dns: self.dns(), rotation: &rotation, dnssec: false, route: &route };
        Plan {
            called: query_routes::called(&self.world.state, self.world.compiled()),
            ..Plan::of(&self.world.state, &given)
        }
    }

    pub(super) fn choice(&self) -> Arc<UpstreamSelection> {
        let external = self.dns().backend == DnsBackend::Extfilter;
        let filter = external.then(|| self.world.state.group::<ExtFilterConfig>());
        Arc::new(UpstreamSelection::new(filter.as_ref(), &self.world.facts, self.dns()))
    }

    pub(super) fn filter(&self, lists: &Lists) -> Arc<Filter> {
        let options = FilterOptions { zone: TimeZone::system(), canaries: Default::default() };
        let new = if self.dns().filtering_enabled { Filter::new } else { Filter::of_blocks };
        Arc::new(new(&self.world.state, lists, options).with_rebinding(self.rebinding()))
    }

    fn rebinding(&self) -> Option<Rebinding> {
        let own = self.world.facts.addresses.values().flatten().map(IpNet::addr);
        let dns = self.dns();
        let protected = || Rebinding::new(&self.world.state, &dns.rebinding_allowed_domains, own);
        dns.rebinding_protection.then(protected)
    }

    pub(super) fn zones(&self, key: Key, copies: &SecondaryZones, signatures: &Signatures) -> Arc<Zones> {
        let domain = DomainName::parse(&self.world.state.group::<DhcpConfig>().domain);
        let options = ZoneOptions {
            key,
            domain: domain.unwrap_or_else(|_| DomainName::parse("lan").expect("a name")),
            hosts: self.hosts(),
            host_ttl: HOST_TTL,
            mesh: self.mesh_names(),
            copies: copies.current(&self.world.state),
            signer: Some(Arc::new(signatures.signer(&self.world.state, self.world.now))),
        };
        Arc::new(Zones::new(&self.world.state, &options))
    }

    /// Returns the interface indexes of the LAN.
    pub(super) fn lan_links(&self) -> Vec<u32> {
        let links = self.world.network.lan.iter().filter_map(|name| self.world.facts.links.get(name));
        links.map(|link| link.index).collect()
    }

    /// Returns the networks of the LAN and all addresses of this host.
    pub(super) fn own_networks(&self) -> Vec<IpNet> {
        let addresses = self
            .world
            .facts
            .addresses
            .iter()
            .flat_map(|(name, nets)| nets.iter().map(move |net| (name, net)));
        let network = |(name, net): (&String, &IpNet)| match self.world.network.lan.contains(name) {
            true => net.trunc(),
            false => IpNet::from(net.addr()),
        };
        addresses.map(network).collect()
    }

    /// Returns this host, devices, reservations and leases. The first host of a name keeps it, so no client takes one of
    /// the gateway's.
    fn hosts(&self) -> Vec<Host> {
        let domain = self.world.state.group::<DhcpConfig>().domain.clone();
        let names = own_names(&self.world.config.listen.host_names, &host_name::read(), &domain);
        let lan = self.world.network.lan.iter().filter_map(|name| self.world.facts.addresses.get(name));
        let addresses = lan.flatten().map(IpNet::addr).filter(|address| !is_link_local(*address));
        let addresses: Vec<IpAddr> = addresses.collect();
        let own = names.into_iter().map(|name| Host { name, addresses: addresses.clone() });
        let devices = self.world.state.devices.iter().map(|device| self.host(device));
        let leased = self
            .world
            .reports
            .leased_names
            .names
            .iter()
            .map(|leased| Host { name: leased.name.clone(), addresses: vec![leased.address.into()] });
        own.chain(devices).chain(leased).collect()
    }

    /// Returns the names of the mesh that this gateway has joined, if its settings accept them. The domain is known without a
    /// connection to the mesh, so its names are never asked upstream.
    fn mesh_names(&self) -> Option<MeshNames> {
        let World { state, config, facts, .. } = &self.world;
        let domain = state.settings.get(MESH_DOMAIN)?.as_str().filter(|_| config.mesh.member.accept_dns)?;
        let nodes = facts.mesh.iter().flat_map(|mesh| &mesh.names).map(|(name, addresses)| Host {
            name: name.clone(),
            addresses: addresses.iter().copied().collect(),
        });
        MeshNames::new(domain, nodes.collect())
    }

    /// Returns a device with the addresses that it uses, and those that the DHCP server has for it.
    fn host(&self, device: &Device) -> Host {
        let macs = device.all_macs();
        let leased = macs.iter().filter_map(|mac| self.world.reports.leased_names.addresses.get(mac));
        let leased = leased.flatten().map(|address| IpAddr::V4(*address));
        let seen = macs.iter().filter_map(|mac| self.world.facts.neighbours.get(&mac.octets())).flatten();
        // A link-local address is of no use in an answer.
        let far = seen.filter(|address| !is_link_local(**address)).copied();
        let addresses: BTreeSet<IpAddr> = far.chain(leased).collect();
        Host { name: device.name.clone(), addresses: addresses.into_iter().collect() }
    }
}

/// Returns the upstream that represents all in the evaluation of policies with destinations.
pub(super) fn first_upstream(plan: &Plan) -> IpAddr {
    let for_all = plan.groups.iter().filter(|group| group.domain.as_ref().is_root());
    let mut values = for_all.flat_map(|group| &group.servers).filter_map(|server| match server.place {
        ServerAddress::Address(address) => Some(address.ip()),
        ServerAddress::Name(..) => None,
    });
    // Documentation address, which no policy names.
    values.next().unwrap_or(IpAddr::from([192, 0, 2, 53]))
}

pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

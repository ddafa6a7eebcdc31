//! Upstreams and the names they serve, computed only from the stored state and the bootstrap file.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gateway_core::dns::{Name, NameRef};
use gateway_model::domain::DomainName;
use gateway_model::kinds::dns_zone::ZoneType;
use gateway_model::kinds::profile::{Profile, ProfileDnsMode};
use gateway_model::kinds::{DnsForwarder, DnsPreset, DnsZone};
use gateway_model::settings::bootstrap::{self, UpstreamMode};
use gateway_model::settings::groups::DnsRotation;
use gateway_model::upstream::{DnsProtocol, Upstream};
use gateway_model::{Id, State};
use hashbrown::HashMap;
use url::Url;

use super::egress::EgressNames;
use super::well_known;
use crate::hooks::{QueryEgress, Secondary, Server, ServerAddress};

/// URL path of a DoH server that is configured by its address alone.
const DNS_QUERY: &str = "/dns-query";

/// All upstreams.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub groups: Vec<Group>,
    pub rotation: DnsRotation,
    /// Display names of their egresses.
    pub called: EgressNames,
    /// Upstreams that cannot be used as configured, with the reason.
    pub problems: Vec<String>,
}

/// Upstreams for the same names.
#[derive(Clone, Debug)]
pub struct Group {
    pub domain: Name,
    pub forwarder: Option<Id>,
    /// Stored egress: `auto`, a tunnel or an uplink.
    pub egress: Arc<str>,
    /// Route of queries from clients whose own egress is the default one.
    pub route: QueryEgress,
    /// Queries request recursion; not so those to the servers of a zone itself.
    pub recursion: bool,
    /// Answers are validated with DNSSEC.
    pub dnssec: bool,
    /// Servers of the group. If empty, names below the domain are never sent upstream.
    pub servers: Vec<Server>,
}

/// Inputs of the plan besides the state.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    pub dns: &'a bootstrap::Dns,
    pub rotation: &'a DnsRotation,
    /// Answers of the upstreams in the bootstrap file are validated with DNSSEC.
    pub dnssec: bool,
    /// Lookup of the current route by this egress (`auto`, a tunnel, an uplink) and through this proxy.
    pub route: &'a dyn Fn(&str, Option<&str>) -> QueryEgress,
}

impl Plan {
    pub fn of(state: &State, given: &PlanInput<'_>) -> Plan {
        let mut plan = Plan { rotation: given.rotation.clone(), ..Plan::default() };
        let asked = |zone: &&DnsZone| matches!(zone.r#type, ZoneType::Forward | ZoneType::Stub);
        let zones = state.dns_zones.iter().filter(|zone| zone.enabled).filter(asked);
        let zones: Vec<Group> = zones.map(|zone| of_zone(zone, given, &mut plan.problems)).collect();
        plan.groups.extend(zones);
        let mut forwarders: Vec<&DnsForwarder> =
            state.dns_forwarders.iter().filter(|forwarder| forwarder.enabled).collect();
        forwarders.sort_by_key(|forwarder| (forwarder.priority, forwarder.meta.id));
        for forwarder in forwarders {
            let domain = Name::from(&forwarder.domain);
            // The first of several groups for one domain is used, and a zone takes precedence over all.
            if plan.groups.iter().all(|group| group.domain != domain) {
                let group = of_forwarder(state, domain, forwarder, given, &mut plan.problems);
                plan.groups.push(group);
            }
        }
        if plan.groups.iter().all(|group| !group.domain.as_ref().is_root()) {
            let group = of_bootstrap(given, &mut plan.problems);
            plan.groups.push(group);
        }
        for profile in state.profiles.iter().filter(|profile| profile.dns.mode == ProfileDnsMode::Custom) {
            of_profile(state, profile, given.dns, &mut plan.problems);
        }
        plan
    }

    /// Returns the index of each group by domain.
    pub fn domains(&self) -> HashMap<Name, usize> {
        self.groups.iter().enumerate().map(|(index, group)| (group.domain.clone(), index)).collect()
    }
}

/// Returns the secondary zones and their primaries. Queries for names in them are never forwarded.
pub fn secondaries(state: &State, bootstrap: &[IpAddr]) -> Vec<Secondary> {
    let zones = state.dns_zones.iter().filter(|zone| zone.enabled && zone.r#type == ZoneType::Secondary);
    let reply = |problem: String| tracing::warn!(problem, "failed to query a primary of a zone");
    zones
        .map(|zone| Secondary {
            id: zone.meta.id,
            zone: Name::from(&zone.name),
            servers: servers(&zone.upstreams, DnsProtocol::Tcp, None, bootstrap, reply),
        })
        .collect()
}

impl Server {
    /// Returns a resolver that is queried without encryption.
    pub fn plain(resolver: SocketAddr) -> Server {
        Server {
            shown: resolver.to_string().into(),
            protocol: DnsProtocol::Udp,
            place: ServerAddress::Address(resolver),
            certificate: None,
            path: String::new(),
            bootstrap: Vec::new(),
        }
    }
}

impl Group {
    pub(super) fn for_all() -> Group {
        Group {
            domain: NameRef::ROOT.to_owned(),
            forwarder: None,
            egress: DnsForwarder::AUTO.into(),
            route: QueryEgress::Default,
            recursion: true,
            dnssec: false,
            servers: Vec::new(),
        }
    }
}

/// Returns the servers that a profile names.
pub fn of_profile(
    state: &State,
    profile: &Profile,
    dns: &bootstrap::Dns,
    problems: &mut Vec<String>,
) -> Vec<Server> {
    let mut problem = |problem: String| problems.push(format!("profiles {}: {problem}", profile.name));
    let bootstrap = &dns.bootstrap_servers;
    if let Some(preset) = state.referred::<DnsPreset>(&profile.dns.preset) {
        let tls_name = preset.tls_name.as_ref();
        return servers(&preset.upstreams, preset.mode.protocol(), tls_name, bootstrap, problem);
    }
    let mut found = Vec::new();
    for text in &profile.dns.upstreams {
        let protocol = if text.contains("://") { DnsProtocol::Https } else { DnsProtocol::Udp };
        found.extend(servers(std::slice::from_ref(text), protocol, None, bootstrap, &mut problem));
    }
    found
}

fn of_zone(zone: &DnsZone, given: &PlanInput<'_>, problems: &mut Vec<String>) -> Group {
    let servers = servers(&zone.upstreams, DnsProtocol::Udp, None, &given.dns.bootstrap_servers, |problem| {
        problems.push(format!("dns_zones {}: {problem}", zone.name.as_str()));
    });
    Group {
        domain: Name::from(&zone.name),
        recursion: zone.r#type == ZoneType::Forward,
        dnssec: zone.dnssec,
        servers,
        ..Group::for_all()
    }
}

fn of_forwarder(
    state: &State,
    domain: Name,
    forwarder: &DnsForwarder,
    given: &PlanInput<'_>,
    problems: &mut Vec<String>,
) -> Group {
    let bootstrap = match forwarder.bootstrap.is_empty() {
        true => &given.dns.bootstrap_servers,
        false => &forwarder.bootstrap,
    };
    let (upstreams, protocol, tls_name) = forwarder.servers(state);
    let servers = servers(upstreams, protocol, tls_name, bootstrap, |problem| {
        problems.push(format!("dns_forwarders {}: {problem}", forwarder.domain.as_str()));
    });
    Group {
        domain,
        forwarder: Some(forwarder.meta.id),
        egress: forwarder.egress.as_str().into(),
        route: (given.route)(&forwarder.egress, forwarder.proxy.as_deref()),
        dnssec: forwarder.dnssec,
        servers,
        ..Group::for_all()
    }
}

fn of_bootstrap(given: &PlanInput<'_>, problems: &mut Vec<String>) -> Group {
    let protocol = match given.dns.upstream_mode {
        UpstreamMode::Plain => DnsProtocol::Udp,
        UpstreamMode::Dot => DnsProtocol::Tls,
        UpstreamMode::Doh => DnsProtocol::Https,
    };
    let named = given.dns.upstream_servers.iter().map(|address| {
        let name = given.dns.upstream_tls_names.get(address).map(String::as_str);
        (*address, name.or_else(|| well_known::name_of(*address)))
    });
    let servers = named.filter_map(|(address, name)| {
        let upstream = Upstream::Address { address, port: None };
        let name = name.filter(|_| protocol.is_encrypted());
        if protocol.is_encrypted() && name.is_none() {
            problems
                .push(format!("dns.upstream_servers: {address} needs its name in dns.upstream_tls_names"));
            return None;
        }
        server(&address.to_string(), upstream, protocol, name, &[])
            .map_err(|problem| problems.push(format!("dns.upstream_servers: {problem}")))
            .ok()
    });
    let servers = servers.collect();
    Group {
        route: (given.route)(DnsForwarder::AUTO, None),
        dnssec: given.dnssec,
        servers,
        ..Group::for_all()
    }
}

fn servers(
    texts: &[String],
    protocol: DnsProtocol,
    tls_name: Option<&DomainName>,
    bootstrap: &[IpAddr],
    mut problem: impl FnMut(String),
) -> Vec<Server> {
    let mut servers = Vec::new();
    for text in texts {
        let read = text.parse().map_err(|()| format!("{text} is no address of a resolver"));
        let made = read.and_then(|upstream| {
            let known = match &upstream {
                Upstream::Address { address, .. } => well_known::name_of(*address),
                _ => None,
            };
            server(text, upstream, protocol, tls_name.map(DomainName::as_str).or(known), bootstrap)
        });
        match made {
            Ok(server) => servers.push(server),
            Err(error) => problem(error),
        }
    }
    servers
}

fn server(
    text: &str,
    upstream: Upstream,
    protocol: DnsProtocol,
    tls_name: Option<&str>,
    bootstrap: &[IpAddr],
) -> Result<Server, String> {
    let usual = match protocol {
        DnsProtocol::Udp | DnsProtocol::Tcp => 53,
        DnsProtocol::Tls | DnsProtocol::Quic => 853,
        DnsProtocol::Https => 443,
    };
    let mut path = DNS_QUERY.to_owned();
    let (place, own_name) = match upstream {
        Upstream::Address { address, port } => {
            (ServerAddress::Address(SocketAddr::new(address, port.unwrap_or(usual))), None)
        }
        Upstream::Name { name, port } => {
            (ServerAddress::Name(Name::from(&name), port.unwrap_or(usual)), Some(name.as_str().to_owned()))
        }
        Upstream::Https(text) => {
            let url = Url::parse(&text).map_err(|error| format!("{text}: {error}"))?;
            let port = url.port().unwrap_or(usual);
            path = match url.query() {
                Some(query) => format!("{}?{query}", url.path()),
                None => url.path().to_owned(),
            };
            match url.host() {
                Some(url::Host::Domain(host)) => {
                    let name = DomainName::parse(host).map_err(|error| format!("{text}: {error}"))?;
                    (ServerAddress::Name(Name::from(&name), port), Some(host.to_owned()))
                }
                Some(url::Host::Ipv4(address)) => {
                    (ServerAddress::Address((address, port).into()), Some(address.to_string()))
                }
                Some(url::Host::Ipv6(address)) => {
                    (ServerAddress::Address((address, port).into()), Some(address.to_string()))
                }
                None => return Err(format!("{text} has no host")),
            }
        }
    };
    let certificate = own_name.or_else(|| tls_name.map(str::to_owned)).filter(|_| protocol.is_encrypted());
    if protocol.is_encrypted() && certificate.is_none() {
        return Err(format!("{text} needs a tls_name"));
    }
    let bootstrap = match place {
        ServerAddress::Address(_) => Vec::new(),
        ServerAddress::Name(..) => bootstrap.to_vec(),
    };
    let path = if protocol == DnsProtocol::Https { path } else { String::new() };
    Ok(Server { shown: text.into(), protocol, place, certificate, path, bootstrap })
}

#[cfg(test)]
mod tests;

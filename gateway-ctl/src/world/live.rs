//! Live state of objects, derived from one world.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::net::IpAddr;

use gateway_core::compile::CompiledPolicy;
use gateway_core::facts::Facts;
use gateway_core::indexes::PolicyIndex;
use gateway_core::state_machines::hosts::Host;
use gateway_model::kinds::device::DeviceLive;
use gateway_model::kinds::proxy::{Proxy, ProxyLive, ProxyStatus};
use gateway_model::kinds::routing_policy::{Hits, Hop, PolicyLive, PolicyStatus};
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::kinds::tunnel_health::{Health, PeerLive, TunnelLive, TunnelStatus};
use gateway_model::validated::PublicKey;
use gateway_model::{Device, Id, RoutingPolicy, Tunnel};
use jiff::Timestamp;

use super::World;
use crate::os::transport::Connection;
use crate::services::hosts::{HostList, vendor};

/// Objects of a world as the API shows them. Counters of policies are read when a policy is shown.
pub struct Live<'a> {
    pub world: World,
    hits: Box<dyn Fn(PolicyIndex) -> Hits + Send + Sync + 'a>,
    places: OnceCell<HashMap<Id, usize>>,
}

/// Returns what was observed of the hosts with the MAC addresses of a device. Without an inventory of hosts, only the
/// addresses of the facts are known.
pub fn device(facts: &Facts, hosts: Option<&HostList>, device: &Device, now: Timestamp) -> DeviceLive {
    let macs = device.all_macs();
    let seen = macs.iter().filter_map(|mac| facts.neighbours.get(&mac.octets()));
    let mut ips: Vec<IpAddr> = seen.flatten().copied().collect();
    let of_device = || macs.iter().flat_map(|mac| hosts.into_iter().flat_map(|hosts| hosts.of(*mac)));
    ips.extend(of_device().filter(|host| host.is_online(now)).flat_map(Host::ips));
    ips.sort_unstable();
    ips.dedup();
    let online = hosts.map(|_| of_device().any(|host| host.is_online(now)));
    DeviceLive {
        ips,
        online,
        first_seen: of_device().map(|host| host.first_seen).min(),
        last_seen: of_device().map(|host| host.last_seen).max(),
        vendor: macs.iter().find_map(|mac| vendor(*mac)).map(str::to_owned),
    }
}

impl<'a> Live<'a> {
    /// Creates the view. `hits` reads the packets and bytes of a policy, by policy index.
    pub fn new(world: World, hits: impl Fn(PolicyIndex) -> Hits + Send + Sync + 'a) -> Live<'a> {
        Live { world, hits: Box::new(hits), places: OnceCell::new() }
    }

    pub fn tunnel(&self, tunnel: &Tunnel) -> TunnelLive {
        let seen = &self.world.reports.tunnels.tunnels;
        let mut live = seen.get(&tunnel.meta.id).cloned().unwrap_or_default();
        // The compiler may have rejected the settings that the server pushed.
        let leg = self.world.live().legs.of_tunnel(tunnel.meta.id);
        let refused = leg.filter(|leg| !leg.usable && live.healthy);
        if let Some(leg) = refused.filter(|_| tunnel.r#type == TunnelType::Openvpn) {
            (live.status, live.health, live.healthy) = (TunnelStatus::Degraded, Health::Unhealthy, false);
            live.last_error = Some(leg.reason.clone());
            live.uptime_sec = None;
        }
        live
    }

    pub fn proxy(&self, proxy: &Proxy) -> ProxyLive {
        let status = if proxy.enabled { ProxyStatus::Unknown } else { ProxyStatus::Disabled };
        let unseen = ProxyLive { status, ..ProxyLive::default() };
        self.world.reports.proxies.proxies.get(&proxy.meta.id).cloned().unwrap_or(unseen)
    }

    /// Returns the bridge that transports a tunnel; `None` if no bridge is active.
    pub fn transport(&self, tunnel: Id) -> Option<&Connection> {
        self.world.reports.transports.get(&tunnel.to_string())
    }

    /// Returns the status of a segment; `None` if nothing is enforced.
    pub fn segment(&self, bridge: Id) -> Option<PolicyStatus> {
        let plan = self.world.live();
        let compiled = plan.policies.iter().find(|policy| policy.id == bridge);
        let live = self.at_work(compiled.filter(|_| self.is_enforced())?);
        let finding = plan.findings.iter().any(|finding| finding.policy == Some(bridge));
        Some(if finding { PolicyStatus::Error } else { live.status })
    }

    /// Reports whether a kernel enforces the plan.
    pub fn is_enforced(&self) -> bool {
        self.world.attached.is_some()
    }

    pub fn peer(&self, tunnel: &Tunnel, key: &PublicKey) -> PeerLive {
        self.world.reports.tunnels.peers.get(&(tunnel.meta.id, *key.bytes())).cloned().unwrap_or_default()
    }

    /// Returns the live state of a policy. A policy that is not in force is `disabled`, or `pending` if it is enabled
    /// but not applied yet.
    pub fn policy(&self, policy: &RoutingPolicy) -> PolicyLive {
        let all = &self.world.live().policies;
        let places =
            self.places.get_or_init(|| all.iter().enumerate().map(|(n, policy)| (policy.id, n)).collect());
        let compiled = places.get(&policy.meta.id).and_then(|place| all.get(*place));
        let unapplied = || {
            let applied = self.world.state.applied.policies.get(policy.meta.id);
            let waits = applied.is_none_or(|applied| !applied.enabled);
            let status = if policy.enabled && waits { PolicyStatus::Pending } else { PolicyStatus::Disabled };
            PolicyLive { status, ..PolicyLive::default() }
        };
        compiled.map_or_else(unapplied, |policy| self.at_work(policy))
    }

    /// Reports whether new flows of the policy use this hop.
    pub fn is_active(&self, policy: &RoutingPolicy, hop: &Hop) -> bool {
        let live = self.policy(policy);
        live.routing && (policy.is_pool() || live.active_hop.as_ref() == Some(hop))
    }

    fn at_work(&self, policy: &CompiledPolicy) -> PolicyLive {
        let status = &self.world.status;
        // A plan that is not in the kernel routes nothing.
        let installed = self.is_enforced() && status.is_plan_in_force();
        PolicyLive {
            routing: installed,
            status: if installed { policy.status } else { PolicyStatus::Error },
            compiled_at: (status.run > 0).then_some(status.started),
            hits: policy.number.map(|policy| (self.hits)(policy)).unwrap_or_default(),
            active_hop: policy.active_hop.clone().filter(|_| installed),
        }
    }
}

//! Watches the tunnels: decides by their handshakes which of them are usable, resolves their endpoint names, and
//! recreates a tunnel after a long silence.

mod changes;
mod cover;
mod drained;
mod exit_addresses;
mod health;
mod liveness;
mod openvpn;
mod probes;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::compile::{bridge_refusal, tunnel_interface};
use gateway_core::facts::{Facts, TunnelFact};
use gateway_core::plan::Plan;
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::kinds::tunnel_health::{Health, PeerLive, TunnelLive, TunnelStatus};
use gateway_model::settings::groups::CoverSettings;
use gateway_model::{Id, State, Tunnel};
use gateway_outbound::Egress;
use jiff::Timestamp;

use crate::clock::handshake_time;
use crate::os::wireguard::DeviceStatus;
use crate::reconcile::{Handle, Reason};
use crate::service::{Context, Service};
use crate::world::reports::tunnels::TunnelStates;

pub(crate) use exit_addresses::ExitAddresses;
pub(crate) use health::HealthVerdict;

type DefaultRoute = Option<(String, Option<std::net::IpAddr>)>;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Delays, in seconds, of the repeated keepalives after the default route changed. The first packet over another egress
/// may be lost while that egress is not ready, and an idle tunnel sends no second one.
const HANDSHAKE_RETRY_SECONDS: [u64; 5] = [1, 3, 7, 15, 31];
/// Minimum time between two recreations of a tunnel.
const RECONNECT: Duration = Duration::from_secs(60);

/// Watcher of the tunnels.
struct Tunnels {
    context: Context,
    resolver: resolve::Resolver,
    probes: probes::Probes,
    liveness: liveness::LivenessChecks,
    /// Interface and gateway of the default route, for each address family.
    default_routes: [DefaultRoute; 2],
    /// Times of the remaining keepalives after the default route changed, latest first.
    again: Vec<tokio::time::Instant>,
    /// Time of the last recreation of each tunnel.
    reconnected: BTreeMap<Id, tokio::time::Instant>,
}

/// Returns the service that watches the tunnels.
pub(crate) fn service(context: &Context) -> Service {
    let worlds = context.worlds.clone();
    Service::vital("tunnel_watcher", Tunnels::new(context.clone()).run())
        .contributes(move |facts| worlds.last().reports.tunnels.enrich(facts))
}

/// Reports whether an interface of `known` is gone, and replaces `known` by the present ones.
fn has_lost_a_link(known: &mut BTreeSet<String>, facts: &Facts) -> bool {
    let present = facts.links.keys().cloned().collect();
    let before = std::mem::replace(known, present);
    !before.is_subset(known)
}

impl Tunnels {
    fn new(context: Context) -> Tunnels {
        Tunnels {
            resolver: resolve::Resolver::new(context.endpoint_names.clone()),
            context,
            probes: probes::Probes::default(),
            liveness: liveness::LivenessChecks::default(),
            default_routes: Default::default(),
            again: Vec::new(),
            reconnected: BTreeMap::new(),
        }
    }

    /// Returns the states at the last poll.
    fn reported(&self) -> Arc<TunnelStates> {
        self.context.worlds.last().reports.tunnels.clone()
    }

    /// Polls the tunnels once a second, when an interface is gone and when a process has changed. Wakes the reconcile loop
    /// when one of its inputs changes.
    async fn run(mut self) {
        let handle = self.context.wake.clone();
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut changes = self.context.store.watch();
        let mut processes = self.context.engines.openvpn.changes();
        let mut facts = handle.facts();
        let mut links = BTreeSet::new();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Ok(()) = processes.changed() => {}
                // An interface that another program deletes is a tunnel that is down. New ones have no routes yet.
                Ok(()) = facts.changed() => if !has_lost_a_link(&mut links, &facts.borrow_and_update()) {
                    continue;
                },
                changed = changes.changed() => if changed.is_err() { return },
                outcome = self.probes.outcome() => {
                    let now = self.context.store.clock().boot();
                    if !self.probes.take(outcome, now) {
                        continue;
                    }
                }
            }
            let state = self.context.store.current();
            self.context.engines.wireguard.set_cover(&state.group::<CoverSettings>()).await;
            self.follow_the_uplink(&state, &handle).await;
            let states = self.poll(&state, &handle).await;
            let before = self.reported();
            let acts = before.facts != states.facts || before.endpoints != states.endpoints;
            let stale: Vec<Id> = states
                .tunnels
                .iter()
                .filter(|(_, live)| live.status == gateway_model::kinds::tunnel_health::TunnelStatus::Error)
                .map(|(id, _)| *id)
                .collect();
            changes::log(&state, &before, &states);
            self.context.worlds.report(|reports| reports.tunnels = Arc::new(states));
            if acts {
                handle.wake(Reason::Facts);
            }
            for id in stale {
                self.reconnect(&state, id, &handle).await;
            }
        }
    }

    async fn poll(&mut self, state: &State, handle: &Handle) -> TunnelStates {
        let (facts, plan) = (handle.facts().borrow().clone(), handle.compiled().borrow().clone());
        let before = self.reported();
        let (now, boot) = (self.context.store.clock().now(), self.context.store.clock().boot());
        self.probes.keep(|id| state.tunnels.contains(id));
        self.liveness.keep(|id| state.tunnels.contains(id));
        let outer = |tunnel: &Tunnel| match tunnel.bridge {
            None => Some(Egress::marked(plan.plan.wireguard.get(&tunnel_interface(tunnel))?.fwmark)),
            Some(_) => {
                let mark = plan.plan.transports.get(&tunnel.meta.id.to_string())?.mark;
                Some(Egress { mark, proxy: None })
            }
        };
        let mut connected = Facts::default();
        self.context.engines.transports.enrich(&mut connected);
        let endpoints = self.resolver.poll(state, &before, now, outer);
        let mut states = TunnelStates { endpoints, ..TunnelStates::default() };
        for tunnel in state.tunnels.iter().filter(|tunnel| tunnel.r#type == TunnelType::Wireguard) {
            let id = tunnel.meta.id;
            let status = match self.context.engines.wireguard.status(&tunnel_interface(tunnel)).await {
                Ok(status) => status,
                Err(error) => {
                    tracing::warn!(tunnel = %tunnel.name, %error, "failed to read the state of the tunnel");
                    None
                }
            };
            self.context
                .engines
                .transports
                .set_device_port(&id.to_string(), status.as_ref().map_or(0, |status| status.listen_port));
            states
                .cover
                .insert(id, cover::of(&self.context.engines.wireguard, &tunnel_interface(tunnel)).await);
            let checked = drained::checked(tunnel, now);
            let itself = health::evaluate_health(&checked, status.as_ref(), handshake_time());
            let addresses = facts.addresses.get(&tunnel_interface(tunnel));
            let links = liveness::links_of_wireguard(tunnel, status.as_ref());
            let itself = self.liveness.check(&checked, links, addresses, itself, boot);
            if self.liveness.is_suspect(tunnel, boot) {
                self.probes.probe_now(id, boot);
            }
            let health = self.probes.evaluate_health(&checked, addresses, itself, boot);
            let refusal =
                bridge_refusal(state, &connected, tunnel).or_else(|| address_refusal(&plan.plan, tunnel));
            let health = match refusal.filter(|_| checked.wanted_up()) {
                Some(reason) => HealthVerdict {
                    status: TunnelStatus::Down,
                    health: Health::Unhealthy,
                    usable: false,
                    reason,
                },
                None => health,
            };
            for peer in status.iter().flat_map(|status| &status.peers) {
                let handshake = peer.last_handshake.and_then(|at| Timestamp::try_from(at).ok());
                let live = PeerLive { last_handshake: handshake, rx: peer.rx_bytes, tx: peer.tx_bytes };
                states.peers.insert((id, peer.public_key), live);
            }
            let fact =
                TunnelFact { usable: health.usable, reason: health.reason.clone(), ..TunnelFact::default() };
            states.facts.insert(id.to_string(), fact);
            let health = match tunnel.wanted_up() {
                true => health,
                false => health::evaluate_health(tunnel, status.as_ref(), handshake_time()),
            };
            let mut live = live(tunnel, status.as_ref(), &health, before.tunnels.get(&id), now);
            if let Some(bridge) = plan.plan.transports.get(&id.to_string()) {
                live.endpoint_ip = bridge.address.map(|address| address.ip());
            }
            self.probes.measured(id, &mut live);
            self.context.handles.get::<ExitAddresses>().add_to(id, &mut live, before.tunnels.get(&id));
            states.tunnels.insert(id, live);
        }
        for tunnel in state.tunnels.iter().filter(|tunnel| tunnel.r#type == TunnelType::Openvpn) {
            let id = tunnel.meta.id;
            let status = self.context.engines.openvpn.status(&id.to_string());
            let checked = drained::checked(tunnel, now);
            let itself = openvpn::evaluate_health(&checked, status.as_ref());
            let addresses = facts.addresses.get(&tunnel_interface(tunnel));
            let links = liveness::links_of_openvpn(tunnel, status.as_ref());
            let itself = self.liveness.check(&checked, links, addresses, itself, boot);
            if self.liveness.is_suspect(tunnel, boot) {
                self.probes.probe_now(id, boot);
            }
            let health = self.probes.evaluate_health(&checked, addresses, itself, boot);
            states.facts.insert(id.to_string(), openvpn::fact(status.as_ref(), &health));
            let health = match tunnel.wanted_up() {
                true => health,
                false => openvpn::evaluate_health(tunnel, status.as_ref()),
            };
            let mut live = openvpn::live(tunnel, status, health, before.tunnels.get(&id), now);
            self.probes.measured(id, &mut live);
            self.context.handles.get::<ExitAddresses>().add_to(id, &mut live, before.tunnels.get(&id));
            states.tunnels.insert(id, live);
        }
        states
    }

    /// Sends keepalives when the default route changes, so that the remote ends of the tunnels over it learn the
    /// new path at once.
    async fn follow_the_uplink(&mut self, state: &State, handle: &Handle) {
        let facts = handle.facts().borrow().clone();
        let best = |ipv6: bool| {
            let routes = facts.default_routes.iter().filter(|route| route.ipv6 == ipv6);
            routes.min_by_key(|route| route.metric).map(|route| (route.interface.clone(), route.gateway))
        };
        let best_routes = [best(false), best(true)];
        let now = tokio::time::Instant::now();
        if std::mem::replace(&mut self.default_routes, best_routes.clone()) != best_routes {
            self.again = HANDSHAKE_RETRY_SECONDS
                .iter()
                .rev()
                .map(|seconds| now + Duration::from_secs(*seconds))
                .collect();
            self.context.engines.transports.renew(Some(Mark::OWN));
        } else if self.again.pop_if(|at| *at <= now).is_none() {
            return;
        }
        for tunnel in state.tunnels.iter().filter(|tunnel| tunnel.wanted_up()) {
            if let Err(error) =
                self.context.engines.wireguard.trigger_handshake(&tunnel_interface(tunnel)).await
            {
                tracing::warn!(tunnel = %tunnel.name, %error, "failed to trigger a handshake of the tunnel");
            }
        }
    }

    async fn reconnect(&mut self, state: &State, id: Id, handle: &Handle) {
        let now = tokio::time::Instant::now();
        if self.reconnected.get(&id).is_some_and(|last| now.duration_since(*last) < RECONNECT) {
            return;
        }
        let wireguard = |tunnel: &&Arc<Tunnel>| tunnel.r#type == TunnelType::Wireguard;
        let Some(tunnel) = state.tunnels.get(id).filter(wireguard) else { return };
        self.reconnected.insert(id, now);
        // The change of status is in the log already; this repeats while the peer is silent.
        tracing::debug!(tunnel = %tunnel.name, "no handshake for too long: recreating the tunnel");
        if let Err(error) = self.context.engines.wireguard.remove(&tunnel_interface(tunnel)).await {
            tracing::warn!(tunnel = %tunnel.name, %error, "failed to remove the silent tunnel");
        }
        self.context.worlds.report(|reports| {
            if let Some(live) = Arc::make_mut(&mut reports.tunnels).tunnels.get_mut(&id) {
                live.restarts += 1;
            }
        });
        handle.wake(Reason::Facts);
    }
}

/// Returns why a tunnel has no address though the plan has its device: the compiler refuses addresses of others.
fn address_refusal(plan: &Plan, tunnel: &Tunnel) -> Option<String> {
    let interface = tunnel_interface(tunnel);
    let is_set = plan.addresses.keys().any(|key| key.interface == interface);
    if is_set || tunnel.addresses.is_empty() || !plan.wireguard.contains_key(&interface) {
        return None;
    }
    let addresses: Vec<String> =
        tunnel.addresses.iter().map(|address| address.net().addr().to_string()).collect();
    let addresses = addresses.join(", ");
    Some(format!("an address of {addresses} is one of this host, of a router or of a network of the LAN"))
}

fn live(
    tunnel: &Tunnel,
    status: Option<&DeviceStatus>,
    health: &HealthVerdict,
    before: Option<&TunnelLive>,
    now: Timestamp,
) -> TunnelLive {
    let peers = || status.into_iter().flat_map(|status| &status.peers);
    let same = before.filter(|before| before.status == health.status);
    let last_change = same.and_then(|before| before.last_change).unwrap_or(now);
    let up = matches!(health.status, gateway_model::kinds::tunnel_health::TunnelStatus::Up);
    TunnelLive {
        status: health.status,
        health: health.health,
        healthy: health.usable,
        interface: status.map(|_| tunnel_interface(tunnel)),
        last_error: (!health.reason.is_empty()).then(|| health.reason.clone()),
        last_change: Some(last_change),
        uptime_sec: up.then(|| u64::try_from(now.duration_since(last_change).as_secs()).unwrap_or_default()),
        rx_bytes: peers().map(|peer| peer.rx_bytes).sum(),
        tx_bytes: peers().map(|peer| peer.tx_bytes).sum(),
        endpoint_ip: peers().find_map(|peer| peer.endpoint).map(|endpoint| endpoint.ip()),
        restarts: before.map_or(0, |before| before.restarts),
        ..TunnelLive::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interface_that_is_gone_is_a_loss() {
        let mut known = BTreeSet::new();
        let mut is_lost = |names: &[&str]| {
            let mut facts = Facts::default();
            facts.links.extend(names.iter().map(|name| ((*name).into(), Default::default())));
            has_lost_a_link(&mut known, &facts)
        };
        assert!(!is_lost(&["eth0"]) && !is_lost(&["eth0", "wg-a"]));
        assert!(is_lost(&["eth0"]) && !is_lost(&["eth0"]) && is_lost(&["wg-a"]));
    }
}

//! Health by probes: sends the due probes and combines their outcomes with the state that the tunnel itself reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use gateway_core::compile::{leg_number, tunnel_interface};
use gateway_core::indexes::LegId;
use gateway_core::state_machines::tunnel_health::{ProbeId, TunnelHealth};
use gateway_model::kinds::tunnel_health::{Health, HealthCheck, Probe, TunnelLive, TunnelStatus};
use gateway_model::{Id, Tunnel};
use ipnet::IpNet;
use tokio::sync::mpsc;

use super::health::HealthVerdict;
use crate::random;
use crate::services::probe;
use gateway_outbound::SocketBinding;

/// Outcome of a probe.
#[derive(Debug)]
pub(super) struct Outcome {
    tunnel: Id,
    ticket: ProbeId,
    /// Round-trip time; `None` if there was no reply.
    took: Option<Duration>,
}

/// Probes of all tunnels.
#[derive(Debug)]
pub(super) struct Probes {
    watched: BTreeMap<Id, TunnelProbe>,
    sender: mpsc::UnboundedSender<Outcome>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
}

#[derive(Debug)]
struct TunnelProbe {
    check: HealthCheck,
    probe: Probe,
    health: TunnelHealth,
}

impl Default for Probes {
    fn default() -> Self {
        let (sender, outcomes) = mpsc::unbounded_channel();
        Self { watched: BTreeMap::new(), sender, outcomes }
    }
}

impl Probes {
    /// Waits for a probe to complete. Stays pending while none does.
    pub(super) async fn outcome(&mut self) -> Outcome {
        match self.outcomes.recv().await {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }

    /// Records an outcome. Returns `true` if the health of the tunnel changed.
    pub(super) fn take(&mut self, outcome: Outcome, now: Duration) -> bool {
        let Some(watched) = self.watched.get_mut(&outcome.tunnel) else { return false };
        let before = watched.health.health();
        let random = random::fraction();
        watched.health.handle_outcome(outcome.ticket, outcome.took, &watched.check, now, random);
        watched.health.health() != before
    }

    /// Drops the tunnels that no longer exist.
    pub(super) fn keep(&mut self, is_there: impl Fn(Id) -> bool) {
        self.watched.retain(|id, _| is_there(*id));
    }

    /// Sends a probe if one is due. Returns the health of the tunnel by the outcomes of earlier probes. `addresses`
    /// are those of the tunnel's interface.
    pub(super) fn evaluate_health(
        &mut self,
        tunnel: &Tunnel,
        addresses: Option<&BTreeSet<IpNet>>,
        itself: HealthVerdict,
        now: Duration,
    ) -> HealthVerdict {
        let id = tunnel.meta.id;
        let probe = tunnel.health_check.probe(&tunnel.dns).ok().flatten();
        let (Some(probe), Some(number)) = (probe, leg_number(tunnel)) else {
            self.watched.remove(&id);
            return itself;
        };
        let watched = self.watched.entry(id).or_insert_with(|| TunnelProbe {
            check: tunnel.health_check.clone(),
            probe: probe.clone(),
            health: TunnelHealth::default(),
        });
        if (&watched.check, &watched.probe) != (&tunnel.health_check, &probe) {
            *watched =
                TunnelProbe { check: tunnel.health_check.clone(), probe, health: TunnelHealth::default() };
        }
        if let Some(ticket) = watched.health.handle_time(itself.usable, now) {
            let binding = SocketBinding {
                interface: tunnel_interface(tunnel),
                source: source(addresses, watched.probe.address()),
                mark: LegId::host_mark(Some(number)),
            };
            let (probe, sender) = (watched.probe.clone(), self.sender.clone());
            let timeout = Duration::from_secs(watched.check.timeout_sec.into());
            tokio::spawn(async move {
                let took = probe::send(&probe, &binding, timeout).await;
                // Without a receiver, the watcher has ended.
                let _ = sender.send(Outcome { tunnel: id, ticket, took });
            });
        }
        let not_usable = |status, health, reason| HealthVerdict { status, health, usable: false, reason };
        match watched.health.health() {
            _ if !itself.usable => itself,
            Health::Healthy => HealthVerdict { health: Health::Healthy, ..itself },
            Health::Unknown => not_usable(
                TunnelStatus::Connecting,
                Health::Unknown,
                format!("{} has no answer yet", watched.probe),
            ),
            Health::Unhealthy => not_usable(
                TunnelStatus::Degraded,
                Health::Unhealthy,
                format!("{} has no answer", watched.probe),
            ),
        }
    }

    /// Makes the next probe of a tunnel due at once.
    pub(super) fn probe_now(&mut self, tunnel: Id, now: Duration) {
        if let Some(watched) = self.watched.get_mut(&tunnel) {
            watched.health.probe_now(now);
        }
    }

    /// Adds latency and loss from the probes.
    pub(super) fn measured(&self, tunnel: Id, live: &mut TunnelLive) {
        let Some(watched) = self.watched.get(&tunnel) else { return };
        // A round trip through a process is not accurate beyond microseconds.
        let millis = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        live.latency_ms = watched.health.latency().map(millis);
        live.loss_pct = watched.health.loss_pct();
    }
}

/// Returns the address of an interface from which a destination is reachable.
pub(super) fn source(addresses: Option<&BTreeSet<IpNet>>, to: IpAddr) -> Option<IpAddr> {
    let link_local = |address: &IpAddr| match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    let addresses = addresses.into_iter().flatten().map(IpNet::addr);
    let mut of_family = addresses.filter(|address| address.is_ipv6() == to.is_ipv6());
    of_family.find(|address| !link_local(address))
}

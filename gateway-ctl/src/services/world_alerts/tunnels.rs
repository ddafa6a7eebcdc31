//! Alerts of tunnels: down, flapping, and an old handshake. The subject is the ID of the tunnel.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gateway_model::State;
use gateway_model::id::Id;
use gateway_model::kinds::Tunnel;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::kinds::tunnel_health::{TunnelLive, TunnelStatus};
use jiff::Timestamp;

use crate::services::active_alerts::ActiveAlerts;
use crate::world::reports::tunnels::TunnelStates;

/// Time that a tunnel has to connect before it counts as down. A handshake is tried every 5 s.
const CONNECT_TIME: Duration = Duration::from_secs(60);
/// Age of a handshake that is reported. WireGuard renews a session that is used after two minutes.
const OLD_HANDSHAKE_SECONDS: i64 = 120;
/// Window in which changes are counted if the rule has none.
const FLAP_WINDOW: Duration = Duration::from_secs(600);
/// Maximum number of changes that are counted.
const MAX_CHANGES: usize = 256;

/// Tunnels as they were observed in this run.
#[derive(Debug, Default)]
pub(super) struct Tunnels(BTreeMap<Id, Observed>);

#[derive(Debug, Default)]
struct Observed {
    /// Time since which it should be up.
    wanted_since: Duration,
    /// It was up since then.
    was_up: bool,
    is_down: bool,
    /// Times at which it went down.
    downs: VecDeque<Duration>,
}

/// Observed state of a tunnel that should be up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reachability {
    Up,
    Down,
    /// It has not connected yet, and has some time left for it.
    Unknown,
}

impl Tunnels {
    pub(super) fn report(
        &mut self,
        alerts: &ActiveAlerts,
        state: &State,
        states: &TunnelStates,
        boot: Duration,
        now: Timestamp,
    ) {
        let wanted: BTreeMap<Id, &Tunnel> =
            state.tunnels.iter().filter(|tunnel| tunnel.wanted_up()).map(|it| (it.meta.id, it)).collect();
        self.0.retain(|id, _| wanted.contains_key(id));
        let window = flap_window(state);
        for (id, tunnel) in &wanted {
            let observed =
                self.0.entry(*id).or_insert_with(|| Observed { wanted_since: boot, ..Observed::default() });
            let live = states.tunnels.get(id);
            let reachability = observed.follow(live, boot);
            observed.downs.retain(|at| boot.saturating_sub(*at) < window);
            report_down(alerts, tunnel, reachability, live);
            report_flaps(alerts, tunnel, observed.downs.len());
            report_handshake(alerts, tunnel, states, now);
        }
        let is_wanted = |subject: &str| subject.parse().is_ok_and(|id: Id| wanted.contains_key(&id));
        for kind in [AlertKind::TunnelDown, AlertKind::TunnelFlapping, AlertKind::HandshakeStale] {
            alerts.keep(kind, is_wanted);
        }
    }
}

impl Observed {
    fn follow(&mut self, live: Option<&TunnelLive>, boot: Duration) -> Reachability {
        let reachability = match live.map(|live| (live.status, live.healthy)) {
            Some((TunnelStatus::Up, _) | (_, true)) => Reachability::Up,
            Some((TunnelStatus::Degraded | TunnelStatus::Error, _)) => Reachability::Down,
            _ if self.was_up || boot.saturating_sub(self.wanted_since) >= CONNECT_TIME => Reachability::Down,
            _ => Reachability::Unknown,
        };
        self.was_up |= reachability == Reachability::Up;
        let is_down = reachability == Reachability::Down;
        if is_down && !self.is_down && self.was_up {
            if self.downs.len() == MAX_CHANGES {
                self.downs.pop_front();
            }
            self.downs.push_back(boot);
        }
        self.is_down = is_down;
        reachability
    }
}

fn report_down(
    alerts: &ActiveAlerts,
    tunnel: &Tunnel,
    reachability: Reachability,
    live: Option<&TunnelLive>,
) {
    let id = tunnel.meta.id.to_string();
    match reachability {
        Reachability::Up => alerts.clear(AlertKind::TunnelDown, &id),
        Reachability::Unknown => {}
        Reachability::Down => {
            let status = live.map_or(TunnelStatus::Connecting, |live| live.status);
            let reason = live.and_then(|live| live.last_error.as_deref()).unwrap_or("it does not connect");
            let message = format!("the tunnel {} is {status}: {reason}", tunnel.name);
            alerts.raise(AlertKind::TunnelDown, &id, message);
        }
    }
}

/// Reports the number of times that a tunnel went down in the window of the rule.
fn report_flaps(alerts: &ActiveAlerts, tunnel: &Tunnel, downs: usize) {
    let id = tunnel.meta.id.to_string();
    match downs {
        0 => alerts.clear(AlertKind::TunnelFlapping, &id),
        _ => {
            let message = format!("the tunnel {} went down {downs} times", tunnel.name);
            alerts.measure(AlertKind::TunnelFlapping, &id, downs as f64, message);
        }
    }
}

/// Reports the age of the last handshake of a WireGuard tunnel. Without keepalives, silence is normal.
fn report_handshake(alerts: &ActiveAlerts, tunnel: &Tunnel, states: &TunnelStates, now: Timestamp) {
    let id = tunnel.meta.id.to_string();
    let keeps_alive =
        tunnel.peers.iter().any(|peer| peer.persistent_keepalive.unwrap_or(tunnel.keepalive) > 0);
    if tunnel.r#type != TunnelType::Wireguard || !keeps_alive {
        return alerts.clear(AlertKind::HandshakeStale, &id);
    }
    let peers = states.peers.iter().filter(|((tunnel, _), _)| tunnel.to_string() == id);
    let Some(last) = peers.filter_map(|(_, peer)| peer.last_handshake).max() else { return };
    let age = now.duration_since(last).as_secs();
    if age < OLD_HANDSHAKE_SECONDS {
        return alerts.clear(AlertKind::HandshakeStale, &id);
    }
    let message = format!("the last handshake of the tunnel {} was at {last:.0}", tunnel.name);
    alerts.measure(AlertKind::HandshakeStale, &id, age as f64, message);
}

fn flap_window(state: &State) -> Duration {
    let rule = state.alert_rules.by_key(AlertKind::TunnelFlapping.as_str());
    let seconds = rule.map_or(0, |rule| rule.window_sec);
    if seconds == 0 { FLAP_WINDOW } else { Duration::from_secs(seconds.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(status: TunnelStatus) -> TunnelLive {
        TunnelLive { status, healthy: status == TunnelStatus::Up, ..TunnelLive::default() }
    }

    #[test]
    fn tunnel_that_has_not_connected_yet_is_unknown_for_a_minute() {
        let mut observed = Observed::default();
        let connecting = live(TunnelStatus::Connecting);
        let at = |observed: &mut Observed, second, live: &TunnelLive| {
            observed.follow(Some(live), Duration::from_secs(second))
        };
        assert_eq!(at(&mut observed, 59, &connecting), Reachability::Unknown);
        assert_eq!(at(&mut observed, 60, &connecting), Reachability::Down);
        assert_eq!(observed.downs.len(), 0, "it was never up");
        assert_eq!(at(&mut observed, 61, &live(TunnelStatus::Up)), Reachability::Up);
        assert_eq!(at(&mut observed, 62, &connecting), Reachability::Down, "it was reset");
        assert_eq!(at(&mut observed, 63, &live(TunnelStatus::Error)), Reachability::Down);
        assert_eq!(observed.downs.len(), 1);
    }
}

//! One line in the log for each change of a tunnel's status, with the tunnel's name. The WireGuard library itself would
//! repeat lines without a name for as long as a peer is silent.

use gateway_model::kinds::tunnel_health::TunnelStatus;
use gateway_model::{Id, State};

use crate::world::reports::tunnels::TunnelStates;

/// Change of status that is worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StatusChange<'a> {
    tunnel: &'a str,
    status: TunnelStatus,
    reason: &'a str,
}

impl StatusChange<'_> {
    fn is_failure(&self) -> bool {
        matches!(self.status, TunnelStatus::Degraded | TunnelStatus::Error)
    }
}

/// Writes the changes of status since the last poll.
pub(super) fn log(state: &State, before: &TunnelStates, now: &TunnelStates) {
    let tunnels = state.tunnels.iter().map(|tunnel| (tunnel.meta.id, tunnel.name.as_str()));
    for change in changes(tunnels, before, now) {
        let is_failure = change.is_failure();
        let StatusChange { tunnel, status, reason } = change;
        if is_failure {
            tracing::warn!(tunnel, %status, reason, "the tunnel has failed");
        } else {
            tracing::info!(tunnel, %status, reason, "the status of the tunnel has changed");
        }
    }
}

fn changes<'a>(
    tunnels: impl Iterator<Item = (Id, &'a str)>,
    before: &TunnelStates,
    now: &'a TunnelStates,
) -> Vec<StatusChange<'a>> {
    let change = |(id, tunnel)| {
        let live = now.tunnels.get(&id)?;
        let before = before.tunnels.get(&id).map_or(TunnelStatus::Down, |live| live.status);
        let reason = live.last_error.as_deref().unwrap_or_default();
        (before != live.status).then_some(StatusChange { tunnel, status: live.status, reason })
    };
    tunnels.filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::tunnel_health::TunnelLive;

    use super::*;

    #[test]
    fn a_tunnel_that_stays_silent_is_one_line_with_its_name() {
        let id: Id = "6f1c0f5e-6f9e-4a8e-9d0a-0123456789ab".parse().expect("an id");
        let states = |status, reason: &str| {
            let live = TunnelLive { status, last_error: Some(reason.into()), ..TunnelLive::default() };
            TunnelStates { tunnels: [(id, live)].into(), ..TunnelStates::default() }
        };
        let polls = [
            (TunnelStatus::Down, "it is down"),
            (TunnelStatus::Connecting, "no handshake yet"),
            (TunnelStatus::Connecting, "no handshake yet"),
            (TunnelStatus::Degraded, "the remote end is silent"),
            (TunnelStatus::Degraded, "the remote end is silent"),
            (TunnelStatus::Degraded, "no handshake for more than 3 minutes"),
            (TunnelStatus::Up, ""),
        ];
        let mut before = TunnelStates::default();
        let mut lines = Vec::new();
        for (status, reason) in polls {
            let now = states(status, reason);
            let change =
                |change: StatusChange<'_>| (change.tunnel.to_owned(), change.status, change.is_failure());
            lines.extend(changes([(id, "wg-a")].into_iter(), &before, &now).into_iter().map(change));
            before = now;
        }
        let name = || "wg-a".to_owned();
        let expected = [
            (name(), TunnelStatus::Connecting, false),
            (name(), TunnelStatus::Degraded, true),
            (name(), TunnelStatus::Up, false),
        ];
        assert_eq!(lines, expected);
    }
}

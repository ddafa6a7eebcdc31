//! Health of tunnels that drain. It is checked as if they were up: a tunnel that a user brings up again while it has flows
//! would otherwise count as unusable until its next check, and its flows would be reset in between.

use std::borrow::Cow;

use gateway_core::compile::may_drain;
use gateway_model::Tunnel;
use gateway_model::kinds::tunnel::AdminState;
use jiff::Timestamp;

/// Returns the tunnel by which the health is checked.
pub(super) fn checked(tunnel: &Tunnel, now: Timestamp) -> Cow<'_, Tunnel> {
    match may_drain(tunnel, now) {
        true => Cow::Owned(Tunnel { admin_state: AdminState::Up, ..tunnel.clone() }),
        false => Cow::Borrowed(tunnel),
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::compile::DRAIN;

    use super::*;

    #[test]
    fn tunnel_counts_as_up_while_it_may_have_flows() {
        let down_since: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
        let mut tunnel = Tunnel { enabled: true, ..Tunnel::default() };
        tunnel.set_admin_state(AdminState::Up, down_since);
        tunnel.set_admin_state(AdminState::Down, down_since);
        let after = |tunnel: &Tunnel, seconds: i64| {
            let now = down_since + jiff::SignedDuration::from_secs(seconds);
            checked(tunnel, now).wanted_up()
        };
        assert!(after(&tunnel, 0) && after(&tunnel, DRAIN.as_secs() - 1));
        assert!(!after(&tunnel, DRAIN.as_secs()));
        tunnel.enabled = false;
        assert!(!after(&tunnel, 1));
    }
}

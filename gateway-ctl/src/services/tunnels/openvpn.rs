//! Health of an OpenVPN tunnel from the state of its process. Pure.
//!
//! The process itself detects by pings that its server has gone silent.

use gateway_core::compile::tunnel_interface;
use gateway_core::facts::TunnelFact;
use gateway_model::Tunnel;
use gateway_model::kinds::tunnel_health::{Health, TunnelLive, TunnelStatus};
use jiff::Timestamp;

use super::health::HealthVerdict;
use crate::os::openvpn::{Stage, Status};

/// Number of failed attempts after which the state is an error instead of a delay.
const MISSED_PINGS: u32 = 3;

pub(super) fn evaluate_health(tunnel: &Tunnel, status: Option<&Status>) -> HealthVerdict {
    let idle = Status::default();
    let status = status.unwrap_or(&idle);
    let not_usable = |state, health, reason: &str| {
        let reported = status.error.clone().filter(|error| !error.is_empty());
        HealthVerdict {
            status: state,
            health,
            usable: false,
            reason: reported.unwrap_or_else(|| reason.to_owned()),
        }
    };
    if !tunnel.wanted_up() {
        let state =
            if status.stage == Stage::Idle { TunnelStatus::Down } else { TunnelStatus::Disconnecting };
        let reason = "it is down".to_owned();
        return HealthVerdict { status: state, health: Health::Unknown, usable: false, reason };
    }
    let in_vain = status.attempts >= MISSED_PINGS;
    match status.stage {
        Stage::Idle if !tunnel.config.is_readable() || tunnel.openvpn_file().is_none() => {
            not_usable(TunnelStatus::Error, Health::Unhealthy, "its stored file cannot be read")
        }
        Stage::Idle => not_usable(TunnelStatus::Connecting, Health::Unknown, "it is not up yet"),
        Stage::Connecting if !in_vain => {
            not_usable(TunnelStatus::Connecting, Health::Unknown, "its server has not answered yet")
        }
        Stage::Reconnecting if !in_vain => {
            not_usable(TunnelStatus::Degraded, Health::Unhealthy, "the connection to its server is lost")
        }
        Stage::Connecting | Stage::Reconnecting => {
            not_usable(TunnelStatus::Error, Health::Unhealthy, "its server does not answer")
        }
        Stage::Failed => not_usable(TunnelStatus::Error, Health::Unhealthy, "openvpn ended"),
        Stage::Stopping => not_usable(TunnelStatus::Disconnecting, Health::Unknown, "it is being ended"),
        Stage::Connected if status.addresses.is_empty() => {
            not_usable(TunnelStatus::Degraded, Health::Unhealthy, "its server gave it no address")
        }
        Stage::Connected => HealthVerdict {
            status: TunnelStatus::Up,
            health: Health::Healthy,
            usable: true,
            reason: String::new(),
        },
    }
}

/// Returns the fact for the compiler. The addresses stay while the process keeps the interface, so that flows outlive
/// a short silence.
pub(super) fn fact(status: Option<&Status>, health: &HealthVerdict) -> TunnelFact {
    let kept = status.filter(|status| matches!(status.stage, Stage::Connected | Stage::Reconnecting));
    TunnelFact {
        usable: health.usable,
        reason: health.reason.clone(),
        addresses: kept.map(|status| status.addresses.clone()).unwrap_or_default(),
        mtu: kept.and_then(|status| status.mtu),
    }
}

pub(super) fn live(
    tunnel: &Tunnel,
    status: Option<Status>,
    health: HealthVerdict,
    before: Option<&TunnelLive>,
    now: Timestamp,
) -> TunnelLive {
    let status = status.unwrap_or_default();
    let same = before.filter(|before| before.status == health.status);
    let last_change = same.and_then(|before| before.last_change).unwrap_or(now);
    let up = health.status == TunnelStatus::Up;
    TunnelLive {
        status: health.status,
        health: health.health,
        healthy: health.usable,
        interface: status.pid.map(|_| tunnel_interface(tunnel)),
        last_error: Some(health.reason).filter(|reason| !reason.is_empty()),
        last_change: Some(last_change),
        uptime_sec: up.then(|| u64::try_from(now.duration_since(last_change).as_secs()).unwrap_or_default()),
        rx_bytes: status.rx_bytes,
        tx_bytes: status.tx_bytes,
        endpoint_ip: status.remote.map(|remote| remote.ip()),
        restarts: status.restarts,
        pushed: status.pushed,
        cipher: status.cipher,
        ..TunnelLive::default()
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::Secret;
    use gateway_model::kinds::tunnel::{AdminState, TunnelType};

    use super::*;

    fn tunnel() -> Tunnel {
        let config = "client\nremote x.example\nauth-user-pass\n<ca>\nx\n</ca>";
        Tunnel { r#type: TunnelType::Openvpn, config: Secret::new(config), ..Tunnel::default() }
    }

    fn status(stage: Stage, attempts: u32, addresses: &[&str]) -> Status {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Status { stage, attempts, addresses, ..Status::default() }
    }

    #[test]
    fn a_tunnel_is_usable_exactly_while_it_is_connected_and_has_an_address() {
        let cases = [
            (Stage::Idle, 0, &[][..], TunnelStatus::Connecting, false),
            (Stage::Connecting, 1, &[], TunnelStatus::Connecting, false),
            (Stage::Connecting, 3, &[], TunnelStatus::Error, false),
            (Stage::Connected, 0, &["10.8.0.2"], TunnelStatus::Up, true),
            (Stage::Connected, 0, &[], TunnelStatus::Degraded, false),
            (Stage::Reconnecting, 1, &["10.8.0.2"], TunnelStatus::Degraded, false),
            (Stage::Reconnecting, 3, &["10.8.0.2"], TunnelStatus::Error, false),
            (Stage::Failed, 1, &[], TunnelStatus::Error, false),
            (Stage::Stopping, 0, &["10.8.0.2"], TunnelStatus::Disconnecting, false),
        ];
        for (stage, attempts, addresses, expected, usable) in cases {
            let status = status(stage, attempts, addresses);
            let health = evaluate_health(&tunnel(), Some(&status));
            assert_eq!((health.status, health.usable), (expected, usable), "{stage:?}");
            assert_eq!(health.reason.is_empty(), usable, "{stage:?}");
            let kept = matches!(stage, Stage::Connected | Stage::Reconnecting);
            assert_eq!(!fact(Some(&status), &health).addresses.is_empty(), kept && !addresses.is_empty());
        }
    }

    #[test]
    fn a_tunnel_that_is_not_wanted_is_not_usable_whatever_its_process_does() {
        let down = Tunnel { admin_state: AdminState::Down, ..tunnel() };
        let running = status(Stage::Connected, 0, &["10.8.0.2"]);
        let health = evaluate_health(&down, Some(&running));
        assert_eq!((health.status, health.usable), (TunnelStatus::Disconnecting, false));
        assert_eq!(evaluate_health(&down, None).status, TunnelStatus::Down);
    }

    #[test]
    fn the_error_is_the_reason() {
        let failed = Status { error: Some("AUTH_FAILED".into()), ..status(Stage::Failed, 1, &[]) };
        assert_eq!(evaluate_health(&tunnel(), Some(&failed)).reason, "AUTH_FAILED");
    }
}

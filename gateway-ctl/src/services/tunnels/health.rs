//! Health of a WireGuard tunnel from the age of its last handshake. Pure.
//!
//! WireGuard renews a session after 120 s of use and rejects it after 180 s (WireGuard, section 6.1). With
//! keepalives, an older handshake means that the remote end does not answer.

use std::time::{Duration, SystemTime};

use gateway_model::Tunnel;
use gateway_model::kinds::tunnel_health::{Health, TunnelStatus};

use crate::os::wireguard::DeviceStatus;

pub(super) const DEGRADED: Duration = Duration::from_secs(180);
pub(super) const ERROR: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthVerdict {
    pub status: TunnelStatus,
    pub health: Health,
    /// Eligibility of the tunnel for policy traffic.
    pub usable: bool,
    /// Reason why the tunnel is not usable. It does not contain the age, which would change every second.
    pub reason: String,
}

pub(super) fn evaluate_health(
    tunnel: &Tunnel,
    device: Option<&DeviceStatus>,
    now: SystemTime,
) -> HealthVerdict {
    let not_usable =
        |status, health, reason: &str| HealthVerdict { status, health, usable: false, reason: reason.into() };
    if !tunnel.wanted_up() {
        let status = if device.is_some() { TunnelStatus::Disconnecting } else { TunnelStatus::Down };
        return not_usable(status, Health::Unknown, "it is down");
    }
    let Some(device) = device else {
        return not_usable(TunnelStatus::Connecting, Health::Unknown, "its interface does not exist yet");
    };
    // Without keepalives, silence does not indicate a failure.
    let keeps_alive =
        tunnel.peers.iter().any(|peer| peer.persistent_keepalive.unwrap_or(tunnel.keepalive) > 0);
    let last = device.peers.iter().filter_map(|peer| peer.last_handshake).max();
    let age = last.map(|last| now.duration_since(last).unwrap_or_default());
    let healthy = HealthVerdict {
        status: TunnelStatus::Up,
        health: Health::Healthy,
        usable: true,
        reason: String::new(),
    };
    match age {
        Some(age) if age < DEGRADED => healthy,
        _ if !keeps_alive => HealthVerdict { health: Health::Unknown, ..healthy },
        None => not_usable(TunnelStatus::Connecting, Health::Unknown, "no handshake yet"),
        Some(age) if age < ERROR => {
            not_usable(TunnelStatus::Degraded, Health::Unhealthy, "no handshake for more than 3 minutes")
        }
        Some(_) => not_usable(TunnelStatus::Error, Health::Unhealthy, "no handshake for more than 5 minutes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::wireguard::{Engine, PeerStatus};

    fn tunnel(keepalive: u16) -> Tunnel {
        let peer = serde_json::json!({"public_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE="});
        let peers = vec![serde_json::from_value(peer).expect("a peer")];
        Tunnel { keepalive, peers, ..Tunnel::default() }
    }

    fn device(now: SystemTime, age: Option<u64>) -> DeviceStatus {
        let last_handshake = age.map(|age| now - Duration::from_secs(age));
        let peer =
            PeerStatus { public_key: [1; 32], endpoint: None, last_handshake, rx_bytes: 0, tx_bytes: 0 };
        DeviceStatus { engine: Engine::Userspace, public_key: [2; 32], listen_port: 1, peers: vec![peer] }
    }

    #[test]
    fn a_tunnel_is_usable_exactly_while_its_handshake_is_fresh() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let cases = [
            (None, TunnelStatus::Connecting, false),
            (Some(0), TunnelStatus::Up, true),
            (Some(179), TunnelStatus::Up, true),
            (Some(180), TunnelStatus::Degraded, false),
            (Some(299), TunnelStatus::Degraded, false),
            (Some(300), TunnelStatus::Error, false),
        ];
        for (age, status, usable) in cases {
            let health = evaluate_health(&tunnel(25), Some(&device(now, age)), now);
            assert_eq!((health.status, health.usable), (status, usable), "{age:?}");
            assert_eq!(health.reason.is_empty(), usable);
        }
    }

    #[test]
    fn without_keepalives_silence_says_nothing() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        assert!(evaluate_health(&tunnel(0), Some(&device(now, None)), now).usable);
        assert!(evaluate_health(&tunnel(0), Some(&device(now, Some(900))), now).usable);
    }

    #[test]
    fn a_tunnel_that_is_not_wanted_or_not_there_is_not_usable() {
        let now = SystemTime::UNIX_EPOCH;
        let off = Tunnel { enabled: false, ..tunnel(25) };
        assert!(!evaluate_health(&off, Some(&device(now, Some(0))), now).usable);
        assert!(!evaluate_health(&tunnel(0), None, now).usable);
    }
}

//! Health of tunnels: what is checked, and what is shown of it.

use std::net::IpAddr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::text::text_enum;

text_enum! {
    /// By what a tunnel is judged.
    #[derive(Default)]
    pub enum HealthCheckType {
        /// By the age of the last handshake.
        #[default]
        Handshake = "handshake",
        Ping = "ping",
        Http = "http",
        Dns = "dns",
    }
}

/// When a tunnel counts as healthy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HealthCheck {
    /// Only `handshake` is supported by this version.
    pub r#type: HealthCheckType,
    pub target: Option<String>,
    pub interval_sec: u32,
    pub timeout_sec: u32,
    /// So many failures in a row make it unhealthy.
    pub fail: u32,
    /// So many successes in a row make it healthy again.
    pub success: u32,
}

impl Default for HealthCheck {
    fn default() -> HealthCheck {
        HealthCheck {
            r#type: HealthCheckType::Handshake,
            target: None,
            interval_sec: 30,
            timeout_sec: 5,
            fail: 3,
            success: 2,
        }
    }
}

impl HealthCheck {
    pub(crate) fn validate(&self, path: &str, problems: &mut Problems) {
        if self.r#type != HealthCheckType::Handshake {
            problems.not_supported(format!("{path}.type"), format!("The health check {}", self.r#type));
        } else if self.target.is_some() {
            problems.add(code::CONFLICT, format!("{path}.target"), "The check by handshake takes no target.");
        }
        let numbers = [
            ("interval_sec", self.interval_sec, 1..=3600),
            ("timeout_sec", self.timeout_sec, 1..=60),
            ("fail", self.fail, 1..=100),
            ("success", self.success, 1..=100),
        ];
        for (field, value, range) in numbers {
            if !range.contains(&value) {
                let message = format!("Must be from {} to {}.", range.start(), range.end());
                problems.add(code::RANGE, format!("{path}.{field}"), message);
            }
        }
    }
}

text_enum! {
    /// Status of a tunnel.
    #[derive(Default)]
    pub enum TunnelStatus {
        #[default]
        Down = "down",
        Connecting = "connecting",
        Up = "up",
        Degraded = "degraded",
        Disconnecting = "disconnecting",
        Error = "error",
    }
}

text_enum! {
    /// Verdict of the health check.
    #[derive(Default)]
    pub enum Health {
        Healthy = "healthy",
        Unhealthy = "unhealthy",
        #[default]
        Unknown = "unknown",
    }
}

/// What is observed of a tunnel; shown beside what is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TunnelLive {
    pub status: TunnelStatus,
    pub health: Health,
    pub healthy: bool,
    /// Name of the network interface.
    pub interface: Option<String>,
    pub last_error: Option<String>,
    pub last_change: Option<Timestamp>,
    pub uptime_sec: Option<u64>,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub endpoint_ip: Option<IpAddr>,
    pub exit_ip: Option<IpAddr>,
    pub latency_ms: Option<f64>,
    pub loss_pct: Option<f64>,
    pub restarts: u32,
    /// OpenVPN: what the server asked this host to do and was not obeyed: routes, name servers.
    pub pushed: Vec<String>,
    /// OpenVPN: the cipher that was agreed on, or, before that, the one that the file would like best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
}

/// What is observed of a peer of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerLive {
    pub last_handshake: Option<Timestamp>,
    pub rx: u64,
    pub tx: u64,
}

/// Keys of [`TunnelLive`] and, with `peers[].`, of [`PeerLive`].
pub(crate) const LIVE_KEYS: &[&str] = &[
    "public_key",
    "admin_state",
    "remotes",
    "cipher",
    "status",
    "health",
    "healthy",
    "interface",
    "last_error",
    "last_change",
    "uptime_sec",
    "rx_bytes",
    "tx_bytes",
    "endpoint_ip",
    "exit_ip",
    "latency_ms",
    "loss_pct",
    "restarts",
    "pushed",
    "peers[].last_handshake",
    "peers[].rx",
    "peers[].tx",
];

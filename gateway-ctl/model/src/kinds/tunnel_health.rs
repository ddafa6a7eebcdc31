//! Health of tunnels: the check and the shown state.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::text_enum;

text_enum! {
    /// Kind of the health check.
    #[derive(Default)]
    pub enum HealthCheckType {
        /// By the age of the last handshake alone.
        #[default]
        Handshake = "handshake",
        /// Besides, by echo requests through the tunnel.
        Ping = "ping",
        /// Besides, by requests over HTTP through the tunnel: any status will do.
        Http = "http",
        /// Additionally by queries to a name server through the tunnel. Any reply counts.
        Dns = "dns",
    }
}

/// Health check of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HealthCheck {
    pub r#type: HealthCheckType,
    /// Target of the probe inside the tunnel: an address for `ping`; an address, with or without a port, for `dns`; a
    /// URL with an address for `http`. Without it, ping and dns probe the tunnel's first name server.
    pub target: Option<String>,
    /// Time between probes, give or take a quarter. After a failure the next one comes within a second or so.
    pub interval_sec: u32,
    pub timeout_sec: u32,
    /// So many failures in a row make it unhealthy.
    pub fail: u32,
    /// So many successes in a row make it healthy again.
    pub success: u32,
    /// Seconds for which data may stay without any answer from the remote end before the tunnel is degraded and policies
    /// take their next hop. Counts only while data is sent. WireGuard answers data within 10 s, OpenVPN servers by their
    /// pings.
    pub liveness_sec: u32,
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
            liveness_sec: 15,
        }
    }
}

/// Probe to a target inside the tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    Ping(IpAddr),
    Dns(SocketAddr),
    Http { server: SocketAddr, host: String, path: String },
}

impl Probe {
    pub fn address(&self) -> IpAddr {
        match self {
            Probe::Ping(address) => *address,
            Probe::Dns(server) | Probe::Http { server, .. } => server.ip(),
        }
    }
}

impl std::fmt::Display for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Probe::Ping(address) => write!(f, "ping of {address}"),
            Probe::Dns(server) => write!(f, "the name server {server}"),
            Probe::Http { host, path, .. } => write!(f, "http://{host}{path}"),
        }
    }
}

/// Range of `liveness_sec`. WireGuard takes up to 10 s to answer one-way traffic.
const LIVENESS_SEC: std::ops::RangeInclusive<u32> = 12..=600;
const HTTP: u16 = 80;
const DNS: u16 = 53;

impl HealthCheck {
    /// Returns the probe, or `None` if handshakes are enough. `Err` is the fault of the target.
    pub fn probe(&self, dns: &[String]) -> Result<Option<Probe>, String> {
        let server = || dns.iter().find_map(|server| server.parse::<IpAddr>().ok());
        let target = self.target.as_deref();
        let missing = |what: &str| format!("The check {} needs {what}.", self.r#type);
        let probe = match self.r#type {
            HealthCheckType::Handshake if target.is_some() => {
                return Err("The check by handshake takes no target.".to_owned());
            }
            HealthCheckType::Handshake => return Ok(None),
            HealthCheckType::Ping => Probe::Ping(match target {
                Some(target) => target.parse().map_err(|_| "Expected an address.".to_owned())?,
                None => server().ok_or_else(|| missing("an address as target"))?,
            }),
            HealthCheckType::Dns => Probe::Dns(match target {
                Some(target) => socket_address(target, DNS)
                    .ok_or_else(|| "Expected the address of a name server.".to_owned())?,
                None => SocketAddr::new(server().ok_or_else(|| missing("a name server as target"))?, DNS),
            }),
            HealthCheckType::Http => http(target.ok_or_else(|| missing("a URL as target"))?)
                .ok_or_else(|| "Expected a URL with an address, such as http://192.0.2.1/.".to_owned())?,
        };
        let address = probe.address();
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            return Err(format!("{address} is not inside of a tunnel."));
        }
        Ok(Some(probe))
    }

    pub(crate) fn validate(&self, path: &str, dns: &[String], problems: &mut Problems) {
        if let Err(message) = self.probe(dns) {
            let rule = match self.target {
                None => code::REQUIRED,
                Some(_) if self.r#type == HealthCheckType::Handshake => code::CONFLICT,
                Some(_) => code::FORMAT,
            };
            problems.add(rule, format!("{path}.target"), message);
        }
        let numbers = [
            ("interval_sec", self.interval_sec, 1..=3600),
            ("timeout_sec", self.timeout_sec, 1..=60),
            ("fail", self.fail, 1..=100),
            ("success", self.success, 1..=100),
            ("liveness_sec", self.liveness_sec, LIVENESS_SEC),
        ];
        for (field, value, range) in numbers {
            if !range.contains(&value) {
                let message = format!("Must be from {} to {}.", range.start(), range.end());
                problems.add(code::RANGE, format!("{path}.{field}"), message);
            }
        }
    }
}

/// `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1`, `[2001:db8::1]:53`
fn socket_address(text: &str, port: u16) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text.parse().ok().or_else(|| Some(SocketAddr::new(bare.parse().ok()?, port)))
}

fn http(url: &str) -> Option<Probe> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic());
    let server = socket_address(host, HTTP).filter(|server| server.port() != 0 && plain)?;
    // As a URL has it: IPv6 in brackets.
    if server.is_ipv6() && !host.starts_with('[') {
        return None;
    }
    Some(Probe::Http { server, host: host.to_owned(), path: path.to_owned() })
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

/// Observed state of a tunnel, shown beside the stored fields.
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
    /// Address that a STUN server saw through the tunnel at the last leak check (setting `privacy.leak_check`). Null if
    /// none has answered since the tunnel came up.
    pub exit_ip: Option<IpAddr>,
    pub latency_ms: Option<f64>,
    pub loss_pct: Option<f64>,
    pub restarts: u32,
    /// OpenVPN: pushed options that were ignored, such as routes and name servers.
    pub pushed: Vec<String>,
    /// OpenVPN: the cipher that was agreed on, or, before that, the one that the file would like best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<String>,
}

/// Observed state of a peer of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerLive {
    pub last_handshake: Option<Timestamp>,
    /// Bytes received from the peer.
    pub rx: u64,
    /// Bytes sent to the peer.
    pub tx: u64,
}

/// Keys of [`TunnelLive`] and, with `peers[].`, of [`PeerLive`].
pub(crate) const LIVE_KEYS: &[&str] = &[
    "public_key",
    "admin_state",
    "down_since",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(kind: HealthCheckType, target: Option<&str>, dns: &[&str]) -> Result<Option<Probe>, String> {
        let check = HealthCheck { r#type: kind, target: target.map(str::to_owned), ..HealthCheck::default() };
        check.probe(&dns.iter().map(|server| (*server).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_target_fits_the_kind_of_check() {
        use HealthCheckType::{Dns, Handshake, Http, Ping};
        let shown = |kind, target, dns: &[&str]| probe(kind, target, dns).unwrap().unwrap().to_string();
        assert_eq!(probe(Handshake, None, &["10.0.0.1"]), Ok(None));
        assert_eq!(shown(Ping, Some("10.0.0.1"), &[]), "ping of 10.0.0.1");
        assert_eq!(shown(Ping, None, &["dns.example", "fd00::1"]), "ping of fd00::1");
        assert_eq!(shown(Dns, None, &["10.0.0.1"]), "the name server 10.0.0.1:53");
        assert_eq!(shown(Dns, Some("fd00::1"), &[]), "the name server [fd00::1]:53");
        assert_eq!(shown(Dns, Some("[fd00::1]:5353"), &[]), "the name server [fd00::1]:5353");
        assert_eq!(shown(Http, Some("http://10.0.0.1:8080/up?x=1"), &[]), "http://10.0.0.1:8080/up?x=1");
        let root = probe(Http, Some("http://[fd00::1]"), &[]).unwrap().unwrap();
        assert_eq!(
            root,
            Probe::Http {
                server: "[fd00::1]:80".parse().unwrap(),
                host: "[fd00::1]".into(),
                path: "/".into()
            }
        );
        for (kind, target) in [
            (Handshake, Some("10.0.0.1")),
            (Ping, None),
            (Ping, Some("host.example")),
            (Ping, Some("127.0.0.1")),
            (Ping, Some("ff02::1")),
            (Dns, None),
            (Dns, Some("0.0.0.0")),
            (Http, None),
            (Http, Some("10.0.0.1")),
            (Http, Some("https://10.0.0.1/")),
            (Http, Some("http://fd00::1/")),
            (Http, Some("http://10.0.0.1:0/")),
            (Http, Some("http://10.0.0.1/a b")),
            (Http, Some("http://10.0.0.1/\r\nX: y")),
        ] {
            assert!(probe(kind, target, &[]).is_err(), "{kind} {target:?}");
        }
    }
}

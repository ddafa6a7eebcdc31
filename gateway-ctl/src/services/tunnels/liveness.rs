//! Liveness of tunnels under traffic: unanswered data degrades a tunnel long before the age of its handshake does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use gateway_core::compile::{leg_number, tunnel_interface};
use gateway_core::indexes::LegId;
use gateway_core::state_machines::liveness::{Keepalives, Liveness, Traffic};
use gateway_model::kinds::tunnel_health::{Health, TunnelStatus};
use gateway_model::{Id, Tunnel};
use ipnet::IpNet;

use super::health::{ERROR, HealthVerdict};
use super::probes::source;
use crate::os::openvpn::{Stage, Status};
use crate::os::wireguard::DeviceStatus;
use crate::services::probe::provoke_answer;
use gateway_outbound::SocketBinding;

/// Size of a WireGuard keepalive: a data message without content.
const KEEPALIVE_BYTES: u64 = 32;
/// Time after which WireGuard itself answers data with a keepalive.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Tolerance for a late ping of an OpenVPN server.
const PING_SLACK: Duration = Duration::from_secs(5);
/// Probe destination behind a remote end with a default route. A documentation address, which no host has.
const ANY_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ANY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// Remote end of a tunnel: a WireGuard peer, or the OpenVPN server.
#[derive(Clone, Debug)]
pub(super) struct TunnelEnd {
    /// Public key; `None` for OpenVPN.
    peer: Option<[u8; 32]>,
    traffic: Traffic,
    limit: Duration,
    /// Destinations that are reached through this remote end.
    networks: Vec<IpNet>,
}

impl TunnelEnd {
    fn carries_everything(&self) -> bool {
        self.networks.iter().any(|network| network.prefix_len() == 0)
    }

    /// Returns the destinations of probes, one for each address family.
    fn probe_targets(&self) -> Vec<IpAddr> {
        let target = |network: &IpNet| match (network, network.prefix_len()) {
            (IpNet::V4(_), 0) => ANY_V4.into(),
            (IpNet::V6(_), 0) => ANY_V6.into(),
            _ => network.hosts().next().unwrap_or(network.addr()),
        };
        [false, true]
            .iter()
            .filter_map(|ipv6| self.networks.iter().find(|network| network.addr().is_ipv6() == *ipv6))
            .map(target)
            .collect()
    }
}

/// Liveness of all tunnels.
#[derive(Debug, Default)]
pub(super) struct LivenessChecks(BTreeMap<Id, BTreeMap<Option<[u8; 32]>, Liveness>>);

impl LivenessChecks {
    /// Drops the tunnels that no longer exist.
    pub(super) fn keep(&mut self, is_there: impl Fn(Id) -> bool) {
        self.0.retain(|id, _| is_there(*id));
    }

    /// Degrades a tunnel whose remote end does not answer data, and sends the probes that make a remote end answer.
    /// `addresses` are those of the tunnel's interface.
    pub(super) fn check(
        &mut self,
        tunnel: &Tunnel,
        links: Vec<TunnelEnd>,
        addresses: Option<&BTreeSet<IpNet>>,
        itself: HealthVerdict,
        now: Duration,
    ) -> HealthVerdict {
        if !tunnel.wanted_up() {
            self.0.remove(&tunnel.meta.id);
            return itself;
        }
        let known = self.0.entry(tunnel.meta.id).or_default();
        // A recreated device has no links for a short time, which must not clear the state of a silent peer.
        if !links.is_empty() {
            known.retain(|peer, _| links.iter().any(|link| link.peer == *peer));
        }
        for link in &links {
            let liveness = known.entry(link.peer).or_default();
            liveness.observe(link.traffic, link.limit, now);
            if liveness.take_probe(link.limit, now) {
                probe(tunnel, link, addresses);
            }
        }
        let silent: Vec<Duration> = known.values().filter_map(|one| one.silent_for(now)).collect();
        let is_silent = |peer| known.get(peer).is_some_and(|one| one.silent_for(now).is_some());
        let main_is_silent = links.iter().any(|link| link.carries_everything() && is_silent(&link.peer));
        let is_dead = !silent.is_empty() && (main_is_silent || silent.len() == known.len());
        if !itself.usable || !is_dead {
            return itself;
        }
        let longest = silent.into_iter().max().unwrap_or_default();
        let status = if longest < ERROR { TunnelStatus::Degraded } else { TunnelStatus::Error };
        let reason = format!("no answer to data for {} s (liveness_sec)", limit(tunnel).as_secs());
        HealthVerdict { status, health: Health::Unhealthy, usable: false, reason }
    }

    /// Reports whether a remote end of the tunnel has not answered for so long that probes are due.
    pub(super) fn is_suspect(&self, tunnel: &Tunnel, now: Duration) -> bool {
        let links = self.0.get(&tunnel.meta.id).into_iter().flat_map(BTreeMap::values);
        links.into_iter().any(|one| one.is_suspect(limit(tunnel), now))
    }
}

fn limit(tunnel: &Tunnel) -> Duration {
    Duration::from_secs(tunnel.health_check.liveness_sec.into())
}

/// Returns the peers of a device; none while the device does not exist.
pub(super) fn links_of_wireguard(tunnel: &Tunnel, device: Option<&DeviceStatus>) -> Vec<TunnelEnd> {
    let peers = device.into_iter().flat_map(|device| &device.peers);
    peers
        .map(|peer| {
            let stored = tunnel.peers.iter().find(|stored| *stored.public_key.bytes() == peer.public_key);
            let seconds = stored.and_then(|stored| stored.persistent_keepalive).unwrap_or(tunnel.keepalive);
            let interval = match seconds {
                0 => KEEPALIVE_TIMEOUT,
                seconds => KEEPALIVE_TIMEOUT.min(Duration::from_secs(seconds.into())),
            };
            TunnelEnd {
                peer: Some(peer.public_key),
                traffic: Traffic {
                    received: peer.rx_bytes,
                    sent: peer.tx_bytes,
                    keepalives: Some(Keepalives { size: KEEPALIVE_BYTES, interval }),
                },
                limit: limit(tunnel),
                networks: stored.iter().flat_map(|stored| &stored.allowed_ips).map(|cidr| cidr.0).collect(),
            }
        })
        .collect()
}

/// Returns the server of an OpenVPN tunnel if it is connected and sends pings. Without pings, silence proves nothing.
pub(super) fn links_of_openvpn(tunnel: &Tunnel, status: Option<&Status>) -> Vec<TunnelEnd> {
    let connected = status.filter(|status| status.stage == Stage::Connected);
    let Some((status, ping)) = connected.and_then(|status| Some((status, status.ping_sec?))) else {
        return Vec::new();
    };
    let table = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let Some(sent) = sent_packets(&table, &tunnel_interface(tunnel)) else { return Vec::new() };
    let traffic = Traffic { received: status.rx_bytes, sent, keepalives: None };
    let limit = limit(tunnel).max(Duration::from_secs(ping.into()) + PING_SLACK);
    let networks = vec![IpNet::from(IpAddr::from(ANY_V4)), IpNet::from(IpAddr::from(ANY_V6))];
    vec![TunnelEnd { peer: None, traffic, limit, networks }]
}

/// Returns the number of packets sent by an interface, from the text of `/proc/net/dev`. On a TUN device, these are
/// data packets only.
fn sent_packets(table: &str, interface: &str) -> Option<u64> {
    let row = table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    // Eight receive columns precede the transmit columns for bytes and packets.
    row.split_whitespace().nth(9)?.parse().ok()
}

fn probe(tunnel: &Tunnel, link: &TunnelEnd, addresses: Option<&BTreeSet<IpNet>>) {
    let Some(number) = leg_number(tunnel) else { return };
    let (interface, mark) = (tunnel_interface(tunnel), LegId::host_mark(Some(number)));
    let reachable = link.probe_targets().into_iter().find_map(|to| Some((to, source(addresses, to)?)));
    let Some((to, from)) = reachable else { return };
    let binding = SocketBinding { interface, source: Some(from), mark };
    if let Err(error) = provoke_answer(to, &binding) {
        tracing::debug!(tunnel = %tunnel.name, %error, "failed to send a liveness probe");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::wireguard::{Engine, PeerStatus};

    const KEYS: [&str; 2] =
        ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI="];

    fn tunnel(networks: &[&str]) -> Tunnel {
        let peers = networks.iter().zip(KEYS).map(|(network, key)| {
            let peer = serde_json::json!({"public_key": key, "allowed_ips": [network]});
            serde_json::from_value(peer).expect("a peer")
        });
        Tunnel { keepalive: 25, peers: peers.collect(), ..Tunnel::default() }
    }

    /// Builds a device status. `counters` are the received and sent bytes of each peer.
    fn device(tunnel: &Tunnel, counters: &[(u64, u64)]) -> DeviceStatus {
        let peers = tunnel.peers.iter().zip(counters).map(|(peer, (rx_bytes, tx_bytes))| PeerStatus {
            public_key: *peer.public_key.bytes(),
            endpoint: None,
            last_handshake: None,
            rx_bytes: *rx_bytes,
            tx_bytes: *tx_bytes,
        });
        DeviceStatus {
            engine: Engine::Userspace,
            public_key: [9; 32],
            listen_port: 1,
            peers: peers.collect(),
        }
    }

    fn well() -> HealthVerdict {
        HealthVerdict {
            status: TunnelStatus::Up,
            health: Health::Healthy,
            usable: true,
            reason: String::new(),
        }
    }

    /// Returns the verdict after some seconds. In each second, data is sent to the peers selected by `asked`.
    fn after(checks: &mut LivenessChecks, tunnel: &Tunnel, seconds: u64, asked: [bool; 2]) -> HealthVerdict {
        let mut last = well();
        for second in 0..=seconds {
            let counters = asked.map(|asked| (0, if asked { second * 200 } else { 0 }));
            let links = links_of_wireguard(tunnel, Some(&device(tunnel, &counters)));
            last = checks.check(tunnel, links, None, well(), Duration::from_secs(second));
        }
        last
    }

    #[test]
    fn a_silent_far_end_degrades_its_tunnel_and_is_an_error_later() {
        let tunnel = tunnel(&["0.0.0.0/0"]);
        let state = |seconds| {
            let health = after(&mut LivenessChecks::default(), &tunnel, seconds, [true; 2]);
            (health.usable, health.status)
        };
        assert_eq!(state(15), (true, TunnelStatus::Up));
        assert_eq!(state(16), (false, TunnelStatus::Degraded));
        assert_eq!(state(16 + 299), (false, TunnelStatus::Degraded));
        assert_eq!(state(16 + 300), (false, TunnelStatus::Error));
    }

    #[test]
    fn a_silent_peer_counts_for_the_tunnel_if_it_carries_everything_or_is_the_last() {
        for (networks, asked, usable) in [
            (["10.1.0.0/16", "10.2.0.0/16"], [true, false], true),
            (["10.1.0.0/16", "10.2.0.0/16"], [true, true], false),
            (["0.0.0.0/0", "10.2.0.0/16"], [true, false], false),
            (["0.0.0.0/0", "10.2.0.0/16"], [false, true], true),
        ] {
            let health = after(&mut LivenessChecks::default(), &tunnel(&networks), 30, asked);
            assert_eq!(health.usable, usable, "{networks:?} {asked:?}");
        }
    }

    #[test]
    fn a_device_that_is_created_again_is_no_answer_and_taking_the_tunnel_down_is_a_new_start() {
        let mut tunnel = tunnel(&["0.0.0.0/0"]);
        let mut checks = LivenessChecks::default();
        assert!(!after(&mut checks, &tunnel, 30, [true; 2]).usable);
        let at = Duration::from_secs(31);
        assert!(!checks.check(&tunnel, Vec::new(), None, well(), at).usable);
        tunnel.enabled = false;
        checks.check(&tunnel, Vec::new(), None, well(), at);
        tunnel.enabled = true;
        assert!(checks.check(&tunnel, Vec::new(), None, well(), at).usable);
    }

    #[test]
    fn openvpn_is_bound_to_answer_only_if_its_server_pings() {
        let tunnel = Tunnel { name: "lo".into(), ..Tunnel::default() };
        let status = |ping_sec| Status { stage: Stage::Connected, ping_sec, ..Status::default() };
        assert!(links_of_openvpn(&tunnel, Some(&status(None))).is_empty());
        assert!(links_of_openvpn(&tunnel, None).is_empty());
        let table =
            "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12\n";
        assert_eq!(sent_packets(table, "lo"), Some(10));
        assert_eq!(sent_packets(table, "l"), None);
    }

    #[test]
    fn probes_go_to_an_address_behind_the_peer() {
        let targets = |networks: &[&str]| {
            let networks = networks.iter().map(|text| text.parse().expect("a network")).collect();
            let traffic = Traffic { received: 0, sent: 0, keepalives: None };
            TunnelEnd { peer: None, traffic, limit: Duration::ZERO, networks }.probe_targets()
        };
        let parsed = |texts: &[&str]| {
            texts.iter().map(|text| text.parse().expect("an address")).collect::<Vec<IpAddr>>()
        };
        assert_eq!(targets(&["::/0", "0.0.0.0/0"]), parsed(&["192.0.2.1", "2001:db8::1"]));
        assert_eq!(targets(&["10.1.0.0/16"]), parsed(&["10.1.0.1"]));
        assert_eq!(targets(&["10.1.2.3/32"]), parsed(&["10.1.2.3"]));
        assert_eq!(targets(&[]), parsed(&[]));
    }
}

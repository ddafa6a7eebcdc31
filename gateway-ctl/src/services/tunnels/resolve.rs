//! Resolution of endpoint names, outside of the tunnel that they belong to. [`gateway_outbound::Resolver`] defines
//! the upstreams.
//!
//! A name is resolved when its address is unknown. It is resolved again after a long silence of its tunnel, because the
//! remote end may have moved. It keeps its last address until a new one is found.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use gateway_core::compile::transport;
use gateway_model::kinds::tunnel::Peer;
use gateway_model::{State, Tunnel};
use gateway_outbound::Egress;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::reports::tunnels::TunnelStates;

/// Minimum time between two lookups of a name that was resolved.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum time between two lookups of a name that was not resolved.
const RETRY: Duration = Duration::from_secs(5);
/// Age of the last handshake after which the remote end may have moved. A handshake is renewed after 120 s.
const STALE: Duration = Duration::from_secs(150);

#[derive(Debug)]
pub(super) struct Resolver {
    endpoint_names: gateway_outbound::Resolver,
    known: BTreeMap<String, SocketAddr>,
    last_attempt: BTreeMap<String, Instant>,
    asking: JoinSet<(String, Vec<SocketAddr>)>,
}

impl Resolver {
    pub(super) fn new(endpoint_names: gateway_outbound::Resolver) -> Self {
        let (known, last_attempt, asking) = Default::default();
        Self { endpoint_names, known, last_attempt, asking }
    }

    /// Returns the known addresses of all endpoint names, and starts the due lookups. `outer` returns the egress of a
    /// tunnel's outer packets, or `None` before a plan contains the tunnel.
    pub(super) fn poll(
        &mut self,
        state: &State,
        before: &TunnelStates,
        now: Timestamp,
        outer: impl Fn(&Tunnel) -> Option<Egress>,
    ) -> BTreeMap<String, SocketAddr> {
        self.gather();
        let mut names = BTreeSet::new();
        for tunnel in state.tunnels.iter() {
            for (peer, name) in names_of(state, tunnel) {
                let live = before.peers.get(&(tunnel.meta.id, peer.public_key.0));
                let handshake = live.and_then(|live| live.last_handshake);
                let fresh = handshake.is_some_and(|at| now.duration_since(at).unsigned_abs() < STALE);
                // The address of a tunnel that is down is kept until the tunnel comes up.
                if tunnel.wanted_up()
                    && (!fresh || !self.known.contains_key(&name))
                    && self.may_ask(&name)
                    && let Some(egress) = outer(tunnel)
                {
                    self.ask(name.clone(), egress);
                }
                names.insert(name);
            }
        }
        self.last_attempt.retain(|name, _| names.contains(name));
        self.known.retain(|name, _| names.contains(name));
        self.known.clone()
    }

    fn gather(&mut self) {
        while let Some(ended) = self.asking.try_join_next() {
            let Ok((name, found)) = ended else { continue };
            let known = self.known.get(&name);
            // If the name has several addresses, use the one after the address that does not answer.
            let index = known.and_then(|known| found.iter().position(|address| address == known));
            let next = index.map_or(0, |index| (index + 1) % found.len());
            if let Some(address) = found.get(next) {
                if known != Some(address) {
                    tracing::info!(endpoint = name, %address, "resolved");
                }
                self.known.insert(name, *address);
            }
        }
    }

    fn may_ask(&self, name: &str) -> bool {
        let pause = if self.known.contains_key(name) { RETRY_INTERVAL } else { RETRY };
        self.last_attempt.get(name).is_none_or(|last| last.elapsed() >= pause)
    }

    fn ask(&mut self, name: String, egress: Egress) {
        self.last_attempt.insert(name.clone(), Instant::now());
        let resolver = self.endpoint_names.clone();
        self.asking.spawn(async move {
            let found = resolver.resolve(&name, egress.mark).await.unwrap_or_else(|error| {
                tracing::debug!(endpoint = name, %error, "cannot resolve");
                Vec::new()
            });
            (name, found)
        });
    }
}

/// Returns the endpoint names of a tunnel, each with the peer behind it. A tunnel over a bridge connects only to the
/// remote end of the bridge.
fn names_of<'a>(state: &State, tunnel: &'a Tunnel) -> Vec<(&'a Peer, String)> {
    let peers = tunnel.peers.iter();
    match transport(state, tunnel) {
        None => peers
            .filter_map(|peer| Some((peer, peer.endpoint.as_ref()?.to_string())))
            .filter(|(_, name)| name.parse::<SocketAddr>().is_err())
            .collect(),
        Some(Ok((_, transport))) => {
            peers.filter_map(|peer| Some((peer, transport.endpoint_name()?))).collect()
        }
        Some(Err(_)) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;

    fn resolver(known: &str) -> Resolver {
        let mut resolver = Resolver::new(gateway_outbound::Resolver::new(&[]));
        resolver.known.insert("vpn.example:1".into(), known.parse().expect("an address"));
        resolver
    }

    async fn after(mut resolver: Resolver, found: &[&str]) -> String {
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().expect("an address")).collect();
        resolver.asking.spawn(async move { ("vpn.example:1".to_owned(), found) });
        while !resolver.asking.is_empty() {
            resolver.gather();
            tokio::task::yield_now().await;
        }
        resolver.known["vpn.example:1"].to_string()
    }

    /// Starts a name server that always returns the same address.
    async fn name_server(address: [u8; 4]) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
        let at = socket.local_addr().expect("an address");
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let mut answer = buffer[..length].to_vec();
                answer[2] |= 0x80;
                if answer.ends_with(&[0, 1, 0, 1]) {
                    answer[7] = 1;
                    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                    answer.extend(address);
                }
                let _ = socket.send_to(&answer, from).await;
            }
        });
        at
    }

    #[tokio::test]
    async fn a_tunnel_that_is_silent_for_150_seconds_resolves_its_name_again() {
        let mut state = State::new(Timestamp::UNIX_EPOCH).begin(Timestamp::UNIX_EPOCH);
        let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
        let input = serde_json::json!({
            "name": "a", "type": "wireguard", "private_key": "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=",
            "addresses": ["10.0.0.2/32"], "peers": [{"public_key": key, "endpoint": "vpn.example:51820"}],
        });
        let id = gateway_model::registry::kind("tunnel")
            .expect("a kind")
            .create(&mut state, input)
            .expect("a tunnel")
            .id;
        let peer = state.tunnels.get(id).expect("a tunnel").peers[0].public_key.0;
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("a time");
        let silent_for = |seconds: i64| {
            let last_handshake = Some(now - jiff::SignedDuration::from_secs(seconds));
            let live = gateway_model::kinds::tunnel_health::PeerLive { last_handshake, ..Default::default() };
            TunnelStates { peers: BTreeMap::from([((id, peer), live)]), ..TunnelStates::default() }
        };
        let mut resolver =
            Resolver::new(gateway_outbound::Resolver::at(vec![name_server([192, 0, 2, 7]).await]));
        let expected: SocketAddr = "192.0.2.7:51820".parse().expect("an address");
        assert_eq!(resolver.poll(&state, &silent_for(0), now, |_| None).len(), 0);
        assert!(resolver.asking.is_empty(), "nobody knows yet by which way to ask");
        for (silence, before, asks) in
            [(0, None, true), (149, Some("198.51.100.9:1"), false), (150, Some("198.51.100.9:1"), true)]
        {
            resolver.last_attempt.clear();
            resolver.known.clear();
            let before: Option<SocketAddr> = before.map(|text| text.parse().expect("an address"));
            resolver.known.extend(before.map(|address| ("vpn.example:51820".to_owned(), address)));
            resolver.poll(&state, &silent_for(silence), now, |_| Some(Egress::DEFAULT));
            assert_eq!(resolver.asking.is_empty(), !asks, "after {silence} s");
            while !resolver.asking.is_empty() {
                tokio::task::yield_now().await;
                resolver.gather();
            }
            let found = resolver.poll(&state, &silent_for(0), now, |_| Some(Egress::DEFAULT));
            assert_eq!(found["vpn.example:51820"], if asks { expected } else { before.expect("known") });
        }
    }

    #[tokio::test]
    async fn a_silent_address_gives_way_to_the_next_and_stays_without_another() {
        let all = ["192.0.2.1:1", "192.0.2.2:1"];
        assert_eq!(after(resolver(all[0]), &all).await, all[1]);
        assert_eq!(after(resolver(all[1]), &all).await, all[0]);
        assert_eq!(after(resolver("192.0.2.9:1"), &all).await, all[0], "it has moved");
        assert_eq!(after(resolver(all[0]), &all[..1]).await, all[0]);
        assert_eq!(after(resolver(all[0]), &[]).await, all[0], "the name server is gone");
    }
}

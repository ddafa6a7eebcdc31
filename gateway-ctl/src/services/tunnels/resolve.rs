//! Endpoint names to addresses, by the host's own resolver, outside of any tunnel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use gateway_model::State;
use tokio::time::Instant;

use super::Seen;
use super::health::DEGRADED;

/// How long a name may take; the look at the tunnels waits for it.
const PATIENCE: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_secs(30);
/// The address may have moved when the other end has been silent so long.
const STALE: Duration = Duration::from_secs(150);

#[derive(Default)]
pub struct Resolver {
    asked: BTreeMap<String, Instant>,
}

impl Resolver {
    /// The addresses of all endpoint names. A name that cannot be resolved keeps its last address.
    pub async fn look(&mut self, state: &State, before: &Seen) -> BTreeMap<String, SocketAddr> {
        let mut names = BTreeSet::new();
        let mut stale = BTreeSet::new();
        for tunnel in state.tunnels.iter().filter(|tunnel| tunnel.wanted_up()) {
            for peer in &tunnel.peers {
                let Some(endpoint) = peer.endpoint.as_ref().map(ToString::to_string) else { continue };
                if endpoint.parse::<SocketAddr>().is_ok() {
                    continue;
                }
                let live = before.peers.get(&(tunnel.meta.id, peer.public_key.0));
                let fresh = live.and_then(|live| live.last_handshake).is_some_and(|at| {
                    jiff::Timestamp::now().duration_since(at).unsigned_abs() < STALE.min(DEGRADED)
                });
                if !fresh {
                    stale.insert(endpoint.clone());
                }
                names.insert(endpoint);
            }
        }
        self.asked.retain(|name, _| names.contains(name));
        let mut addresses = BTreeMap::new();
        for name in names {
            let known = before.endpoints.get(&name).copied();
            let may_ask = self.asked.get(&name).is_none_or(|last| last.elapsed() >= RETRY);
            let ask = may_ask && (known.is_none() || stale.contains(&name));
            let address = if ask {
                self.asked.insert(name.clone(), Instant::now());
                resolve(&name).await.or(known)
            } else {
                known
            };
            addresses.extend(address.map(|address| (name, address)));
        }
        addresses
    }
}

async fn resolve(name: &str) -> Option<SocketAddr> {
    match tokio::time::timeout(PATIENCE, tokio::net::lookup_host(name)).await {
        Ok(Ok(mut addresses)) => addresses.next(),
        Ok(Err(error)) => {
            tracing::debug!(endpoint = name, %error, "cannot resolve");
            None
        }
        Err(_) => {
            tracing::debug!(endpoint = name, "no answer in time");
            None
        }
    }
}

//! The relay: accepts connections and datagrams that ingress marked for a proxy, and forwards them through it.
//!
//! The kernel hands them over by fwmark (`nft/ruleset.rs`, chain `proxied`). The mark encodes the proxy and the leg.
//! Without this process they are dropped.
//!
//! Decision 0037 says why.

mod associations;
mod connect_error;
mod fd_budget;
mod flows;
mod shared;
mod sockets;
mod splice;
mod target;
mod tcp;
mod udp;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_core::indexes::ProxyIndex;
use gateway_core::plan::ProxyTarget;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use connect_error::ConnectError;
pub use flows::RelayedFlows;
pub use shared::ConnectFailures;
pub use sockets::addresses;
pub(super) use udp::{over, send};

use crate::supervise::Supervisor;
use shared::Shared;
use target::{Counters, Target};

/// Time limit for connections to end, and the poll interval meanwhile.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(5);

/// The relay of this process. Dropping it ends all connections.
#[derive(Debug, Default)]
pub struct Relay {
    shared: Arc<Shared>,
    supervisor: Supervisor,
    listening: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen for proxied traffic at {address}")]
    Listen { address: std::net::SocketAddr, source: io::Error },
}

/// Present state of the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayStatus {
    pub running: bool,
    pub by_proxy: Vec<ProxyTraffic>,
}

/// Traffic through one proxy. Counters that only rise count from the start of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProxyTraffic {
    pub proxy_id: String,
    pub name: String,
    /// Open connections of LAN hosts.
    pub connections: usize,
    pub udp_flows: usize,
    /// Connections and UDP flows of LAN hosts so far.
    pub accepted: u64,
    /// Connections and UDP flows for which the proxy was unreachable or refused.
    pub failed: u64,
    /// Connections and UDP flows that were reset because of the limit of this proxy or of the relay.
    pub over_limit: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

impl Relay {
    /// Creates a relay whose listeners are restarted and reported by this supervisor.
    pub fn new(supervisor: Supervisor) -> Relay {
        Relay { supervisor, shared: Arc::default(), listening: Mutex::default() }
    }

    /// Returns the configured proxies, by number.
    pub fn targets(&self) -> BTreeMap<ProxyIndex, ProxyTarget> {
        let targets = self.shared.targets.read();
        targets.iter().map(|(number, target)| (*number, ProxyTarget::clone(&target.to))).collect()
    }

    /// Adds or replaces a proxy. The first one starts the listeners.
    pub fn put(&self, number: ProxyIndex, to: ProxyTarget) -> Result<(), Error> {
        self.listen()?;
        {
            let mut targets = self.shared.targets.write();
            let next = match targets.get(&number).filter(|target| target.to.proxy_id == to.proxy_id) {
                Some(before) => before.replaced(to),
                None => Target::new(to, Arc::new(Counters::default())),
            };
            targets.insert(number, Arc::new(next));
        }
        Ok(())
    }

    /// Removes a proxy and resets its connections. They are gone on return, unless that exceeds the time limit.
    pub async fn remove(&self, number: ProxyIndex) {
        let gone = {
            let mut targets = self.shared.targets.write();
            let gone = targets.remove(&number).map(|target| target.counters.clone());
            if targets.is_empty() {
                self.stop_listening();
            }
            gone
        };
        let Some(counters) = gone else { return };
        let deadline = tokio::time::Instant::now() + SHUTDOWN_TIMEOUT;
        while counters.open.load(Ordering::Relaxed) > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(TICK).await;
        }
    }

    fn listen(&self) -> Result<(), Error> {
        let mut listening = self.listening.lock();
        if !listening.is_empty() {
            return Ok(());
        }
        let mut listeners = Vec::new();
        for address in addresses() {
            let connections = sockets::listen(address);
            let both =
                connections.and_then(|one| Ok((address, one, sockets::listen_for_datagrams(address)?)));
            match both {
                Ok(both) => listeners.push(both),
                // A kernel without IPv6 has no IPv6 traffic to relay.
                Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
                Err(source) => return Err(Error::Listen { address, source }),
            }
        }
        for (address, connections, datagrams) in listeners {
            let (connections, datagrams) = (Arc::new(connections), Arc::new(datagrams));
            let shared = self.shared.clone();
            let accept = move || tcp::accept(connections.clone(), shared.clone());
            listening.push(self.supervisor.restart(format!("proxy_relay tcp {address}"), accept));
            let shared = self.shared.clone();
            let receive = move || udp::listen(datagrams.clone(), shared.clone());
            listening.push(self.supervisor.restart(format!("proxy_relay udp {address}"), receive));
        }
        Ok(())
    }

    fn stop_listening(&self) {
        for task in self.listening.lock().drain(..) {
            task.abort();
        }
    }

    pub fn is_running(&self) -> bool {
        !self.listening.lock().is_empty()
    }

    pub fn status(&self) -> RelayStatus {
        let targets = self.shared.targets.read();
        let by_proxy = targets.values().map(|target| {
            let counters = &target.counters;
            ProxyTraffic {
                proxy_id: target.to.proxy_id.clone(),
                name: target.to.name.clone(),
                connections: counters.open.load(Ordering::Relaxed),
                udp_flows: counters.flows.load(Ordering::Relaxed),
                accepted: counters.accepted.load(Ordering::Relaxed),
                failed: counters.failed.load(Ordering::Relaxed),
                over_limit: counters.over_limit.load(Ordering::Relaxed),
                sent_bytes: counters.traffic.up.load(Ordering::Relaxed),
                received_bytes: counters.traffic.down.load(Ordering::Relaxed),
            }
        });
        RelayStatus { running: self.is_running(), by_proxy: by_proxy.collect() }
    }

    /// Returns the flows that the relay carries.
    pub fn flows(&self) -> RelayedFlows {
        self.shared.flows.clone()
    }

    /// Returns a receiver of proxies that were unreachable for a connection.
    pub fn connect_failures(&self) -> watch::Receiver<ConnectFailures> {
        self.shared.doubts.subscribe()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop_listening();
        self.shared.targets.write().clear();
    }
}

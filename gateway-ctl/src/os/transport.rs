//! Transport bridges: they transport the outer packets of tunnels to the peer over another protocol than plain UDP.
//!
//! Each tunnel has its own bridge. It receives the tunnel's datagrams at a loopback address and keeps one connection
//! to the remote end, with retries. Without the connection, datagrams are dropped.

mod datagrams;
mod frames;
mod local_socket;
mod stream;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::facts::{Facts, TransportFact};
use gateway_core::plan::{TransportKind, TransportTarget};
use gateway_outbound::backoff::{Backoff, spread};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::os::proxy::ConnectError;
use crate::supervise::Supervisor;
use local_socket::LocalSocket;

/// Time limit for a connection attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
const RETRY: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(15));
/// Lifetime of a connection after which the retry delays restart from the shortest.
const STABLE_PERIOD: Duration = Duration::from_secs(5);
/// The bridges of this process by the id of the tunnel. Dropping ends them.
#[derive(Debug, Default)]
pub struct Transports {
    running: Mutex<BTreeMap<String, RunningBridge>>,
    supervisor: Supervisor,
    states: watch::Sender<Arc<BridgeStates>>,
}

/// States of the bridges, by the id of the tunnel.
pub(crate) type BridgeStates = BTreeMap<String, Connection>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    pub connected: bool,
    /// Reason why it is not connected.
    pub reason: String,
    /// Number of connects since the start of the bridge.
    pub connects: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen for datagrams of a tunnel at {address}")]
    Listen { address: SocketAddr, source: io::Error },
}

#[derive(Debug)]
struct RunningBridge {
    target: TransportTarget,
    near: Arc<LocalSocket>,
    again: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for RunningBridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Transports {
    /// Creates bridges that are restarted and reported by this supervisor.
    pub fn new(supervisor: Supervisor) -> Transports {
        Transports { supervisor, ..Transports::default() }
    }

    pub fn targets(&self) -> BTreeMap<String, TransportTarget> {
        let running = self.running.lock();
        let alive = running.iter().filter(|(_, one)| !one.task.is_finished());
        alive.map(|(tunnel, one)| (tunnel.clone(), one.target.clone())).collect()
    }

    pub fn states(&self) -> watch::Receiver<Arc<BridgeStates>> {
        self.states.subscribe()
    }

    /// Adds the states of the bridges to the facts.
    pub fn enrich(&self, facts: &mut Facts) {
        let fact = |one: &Connection| TransportFact { connected: one.connected, reason: one.reason.clone() };
        facts.transports =
            self.states.borrow().iter().map(|(tunnel, one)| (tunnel.clone(), fact(one))).collect();
    }

    /// Starts a bridge, or replaces its target.
    pub fn put(&self, tunnel: &str, target: TransportTarget) -> Result<(), Error> {
        let mut running = self.running.lock();
        let before = running.remove(tunnel).filter(|before| before.target.near == target.near);
        // The address stays with the tunnel, so its socket does.
        let near = match before.as_ref().map(|before| before.near.clone()) {
            Some(near) => near,
            None => Arc::new(
                LocalSocket::open(target.near)
                    .map_err(|source| Error::Listen { address: target.near, source })?,
            ),
        };
        drop(before);
        self.note(tunnel, |connection| {
            connection.connected = false;
            "it is being connected".clone_into(&mut connection.reason);
        });
        let again = Arc::new(Notify::new());
        let publisher = StatePublisher { tunnel: tunnel.to_owned(), states: self.states.clone() };
        let task = {
            let (target, near, again) = (target.clone(), near.clone(), again.clone());
            let start = move || run(target.clone(), near.clone(), again.clone(), publisher.clone());
            self.supervisor.restart(format!("bridge {tunnel}"), start)
        };
        running.insert(tunnel.to_owned(), RunningBridge { target, near, again, task });
        Ok(())
    }

    /// Ends a bridge. Its address is free on return.
    pub async fn remove(&self, tunnel: &str) {
        let removed = self.running.lock().remove(tunnel);
        if let Some(mut removed) = removed {
            removed.task.abort();
            // Aborted and finished are both fine.
            let _ = (&mut removed.task).await;
        }
        self.states.send_if_modified(|states| Arc::make_mut(states).remove(tunnel).is_some());
    }

    /// Sets the port of the WireGuard device whose packets the bridge transports, 0 while there is no device.
    pub fn set_device_port(&self, tunnel: &str, port: u16) {
        if let Some(one) = self.running.lock().get(tunnel) {
            one.near.set_device(port);
        }
    }

    /// Makes all bridges with this fwmark reconnect, because their egress has changed.
    pub fn renew(&self, mark: Option<Mark>) {
        let running = self.running.lock();
        for one in running.values().filter(|one| one.target.mark == mark) {
            one.again.notify_one();
        }
    }

    fn note(&self, tunnel: &str, change: impl FnOnce(&mut Connection)) {
        note(&self.states, tunnel, change);
    }
}

fn note(states: &watch::Sender<Arc<BridgeStates>>, tunnel: &str, change: impl FnOnce(&mut Connection)) {
    states.send_if_modified(|states| {
        let before = states.get(tunnel).cloned();
        let mut after = before.clone().unwrap_or_default();
        change(&mut after);
        let news = before.as_ref() != Some(&after);
        if news {
            Arc::make_mut(states).insert(tunnel.to_owned(), after);
        }
        news
    });
}

/// Publisher of the state of one bridge.
#[derive(Clone)]
struct StatePublisher {
    tunnel: String,
    states: watch::Sender<Arc<BridgeStates>>,
}

impl StatePublisher {
    fn connected(&self) {
        note(&self.states, &self.tunnel, |connection| {
            *connection =
                Connection { connected: true, reason: String::new(), connects: connection.connects + 1 };
        });
    }

    fn broken(&self, reason: String) {
        note(&self.states, &self.tunnel, |connection| {
            (connection.connected, connection.reason) = (false, reason);
        });
    }
}

async fn run(target: TransportTarget, near: Arc<LocalSocket>, again: Arc<Notify>, publisher: StatePublisher) {
    let mut failures = 0u32;
    loop {
        let began = Instant::now();
        let reason = tokio::select! {
            ended = run_once(&target, &near, &publisher) => ended.to_string(),
            () = again.notified() => {
                publisher.broken("the way to it has changed".to_owned());
                failures = 0;
                continue;
            }
        };
        tracing::debug!(tunnel = publisher.tunnel, reason, "bridge is not connected");
        publisher.broken(reason);
        if began.elapsed() > STABLE_PERIOD + TIMEOUT {
            failures = 0;
        }
        failures = failures.saturating_add(1);
        // Jitter, so that many tunnels do not connect at the same time.
        tokio::select! {
            () = tokio::time::sleep(spread(RETRY.after(failures), 0.5, 1.0)) => {}
            () = again.notified() => {}
        }
    }
}

/// Runs one connection from its start to its end.
async fn run_once(target: &TransportTarget, near: &LocalSocket, publisher: &StatePublisher) -> ConnectError {
    let Some(address) = target.address else { return ConnectError::NoAddress };
    let ended = match &target.kind {
        TransportKind::Udp2Tcp => match within(stream::open(address, target.mark)).await {
            Ok(far) => {
                near.drain();
                publisher.connected();
                stream::forward(far, near).await
            }
            Err(error) => return error,
        },
        TransportKind::Socks5 { to } => match within(datagrams::open(address, target.mark, to)).await {
            Ok(far) => {
                near.drain();
                publisher.connected();
                far.forward(near).await
            }
            Err(error) => return error,
        },
    };
    ConnectError::Ended(ended)
}

async fn within<T>(opening: impl Future<Output = Result<T, ConnectError>>) -> Result<T, ConnectError> {
    tokio::time::timeout(TIMEOUT, opening).await.unwrap_or(Err(ConnectError::Silent))
}

/// Probes the remote end of a transport step by step. Returns the duration or the error of each step.
pub(crate) async fn probe(target: &TransportTarget) -> Vec<(&'static str, Result<Duration, ConnectError>)> {
    let mut steps = Vec::new();
    let Some(address) = target.address else {
        return vec![("resolve", Err(ConnectError::NoAddress))];
    };
    let began = Instant::now();
    match within(stream::open(address, target.mark)).await {
        Ok(_) => steps.push(("connect", Ok(began.elapsed()))),
        Err(error) => return vec![("connect", Err(error))],
    }
    if let TransportKind::Socks5 { to } = &target.kind {
        let began = Instant::now();
        let outcome = within(datagrams::open(address, target.mark, to)).await;
        steps.push(("associate", outcome.map(|_| began.elapsed())));
    }
    steps
}

#[cfg(test)]
mod tests;

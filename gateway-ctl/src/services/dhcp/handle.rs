//! The running DHCP server, as its task, the API and the resolver share it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::health::{Check, CheckState, Finding, Protocol};
use gateway_core::state_machines::dhcp::{
    Configured, Counters, ForeignServer, ForeignServers, Lease, LeaseStatus, PoolUsage, SERVER_PORT, Server,
};
use gateway_model::MacAddr;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::handles::in_memory;
use crate::os::port_use;
use crate::service::Health;
use crate::services::encrypted_storage::StorageContent;

const SUBSYSTEM: &str = "dhcp";
/// Loss of hosts without the server.
pub const LOST: &str = "hosts get no addresses by DHCP";
/// Timeout of an erasure.
const ERASURE: Duration = Duration::from_secs(10);

/// Running server, as the API and the resolver see it. Clones are the same server.
#[derive(Clone, Debug)]
pub struct DhcpServer(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    state: Mutex<State>,
    erasures: mpsc::Sender<oneshot::Sender<io::Result<()>>>,
    /// Taken by the task; it comes back when the task ends.
    pub(super) requested_erasures: tokio::sync::Mutex<mpsc::Receiver<oneshot::Sender<io::Result<()>>>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) server: Server,
    pub(super) configured: Configured,
    /// Reason for which requests are not answered.
    pub(super) failure: Option<ServerFailure>,
    pub(super) foreign: ForeignServers,
}

/// Reason for which the server does not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ServerFailure {
    #[error("requests cannot be answered: {0}")]
    Sockets(String),
    #[error("leases cannot be stored: {0}")]
    Leases(String),
}

impl ServerFailure {
    fn finding(&self) -> Finding {
        let port = || port_use::conflict(Protocol::Udp, (Ipv4Addr::UNSPECIFIED, SERVER_PORT).into());
        match self {
            ServerFailure::Leases(_) => Finding::leases_not_stored(&self.to_string()),
            ServerFailure::Sockets(error) => match port() {
                Some(taken) => Finding::port_taken(LOST, &taken, CheckState::Failed),
                None => Finding::not_running("the DHCP server", error),
            },
        }
    }
}

/// Lease with what the server knows of it.
#[derive(Clone, Debug)]
pub struct ShownLease {
    pub lease: Lease,
    pub status: LeaseStatus,
    /// It is the one of a reservation.
    pub is_reserved: bool,
}

in_memory!(DhcpServer);

impl Default for DhcpServer {
    fn default() -> DhcpServer {
        let (erasures, requested) = mpsc::channel(1);
        DhcpServer(Arc::new(Inner {
            state: Mutex::default(),
            erasures,
            requested_erasures: tokio::sync::Mutex::new(requested),
        }))
    }
}

impl DhcpServer {
    /// Returns all leases, ended ones included, by address.
    pub fn leases(&self, now: Timestamp) -> Vec<ShownLease> {
        let state = self.lock();
        let server = &state.server;
        let shown = |(lease, status): (&Lease, LeaseStatus)| ShownLease {
            lease: lease.clone(),
            status,
            is_reserved: server.is_reserved(lease),
        };
        server.leases(now).map(shown).collect()
    }

    /// Returns addresses that other hosts use.
    pub(super) fn declined(&self, now: Timestamp) -> Vec<Ipv4Addr> {
        let state = self.lock();
        let declined = state.server.leases(now).filter(|(_, status)| *status == LeaseStatus::Declined);
        declined.map(|(lease, _)| lease.address).collect()
    }

    /// Returns active clients that have given themselves a name of the gateway.
    pub(super) fn claims_of_names(
        &self,
        own: &BTreeSet<String>,
        now: Timestamp,
    ) -> BTreeMap<String, MacAddr> {
        let state = self.lock();
        let active = state.server.leases(now).filter(|(_, status)| *status == LeaseStatus::Active);
        let named = active.filter_map(|(lease, _)| Some((lease.hostname.as_deref()?, lease.mac)));
        let claims = named.filter(|(name, _)| own.contains(&name.to_ascii_lowercase()));
        claims.map(|(name, mac)| (name.to_ascii_lowercase(), mac)).collect()
    }

    /// Counts the leases in each state.
    pub fn lease_counts(&self, now: Timestamp) -> [(LeaseStatus, usize); 4] {
        use LeaseStatus::{Active, Declined, Expired, Released};
        let state = self.lock();
        let mut counts = [Active, Expired, Declined, Released].map(|status| (status, 0));
        for (_, status) in state.server.leases(now) {
            counts.iter_mut().filter(|(of, _)| *of == status).for_each(|(_, count)| *count += 1);
        }
        counts
    }

    pub fn counters(&self) -> Counters {
        self.lock().server.counters().clone()
    }

    pub fn pools(&self) -> Vec<PoolUsage> {
        self.lock().server.pools()
    }

    /// Returns other servers that were observed on served interfaces.
    pub fn foreign_servers(&self) -> Vec<ForeignServer> {
        self.lock().foreign.list()
    }

    /// Erases all leases, in memory and on disk.
    pub(super) async fn erase(&self) -> io::Result<()> {
        let (done, erased) = oneshot::channel();
        let stopped = || io::Error::other("the DHCP server is not running");
        let erasing = async {
            self.0.erasures.send(done).await.map_err(|_| stopped())?;
            erased.await.map_err(|_| stopped())?
        };
        timeout(ERASURE, erasing).await.map_err(|_| stopped())?
    }

    /// Returns the health of the server. `None` while nothing is to be served. Blocks while another program has its
    /// port, to find that program.
    pub fn health(&self) -> Option<Health> {
        let (mut findings, failure, used, checks) = {
            let state = self.lock();
            let configured = &state.configured;
            if !configured.is_enabled && state.failure.is_none() {
                return None;
            }
            let pools = state.server.pools();
            let nothing = configured.config.scopes.is_empty();
            let not_served = if nothing { CheckState::Failed } else { CheckState::Degraded };
            let problems = configured.problems.iter();
            let mut findings: Vec<Finding> =
                problems.map(|problem| Finding::network_not_served(problem, not_served)).collect();
            let exhausted_pools = pools.iter().filter(|pool| pool.free == 0);
            findings.extend(exhausted_pools.map(|pool| Finding::pool_exhausted(&pool.name, exhausted(pool))));
            if state.failure.is_none() && state.server.is_withholding() {
                findings.push(Finding::storage_locked(StorageContent::DhcpLeases.as_str()));
            }
            findings.extend(
                state.foreign.list().iter().map(|server| Finding::other_dhcp_server(server.to_string())),
            );
            let used = |pool: &PoolUsage| {
                format!("{} of {} addresses in use on {}", pool.size - pool.free, pool.size, pool.name)
            };
            let used = pools.iter().map(used).collect::<Vec<_>>().join("; ");
            (findings, state.failure.clone(), used, state.server.counters().requests.values().sum())
        };
        findings.extend(failure.map(|failure| failure.finding()));
        Some(Health { checks, ..Check::of(SUBSYSTEM, findings, used).into() })
    }

    pub(super) fn fail(&self, failure: ServerFailure) {
        let mut state = self.lock();
        if state.failure.as_ref() != Some(&failure) {
            tracing::warn!(error = %failure, "failed to serve DHCP");
            state.failure = Some(failure);
        }
    }

    /// Locks the state. After a panic, the task that starts again loads it from the journal.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

pub(super) fn exhausted(pool: &PoolUsage) -> String {
    let PoolUsage { name, size, active, offered, declined, .. } = pool;
    format!(
        "no address is free on {name}: of {size}, {active} are leased, {offered} offered and {declined} in use by other hosts"
    )
}

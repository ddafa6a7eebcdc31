//! Delegated prefixes of all uplinks: facts of the plan, health, and their file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::{DelegatedPrefix, Facts};
use gateway_core::health::{Check, Finding};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::stored::{self, StoredLease};
use crate::handles::Handle;
use crate::reconcile::Reason;
use crate::service::{Context, Health};
use crate::supervise::blocking;
use crate::world::{World, Worlds};

const SUBSYSTEM: &str = "prefix_delegation";
/// Pause after a failure of a client.
pub(super) const RETRY: Duration = Duration::from_secs(10);

/// Delegated prefixes of the uplinks, shared by the clients and the plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delegations(Arc<Mutex<BTreeMap<String, UplinkDelegation>>>);

/// Delegation of one uplink.
#[derive(Clone, Debug, Default)]
struct UplinkDelegation {
    lease: Option<StoredLease>,
    /// Failure of the client, if it cannot ask.
    failure: Option<String>,
}

/// Delegations of an earlier run are facts of the first plan, so a restart removes no address.
impl Handle for Delegations {
    fn open(state_dir: &Path, now: Timestamp) -> Delegations {
        let leases = stored::read(&stored::path(state_dir)).into_iter();
        let valid = leases.filter(|(_, lease)| lease.valid_until > now);
        let valid = valid
            .map(|(uplink, lease)| (uplink, UplinkDelegation { lease: Some(lease), failure: None }))
            .collect();
        Delegations(Arc::new(Mutex::new(valid)))
    }
}

impl Delegations {
    /// Adds the prefixes to the facts.
    pub(crate) fn enrich(&self, facts: &mut Facts) {
        let delegations = self.0.lock();
        let prefixes = delegations.iter().filter_map(|(uplink, delegation)| {
            let StoredLease { net, preferred_until, valid_until, .. } = *delegation.lease.as_ref()?;
            Some((uplink.clone(), DelegatedPrefix { net, preferred_until, valid_until }))
        });
        facts.delegations = prefixes.collect();
    }

    /// Returns the health while prefixes are requested.
    pub(crate) fn health(&self, worlds: &Worlds) -> Option<Health> {
        let wanted = wanted(&worlds.last());
        let delegations = self.0.lock();
        let of = |uplink: &String| delegations.get(uplink).cloned().unwrap_or_default();
        let (mut findings, mut messages) = (Vec::new(), Vec::new());
        for uplink in &wanted {
            match of(uplink) {
                UplinkDelegation { failure: Some(failure), .. } => {
                    findings.push(Finding::prefix_not_delegated(uplink, &failure));
                }
                UplinkDelegation { lease: Some(lease), .. } => {
                    messages.push(format!("{uplink} delegates {}", lease.net));
                }
                UplinkDelegation { .. } => messages.push(format!("{uplink} delegates no prefix")),
            }
        }
        (!wanted.is_empty()).then(|| Check::of(SUBSYSTEM, findings, messages.join("; ")).into())
    }

    pub(super) fn lease(&self, uplink: &str) -> Option<StoredLease> {
        self.0.lock().get(uplink).and_then(|delegation| delegation.lease.clone())
    }

    pub(super) fn leases(&self) -> BTreeMap<String, StoredLease> {
        let delegations = self.0.lock();
        let leases = delegations
            .iter()
            .filter_map(|(uplink, delegation)| Some((uplink.clone(), delegation.lease.clone()?)));
        leases.collect()
    }

    pub(super) fn set_lease(&self, uplink: &str, lease: Option<StoredLease>) {
        self.0.lock().entry(uplink.to_owned()).or_default().lease = lease;
    }

    pub(super) fn set_failure(&self, uplink: &str, failure: Option<String>) {
        self.0.lock().entry(uplink.to_owned()).or_default().failure = failure;
    }
}

/// Delegations with the means of their clients.
#[derive(Clone)]
pub(super) struct Shared {
    pub context: Context,
    pub delegations: Delegations,
    pub path: PathBuf,
}

impl Shared {
    /// Takes the lease of an uplink: plan and disk follow.
    pub(super) async fn set_lease(&self, uplink: &str, lease: Option<StoredLease>) {
        let before = self.delegations.lease(uplink).map(|lease| lease.net);
        match &lease {
            Some(lease) if before == Some(lease.net) => {
                tracing::debug!(uplink, prefix = %lease.net, "renewed the delegated IPv6 prefix");
            }
            Some(lease) => tracing::info!(uplink, prefix = %lease.net, "received a delegated IPv6 prefix"),
            None => tracing::info!(uplink, "lost the delegated IPv6 prefix"),
        }
        self.delegations.set_lease(uplink, lease);
        self.context.wake.wake(Reason::Facts);
        let (path, leases) = (self.path.clone(), self.delegations.leases());
        if let Err(error) = blocking(move || stored::write(&path, &leases)).await {
            tracing::warn!(%error, "failed to store the delegated IPv6 prefixes");
        }
    }
}

/// Returns the uplinks whose prefixes are requested.
pub(super) fn wanted(world: &World) -> BTreeSet<String> {
    let is_wanted = world.network.ipv6.as_ref().is_some_and(|settings| settings.delegation);
    let uplinks = world.network.uplinks.iter().filter(|_| is_wanted);
    uplinks.map(|uplink| uplink.interface.clone()).collect()
}

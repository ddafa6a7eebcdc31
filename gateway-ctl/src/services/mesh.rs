//! Coordinator of a mesh of stock clients: they register with pre-auth keys, learn about each other, and use the relay.
//!
//! Nodes and keys are in the store, beside the configuration and in no snapshot: a rollback returns no removed node. The
//! coordinator follows the settings and the store. A changed setting, an import or a wipe replaces it, and clients connect
//! again. Decision 0211 says why.

mod administration;
mod identity;
mod ledger;
mod listeners;
mod metrics;
mod views;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gateway_core::health::{Check, Finding};
use gateway_mesh::wire::{DerpMap, DerpNode, DerpRegion};
use gateway_mesh::{Coordinator, Lifetimes, MeshProfile, Settings};
use gateway_model::settings::bootstrap::MeshCoordinator;
use gateway_model::settings::groups::WipeLevel;
use jiff::SignedDuration;
use parking_lot::Mutex;

use crate::service::{Health, Service};
use crate::store::{self, Store};
use crate::supervise::blocking;
use crate::world::Worlds;
use ledger::StoreLedger;
use listeners::{Listening, Serving};

pub use administration::{AdministrationError, CreatedKey, KeyTerms};
pub use listeners::TlsServer;
pub use views::{
    Connection, CoordinatorStatus, DerpMode, DerpModeName, DerpStatus, MeshPeer, MeshPeerCounts, MeshRoute,
    MeshState, MeshStatus, OwnNode,
};

/// Number of the region of the own relay, as clients know embedded relays.
const REGION: u32 = 999;
/// Name of the owner of all nodes, as clients show it.
const OWNER: &str = "gateway";
const SUBSYSTEM: &str = "mesh_coordinator";
/// Interval at which ephemeral nodes and expired keys are looked for.
const TICK: Duration = Duration::from_secs(10);

/// Reason why there is no coordinator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the stored nodes of the mesh cannot be read: {0}")]
    Roster(String),
}

/// Mesh that this gateway coordinates.
pub struct Mesh {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    tls: TlsServer,
    opened: Mutex<Option<Opened>>,
    listening: Arc<Listening>,
    /// Set by a hard wipe: nothing is opened or stored any more.
    erased: AtomicBool,
}

/// Coordinator of certain settings.
#[derive(Clone)]
struct Opened {
    settings: MeshCoordinator,
    coordinator: Arc<Coordinator>,
    ledger: Arc<StoreLedger>,
}

impl Mesh {
    pub fn new(store: Arc<Store>, worlds: Arc<Worlds>, tls: TlsServer) -> Arc<Mesh> {
        let (opened, listening, erased) = Default::default();
        Arc::new(Mesh { store, worlds, tls, opened, listening, erased })
    }

    /// Returns the service that serves the clients.
    pub fn service(self: &Arc<Self>) -> Service {
        let (reported, measured, erased) = (self.clone(), self.clone(), self.clone());
        Service::new("mesh_coordinator", self, |mesh| mesh.run())
            .reports(move || std::future::ready(reported.health()))
            .measures(move |registry| {
                let opened = measured.opened.lock().clone();
                // There are none while the coordinator is off.
                if let Some(opened) = opened.filter(|opened| opened.settings.enabled) {
                    metrics::register(registry, &opened.coordinator);
                }
            })
            .erases(move |level| {
                erased.erase(level);
                std::future::ready(Ok(()))
            })
    }

    fn settings(&self) -> MeshCoordinator {
        self.worlds.in_force().config.mesh.coordinator.clone()
    }

    /// Returns the coordinator of the settings in force. `None` without one: it is off, and never had nodes. Blocks on the
    /// disk.
    fn open(&self) -> Result<Option<Opened>, OpenError> {
        let settings = self.settings();
        let mut opened = self.opened.lock();
        if self.erased.load(Ordering::Acquire) {
            *opened = None;
            return Ok(None);
        }
        if let Some(opened) = &*opened
            && opened.settings == settings
            && opened.coordinator.between_changes(|| opened.ledger.is_current())
        {
            return Ok(Some(opened.clone()));
        }
        *opened = None;
        let Some(identity) = identity::of(&self.store, settings.enabled)? else { return Ok(None) };
        let (roster, revision) = ledger::stored(&self.store.current()).map_err(OpenError::Roster)?;
        let ledger = Arc::new(StoreLedger::new(self.store.clone(), revision));
        let clock = self.store.clock().clone();
        let wanted = Settings {
            identity: identity.control,
            relay: settings.relay.enabled.then_some(identity.relay),
            profile: profile(&settings),
            lifetimes: lifetimes(&settings),
            verify_clients: settings.relay.verify_clients,
        };
        let coordinator = Coordinator::new(wanted, roster, ledger.clone(), Arc::new(move || clock.now()));
        let made = Opened { settings, coordinator, ledger };
        *opened = Some(made.clone());
        Ok(Some(made))
    }

    /// Follows settings and store until it is aborted.
    async fn run(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        let mut serving: Option<Serving> = None;
        let mut ticks = tokio::time::interval(TICK);
        loop {
            let mesh = self.clone();
            let (opened, failure) = match blocking(move || mesh.open()).await {
                Ok(opened) => (opened.filter(|opened| opened.settings.enabled), None),
                Err(error) => (None, Some(error.to_string())),
            };
            match opened {
                Some(opened)
                    if serving.as_ref().is_some_and(|serving| serving.is_of(&opened.coordinator)) => {}
                opened => {
                    // The addresses are free before they are bound again.
                    if let Some(serving) = serving.take() {
                        serving.end().await;
                    }
                    serving = opened.map(|opened| {
                        Serving::start(
                            &opened.coordinator,
                            &opened.settings,
                            self.tls.clone(),
                            &self.listening,
                        )
                    });
                }
            }
            if let Some(failure) = failure {
                self.listening.fail(failure);
            }
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { return },
                _ = ticks.tick() => self.tick().await,
            }
        }
    }

    /// Removes ephemeral nodes that are gone, and ends what has expired.
    async fn tick(&self) {
        let Some(coordinator) = self.opened.lock().as_ref().map(|opened| opened.coordinator.clone()) else {
            return;
        };
        if let Err(error) = blocking(move || coordinator.tick()).await {
            tracing::warn!(%error, "failed to remove ephemeral nodes of the mesh");
        }
    }

    fn erase(&self, level: WipeLevel) {
        if level == WipeLevel::Hard {
            self.erased.store(true, Ordering::Release);
            *self.opened.lock() = None;
        }
    }

    /// Returns the health while the coordinator is on.
    fn health(&self) -> Option<Health> {
        if !self.settings().enabled {
            return None;
        }
        let failures = self.listening.failures();
        let findings =
            failures.iter().map(|error| Finding::not_running("the coordinator of the mesh", error)).collect();
        Some(Check::of(SUBSYSTEM, findings, "serves the nodes of the mesh").into())
    }
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mesh").finish_non_exhaustive()
    }
}

fn lifetimes(settings: &MeshCoordinator) -> Lifetimes {
    Lifetimes {
        key: SignedDuration::from_hours(24 * i64::from(settings.node_key_days)),
        ephemeral: SignedDuration::from_secs(settings.ephemeral_sec.into()),
    }
}

fn profile(settings: &MeshCoordinator) -> MeshProfile {
    MeshProfile { domain: settings.domain.clone(), owner: OWNER.to_owned(), derp_map: derp_map(settings) }
}

/// Returns the relays that nodes use: the own one, or none.
fn derp_map(settings: &MeshCoordinator) -> DerpMap {
    let node = DerpNode {
        name: OWNER.to_owned(),
        region_id: REGION,
        host_name: settings.host.clone(),
        cert_name: String::new(),
        ipv4: settings.host.parse().ok().filter(std::net::IpAddr::is_ipv4),
        derp_port: settings.listen_addr.port(),
        stun_port: settings.relay.stun_port.into(),
    };
    let region = DerpRegion {
        region_id: REGION,
        region_code: OWNER.to_owned(),
        region_name: OWNER.to_owned(),
        nodes: vec![node],
    };
    let regions = settings.relay.enabled.then_some((REGION, region));
    DerpMap { regions: regions.into_iter().collect(), omit_default_regions: true }
}

#[cfg(test)]
mod tests;

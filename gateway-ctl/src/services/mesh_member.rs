//! This gateway as a node of a mesh that another gateway or host coordinates: it registers, follows the map, and reaches the
//! peers by its own WireGuard engine, directly or by relays.
//!
//! The membership is in the store, beside the configuration and in no snapshot: a rollback neither joins nor leaves a mesh.
//! The engine lives as long as the membership is on and the coordinator has this node. Without a connection to the
//! coordinator it works on by the last map. Decision 0215 says why.

mod commit;
mod dial;
mod engine;
mod layer;
mod map_reader;
mod membership;
mod metrics;
mod observed;
mod registration;
mod relays;
mod session;
mod views;

use std::sync::Arc;
use std::time::Duration;

use gateway_core::health::{Check, Finding};
use gateway_model::settings::groups::WipeLevel;
use gateway_outbound::Resolver;
use gateway_outbound::backoff::Backoff;

use crate::engine::Enforcement;
use crate::handles::Handles;
use crate::service::{Health, Service};
use crate::services::mesh_link::LinkFacts;
use crate::store::Store;
use crate::tls::Factory;
use crate::world::Worlds;
use dial::Connector;
use engine::{Engine, EngineParts};
use membership::Membership;
use observed::Observed;
use session::End;

pub use registration::{MemberError, RegisterMember};
pub use views::MeshConfig;

const SUBSYSTEM: &str = "mesh_member";
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// Pause after the coordinator has said that it has no such node.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// This gateway as a node of a mesh.
pub struct MeshMember {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    enforcement: Arc<dyn Enforcement>,
    connector: Arc<Connector>,
    link: LinkFacts,
    observed: Arc<Observed>,
}

impl MeshMember {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        enforcement: Arc<dyn Enforcement>,
        handles: &Handles,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
    ) -> Arc<MeshMember> {
        let connector = Arc::new(Connector::new(tls.client("mesh"), endpoint_names));
        let (link, observed) = (handles.get::<LinkFacts>(), Arc::default());
        Arc::new(MeshMember { store, worlds, enforcement, connector, link, observed })
    }

    /// Returns the service that follows the membership.
    pub fn service(self: &Arc<Self>) -> Service {
        let (reported, measured, erased) = (self.clone(), self.clone(), self.clone());
        Service::new("mesh_member", self, |member| member.run())
            .reports(move || std::future::ready(reported.health()))
            .measures(move |registry| {
                // There are none while the membership is off.
                if measured.wanted().is_some() {
                    metrics::register(registry, &measured.observed.get(), measured.link.get().as_ref());
                }
            })
            .erases(move |level| {
                erased.erase(level);
                std::future::ready(Ok(()))
            })
    }

    /// Returns the membership that is to be followed; none while it is off, or while this gateway coordinates a mesh itself.
    fn wanted(&self) -> Option<Membership> {
        if self.observed.is_erased() || self.coordinates() {
            return None;
        }
        Membership::stored(&self.store.current()).filter(|membership| membership.record.up)
    }

    fn coordinates(&self) -> bool {
        self.worlds.in_force().config.mesh.coordinator.enabled
    }

    /// Follows the membership until it is aborted.
    async fn run(self: Arc<Self>) {
        let (parts, mut revisions) = (self.engine_parts(), self.store.watch());
        let mut failures = 0;
        let mut engine: Option<Engine> = None;
        loop {
            revisions.borrow_and_update();
            let wanted = self.wanted();
            if engine.as_ref().is_some_and(|engine| Some(engine.membership()) != wanted.as_ref()) {
                self.end(&mut engine).await;
                failures = 0;
            }
            let Some(membership) = wanted else {
                self.observed.clear();
                if revisions.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let followed = {
                let follow = session::follow(&parts, &membership, &mut engine);
                tokio::select! {
                    end = follow => Some(end),
                    () = self.changes(&mut revisions, &membership) => None,
                }
            };
            let pause = match followed {
                None => continue,
                Some(End::NoMember(reason)) => {
                    self.end(&mut engine).await;
                    self.observed.refuse(reason);
                    REFUSED_PAUSE
                }
                Some(End::Lost { reason, followed }) => {
                    failures = if followed { 1 } else { failures + 1 };
                    self.observed.lose(reason);
                    RETRY.after(failures)
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.changes(&mut revisions, &membership) => failures = 0,
            }
        }
    }

    /// Waits until another membership is to be followed.
    async fn changes(&self, revisions: &mut tokio::sync::watch::Receiver<u64>, membership: &Membership) {
        while revisions.changed().await.is_ok() {
            if self.wanted().as_ref() != Some(membership) {
                return;
            }
        }
    }

    /// Ends the engine, and with it all access by the mesh.
    async fn end(&self, engine: &mut Option<Engine>) {
        if let Some(engine) = engine.take() {
            engine.close().await;
        }
    }

    fn engine_parts(&self) -> EngineParts {
        EngineParts {
            store: self.store.clone(),
            worlds: self.worlds.clone(),
            enforcement: self.enforcement.clone(),
            connector: self.connector.clone(),
            link: self.link.clone(),
            observed: self.observed.clone(),
            clock: self.store.clock().clone(),
        }
    }

    fn erase(&self, level: WipeLevel) {
        if level == WipeLevel::Hard {
            self.observed.erase();
        }
    }

    /// Returns the health while the membership is on.
    fn health(&self) -> Option<Health> {
        self.wanted()?;
        let failure = self.observed.failure();
        let findings =
            failure.iter().map(|error| Finding::not_running("the membership in a mesh", error)).collect();
        Some(Check::of(SUBSYSTEM, findings, "follows the map of the mesh").into())
    }
}

impl std::fmt::Debug for MeshMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeshMember").finish_non_exhaustive()
    }
}

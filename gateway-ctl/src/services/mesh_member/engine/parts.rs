//! Surroundings of an engine, and its announcements.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use gateway_model::settings::bootstrap::MeshMembership;
use gateway_model::settings::keys::MESH_DOMAIN;
use ipnet::IpNet;
use serde_json::json;

use crate::clock::SharedClock;
use crate::engine::Enforcement;
use crate::services::mesh_link::LinkFacts;
use crate::services::mesh_member::commit::commit;
use crate::services::mesh_member::dial::Connector;
use crate::services::mesh_member::observed::Observed;
use crate::store::{AuditTicket, Store};
use crate::supervise::blocking;
use crate::world::Worlds;

/// Surroundings of an engine and its session.
#[derive(Clone)]
pub(in super::super) struct EngineParts {
    pub store: Arc<Store>,
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    pub connector: Arc<Connector>,
    pub link: LinkFacts,
    pub observed: Arc<Observed>,
    pub clock: SharedClock,
}

impl EngineParts {
    /// Stores the domain of the mesh if it is another one than before. The resolver needs it without a map as well.
    pub(in super::super) async fn keep_domain(&self, domain: &str) {
        let domain = domain.trim_end_matches('.').to_owned();
        if domain.is_empty() || self.store.current().settings.get(MESH_DOMAIN) == Some(&json!(domain)) {
            return;
        }
        let store = self.store.clone();
        let mut ticket = AuditTicket::system("set_mesh_domain", "mesh");
        ticket.details = json!({"domain": domain});
        let kept =
            blocking(move || commit(&store, ticket, |draft| draft.set(MESH_DOMAIN, json!(domain)))).await;
        if let Err(error) = kept {
            tracing::warn!(%error, "failed to store the domain of the mesh");
        }
    }

    /// Returns the prefixes that this gateway offers to route, by its settings.
    pub(in super::super) fn offered(&self) -> BTreeSet<IpNet> {
        self.membership_settings().offered()
    }

    pub(in super::super) fn membership_settings(&self) -> MeshMembership {
        self.worlds.in_force().config.mesh.member.clone()
    }
}

/// Knowledge of peers about this gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Announcement {
    /// Addresses and ports that may be pinged.
    pub endpoints: Vec<SocketAddr>,
    /// Region of the home relay.
    pub home: Option<u32>,
    /// Prefixes that this gateway offers to route.
    pub routes: BTreeSet<IpNet>,
}

//! Surroundings of an engine, and its announcements.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::clock::SharedClock;
use crate::engine::Enforcement;
use crate::services::mesh_link::LinkFacts;
use crate::services::mesh_member::dial::Connector;
use crate::services::mesh_member::observed::Observed;
use crate::world::Worlds;

/// Surroundings of an engine and its session.
#[derive(Clone)]
pub(in super::super) struct EngineParts {
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    pub connector: Arc<Connector>,
    pub link: LinkFacts,
    pub observed: Arc<Observed>,
    pub clock: SharedClock,
}

/// Knowledge of peers about this gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Announcement {
    /// Addresses and ports that may be pinged.
    pub endpoints: Vec<SocketAddr>,
    /// Region of the home relay.
    pub home: Option<u32>,
}

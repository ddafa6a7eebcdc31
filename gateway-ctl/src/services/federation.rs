//! Federation with other gateways: keys, exchange, signed pull, and the changes that arrive.
//!
//! A receiver pulls whole kinds from the node that owns them, over the API of that node. Requests and replies are signed
//! by the keys that administrators have approved at both ends; sessions and API keys have no part in it. Decision 0209
//! says why.

mod accept;
mod apply;
mod bus;
mod client;
mod events;
mod exchange;
mod identity;
mod notices;
mod observed;
mod pull;
mod rotation;
mod serve;

use std::sync::Arc;

use gateway_core::federation::offer::Manifest;
use gateway_model::Id;
use gateway_model::settings::keys;
use gateway_model::validated::PublicKey;
use gateway_outbound::Resolver;
use tokio::sync::Notify;

use crate::engine::Enforcement;
use crate::os::host_name;
use crate::service;
use crate::services::active_alerts::ActiveAlerts;
use crate::store::Store;
use crate::tls::Factory;
use crate::world::Worlds;
use bus::status::Bus;
use client::PeerClient;
use events::EventLog;
use identity::Identity;
use notices::counts::NoticeCounts;
use observed::PeerStates;

pub use bus::status::{BusState, BusStatus};
pub use events::{EventKind, FederationEvent};
pub use exchange::{ExchangeError, ExchangeRequest};
pub use identity::RotationError;
pub use observed::PeerState;
pub use pull::SyncResult;
pub use serve::ServeError;

/// Version of the daemon, as messages name it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Federation of one gateway.
pub struct Federation {
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    enforcement: Arc<dyn Enforcement>,
    active_alerts: ActiveAlerts,
    client: PeerClient,
    events: EventLog,
    peers: PeerStates,
    bus: Bus,
    notices: NoticeCounts,
    /// Notified when a pull is due at once.
    due: Notify,
    /// Held during a pull: one at a time.
    pulling: tokio::sync::Mutex<()>,
}

impl Federation {
    pub fn new(
        store: Arc<Store>,
        worlds: Arc<Worlds>,
        enforcement: Arc<dyn Enforcement>,
        active_alerts: ActiveAlerts,
        tls: &Arc<Factory>,
        endpoint_names: Resolver,
    ) -> Arc<Federation> {
        Arc::new(Federation {
            store,
            worlds,
            enforcement,
            active_alerts,
            client: PeerClient::new(tls, endpoint_names),
            events: EventLog::default(),
            peers: PeerStates::default(),
            bus: Bus::default(),
            notices: NoticeCounts::default(),
            due: Notify::new(),
            pulling: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the service that pulls from the nodes.
    pub fn service(self: &Arc<Self>) -> service::Service {
        service::Service::new("federation", self, |federation| federation.run())
    }

    /// Returns the key of this gateway; `None` until the first exchange makes it. May open the secret.
    pub fn own_key(&self) -> Option<PublicKey> {
        Identity::of(&self.store.current()).map(|identity| identity.public_key())
    }

    /// Returns the signed manifest of this gateway. May open the secret of its key.
    pub fn manifest(&self) -> Manifest {
        let state = self.store.current();
        let mut manifest = Manifest::of(&state, self.node_id(), VERSION.to_owned(), self.store.clock().now());
        manifest.signature =
            Identity::of(&state).map(|identity| identity.sign(&manifest.signed_bytes()).to_text());
        manifest
    }

    /// Returns the stable id of this installation.
    pub fn node_id(&self) -> String {
        let state = self.store.current();
        state.settings.get(keys::NODE_ID).and_then(|id| id.as_str()).unwrap_or_default().to_owned()
    }

    /// Returns the observed state of a node.
    pub fn peer(&self, node: Id) -> PeerState {
        self.peers.get(node)
    }

    /// Returns the events since the start, newest first.
    pub fn events(&self) -> Vec<FederationEvent> {
        self.events.newest_first()
    }

    /// Records an event about a node.
    pub fn note(&self, kind: EventKind, node: Id, message: String) {
        let name = self.store.current().nodes.get(node).map(|node| node.name.clone()).unwrap_or_default();
        self.events.push(self.store.clock().now(), kind, Some(node), name, message);
    }

    /// Makes the service pull now.
    pub fn wake(&self) {
        self.due.notify_one();
    }

    /// Returns the name of this gateway for its peers.
    fn own_name() -> String {
        host_name::read()
    }
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Federation").finish_non_exhaustive()
    }
}

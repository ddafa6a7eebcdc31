//! The gateway behind the API: the store, the published world, and whatever enforces the plan.

use std::path::Path;
use std::sync::Arc;

use gateway_core::facts::Facts;
use gateway_ctl::clock::{SharedClock, SystemClock};
use gateway_ctl::configuration::Configuration;
use gateway_ctl::engine::{Detached, Enforcement};
use gateway_ctl::reconcile::{Reason, Status};
use gateway_ctl::service::Services;
use gateway_ctl::services::active_alerts::ActiveAlerts;
use gateway_ctl::services::backup;
use gateway_ctl::services::bridges;
use gateway_ctl::services::deadman::Switch;
use gateway_ctl::services::dns::DnsService;
use gateway_ctl::services::extfilter;
use gateway_ctl::services::storage;
use gateway_ctl::store::{self, Store};
use gateway_ctl::supervise::Supervisor;
use gateway_ctl::world::{Live, World, Worlds};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_outbound::Resolver;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::error::ApiError;
use crate::tls::Tls;

/// A running gateway, or one that blocks because it cannot read what it should do.
// There is one in a process.
#[allow(clippy::large_enum_variant)]
pub enum Gateway {
    Open(Open),
    Blocked {
        /// Human-readable, with what to do about it.
        reason: String,
        /// `not_initialised`, `store_missing` or `store_unusable`.
        cause: &'static str,
        /// The configuration file, which is in force while nothing can be set at runtime.
        file: Arc<Bootstrap>,
    },
}

/// The store and what enforces it.
pub struct Open {
    pub store: Arc<Store>,
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    /// Nothing where nothing resolves.
    pub names: Option<Arc<DnsService>>,
    pub tls: Arc<Tls>,
    pub deadman: Switch,
    pub backup: Arc<backup::Service>,
    pub bridge_tests: Arc<bridges::Tests>,
    pub extfilter: Arc<extfilter::Service>,
    /// Active alerts.
    pub active_alerts: ActiveAlerts,
    /// Told when the daemon is to end by itself.
    pub ending: Arc<Notify>,
    /// The long-lived parts of the daemon.
    pub services: Services,
    /// Resolver of the hosts that the daemon itself connects to.
    pub endpoint_names: Resolver,
}

/// Enforcement of a store, and the observations of it.
pub struct Enforced {
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    pub services: Services,
    pub active_alerts: ActiveAlerts,
    pub endpoint_names: Resolver,
}

impl Open {
    /// The services over an opened store, without a resolver. `is_synchronised` says whether the wall clock is right.
    pub fn over(
        store: Arc<Store>,
        enforced: Enforced,
        tls: Arc<Tls>,
        is_synchronised: fn() -> bool,
    ) -> Result<Open, store::Error> {
        let Enforced { worlds, enforcement, services, active_alerts, endpoint_names } = enforced;
        let backup = backup::Service::new(store.clone(), tls.factory.clone(), endpoint_names.clone());
        services.start_all([backup.health(), storage::report(&store)]);
        Ok(Open {
            enforcement,
            names: None,
            deadman: Switch::new(store.clone(), is_synchronised)?,
            backup,
            bridge_tests: Arc::default(),
            extfilter: extfilter::Service::new(
                store.clone(),
                worlds.clone(),
                &tls.factory,
                endpoint_names.clone(),
            ),
            active_alerts,
            ending: Arc::new(Notify::new()),
            store,
            tls,
            worlds,
            services,
            endpoint_names,
        })
    }

    pub fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    /// The newest state with everything that is known beside it, as of now.
    pub fn world(&self) -> World {
        self.worlds.now()
    }

    /// Objects as they are at work.
    pub fn live(&self) -> Live<'_> {
        Live::new(self.world(), |policy| self.enforcement.hits(policy))
    }

    /// Brings the kernel to the state now.
    pub async fn reconcile(&self, reason: Reason) -> Result<Option<Arc<Status>>, ApiError> {
        self.enforcement.reconcile(reason).await.map_err(|stopped| ApiError::internal(&stopped))
    }
}

impl Gateway {
    /// A gateway with its store in this folder and no kernel behind it.
    pub fn detached(folder: &Path) -> Result<Self, store::Error> {
        Self::detached_at(folder, SystemClock::shared())
    }

    /// The same under another clock.
    pub fn detached_at(folder: &Path, clock: SharedClock) -> Result<Self, store::Error> {
        Self::detached_with(folder, clock, Bootstrap::default())
    }

    /// The same with a configuration file.
    pub fn detached_with(folder: &Path, clock: SharedClock, file: Bootstrap) -> Result<Self, store::Error> {
        let store = Arc::new(Store::open(folder.join("store.redb"), clock)?);
        let endpoint_names = Resolver::new(&file.dns.bootstrap_servers);
        let configuration = Configuration::new(file, store.current().settings.clone());
        let worlds = Arc::new(Worlds::new(store.clone(), configuration, None));
        let tls = Arc::new(Tls::default());
        tls.adopt(&store);
        let services = Services::new(Supervisor::new(store.clock().clone()));
        let active_alerts = ActiveAlerts::new(store.clock().clone());
        let enforced =
            Enforced { worlds, enforcement: Arc::new(Detached), services, active_alerts, endpoint_names };
        Ok(Gateway::Open(Open::over(store, enforced, tls, || true)?))
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Arc<Bootstrap> {
        match self {
            Gateway::Open(open) => open.worlds.in_force().config,
            Gateway::Blocked { file, .. } => file.clone(),
        }
    }

    /// Returns the facts of the last run.
    pub fn facts(&self) -> Arc<Facts> {
        match self {
            Gateway::Open(open) => open.worlds.last().facts.clone(),
            Gateway::Blocked { .. } => Arc::default(),
        }
    }
}

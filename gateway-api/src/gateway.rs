//! The gateway behind the API: the store, the published world, and the enforcement of the plan.

use std::path::Path;
use std::sync::Arc;

use gateway_core::facts::Facts;
use gateway_ctl::clock::{SharedClock, SystemClock};
use gateway_ctl::configuration::Configuration;
use gateway_ctl::engine::{Detached, Enforcement};
use gateway_ctl::handles::Handles;
use gateway_ctl::reconcile::{Reason, Status};
use gateway_ctl::service::Services;
use gateway_ctl::services::active_alerts::ActiveAlerts;
use gateway_ctl::services::alerts::Alerts;
use gateway_ctl::services::assistant::Assistant;
use gateway_ctl::services::backup;
use gateway_ctl::services::bridges;
use gateway_ctl::services::deadman::DeadManSwitch;
use gateway_ctl::services::deliveries::{Deliveries, NotificationSource};
use gateway_ctl::services::dns::DnsService;
use gateway_ctl::services::encrypted_storage::EncryptedStorage;
use gateway_ctl::services::extfilter;
use gateway_ctl::services::federation::Federation;
use gateway_ctl::services::flow_export::FlowExports;
use gateway_ctl::services::mesh::Mesh;
use gateway_ctl::services::mesh_member::MeshMember;
use gateway_ctl::services::mqtt_states::MqttStates;
use gateway_ctl::services::storage;
use gateway_ctl::store::{self, Store};
use gateway_ctl::supervise::Supervisor;
use gateway_ctl::world::{Live, World, Worlds};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_outbound::Resolver;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::checks::{self, CheckResult, Checks};
use crate::error::ApiError;
use crate::tls::{self, Tls};

/// A running gateway, or one that blocks traffic because its store cannot be used.
// A process has only one.
#[allow(clippy::large_enum_variant)]
pub enum Gateway {
    Open(Open),
    Blocked {
        /// Human-readable cause and remedy.
        reason: String,
        /// Cause as in `/health`: `not_initialised`, `store_missing` or `store_unusable`.
        cause: &'static str,
        /// The configuration file. It is in force while no settings can be read from the store.
        file: Arc<Bootstrap>,
    },
}

/// The store and its enforcement.
pub struct Open {
    pub store: Arc<Store>,
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    /// Handles of the services that enforce the plan.
    pub handles: Handles,
    /// DNS service. `None` if the gateway runs no resolver.
    pub names: Option<Arc<DnsService>>,
    pub tls: Arc<Tls>,
    pub deadman: DeadManSwitch,
    pub backup: Arc<backup::Service>,
    pub bridge_tests: Arc<bridges::Tests>,
    pub extfilter: Arc<extfilter::Service>,
    /// Deliveries of alerts to receivers.
    pub deliveries: Arc<Deliveries>,
    /// States for an MQTT broker.
    pub mqtt_states: Arc<MqttStates>,
    /// Flow records for collectors.
    pub flow_exports: Arc<FlowExports>,
    /// Synchronisation with other gateways.
    pub federation: Arc<Federation>,
    /// Mesh that this gateway coordinates.
    pub mesh: Arc<Mesh>,
    /// This gateway as a node of a mesh of another coordinator.
    pub mesh_member: Arc<MeshMember>,
    /// Client of a language model.
    pub assistant: Arc<Assistant>,
    /// Conditions that services report.
    pub active_alerts: ActiveAlerts,
    /// Alerts that the rules make of them.
    pub alerts: Alerts,
    /// Notified when the daemon should stop by itself.
    pub ending: Arc<Notify>,
    /// Long-lived tasks of the daemon.
    pub services: Services,
    /// Results of the health checks.
    pub checks: Checks,
    /// Resolver for the host names that the daemon itself connects to.
    pub endpoint_names: Resolver,
}

/// Enforcement of a store, and its observations.
pub struct EnforcedStore {
    pub worlds: Arc<Worlds>,
    pub enforcement: Arc<dyn Enforcement>,
    pub handles: Handles,
    pub services: Services,
    pub active_alerts: ActiveAlerts,
    pub alerts: Alerts,
    pub endpoint_names: Resolver,
}

impl Open {
    /// Builds the services over an open store, without a resolver. `is_synchronised` reports whether the wall clock is
    /// correct.
    pub fn over(
        store: Arc<Store>,
        enforced: EnforcedStore,
        tls: Arc<Tls>,
        is_synchronised: fn() -> bool,
    ) -> Result<Open, store::Error> {
        let EnforcedStore { worlds, enforcement, handles, services, active_alerts, alerts, endpoint_names } =
            enforced;
        let (factory, names) = (&tls.factory, || endpoint_names.clone());
        let file = worlds.configuration().file().clone();
        let storage = handles.get::<EncryptedStorage>();
        let backup = backup::Service::new(store.clone(), file, factory.clone(), names(), storage);
        let source: Arc<dyn NotificationSource> = Arc::new(alerts.clone());
        let deliveries = Deliveries::new(store.clone(), worlds.clone(), factory, names(), source.clone());
        let mqtt_states =
            MqttStates::new(store.clone(), worlds.clone(), handles.clone(), factory, names(), source);
        let flow_exports = FlowExports::new(store.clone(), worlds.clone(), &handles, factory, names());
        let federation = Federation::new(
            store.clone(),
            worlds.clone(),
            enforcement.clone(),
            active_alerts.clone(),
            factory,
            names(),
        );
        let mesh = Mesh::new(store.clone(), worlds.clone(), tls::mesh_server(&tls, &worlds));
        let mesh_member =
            MeshMember::new(store.clone(), worlds.clone(), enforcement.clone(), &handles, factory, names());
        let assistant = Assistant::new(store.clone(), factory, names());
        let extfilter = extfilter::Service::new(store.clone(), worlds.clone(), factory, names());
        services.start_all([backup.health(), storage::report(&store)]);
        Ok(Open {
            enforcement,
            handles,
            names: None,
            deadman: DeadManSwitch::new(store.clone(), is_synchronised)?,
            backup,
            deliveries,
            mqtt_states,
            flow_exports,
            federation,
            mesh,
            mesh_member,
            assistant,
            bridge_tests: Arc::default(),
            extfilter,
            active_alerts,
            alerts,
            ending: Arc::new(Notify::new()),
            store,
            tls,
            worlds,
            services,
            checks: Checks::default(),
            endpoint_names,
        })
    }

    pub fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    /// Returns the current state with all facts and observations.
    pub fn world(&self) -> World {
        self.worlds.now()
    }

    /// Returns a view of the objects with their observed state.
    pub fn live(&self) -> Live<'_> {
        let reader = self.enforcement.dataplane();
        Live::new(self.world(), move |policy| reader.hits(policy))
    }

    /// Runs all health checks now.
    pub async fn check(&self) -> Vec<CheckResult> {
        let mut reports = Vec::new();
        for services in self.all_services() {
            reports.extend(services.health().await);
        }
        let supervisor = self.services.supervisor();
        reports.extend(checks::of_daemon(&self.world(), supervisor, self.names.is_some()));
        self.checks.take(reports, self.now())
    }

    /// Returns all services: those that enforce the plan, and those of the API.
    pub fn all_services(&self) -> impl Iterator<Item = &Services> {
        self.enforcement.services().into_iter().chain([&self.services])
    }

    /// Reconciles the kernel with the state now.
    pub async fn reconcile(&self, reason: Reason) -> Result<Option<Arc<Status>>, ApiError> {
        self.enforcement.reconcile(reason).await.map_err(|stopped| ApiError::internal(&stopped))
    }
}

impl Gateway {
    /// Returns a gateway with its store in this directory and without a kernel.
    pub fn detached(folder: &Path) -> Result<Self, store::Error> {
        Self::detached_at(folder, SystemClock::shared())
    }

    /// Like [`Gateway::detached`], with another clock.
    pub fn detached_at(folder: &Path, clock: SharedClock) -> Result<Self, store::Error> {
        Self::detached_with(folder, clock, Bootstrap::default())
    }

    /// Like [`Gateway::detached_at`], with a configuration file.
    pub fn detached_with(folder: &Path, clock: SharedClock, file: Bootstrap) -> Result<Self, store::Error> {
        let store = Arc::new(Store::open(folder.join("store.redb"), clock)?);
        let endpoint_names = Resolver::new(&file.dns.bootstrap_servers);
        let configuration = Configuration::new(file, store.current().settings.clone());
        let worlds = Arc::new(Worlds::new(store.clone(), configuration, None));
        let tls = Arc::new(Tls::default());
        tls.adopt(&store);
        let services = Services::new(Supervisor::new(store.clock().clone()));
        let active_alerts = ActiveAlerts::new(store.clock().clone());
        let alerts = Alerts::open(store.clone(), active_alerts.clone())?;
        let enforced = EnforcedStore {
            worlds,
            enforcement: Arc::new(Detached),
            handles: Handles::new(folder, store.clock().clone()),
            services,
            active_alerts,
            alerts,
            endpoint_names,
        };
        Ok(Gateway::Open(Open::over(store, enforced, tls, || true)?))
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> Arc<Bootstrap> {
        match self {
            Gateway::Open(open) => open.worlds.in_force().config,
            Gateway::Blocked { file, .. } => file.clone(),
        }
    }

    /// Returns the facts of the last reconcile run.
    pub fn facts(&self) -> Arc<Facts> {
        match self {
            Gateway::Open(open) => open.worlds.last().facts.clone(),
            Gateway::Blocked { .. } => Arc::default(),
        }
    }
}

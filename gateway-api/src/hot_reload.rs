//! Settings that take effect without a restart. They apply from the next revision of the store, whether the API, an
//! import or a rollback changed them.

use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::configuration::{endpoint_name_servers, reconcile_interval};
use gateway_ctl::engine::Enforcement;
use gateway_ctl::store::{AuditRetention, Store};
use gateway_ctl::supervise::blocking;
use gateway_ctl::world::Worlds;
use gateway_model::settings::bootstrap::LogLevel;
use gateway_outbound::Resolver;

use crate::log;

const TRIM_INTERVAL: Duration = Duration::from_secs(3600);

/// Components that receive settings by a call instead of reading the world.
#[derive(Clone)]
pub(crate) struct Followers {
    pub enforcement: Arc<dyn Enforcement>,
    pub endpoint_names: Resolver,
}

/// Applies settings at each revision until the store is closed.
pub(crate) async fn follow(worlds: Arc<Worlds>, store: Arc<Store>, followers: Followers) {
    let Followers { enforcement, endpoint_names } = followers;
    let mut revisions = store.watch();
    let (mut level, mut interval) = (None::<LogLevel>, None);
    loop {
        let in_force = worlds.in_force();
        let config = &in_force.config;
        if level.replace(config.log.level) != Some(config.log.level) {
            log::set_level(config.log.level);
        }
        let wanted = reconcile_interval(config);
        if interval.replace(wanted) != Some(wanted) {
            enforcement.set_interval(wanted);
        }
        endpoint_names.set_servers(&endpoint_name_servers(&in_force));
        if revisions.changed().await.is_err() {
            return;
        }
    }
}

/// Trims the audit trail once an hour to the configured retention.
pub(crate) async fn trim_audit(worlds: Arc<Worlds>, store: Arc<Store>) {
    loop {
        let audit = worlds.in_force().config.audit.clone();
        let store = store.clone();
        let trim = move || {
            let age = Duration::from_secs(86_400) * audit.keep_days;
            store.trim_audit(AuditRetention { entries: audit.keep_entries, age })
        };
        match blocking(trim).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "trimmed the audit trail"),
            Err(error) => tracing::error!(%error, "failed to trim the audit trail"),
        }
        tokio::time::sleep(TRIM_INTERVAL).await;
    }
}

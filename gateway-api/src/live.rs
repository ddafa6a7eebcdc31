//! Settings that take hold at once: whoever changes them (the API, an import, a rollback), they are obeyed from the
//! next revision of the store on.

use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::engine::Enforcement;
use gateway_ctl::store::{AuditRetention, Store};
use gateway_ctl::supervise::blocking;
use gateway_model::settings::Bootstrap;

use crate::log;

const TRIM_INTERVAL: Duration = Duration::from_secs(3600);

/// Follows the store until it is gone.
pub async fn follow(file: Arc<Bootstrap>, store: Arc<Store>, enforcement: Arc<dyn Enforcement>) {
    let mut revisions = store.watch();
    let mut obeyed = None;
    let mut level = None;
    let mut interval = None;
    loop {
        let state = store.current();
        if obeyed != Some(state.settings.revision()) {
            obeyed = Some(state.settings.revision());
            let (config, left_out) = file.overlaid_or_less(&state.settings);
            for (key, why) in left_out {
                tracing::warn!(key, why, "a stored setting does not fit to the configuration file: left out");
            }
            if level.replace(config.log.level) != Some(config.log.level) {
                log::set_level(config.log.level);
            }
            let wanted = periodic(&config);
            if interval.replace(wanted) != Some(wanted) {
                enforcement.set_interval(wanted);
            }
        }
        if revisions.changed().await.is_err() {
            return;
        }
    }
}

/// Trims the audit trail once an hour to what the configuration keeps.
pub async fn trim_audit(file: Arc<Bootstrap>, store: Arc<Store>) {
    loop {
        let (file, store) = (file.clone(), store.clone());
        let trim = move || {
            let audit = file.overlaid_or_less(&store.current().settings).0.audit;
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

/// How often the kernel is compared with the plan.
pub fn periodic(config: &Bootstrap) -> Option<Duration> {
    config.reconcile.enabled.then(|| Duration::from_secs(config.reconcile.interval_sec))
}

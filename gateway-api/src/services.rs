//! The list of the services that stand on the API: each is named once, here.

use std::sync::Arc;

use gateway_ctl::service::Service;
use gateway_model::settings::bootstrap::Bootstrap;
use tokio::signal::unix::Signal;

use crate::context::Api;
use crate::gateway::{Gateway, Open};
use crate::service_manager::feed_watchdog;
use crate::tls::{self, Tls};
use crate::{live, wipe};

/// `file` is the configuration file, and `config` what counts: the file and, over it, what was set at runtime.
pub fn list(
    api: &Arc<Api>,
    file: Bootstrap,
    config: Bootstrap,
    tls: Arc<Tls>,
    hangup: Signal,
) -> Vec<Service> {
    let files = tls::follow_files(config, api.clone(), tls.clone(), hangup);
    let mut services = vec![Service::vital("certificate_files", files)];
    let Gateway::Open(open) = &api.gateway else { return services };
    let Open { store, backup, extfilter, enforcement, .. } = open;
    let filter = extfilter.clone();
    services.extend([
        Service::new("post_quantum_mode", &(tls, store.clone()), |(tls, store)| {
            tls::follow_store(tls, store)
        }),
        Service::new("backups", backup, |backup| backup.follow()),
        Service::new("external_filter", extfilter, |filter| filter.follow())
            .releases(move || async move { filter.release().await }),
        Service::new(
            "live_settings",
            &(Arc::new(file.clone()), store.clone(), enforcement.clone()),
            |(file, store, enforcement)| live::follow(file, store, enforcement),
        ),
        Service::new("audit_retention", &(Arc::new(file), store.clone()), |(file, store)| {
            live::trim_audit(file, store)
        }),
        Service::new("dead_man_switch", api, wipe::follow_switch),
        Service::new("watchdog", api, feed_watchdog),
    ]);
    services
}

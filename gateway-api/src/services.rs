//! Services that depend on the API. Each is registered once, here.

use std::sync::Arc;

use gateway_ctl::service::Service;
use gateway_ctl::services::anomalies::{self, AnomalySources};
use gateway_ctl::services::dns::DnsService;
use gateway_ctl::services::flow_export::MetricsPage;
use tokio::signal::unix::Signal;

use crate::checks;
use crate::context::Api;
use crate::endpoints::metrics;
use crate::gateway::{Gateway, Open};
use crate::hot_reload::{self, Followers};
use crate::service_manager::feed_watchdog;
use crate::support_bundle;
use crate::system_alerts;
use crate::tls::{self, Tls};
use crate::wipe;

pub(crate) fn list(api: &Arc<Api>, tls: Arc<Tls>, hangup: Signal) -> Vec<Service> {
    let known = api.clone();
    let known = move || (known.gateway.config(), known.gateway.facts());
    let files = tls::follow_files(known, tls.clone(), hangup);
    let mut services = vec![Service::vital("certificate_files", files)];
    let Gateway::Open(open) = &api.gateway else { return services };
    let Open {
        store,
        worlds,
        names,
        backup,
        extfilter,
        enforcement,
        endpoint_names,
        alerts,
        deliveries,
        mqtt_states,
        flow_exports,
        federation,
        mesh,
        mesh_member,
        assistant,
        handles,
        ..
    } = open;
    let followers = Followers { enforcement: enforcement.clone(), endpoint_names: endpoint_names.clone() };
    let filter = extfilter.clone();
    services.extend([
        Service::new("post_quantum_mode", &(tls, store.clone()), |(tls, store)| {
            tls::follow_store(tls, store)
        }),
        alerts.service(worlds),
        Service::new("backups", backup, |backup| backup.follow()),
        deliveries.service(),
        mqtt_states.service(),
        flow_exports.service(metrics_page(api)),
        federation.service(),
        federation.bus_service(),
        federation.notice_service(),
        mesh.service(),
        mesh_member.service(),
        assistant.service(),
        Service::new("external_filter", extfilter, |filter| filter.follow())
            .releases(move || async move { filter.release().await }),
        Service::new(
            "live_settings",
            &(worlds.clone(), store.clone(), followers),
            |(worlds, store, followers)| hot_reload::follow(worlds, store, followers),
        ),
        Service::new("audit_retention", &(worlds.clone(), store.clone()), |(worlds, store)| {
            hot_reload::trim_audit(worlds, store)
        }),
        Service::new("dead_man_switch", api, wipe::follow_switch),
        Service::new("system_alerts", api, system_alerts::follow),
        Service::new("watchdog", api, feed_watchdog),
        Service::new("health_checks", api, check_health),
        support_bundle::service(open),
    ]);
    services.push(anomalies::service(&AnomalySources {
        store: store.clone(),
        worlds: worlds.clone(),
        handles: handles.clone(),
        dataplane: enforcement.dataplane(),
        names: names.clone(),
    }));
    services.extend(names.iter().flat_map(DnsService::services));
    services
}

/// Returns what makes the page of `/metrics`, for collectors.
fn metrics_page(api: &Arc<Api>) -> MetricsPage {
    let api = api.clone();
    Arc::new(move || {
        let api = api.clone();
        Box::pin(async move {
            let Gateway::Open(open) = &api.gateway else { return None };
            metrics::page(open, api.started.elapsed()).ok()
        })
    })
}

/// Runs the health checks periodically, until it is aborted.
async fn check_health(api: Arc<Api>) {
    let Gateway::Open(open) = &api.gateway else { return std::future::pending().await };
    loop {
        open.check().await;
        tokio::time::sleep(checks::PERIOD).await;
    }
}

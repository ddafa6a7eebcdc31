//! Triggers of the reconcile loop, and publication of the services' reports.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::gateway_verdict::PresentHost;
use tokio::sync::watch;

use crate::os::transport::BridgeStates;
use crate::panics::Panics;
use crate::reconcile::Reason;
use crate::service::Context;
use crate::services::dhcp::LeasedNames;
use crate::services::dhcp_clients::DhcpStates;
use crate::services::proxies::ProxyStates;
use crate::services::tunnels::TunnelStates;
use crate::services::uplinks::UplinkStates;
use crate::world::Reports;

/// Minimum time between two runs that panics trigger.
const PANIC_WAKE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn on_change(context: Context) {
    let mut revisions = context.store.watch();
    while revisions.changed().await.is_ok() {
        let revision = *revisions.borrow_and_update();
        context.wake.wake_for(revision);
    }
}

/// Last reports of the services, as they change.
#[derive(Clone)]
pub(super) struct ReportReceivers {
    pub tunnels: watch::Receiver<Arc<TunnelStates>>,
    pub proxies: watch::Receiver<Arc<ProxyStates>>,
    pub transports: watch::Receiver<Arc<BridgeStates>>,
    pub uplinks: watch::Receiver<Arc<UplinkStates>>,
    pub dhcp_clients: watch::Receiver<Arc<DhcpStates>>,
    pub leased_names: watch::Receiver<Arc<LeasedNames>>,
    pub hosts: watch::Receiver<Arc<Vec<PresentHost>>>,
}

impl ReportReceivers {
    fn reports(&mut self) -> Reports {
        Reports {
            tunnels: self.tunnels.borrow_and_update().clone(),
            proxies: self.proxies.borrow_and_update().clone(),
            transports: self.transports.borrow_and_update().clone(),
            uplinks: self.uplinks.borrow_and_update().clone(),
            dhcp_clients: self.dhcp_clients.borrow_and_update().clone(),
            leased_names: self.leased_names.borrow_and_update().clone(),
            hosts: self.hosts.borrow_and_update().clone(),
        }
    }
}

/// Publishes the reports of services whenever one of them changes.
pub(super) async fn publish_reports(context: Context, mut receivers: ReportReceivers) {
    loop {
        context.worlds.report(receivers.reports());
        let changed = tokio::select! {
            changed = receivers.tunnels.changed() => changed,
            changed = receivers.proxies.changed() => changed,
            changed = receivers.transports.changed() => changed,
            changed = receivers.uplinks.changed() => changed,
            changed = receivers.dhcp_clients.changed() => changed,
            changed = receivers.leased_names.changed() => changed,
            changed = receivers.hosts.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

pub(super) async fn on_connections(context: Context, mut seen: watch::Receiver<Arc<BridgeStates>>) {
    while seen.changed().await.is_ok() {
        context.wake.wake(Reason::Facts);
    }
}

/// Triggers a run after a panic, to restore lost objects at once. The pause prevents a panic of the run itself from
/// causing a busy loop.
pub(super) async fn on_panic(context: Context, mut panics: watch::Receiver<Panics>) {
    while panics.changed().await.is_ok() {
        context.wake.wake(Reason::Facts);
        tokio::time::sleep(PANIC_WAKE_INTERVAL).await;
    }
}

//! Triggers of the reconcile loop, and publication of the services' reports.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::os::transport::BridgeStates;
use crate::panics::Panics;
use crate::reconcile::Reason;
use crate::service::Context;
use crate::services::dhcp::LeasedNames;
use crate::services::proxies::ProxyStates;
use crate::services::tunnels::TunnelStates;
use crate::services::uplinks::UplinkStates;
use crate::world::Reports;

/// Minimum time between two runs that panics trigger.
const PANIC_WAKE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn on_change(context: Context) {
    let mut revisions = context.store.watch();
    while revisions.changed().await.is_ok() {
        context.wake.wake(Reason::Revision);
    }
}

pub(super) type ReportReceivers = (
    watch::Receiver<Arc<TunnelStates>>,
    watch::Receiver<Arc<ProxyStates>>,
    watch::Receiver<Arc<BridgeStates>>,
    watch::Receiver<Arc<UplinkStates>>,
    watch::Receiver<Arc<LeasedNames>>,
);

/// Publishes the reports of services whenever one of them changes.
pub(super) async fn publish_reports(
    context: Context,
    (mut tunnels, mut proxies, mut transports, mut uplinks, mut leased_names): ReportReceivers,
) {
    loop {
        context.worlds.report(Reports {
            tunnels: tunnels.borrow_and_update().clone(),
            proxies: proxies.borrow_and_update().clone(),
            transports: transports.borrow_and_update().clone(),
            uplinks: uplinks.borrow_and_update().clone(),
            leased_names: leased_names.borrow_and_update().clone(),
        });
        let changed = tokio::select! {
            changed = tunnels.changed() => changed,
            changed = proxies.changed() => changed,
            changed = transports.changed() => changed,
            changed = uplinks.changed() => changed,
            changed = leased_names.changed() => changed,
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

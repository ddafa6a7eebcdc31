//! Messages to the service manager: readiness, status and watchdog.

use std::sync::Arc;

use sd_notify::NotifyState;

use crate::context::Api;
use crate::gateway::Gateway;

pub(crate) fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "failed to notify the service manager");
    }
}

/// Feeds the watchdog of the service manager while the reconcile loop makes progress.
pub(crate) async fn feed_watchdog(api: Arc<Api>) {
    let Gateway::Open(open) = &api.gateway else { return std::future::pending().await };
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(limit / 4).await;
        let idle = open.enforcement.loop_idle_time();
        if idle < limit / 2 {
            notify(&[NotifyState::Watchdog]);
        } else {
            tracing::error!(?idle, "reconcile loop hangs: withholding the watchdog notification");
        }
    }
}

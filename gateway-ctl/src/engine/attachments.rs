//! Watches the BPF programs on their interfaces. The kernel does not report that a program was detached, unpinned or
//! moved behind another.

use std::time::Duration;

use crate::reconcile::{KernelDataplane, Reason};
use crate::service::Context;

const PERIOD: Duration = Duration::from_millis(400);
/// Maximum period: checks are less frequent while a run cannot repair the deviation.
const LONGEST_PERIOD: Duration = Duration::from_secs(15);

/// Wakes the reconcile loop when attachments differ from those of the last run.
pub(super) async fn watch(Context { wake: handle, dataplane, .. }: Context) {
    let mut period = PERIOD;
    loop {
        tokio::time::sleep(period).await;
        if is_intact(&dataplane).await {
            period = PERIOD;
            continue;
        }
        tracing::warn!("programs on interfaces are not those of the plan: repairing");
        if handle.run_now(Reason::Facts).await.is_err() {
            return;
        }
        period = if is_intact(&dataplane).await { PERIOD } else { (period * 2).min(LONGEST_PERIOD) };
    }
}

/// Checks the attachments. A check that panics counts as a deviation.
async fn is_intact(dataplane: &KernelDataplane) -> bool {
    let dataplane = dataplane.clone();
    tokio::task::spawn_blocking(move || dataplane.is_intact()).await.unwrap_or(false)
}

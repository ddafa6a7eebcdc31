//! Watches the programs on their interfaces: the kernel does not report that one was detached, unpinned or put behind
//! another.

use std::time::Duration;

use crate::reconcile::{KernelDataplane, Reason};
use crate::service::Context;

const PERIOD: Duration = Duration::from_millis(400);
/// Checks come less often while a run cannot repair what is wrong.
const LONGEST_PERIOD: Duration = Duration::from_secs(15);

/// Wakes the loop when attachments differ from what the last run left.
pub(super) async fn watch(Context { wake: handle, dataplane, .. }: Context) {
    let mut period = PERIOD;
    loop {
        tokio::time::sleep(period).await;
        if is_intact(&dataplane).await {
            period = PERIOD;
            continue;
        }
        tracing::warn!("programs on interfaces were changed from outside: repairing");
        if handle.run_now(Reason::Facts).await.is_err() {
            return;
        }
        period = if is_intact(&dataplane).await { PERIOD } else { (period * 2).min(LONGEST_PERIOD) };
    }
}

/// A check that panicked counts as a deviation.
async fn is_intact(dataplane: &KernelDataplane) -> bool {
    let dataplane = dataplane.clone();
    tokio::task::spawn_blocking(move || dataplane.is_intact()).await.unwrap_or(false)
}

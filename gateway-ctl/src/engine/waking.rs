//! Triggers of the reconcile loop.

use std::time::Duration;

use tokio::sync::watch;

use crate::panics::Panics;
use crate::reconcile::Reason;
use crate::service::Context;

/// Minimum time between two runs that panics trigger.
const PANIC_WAKE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn on_change(context: Context) {
    let mut revisions = context.store.watch();
    while revisions.changed().await.is_ok() {
        let revision = *revisions.borrow_and_update();
        context.wake.wake_for(revision);
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

//! Rolls back changes that were not confirmed in time (commit-confirmed).
//!
//! A rollback is a commit like any other. The reconcile loop sees it and updates the kernel.

use std::sync::Arc;
use std::time::Duration;

use crate::store::Store;
use crate::supervise::blocking;

/// Poll interval. The boot clock continues while the machine sleeps but timers do not.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub async fn run(store: Arc<Store>) {
    let mut revisions = store.watch();
    loop {
        let remaining = store.pending().map(|pending| pending.remaining(store.clock().as_ref()));
        match remaining {
            None => {
                if revisions.changed().await.is_err() {
                    return;
                }
            }
            Some(Duration::ZERO) => revert(&store).await,
            Some(remaining) => {
                // A confirmation changes no revision; the next poll finds it.
                tokio::select! {
                    () = tokio::time::sleep(remaining.min(POLL_INTERVAL)) => {}
                    changed = revisions.changed() => if changed.is_err() { return },
                }
            }
        }
    }
}

async fn revert(store: &Arc<Store>) {
    let reverting = store.clone();
    match blocking(move || reverting.revert_overdue()).await {
        Ok(true) => tracing::warn!("rolled back a change that was not confirmed in time"),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(%error, "failed to roll back an unconfirmed change; retrying");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::Device;

    use super::*;
    use crate::clock::ManualClock;
    use crate::store::{AuditTicket, Confirm, RollbackOptions, SnapshotReason};

    #[tokio::test(start_paused = true)]
    async fn an_unconfirmed_change_is_rolled_back_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let store = Arc::new(Store::open(folder.path().join("store.redb"), clock.clone()).unwrap());
        let service = tokio::spawn(run(store.clone()));
        let confirm = Some(Confirm { within: Duration::from_secs(60) });
        let safety = RollbackOptions { reason: SnapshotReason::PreApply, confirm };
        let ticket = AuditTicket::system("apply_plan", "plan");
        let device = Device { name: "new".into(), ..Device::default() };
        store.commit_safely(ticket, safety, |draft, _| draft.create(device).map(drop)).unwrap();
        clock.advance(Duration::from_secs(59));
        tokio::time::sleep(POLL_INTERVAL * 5).await;
        assert_eq!(store.current().devices.len(), 1);
        clock.advance(Duration::from_secs(1));
        let mut revisions = store.watch();
        revisions.wait_for(|revision| *revision == 2).await.unwrap();
        assert_eq!(store.current().devices.len(), 0);
        assert!(store.pending().is_none());
        service.abort();
    }
}

//! Wiping on demand and by the dead-man switch. Blocking rules are installed before anything is removed.

use std::future::pending;
use std::sync::Arc;

use gateway_ctl::reconcile::Reason;
use gateway_ctl::services::deadman::POLL_INTERVAL;
use gateway_ctl::store::AuditTicket;
use gateway_model::Role;
use gateway_model::settings::groups::WipeLevel;

use crate::authorization::Proof;
use crate::blocking::blocking;
use crate::context::{Api, Cx};
use crate::error::ApiError;
use crate::gateway::{Gateway, Open};
use crate::table::Audit;

pub(crate) const AUDIT: Audit = Audit { action: "wipe_system", resource_type: "system" };

/// Wipes the gateway. After a hard wipe the daemon stops.
pub(crate) async fn wipe(open: &Open, ticket: AuditTicket, level: WipeLevel) -> Result<(), ApiError> {
    let store = open.store.clone();
    match level {
        WipeLevel::Soft => {
            let before = erase(open, level).await;
            blocking(move || store.wipe(ticket, false)).await??;
            before?;
        }
        WipeLevel::Medium => {
            // Erased first: without their configuration, lists and zones are only unlinked.
            let before = erase(open, level).await;
            blocking(move || store.wipe(ticket, true)).await??;
            open.reconcile(Reason::Apply).await?;
            before.and(erase(open, level).await)?;
        }
        WipeLevel::Hard => {
            // Failures are logged and do not stop the wipe.
            let _ = erase(open, level).await;
            if let Err(error) = open.enforcement.block().await {
                tracing::error!(%error, "failed to block all traffic during the wipe");
            }
            let gone = blocking(move || store.destroy()).await;
            open.ending.notify_one();
            gone??;
        }
    }
    tracing::warn!(%level, "wiped");
    Ok(())
}

/// Makes all services erase what they keep. Continues after a failure and returns the first error.
async fn erase(open: &Open, level: WipeLevel) -> Result<(), ApiError> {
    let mut outcome = Ok(());
    for services in open.all_services() {
        outcome = outcome.and(services.erase(level).await);
    }
    outcome.map_err(|error| ApiError::internal(&error))
}

/// Records a check-in. Every request of an administrator or an operator is one; an address alone is no proof. While
/// sign-in is off, every accepted caller is an administrator.
pub(crate) fn note_presence(cx: &Cx) {
    let in_charge = matches!(cx.actor.role, Role::Admin | Role::Operator);
    let Gateway::Open(open) = &cx.api.gateway else { return };
    if !in_charge || matches!(cx.actor.proof, Proof::None | Proof::Localnet) || !open.deadman.is_set() {
        return;
    }
    let api = cx.api.clone();
    tokio::task::spawn_blocking(move || {
        if let Gateway::Open(open) = &api.gateway
            && let Err(error) = open.deadman.check_in()
        {
            tracing::error!(%error, "failed to store a check-in of the dead-man switch");
        }
    });
}

/// Follows the dead-man switch until the daemon stops.
pub(crate) async fn follow_switch(api: Arc<Api>) {
    let Gateway::Open(open) = &api.gateway else { return };
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let watched = api.clone();
        let looked = blocking(move || match &watched.gateway {
            Gateway::Open(open) => open.deadman.tick(),
            Gateway::Blocked { .. } => Ok(None),
        });
        match looked.await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(level))) => {
                let ticket = AuditTicket::system(AUDIT.action, AUDIT.resource_type);
                if let Err(error) = wipe(open, ticket, level).await {
                    tracing::error!(error = error.message, "dead-man switch failed to wipe everything");
                }
            }
            Ok(Err(error)) => tracing::error!(%error, "dead-man switch failed to store its state"),
            Err(error) => tracing::error!(error = error.message, "dead-man switch failed to read its state"),
        }
    }
}

/// Returns when the daemon should stop by itself.
pub(crate) async fn ending(api: &Api) {
    match &api.gateway {
        Gateway::Open(open) => open.ending.notified().await,
        Gateway::Blocked { .. } => pending().await,
    }
}

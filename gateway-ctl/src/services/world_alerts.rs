//! Alerts that follow from the world: tunnels, policies, the reconcile loop, exceptions, devices and other resolvers. The services that drive
//! these report states; this one compares them with what should be.

mod devices;
mod dns_bypass;
mod policies;
mod reconciling;
mod tunnels;

use std::time::Duration;

use crate::service::{Context, Service};
use crate::services::hosts::HostInventory;
use crate::world::live;

use dns_bypass::DnsBypass;
use reconciling::Reconciling;
use tunnels::Tunnels;

/// Longest time between two looks at the world.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Shortest time between two looks.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Returns the service that reports them.
pub(crate) fn service(context: &Context) -> Service {
    Service::new("world_alerts", context, run)
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let alerts = &context.active_alerts;
    let inventory = context.handles.get::<HostInventory>();
    let mut worlds = context.worlds.watch();
    let (mut tunnels, mut reconciling) = (Tunnels::default(), Reconciling::default());
    let mut bypass = DnsBypass::default();
    loop {
        let world = worlds.borrow_and_update().clone();
        let (state, clock) = (context.store.current(), context.store.clock());
        let now = clock.now();
        tunnels.report(alerts, &state, &world.reports.tunnels, clock.boot(), now);
        policies::report(alerts, &world);
        reconciling.report(alerts, &world.status);
        devices::report_exceptions(alerts, &state, now);
        devices::report_quarantine(alerts, &state);
        bypass.report(alerts, &state, &context.dataplane, clock.boot()).await;
        let hosts = inventory.list();
        devices::report_offline(alerts, &state, |device| {
            let seen = live::device(&world.facts, Some(&hosts), device, now);
            seen.last_seen.filter(|_| seen.online == Some(false))
        });
        tokio::time::sleep(MIN_INTERVAL).await;
        tokio::select! {
            changed = worlds.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

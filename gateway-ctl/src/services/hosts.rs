//! Inventory of hosts on the LAN: the state machine of `gateway_core` between the neighbour table, DHCP leases, sampled
//! flows and announcements on one side, and the API, the verdict and alerts on the other.

mod dns_clients;
mod inventory;
mod lans;
mod measure;
mod observe;
mod rates;
mod vendors;

use std::sync::Arc;

use gateway_model::kinds::alert_rule::AlertKind;

use crate::metrics::counter;
use crate::service::{Context, Service};
use crate::supervise::blocking;

pub use dns_clients::DnsClients;
use inventory::store_at_end;
pub use inventory::{HostInventory, HostList};
pub use rates::{HostRate, HostRates};
pub use vendors::vendor;

/// Returns the services that observe hosts and measure their traffic.
pub fn services(context: &Context) -> [Service; 2] {
    let inventory = &context.handles.get::<HostInventory>();
    let (measured, erased, stored) = (inventory.clone(), inventory.clone(), inventory.clone());
    let (worlds, active_alerts) = (context.worlds.clone(), context.active_alerts.clone());
    [
        Service::new("hosts", context, observe::run)
            .measures(move |registry| {
                let help = "Hosts that were not kept because the table of their interface was full";
                counter(registry, "hosts_refused", help, measured.list().refused);
            })
            .erases(move |level| {
                let (inventory, worlds, active_alerts) =
                    (erased.clone(), worlds.clone(), active_alerts.clone());
                blocking(move || {
                    let erased = inventory.wipe(level);
                    worlds.report(|reports| reports.hosts = Arc::default());
                    // They name the hosts.
                    active_alerts.keep(AlertKind::NewDevice, |_| false);
                    erased
                })
            })
            .releases(move || blocking(move || store_at_end(&stored))),
        Service::new("host_rates", context, measure::run),
    ]
}

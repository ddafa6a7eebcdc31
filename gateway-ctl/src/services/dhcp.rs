//! DHCP server of the LAN: the state machine of `gateway_core` between sockets and the journal of leases.

mod alerts;
mod handle;
mod journal;
mod links;
mod metrics;
mod names;
mod search;
mod serve;
mod stored_leases;

use gateway_model::settings::groups::WipeLevel;

use crate::service::{Context, Service};
use crate::supervise::blocking;

pub use handle::{DhcpServer, LOST, ShownLease};
pub use names::own_names;
pub use search::search;

/// Returns the service of the server.
pub fn service(context: &Context) -> Service {
    let server = &context.handles.get::<DhcpServer>();
    let (reported, measured, erased) = (server.clone(), server.clone(), server.clone());
    let clock = context.store.clock().clone();
    Service::new("dhcp_server", context, serve::run)
        .reports(move || {
            let server = reported.clone();
            blocking(move || server.health())
        })
        .measures(move |registry| metrics::register(registry, &measured, clock.now()))
        .erases(move |level| {
            let server = erased.clone();
            async move {
                match level {
                    WipeLevel::Soft | WipeLevel::Medium => server.erase().await,
                    // The folder of the leases is destroyed.
                    WipeLevel::Hard => Ok(()),
                }
            }
        })
}

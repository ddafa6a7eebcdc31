//! Metrics of interfaces.

use gateway_ctl::world::World;
use prometheus_client::registry::Registry;

use super::families::gauges;

/// Adds the state of the DHCP clients.
pub fn register(registry: &mut Registry, world: &World) {
    let clients = world.reports.dhcp_clients.clients.iter();
    let bound = clients
        .map(|(interface, state)| (vec![("interface", interface.clone())], i64::from(state.lease.is_some())));
    gauges(registry, "dhcp_client_bound", "1 if the DHCP client of the daemon has a lease, else 0", bound);
}

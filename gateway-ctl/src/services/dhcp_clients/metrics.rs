//! Metrics of the DHCP clients.

use prometheus_client::registry::Registry;

use crate::metrics::gauges;
use crate::world::reports::dhcp_clients::DhcpStates;

/// Adds the state of the clients.
pub(super) fn register(registry: &mut Registry, states: &DhcpStates) {
    let clients = states.clients.iter();
    let bound = clients
        .map(|(interface, state)| (vec![("interface", interface.clone())], i64::from(state.lease.is_some())));
    gauges(registry, "dhcp_client_bound", "1 if the DHCP client of the daemon has a lease, else 0", bound);
}

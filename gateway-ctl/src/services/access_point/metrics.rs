//! Metrics of the access point.

use prometheus_client::registry::Registry;

use super::status::AccessPointStatus;
use crate::metrics::{gauge, gauges};

/// Adds the state of the access point and the stations of its networks, while there is one.
pub(super) fn register(registry: &mut Registry, status: &AccessPointStatus) {
    if !status.enabled {
        return;
    }
    gauge(
        registry,
        "access_point_up",
        "1 if stations can join the access point, else 0",
        status.is_on().into(),
    );
    let networks = status.radio.iter().flat_map(|radio| &radio.networks);
    let stations = networks
        .filter_map(|net| Some((vec![("interface", net.interface.clone())], i64::from(net.stations?))));
    gauges(registry, "access_point_stations", "Stations of the access point, by interface", stations);
}

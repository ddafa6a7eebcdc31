//! Registration of metric families with values that other components count. Names have base units, and labels are in
//! snake_case (Prometheus, "Metric and label naming").

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

pub type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;
type Counters = Family<Labels, Counter>;

pub fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(number(value));
    registry.register(name, help, gauge);
}

/// Registers a time or a duration. The registry appends the unit to the name.
pub fn seconds(registry: &mut Registry, name: &str, help: &str, value: f64) {
    let gauge = Gauge::<f64, AtomicU64>::default();
    gauge.set(value);
    registry.register_with_unit(name, help, Unit::Seconds, gauge);
}

pub fn gauges(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, i64)>,
) {
    let family = Gauges::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

/// Registers gauges that are no whole numbers. `unit` is appended to the name.
pub fn measured(
    registry: &mut Registry,
    (name, unit): (&str, Unit),
    help: &str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) {
    let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(value);
    }
    registry.register_with_unit(name, help, unit, family);
}

pub fn counter(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let counter = Counter::<u64>::default();
    counter.inc_by(value);
    registry.register(name, help, counter);
}

/// Registers counters with values of the kernel, the store or a service.
pub fn counters(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) {
    let family = Counters::default();
    for (labels, value) in values {
        family.get_or_create(&labels).inc_by(value);
    }
    registry.register(name, help, family);
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

//! Packets and bytes of a per-CPU counter.

use gateway_common::wire::CounterValue;
use serde::Serialize;

/// Packets and bytes over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Counters {
    pub packets: u64,
    pub bytes: u64,
}

pub(super) fn sum(values: &[CounterValue]) -> Counters {
    values.iter().fold(Counters::default(), |all, one| Counters {
        packets: all.packets + one.packets,
        bytes: all.bytes + one.bytes,
    })
}

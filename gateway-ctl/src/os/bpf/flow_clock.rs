//! The clock of the flow table and of the fast path, as the kernel programs read it (`bpf_ktime_get_coarse_ns`).

use gateway_common::wire::FLOW_TICK_SHIFT;

/// Returns the time in nanoseconds.
pub(super) fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Returns the time in ticks of the flow table.
pub(super) fn ticks() -> u32 {
    u32::try_from(monotonic() >> FLOW_TICK_SHIFT).unwrap_or(u32::MAX)
}

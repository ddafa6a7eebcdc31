//! The budget of new flows: how many records a device may add to the flow table in a while.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::maps::{DEVICES, Flows4, Flows6, MapSpec};

use super::{FLOW_PLACES, FLOW_TICK_SHIFT};

/// The budget counts new flows in windows of 2^36 nanoseconds, 69 s.
pub const WINDOW_SHIFT: u32 = 36;

/// Maximum number of flows that a device may add in one window: 238 per second. One device needs 32 windows (36 min) to
/// fill the table of IPv4 and 8 windows (9 min) to fill the other one, both longer than a flow without TCP may idle.
/// A bucket of the table forgets the flow that was silent longest, so flows in use stay.
pub const FLOW_BUDGET: u32 = 16_384;

const _: () = {
    let window_seconds = (1u64 << WINDOW_SHIFT) / 1_000_000_000;
    let places = FLOW_PLACES as u32;
    let (four, six) = (Flows4::CAPACITY * places / FLOW_BUDGET, Flows6::CAPACITY * places / FLOW_BUDGET);
    assert!(four as u64 * window_seconds > 300, "one device evicts flows that are in use");
    assert!(six as u64 * window_seconds > 300, "one device evicts flows that are in use");
};

/// Number of budgets for unknown hosts: one for each LAN interface, by the low bits of its index.
const SHARED_BUDGETS: u32 = 1024;

/// Number of budgets.
pub const BUDGETS: u32 = DEVICES + SHARED_BUDGETS;

/// Index of the budget of a device, or of all unknown hosts of an interface.
#[inline(always)]
pub const fn budget_index(device: u32, interface: u32) -> u32 {
    if device == 0 || device >= DEVICES { DEVICES + interface % SHARED_BUDGETS } else { device }
}

/// New flows of one budget, with the window that they were counted in.
///
/// Processors update it without a lock, so two at once may count one flow for two: the budget then admits a few more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct NewFlows(u64);

const COUNT_BITS: u64 = 0x7fff_ffff;
/// The previous window exceeded the budget.
const EXCEEDED_BEFORE: u64 = 0x8000_0000;

impl NewFlows {
    pub const fn new(window: u32, count: u32, exceeded_before: bool) -> NewFlows {
        let before = if exceeded_before { EXCEEDED_BEFORE } else { 0 };
        NewFlows((window as u64) << 32 | before | (count as u64 & COUNT_BITS))
    }

    /// The window of a time in [`FLOW_TICK_SHIFT`] units.
    #[inline(always)]
    pub const fn window(now: u32) -> u32 {
        now >> (WINDOW_SHIFT - FLOW_TICK_SHIFT)
    }

    /// Counts one more flow. A processor whose clock is behind counts in the window that another one began.
    #[inline(always)]
    #[must_use]
    pub const fn next(self, window: u32) -> NewFlows {
        let begun = (self.0 >> 32) as u32;
        if window > begun {
            return NewFlows::new(window, 1, window - begun == 1 && self.is_exceeded());
        }
        // The count stops one above the budget.
        if self.is_exceeded() { self } else { NewFlows(self.0 + 1) }
    }

    /// The flow that was counted last is beyond the budget.
    #[inline(always)]
    pub const fn is_exceeded(self) -> bool {
        self.0 & COUNT_BITS > FLOW_BUDGET as u64
    }

    /// The previous window exceeded the budget, so flows without a record may exist.
    #[inline(always)]
    pub const fn was_exceeded(self) -> bool {
        self.0 & EXCEEDED_BEFORE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_admits_so_many_flows_in_each_window() {
        let mut flows = NewFlows::default();
        for window in [1, 2, 7] {
            for count in 0..FLOW_BUDGET {
                flows = flows.next(window);
                assert!(!flows.is_exceeded(), "flow {count} of window {window}");
            }
            for _ in 0..3 {
                flows = flows.next(window);
                assert!(flows.is_exceeded(), "window {window}");
            }
            assert_eq!(flows, flows.next(window - 1), "a clock that is behind gets no window of its own");
        }
    }

    #[test]
    fn next_window_remembers_that_the_budget_was_exceeded() {
        let full = NewFlows::new(5, FLOW_BUDGET, false);
        assert!(!full.next(6).was_exceeded(), "used up is not exceeded");
        let exceeded = full.next(5);
        assert!(exceeded.is_exceeded() && !exceeded.was_exceeded());
        let after = exceeded.next(6);
        assert!(after.was_exceeded() && !after.is_exceeded());
        assert!(after.next(6).was_exceeded(), "for the whole window");
        assert!(!after.next(7).was_exceeded());
        assert!(!exceeded.next(7).was_exceeded(), "a window without a flow lies between");
    }

    #[test]
    fn unknown_hosts_share_the_budget_of_their_interface() {
        assert_eq!(budget_index(7, 1), budget_index(7, 2));
        assert_ne!(budget_index(7, 1), budget_index(8, 1));
        assert_ne!(budget_index(0, 1), budget_index(0, 2));
        for (device, interface) in
            [(0, 0), (0, u32::MAX), (1, 1), (DEVICES - 1, 1), (DEVICES, 1), (u32::MAX, 1)]
        {
            let index = budget_index(device, interface);
            assert!(index < BUDGETS, "{device} {interface}");
            assert_eq!(index < DEVICES, (1..DEVICES).contains(&device));
        }
    }
}

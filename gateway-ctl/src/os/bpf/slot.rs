//! Slots of the policy maps. One has the active plan, the other one takes the next plan.

use gateway_common::wire::Slot;

/// Slot of a plan. `None` in its place is default deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanSlot {
    First = 1,
    Second = 2,
}

impl PlanSlot {
    pub const ALL: [PlanSlot; 2] = [PlanSlot::First, PlanSlot::Second];

    /// Returns the slot of a number in the maps. `None` for [`SLOT_NONE`](gateway_common::wire::SLOT_NONE).
    pub fn of_wire(number: Slot) -> Option<PlanSlot> {
        PlanSlot::ALL.into_iter().find(|slot| slot.get() == number)
    }

    pub const fn get(self) -> Slot {
        self as Slot
    }

    /// Returns the slot for the next plan.
    pub fn next(active: Option<PlanSlot>) -> PlanSlot {
        if active == Some(PlanSlot::First) { PlanSlot::Second } else { PlanSlot::First }
    }
}

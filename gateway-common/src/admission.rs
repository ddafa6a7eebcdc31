//! Admission to the flow table: each device has a budget of new flows ([`crate::wire::FLOW_BUDGET`]).
//!
//! Packets of a flow beyond the budget are evaluated one by one, without a record. The leg must then follow from the
//! packet alone, so its addresses select it instead of the round robin.

use crate::wire::Sticky;

/// Decision on a flow's record in the flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Admission {
    /// Not decided yet.
    Pending = 0,
    Admitted = 1,
    /// Admitted after a window in which the device exceeded its budget. Earlier packets of the flow may have had no
    /// record, so its addresses still select the leg.
    AfterRefusal = 2,
    /// Beyond the budget: no record.
    Refused = 3,
}

impl Admission {
    #[inline(always)]
    pub const fn is_refused(self) -> bool {
        self as u8 == Admission::Refused as u8
    }

    /// Stickiness of a flow's leg: without a valid record, only the addresses are constant.
    #[inline(always)]
    pub const fn sticky(self, policy: Sticky) -> Sticky {
        match (self, policy) {
            (Admission::AfterRefusal | Admission::Refused, Sticky::Flow) => Sticky::SourceDestination,
            (_, policy) => policy,
        }
    }
}

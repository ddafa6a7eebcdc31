//! Admission to the flow table: each device has a budget of new flows ([`crate::wire::FLOW_BUDGET`]).
//!
//! A flow beyond the budget is decided like any other, packet by packet, but gets no record. Its leg must then follow from
//! the packet alone, so it is chosen by the addresses instead of the round robin.

use crate::verdict::{PolicyInput, PolicyMaps, Verdict};
use crate::wire::{NewFlows, Sticky, budget_index};

/// Decision on a flow's record in the flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Admission {
    /// Not decided yet.
    Pending = 0,
    Admitted = 1,
    /// Admitted, but its device exceeded the budget in the window before: earlier packets of the flow may have had no
    /// record, so its leg is still chosen by the addresses.
    AfterRefusal = 2,
    /// Beyond the budget: no record.
    Refused = 3,
}

/// Decides admission once for a packet, before anything is chosen for the flow. A flow with a record keeps it, whether its
/// verdict holds or not: the table does not grow by it.
#[inline(always)]
pub fn admit<E: PolicyMaps>(question: &PolicyInput<'_>, environment: &E, verdict: &mut Verdict) {
    if verdict.admission as u8 != Admission::Pending as u8 {
        return;
    }
    verdict.admission = if question.recorded {
        Admission::Admitted
    } else {
        let index = budget_index(verdict.device, question.packet.interface);
        let flows = environment.count_new_flow(index, NewFlows::window(question.now));
        if flows.is_exceeded() {
            Admission::Refused
        } else if flows.was_exceeded() {
            Admission::AfterRefusal
        } else {
            Admission::Admitted
        }
    };
}

impl Admission {
    #[inline(always)]
    pub const fn is_refused(self) -> bool {
        self as u8 == Admission::Refused as u8
    }

    /// Stickiness of a flow's leg: without a record that holds, only its addresses stay the same.
    #[inline(always)]
    pub const fn sticky(self, policy: Sticky) -> Sticky {
        match (self, policy) {
            (Admission::AfterRefusal | Admission::Refused, Sticky::Flow) => Sticky::SourceDestination,
            (_, policy) => policy,
        }
    }
}

//! Verdict on a packet: the action, its reason, and the objects that determined it.

use crate::admission::Admission;
use crate::wire::RANK_NONE;

pub use crate::reason::Reason;

/// Result of the decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    pub reason: Reason,
    /// Fwmark to set; undefined if the packet is dropped or passed unchanged.
    pub mark: u32,
    /// Rank of the matching policy, [`RANK_NONE`] without one. Unknown for flows with a record.
    pub rank: u32,
    /// Number of the matching policy, 0 without one.
    pub policy: u32,
    /// Number of the device, 0 without one.
    pub device: u32,
    /// Leg of the packet, 0 without one.
    pub leg: u8,
    /// End of the verdict as a [`deadline`](crate::wire::deadline), 0 without an end.
    pub until: u32,
    /// The flow had no record of this generation.
    pub new: bool,
    /// Protocols that the flow has shown: bits of [`flow_flags`](crate::wire::flow_flags).
    pub shown: u8,
    /// Admission of the flow's record; pending for flows that need none.
    pub admission: Admission,
}

impl Verdict {
    pub const DROP: Verdict = Verdict {
        action: Action::Drop,
        reason: Reason::PolicyDrop,
        mark: 0,
        rank: RANK_NONE,
        policy: 0,
        device: 0,
        leg: 0,
        until: 0,
        new: true,
        shown: 0,
        admission: Admission::Pending,
    };

    #[inline(always)]
    pub fn set(&mut self, action: Action, reason: Reason, mark: u32) {
        self.action = action;
        self.reason = reason;
        self.mark = mark;
    }
}

/// Action of the dataplane on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    Drop = 0,
    /// Continues with the fwmark.
    Mark = 1,
    /// Continues unchanged: the IP stack does not forward it.
    Pass = 2,
}

//! Plan in the kernel at the start of the daemon: whether it is the last one that was noted.

use gateway_core::plan_history::{Content, Entry};
use jiff::{SignedDuration, Timestamp};

use crate::reconcile::KernelDataplane;

/// Plan that was live when the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAtStart {
    /// Its generation; `None` under default deny.
    pub generation: Option<u32>,
}

impl KernelAtStart {
    pub(super) fn read(dataplane: &KernelDataplane) -> KernelAtStart {
        let generation = dataplane.with(|programs| match programs.live() {
            Ok(None) | Err(_) => None,
            Ok(Some(_)) => programs.generation().ok(),
        });
        KernelAtStart { generation }
    }

    /// Returns the time since which the last record does not say what was in force. `None` if the kernel has enforced
    /// that plan until now. A host that was off has decided on nothing.
    pub(super) fn unknown_since(self, last: &Entry, booted_at: i64) -> Option<Timestamp> {
        let header = &last.header;
        if header.content == Content::Unknown || self.generation == Some(header.generation) {
            return None;
        }
        let boot = Timestamp::from_nanosecond(booted_at.into()).unwrap_or(Timestamp::MIN);
        let next = header.at.checked_add(SignedDuration::from_nanos(1)).unwrap_or(header.at);
        Some(boot.max(next))
    }
}

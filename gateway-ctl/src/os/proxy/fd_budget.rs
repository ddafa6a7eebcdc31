//! Budget of descriptors for the relay, so that LAN hosts cannot exhaust those that the rest of the daemon needs.
//!
//! Each connection through a proxy takes two descriptors. The daemon raises its limit of open files, and the relay
//! leaves 1 024 of them free. Further connections are reset and counted. A hard limit of 20 000 permits 9 488
//! connections.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::os::rlimit::open_files;

/// Descriptors that the relay leaves to the daemon, its own pipes included.
const RESERVED: u64 = 1024;

/// Descriptors that are left for connections and datagrams.
#[derive(Clone, Debug)]
pub(super) struct DescriptorBudget(Arc<Semaphore>);

/// Permit that is held for as long as the descriptors are open.
pub(super) type Permit = OwnedSemaphorePermit;

impl Default for DescriptorBudget {
    fn default() -> DescriptorBudget {
        DescriptorBudget::of(open_files())
    }
}

impl DescriptorBudget {
    /// Returns the budget of a process with this descriptor limit. With a very small limit the relay gets half.
    fn of(limit: u64) -> DescriptorBudget {
        let ours = limit.saturating_sub(RESERVED).max(limit / 2);
        let ours = usize::try_from(ours).unwrap_or(usize::MAX);
        DescriptorBudget(Arc::new(Semaphore::new(ours.min(Semaphore::MAX_PERMITS))))
    }

    /// Takes a permit for descriptors. Returns `None` if fewer are left.
    pub(super) fn take(&self, descriptors: u32) -> Option<Permit> {
        self.0.clone().try_acquire_many_owned(descriptors).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_left() {
        for (limit, left) in [(65_536, 1024), (1024, 512), (0, 0)] {
            let budget = DescriptorBudget::of(limit);
            assert_eq!(limit - budget.0.available_permits() as u64, left);
        }
        assert!(DescriptorBudget::of(u64::MAX).take(2).is_some());
    }

    #[test]
    fn returned_permits_can_be_acquired_again() {
        let budget = DescriptorBudget::of(8);
        let first = budget.take(3);
        assert!(first.is_some() && budget.take(2).is_none());
        drop(first);
        assert!(budget.take(4).is_some());
    }
}

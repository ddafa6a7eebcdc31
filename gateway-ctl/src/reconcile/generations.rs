//! Numbers of plans, unique over restarts of the host.

use std::sync::Arc;

use crate::store::Store;

/// Numbers that are reserved at once, so that the disk is rarely written to.
const RESERVED_AT_ONCE: u32 = 4096;

/// Source of the numbers.
#[derive(Debug)]
pub struct Generations {
    store: Arc<Store>,
    /// Numbers up to this one may have been used, or are reserved for this run.
    reserved: u32,
}

impl Generations {
    pub fn open(store: Arc<Store>) -> Generations {
        let reserved = store.reserved_generations().unwrap_or_else(|error| {
            tracing::error!(%error, "failed to read which numbers of plans were used");
            0
        });
        Generations { store, reserved }
    }

    /// Returns the lowest number of the next plan, which is reserved from now on. `newest` is the number of the newest plan
    /// in the kernel, 0 without one: the kernel knows the plans of this boot only.
    pub(super) fn next(&mut self, newest: u32) -> u32 {
        let next = if newest == 0 { self.reserved } else { newest }.saturating_add(1);
        if next > self.reserved {
            let until = next.saturating_add(RESERVED_AT_ONCE);
            match self.store.reserve_generations(until) {
                Ok(()) => self.reserved = until,
                // A plan must go live on a full disk, too.
                Err(error) => tracing::warn!(%error, "failed to reserve numbers of plans"),
            }
        }
        next
    }
}

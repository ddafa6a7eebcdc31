//! Limits of connections: by address, and in total.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::attempts::holder;

/// Connections of an IPv4 address or IPv6 /64. The nodes of a household share one.
const MOST_OF_ONE: usize = 128;
const MOST: usize = 2048;

/// Counts connections.
#[derive(Debug, Default)]
pub struct Admission {
    holders: Mutex<HashMap<IpAddr, usize>>,
}

/// A counted connection, until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    admission: Arc<Admission>,
    holder: IpAddr,
}

impl Admission {
    /// Counts a connection, unless there are too many.
    pub fn admit(self: &Arc<Self>, from: IpAddr) -> Option<Admitted> {
        let holder = holder(from);
        let mut holders = self.holders.lock();
        let total: usize = holders.values().sum();
        let own = holders.get(&holder).copied().unwrap_or_default();
        if total >= MOST || own >= MOST_OF_ONE {
            return None;
        }
        holders.insert(holder, own + 1);
        Some(Admitted { admission: Arc::clone(self), holder })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut holders = self.admission.holders.lock();
        if let Some(count) = holders.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                holders.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_room_for_others() {
        let admission = Arc::<Admission>::default();
        let from = |last| IpAddr::from([192, 0, 2, last]);
        let mut held: Vec<_> = (0..MOST_OF_ONE).map(|_| admission.admit(from(1)).unwrap()).collect();
        assert!(admission.admit(from(1)).is_none());
        assert!(admission.admit(from(2)).is_some());
        held.pop();
        assert!(admission.admit(from(1)).is_some());
        drop(held);
        assert!(admission.holders.lock().is_empty());
    }

    #[test]
    fn many_addresses_have_a_limit() {
        let admission = Arc::<Admission>::default();
        let held: Vec<_> = (0..4096_u16)
            .filter_map(|number| admission.admit(IpAddr::from([10, 0, (number >> 8) as u8, number as u8])))
            .collect();
        assert_eq!(held.len(), MOST);
    }
}

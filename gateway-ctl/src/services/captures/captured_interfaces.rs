//! Interfaces that are captured. XDP leaves them meanwhile, because it handles packets before a capture sees them.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::Id;
use tokio::sync::watch;

/// Interfaces by the capture that reads them.
#[derive(Clone, Debug, Default)]
pub struct CapturedInterfaces(watch::Sender<BTreeMap<Id, BTreeSet<String>>>);

crate::handles::in_memory!(CapturedInterfaces);

/// Interfaces of a capture. They count until it is dropped.
#[derive(Debug)]
pub(super) struct Claim(CapturedInterfaces, Id);

impl CapturedInterfaces {
    /// Returns the interfaces of all captures.
    pub fn all(&self) -> BTreeSet<String> {
        self.0.borrow().values().flatten().cloned().collect()
    }

    pub fn watch(&self) -> watch::Receiver<BTreeMap<Id, BTreeSet<String>>> {
        self.0.subscribe()
    }

    pub(super) fn claim(&self, id: Id, interfaces: BTreeSet<String>) -> Claim {
        self.0.send_modify(|all| drop(all.insert(id, interfaces)));
        Claim(self.clone(), id)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.0.send_modify(|all| drop(all.remove(&self.1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_count_until_the_last_capture_of_them_ends() {
        let captured = CapturedInterfaces::default();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let first = captured.claim(Id::from_u128(1), names(&["eth0", "eth1"]));
        let second = captured.claim(Id::from_u128(2), names(&["eth1"]));
        drop(first);
        assert_eq!(captured.all(), names(&["eth1"]));
        drop(second);
        assert!(captured.all().is_empty());
    }
}

//! Secondary zones: selection of the wanted ones, and storage of the transferred ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::dns::Name;
use gateway_core::dns::zones::Copy;
use gateway_dns::transfer::{Deliver, Error, Secondary};
use gateway_dns::upstream;
use gateway_model::settings::bootstrap::Dns;
use gateway_model::{Id, State};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Store of transferred zones that notifies of changes.
#[derive(Clone)]
pub(super) struct SecondaryZones {
    pub held: Arc<Mutex<BTreeMap<Id, Copy>>>,
    pub changed: Arc<Notify>,
}

impl SecondaryZones {
    /// Returns the transferred zones that still exist, and drops the others.
    pub(super) fn current(&self, state: &State) -> BTreeMap<Id, Copy> {
        let mut held = self.held.lock();
        held.retain(|id, _| state.dns_zones.contains(*id));
        held.clone()
    }
}

impl Deliver for SecondaryZones {
    fn deliver(&self, id: Id, copy: Option<Copy>) {
        let mut held = self.held.lock();
        match copy {
            Some(copy) => drop(held.insert(id, copy)),
            None => drop(held.remove(&id)),
        }
        drop(held);
        self.changed.notify_one();
    }

    fn failed(&self, zone: &Name, error: &Error) {
        tracing::warn!(%zone, %error, "failed to refresh a secondary zone");
    }
}

pub(super) fn wanted(state: &State, dns: &Dns) -> Vec<Secondary> {
    upstream::secondaries(state, &dns.bootstrap_servers)
}

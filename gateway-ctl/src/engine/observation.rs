//! Facts of a run: from the kernel, and from services that contribute some.

use std::sync::Arc;

use gateway_core::facts::Facts;
use tokio::sync::watch;

use super::boot_time::BootTime;
use crate::os::netlink;
use crate::os::observe::{KernelChanges, Observer};
use crate::reconcile::Observe;
use crate::service::Services;
use crate::world::Worlds;

pub(super) struct Observation {
    pub boot_time: BootTime,
    pub observer: Observer,
    pub worlds: Arc<Worlds>,
    pub services: Services,
}

impl Observe for Observation {
    async fn facts(&self) -> Result<Facts, netlink::Error> {
        // The network is that of the plan's state or of an earlier one; in the latter case, another run follows.
        let network = self.worlds.in_force().network;
        let mut facts = self.observer.facts(|name| network.lan.iter().any(|lan| lan == name)).await?;
        facts.booted_at = self.boot_time.nanoseconds();
        self.services.contribute(&mut facts);
        Ok(facts)
    }

    fn changes(&self) -> watch::Receiver<KernelChanges> {
        self.observer.changes()
    }
}

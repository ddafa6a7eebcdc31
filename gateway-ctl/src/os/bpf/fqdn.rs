//! FQDN policy entries: DNS-learned IP addresses, installed beside the active plan before the client gets the answer.

use std::net::IpAddr;
use std::time::Duration;

use gateway_common::maps::action_index;
use gateway_common::wire::{ClientKey, FqdnIpKey};
use gateway_core::dns::{Name, NameRef};
use gateway_core::fqdn_cache::Key;

use super::flow_clock::ticks;
use super::maps::Entries;
use super::slot::PlanSlot;
use super::{Error, Programs};

impl Programs {
    /// Installs the addresses of a name for a client. After it returns, new flows of the client to them match the
    /// name.
    pub fn install_learned(
        &mut self,
        client: ClientKey,
        name: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), Error> {
        // Without a plan nothing is forwarded. The next plan includes the DNS-learned IP addresses.
        let slot = self.live()?.map(PlanSlot::get);
        let now = ticks();
        for (address, ttl) in addresses {
            let address = (*address).into();
            let value = self.learned.record((client, address), name, ttl.as_secs(), now)?;
            let evicted = self.learned.take_evicted();
            let Some(slot) = slot else { continue };
            for (client, address) in evicted {
                self.maps.domains.remove(&FqdnIpKey { slot, client, address })?;
            }
            if let Some(value) = value {
                self.maps.domains.put(&FqdnIpKey { slot, client, address }, &value)?;
            }
        }
        Ok(())
    }

    /// Returns the names through which a client currently knows an address.
    pub fn names_of(&self, key: &Key) -> Vec<Name> {
        self.learned.names(key, ticks())
    }

    /// Updates entries that changed and removes expired ones. Callers run it every few seconds.
    pub fn sweep_learned(&mut self) -> Result<(), Error> {
        let slot = self.live()?;
        let (changed, gone) = self.learned.sweep(ticks());
        let Some(slot) = slot.map(PlanSlot::get) else { return Ok(()) };
        for ((client, address), value) in changed {
            self.maps.domains.put(&FqdnIpKey { slot, client, address }, &value)?;
        }
        for (client, address) in gone {
            self.maps.domains.remove(&FqdnIpKey { slot, client, address })?;
        }
        Ok(())
    }

    /// Restores the entries that an earlier run left beside the active plan. Clients still have those answers.
    pub(super) fn restore_learned(&mut self) -> Result<(), Error> {
        let Some(slot) = self.live()?.map(PlanSlot::get) else { return Ok(()) };
        let entries = self.maps.domains.read()?.into_iter().filter(|(key, _)| key.slot == slot);
        let entries: Vec<(Key, _)> = entries.map(|(key, value)| ((key.client, key.address), value)).collect();
        let actions = &self.maps.actions;
        self.learned.restore(entries, |rank| Some(actions.get(action_index(slot, rank.get())?).ok()?.policy));
        Ok(())
    }
}

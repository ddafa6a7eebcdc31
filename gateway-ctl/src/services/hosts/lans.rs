//! LAN interfaces on which hosts are observed.

use std::collections::{BTreeMap, BTreeSet};

use gateway_core::facts::LinkLayer;
use gateway_core::state_machines::hosts::{Evidence, Observation};
use gateway_model::MacAddr;
use jiff::Timestamp;

use crate::world::World;

/// LAN interface on which hosts are observed.
#[derive(Clone, Debug)]
pub(super) struct Lan {
    pub name: String,
    pub vlan: Option<u16>,
}

/// LAN interfaces by index, and the gateway's own MAC addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Lans {
    pub interfaces: BTreeMap<u32, Lan>,
    own: BTreeSet<MacAddr>,
}

impl Lans {
    pub(super) fn of(world: &World) -> Lans {
        let links = &world.facts.links;
        let lan = world.network.lan.iter().filter_map(|name| {
            let link = links.get(name).filter(|link| link.link_layer == LinkLayer::Ethernet)?;
            let vlan = link.vlan.as_ref().map(|(_, id)| *id);
            Some((link.index, Lan { name: name.clone(), vlan }))
        });
        Lans {
            interfaces: lan.collect(),
            own: links.values().filter_map(|link| link.mac).map(MacAddr).collect(),
        }
    }

    /// Returns an observation of a host, unless it is this gateway or not on the LAN.
    pub(super) fn observation(
        &self,
        index: u32,
        mac: MacAddr,
        at: Timestamp,
        evidence: Evidence,
    ) -> Option<Observation<'_>> {
        let lan = self.interfaces.get(&index).filter(|_| !self.own.contains(&mac))?;
        Some(Observation { interface: &lan.name, mac, vlan: lan.vlan, at, evidence })
    }

    pub(super) fn index_of(&self, name: &str) -> Option<u32> {
        self.interfaces.iter().find(|(_, lan)| lan.name == name).map(|(index, _)| *index)
    }
}

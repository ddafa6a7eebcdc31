//! Segments: named parts of the local network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trust_class::TrustClass;
use crate::capability::Capability;
use crate::edit::EditError;
use crate::id::IfName;
use crate::id_or_name::{check_reference, keep_name, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{Cidr, check_name};

/// A segment: a network of the LAN. The gateway makes the interface of its VLAN, and gives out addresses on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Segment {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    /// 1 to 4094; null for an untagged segment.
    #[schemars(range(min = 1, max = 4094))]
    pub vlan_id: Option<u16>,
    /// The LAN interface it is reached by; of a VLAN the parent, on which the gateway makes an interface for the VLAN.
    pub interface: Option<IfName>,
    pub cidr: Option<Cidr>,
    /// Id or name of the trust class of hosts that have none. It adds to the limits of the class `standard`.
    pub trust_class: Option<String>,
    /// Its devices do not reach one another. Without effect: the gateway does not see frames between hosts of one cable.
    pub isolation: bool,
    /// The gateway gives out addresses: the upper three quarters of the network, with the other settings of the DHCP
    /// server. Needs no range of addresses there.
    pub dhcp: bool,
}

impl Resource for Segment {
    const NOUN: &'static str = "segment";
    const COLLECTION: &'static str = "segments";
    const REQUIRED: &'static [&'static str] = &["name", "interface", "cidr"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        if self.vlan_id.is_some_and(|id| !(1..=4094).contains(&id)) {
            problems.add(code::RANGE, "vlan_id", "Must be from 1 to 4094.");
        }
        if self.interface.is_none() {
            problems.required("interface");
        }
        match self.cidr {
            None => problems.required("cidr"),
            Some(cidr) => {
                let mut others = state.segments.iter().filter(|other| other.meta.id != self.meta.id);
                let overlaps = |other: &&Segment| {
                    let have = other.cidr.map(|other| other.net().trunc());
                    have.is_some_and(|have| {
                        have.contains(&cidr.net().trunc()) || cidr.net().trunc().contains(&have)
                    })
                };
                if let Some(other) = others.find(overlaps) {
                    let message = format!("The segment {:?} has addresses of this network.", other.name);
                    problems.add(code::CONFLICT, "cidr", message);
                }
            }
        }
        if let Some(cleared) = self.cidr.and_then(Cidr::without_host_bits) {
            problems.warn("cidr", format!("Host bits were cleared: stored as {cleared}."));
        }
        check_reference::<TrustClass>("trust_class", &self.trust_class, state, problems);
        if self.isolation {
            problems.lacks("isolation", Capability::SegmentIsolation);
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn apply_consequences(mut self, state: &mut State) -> Result<(), EditError> {
        match self.cidr.and_then(Cidr::without_host_bits) {
            Some(cleared) => {
                self.cidr = Some(cleared);
                state.put(self)
            }
            None => Ok(()),
        }
    }

    fn refs(&self) -> Vec<Ref> {
        reference::<TrustClass>("trust_class", &self.trust_class, Hold::Firm).into_iter().collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
        if let Some(interface) = &self.interface {
            keys.unique("vlan_id", format!("on:{interface}:{}", self.vlan_id.unwrap_or(0)));
        }
    }
}

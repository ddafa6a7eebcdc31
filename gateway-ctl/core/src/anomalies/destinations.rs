//! Destinations that a device uses: known ones of all the time, and new ones of an hour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::countries::CountryCode;
use crate::flow_log::FlowId;

/// Values that are remembered of a device. Once there are so many, it is usual for the device to use new ones.
const MAX_KNOWN: usize = 512;
/// New values of an hour that are named.
const MAX_NEW: usize = 32;

/// Values that a device has used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KnownValues<T: Ord>(BTreeSet<T>);

impl<T: Ord> Default for KnownValues<T> {
    fn default() -> Self {
        KnownValues(BTreeSet::new())
    }
}

impl<T: Ord> KnownValues<T> {
    pub(super) fn has(&self, value: T) -> bool {
        self.0.contains(&value) || self.0.len() >= MAX_KNOWN
    }

    pub(super) fn learn(&mut self, value: T) {
        if self.0.len() < MAX_KNOWN {
            self.0.insert(value);
        }
    }

    /// Learns a value. Returns whether it is new for a device that is not learned any more.
    pub(super) fn is_new(&mut self, value: T, is_learning: bool) -> bool {
        if self.0.len() >= MAX_KNOWN {
            return false;
        }
        self.0.insert(value) && !is_learning
    }
}

/// KnownValues destinations of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KnownDestinations {
    pub ports: KnownValues<u16>,
    pub countries: KnownValues<CountryCode>,
    /// Tunnels, by the hash of port and network.
    pub tunnels: KnownValues<u32>,
    /// Destinations of regular connections, by the hash of port and domain or network.
    pub beacons: KnownValues<u32>,
}

impl KnownDestinations {
    /// Returns the bytes of memory that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        let KnownDestinations { ports, countries, tunnels, beacons } = self;
        8 * (ports.0.len() + countries.0.len() + tunnels.0.len() + beacons.0.len())
    }
}

/// Destinations of this hour that the device had not used before, each with its first flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewDestinations {
    pub ports: FirstFlows<u16>,
    pub countries: FirstFlows<CountryCode>,
    /// Other end of a tunnel.
    pub tunnel: Option<(IpAddr, u16, FlowId)>,
}

impl NewDestinations {
    /// Returns the bytes of memory that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        24 * (self.ports.0.len() + self.countries.0.len())
    }
}

/// New values with their first flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstFlows<T: Ord>(BTreeMap<T, FlowId>);

impl<T: Ord> Default for FirstFlows<T> {
    fn default() -> Self {
        FirstFlows(BTreeMap::new())
    }
}

impl<T: Ord> FirstFlows<T> {
    pub(super) fn add(&mut self, value: T, flow: FlowId) {
        if self.0.len() < MAX_NEW {
            self.0.entry(value).or_insert(flow);
        }
    }

    /// Returns the values and the flows. `None` if there are none.
    pub(super) fn get(&self) -> Option<&BTreeMap<T, FlowId>> {
        (!self.0.is_empty()).then_some(&self.0)
    }
}

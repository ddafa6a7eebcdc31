//! State of Bluetooth, as the API shows it.

use std::net::IpAddr;

use gateway_core::bluetooth::detection::{IdsEvent, KnownDevice};
use gateway_core::bluetooth::device::RemoteDevice;
use gateway_core::bluetooth::nap::nap_clients;
use gateway_core::bluetooth::pairing::Pairing;
use gateway_core::facts::Facts;
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::PAN_INTERFACE;
use ipnet::IpNet;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::{BluetoothError, Missing};
use super::handle::{Bluetooth, State};

/// State of Bluetooth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BluetoothStatus {
    /// There is an adapter with a daemon that drives it.
    pub available: bool,
    /// Missing part of the host; null if nothing is missing.
    pub needs: Option<String>,
    /// The adapter is on; null without one.
    pub powered: Option<bool>,
    /// Null without an adapter.
    pub adapter: Option<AdapterStatus>,
    /// End of the scan that runs; null without one.
    pub scan_until: Option<Timestamp>,
    /// End of the time in which other devices may begin to pair; null if it is closed.
    pub pairing_until: Option<Timestamp>,
    /// The last pairing since the start; null without one.
    pub pairing: Option<Pairing>,
    pub pan: PanStatus,
    pub nap: NapStatus,
}

/// Adapter of this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdapterStatus {
    pub address: MacAddr,
    /// Name that other devices see.
    pub name: String,
    /// Other devices find it.
    pub discoverable: bool,
    /// Other devices can pair with it. The gateway refuses them outside of the time for it.
    pub pairable: bool,
}

/// Network of a phone that the gateway has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PanStatus {
    pub connected: bool,
    /// Phone; null without a connection.
    pub device: Option<MacAddr>,
    /// Interface; null while there is none.
    pub interface: Option<String>,
    /// Address that the phone has given; null without one.
    pub ip: Option<String>,
    /// Human-readable reason why the last attempt failed; null without one.
    pub error: Option<String>,
}

/// Network that the gateway offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NapStatus {
    pub active: bool,
    /// Bridge that clients join; null while there is none.
    pub bridge: Option<String>,
    /// Number of clients.
    pub clients: usize,
}

/// Strength of the signal of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignalStrength {
    pub mac: MacAddr,
    /// In dBm; null if the device was not heard in the last ten minutes.
    pub rssi: Option<i16>,
    /// Time at which it was heard; null without a value.
    pub at: Option<Timestamp>,
}

/// State of the detection of intrusions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DetectionStatus {
    /// Devices are learned without events.
    pub learning: bool,
    /// End of the learning time; null until an adapter that is on was first observed.
    pub learned_until: Option<Timestamp>,
    /// Devices that were heard before. Devices that change their address are none.
    pub known: Vec<KnownDevice>,
    /// The last 256 events, the newest first.
    pub events: Vec<IdsEvent>,
}

impl Bluetooth {
    pub fn status(&self, facts: &Facts, now: Timestamp) -> BluetoothStatus {
        let mut state = self.lock();
        state.pairing.expire(now);
        let adapter = state.snapshot.adapter.clone();
        let missing = match (&state.daemon, &adapter) {
            (Err(missing), _) => Some(missing.clone()),
            (Ok(_), None) => Some(Missing::Adapter),
            (Ok(_), Some(_)) => None,
        };
        BluetoothStatus {
            available: missing.is_none(),
            needs: missing.map(|missing| missing.to_string()),
            powered: adapter.as_ref().map(|adapter| adapter.powered),
            scan_until: state.scan_until.filter(|until| now < *until),
            pairing_until: state.pairing.open_until(now),
            pairing: state.pairing.current().cloned(),
            pan: state.pan_status(facts),
            nap: state.nap_status(facts),
            adapter: adapter.map(|adapter| AdapterStatus {
                address: adapter.address,
                name: adapter.name,
                discoverable: adapter.discoverable,
                pairable: adapter.pairable,
            }),
        }
    }

    /// Returns the devices that are paired, trusted or connected.
    pub fn devices(&self) -> Vec<RemoteDevice> {
        let is_own = |device: &&RemoteDevice| device.paired || device.trusted || device.connected;
        self.lock().snapshot.devices.iter().filter(is_own).cloned().collect()
    }

    /// Returns the other devices, the nearest first.
    pub fn nearby(&self) -> Vec<RemoteDevice> {
        let is_other = |device: &&RemoteDevice| !(device.paired || device.trusted || device.connected);
        let mut found: Vec<RemoteDevice> =
            self.lock().snapshot.devices.iter().filter(is_other).cloned().collect();
        found.sort_by_key(|device| (std::cmp::Reverse(device.rssi), device.mac));
        found
    }

    /// Returns the last strength of the signal of a device.
    pub fn signal(&self, mac: MacAddr) -> Result<SignalStrength, BluetoothError> {
        let last = self.lock().signals.get(&mac).copied();
        match (last, self.device(mac)) {
            (Some((rssi, at)), _) => Ok(SignalStrength { mac, rssi: Some(rssi), at: Some(at) }),
            (None, Ok(_)) => Ok(SignalStrength { mac, rssi: None, at: None }),
            (None, Err(error)) => Err(error),
        }
    }

    pub fn detection(&self, now: Timestamp) -> DetectionStatus {
        let state = self.lock();
        DetectionStatus {
            learning: state.detection.is_learning(now),
            learned_until: state.detection.learned_until(),
            known: state.detection.known().cloned().collect(),
            events: state.detection.events().cloned().collect(),
        }
    }
}

impl State {
    /// Returns the phone whose network is joined, with the name that its interface had at first.
    pub(super) fn joined(&self) -> Option<(MacAddr, String)> {
        let joined = self.snapshot.devices.iter().find(|device| device.network.is_some())?;
        Some((joined.mac, joined.network.as_ref()?.interface.clone()))
    }

    fn pan_status(&self, facts: &Facts) -> PanStatus {
        let device = self.joined().map(|(mac, _)| mac);
        let interface = device.filter(|_| facts.links.contains_key(PAN_INTERFACE));
        // The kernel gives a link-local address before the phone gives one.
        let mut given = facts.addresses.get(PAN_INTERFACE).into_iter().flatten().map(IpNet::addr);
        let address = interface.and_then(|_| given.find(IpAddr::is_ipv4));
        PanStatus {
            connected: device.is_some(),
            device,
            interface: interface.map(|_| PAN_INTERFACE.to_owned()),
            ip: address.map(|address| address.to_string()),
            error: self.pan_error.clone(),
        }
    }

    fn nap_status(&self, facts: &Facts) -> NapStatus {
        NapStatus {
            active: self.nap.is_some(),
            bridge: self.nap.clone(),
            clients: self.nap.as_deref().map_or(0, |bridge| nap_clients(facts, bridge)),
        }
    }
}

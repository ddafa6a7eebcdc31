//! Bluetooth without I/O: devices, pairing, detection of intrusions, and the phone as the uplink of last resort.
//!
//! The daemon of BlueZ drives the adapter. The service reads its objects and carries out the orders of these state machines.
//!
//! Decision 0210 says why.

pub mod detection;
pub mod device;
pub mod failover;
pub mod nap;
pub mod pairing;
#[cfg(test)]
mod tests;

use gateway_model::id::MacAddr;

use device::{Adapter, RemoteDevice};

/// Maximum number of devices that are read. The daemon of BlueZ removes unpaired ones that are silent.
pub const MAX_DEVICES: usize = 1024;

/// Adapter and devices at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BluetoothSnapshot {
    /// `None`: there is no adapter.
    pub adapter: Option<Adapter>,
    pub devices: Vec<RemoteDevice>,
}

impl BluetoothSnapshot {
    pub fn device(&self, mac: MacAddr) -> Option<&RemoteDevice> {
        self.devices.iter().find(|device| device.mac == mac)
    }
}

/// Order to the daemon of BlueZ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BluetoothOrder {
    Power(bool),
    Rename(String),
    /// Lets other devices find the adapter and pair with it, for a time in seconds; 0 is without end.
    Discoverable(u32),
    Hidden,
    StartDiscovery,
    StopDiscovery,
    Pair(MacAddr),
    CancelPairing(MacAddr),
    Trust(MacAddr, bool),
    Remove(MacAddr),
    /// Joins the network of a device. The result is the name of the interface.
    JoinNetwork(MacAddr),
    LeaveNetwork(MacAddr),
    /// Offers a network on a bridge.
    OfferNetwork(String),
    EndNetwork,
}

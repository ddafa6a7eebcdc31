//! The Bluetooth adapter, and a phone as the uplink of last resort.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::id::{IfName, MacAddr};
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::settings::uplink::{Probe, Wan};
use crate::state::State;
use crate::validated::check_name;

/// Name that the daemon gives the interface to the network of a phone. BlueZ numbers interfaces by the order of connections,
/// also those of clients of the network access point.
pub const PAN_INTERFACE: &str = "bnep-wan";

/// Settings of the Bluetooth adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BluetoothSettings {
    /// Power the adapter at the start, and whenever it appears.
    pub auto_power: bool,
    /// Time in seconds for which the adapter can be found, and others may begin to pair; 0 means unlimited.
    pub discoverable_timeout: u64,
    /// MAC addresses that may pair and use services; empty allows all.
    pub allowed_macs: Vec<MacAddr>,
    /// Segment that clients of the network access point join. Its interface is a bridge.
    pub nap_segment: Option<String>,
}

impl Default for BluetoothSettings {
    fn default() -> Self {
        Self { auto_power: false, discoverable_timeout: 120, allowed_macs: Vec::new(), nap_segment: None }
    }
}

impl Group for BluetoothSettings {
    const KEY: &'static str = "bluetooth";
    const NOUN: &'static str = "bluetooth_settings";

    fn validate(&self, _: &State, problems: &mut Problems) {
        check_range("discoverable_timeout", self.discoverable_timeout, 0..=86_400, problems);
        for (index, mac) in self.allowed_macs.iter().enumerate() {
            if self.allowed_macs[..index].contains(mac) {
                problems.add(
                    code::DUPLICATE,
                    format!("allowed_macs[{index}]"),
                    format!("{mac} is given twice."),
                );
            }
        }
        if let Some(segment) = &self.nap_segment {
            check_name("nap_segment", segment, problems);
        }
    }
}

/// The network of a phone as an uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BluetoothFailover {
    /// The phone is an uplink.
    pub enabled: bool,
    /// MAC address of the phone, which is paired.
    pub device_mac: Option<MacAddr>,
    /// Priority among the uplinks; the lowest value is used first.
    pub priority: u64,
    /// Traffic costs money: probes are sent a tenth as often while another uplink is active.
    pub metered: bool,
    /// Time in seconds that all other uplinks must have been down.
    pub start_after_sec: u64,
}

impl Default for BluetoothFailover {
    fn default() -> Self {
        Self { enabled: false, device_mac: None, priority: 250, metered: true, start_after_sec: 30 }
    }
}

impl BluetoothSettings {
    /// Reports whether a device may pair and use services.
    pub fn allows(&self, mac: MacAddr) -> bool {
        self.allowed_macs.is_empty() || self.allowed_macs.contains(&mac)
    }
}

impl BluetoothFailover {
    /// Returns the uplink that the phone is. `None`: it is none.
    pub fn uplink(&self, probe: Probe) -> Option<Wan> {
        let interface: IfName = PAN_INTERFACE.parse().ok()?;
        self.enabled.then(|| Wan {
            name: "bluetooth".to_owned(),
            priority: u32::try_from(self.priority).unwrap_or(u32::MAX),
            metered: self.metered,
            // Shared traffic would need the phone at all times.
            balance: false,
            probe,
            ..Wan::of_interface(interface)
        })
    }
}

impl Group for BluetoothFailover {
    const KEY: &'static str = "bluetooth_failover";
    const NOUN: &'static str = "bluetooth_failover";

    fn validate(&self, _: &State, problems: &mut Problems) {
        if self.enabled && self.device_mac.is_none() {
            problems.required("device_mac");
        }
        check_range("priority", self.priority, 0..=65_535, problems);
        check_range("start_after_sec", self.start_after_sec, 0..=86_400, problems);
    }
}

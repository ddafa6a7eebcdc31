//! The Bluetooth adapter, and a phone as the uplink of last resort.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::capability::Capability;
use crate::id::MacAddr;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::check_name;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BluetoothSettings {
    /// Power the adapter at start.
    pub auto_power: bool,
    /// Duration in seconds; 0 means unlimited.
    pub discoverable_timeout: u64,
    /// MAC addresses that may pair; empty allows all.
    pub allowed_macs: Vec<MacAddr>,
    /// Segment that clients of the network access point join.
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
    const NEEDS: Option<Capability> = Some(Capability::Bluetooth);

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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BluetoothFailover {
    pub enabled: bool,
    /// MAC address of the phone.
    pub device_mac: Option<MacAddr>,
    /// Priority among the uplinks; the lowest value is used first.
    pub priority: u64,
    pub metered: bool,
    /// Time in seconds that all other uplinks must have been down.
    pub start_after_sec: u64,
}

impl Default for BluetoothFailover {
    fn default() -> Self {
        Self { enabled: false, device_mac: None, priority: 250, metered: true, start_after_sec: 30 }
    }
}

impl Group for BluetoothFailover {
    const KEY: &'static str = "bluetooth_failover";
    const NOUN: &'static str = "bluetooth_failover";
    const NEEDS: Option<Capability> = Some(Capability::Bluetooth);

    fn validate(&self, _: &State, problems: &mut Problems) {
        if self.enabled && self.device_mac.is_none() {
            problems.required("device_mac");
        }
        check_range("priority", self.priority, 0..=65_535, problems);
        check_range("start_after_sec", self.start_after_sec, 0..=86_400, problems);
    }
}

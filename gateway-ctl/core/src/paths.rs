//! Paths: where the traffic of each device and of each policy to the internet goes now, decided by the function that
//! the kernel runs. A read model for lists and graphs; [`crate::evaluate`] explains a single device in full.

mod devices;
mod policies;

use std::collections::BTreeMap;

use gateway_model::id::Id;

use crate::compile::{Compiled, Input};
use crate::gateway_verdict::DeviceCounts;
pub use devices::{DevicePath, FamilyDecisions, PathException};
pub use policies::{PolicyOrigin, PolicyPath};

/// Paths of one plan.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Each device, by name.
    pub devices: Vec<DevicePath>,
    /// Number of devices by treatment, as the verdict on the gateway counts them.
    pub counts: DeviceCounts,
    /// Each policy at work, in order of evaluation.
    pub policies: Vec<PolicyPath>,
    /// Interfaces of the uplinks by which tunnels leave at last, by number of the leg.
    pub uplinks: BTreeMap<u8, String>,
}

/// Returns the paths of all devices and policies.
pub fn paths(input: &Input<'_>, compiled: &Compiled) -> Paths {
    let uplinks = devices::uplinks(input, compiled);
    let devices = devices::paths(input, compiled, &uplinks);
    let mut counts = DeviceCounts::default();
    devices.iter().for_each(|device| counts.add(device.treatment));
    let mut numbers: BTreeMap<Id, usize> = BTreeMap::new();
    for device in &devices {
        if let Some(id) = device.decided_by() {
            *numbers.entry(id).or_default() += 1;
        }
    }
    let policies = policies::paths(input, compiled, &numbers);
    Paths { devices, counts, policies, uplinks }
}

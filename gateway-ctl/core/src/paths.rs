//! Paths: where the traffic of each device, host and policy to the internet goes now, decided by the function that
//! the kernel runs. A read model for lists and graphs; [`crate::evaluate`] explains a single device in full.

mod devices;
mod hosts;
mod policies;

use std::collections::BTreeMap;

use gateway_model::id::Id;

use crate::compile::{Compiled, Input};
use crate::gateway_verdict::{HostCounts, PresentHost, internet, silent_records};
use crate::indexes::LegId;
pub use devices::{DevicePath, FamilyDecisions, PathException, uplinks};
pub use hosts::{HostPath, host_path};
pub use policies::{PolicyOrigin, PolicyPath};

/// Paths of one plan.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Each device, by name.
    pub devices: Vec<DevicePath>,
    /// Each host on the LAN.
    pub hosts: Vec<HostPath>,
    /// Number of hosts by treatment, as the verdict on the gateway counts them.
    pub counts: HostCounts,
    /// Each policy at work, in order of evaluation.
    pub policies: Vec<PolicyPath>,
    /// Interfaces of the uplinks by which tunnels leave at last, by number of the leg.
    pub uplinks: BTreeMap<LegId, String>,
}

/// Returns the paths of all devices, of the hosts on the LAN, and of policies.
pub fn paths(input: &Input<'_>, compiled: &Compiled, hosts: &[PresentHost]) -> Paths {
    let uplinks = devices::uplinks(input, compiled);
    let devices = devices::paths(input, compiled, &uplinks);
    let to = internet(compiled);
    let hosts_on_lan = hosts.iter().filter_map(|host| host_path(input, compiled, host, to, &uplinks));
    let hosts_on_lan: Vec<HostPath> = hosts_on_lan.collect();
    let mut counts = HostCounts::default();
    hosts_on_lan.iter().for_each(|host| counts.add(host.treatment));
    counts.records_silent = silent_records(input, hosts);
    let mut numbers: BTreeMap<Id, usize> = BTreeMap::new();
    for id in hosts_on_lan.iter().filter_map(HostPath::decided_by) {
        *numbers.entry(id).or_default() += 1;
    }
    let policies = policies::paths(input, compiled, &numbers);
    Paths { devices, hosts: hosts_on_lan, counts, policies, uplinks }
}

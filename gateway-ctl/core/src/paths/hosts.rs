//! Path of each host.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_model::id::{Id, MacAddr};
use gateway_model::kinds::routing_policy::Hop;

use super::devices::{EvaluatedPath, FamilyDecisions, PathException};
use crate::compile::{Compiled, Input};
use crate::evaluate::{Decision, PolicyRef, Subject};
use crate::gateway_verdict::{PresentHost, Treatment, host_packets};
use crate::indexes::LegId;

/// Treatment of a host's new connections to the internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPath {
    pub mac: MacAddr,
    pub interface: String,
    /// Device with this MAC address.
    pub device_id: Option<Id>,
    pub decision: Decision,
    pub treatment: Treatment,
    pub families: FamilyDecisions,
    pub policy: Option<PolicyRef>,
    pub exception: Option<PathException>,
    pub hop: Option<Hop>,
    pub via: Option<String>,
    pub egress: Vec<String>,
    pub uplink: Option<String>,
    pub sentence: String,
}

impl HostPath {
    /// Returns the id of the policy or exception that decides.
    pub fn decided_by(&self) -> Option<Id> {
        super::devices::decided_by(self.policy.as_ref(), self.exception.as_ref())
    }
}

/// Returns the path of a host. `None` if its interface has no address, so that nothing of it is forwarded.
pub fn host_path(
    input: &Input<'_>,
    compiled: &Compiled,
    host: &PresentHost,
    to: [IpAddr; 2],
    uplinks: &BTreeMap<LegId, String>,
) -> Option<HostPath> {
    let device = input.state.device_by_mac(host.mac).map(AsRef::as_ref);
    let subject = Subject { device, mac: Some(host.mac), names: Vec::new(), previous_leg: None };
    let packets = host_packets(input, host, to);
    let found = EvaluatedPath::of(input, compiled, &subject, &packets, uplinks)?;
    Some(HostPath {
        mac: host.mac,
        interface: host.interface.clone(),
        device_id: device.map(|device| device.meta.id),
        decision: found.decision,
        treatment: found.treatment,
        families: found.families,
        policy: found.policy,
        exception: found.exception,
        hop: found.hop,
        via: found.via,
        egress: found.egress,
        uplink: found.uplink,
        sentence: found.sentence,
    })
}

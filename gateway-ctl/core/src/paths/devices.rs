//! Path of each device.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_model::Device;
use gateway_model::id::{Id, MacAddr};
use gateway_model::kinds::device::DeviceStatus;
use gateway_model::kinds::exception::{Exception, ExceptionType};
use gateway_model::kinds::routing_policy::Hop;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Compiled, Input};
use crate::evaluate::route::Kernel;
use crate::evaluate::{
    Decision, EvaluatedPacket, PolicyRef, Request, Subject, decide_packet, evaluate_packet, summarised,
    test_packets,
};
use crate::gateway_verdict::{Treatment, internet, packets, treatment};
use crate::indexes::LegId;

/// Treatment of a device's new connections to the internet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DevicePath {
    pub device_id: Id,
    pub name: String,
    /// MAC address by which the device was evaluated; null if it has none.
    pub mac: Option<MacAddr>,
    /// Observed addresses.
    pub addresses: Vec<IpAddr>,
    /// Groups that it is a member of.
    pub group_ids: Vec<Id>,
    pub status: DeviceStatus,
    /// Of both families the one that exposes more: direct before tunnel before block.
    pub decision: Decision,
    /// A host of it counts so in the verdict of `/status`.
    pub treatment: Treatment,
    /// Decision for each family; null for a family that the LAN of the device does not have.
    pub families: FamilyDecisions,
    /// Policy that decides, or the profile or bridge in its place. Null if none does, or an exception.
    pub policy: Option<PolicyRef>,
    /// Active exception that decides, or keeps the device in quarantine.
    pub exception: Option<PathException>,
    /// Hop by which the traffic leaves. Null if it does not leave, or leaves by the default route.
    pub hop: Option<Hop>,
    /// Egress: `vpn:wg-a`, `proxy:office`, `interface:wan0`, `default`. Null if the traffic does not leave.
    pub via: Option<String>,
    /// Names of all tunnels or uplinks that new connections are shared among.
    pub egress: Vec<String>,
    /// Interface of the uplink that carries the traffic at last. Null if the traffic does not leave, or by a proxy
    /// behind the default route.
    pub uplink: Option<String>,
    /// The answer of `/policy/evaluate` in one sentence.
    pub sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FamilyDecisions {
    pub ipv4: Option<Decision>,
    pub ipv6: Option<Decision>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PathException {
    pub id: Id,
    pub r#type: ExceptionType,
    pub expires_at: Option<Timestamp>,
}

impl DevicePath {
    /// Returns the id of the policy or exception that decides.
    pub fn decided_by(&self) -> Option<Id> {
        decided_by(self.policy.as_ref(), self.exception.as_ref())
    }
}

pub(super) fn decided_by(policy: Option<&PolicyRef>, exception: Option<&PathException>) -> Option<Id> {
    let exception = exception.filter(|one| one.r#type != ExceptionType::Quarantine);
    policy.map(|policy| policy.id).or(exception.map(|exception| exception.id))
}

/// Returns the uplink behind each leg.
pub fn uplinks(input: &Input<'_>, compiled: &Compiled) -> BTreeMap<LegId, String> {
    let kernel = Kernel::new(compiled, input.facts);
    let legs = compiled.legs.by_number.values();
    legs.filter_map(|leg| Some((leg.number, kernel.uplink_of(leg)?))).collect()
}

/// Returns the path of each device, by name.
pub(super) fn paths(
    input: &Input<'_>,
    compiled: &Compiled,
    uplinks: &BTreeMap<LegId, String>,
) -> Vec<DevicePath> {
    let to = internet(compiled);
    let devices = input.state.devices.iter();
    let mut paths: Vec<DevicePath> =
        devices.filter_map(|device| path(input, compiled, device, to, uplinks)).collect();
    paths.sort_by(|one, other| (&one.name, one.device_id).cmp(&(&other.name, other.device_id)));
    paths
}

fn path(
    input: &Input<'_>,
    compiled: &Compiled,
    device: &Device,
    to: [IpAddr; 2],
    uplinks: &BTreeMap<LegId, String>,
) -> Option<DevicePath> {
    let id = device.meta.id;
    let request = Request { device_id: Some(id), ..Request::default() };
    let subject = Subject::find(input, &request).ok()?;
    let mut packets = packets(input, &subject, to);
    if packets.is_empty() {
        // No address of the LAN is known: both families, as a dry run assumes.
        packets = test_packets(input, compiled, &request, &subject, &mut Vec::new()).ok()?;
    }
    let found = EvaluatedPath::of(input, compiled, &subject, &packets, uplinks)?;
    let mut addresses = subject.addresses(input);
    addresses.sort_unstable();
    addresses.dedup();
    Some(DevicePath {
        device_id: id,
        name: device.name.clone(),
        mac: subject.mac,
        addresses,
        group_ids: input.state.groups_of(id).map(|group| group.meta.id).collect(),
        status: device.status,
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

/// Result of the evaluation of packets to the internet, one of each family.
#[derive(Clone, Debug)]
pub(super) struct EvaluatedPath {
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

impl EvaluatedPath {
    pub(super) fn of(
        input: &Input<'_>,
        compiled: &Compiled,
        subject: &Subject<'_>,
        packets: &[IpPacket],
        uplinks: &BTreeMap<LegId, String>,
    ) -> Option<EvaluatedPath> {
        let treatments =
            packets.iter().map(|packet| treatment(compiled, &decide_packet(compiled, packet, &[])));
        let treatment = treatments.max()?;
        let evaluated: Vec<EvaluatedPacket<'_>> =
            packets.iter().map(|packet| evaluate_packet(input, compiled, subject, packet)).collect();
        let (main, sentence) = summarised(subject, &evaluated);
        let main = main?;
        let of_family = |ipv6: bool| {
            let family = evaluated.iter().find(|evaluated| evaluated.ipv6 == ipv6);
            family.map(|evaluated| evaluated.verdict.decision)
        };
        let diversion = main.policy.filter(|policy| policy.exception_until.is_some());
        let quarantine = |device: &Device| input.state.quarantine_of(device.meta.id, input.now);
        let exception = match diversion {
            Some(policy) => input.state.exceptions.get(policy.id).map(AsRef::as_ref),
            None => subject.device.and_then(quarantine).filter(|exception| input.is_in_force(exception)),
        };
        let verdict = &main.verdict;
        let uplink = match verdict.kernel.leg {
            _ if verdict.decision == Decision::Block => None,
            Some(leg) => LegId::new(leg).and_then(|leg| uplinks.get(&leg).cloned()),
            None if verdict.proxy.is_some() => None,
            None => verdict.interface.clone(),
        };
        Some(EvaluatedPath {
            decision: verdict.decision,
            treatment,
            families: FamilyDecisions { ipv4: of_family(false), ipv6: of_family(true) },
            policy: verdict.policy.clone().filter(|_| diversion.is_none()),
            exception: exception.map(shown),
            hop: main.hop.clone(),
            via: verdict.via.clone(),
            egress: verdict.ways.clone(),
            uplink,
            sentence,
        })
    }
}

fn shown(exception: &Exception) -> PathException {
    PathException { id: exception.meta.id, r#type: exception.r#type, expires_at: exception.expires_at }
}

//! Enforcement of the plan: matches, actions, and obstacles.

use gateway_common::wire::{Mark, plan_flags};
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, PolicyStatus};
use gateway_model::text_enum;
use schemars::JsonSchema;
use serde::Serialize;

use super::lines;
use crate::compile::{Compiled, Input, LegKind};
use crate::evaluate::{HopView, hop_view, legs_of};
use crate::indexes::LegId;
use crate::plan::{Attachment, names};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Enforcement {
    /// Policies in order of evaluation.
    pub policies: Vec<PolicyEnforcement>,
    /// Action for traffic that no policy matches: `direct` or `reject`.
    pub unmatched: &'static str,
    /// Action while no plan is active.
    pub no_plan: &'static str,
    pub attach: Vec<AttachView>,
    pub legs: Vec<LegView>,
    pub proxies: Vec<ProxyView>,
    pub findings: Vec<FindingView>,
    /// Time at which the same state compiles to another plan.
    pub valid_until: Option<jiff::Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PolicyEnforcement {
    pub id: Id,
    pub name: String,
    pub rank: u32,
    pub priority: i64,
    /// Human-readable matches.
    pub matches: Vec<String>,
    pub action: ActionView,
    /// Numbers of the legs it may use now.
    pub legs: Vec<u8>,
    pub fail_policy: FailPolicy,
    pub status: PolicyStatus,
    pub active_hop: Option<Hop>,
    pub hops: Vec<HopView>,
    /// It is no policy but an exception of a device, which ends then.
    pub exception_until: Option<jiff::Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActionView {
    pub ipv4: String,
    pub ipv6: String,
}

/// A program at an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttachView {
    pub interface: String,
    /// `ingress` decides on traffic from the LAN, `guard` checks outgoing traffic.
    pub program: &'static str,
    /// True if the interface exists.
    pub present: bool,
}

text_enum! {
    /// Kind of a leg.
    pub enum LegViewKind {
        Uplink = "uplink",
        Tunnel = "tunnel",
        /// Peer of the mesh.
        MeshPeer = "mesh_peer",
    }
}

/// An egress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LegView {
    pub number: u8,
    pub kind: LegViewKind,
    pub interface: String,
    pub tunnel_id: Option<Id>,
    pub mark: String,
    pub table: u32,
    pub ipv4: bool,
    pub ipv6: bool,
    pub usable: bool,
    /// Human-readable reason for which it is not usable. Empty if it is.
    pub reason: String,
    /// Number of the underlay leg. Null for the default route, or for none.
    pub underlay: Option<u8>,
    /// Mark of its outer packets; null for an uplink and for a mesh peer, whose outer packets have none.
    pub outer_mark: Option<String>,
    /// Bytes of a packet that fits.
    pub mtu: u16,
}

/// A proxy that policies name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProxyView {
    pub number: u8,
    pub proxy_id: String,
    pub name: String,
    /// Null as long as its name has none.
    pub address: Option<String>,
    /// Numbers of the legs towards the proxy; 0 is the default route.
    pub legs: Vec<u8>,
    /// Mark of traffic for it; the last two digits are the leg.
    pub mark: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingView {
    pub code: &'static str,
    pub policy_id: Option<Id>,
    pub message: String,
}

/// Returns the enforcement of the plan. `compiled` must come from the same input.
pub fn enforce(input: &Input<'_>, compiled: &Compiled) -> Enforcement {
    let plan = &compiled.plan;
    let reject = plan.dataplane.header.flags & plan_flags::UNMATCHED_REJECT != 0;
    let policies = compiled.policies.iter().map(|policy| {
        let stored = input.policy(policy.id);
        let mut legs = legs_of(&policy.v4);
        legs.extend(legs_of(&policy.v6));
        PolicyEnforcement {
            id: policy.id,
            name: policy.name.clone(),
            rank: policy.rank.get(),
            priority: policy.priority,
            matches: stored
                .map(|stored| input.sources(&stored).iter().map(|source| matcher(input, source)).collect())
                .unwrap_or_default(),
            action: ActionView {
                ipv4: lines::choice(compiled, &policy.v4),
                ipv6: lines::choice(compiled, &policy.v6),
            },
            legs: legs.into_iter().map(LegId::raw).collect(),
            fail_policy: policy.fail_policy,
            status: policy.status,
            active_hop: policy.active_hop.clone(),
            hops: policy.hops.iter().map(hop_view).collect(),
            exception_until: policy.exception_until,
        }
    });
    Enforcement {
        policies: policies.collect(),
        unmatched: if reject { "reject" } else { "direct" },
        no_plan: "block",
        attach: plan
            .attach
            .iter()
            .map(|(interface, attachment)| AttachView {
                interface: interface.clone(),
                program: match attachment {
                    Attachment::Ingress => "ingress",
                    Attachment::Guard => "guard",
                },
                present: input.facts.links.contains_key(interface),
            })
            .collect(),
        legs: compiled.legs.by_number.values().map(leg_view).collect(),
        proxies: plan.proxies.iter().map(|(number, target)| proxy_view(number.get(), target)).collect(),
        findings: compiled
            .findings
            .iter()
            .map(|finding| FindingView {
                code: finding.code,
                policy_id: finding.policy,
                message: finding.message.clone(),
            })
            .collect(),
        valid_until: plan.valid_until,
    }
}

fn leg_view(leg: &crate::compile::Leg) -> LegView {
    LegView {
        number: leg.number.get(),
        kind: match leg.kind {
            LegKind::Uplink => LegViewKind::Uplink,
            LegKind::Tunnel(_) => LegViewKind::Tunnel,
            LegKind::MeshPeer(_) => LegViewKind::MeshPeer,
        },
        interface: leg.interface.clone(),
        tunnel_id: leg.tunnel(),
        mark: format!("{:#010x}", leg.number.mark().0),
        table: names::TABLE_BASE + u32::from(leg.number),
        ipv4: leg.ipv4,
        ipv6: leg.ipv6,
        usable: leg.usable,
        reason: leg.reason.clone(),
        underlay: leg.underlay.leg().map(LegId::get),
        outer_mark: leg.tunnel().map(|_| format!("{:#010x}", leg.underlay.mark().0)),
        mtu: leg.mtu,
    }
}

fn proxy_view(number: u8, target: &crate::plan::ProxyTarget) -> ProxyView {
    ProxyView {
        number,
        proxy_id: target.proxy_id.clone(),
        name: target.name.clone(),
        address: target.address.map(|address| address.to_string()),
        legs: target.legs.iter().copied().map(LegId::raw).collect(),
        mark: format!("{:#010x}", Mark::proxy(number, 0, false).0),
    }
}

fn matcher(input: &Input<'_>, source: &Source) -> String {
    match source {
        Source::All => "all traffic".to_owned(),
        Source::Interface(name) => format!("entering by {name}"),
        Source::Vlan(id) => format!("VLAN {id}"),
        Source::Subnet(net) => format!("from {net}"),
        Source::Device(id) => match input.state.devices.get(*id) {
            None => format!("device {id}, which does not exist"),
            Some(device) if device.all_macs().is_empty() => {
                format!("device {:?}, which has no MAC address", device.name)
            }
            Some(device) => {
                let macs: Vec<String> = device.all_macs().iter().map(ToString::to_string).collect();
                format!("device {:?} ({})", device.name, macs.join(", "))
            }
        },
        Source::DeviceGroup(id) => match input.state.device_groups.get(*id) {
            None => format!("device group {id}, which does not exist"),
            Some(group) => format!("device group {:?} ({} members)", group.name, group.members.len()),
        },
        Source::Destination { net, port: None } => format!("to {net}"),
        Source::Destination { net, port: Some(port) } => format!("to {net} port {port}"),
        Source::Domain(_) => format!("to addresses that clients resolved for {source}"),
    }
}

//! One packet evaluated, and the verdict with all that explains it.

use std::net::IpAddr;

use gateway_common::blocks;
use gateway_common::classify::{IpPacket, TCP, UDP};
use gateway_common::decide;
use gateway_common::fast_path::{self, SlowReason};
use gateway_common::policy_maps::{PolicyInput, PolicyMaps as _, PreviousEgress};
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{ClientKey, FqdnIpValue, flow_flags};
use gateway_model::Device;
use gateway_model::kinds::routing_policy::Hop;
use gateway_model::kinds::trust_class::TrustClass;
use serde_json::json;

use super::evaluation::{Decision, FamilyVerdict, FastPathView, KernelView, PolicyRef};
use super::explanation::{self, Explanation, head, policy_matched};
use super::interface_limits;
use super::matching::device_behind;
use super::outcome::Outcome;
use super::subject::Subject;
use crate::compile::{Compiled, CompiledPolicy, Input};
use crate::dns::Name;
use crate::fqdn_match;
use crate::indexes::Rank;
use crate::phrase::Phrase;
use crate::plan::Dataplane;
use crate::plan_maps::PlanMaps;

/// Verdict with its explanation.
#[derive(Debug)]
pub(crate) struct EvaluatedPacket<'a> {
    pub ipv6: bool,
    pub rank: Option<Rank>,
    pub verdict: FamilyVerdict,
    pub words: Explanation,
    pub policy: Option<&'a CompiledPolicy>,
    pub hop: Option<Hop>,
    pub trace: Vec<String>,
}

/// Judges by the plan as the kernel does, without its flow table. The sender knows the destination by these names.
pub(crate) fn decide_packet(compiled: &Compiled, packet: &IpPacket, names: &[Name]) -> Verdict {
    decide_with(&compiled.plan.dataplane, packet, names)
}

/// Judges a packet of a subject. One of a flow of the log is the first one, which keeps the leg that the log has.
fn decide_for(compiled: &Compiled, packet: &IpPacket, subject: &Subject<'_>) -> Verdict {
    let Some(leg) = subject.previous_leg else { return decide_packet(compiled, packet, &subject.names) };
    let packet = IpPacket { opening: packet.protocol == TCP, ..*packet };
    let previous = PreviousEgress { leg, ..PreviousEgress::NONE };
    let flow = FlowState { previous, ..FlowState::default() };
    decide_of_flow(&compiled.plan.dataplane, &packet, &subject.names, flow, 0)
}

/// Judges a packet that the gateway sends on behalf of a host. Privacy blocks are for packets of the host only.
pub(crate) fn decide_on_behalf(compiled: &Compiled, packet: &IpPacket) -> Verdict {
    let dataplane = &compiled.plan.dataplane;
    let environment = PlanMaps { ignores_blocks: true, ..PlanMaps::new(Some(dataplane)) };
    decide_in(&environment, dataplane, packet, &[], FlowState::default())
}

pub(super) fn decide_with(dataplane: &Dataplane, packet: &IpPacket, names: &[Name]) -> Verdict {
    decide_in(&PlanMaps::new(Some(dataplane)), dataplane, packet, names, FlowState::default())
}

/// State of a flow before the packet that is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowState {
    /// Protocols that it has shown: bits of [`flow_flags`].
    pub shown: u8,
    pub previous: PreviousEgress,
}

/// Judges a packet of a flow, at a time in nanoseconds since boot.
pub(super) fn decide_of_flow(
    dataplane: &Dataplane,
    packet: &IpPacket,
    names: &[Name],
    flow: FlowState,
    since_boot: u64,
) -> Verdict {
    let environment = PlanMaps::new(Some(dataplane));
    environment.since_boot.set(since_boot);
    decide_in(&environment, dataplane, packet, names, flow)
}

fn decide_in(
    environment: &PlanMaps<'_>,
    dataplane: &Dataplane,
    packet: &IpPacket,
    names: &[Name],
    flow: FlowState,
) -> Verdict {
    if !names.is_empty() {
        let device = decide::device(packet, 1, environment).number;
        let rank = fqdn_match::fqdn_rank(&dataplane.domains, names, device);
        let client = ClientKey::new(device, packet.mac, &packet.source);
        let fqdn_ip = FqdnIpValue { rank: Rank::raw(rank), until: u32::MAX };
        environment.domains.borrow_mut().insert((client, packet.destination), fqdn_ip);
    }
    let mut verdict = Verdict::DROP;
    let mut policy_input = PolicyInput {
        slot: 1,
        plan: environment.plan(1).unwrap_or_default(),
        // The daemon notes a ClientHello of QUIC in the flow; that of TCP is only in the packet.
        shown: flow.shown | packet.payload & flow_flags::HELLO,
        previous: flow.previous,
        ..PolicyInput::default()
    };
    policy_input.shown |= blocks::shown_by_name(packet, policy_input.slot, environment) as u8;
    verdict.shown = policy_input.shown;
    decide::evaluate(packet, &policy_input, environment, &mut verdict);
    verdict
}

/// Content of a flow that a privacy class may block: its code, the protocol that can have it, the payload of the packet, and
/// what the flow has shown.
const CONTENTS: [(&str, Option<u8>, u8, u8); 3] = [
    ("stun", None, flow_flags::STUN, flow_flags::STUN),
    ("quic", Some(UDP), flow_flags::QUIC, flow_flags::QUIC | flow_flags::HELLO),
    ("resolver_name", None, 0, flow_flags::HELLO | flow_flags::DOH_NAME),
];

/// Returns the contents for which the flow of a packet that passes would be blocked.
fn blocked_contents(compiled: &Compiled, packet: &IpPacket, names: &[Name]) -> Vec<&'static str> {
    let dataplane = &compiled.plan.dataplane;
    // The content of a packet with a payload is known.
    if !matches!(packet.protocol, TCP | UDP) || packet.payload != 0 {
        return Vec::new();
    }
    let is_blocked = |payload: u8, shown: u8| {
        let packet = IpPacket { payload, ..*packet };
        let verdict =
            decide_of_flow(dataplane, &packet, names, FlowState { shown, ..FlowState::default() }, 0);
        // Redirected queries are answered here.
        verdict.reason.is_block() && !matches!(verdict.reason, Reason::ForcedDns | Reason::ForcedNtp)
    };
    let contents =
        CONTENTS.iter().filter(|content| content.1.is_none_or(|protocol| protocol == packet.protocol));
    contents.filter(|content| is_blocked(content.2, content.3)).map(|content| content.0).collect()
}

/// Decides on the fast path for a flow with this verdict, as the program does for its second packet.
fn fast_path(compiled: &Compiled, packet: &IpPacket, verdict: &Verdict) -> FastPathView {
    if !compiled.plan.fast_path {
        return FastPathView::impossible("off");
    }
    // The programs take packets without a tag only.
    if packet.vlan != 0 {
        return FastPathView::impossible("vlan");
    }
    let established = Verdict { new: false, ..*verdict };
    let refused = fast_path::admit(packet, &established, &compiled.plan.dataplane.header).err();
    FastPathView { possible: refused.is_none(), reason: refused.map(SlowReason::as_str) }
}

pub(crate) fn evaluate_packet<'a>(
    input: &Input<'_>,
    compiled: &'a Compiled,
    subject: &Subject<'_>,
    packet: &IpPacket,
) -> EvaluatedPacket<'a> {
    let family = if packet.ipv6 { "IPv6" } else { "IPv4" };
    let verdict = decide_for(compiled, packet, subject);
    let policy = compiled.policy_of(&verdict);
    let (source, destination) = (shown(packet, packet.source), shown(packet, packet.destination));
    let mut trace = Vec::new();
    let (device, origin) = origin(input, subject, packet.mac.octets(), source);
    trace.extend(origin.map(|origin| format!("{family}: {origin}")));
    let class = device.and_then(|device| input.state.trust_class_of(device));
    let of_interface = interface_limits::phrase(input, compiled, packet, verdict.reason);
    let because = of_interface.unwrap_or_else(|| because(input, &verdict, device, class.map(AsRef::as_ref)));
    trace.push(format!("{family}: {source} to {}: {}", destination_text(packet, destination), because.text));

    let outcome = Outcome::of(input, compiled, packet, destination, &verdict);
    let mut clause = outcome.clause(&because);
    if let Some(reason) = outcome.missing_route() {
        trace.push(format!("{family}: at present {reason}"));
    }
    let mut shown = FamilyVerdict {
        decision: outcome.decision(),
        via: outcome.via(),
        interface: outcome.interface(),
        reason: because.text.clone(),
        phrases: vec![because],
        policy: policy.map(|policy| PolicyRef { id: policy.id, name: policy.name.clone() }),
        source: source.to_string(),
        destination: destination_text(packet, destination),
        kernel: KernelView {
            mark: (verdict.action == Action::Mark).then(|| format!("{:#010x}", verdict.mark)),
            table: outcome.table,
            leg: (verdict.leg != 0).then_some(verdict.leg),
            rank: Rank::of_wire(verdict.rank).map(Rank::get),
        },
        local: outcome.is_local(),
        ways: outcome.ways(),
        proxy: outcome.taken_by().map(str::to_owned),
        fast_path: fast_path(compiled, packet, &verdict),
    };
    let is_sent = shown.decision != Decision::Block && !shown.local;
    let contents = if is_sent { blocked_contents(compiled, packet, &subject.names) } else { Vec::new() };
    if !contents.is_empty() {
        trace.push(format!("{family}: {}", content_blocked(&contents, None).text));
        // TCP is read from its ClientHello on, so that its sentence holds until then.
        if packet.protocol == UDP {
            clause = Some(content_blocked(&contents, clause.as_ref()));
        }
    }
    let words = Explanation { head: head(&shown), policy: policy.map(policy_matched), clause };
    if !shown.local {
        shown.reason = words.reason();
        shown.phrases = words.phrases();
    }
    let (ipv6, rank, hop) = (packet.ipv6, Rank::of_wire(verdict.rank), outcome.hop());
    EvaluatedPacket { ipv6, rank, verdict: shown, words, policy, hop, trace }
}

/// Returns the device whose traffic a packet is, and what is special about that.
fn origin<'a>(
    input: &Input<'a>,
    subject: &Subject<'a>,
    mac: [u8; 6],
    source: IpAddr,
) -> (Option<&'a Device>, Option<String>) {
    if subject.device.is_none()
        && let Some(device) = device_behind(input, mac, source)
    {
        return (Some(device), Some(format!("the address {source} makes it the device {}", device.name)));
    }
    let nameless = "the device has no MAC address: nothing tells its traffic from others'";
    (subject.device, subject.mac.is_none().then(|| nameless.to_owned()))
}

/// Returns the reason of a verdict in words.
fn because(
    input: &Input<'_>,
    verdict: &Verdict,
    device: Option<&Device>,
    class: Option<&TrustClass>,
) -> Phrase {
    let quarantine = device.and_then(|device| input.state.quarantine_of(device.meta.id, input.now));
    match (quarantine.and_then(|exception| exception.expires_at), verdict.reason) {
        (Some(end), Reason::TrustLanDenied | Reason::TrustInternetDenied) => {
            let text = format!("an exception keeps the device in quarantine until {end:.0}");
            Phrase::new("quarantine", [("until", json!(format!("{end:.0}")))], text)
        }
        (_, Reason::DohBlocked) if verdict.shown & flow_flags::DOH_NAME != 0 => {
            let text = "DNS over HTTPS is blocked for it, and the name is one of a public resolver";
            Phrase::new("doh_name_blocked", [], text)
        }
        _ => explanation::reason(verdict.reason, class.map(|class| class.name.as_str())),
    }
}

/// Says which contents would block the flow, after what else there is to say.
fn content_blocked(contents: &[&'static str], before: Option<&Phrase>) -> Phrase {
    let words: Vec<&str> = contents
        .iter()
        .map(|content| match *content {
            "stun" => "STUN",
            "quic" => "QUIC",
            _ => "a connection of TLS or QUIC to the name of a public resolver",
        })
        .collect();
    let first = before.map(|phrase| format!("{}; ", phrase.text)).unwrap_or_default();
    let text = format!("{first}a flow that turns out to be {} is blocked", words.join(", "));
    Phrase::new("content_blocked", [("contents", json!(contents)), ("before", json!(before))], text)
}

fn shown(packet: &IpPacket, address: gateway_common::wire::Address) -> IpAddr {
    if packet.ipv6 { IpAddr::V6(address.octets().into()) } else { address.into() }
}

fn destination_text(packet: &IpPacket, destination: IpAddr) -> String {
    match packet.has_ports() {
        true => std::net::SocketAddr::new(destination, packet.destination_port).to_string(),
        false => destination.to_string(),
    }
}

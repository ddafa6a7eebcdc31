//! One packet evaluated, and the verdict with all that explains it.

use std::net::IpAddr;

use gateway_common::blocks;
use gateway_common::classify::{IpPacket, TCP, UDP};
use gateway_common::decide;
use gateway_common::fast_path::{self, SlowReason};
use gateway_common::policy_maps::{PolicyInput, PolicyMaps as _, PreviousEgress};
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{ChoiceKind, ClientKey, FqdnIpValue, RANK_NONE, flow_flags};
use gateway_model::kinds::routing_policy::Hop;
use serde_json::json;

use super::evaluation::{Decision, FamilyVerdict, FastPathView, KernelView, PolicyRef};
use super::explanation::{
    self, Explanation, failure, head, hops_down, leg_name, legs_of, not_for_the_proxy, policy_matched,
};
use super::matching::device_behind;
use super::route::Kernel;
use super::subject::Subject;
use crate::compile::{Compiled, CompiledPolicy, DefaultUplink, Input, LegKind};
use crate::dns::Name;
use crate::fqdn_match;
use crate::phrase::Phrase;
use crate::plan::Dataplane;
use crate::plan_maps::PlanMaps;

/// Verdict with its explanation.
#[derive(Debug)]
pub struct EvaluatedPacket<'a> {
    pub ipv6: bool,
    pub rank: u32,
    pub verdict: FamilyVerdict,
    pub words: Explanation,
    pub policy: Option<&'a CompiledPolicy>,
    pub hop: Option<Hop>,
    pub trace: Vec<String>,
}

/// Judges by the plan as the kernel does, without its flow table. The sender knows the destination by these names.
pub fn decide_packet(compiled: &Compiled, packet: &IpPacket, names: &[Name]) -> Verdict {
    decide_with(&compiled.plan.dataplane, packet, names)
}

/// Judges a packet that the gateway sends on behalf of a host. Privacy blocks are for packets of the host only.
pub fn decide_on_behalf(compiled: &Compiled, packet: &IpPacket) -> Verdict {
    let dataplane = &compiled.plan.dataplane;
    let environment = PlanMaps { ignores_blocks: true, ..PlanMaps::new(Some(dataplane)) };
    decide_in(&environment, dataplane, packet, &[], 0)
}

pub(super) fn decide_with(dataplane: &Dataplane, packet: &IpPacket, names: &[Name]) -> Verdict {
    decide_in(&PlanMaps::new(Some(dataplane)), dataplane, packet, names, 0)
}

/// `shown` is what the flow has shown before this packet: bits of [`flow_flags`](gateway_common::wire::flow_flags).
fn decide_in(
    environment: &PlanMaps<'_>,
    dataplane: &Dataplane,
    packet: &IpPacket,
    names: &[Name],
    shown: u8,
) -> Verdict {
    if !names.is_empty() {
        let device = decide::device(packet, 1, environment).number;
        let rank = fqdn_match::fqdn_rank(&dataplane.domains, names, device);
        let client = ClientKey::new(device, packet.mac, &packet.source);
        let fqdn_ip = FqdnIpValue { rank, until: u32::MAX };
        environment.domains.borrow_mut().insert((client, packet.destination), fqdn_ip);
    }
    let mut verdict = Verdict::DROP;
    let mut policy_input = PolicyInput {
        packet,
        slot: 1,
        plan: environment.plan(1).unwrap_or_default(),
        previous: PreviousEgress::NONE,
        recorded: false,
        continued: false,
        // The daemon notes a ClientHello of QUIC in the flow; that of TCP is only in the packet.
        shown: shown | packet.payload & flow_flags::HELLO,
        now: 0,
    };
    policy_input.shown |= blocks::shown_by_name(&policy_input, environment) as u8;
    verdict.shown = policy_input.shown;
    decide::evaluate(&policy_input, environment, &mut verdict);
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
        let verdict = decide_in(&PlanMaps::new(Some(dataplane)), dataplane, &packet, names, shown);
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

pub fn evaluate_packet<'a>(
    input: &Input<'_>,
    compiled: &'a Compiled,
    subject: &Subject<'_>,
    packet: &IpPacket,
) -> EvaluatedPacket<'a> {
    let family = if packet.ipv6 { "IPv6" } else { "IPv4" };
    let verdict = decide_packet(compiled, packet, &subject.names);
    let policy = compiled.policy(verdict.rank);
    let (source, destination) = (shown(packet, packet.source), shown(packet, packet.destination));
    let mut trace = Vec::new();
    let by_address = device_behind(input, packet.mac.octets(), source).filter(|_| subject.device.is_none());
    if let Some(device) = by_address {
        trace.push(format!("{family}: the address {source} makes it the device {}", device.name));
    } else if subject.mac.is_none() {
        trace
            .push(format!("{family}: the device has no MAC address: nothing tells its traffic from others'"));
    }
    let class = subject.device.or(by_address).and_then(|device| input.state.trust_class_of(device));
    let device = subject.device.or(by_address);
    let quarantine = device.and_then(|device| input.state.quarantine_of(device.meta.id, input.now));
    let because = match (quarantine.and_then(|exception| exception.expires_at), verdict.reason) {
        (Some(end), Reason::TrustLanDenied | Reason::TrustInternetDenied) => {
            let text = format!("an exception keeps the device in quarantine until {end:.0}");
            Phrase::new("quarantine", [("until", json!(format!("{end:.0}")))], text)
        }
        (_, Reason::DohBlocked) if verdict.shown & flow_flags::DOH_NAME != 0 => {
            let text = "DNS over HTTPS is blocked for it, and the name is one of a public resolver";
            Phrase::new("doh_name_blocked", [], text)
        }
        _ => explanation::reason(verdict.reason, class.map(|class| class.name.as_str())),
    };
    trace.push(format!("{family}: {source} to {}: {}", destination_text(packet, destination), because.text));

    let local = matches!(
        verdict.reason,
        Reason::ToGateway | Reason::ToLan | Reason::LinkLocal | Reason::ForcedDns | Reason::ForcedNtp
    );
    let mut shown = FamilyVerdict {
        decision: Decision::Block,
        via: None,
        interface: None,
        reason: because.text.clone(),
        phrases: vec![because.clone()],
        policy: policy.map(|policy| PolicyRef { id: policy.id, name: policy.name.clone() }),
        source: source.to_string(),
        destination: destination_text(packet, destination),
        kernel: KernelView {
            mark: (verdict.action == Action::Mark).then(|| format!("{:#010x}", verdict.mark)),
            table: None,
            leg: (verdict.leg != 0).then_some(verdict.leg),
            rank: (verdict.rank != RANK_NONE).then_some(verdict.rank),
        },
        local,
        ways: Vec::new(),
        proxy: None,
        fast_path: fast_path(compiled, packet, &verdict),
    };
    let mut hop = None;
    let mut clause = policy.is_none().then(|| because.clone());
    let exit = (verdict.action == Action::Mark && !local)
        .then(|| Kernel::new(compiled, input.facts).follow(verdict.mark, packet.ipv6));
    shown.kernel.table = exit.as_ref().and_then(|exit| exit.table);
    if local {
        shown.decision = Decision::Direct;
        shown.via = Some("local".to_owned());
    }
    let refused = Kernel::new(compiled, input.facts).refusal(verdict.mark, destination);
    let out = exit.map(|exit| match refused {
        Some(reason) => Err(reason),
        None => exit.out,
    });
    let choice = policy.map(|policy| if packet.ipv6 { &policy.v6 } else { &policy.v4 });
    // Its hops work, and this is none of the traffic that they take.
    let proxy =
        choice.filter(|choice| choice.kind() == ChoiceKind::Proxy).map(|c| compiled.proxy_name(c.proxy));
    let failure = |policy: &CompiledPolicy| match proxy {
        Some(proxy) => not_for_the_proxy(policy, proxy, packet),
        None => failure(policy, packet.ipv6),
    };
    match verdict.reason {
        Reason::PolicyReject | Reason::PolicyDrop => clause = policy.map(failure),
        Reason::FloorReject => {
            clause = policy.map(|policy| {
                let failure = failure(policy);
                let text = format!("{}, but {}", failure.text, because.text);
                Phrase::new("below_floor", [("failure", json!(failure))], text)
            });
        }
        Reason::PolicyDirect | Reason::NoPolicy if compiled.legs.default == DefaultUplink::Nowhere => {
            clause = Some(Phrase::new("uplinks_disabled", [], "all uplinks are disabled"));
        }
        Reason::PolicyDirect | Reason::NoPolicy => {
            shown.decision = Decision::Direct;
            shown.via = Some("default".to_owned());
            clause = policy.map(failure).or(clause);
            match out {
                Some(Ok(interface)) => shown.interface = Some(interface),
                // An added route would let it out: not reported as blocked.
                Some(Err(reason)) => trace.push(format!("{family}: at present {reason}")),
                None => {}
            }
        }
        Reason::PolicyProxy => {
            let legs = choice.map(legs_of).unwrap_or_default();
            let by = legs.iter().filter(|leg| **leg != 0);
            shown.ways = by.map(|leg| leg_name(input, compiled, *leg)).collect();
            shown.proxy = proxy.map(str::to_owned);
            let number = choice.map_or(0, |choice| choice.proxy);
            hop = policy.and_then(|p| p.hops.iter().find(|hop| hop.proxy == number)).map(|h| h.hop.clone());
            clause = policy.and_then(|policy| hops_down(policy.hops.iter().filter(|hop| !hop.usable)));
            let name = proxy.unwrap_or_default();
            match out {
                Some(Ok(interface)) => {
                    shown.decision = Decision::Tunnel;
                    shown.via = Some(format!("proxy:{name}"));
                    shown.interface = Some(interface);
                }
                Some(Err(reason)) => {
                    let text = format!("the proxy {name} is chosen, but {reason}");
                    clause = Some(unreachable_egress("proxy", name, &reason, text));
                }
                None => {}
            }
        }
        Reason::PolicyEgress => {
            let legs = choice.map(legs_of).unwrap_or_default();
            shown.ways = legs.iter().map(|leg| leg_name(input, compiled, *leg)).collect();
            hop =
                policy.and_then(|p| p.hops.iter().find(|hop| hop.leg == verdict.leg)).map(|h| h.hop.clone());
            clause = policy.and_then(|policy| hops_down(policy.hops.iter().filter(|hop| !hop.usable)));
            if proxy.is_some() {
                clause = policy.map(failure);
            }
            let uplink = compiled.legs.get(verdict.leg).is_some_and(|leg| leg.kind == LegKind::Uplink);
            match out {
                Some(Ok(interface)) => {
                    shown.decision = if uplink { Decision::Direct } else { Decision::Tunnel };
                    let kind = if uplink { "interface" } else { "vpn" };
                    shown.via = Some(format!("{kind}:{}", leg_name(input, compiled, verdict.leg)));
                    shown.interface = Some(interface);
                }
                Some(Err(reason)) => {
                    let name = leg_name(input, compiled, verdict.leg);
                    let text = format!("{name} is chosen, but {reason}");
                    let kind = if uplink { "interface" } else { "vpn" };
                    clause = Some(unreachable_egress(kind, &name, &reason, text));
                }
                None => {}
            }
        }
        _ => {}
    }
    if shown.decision != Decision::Block && !local {
        let contents = blocked_contents(compiled, packet, &subject.names);
        if !contents.is_empty() {
            let content = content_blocked(&contents, clause.as_ref());
            trace.push(format!("{family}: {}", content_blocked(&contents, None).text));
            // TCP is read from its ClientHello on, so that its sentence holds until then.
            if packet.protocol == UDP {
                clause = Some(content);
            }
        }
    }
    let words = Explanation { head: head(&shown), policy: policy.map(policy_matched), clause };
    if !local {
        shown.reason = words.reason();
        shown.phrases = words.phrases();
    }
    EvaluatedPacket { ipv6: packet.ipv6, rank: verdict.rank, verdict: shown, words, policy, hop, trace }
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

fn unreachable_egress(kind: &str, name: &str, reason: &str, text: String) -> Phrase {
    let params = [("kind", json!(kind)), ("target", json!(name)), ("reason", json!(reason))];
    Phrase::new("egress_unreachable", params, text)
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

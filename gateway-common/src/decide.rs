//! Decision function of the dataplane, of the API's explanations and of the tests: a classified packet and map lookups
//! give a verdict.

use crate::admission::Admission;
use crate::blocks;
use crate::classify::{Classified, DNS_PORT, ICMPV6, IpPacket, Malformed, TCP, UDP, vlan_id};
use crate::leg_selection;
use crate::policy_maps::{PolicyInput, PolicyMaps, PreviousEgress};
use crate::recorded_verdict::{find_flow, is_over, record_flow};
use crate::verdict::{Action, Reason, Verdict};
use crate::wire::*;

/// Evaluates a packet from the LAN.
pub fn decide<E: PolicyMaps>(packet: &Result<Classified, Malformed>, environment: &E) -> Verdict {
    let mut verdict = Verdict::DROP;
    match packet {
        Err(Malformed) => verdict.set(Action::Drop, Reason::Malformed, 0),
        Ok(Classified::Other) => verdict.set(Action::Pass, Reason::NotIp, 0),
        Ok(Classified::Ip(packet)) => decide_ip(packet, environment, &mut verdict),
    }
    verdict
}

/// Evaluates an IP packet and writes the result to `verdict`.
#[inline(always)]
pub fn decide_ip<E: PolicyMaps>(packet: &IpPacket, environment: &E, verdict: &mut Verdict) {
    decide_ip_by(packet, environment, verdict, |input, verdict| {
        evaluate(packet, input, environment, verdict);
    });
}

/// Evaluates an IP packet. `evaluate` is [`evaluate`], which the kernel program calls in a form of its own.
#[inline(always)]
pub fn decide_ip_by<E: PolicyMaps>(
    packet: &IpPacket,
    environment: &E,
    verdict: &mut Verdict,
    evaluate: impl Fn(&PolicyInput, &mut Verdict),
) {
    *verdict = Verdict::DROP;
    let slot = environment.live();
    let plan = if slot == SLOT_NONE { None } else { environment.plan(slot) };
    let Some(plan) = plan else {
        verdict.set(Action::Mark, Reason::NoPlan, Mark::BLOCK.0);
        return;
    };
    let now = (environment.now() >> FLOW_TICK_SHIFT) as u32;
    let mut input = PolicyInput {
        slot,
        plan,
        now,
        previous: PreviousEgress::NONE,
        recorded: false,
        continued: false,
        shown: 0,
        _pad: [0; 2],
    };
    if find_flow(packet, &mut input, environment, verdict) != 0 {
        return;
    }
    input.shown |= blocks::shown_by_name(packet, input.slot, environment) as u8;
    verdict.shown = input.shown;
    evaluate(&input, verdict);
    // Records of link-scope traffic would only evict real flows.
    if verdict.reason as u8 != Reason::LinkLocal as u8 {
        admit(packet, &input, environment, verdict);
        if verdict.admission.is_refused() {
            return;
        }
        record_flow(packet, &input, environment, verdict);
    }
}

/// Decides admission once for a packet, before a leg is selected. A flow with a record keeps it, valid or not,
/// because the table does not grow.
#[inline(always)]
fn admit<E: PolicyMaps>(packet: &IpPacket, input: &PolicyInput, environment: &E, verdict: &mut Verdict) {
    if verdict.admission as u8 != Admission::Pending as u8 {
        return;
    }
    verdict.admission = if input.recorded {
        Admission::Admitted
    } else {
        let index = budget_index(verdict.device, packet.interface);
        let flows = environment.count_new_flow(index, NewFlows::window(input.now));
        if flows.is_exceeded() {
            Admission::Refused
        } else if flows.was_exceeded() {
            Admission::AfterRefusal
        } else {
            Admission::Admitted
        }
    };
}

/// Evaluates a packet by the plan, without the flow table.
// A separate function in the kernel program, because the stack is small. The verifier requires a numeric return value.
#[inline(never)]
pub fn evaluate<E: PolicyMaps>(
    packet: &IpPacket,
    input: &PolicyInput,
    environment: &E,
    v: &mut Verdict,
) -> u32 {
    let PolicyInput { slot, plan, previous, .. } = *input;
    let mut device = device(packet, slot, environment);
    v.device = device.number;
    v.until = device.until;
    if is_over(device.until, environment) {
        v.until = 0;
        device.rank = device.rank_after;
        device.flags &= !(LISTS << LIST_SHIFT);
    }
    if device.number == 0 {
        let unknown = device_flags::NO_INTERNET | device_flags::NO_LAN;
        device.flags |= plan.flags >> plan_flags::UNKNOWN_SHIFT & unknown;
    }
    let Some(interface) = interface(packet, slot, environment) else {
        v.set(Action::Mark, Reason::UnknownInterface, Mark::BLOCK.0);
        return 0;
    };
    device.flags |= interface.flags as u32;
    if device.flags & device_flags::OWN_CLASS == 0 {
        device.flags |= interface.default_flags as u32;
    }
    let local = local(packet, slot, environment);
    if is_spoofed(packet, slot_of_scope(slot, interface.scope), local.as_ref(), environment) {
        v.set(Action::Drop, Reason::Spoofed, 0);
        return 0;
    }
    if device.flags & device_flags::BLOCKED != 0 {
        let near = matches!(local.as_ref().map(LocalValue::kind), Some(LocalKind::Own | LocalKind::Link));
        if !(near && is_essential(packet)) {
            v.set(Action::Drop, Reason::DeviceBlocked, 0);
            return 0;
        }
    }
    let near = matches!(local.as_ref().map(LocalValue::kind), Some(LocalKind::Own | LocalKind::Link));
    if !near && is_forced(packet, &plan, &device) {
        match packet.destination_port {
            DNS_PORT => v.set(Action::Mark, Reason::ForcedDns, Mark::FORCED_DNS.0),
            _ => {
                let reason = Reason::ForcedDnsReject;
                v.set(Action::Mark, reason, blocks::rejection(packet, reason).0);
            }
        }
        return 0;
    }
    if is_routed(local.as_ref()) && is_forced_ntp(packet, &plan, &device) {
        v.set(Action::Mark, Reason::ForcedNtp, Mark::FORCED_NTP.0);
        return 0;
    }
    if let Some(local) = local
        && !local.is(LocalKind::Uplink)
    {
        match local.kind() {
            LocalKind::Own if is_denied_admin(packet, &plan, &device) => {
                v.set(Action::Drop, Reason::AdminDenied, 0);
            }
            LocalKind::Own => v.set(Action::Mark, Reason::ToGateway, Mark::LOCAL.0),
            LocalKind::Link => v.set(Action::Mark, Reason::LinkLocal, Mark::LOCAL.0),
            LocalKind::Lan if device.flags & device_flags::NO_LAN != 0 => {
                v.set(Action::Drop, Reason::TrustLanDenied, 0);
            }
            LocalKind::Lan => v.set(Action::Mark, Reason::ToLan, Mark::LOCAL.0),
            LocalKind::Forbidden | LocalKind::Uplink => v.set(Action::Drop, Reason::ToGatewayDenied, 0),
        }
        return 0;
    }
    if device.flags & device_flags::NO_INTERNET != 0 {
        v.set(Action::Mark, Reason::TrustInternetDenied, Mark::REJECT.0);
        return 0;
    }
    // The following verdicts are recorded.
    admit(packet, input, environment, v);
    // A flow without a record keeps matching expired FQDN entries, like a flow of another generation.
    let continued = input.continued || v.admission.is_refused();
    let rank = best_rank(packet, input, continued, &device, &interface, environment);
    let blocks = (plan.flags | device.flags) & block_flags::ALL;
    v.shown |= if blocks != 0 { flow_flags::INSPECTED } else { 0 };
    let blocked = blocks::blocked(packet, input, blocks, device.flags, environment);
    if blocked != 0 {
        // For the counters only.
        v.policy = match environment.action(slot, rank) {
            Some(action) => action.policy,
            None => 0,
        };
        match Reason::from_wire(blocked as u8) {
            // Hosts that announce themselves expect no error.
            Some(Reason::DiscoveryDropped) | None => v.set(Action::Drop, Reason::DiscoveryDropped, 0),
            Some(Reason::QuicHeld) => v.set(Action::Drop, Reason::QuicHeld, 0),
            Some(reason) => v.set(Action::Mark, reason, blocks::rejection(packet, reason).0),
        }
        return 0;
    }
    if rank == RANK_NONE {
        let strict =
            plan.flags & plan_flags::UNMATCHED_REJECT != 0 || device.flags & device_flags::POLICY_ONLY != 0;
        if strict {
            v.set(Action::Mark, Reason::NoPolicyReject, Mark::REJECT.0);
        } else {
            v.set(Action::Mark, Reason::NoPolicy, Mark::DIRECT.0);
            choose_uplink(packet, input, environment, v);
            blocks::keep_off_default_route(packet, input.shown, blocks, v);
        }
        return 0;
    }
    v.rank = rank;
    v.set(Action::Drop, Reason::PolicyDrop, 0);
    // Every rank has an action. A missing one would block.
    if let Some(action) = environment.action(slot, rank) {
        apply_action(action, &device, packet, previous, environment, v);
        if v.reason as u8 == Reason::PolicyDirect as u8 {
            choose_uplink(packet, input, environment, v);
        }
        blocks::keep_off_default_route(packet, input.shown, blocks, v);
    }
    0
}

/// Selects the uplink of a packet by the default route, if the plan has an action for it. Otherwise the main routing table does.
///
/// A neighbour of an uplink, such as its modem, is reached by this leg only.
#[inline(never)]
fn choose_uplink<E: PolicyMaps>(
    packet: &IpPacket,
    input: &PolicyInput,
    environment: &E,
    v: &mut Verdict,
) -> u32 {
    let PolicyInput { slot, plan, previous, .. } = *input;
    if plan.direct == 0 {
        if is_cut_off(packet, previous) {
            v.leg = previous.leg;
            v.set(Action::Mark, Reason::PolicyReset, Mark::RESET.0);
        }
        return 0;
    }
    if let Some(found) = local(packet, slot, environment)
        && found.is(LocalKind::Uplink)
        && !is_cut_off(packet, previous)
    {
        v.leg = found.leg as u8;
        v.mark = Mark::leg(v.leg).0;
        return 0;
    }
    let Some(action) = environment.action(slot, plan.direct - 1) else {
        v.set(Action::Drop, Reason::PolicyDrop, 0);
        return 0;
    };
    let choice = if packet.ipv6 { &action.v6 } else { &action.v4 };
    if is_orphaned(choice.kind(), choice, choice.kept, packet, previous) {
        v.leg = previous.leg;
        v.set(Action::Mark, Reason::PolicyReset, Mark::RESET.0);
        return 0;
    }
    let sticky = v.admission.sticky(Sticky::from_wire(action.sticky));
    let hash = |both: bool| leg_selection::address_hash(&packet.source, both.then_some(&packet.destination));
    let turn = || environment.next_turn(action.policy);
    match leg_selection::choose(choice, choice.kept, sticky, hash, previous.leg, turn) {
        Some(leg) => {
            v.leg = leg;
            v.mark = Mark::leg(leg).0;
        }
        None => v.mark = Mark::REJECT.0,
    }
    0
}

/// Applies the action of the matching policy to the packet.
#[inline(always)]
fn apply_action<E: PolicyMaps>(
    action: &ActionValue,
    device: &DeviceValue,
    packet: &IpPacket,
    previous: PreviousEgress,
    environment: &E,
    v: &mut Verdict,
) {
    v.policy = action.policy;
    if is_over(action.until, environment) {
        v.set(Action::Drop, Reason::PolicyEnded, 0);
        return;
    }
    v.until = earlier(v.until, action.until);
    let (choice, lasting) =
        if packet.ipv6 { (&action.v6, action.lasting6) } else { (&action.v4, action.lasting4) };
    let kept = if is_over(action.kept_until, environment) { lasting } else { choice.kept };
    let mut kind = choice.kind();
    let mut fallback = if packet.ipv6 { action.fallback6 } else { action.fallback4 };
    if matches!(kind, ChoiceKind::Proxy) && !proxy_takes(action, choice, packet) {
        kind = action.unproxied();
        fallback = action.fallback_rest;
    }
    let floor = (device.flags & device_flags::FLOOR) >> device_flags::FLOOR_SHIFT;
    if Fallback::is_below(fallback, floor) {
        v.set(Action::Mark, Reason::FloorReject, Mark::REJECT.0);
        return;
    }
    if is_orphaned(kind, choice, kept, packet, previous) {
        // The connection keeps its leg and continues if the leg returns before the client gets the reset.
        v.leg = previous.leg;
        v.set(Action::Mark, Reason::PolicyReset, Mark::RESET.0);
        return;
    }
    match kind {
        ChoiceKind::Drop => {}
        ChoiceKind::Reject => v.set(Action::Mark, Reason::PolicyReject, Mark::REJECT.0),
        ChoiceKind::Direct => v.set(Action::Mark, Reason::PolicyDirect, Mark::DIRECT.0),
        ChoiceKind::Legs | ChoiceKind::Proxy => {
            let hash =
                |both: bool| leg_selection::address_hash(&packet.source, both.then_some(&packet.destination));
            let sticky = v.admission.sticky(Sticky::from_wire(action.sticky));
            let turn = || environment.next_turn(action.policy);
            if let Some(leg) = leg_selection::choose(choice, kept, sticky, hash, previous.leg, turn) {
                v.leg = leg;
                if leg == previous.leg && kept > lasting {
                    v.until = earlier(v.until, action.kept_until);
                }
                if matches!(kind, ChoiceKind::Proxy) {
                    let silent = matches!(action.unproxied(), ChoiceKind::Drop);
                    v.set(Action::Mark, Reason::PolicyProxy, Mark::proxy(choice.proxy, leg, silent).0);
                } else if leg != 0 {
                    // The default route to a proxy is not an egress for traffic that the proxy does not carry.
                    v.set(Action::Mark, Reason::PolicyEgress, Mark::leg(leg).0);
                }
            }
        }
    }
}

/// Reports whether a connection has lost its egress while there is another one for new flows. The server would not
/// recognise the connection by another source address, so the client gets a reset and connects again.
#[inline(always)]
fn is_orphaned(
    kind: ChoiceKind,
    choice: &Choice,
    kept: u8,
    packet: &IpPacket,
    previous: PreviousEgress,
) -> bool {
    match kind {
        ChoiceKind::Direct => is_cut_off(packet, previous),
        ChoiceKind::Legs => {
            let is_lost = previous.leg != 0 && !leg_selection::offers(choice, kept, previous.leg);
            let to_tunnel = choice.legs[0] >= leg_selection::FIRST_TUNNEL;
            is_continued(packet) && (is_lost || previous.is_proxy || previous.is_main_table && to_tunnel)
        }
        ChoiceKind::Drop | ChoiceKind::Reject | ChoiceKind::Proxy => false,
    }
}

/// Reports whether a connection comes from a tunnel or a proxy to the default route. An uplink may be that of the
/// default route.
#[inline(always)]
fn is_cut_off(packet: &IpPacket, previous: PreviousEgress) -> bool {
    is_continued(packet) && (previous.leg >= leg_selection::FIRST_TUNNEL || previous.is_proxy)
}

#[inline(always)]
fn is_continued(packet: &IpPacket) -> bool {
    packet.protocol == TCP && !packet.opening
}

/// A proxy carries TCP, and UDP if it supports it.
#[inline(always)]
fn proxy_takes(action: &ActionValue, choice: &Choice, packet: &IpPacket) -> bool {
    choice.proxy != 0 && (packet.protocol == TCP || packet.protocol == UDP && action.proxy_takes_udp())
}

/// Returns the device of a packet, by its MAC address or else by its IP address.
#[inline(always)]
pub fn device<E: PolicyMaps>(packet: &IpPacket, slot: Slot, environment: &E) -> DeviceValue {
    let none = DeviceValue { rank: RANK_NONE, number: 0, flags: 0, until: 0, rank_after: RANK_NONE };
    match environment.device_by_mac(&MacKey { slot: slot as u16, mac: packet.mac }) {
        Some(device) => device,
        None => match environment.device_by_address(&AddressKey { slot, address: packet.source }) {
            Some(device) => device,
            None => none,
        },
    }
}

/// Reports whether the programs of a parent leave packets with a tag alone, because the VLAN has an interface with programs
/// of its own. What arrives goes there next; what leaves comes from there.
#[inline(always)]
pub fn has_own_interface<E: PolicyMaps>(tag: u16, parent: u32, environment: &E) -> bool {
    let slot = environment.live();
    if slot == SLOT_NONE {
        return false;
    }
    let key = InterfaceKey { slot, index: parent, vlan: vlan_id(tag), _pad: 0 };
    environment.interface(&key).is_some_and(|value| value.scope == OWN_INTERFACE)
}

/// Returns the ingress LAN interface of a packet. A VLAN without its own interface has the source prefixes of its
/// parent, but none of its policies.
#[inline(always)]
fn interface<E: PolicyMaps>(packet: &IpPacket, slot: Slot, environment: &E) -> Option<InterfaceValue> {
    let key = InterfaceKey { slot, index: packet.interface, vlan: packet.vlan, _pad: 0 };
    match environment.interface(&key) {
        None if packet.vlan != 0 => {
            let parent = environment.interface(&InterfaceKey { vlan: 0, ..key })?;
            Some(InterfaceValue { rank: RANK_NONE, vlan: 0, ..parent })
        }
        found => found,
    }
}

/// Reports whether the source of a packet does not belong to its ingress LAN (RFC 2827). Neither forwarded traffic nor
/// replies of this host can then leave by another interface than the ingress interface.
#[inline(always)]
fn is_spoofed<E: PolicyMaps>(
    packet: &IpPacket,
    scope: u32,
    destination: Option<&LocalValue>,
    environment: &E,
) -> bool {
    let kind = if packet.ipv6 {
        environment.lan_source6(&Prefix6 { slot: scope, address: packet.source })
    } else {
        environment.lan_source4(&Prefix4 { slot: scope, address: packet.source.last() })
    };
    let Some(kind) = kind else { return true };
    let destination = destination.map(LocalValue::kind);
    match SourceKind::from_wire(kind) {
        SourceKind::Lan => false,
        // Replies to an IPv6 link-local address name the link; replies to an IPv4 one would use the main table.
        SourceKind::LinkLocal if packet.ipv6 => {
            !matches!(destination, Some(LocalKind::Own | LocalKind::Link))
        }
        SourceKind::LinkLocal => !matches!(destination, Some(LocalKind::Link)),
        SourceKind::Unspecified => !matches!(destination, Some(LocalKind::Link)),
        // Neighbour advertisements of a duplicate address must pass (RFC 4862, section 5.4.4).
        SourceKind::Denied => {
            let discovery = packet.protocol == ICMPV6 && matches!(packet.destination_port >> 8, 135 | 136);
            !(packet.ipv6 && discovery && matches!(destination, Some(LocalKind::Link)))
        }
    }
}

/// DNS over TLS (RFC 7858) and over QUIC (RFC 9250).
const DNS_ENCRYPTED: u16 = 853;

/// Reports whether the packet is a DNS query of a host that must use the resolver of the gateway.
#[inline(always)]
fn is_forced(packet: &IpPacket, plan: &PlanValue, device: &DeviceValue) -> bool {
    let forced = plan.flags & plan_flags::FORCED_DNS != 0 || device.flags & device_flags::FORCED_DNS != 0;
    forced
        && device.flags & device_flags::RESOLVER == 0
        && packet.has_ports()
        && matches!(packet.protocol, TCP | UDP)
        && matches!(packet.destination_port, DNS_PORT | DNS_ENCRYPTED)
}

/// Port of NTP (RFC 5905).
const NTP_PORT: u16 = 123;

/// Reports whether the packet is an NTP query of a host that must use the time server of the gateway.
#[inline(always)]
fn is_forced_ntp(packet: &IpPacket, plan: &PlanValue, device: &DeviceValue) -> bool {
    let forced = plan.flags & plan_flags::FORCED_NTP != 0 || device.flags & device_flags::FORCED_NTP != 0;
    forced && packet.protocol == UDP && packet.has_ports() && packet.destination_port == NTP_PORT
}

/// Port of SSH (RFC 4251).
const SSH_PORT: u16 = 22;

/// Reports whether the packet is to a port for the administration of the gateway, and its host may not administer it.
#[inline(always)]
fn is_denied_admin(packet: &IpPacket, plan: &PlanValue, device: &DeviceValue) -> bool {
    let denied = device.flags & device_flags::NO_ADMIN != 0
        || device.number == 0 && plan.flags & plan_flags::NO_ADMIN != 0;
    let port = packet.destination_port;
    denied
        && packet.protocol == TCP
        && packet.has_ports()
        && (port == SSH_PORT || port as u32 == plan.admin_port)
}

/// Reports whether the packet is DHCP or neighbour discovery (RFC 4861), which blocked hosts may send.
#[inline(always)]
fn is_essential(packet: &IpPacket) -> bool {
    match packet.protocol {
        UDP => matches!((packet.source_port, packet.destination_port), (68, 67) | (546, 547)),
        ICMPV6 => matches!(packet.destination_port >> 8, 133..=136),
        _ => false,
    }
}

/// Reports whether policies route a destination.
#[inline(always)]
fn is_routed(local: Option<&LocalValue>) -> bool {
    match local {
        Some(found) => found.is(LocalKind::Uplink),
        None => true,
    }
}

#[inline(always)]
fn local<E: PolicyMaps>(packet: &IpPacket, slot: Slot, environment: &E) -> Option<LocalValue> {
    if packet.ipv6 {
        environment.local6(&Prefix6 { slot, address: packet.destination })
    } else {
        environment.local4(&Prefix4 { slot, address: packet.destination.last() })
    }
}

/// Returns the lowest rank over all dimensions: the first matching policy.
#[inline(always)]
fn best_rank<E: PolicyMaps>(
    packet: &IpPacket,
    input: &PolicyInput,
    continued: bool,
    device: &DeviceValue,
    interface: &InterfaceValue,
    environment: &E,
) -> u32 {
    let slot = input.slot;
    let mut rank = least(input.plan.all, Some(device.rank));
    rank = least(rank, Some(interface.rank));
    let vlan = if packet.vlan == 0 { interface.vlan } else { packet.vlan };
    if vlan != 0 {
        rank = least(rank, environment.vlan(&VlanKey { slot, vlan, _pad: 0 }));
    }
    rank = if packet.ipv6 {
        least(rank, environment.source6(&Prefix6 { slot, address: packet.source }))
    } else {
        least(rank, environment.source4(&Prefix4 { slot, address: packet.source.last() }))
    };
    if input.plan.flags & plan_flags::DOMAINS != 0 {
        let client = ClientKey::new(device.number, packet.mac, &packet.source);
        let fqdn = environment.domain(&FqdnIpKey { slot, client, address: packet.destination });
        let holds = |value: &FqdnIpValue| continued || input.now <= value.until;
        rank = least(rank, fqdn.filter(holds).map(|value| value.rank));
    }
    rank = by_destination(packet, slot, rank, environment);
    let list = device.flags >> LIST_SHIFT & LISTS;
    if list == 0 { rank } else { by_destination(packet, slot_of_list(slot, list), rank, environment) }
}

/// Returns the lowest of a rank and the destination's ranks, in the plan or in the device's own list.
#[inline(always)]
fn by_destination<E: PolicyMaps>(packet: &IpPacket, slot: u32, mut rank: u32, environment: &E) -> u32 {
    let port = packet.destination_port;
    if packet.ipv6 {
        let address = packet.destination;
        rank = least(rank, environment.destination6(&Prefix6 { slot, address }));
        if packet.has_ports() {
            rank =
                least(rank, environment.destination_port6(&PortPrefix6 { slot: slot as u16, port, address }));
        }
    } else {
        let address = packet.destination.last();
        rank = least(rank, environment.destination4(&Prefix4 { slot, address }));
        if packet.has_ports() {
            rank =
                least(rank, environment.destination_port4(&PortPrefix4 { slot: slot as u16, port, address }));
        }
    }
    rank
}

#[inline(always)]
fn least(a: u32, b: Option<u32>) -> u32 {
    match b {
        Some(b) if b < a => b,
        _ => a,
    }
}

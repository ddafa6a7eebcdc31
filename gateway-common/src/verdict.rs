//! Decision function of the dataplane, of the API's explanations and of the tests: a classified packet and map lookups
//! give a verdict.

use crate::admission::{Admission, admit};
use crate::classify::{Classified, ICMPV6, IpPacket, Malformed, TCP, UDP};
use crate::leg_selection;
use crate::wire::*;

pub use crate::guard::{Departure, arrive, guard};
pub use crate::reason::Reason;

/// Map lookups of the policy decision. Kernel programs read BPF maps, userspace reads a plan.
pub trait PolicyMaps {
    /// Slot of the active plan.
    fn live(&self) -> Slot;
    fn plan(&self, slot: Slot) -> Option<PlanValue>;
    fn interface(&self, key: &InterfaceKey) -> Option<InterfaceValue>;
    fn vlan(&self, key: &VlanKey) -> Option<u32>;
    fn device_by_mac(&self, key: &MacKey) -> Option<DeviceValue>;
    fn device_by_address(&self, key: &AddressKey) -> Option<DeviceValue>;
    /// Longest match.
    fn source4(&self, key: &Prefix4) -> Option<u32>;
    fn source6(&self, key: &Prefix6) -> Option<u32>;
    fn destination4(&self, key: &Prefix4) -> Option<u32>;
    fn destination6(&self, key: &Prefix6) -> Option<u32>;
    fn destination_port4(&self, key: &PortPrefix4) -> Option<u32>;
    fn destination_port6(&self, key: &PortPrefix6) -> Option<u32>;
    /// Entry of an address that a client resolved.
    fn domain(&self, key: &FqdnIpKey) -> Option<FqdnIpValue>;
    /// [`SourceKind`] of a source on a LAN interface; longest match.
    fn lan_source4(&self, key: &Prefix4) -> Option<u32>;
    fn lan_source6(&self, key: &Prefix6) -> Option<u32>;
    fn local4(&self, key: &Prefix4) -> Option<LocalValue>;
    fn local6(&self, key: &Prefix6) -> Option<LocalValue>;
    fn action(&self, slot: Slot, rank: u32) -> Option<&ActionValue>;
    /// Advances the round-robin counter of a policy and returns it.
    fn next_turn(&self, policy: u32) -> u64;
    fn flow(&self, key: &FlowKey) -> Option<FlowValue>;
    fn remember(&self, key: &FlowKey, value: &FlowValue);
    /// Counts a new flow against a budget with [`NewFlows::next`].
    fn count_new_flow(&self, index: u32, window: u32) -> NewFlows;
    /// Monotonic time in nanoseconds, with a resolution of milliseconds.
    fn now(&self) -> u64;
    /// Time since boot in nanoseconds, including suspend; the clock of deadlines.
    fn since_boot(&self) -> u64;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    pub reason: Reason,
    /// Fwmark to set; undefined if the packet is dropped or passed unchanged.
    pub mark: u32,
    /// Rank of the matching policy, [`RANK_NONE`] without one. Unknown for flows with a record.
    pub rank: u32,
    /// Number of the matching policy, 0 without one.
    pub policy: u32,
    /// Number of the device, 0 without one.
    pub device: u32,
    /// Leg of the packet, 0 without one.
    pub leg: u8,
    /// End of the verdict as a [`deadline`], 0 without an end.
    pub until: u32,
    /// The flow had no record of this generation.
    pub new: bool,
    /// Admission of the flow's record; pending for flows that need none.
    pub admission: Admission,
}

impl Verdict {
    pub const DROP: Verdict = Verdict {
        action: Action::Drop,
        reason: Reason::PolicyDrop,
        mark: 0,
        rank: RANK_NONE,
        policy: 0,
        device: 0,
        leg: 0,
        until: 0,
        new: true,
        admission: Admission::Pending,
    };

    #[inline(always)]
    pub fn set(&mut self, action: Action, reason: Reason, mark: u32) {
        self.action = action;
        self.reason = reason;
        self.mark = mark;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    Drop = 0,
    /// Continues with the fwmark.
    Mark = 1,
    /// Continues unchanged: the IP stack does not forward it.
    Pass = 2,
}

/// RFC 5382, requirement 5: an established TCP connection may idle for two hours and four minutes.
const TCP_IDLE_TIMEOUT: u32 = ticks(7_440);
const IDLE_TIMEOUT: u32 = ticks(300);
/// Maximum time until a SYN is retransmitted: one second (RFC 6298, section 2.1), or three by the RFC before it.
const SYN_RETRANSMIT_TIMEOUT: u32 = ticks(3);

/// Converts seconds to ticks of the flow table, rounded up.
const fn ticks(seconds: u64) -> u32 {
    ((seconds * 1_000_000_000) >> FLOW_TICK_SHIFT) as u32 + 1
}

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
    *verdict = Verdict::DROP;
    let slot = environment.live();
    let plan = if slot == SLOT_NONE { None } else { environment.plan(slot) };
    let Some(plan) = plan else {
        verdict.set(Action::Mark, Reason::NoPlan, Mark::BLOCK.0);
        return;
    };
    let now = (environment.now() >> FLOW_TICK_SHIFT) as u32;
    let mut question =
        PolicyInput { packet, slot, plan, previous: 0, recorded: false, continued: false, now };
    if find_flow(&mut question, environment, verdict) != 0 {
        return;
    }
    evaluate(&question, environment, verdict);
    // Records of link-scope traffic would only evict real flows.
    if verdict.reason as u8 != Reason::LinkLocal as u8 {
        admit(&question, environment, verdict);
        if verdict.admission.is_refused() {
            return;
        }
        record_flow(&question, environment, verdict);
    }
}

/// Uses the verdict of the flow table if it is valid, and returns 1. Otherwise remembers the former state of the
/// flow.
// In the kernel program these three are separate functions, each with its own stack.
#[inline(never)]
fn find_flow<E: PolicyMaps>(question: &mut PolicyInput<'_>, environment: &E, verdict: &mut Verdict) -> u32 {
    let PolicyInput { packet, plan, now, .. } = *question;
    let key = flow_key(packet);
    let Some(mut flow) = environment.flow(&key) else { return 0 };
    if !flow.is_of(&key, plan.seed) {
        return 0;
    }
    question.recorded = true;
    let idle = if packet.protocol == TCP { TCP_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
    // Another processor may have updated it after this one read the clock.
    let age = now.saturating_sub(flow.seen);
    // A SYN shortly after a SYN is a retransmission. Otherwise it opens a new connection with the ports of an earlier
    // one.
    let another = packet.opening && (flow.established != 0 || age > SYN_RETRANSMIT_TIMEOUT);
    if age > idle || another {
        return 0;
    }
    if flow.generation == plan.generation && !is_over(flow.until, environment) {
        let establishes = packet.protocol == TCP && !packet.opening && flow.established == 0;
        if age != 0 || establishes {
            flow.seen = now;
            flow.established |= u8::from(establishes);
            flow.digest = flow.digest_for(&key, plan.seed);
            environment.remember(&key, &flow);
        }
        known(&flow, verdict);
        return 1;
    }
    question.previous = flow.leg;
    question.continued = true;
    0
}

/// Records the verdict of a flow.
#[inline(never)]
fn record_flow<E: PolicyMaps>(question: &PolicyInput<'_>, environment: &E, verdict: &Verdict) -> u32 {
    let PolicyInput { packet, plan, now, .. } = *question;
    let key = flow_key(packet);
    let mut value = FlowValue {
        seen: now,
        generation: plan.generation,
        mark: verdict.mark,
        policy: verdict.policy,
        device: verdict.device,
        action: verdict.action as u8,
        reason: verdict.reason as u8,
        leg: verdict.leg,
        established: u8::from(packet.protocol == TCP && !packet.opening),
        until: verdict.until,
        digest: 0,
    };
    value.digest = value.digest_for(&key, plan.seed);
    environment.remember(&key, &value);
    0
}

/// Reports whether a deadline has passed. Reads the clock only if there is one.
#[inline(always)]
fn is_over<E: PolicyMaps>(until: u32, environment: &E) -> bool {
    until != 0 && (environment.since_boot() >> DEADLINE_SHIFT) >= until as u64
}

#[inline(always)]
fn known(flow: &FlowValue, verdict: &mut Verdict) {
    let action = match flow.action {
        1 => Action::Mark,
        2 => Action::Pass,
        _ => Action::Drop,
    };
    // Only the dataplane writes flows, and it writes no unknown number.
    let reason = match Reason::from_wire(flow.reason) {
        Some(reason) => reason,
        None => Reason::Malformed,
    };
    verdict.set(action, reason, flow.mark);
    verdict.policy = flow.policy;
    verdict.device = flow.device;
    verdict.leg = flow.leg;
    verdict.new = false;
}

/// Input of the policy lookup: a packet, and the slot of the plan.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'a> {
    pub packet: &'a IpPacket,
    pub slot: Slot,
    pub plan: PlanValue,
    /// Leg of the flow in another generation, 0 without one.
    pub previous: u8,
    /// The flow has a record, valid or not.
    pub recorded: bool,
    /// The flow was evaluated in another generation, so expired FQDN entries of its client still apply to it.
    pub continued: bool,
    /// In [`FLOW_TICK_SHIFT`] units.
    pub now: u32,
}

/// Evaluates a packet by the plan, without the flow table.
// A separate function in the kernel program, because the stack is small. The verifier requires a numeric return value.
#[inline(never)]
pub fn evaluate<E: PolicyMaps>(question: &PolicyInput<'_>, environment: &E, v: &mut Verdict) -> u32 {
    let PolicyInput { packet, slot, plan, previous, .. } = *question;
    let mut device = device(packet, slot, environment);
    v.device = device.number;
    v.until = device.until;
    if is_over(device.until, environment) {
        v.until = 0;
        device.rank = device.rank_after;
        device.flags &= (1 << LIST_SHIFT) - 1;
    }
    let Some(interface) = interface(packet, slot, environment) else {
        v.set(Action::Mark, Reason::UnknownInterface, Mark::BLOCK.0);
        return 0;
    };
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
            DNS => v.set(Action::Mark, Reason::ForcedDns, Mark::FORCED_DNS.0),
            _ => v.set(Action::Mark, Reason::ForcedDnsReject, Mark::REJECT.0),
        }
        return 0;
    }
    if let Some(local) = local {
        match local.kind() {
            LocalKind::Own => v.set(Action::Mark, Reason::ToGateway, Mark::LOCAL.0),
            LocalKind::Link => v.set(Action::Mark, Reason::LinkLocal, Mark::LOCAL.0),
            LocalKind::Lan if device.flags & device_flags::NO_LAN != 0 => {
                v.set(Action::Drop, Reason::TrustLanDenied, 0);
            }
            LocalKind::Lan => v.set(Action::Mark, Reason::ToLan, Mark::LOCAL.0),
            LocalKind::Forbidden => v.set(Action::Drop, Reason::ToGatewayDenied, 0),
        }
        return 0;
    }
    if device.flags & device_flags::NO_INTERNET != 0 {
        v.set(Action::Mark, Reason::TrustInternetDenied, Mark::REJECT.0);
        return 0;
    }
    // The following verdicts are recorded.
    admit(question, environment, v);
    // A flow without a record keeps matching expired FQDN entries, like a flow of another generation.
    let continued = question.continued || v.admission.is_refused();
    let rank = best_rank(question, continued, &device, &interface, environment);
    if rank == RANK_NONE {
        let strict =
            plan.flags & plan_flags::UNMATCHED_REJECT != 0 || device.flags & device_flags::POLICY_ONLY != 0;
        if strict {
            v.set(Action::Mark, Reason::NoPolicyReject, Mark::REJECT.0);
        } else {
            v.set(Action::Mark, Reason::NoPolicy, Mark::DIRECT.0);
        }
        return 0;
    }
    v.rank = rank;
    v.set(Action::Drop, Reason::PolicyDrop, 0);
    // Every rank has an action. A missing one would block.
    if let Some(action) = environment.action(slot, rank) {
        apply_action(action, packet, previous, environment, v);
    }
    0
}

/// Applies the action of the matching policy to the packet.
#[inline(always)]
fn apply_action<E: PolicyMaps>(
    action: &ActionValue,
    packet: &IpPacket,
    previous: u8,
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
    if matches!(kind, ChoiceKind::Proxy) && !proxy_takes(action, choice, packet) {
        kind = action.unproxied();
    }
    if is_orphaned(kind, choice, kept, packet, previous) {
        // The connection keeps its leg and continues if the leg returns before the client gets the reset.
        v.leg = previous;
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
            if let Some(leg) = leg_selection::choose(choice, kept, sticky, hash, previous, turn) {
                v.leg = leg;
                if leg == previous && kept > lasting {
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

/// Reports whether the tunnel of a connection is gone while the policy has another egress for new flows. The server
/// would not recognise the connection by another source address, so the client gets a reset and connects again.
#[inline(always)]
fn is_orphaned(kind: ChoiceKind, choice: &Choice, kept: u8, packet: &IpPacket, previous: u8) -> bool {
    if previous < leg_selection::FIRST_TUNNEL || packet.protocol != TCP || packet.opening {
        return false;
    }
    match kind {
        ChoiceKind::Direct => true,
        ChoiceKind::Legs => !leg_selection::offers(choice, kept, previous),
        ChoiceKind::Drop | ChoiceKind::Reject | ChoiceKind::Proxy => false,
    }
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

const DNS: u16 = 53;
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
        && matches!(packet.destination_port, DNS | DNS_ENCRYPTED)
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
    question: &PolicyInput<'_>,
    continued: bool,
    device: &DeviceValue,
    interface: &InterfaceValue,
    environment: &E,
) -> u32 {
    let PolicyInput { packet, slot, .. } = *question;
    let mut rank = least(question.plan.all, Some(device.rank));
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
    if question.plan.flags & plan_flags::DOMAINS != 0 {
        let client = ClientKey::new(device.number, packet.mac, &packet.source);
        let fqdn = environment.domain(&FqdnIpKey { slot, client, address: packet.destination });
        let holds = |value: &FqdnIpValue| continued || question.now <= value.until;
        rank = least(rank, fqdn.filter(holds).map(|value| value.rank));
    }
    rank = by_destination(packet, slot, rank, environment);
    let list = device.flags >> LIST_SHIFT;
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

#[inline(always)]
pub fn flow_key(packet: &IpPacket) -> FlowKey {
    FlowKey {
        source: packet.source,
        destination: packet.destination,
        interface: packet.interface,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
        mac: packet.mac,
        vlan: packet.vlan,
        protocol: packet.protocol,
        fragment: packet.fragment as u8,
        _pad: [0; 2],
    }
}

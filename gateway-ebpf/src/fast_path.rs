//! Fast path: rewrites and redirects packets of established flows, and learns the flows from packets that pass the IP
//! stack. What a program cannot read or rewrite here goes the usual way, and is evaluated there.

use core::ptr::addr_of_mut;

use aya_ebpf::bindings::{__sk_buff, BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, TC_ACT_SHOT};
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use aya_ebpf::helpers::generated::{
    bpf_ktime_get_coarse_ns, bpf_l4_csum_replace, bpf_redirect, bpf_skb_change_head, bpf_skb_store_bytes,
};
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::{IpPacket, UDP};
use gateway_common::fast_path::entry::{
    Leaving, Pair, Update, Validity, is_from_same_host, is_same_packet, is_untranslated, is_valid,
    set_opposite, set_pair, update,
};
use gateway_common::fast_path::header::{
    ETHERNET, Family, Head, V4, V6, content, port_change, read, tcp_flags,
};
use gateway_common::fast_path::{self, PENDING_REUSE, PROBE_INTERVAL, Use, pending_index};
use gateway_common::guard::PASSED;
use gateway_common::packet::Packet as _;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::verdict::Verdict;
use gateway_common::wire::{
    FAST_OFF, FastCounter, FastEnd, FastLink, FastPending, FastState, Mac, Mark, fast_flags, fast_words,
};

use crate::context::{Buffer, interface, mark};
use crate::counters::{count, count_later};
use crate::maps;
use crate::policy_maps::Kernel;

/// Accepted packet type (linux/if_packet.h): the frame is addressed to this host.
const PACKET_HOST: u32 = 0;
pub const ETHERTYPE4: u16 = 0x0800_u16.to_be();
pub const ETHERTYPE6: u16 = 0x86dd_u16.to_be();

/// Data that does not fit on the stack, as in [`ingress`](mod@crate::ingress).
pub struct Workspace<F: Family> {
    pub head: Head,
    pub header: F::Header,
    pub key: F::Key,
    pub value: F::Value,
    pub frame: F::Frame,
    leaving: Leaving<F::Address>,
    pair: Pair<F>,
}

#[map(name = "gw_fast_work4")]
static WORKSPACE4: PerCpuArray<Workspace<V4>> = PerCpuArray::with_max_entries(1, 0);
#[map(name = "gw_fast_work6")]
static WORKSPACE6: PerCpuArray<Workspace<V6>> = PerCpuArray::with_max_entries(1, 0);

/// The table of a family.
pub trait Table: Family {
    fn workspace() -> Option<*mut Workspace<Self>>
    where
        Self: Sized;
    fn find(key: &Self::Key) -> Option<*mut Self::Value>;
    fn insert(key: &Self::Key, value: &Self::Value);
}

impl Table for V4 {
    #[inline(always)]
    fn workspace() -> Option<*mut Workspace<V4>> {
        WORKSPACE4.get_ptr_mut(0)
    }

    #[inline(always)]
    fn find(key: &Self::Key) -> Option<*mut Self::Value> {
        maps::FAST_FLOWS4.get_ptr_mut(key)
    }

    #[inline(always)]
    fn insert(key: &Self::Key, value: &Self::Value) {
        // A flow without an entry stays in the IP stack.
        let _ = maps::FAST_FLOWS4.insert(key, value, 0);
    }
}

impl Table for V6 {
    #[inline(always)]
    fn workspace() -> Option<*mut Workspace<V6>> {
        WORKSPACE6.get_ptr_mut(0)
    }

    #[inline(always)]
    fn find(key: &Self::Key) -> Option<*mut Self::Value> {
        maps::FAST_FLOWS6.get_ptr_mut(key)
    }

    #[inline(always)]
    fn insert(key: &Self::Key, value: &Self::Value) {
        let _ = maps::FAST_FLOWS6.insert(key, value, 0);
    }
}

/// Returns the epoch, the plan generation and the secret of digests. The epoch is [`FAST_OFF`] if the fast path is off,
/// no plan is active, or the daemon has not renewed its lease.
///
/// Ingress reads them before it evaluates a packet. If either changes meanwhile, the entry that the packet leads to is
/// not valid.
#[inline(always)]
pub fn validity() -> Validity {
    let mut now = Validity { epoch: FAST_OFF, generation: 0, seed: 0 };
    read_validity(&mut now);
    now
}

// As for `forward_as`. Writes nothing if the fast path is off.
#[inline(never)]
pub fn read_validity(now: &mut Validity) -> u32 {
    let Some(epoch) = maps::FAST_EPOCH.get(fast_words::EPOCH) else { return 0 };
    let epoch = *epoch;
    if epoch == FAST_OFF {
        return 0;
    }
    let Some(lease) = maps::FAST_EPOCH.get(fast_words::LEASE) else { return 0 };
    if !fast_path::is_leased(*lease, fast_path::ticks(clock())) {
        return 0;
    }
    if let Some(plan) = maps::PLAN_HEADERS.get(Kernel.live())
        && plan.generation != 0
    {
        *now = Validity { epoch, generation: plan.generation, seed: plan.seed };
    }
    0
}

/// Deletes the traffic control index of a packet that enters. It may come from another network namespace.
#[inline(always)]
pub fn clear_index(context: &TcContext) {
    // SAFETY: the context pointer is valid for the run of the program.
    unsafe { (*context.skb.skb).tc_index = 0 };
}

/// Sends a packet on if its flow has an entry. Returns `None` for a packet of the IP stack.
#[inline(always)]
pub fn forward(context: &TcContext, now: &Validity, is_reply: bool) -> Option<i32> {
    if now.epoch == FAST_OFF {
        return None;
    }
    // SAFETY: as above.
    let skb = unsafe { &*context.skb.skb };
    if skb.pkt_type != PACKET_HOST || skb.vlan_present != 0 {
        return None;
    }
    let action = match skb.protocol as u16 {
        ETHERTYPE4 => forward_as::<V4>(context, now, is_reply as u32),
        ETHERTYPE6 => forward_as::<V6>(context, now, is_reply as u32),
        _ => SLOW,
    };
    if action == SLOW { None } else { Some(action) }
}

/// No return value of a program: the packet is left to the IP stack, unchanged.
const SLOW: i32 = i32::MAX;

// A function of its own, because the stack is small. The verifier requires a numeric return value.
#[inline(never)]
fn forward_as<F: Table>(context: &TcContext, now: &Validity, is_reply: u32) -> i32 {
    let is_reply = is_reply != 0;
    let offset = if is_reply { link_header::<F>(context) } else { ETHERNET };
    // Constant offsets, as the verifier wants them.
    let done = if offset == 0 {
        try_forward::<F, 0>(context, now, is_reply)
    } else {
        try_forward::<F, ETHERNET>(context, now, is_reply)
    };
    done.unwrap_or(SLOW)
}

/// Returns the length of the link-layer header at an uplink or a tunnel. Where it is mistaken, no entry matches.
#[inline(always)]
fn link_header<F: Family>(context: &TcContext) -> usize {
    let ethertype = if F::IPV6 { ETHERTYPE6 } else { ETHERTYPE4 };
    match Buffer(context).read::<u16>(ETHERNET - 2) {
        Some(found) if found == ethertype => ETHERNET,
        _ => 0,
    }
}

#[inline(always)]
fn try_forward<F: Table, const OFFSET: usize>(
    context: &TcContext,
    now: &Validity,
    is_reply: bool,
) -> Option<i32> {
    // SAFETY: the pointer is to a value of the map, valid while the program runs. A program is not interrupted by itself on
    // one processor.
    let Workspace { head, header, key, value, frame, .. } = unsafe { &mut *F::workspace()? };
    let buffer = Buffer(context);
    if !read::<F, _>(&buffer, OFFSET, head, header) {
        return None;
    }
    // SAFETY: the context pointer is valid for the run of the program.
    let skb = unsafe { &*context.skb.skb };
    // The IP stack trims the padding of short frames.
    if skb.len != head.length + OFFSET as u32 {
        return None;
    }
    let host = if OFFSET == 0 { Mac::default() } else { buffer.read::<Mac>(6)? };
    let (source, destination) = F::addresses(header);
    F::set_key(key, &source, &destination, (head.source_port, head.destination_port), head.protocol);
    let entry = F::find(key)?;
    // SAFETY: the pointer is to a value of the map. The kernel may give the element to another flow during the copy; the
    // digest tells.
    *value = unsafe { *entry };
    let action = F::action(value);
    if !is_valid::<F>(value, key, now) || !is_from_same_host(action, interface(context), &host, is_reply) {
        return None;
    }
    let with_ethernet = action.flags & fast_flags::FROM_ETHERNET != 0;
    if with_ethernet != (OFFSET != 0) {
        return None;
    }
    let length = context.len();
    if head.is_ending() {
        end::<F>(entry, value, key, head);
        count(&maps::FAST_COUNTS, FastCounter::Ended as u32, length);
        return None;
    }
    if F::state(value).end != FastEnd::None as u32 {
        return None;
    }
    let longest = if skb.gso_size == 0 { head.length } else { skb.gso_size + head.headers };
    if longest > action.mtu as u32 || head.hop_limit <= 1 {
        count(&maps::FAST_COUNTS, FastCounter::Exceptional as u32, length);
        return None;
    }
    let time = fast_path::ticks(clock());
    match F::state(value).at(time, is_reply) {
        Use::Fast => {}
        Use::Probe => {
            // SAFETY: a word of the map's value. If the element is another flow's by now, that flow is probed later.
            unsafe { F::state_mut(&mut *entry).probed = time };
            count(&maps::FAST_COUNTS, FastCounter::Probed as u32, length);
            return None;
        }
        Use::Over => return None,
    }
    F::set_frame(frame, header, value);
    let written = rewrite::<F, OFFSET>(context.skb.skb, header, head, value, frame);
    if written.is_none() {
        return Some(TC_ACT_SHOT);
    }
    if is_reply {
        count(&maps::FAST_COUNTS, FastCounter::Replied as u32, length);
    } else {
        count(&maps::REASON_COUNTERS, action.reason as u32, length);
        count_later(action.policy, action.device, length);
        count(&maps::FAST_COUNTS, FastCounter::Forwarded as u32, length);
    }
    context.set_mark(action.mark);
    // SAFETY: the helper has no preconditions. The guard of the interface evaluates the packet as any other.
    Some(unsafe { bpf_redirect(action.egress, 0) } as i32)
}

/// Ends both directions of a flow.
#[inline(always)]
fn end<F: Table>(entry: *mut F::Value, value: &F::Value, key: &mut F::Key, head: &Head) {
    let is_closed = head.tcp_flags & tcp_flags::SYN == 0;
    let end = if is_closed { FastEnd::Closed as u32 } else { FastEnd::Replaced as u32 };
    // SAFETY: words of values of the map. If an element is another flow's by now, that flow goes through the IP stack.
    unsafe {
        F::state_mut(&mut *entry).end = end;
        set_opposite::<F>(key, value, head.protocol);
        if let Some(other) = F::find(key) {
            F::state_mut(&mut *other).end = end;
        }
    }
}

/// Writes the headers of an entry. `None` if the kernel refuses; the packet is then useless.
#[inline(always)]
fn rewrite<F: Family, const OFFSET: usize>(
    skb: *mut __sk_buff,
    header: &F::Header,
    head: &Head,
    value: &F::Value,
    frame: &F::Frame,
) -> Option<()> {
    let action = F::action(value);
    if OFFSET == 0 {
        // SAFETY: the context is valid while the program runs. From here on all offsets are with an Ethernet header.
        done(unsafe { bpf_skb_change_head(skb, ETHERNET as u32, 0) })?;
    }
    // The frame begins behind two bytes of padding.
    let (from, length) = ((&raw const *frame).cast::<u8>(), (ETHERNET + F::LENGTH + 4) as u32);
    // SAFETY: the length is that of the frame without its padding.
    done(unsafe { bpf_skb_store_bytes(skb, 0, from.add(2).cast(), length, 0) })?;
    let (checksum, mangled) = if head.protocol == UDP {
        (ETHERNET + F::LENGTH + 6, BPF_F_MARK_MANGLED_0 as u64)
    } else {
        (ETHERNET + F::LENGTH + 16, 0)
    };
    let addresses = F::address_change(header, value);
    if !is_zero(addresses) {
        let flags = BPF_F_PSEUDO_HDR as u64 | mangled;
        // SAFETY: the helper checks the offset.
        done(unsafe { bpf_l4_csum_replace(skb, checksum as u32, 0, addresses as u64, flags) })?;
    }
    let ports = port_change(head, action);
    if !is_zero(ports) {
        // SAFETY: as above.
        done(unsafe { bpf_l4_csum_replace(skb, checksum as u32, 0, ports as u64, mangled) })?;
    }
    Some(())
}

/// Reports whether a change of a sum changes nothing: zero has two forms.
#[inline(always)]
fn is_zero(change: u32) -> bool {
    let folded = gateway_common::checksum::fold(change);
    folded == 0 || folded == 0xffff
}

#[inline(always)]
fn done(failed: core::ffi::c_long) -> Option<()> {
    if failed == 0 { Some(()) } else { None }
}

/// Notes a packet that ingress has evaluated, for the egress guard.
#[inline(always)]
pub fn note(context: &TcContext, packet: &IpPacket, verdict: &Verdict, now: &Validity) {
    if now.epoch != FAST_OFF {
        write_note(context, packet, verdict, now);
    }
}

// As for `forward_as`.
#[inline(never)]
fn write_note(context: &TcContext, packet: &IpPacket, verdict: &Verdict, now: &Validity) -> u32 {
    count(&maps::FAST_COUNTS, FastCounter::Evaluated as u32, packet.length);
    let Some(plan) = maps::PLAN_HEADERS.get(Kernel.live()) else { return 0 };
    if fast_path::admit(packet, verdict, plan).is_err() {
        return 0;
    }
    let mut head = Head::default();
    let taken = if packet.ipv6 {
        read::<V6, _>(&Buffer(context), ETHERNET, &mut head, &mut [0; 10])
    } else {
        read::<V4, _>(&Buffer(context), ETHERNET, &mut head, &mut [0; 5])
    };
    // SAFETY: the context pointer is valid for the run of the program.
    let skb = unsafe { &*context.skb.skb };
    if !taken || head.is_ending() || skb.pkt_type != PACKET_HOST || skb.vlan_present != 0 {
        return 0;
    }
    let Some(next) = maps::FAST_NEXT.get_ptr_mut(0) else { return 0 };
    // SAFETY: a per-CPU value is this processor's own while the program runs.
    let (counter, processor) = unsafe { (*next, bpf_get_smp_processor_id()) };
    let index = pending_index(processor, counter);
    // SAFETY: as above.
    unsafe { *next = counter.wrapping_add(1) };
    if index == 0 {
        return 0;
    }
    let Some(pending) = maps::FAST_PENDING.get_ptr_mut(index) else { return 0 };
    let time = clock();
    // SAFETY: the element is of this processor, and the guard reads it only a short time after it was written.
    unsafe {
        let noted = (*pending).time;
        if noted != 0 && time.wrapping_sub(noted) < PENDING_REUSE {
            return 0;
        }
        let Some(macs) = Buffer(context).read::<[Mac; 2]>(0) else { return 0 };
        let transport = ETHERNET + if packet.ipv6 { V6::LENGTH } else { V4::LENGTH };
        pending.write(FastPending {
            time,
            source: packet.source,
            destination: packet.destination,
            epoch: now.epoch,
            generation: now.generation,
            interface: packet.interface,
            mark: verdict.mark,
            policy: verdict.policy,
            device: verdict.device,
            length: head.length,
            first: head.first,
            content: content_at(context, transport, packet.protocol),
            source_port: head.source_port,
            destination_port: head.destination_port,
            identification: head.identification,
            host: macs[1],
            gateway: macs[0],
            protocol: packet.protocol,
            reason: verdict.reason as u8,
            ipv6: packet.ipv6 as u8,
            hop_limit: head.hop_limit,
            _pad: [0; 2],
        });
        (*context.skb.skb).tc_index = index;
    }
    0
}

#[inline(always)]
fn content_at(context: &TcContext, transport: usize, protocol: u8) -> [u32; 2] {
    content(&Buffer(context), transport, protocol)
}

/// Makes or confirms the entry of a packet that leaves to another network of the LAN. Its replies are evaluated as flows
/// of their own, and have an entry of their own.
#[inline(always)]
pub fn learn_between_lans(context: &TcContext) {
    if mark(context) == Mark::LOCAL.0 {
        learn(context, Mark::LOCAL.0);
    }
    clear_index(context);
}

/// Makes or confirms the entries of the flow of a packet that the guard has passed.
#[inline(always)]
pub fn learn(context: &TcContext, mark: u32) {
    // SAFETY: the context pointer is valid for the run of the program.
    let skb = unsafe { &*context.skb.skb };
    let index = skb.tc_index;
    if index == 0 || index == PASSED as u32 {
        return;
    }
    let now = validity();
    if now.epoch == FAST_OFF {
        return;
    }
    // SAFETY: plain words, which only the daemon writes.
    let leg = unsafe { maps::EGRESS_LEGS.get(&interface(context)) }.copied().unwrap_or(0);
    let links = Links { mark, leg, index };
    match skb.protocol as u16 {
        ETHERTYPE4 => learn_as::<V4>(context, &now, &links),
        ETHERTYPE6 => learn_as::<V6>(context, &now, &links),
        _ => 0,
    };
}

struct Links {
    mark: u32,
    leg: u32,
    index: u32,
}

// As for `forward_as`.
#[inline(never)]
fn learn_as<F: Table>(context: &TcContext, now: &Validity, links: &Links) -> u32 {
    // SAFETY: plain words, which only the daemon writes.
    let Some(egress) = (unsafe { maps::FAST_LINKS.get(&interface(context)) }).copied() else { return 0 };
    if egress.ethernet == 0 {
        learn_at::<F, 0>(context, now, links, egress);
    } else {
        learn_at::<F, ETHERNET>(context, now, links, egress);
    }
    0
}

#[inline(always)]
fn learn_at<F: Table, const OFFSET: usize>(
    context: &TcContext,
    now: &Validity,
    links: &Links,
    egress: FastLink,
) -> Option<()> {
    let noted = maps::FAST_PENDING.get_ptr_mut(links.index)?;
    // SAFETY: the writer does not touch a note that is in use, and one that is old does not match.
    let pending = unsafe { &*noted };
    // SAFETY: as in `try_forward`.
    let Workspace { head, header, key, value, leaving, pair: made, .. } = unsafe { &mut *F::workspace()? };
    let buffer = Buffer(context);
    if !read::<F, _>(&buffer, OFFSET, head, header) {
        return None;
    }
    let (source, destination) = F::addresses(header);
    let [to, from] = if OFFSET == 0 { [Mac::default(); 2] } else { buffer.read::<[Mac; 2]>(0)? };
    let content = content_at(context, OFFSET + F::LENGTH, head.protocol);
    let (mark, interface) = (links.mark, interface(context));
    *leaving = Leaving { source, destination, head: *head, content, mark, interface, to, from };
    let is_current = pending.epoch == now.epoch && pending.generation == now.generation;
    let time = clock();
    let same = is_same_packet::<F>(pending, leaving, time);
    if !same {
        count(&maps::FAST_COUNTS, FastCounter::Mismatched as u32, context.len());
        return None;
    }
    // SAFETY: plain words, which only the daemon writes.
    let lan = unsafe { maps::FAST_LINKS.get(&pending.interface) }.copied()?;
    if is_current && pending.interface != interface && lan.ethernet != 0 {
        set_pair::<F>(made, pending, leaving, (lan, egress), links.leg as u8, now.seed);
        let ticks = fast_path::ticks(time);
        let is_local = mark == Mark::LOCAL.0;
        let entered = (!is_local || is_untranslated::<F>(pending, leaving))
            && enter::<F>(&made.key, &mut made.value, (value, key), now, ticks, None)
            && (is_local
                || enter::<F>(&made.reply_key, &mut made.reply, (value, key), now, ticks, Some(&made.key)));
        if entered {
            count(&maps::FAST_COUNTS, FastCounter::Confirmed as u32, context.len());
        }
    }
    // SAFETY: as above.
    unsafe { addr_of_mut!((*noted).time).write(0) };
    Some(())
}

/// Makes or confirms one entry. For the entry of replies, `forward` is the key of the other direction. Returns false if the flow is closing.
#[inline(always)]
fn enter<F: Table>(
    key: &F::Key,
    new: &mut F::Value,
    (have, other): (&mut F::Value, &mut F::Key),
    now: &Validity,
    time: u32,
    forward: Option<&F::Key>,
) -> bool {
    let digest = F::state(new).digest;
    if let Some(entry) = F::find(key) {
        // SAFETY: as in `try_forward`.
        *have = unsafe { *entry };
        match update(F::state(have), F::state(new), is_valid::<F>(have, key, now)) {
            Update::Keep => return false,
            Update::Confirm => {
                // SAFETY: as in `try_forward`.
                unsafe { F::state_mut(&mut *entry).confirmed = time };
                return true;
            }
            Update::Insert => {}
        }
        // Another flow had the same translation: conntrack gave it to this one, so that flow is over.
        if let Some(forward) = forward {
            set_opposite::<F>(other, have, F::protocol(key));
            if *other != *forward
                && let Some(other) = F::find(other)
            {
                // SAFETY: as in `end`.
                unsafe { F::state_mut(&mut *other).end = FastEnd::Replaced as u32 };
            }
        }
    }
    *F::state_mut(new) = if forward.is_some() {
        FastState::for_replies(time, digest)
    } else {
        FastState { digest, confirmed: time, probed: time.wrapping_sub(PROBE_INTERVAL), end: 0 }
    };
    F::insert(key, new);
    true
}

/// Flow clock in nanoseconds, with a resolution of milliseconds.
#[inline(always)]
pub fn clock() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_ktime_get_coarse_ns() }
}

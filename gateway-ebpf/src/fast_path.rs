//! Fast path: rewrites and redirects packets of established flows. What a program cannot read or rewrite here goes the
//! usual way, and is evaluated there.

use aya_ebpf::bindings::{__sk_buff, BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, TC_ACT_SHOT};
use aya_ebpf::helpers::generated::{
    bpf_ktime_get_coarse_ns, bpf_l4_csum_replace, bpf_redirect, bpf_skb_change_head, bpf_skb_change_tail,
    bpf_skb_store_bytes,
};
use aya_ebpf::programs::TcContext;
use gateway_common::classify::UDP;
use gateway_common::fast_path::entry::{Validity, is_from_same_host, is_valid, set_rewritten};
use gateway_common::fast_path::header::{
    ETHERNET, Family, Head, V4, V6, port_change, read, set_key, tcp_flags,
};
use gateway_common::fast_path::key::Key;
use gateway_common::fast_path::{self, Use};
use gateway_common::packet::Packet as _;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::wire::{FAST_OFF, FastCounter, FastEnd, Mac, fast_flags, fast_words};

use crate::context::{Buffer, interface};
use crate::counters::{count, count_later};
use crate::fast_path_table::{Table, Workspace, read_entry};
use crate::maps;
use crate::policy_maps::Kernel;

/// Accepted packet type (linux/if_packet.h): the frame is addressed to this host.
pub const PACKET_HOST: u32 = 0;
pub const ETHERTYPE4: u16 = 0x0800_u16.to_be();
pub const ETHERTYPE6: u16 = 0x86dd_u16.to_be();

/// Returns the epoch, the plan generation and the secret of digests. The epoch is [`FAST_OFF`] if the fast path is off,
/// no plan is active, or the daemon has not renewed its lease.
///
/// Ingress reads them before it evaluates a packet. If either changes meanwhile, the entry that the packet leads to is
/// not valid.
#[inline(always)]
pub fn validity() -> Validity {
    let mut now = Validity::default();
    read_validity(&mut now);
    now
}

// A function of its own, because the stack is small. The verifier requires a numeric return value. Writes the epoch only if the fast path is off.
#[inline(never)]
pub fn read_validity(now: &mut Validity) -> u32 {
    now.epoch = FAST_OFF;
    let Some(epoch) = maps::FAST_EPOCH.get(fast_words::EPOCH) else { return 0 };
    let epoch = *epoch;
    if epoch == FAST_OFF {
        return 0;
    }
    let Some(lease) = maps::FAST_EPOCH.get(fast_words::LEASE) else { return 0 };
    let time = fast_path::ticks(clock());
    if !fast_path::is_leased(*lease, time) {
        return 0;
    }
    if let Some(plan) = maps::PLAN_HEADERS.get(Kernel.live())
        && plan.generation != 0
    {
        *now = Validity { epoch, generation: plan.generation, seed: plan.seed, time };
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
pub fn forward<const IS_REPLY: bool>(context: &TcContext, now: &Validity) -> Option<i32> {
    if now.epoch == FAST_OFF {
        return None;
    }
    // SAFETY: as above.
    let skb = unsafe { &*context.skb.skb };
    if skb.pkt_type != PACKET_HOST || skb.vlan_present != 0 {
        return None;
    }
    let action = match skb.protocol as u16 {
        ETHERTYPE4 if IS_REPLY => gw_forward_reply4(context.skb.skb, now),
        ETHERTYPE6 if IS_REPLY => gw_forward_reply6(context.skb.skb, now),
        ETHERTYPE4 => gw_forward4(context.skb.skb, now),
        ETHERTYPE6 => gw_forward6(context.skb.skb, now),
        _ => SLOW,
    };
    if action == SLOW { None } else { Some(action) }
}

// The verifier follows these once, because they are global functions, and not for each state of the caller. They must
// reckon with null, for which they do nothing.

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_forward4(skb: *mut __sk_buff, now: *const Validity) -> i32 {
    forward_as::<V4, false>(skb, now)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_forward6(skb: *mut __sk_buff, now: *const Validity) -> i32 {
    forward_as::<V6, false>(skb, now)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_forward_reply4(skb: *mut __sk_buff, now: *const Validity) -> i32 {
    forward_as::<V4, true>(skb, now)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_forward_reply6(skb: *mut __sk_buff, now: *const Validity) -> i32 {
    forward_as::<V6, true>(skb, now)
}

/// No return value of a program: the packet is left to the IP stack, unchanged.
const SLOW: i32 = i32::MAX;

#[inline(always)]
fn forward_as<F: Table, const IS_REPLY: bool>(skb: *mut __sk_buff, now: *const Validity) -> i32 {
    // SAFETY: what is not null is a reference of the caller.
    let Some(now) = (unsafe { now.as_ref() }) else { return SLOW };
    let context = TcContext::new(skb);
    let offset = if IS_REPLY { link_header::<F>(&context) } else { ETHERNET };
    // Constant offsets, as the verifier wants them.
    let done = if offset == 0 {
        try_forward::<F, 0>(&context, now, IS_REPLY)
    } else {
        try_forward::<F, ETHERNET>(&context, now, IS_REPLY)
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
    let Workspace { head, header, key, after, state, action, frame, place, .. } =
        unsafe { &mut *F::workspace()? };
    let buffer = Buffer(context);
    if !read::<F, _>(&buffer, OFFSET, head, header) {
        return None;
    }
    // SAFETY: the context pointer is valid for the run of the program.
    let skb = unsafe { &*context.skb.skb };
    let whole = head.length + OFFSET as u32;
    let is_padded = skb.len != whole;
    if is_padded && (skb.len < whole || skb.gso_size != 0) {
        return None;
    }
    let host = if OFFSET == 0 { Mac::default() } else { buffer.read::<Mac>(6)? };
    set_key::<F>(key, header, head);
    let hash = F::hash(key, now.seed);
    let entry = F::find(hash, key, place)?;
    read_entry::<F>(entry, state, action)?;
    if !is_valid(state, action, hash, now) {
        return None;
    }
    // Conntrack does not distinguish hosts of one address. A packet of another one may end the flow, or change it.
    let is_claimed = !is_reply
        && action.flags & fast_flags::REPLY == 0
        && !is_from_same_host(action, interface(context), &host, false);
    if !is_claimed && !head.is_ending() && !is_from_same_host(action, interface(context), &host, is_reply) {
        return None;
    }
    let with_ethernet = action.flags & fast_flags::FROM_ETHERNET != 0;
    if with_ethernet != (OFFSET != 0) {
        return None;
    }
    set_rewritten::<F>(after, key, state.port, action);
    let length = context.len();
    if head.is_ending() || is_claimed && state.end == FastEnd::None as u8 {
        let is_closed = head.is_ending() && head.tcp_flags & tcp_flags::SYN == 0;
        let how = if is_closed { FastEnd::Closed } else { FastEnd::Replaced };
        end::<F>(entry, after, key, how, now, place);
        count(&maps::FAST_COUNTS, FastCounter::Ended as u32, length);
        return None;
    }
    if is_claimed || state.end != FastEnd::None as u8 {
        return None;
    }
    let longest = if skb.gso_size == 0 { head.length } else { skb.gso_size + head.headers };
    if longest > action.mtu as u32 || head.hop_limit <= 1 {
        count(&maps::FAST_COUNTS, FastCounter::Exceptional as u32, length);
        return None;
    }
    match state.at(now.time, is_reply) {
        Use::Fast => {}
        Use::Probe => {
            // SAFETY: a word of the map's value. If the entry is another flow's by now, that flow is probed later.
            unsafe { F::state_mut(&mut *entry).probed = now.time };
            count(&maps::FAST_COUNTS, FastCounter::Probed as u32, length);
            return None;
        }
        Use::Over => return None,
    }
    // As the IP stack does. The packet is otherwise unchanged until here.
    if is_padded {
        // SAFETY: the context is valid while the program runs.
        done(unsafe { bpf_skb_change_tail(context.skb.skb, whole, 0) })?;
    }
    F::set_frame(frame, header, after, action);
    let written = rewrite::<F, OFFSET>(context.skb.skb, header, head, after, frame);
    if written.is_none() {
        return Some(TC_ACT_SHOT);
    }
    F::count(hash, place, head.length);
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

/// Ends both directions of a flow. The key becomes that of the other one.
#[inline(always)]
fn end<F: Table>(
    entry: *mut F::Entry,
    after: &Key<F::Address>,
    key: &mut Key<F::Address>,
    how: FastEnd,
    now: &Validity,
    place: &mut u32,
) {
    let end = how as u8;
    // SAFETY: a byte of a value of the map. If the entry is another flow's by now, that flow goes through the IP stack.
    unsafe { F::state_mut(&mut *entry).end = end };
    key.set_turned(after);
    if let Some(other) = F::find(F::hash(key, now.seed), key, place) {
        // SAFETY: as above.
        unsafe { F::state_mut(&mut *other).end = end };
    }
}

/// Writes the headers of an entry. `None` if the kernel refuses; the packet is then useless.
#[inline(always)]
fn rewrite<F: Family, const OFFSET: usize>(
    skb: *mut __sk_buff,
    header: &F::Header,
    head: &Head,
    after: &Key<F::Address>,
    frame: &F::Frame,
) -> Option<()> {
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
    let addresses = F::address_change(header, after);
    if !is_zero(addresses) {
        let flags = BPF_F_PSEUDO_HDR as u64 | mangled;
        // SAFETY: the helper checks the offset.
        done(unsafe { bpf_l4_csum_replace(skb, checksum as u32, 0, addresses as u64, flags) })?;
    }
    let ports = port_change(head, after);
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

/// Flow clock in nanoseconds, with a resolution of milliseconds.
#[inline(always)]
pub fn clock() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { bpf_ktime_get_coarse_ns() }
}

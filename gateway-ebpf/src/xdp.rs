//! Fast path at XDP: rewrites frames of established flows and redirects them from driver to driver. Each frame that
//! leaves so passes a second program at its egress interface, which repeats the egress guard.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::helpers::generated::bpf_xdp_adjust_tail;
use aya_ebpf::programs::XdpContext;
use gateway_common::classify::{TCP, UDP};
use gateway_common::fast_path::entry::{Validity, set_rewritten};
use gateway_common::fast_path::header::{ETHERNET, V4, V6, read, set_key};
use gateway_common::fast_path::xdp::{Arrival, checksum_after, checksum_offset, is_unsummed, takes};
use gateway_common::guard::{self, Departure};
use gateway_common::packet::Packet as _;
use gateway_common::wire::{
    Address, EgressAllowKey, FAST_OFF, Mac, XdpCounter, XdpLink, XdpMetadata, XdpSide,
};

use crate::counters::{self, count, count_later};
use crate::fast_path::{ETHERTYPE4, ETHERTYPE6, validity};
use crate::fast_path_table::{Table, Workspace, read_entry};
use crate::xdp_frame::{Frame, link_of, set_metadata, take_metadata};
use crate::{events, guard as egress, maps, network_header, xdp_dns};

/// Offsets of the source address behind an Ethernet header (RFC 791, section 3.1; RFC 8200, section 3).
const SOURCE4: usize = ETHERNET + 12;
const SOURCE6: usize = ETHERNET + 8;

/// Redirects the frame if the entry of its flow allows it, else passes it.
#[inline(always)]
pub fn run(context: &XdpContext) -> u32 {
    let now = validity();
    if now.epoch == FAST_OFF {
        return XDP_PASS;
    }
    counters::empty_if_full();
    let interface = context.ingress_ifindex() as u32;
    let Some(link) = link_of(interface) else { return XDP_PASS };
    let Some(ethertype) = Frame(context).read::<u16>(ETHERNET - 2) else { return XDP_PASS };
    let action = match ethertype {
        ETHERTYPE4 => forward_as::<V4>(context, &now, link),
        ETHERTYPE6 => forward_as::<V6>(context, &now, link),
        _ => XDP_PASS,
    };
    if action != XDP_PASS || link.side != XdpSide::Lan as u16 {
        return action;
    }
    xdp_dns::run(context, &now, link, ethertype)
}

// A function of its own, because the stack is small.
#[inline(never)]
fn forward_as<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> u32 {
    try_forward::<F>(context, now, link).unwrap_or(XDP_PASS)
}

#[inline(always)]
fn try_forward<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> Option<u32> {
    // SAFETY: the pointer is to a value of the map, valid while the program runs. A program is not interrupted by itself
    // or by another one that uses the place on one processor.
    let Workspace { head, header, key, after, state, action, frame, place, .. } =
        unsafe { &mut *F::workspace()? };
    let packet = Frame(context);
    let length = packet.length();
    if !read::<F, _>(&packet, ETHERNET, head, header) {
        return None;
    }
    let whole = head.length + ETHERNET as u32;
    if length < whole {
        return None;
    }
    let [to, host] = packet.read::<[Mac; 2]>(0)?;
    // Of another host, or a group.
    if to.0[0] != link.mac.0[0] || to.0[1] != link.mac.0[1] || to.0[2] != link.mac.0[2] {
        return None;
    }
    set_key::<F>(key, header, head);
    let hash = F::hash(key, now.seed);
    read_entry::<F>(F::find(hash, key, place)?, state, action)?;
    let is_reply = link.side == XdpSide::Uplink as u16;
    let arrival = Arrival { interface: context.ingress_ifindex() as u32, host, is_reply };
    if !takes((state, action), hash, head, now, &arrival) {
        return None;
    }
    if link_of(action.egress)?.sends == 0 {
        return None;
    }
    // Constant offsets, as the verifier wants them.
    let is_udp = head.protocol == UDP;
    let checksum = if is_udp {
        packet.read::<u16>(ETHERNET + F::LENGTH + checksum_offset(UDP))
    } else {
        packet.read::<u16>(ETHERNET + F::LENGTH + checksum_offset(TCP))
    };
    let checksum = checksum?;
    if is_unsummed::<F>(header, head, checksum) {
        count(&maps::XDP_COUNTS, XdpCounter::Unsummed as u32, length);
        return None;
    }
    set_rewritten::<F>(after, key, state.port, action);
    let checksum = checksum_after::<F>(checksum, header, head, after);
    F::set_frame(frame, header, after, action);
    // Until here the frame is unchanged. A driver without metadata leaves it to the IP stack.
    set_metadata(context, XdpMetadata { epoch: now.epoch, mark: action.mark })?;
    let is_trimmed = length == whole || trim(context, length, whole).is_some();
    if !is_trimmed || write_frame::<F>(context, frame, is_udp, checksum).is_none() {
        return Some(XDP_DROP);
    }
    F::count(hash, place, head.length);
    // The daemon adds these counters to those of the fast path.
    if is_reply {
        count(&maps::XDP_COUNTS, XdpCounter::Replied as u32, length);
    } else {
        count(&maps::REASON_COUNTERS, action.reason as u32, length);
        count_later(action.policy, action.device, length);
        count(&maps::XDP_COUNTS, XdpCounter::Forwarded as u32, length);
    }
    // The frame is useless for the IP stack, so it is dropped if the interface has gone from the map meanwhile.
    Some(maps::XDP_PORTS.redirect(action.egress, XDP_DROP as u64).unwrap_or(XDP_DROP))
}

/// Shortest length of an Ethernet frame without its check sequence (IEEE 802.3).
const SHORTEST: u32 = 60;
/// Shortest frame with a packet that the fast path takes: UDP by IPv4 without a payload.
const SHORTEST_WHOLE: usize = ETHERNET + 28;

/// Removes what is behind the packet, as the IP stack does, but leaves a frame of a network card its shortest length, because
/// drivers do not pad frames that are redirected. That padding becomes zero. `None` if the driver refuses.
#[inline(always)]
fn trim(context: &XdpContext, length: u32, whole: u32) -> Option<()> {
    let kept = if whole < SHORTEST && length >= SHORTEST { SHORTEST } else { whole };
    if length > kept {
        // SAFETY: the context is valid while the program runs.
        let failed = unsafe { bpf_xdp_adjust_tail(context.ctx, -((length - kept) as i32)) };
        if failed != 0 {
            return None;
        }
    }
    // A shorter frame ends with its packet.
    let start = context.data();
    if start + SHORTEST as usize > context.data_end() {
        return Some(());
    }
    let mut offset = SHORTEST_WHOLE;
    while offset < SHORTEST as usize {
        if offset >= whole as usize {
            // SAFETY: the comparison above keeps the write inside the packet.
            unsafe { *((start + offset) as *mut u8) = 0 };
        }
        offset += 1;
    }
    Some(())
}

/// Writes the headers and the checksum in place. `None` if the frame is too short, which it is not.
#[inline(always)]
fn write_frame<F: Table>(context: &XdpContext, frame: &F::Frame, is_udp: bool, checksum: u16) -> Option<()> {
    let (start, end) = (context.data(), context.data_end());
    let headers = ETHERNET + F::LENGTH;
    if start + headers + 8 > end {
        return None;
    }
    // The frame begins behind two bytes of padding, so that its words are aligned; those of the packet need not be.
    let from = (&raw const *frame).cast::<u8>();
    // SAFETY: the comparison keeps the writes inside the packet, and the frame has as many bytes.
    unsafe {
        *(start as *mut u16) = *from.add(2).cast::<u16>();
        let mut offset = 2;
        while offset < headers + 4 {
            *((start + offset) as *mut u32) = *from.add(offset + 2).cast::<u32>();
            offset += 4;
        }
    }
    let at =
        if is_udp { start + headers + checksum_offset(UDP) } else { start + headers + checksum_offset(TCP) };
    if at + 2 > end {
        return None;
    }
    // SAFETY: the comparison keeps the write inside the packet.
    unsafe { *(at as *mut u16) = checksum };
    Some(())
}

/// Decides on a redirected frame at its egress interface. Only frames of [`run`] come here.
#[inline(always)]
pub fn guard(context: &XdpContext) -> u32 {
    let length = Frame(context).length();
    // SAFETY: the context pointer is valid for the run of the program.
    let index = unsafe { (*context.ctx).egress_ifindex };
    let epoch = maps::FAST_EPOCH.get(0).copied().unwrap_or(FAST_OFF);
    let metadata = take_metadata(context).filter(|found| found.epoch == epoch && epoch != FAST_OFF);
    let (Some(XdpMetadata { mark, .. }), Some(link)) = (metadata, link_of(index)) else {
        count(&maps::XDP_COUNTS, XdpCounter::Outdated as u32, length);
        return XDP_DROP;
    };
    // The LAN has no egress guard.
    if link.side == XdpSide::Lan as u16 {
        return XDP_PASS;
    }
    let ingress = context.ingress_ifindex() as u32;
    // The verifier does not follow an absent address further than here.
    let (ipv6, Some(source)) = source(context) else { return XDP_DROP };
    // SAFETY: values are plain words.
    let authorised = unsafe { maps::EGRESS_ALLOW.get(&EgressAllowKey { mark, index }) }.copied();
    let departure = Departure { ingress, mark, ipv6, source: Some(source), leg: 0, no_plan: false };
    match guard::guard(&departure, authorised, &network_header::ActivePlan) {
        Ok(()) => XDP_PASS,
        Err(reason) => {
            egress::count(&maps::GUARD_DROPS, index, length);
            count(&maps::XDP_COUNTS, XdpCounter::Prevented as u32, length);
            events::prevented_from(ingress, mark, length, reason);
            XDP_DROP
        }
    }
}

#[inline(always)]
fn source(context: &XdpContext) -> (bool, Option<Address>) {
    let packet = Frame(context);
    match packet.read::<u16>(ETHERNET - 2) {
        Some(ETHERTYPE4) => (false, packet.read::<u32>(SOURCE4).map(Address::v4_word)),
        Some(ETHERTYPE6) => (true, packet.read::<Address>(SOURCE6)),
        _ => (false, None),
    }
}

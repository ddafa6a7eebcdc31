//! Learning of flows from packets that pass the IP stack: ingress notes a packet, and the egress guard makes the entries
//! of its flow.

use core::ptr::addr_of_mut;

use aya_ebpf::helpers::bpf_get_smp_processor_id;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::IpPacket;
use gateway_common::fast_path::entry::{
    Leaving, Update, Validity, is_same_packet, is_untranslated, is_valid, set_pair, set_rewritten, update,
};
use gateway_common::fast_path::hash::digest;
use gateway_common::fast_path::header::{ETHERNET, Family, Head, V4, V6, content, read};
use gateway_common::fast_path::{self, PENDING_REUSE, pending_index};
use gateway_common::guard::PASSED;
use gateway_common::packet::Packet as _;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::verdict::Verdict;
use gateway_common::wire::{FAST_OFF, FastCounter, FastEnd, FastLink, FastPending, FastState, Mac, Mark};

use crate::context::{Buffer, interface, mark};
use crate::counters::count;
use crate::fast_path::{ETHERTYPE4, ETHERTYPE6, PACKET_HOST, clear_index, clock, validity};
use crate::fast_path_table::{NO_ACTION, Table, Workspace, gw_action_index, read_entry};
use crate::policy_maps::Kernel;
use crate::{maps, neighbour};

/// Notes a packet that ingress has evaluated, for the egress guard.
#[inline(always)]
pub fn note(context: &TcContext, packet: &IpPacket, verdict: &Verdict, now: &Validity) {
    if now.epoch != FAST_OFF {
        write_note(context, packet, verdict, now);
    }
}

// A function of its own, because the stack is small. The verifier requires a numeric return value.
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
            content: content_at(context, transport, &head),
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
fn content_at(context: &TcContext, transport: usize, head: &Head) -> [u32; 2] {
    content(&Buffer(context), transport, head)
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
        _ => {}
    }
}

#[inline(always)]
fn learn_as<F: Table>(context: &TcContext, now: &Validity, links: &Links) {
    let has_replies = links.mark != Mark::LOCAL.0;
    let entered = pair_as::<F>(context, now, links) != 0
        && enter::<F>(now, false)
        && (!has_replies || enter::<F>(now, true));
    if entered {
        count(&maps::FAST_COUNTS, FastCounter::Confirmed as u32, context.len());
    }
}

struct Links {
    mark: u32,
    leg: u32,
    index: u32,
}

/// Writes the pair of a packet to the workspace. Returns 0 if its flow gets no entry.
// As for `write_note`.
#[inline(never)]
fn pair_as<F: Table>(context: &TcContext, now: &Validity, links: &Links) -> u32 {
    // SAFETY: plain words, which only the daemon writes.
    let Some(egress) = (unsafe { maps::FAST_LINKS.get(&interface(context)) }).copied() else { return 0 };
    let paired = if egress.ethernet == 0 {
        try_pair::<F, 0>(context, now, links, egress)
    } else {
        try_pair::<F, ETHERNET>(context, now, links, egress)
    };
    paired.unwrap_or(false) as u32
}

#[inline(always)]
fn try_pair<F: Table, const OFFSET: usize>(
    context: &TcContext,
    now: &Validity,
    links: &Links,
    egress: FastLink,
) -> Option<bool> {
    let noted = maps::FAST_PENDING.get_ptr_mut(links.index)?;
    // SAFETY: the writer does not touch a note that is in use, and one that is old does not match.
    let pending = unsafe { &*noted };
    // SAFETY: as in `try_forward`.
    let Workspace { head, header, leaving, pair, .. } = unsafe { &mut *F::workspace()? };
    let buffer = Buffer(context);
    if !read::<F, _>(&buffer, OFFSET, head, header) {
        return None;
    }
    let (source, destination) = F::addresses(header);
    let [to, from] = if OFFSET == 0 { [Mac::default(); 2] } else { buffer.read::<[Mac; 2]>(0)? };
    let content = content_at(context, OFFSET + F::LENGTH, head);
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
    let is_local = mark == Mark::LOCAL.0;
    let paired = is_current
        && pending.interface != interface
        && lan.ethernet != 0
        && if is_local {
            is_untranslated::<F>(pending, leaving)
        } else {
            neighbour::gets_replies(context, pending) != 0
        };
    if paired {
        set_pair::<F>(pair, pending, leaving, (lan, egress), links.leg as u8);
    }
    // SAFETY: as above.
    unsafe { addr_of_mut!((*noted).time).write(0) };
    Some(paired)
}

/// Makes or confirms the entry of one direction of the pair in the workspace. Returns false if the flow is closing, or
/// there is no place for it.
// Its functions are called one after the other, because the stack is small.
#[inline(always)]
fn enter<F: Table>(now: &Validity, is_reply: bool) -> bool {
    let Some(workspace) = F::workspace() else { return false };
    // SAFETY: as in `try_forward`.
    let pair = unsafe { &(*workspace).pair };
    let index = gw_action_index(if is_reply { &pair.reply_action } else { &pair.action }, now);
    if index == NO_ACTION {
        return refuse();
    }
    enter_as::<F>(now, is_reply as u32, index) != 0
}

// As for `write_note`.
#[inline(never)]
fn enter_as<F: Table>(now: &Validity, is_reply: u32, index: u32) -> u32 {
    let Some(workspace) = F::workspace() else { return 0 };
    // SAFETY: as in `try_forward`.
    enter_with(unsafe { &mut *workspace }, now, is_reply != 0, index) as u32
}

/// Makes or confirms the entry with an action that is in the table.
#[inline(always)]
fn enter_with<F: Table>(workspace: &mut Workspace<F>, now: &Validity, is_reply: bool, index: u32) -> bool {
    let Workspace { key: other, after, state: have, action: have_action, place, pair, .. } = workspace;
    let (key, action, port) = if is_reply {
        (&pair.reply_key, &pair.reply_action, pair.reply_port)
    } else {
        (&pair.key, &pair.action, pair.port)
    };
    let hash = F::hash(key, now.seed);
    let digest = digest(hash, port, index as u16, action);
    if let Some(entry) = F::find(hash, key, place)
        && read_entry::<F>(entry, have, have_action).is_some()
    {
        let is_valid = is_valid(have, have_action, hash, now);
        match update(have, digest, is_valid) {
            Update::Keep => return false,
            Update::Confirm => {
                // SAFETY: as in `try_forward`.
                unsafe { F::state_mut(&mut *entry).confirmed = now.time };
                return true;
            }
            Update::Insert => {}
        }
        // Another flow had the same translation: conntrack gave it to this one, so that flow is over.
        if is_reply && is_valid {
            set_rewritten::<F>(after, key, have.port, have_action);
            other.set_turned(after);
            if *other != pair.key
                && let Some(entry) = F::find(F::hash(other, now.seed), other, place)
            {
                // SAFETY: as in `end`.
                unsafe { F::state_mut(&mut *entry).end = FastEnd::Replaced as u8 };
            }
        }
    }
    *have = FastState::new(key.protocol as u8, port, index as u16, digest, now);
    F::insert(hash, key, have, now, place) || refuse()
}

/// Counts a packet whose flow stays in the IP stack because the table is full.
#[inline(always)]
fn refuse() -> bool {
    count(&maps::FAST_COUNTS, FastCounter::Full as u32, 0);
    false
}

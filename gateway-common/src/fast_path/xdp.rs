//! Fast path at XDP, before the kernel makes a socket buffer of a frame: the packets it takes, and their checksum.
//!
//! It takes only what the tcx program would send on at once. Everything else it leaves to that program, unchanged: ends,
//! probes, and packets that the IP stack answers.

use super::Use;
use super::entry::{Validity, is_from_same_host, is_valid};
use super::header::{Family, Head, port_change};
use super::key::Key;
use crate::checksum::{add, fold};
use crate::classify::UDP;
use crate::wire::{FastAction, FastEnd, FastState, Mac, fast_flags};

/// Arrival of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub interface: u32,
    /// Source MAC address.
    pub host: Mac,
    /// It entered by an uplink.
    pub is_reply: bool,
}

/// Reports whether the entry that was found under a key sends a packet on.
#[inline(always)]
pub fn takes(
    (state, action): (&FastState, &FastAction),
    hash: u64,
    head: &Head,
    now: &Validity,
    arrival: &Arrival,
) -> bool {
    const ETHERNET: u8 = fast_flags::FROM_ETHERNET | fast_flags::TO_ETHERNET;
    is_valid(state, action, hash, now)
        && is_from_same_host(action, arrival.interface, &arrival.host, arrival.is_reply)
        && action.flags & ETHERNET == ETHERNET
        && !head.is_ending()
        && state.end == FastEnd::None as u8
        && head.length <= action.mtu as u32
        && head.hop_limit > 1
        && state.at(now.time, arrival.is_reply) as u32 == Use::Fast as u32
}

/// Reports whether the checksum field holds the sum of the pseudo-header only (RFC 9293, section 3.1; RFC 768).
///
/// Such a packet comes from this machine, and hardware was to complete its checksum (`CHECKSUM_PARTIAL`). A frame does
/// not carry that request. By chance, one complete checksum of 65 536 looks the same.
#[inline(always)]
pub fn is_unsummed<F: Family>(header: &F::Header, head: &Head, checksum: u16) -> bool {
    let (source, destination) = F::addresses(header);
    // A mapped IPv4 address has a word of ones in addition, which is zero.
    let (source, destination) = (F::widen(&source), F::widen(&destination));
    let payload = head.length - F::LENGTH as u32;
    let mut sum = add(payload.to_be(), (head.protocol as u32).to_be());
    for index in 0..4 {
        sum = add(sum, source.0[index]);
        sum = add(sum, destination.0[index]);
    }
    checksum == fold(sum)
}

/// Returns the offset of the checksum in the transport header.
#[inline(always)]
pub const fn checksum_offset(protocol: u8) -> usize {
    if protocol == UDP { 6 } else { 16 }
}

/// Returns the checksum of the rewritten packet. A UDP packet without a checksum keeps it so.
#[inline(always)]
pub fn checksum_after<F: Family>(
    checksum: u16,
    header: &F::Header,
    head: &Head,
    after: &Key<F::Address>,
) -> u16 {
    let is_udp = head.protocol == UDP;
    if is_udp && checksum == 0 {
        return 0;
    }
    let change = add(F::address_change(header, after), port_change(head, after));
    // Zero has two forms. No change keeps the form that the sender chose.
    if matches!(fold(change), 0 | 0xffff) {
        return checksum;
    }
    let after = !fold(add(!checksum as u32, change));
    if is_udp && after == 0 { 0xffff } else { after }
}

#[cfg(test)]
mod tests;

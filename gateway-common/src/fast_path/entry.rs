//! Entries: their validity for a packet, and the two entries of a pair of packets before and after translation.

use super::header::{Family, Head, is_equal};
use super::key::Key;
use super::{PROBE_INTERVAL, REPLY_LIFETIME, hash};
use crate::wire::{FastAction, FastEnd, FastLink, FastPending, FastState, Mac, Mark, fast_flags};

/// Conditions under which entries are valid now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    pub epoch: u32,
    pub generation: u32,
    /// Secret of hashes and digests.
    pub seed: u32,
    /// Time in the unit of [`FastState`].
    pub time: u32,
}

impl Validity {
    /// Reports whether an action is of the present epoch and generation.
    #[inline(always)]
    pub const fn has(&self, action: &FastAction) -> bool {
        action.epoch == self.epoch && action.generation == self.generation
    }
}

/// Reports whether an entry was made under the key with this hash, with this action, in the present epoch and generation.
#[inline(always)]
pub fn is_valid(state: &FastState, action: &FastAction, hash: u64, now: &Validity) -> bool {
    now.has(action)
        && state.epoch == now.epoch as u16
        && state.digest == hash::digest(hash, state.port, state.action, action)
}

/// Reports whether another flow may take the place of an entry: it is of another epoch, or was not confirmed for longer
/// than any entry lives.
#[inline(always)]
pub const fn is_free(state: &FastState, now: &Validity) -> bool {
    // Negative if another processor has confirmed it since.
    let age = now.time.wrapping_sub(state.confirmed) as i32;
    state.epoch != now.epoch as u16 || age >= REPLY_LIFETIME as i32
}

/// Reports whether a packet enters as those of the entry do. `host` is the source MAC address of packets from the LAN.
#[inline(always)]
pub const fn is_from_same_host(action: &FastAction, interface: u32, host: &Mac, is_reply: bool) -> bool {
    let same_direction = (action.flags & fast_flags::REPLY != 0) == is_reply;
    let same_host =
        action.host.0[0] == host.0[0] && action.host.0[1] == host.0[1] && action.host.0[2] == host.0[2];
    action.ingress == interface && same_direction && (is_reply || same_host)
}

/// Writes the key that packets have after the rewrite: of their source, or, for replies, of their destination.
#[inline(always)]
pub fn set_rewritten<F: Family>(
    after: &mut Key<F::Address>,
    before: &Key<F::Address>,
    port: u16,
    action: &FastAction,
) {
    *after = *before;
    let is_translated = action.flags & fast_flags::TRANSLATED != 0;
    if action.flags & fast_flags::REPLY != 0 {
        after.destination_port = port;
        if is_translated {
            after.destination = F::narrow(&action.address);
        }
    } else {
        after.source_port = port;
        if is_translated {
            after.source = F::narrow(&action.address);
        }
    }
}

impl FastState {
    /// State of a new entry. That of replies probes at once: conntrack sees the first reply, by which it knows the flow to
    /// be mutual.
    #[inline(always)]
    pub const fn new(protocol: u8, port: u16, action: u16, digest: u32, now: &Validity) -> FastState {
        let (confirmed, probed) = (now.time, now.time.wrapping_sub(PROBE_INTERVAL));
        FastState { protocol, end: 0, port, action, epoch: now.epoch as u16, digest, confirmed, probed }
    }
}

/// A packet at the egress guard, after translation and routing.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<A> {
    pub source: A,
    pub destination: A,
    pub head: Head,
    pub content: [u32; 2],
    pub mark: u32,
    /// Index of the egress interface.
    pub interface: u32,
    /// MAC addresses of the frame, zero without an Ethernet header.
    pub to: Mac,
    pub from: Mac,
}

/// Reports whether a packet that leaves is the one that was noted on ingress. Source address and source port may have
/// been translated, and the hop limit is one less. Everything else is equal: a flow that another program changes in
/// other ways stays in the IP stack.
#[inline(always)]
pub fn is_same_packet<F: Family>(pending: &FastPending, leaving: &Leaving<F::Address>, now: u64) -> bool {
    pending.time != 0
        && now.wrapping_sub(pending.time) <= super::PENDING_LIFETIME
        && (pending.ipv6 != 0) == F::IPV6
        && pending.protocol == leaving.head.protocol
        && is_equal(&pending.destination, &F::widen(&leaving.destination))
        && pending.destination_port == leaving.head.destination_port
        && pending.length == leaving.head.length
        && pending.first == leaving.head.first
        && pending.hop_limit.wrapping_sub(1) == leaving.head.hop_limit
        && pending.identification == leaving.head.identification
        && pending.content[0] == leaving.content[0]
        && pending.content[1] == leaving.content[1]
        && pending.mark == leaving.mark
}

/// Reports whether a packet leaves as it came: without translation, as between two networks of the LAN.
#[inline(always)]
pub fn is_untranslated<F: Family>(pending: &FastPending, leaving: &Leaving<F::Address>) -> bool {
    is_equal(&pending.source, &F::widen(&leaving.source)) && pending.source_port == leaving.head.source_port
}

/// Keys, actions and ports of both directions of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Pair<A> {
    pub key: Key<A>,
    pub action: FastAction,
    pub port: u16,
    pub reply_key: Key<A>,
    pub reply_action: FastAction,
    pub reply_port: u16,
}

/// Writes the entries of a flow whose packet was noted and then left: `links` are the LAN interface and the egress
/// interface, `arrival` is the leg of the latter.
#[inline(always)]
pub fn set_pair<F: Family>(
    pair: &mut Pair<F::Address>,
    pending: &FastPending,
    leaving: &Leaving<F::Address>,
    links: (FastLink, FastLink),
    arrival: u8,
) {
    let (lan, egress) = links;
    let (source_port, destination_port) = (leaving.head.source_port, leaving.head.destination_port);
    pair.key.source = F::narrow(&pending.source);
    pair.key.destination = leaving.destination;
    pair.key.source_port = pending.source_port;
    pair.key.destination_port = destination_port;
    pair.key.protocol = pending.protocol as u32;
    pair.port = source_port;
    pair.reply_key.source = leaving.destination;
    pair.reply_key.destination = leaving.source;
    pair.reply_key.source_port = destination_port;
    pair.reply_key.destination_port = source_port;
    pair.reply_key.protocol = pending.protocol as u32;
    pair.reply_port = pending.source_port;
    let leaving_source = F::widen(&leaving.source);
    let translated = if is_equal(&pending.source, &leaving_source) { 0 } else { fast_flags::TRANSLATED };
    let ethernet = egress.ethernet != 0;
    let action = &mut pair.action;
    set_common(action, pending);
    action.ingress = pending.interface;
    action.egress = leaving.interface;
    action.mark = pending.mark;
    action.mtu = egress.mtu;
    action.to = leaving.to;
    action.from = leaving.from;
    action.flags =
        translated | fast_flags::FROM_ETHERNET | if ethernet { fast_flags::TO_ETHERNET } else { 0 };
    let action = &mut pair.reply_action;
    set_common(action, pending);
    action.ingress = leaving.interface;
    action.egress = pending.interface;
    action.mark = if arrival == 0 { 0 } else { Mark::arrived_by(arrival).0 };
    action.mtu = lan.mtu;
    action.to = pending.host;
    action.from = pending.gateway;
    action.flags = translated
        | fast_flags::REPLY
        | fast_flags::TO_ETHERNET
        | if ethernet { fast_flags::FROM_ETHERNET } else { 0 };
    let mask = if translated == 0 { 0 } else { u32::MAX };
    for index in 0..4 {
        pair.action.address.0[index] = leaving_source.0[index] & mask;
        pair.reply_action.address.0[index] = pending.source.0[index] & mask;
    }
}

#[inline(always)]
fn set_common(action: &mut FastAction, pending: &FastPending) {
    action.epoch = pending.epoch;
    action.generation = pending.generation;
    action.policy = pending.policy;
    action.device = pending.device;
    action.reason = pending.reason;
    action.host = pending.host;
}

/// Change of an entry in the table that leads to a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Update {
    /// There is none, or another one: insert the new one.
    Insert = 0,
    /// The same entry: it lives on.
    Confirm = 1,
    /// The flow is closing: no entry before its next SYN.
    Keep = 2,
}

/// Decides on the update of an entry that the table has, by the digest that it should have.
#[inline(always)]
pub fn update(have: &FastState, digest: u32, is_valid: bool) -> Update {
    if !is_valid {
        return Update::Insert;
    }
    if have.end == FastEnd::Closed as u8 {
        return Update::Keep;
    }
    if have.digest == digest && have.end == FastEnd::None as u8 { Update::Confirm } else { Update::Insert }
}

#[cfg(test)]
mod tests;

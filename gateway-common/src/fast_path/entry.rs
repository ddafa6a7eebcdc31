//! Entries: their validity for a packet, and the two entries of a pair of packets before and after translation.

use super::header::{Family, Head};
use crate::wire::{Address, FastAction, FastEnd, FastLink, FastPending, FastState, Mac, Mark, fast_flags};

/// Conditions under which entries are valid now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validity {
    pub epoch: u32,
    pub generation: u32,
    /// Secret of the digests.
    pub seed: u32,
}

/// Reports whether an entry was made under this key in the present epoch and generation.
#[inline(always)]
pub fn is_valid<F: Family>(value: &F::Value, key: &F::Key, now: &Validity) -> bool {
    let action = F::action(value);
    action.epoch == now.epoch
        && action.generation == now.generation
        && F::state(value).digest == F::digest(value, key, now.seed)
}

/// Reports whether a packet enters as those of the entry do. `host` is the source MAC address of packets from the LAN.
#[inline(always)]
pub const fn is_from_same_host(action: &FastAction, interface: u32, host: &Mac, is_reply: bool) -> bool {
    let same_direction = (action.flags & fast_flags::REPLY != 0) == is_reply;
    let same_host =
        action.host.0[0] == host.0[0] && action.host.0[1] == host.0[1] && action.host.0[2] == host.0[2];
    action.ingress == interface && same_direction && (is_reply || same_host)
}

/// Writes the key of the other direction: that of the rewritten packet, turned round.
#[inline(always)]
pub fn set_opposite<F: Family>(key: &mut F::Key, value: &F::Value, protocol: u8) {
    let (source, destination) = F::rewritten(value);
    let action = F::action(value);
    F::set_key(key, &destination, &source, (action.destination_port, action.source_port), protocol);
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

#[inline(always)]
const fn is_equal(a: &Address, b: &Address) -> bool {
    a.0[0] == b.0[0] && a.0[1] == b.0[1] && a.0[2] == b.0[2] && a.0[3] == b.0[3]
}

/// Key and value of both directions of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Pair<F: Family> {
    pub key: F::Key,
    pub value: F::Value,
    pub reply_key: F::Key,
    pub reply: F::Value,
}

/// Writes the entries of a flow whose packet was noted and then left: `links` are the LAN interface and the egress
/// interface, `arrival` is the leg of the latter.
#[inline(always)]
pub fn set_pair<F: Family>(
    pair: &mut Pair<F>,
    pending: &FastPending,
    leaving: &Leaving<F::Address>,
    links: (FastLink, FastLink),
    arrival: u8,
    seed: u32,
) {
    let (lan, egress) = links;
    let (source, protocol) = (F::narrow(&pending.source), pending.protocol);
    let (source_port, destination_port) = (leaving.head.source_port, leaving.head.destination_port);
    let is_ethernet = egress.ethernet != 0;
    F::set_key(
        &mut pair.key,
        &source,
        &leaving.destination,
        (pending.source_port, destination_port),
        protocol,
    );
    F::set_key(
        &mut pair.reply_key,
        &leaving.destination,
        &leaving.source,
        (destination_port, source_port),
        protocol,
    );
    F::set_addresses(&mut pair.value, &leaving.source, &leaving.destination);
    F::set_addresses(&mut pair.reply, &leaving.destination, &source);
    let action = F::action_mut(&mut pair.value);
    set_common(action, pending);
    action.ingress = pending.interface;
    action.egress = leaving.interface;
    action.mark = pending.mark;
    action.source_port = source_port;
    action.destination_port = destination_port;
    action.mtu = egress.mtu;
    action.host = pending.host;
    action.to = leaving.to;
    action.from = leaving.from;
    action.flags = fast_flags::FROM_ETHERNET | if is_ethernet { fast_flags::TO_ETHERNET } else { 0 };
    let action = F::action_mut(&mut pair.reply);
    set_common(action, pending);
    action.ingress = leaving.interface;
    action.egress = pending.interface;
    action.mark = if arrival == 0 { 0 } else { Mark::arrived_by(arrival).0 };
    action.source_port = destination_port;
    action.destination_port = pending.source_port;
    action.mtu = lan.mtu;
    action.host = Mac([0; 3]);
    action.to = pending.host;
    action.from = pending.gateway;
    let from = if is_ethernet { fast_flags::FROM_ETHERNET } else { 0 };
    action.flags = fast_flags::REPLY | fast_flags::TO_ETHERNET | from;
    let digest = F::digest(&pair.value, &pair.key, seed);
    F::state_mut(&mut pair.value).digest = digest;
    let digest = F::digest(&pair.reply, &pair.reply_key, seed);
    F::state_mut(&mut pair.reply).digest = digest;
}

#[inline(always)]
fn set_common(action: &mut FastAction, pending: &FastPending) {
    action.epoch = pending.epoch;
    action.generation = pending.generation;
    action.policy = pending.policy;
    action.device = pending.device;
    action.reason = pending.reason;
    action._pad = [0; 2];
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

/// Decides on the update of an entry that the table has.
#[inline(always)]
pub fn update(have: &FastState, want: &FastState, is_valid: bool) -> Update {
    if !is_valid {
        return Update::Insert;
    }
    if have.end == FastEnd::Closed as u32 {
        return Update::Keep;
    }
    if have.digest == want.digest && have.end == FastEnd::None as u32 {
        Update::Confirm
    } else {
        Update::Insert
    }
}

#[cfg(test)]
mod tests;

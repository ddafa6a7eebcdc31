//! Headers of the packets that the fast path takes, and their rewrite.
//!
//! Formats: IPv4 without options (RFC 791), IPv6 without extension headers (RFC 8200), TCP (RFC 9293), UDP (RFC 768).
//! Anything else stays in the IP stack, as do packets that it would drop or answer.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::hash;
use super::key::Key;
use crate::checksum::{add, change, fold};
use crate::classify::{TCP, UDP};
use crate::maps::Wire;
use crate::packet::Packet;
use crate::wire::{Address, FastAction, FastEntry4, FastEntry6, FastState, Mac};

/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;

/// TCP flags (RFC 9293, section 3.1).
pub mod tcp_flags {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const ACK: u8 = 0x10;
    /// Flags that end an entry.
    pub const ENDING: u8 = FIN | SYN | RST;
}

/// An address family of the fast path.
pub trait Family {
    type Address: Copy + PartialEq;
    type Entry: Wire;
    /// Words of the IP header.
    type Header: Wire;
    /// Link-layer and IP header and the ports, as they are written.
    type Frame: Copy;
    const IPV6: bool;
    /// Length of the IP header.
    const LENGTH: usize;

    /// Reads an IP header that needs no special treatment. Writes what both families have in common to `head`.
    fn parse(header: &Self::Header, head: &mut Head) -> bool;
    fn addresses(header: &Self::Header) -> (Self::Address, Self::Address);
    fn hash(key: &Key<Self::Address>, seed: u32) -> u64;
    /// Reports whether an entry is of the flow and direction of a key.
    fn is_of(entry: &Self::Entry, key: &Key<Self::Address>) -> bool;
    fn entry(key: &Key<Self::Address>, state: &FastState) -> Self::Entry;
    fn state(entry: &Self::Entry) -> &FastState;
    fn state_mut(entry: &mut Self::Entry) -> &mut FastState;
    fn widen(address: &Self::Address) -> Address;
    /// The inverse of [`widen`](Self::widen) for an address of this family.
    fn narrow(address: &Address) -> Self::Address;
    /// Change of a checksum over the addresses, if these of a header are replaced by those of a key.
    fn address_change(header: &Self::Header, after: &Key<Self::Address>) -> u32;
    /// Writes the headers after the rewrite.
    fn set_frame(
        frame: &mut Self::Frame,
        header: &Self::Header,
        after: &Key<Self::Address>,
        action: &FastAction,
    );
}

/// Fields of the headers of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Length of the IP packet.
    pub length: u32,
    /// Length of the IP header and the transport header.
    pub headers: u32,
    /// First word of the IP header in memory order, with the traffic class.
    pub first: u32,
    /// In memory order.
    pub source_port: u16,
    pub destination_port: u16,
    /// In memory order, 0 for IPv6.
    pub identification: u16,
    pub protocol: u8,
    pub hop_limit: u8,
    /// 0 for UDP.
    pub tcp_flags: u8,
}

impl Head {
    /// Reports whether the segment ends an entry.
    #[inline(always)]
    pub const fn is_ending(&self) -> bool {
        self.tcp_flags & tcp_flags::ENDING != 0
    }
}

/// Reads the headers behind a link-layer header of `offset` bytes. Returns false for all packets that only the IP stack
/// treats right: options, fragments, other protocols, wrong lengths, combinations of TCP flags that conntrack calls
/// invalid.
#[inline(always)]
pub fn read<F: Family, P: Packet + ?Sized>(
    packet: &P,
    offset: usize,
    head: &mut Head,
    header: &mut F::Header,
) -> bool {
    let Some(found) = packet.read::<F::Header>(offset) else { return false };
    *header = found;
    if !F::parse(header, head) {
        return false;
    }
    let transport = offset + F::LENGTH;
    let Some(begin) = packet.read::<[u32; 2]>(transport) else { return false };
    let ports: [u16; 2] = zerocopy::transmute!(begin[0]);
    head.source_port = ports[0];
    head.destination_port = ports[1];
    let payload = head.length - F::LENGTH as u32;
    head.tcp_flags = 0;
    if head.protocol == UDP {
        head.headers = F::LENGTH as u32 + 8;
        return u32::from_be(begin[1]) >> 16 == payload;
    }
    if head.protocol != TCP {
        return false;
    }
    let Some(control) = packet.read::<u32>(transport + 12) else { return false };
    let control = u32::from_be(control) >> 16;
    let length = (control >> 12) * 4;
    head.headers = F::LENGTH as u32 + length;
    head.tcp_flags = control as u8;
    let is_data = head.tcp_flags & (tcp_flags::ENDING | tcp_flags::ACK) == tcp_flags::ACK;
    length >= 20 && length <= payload && (is_data || head.is_ending())
}

/// Content of a packet that translation does not change. Zeros if a datagram is too short: behind it may be padding, which
/// the IP stack trims.
#[inline(always)]
pub fn content<P: Packet + ?Sized>(packet: &P, transport: usize, head: &Head) -> [u32; 2] {
    let offset = if head.protocol == TCP { transport + 4 } else { transport + 8 };
    if head.protocol == UDP && head.length < head.headers + 8 {
        return [0; 2];
    }
    packet.read::<[u32; 2]>(offset).unwrap_or_default()
}

/// Writes the key of a packet.
#[inline(always)]
pub fn set_key<F: Family>(key: &mut Key<F::Address>, header: &F::Header, head: &Head) {
    (key.source, key.destination) = F::addresses(header);
    key.source_port = head.source_port;
    key.destination_port = head.destination_port;
    key.protocol = head.protocol as u32;
}

/// Change of a checksum over the ports, if these are replaced by those of a key.
#[inline(always)]
pub fn port_change<A: Copy>(head: &Head, after: &Key<A>) -> u32 {
    let before = [head.source_port, head.destination_port];
    change(zerocopy::transmute!(before), after.ports(), false)
}

/// IPv4.
#[derive(Clone, Copy, Debug)]
pub enum V4 {}

/// Rewritten headers of an IPv4 packet. The frame begins at `to`; the padding keeps the words aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Frame4 {
    pub _pad: u16,
    pub to: Mac,
    pub from: Mac,
    pub ethertype: u16,
    pub header: [u32; 5],
    pub ports: [u16; 2],
}

const ETHERTYPE4: u16 = 0x0800_u16.to_be();
const ETHERTYPE6: u16 = 0x86dd_u16.to_be();

impl Family for V4 {
    type Address = u32;
    type Entry = FastEntry4;
    type Header = [u32; 5];
    type Frame = Frame4;
    const IPV6: bool = false;
    const LENGTH: usize = 20;

    #[inline(always)]
    fn parse(header: &[u32; 5], head: &mut Head) -> bool {
        head.first = header[0];
        let first = u32::from_be(header[0]);
        let second = u32::from_be(header[1]);
        let third = u32::from_be(header[2]);
        head.length = first & 0xffff;
        head.identification = ((second >> 16) as u16).to_be();
        head.hop_limit = (third >> 24) as u8;
        head.protocol = (third >> 16) as u8;
        let mut sum = 0;
        for word in header {
            sum = add(sum, *word);
        }
        // More fragments, or an offset.
        first >> 24 == 0x45 && second & 0x3fff == 0 && head.length >= 28 && fold(sum) == 0xffff
    }

    #[inline(always)]
    fn addresses(header: &[u32; 5]) -> (u32, u32) {
        (header[3], header[4])
    }

    #[inline(always)]
    fn hash(key: &Key<u32>, seed: u32) -> u64 {
        hash::of_words4(key.source, key.destination, key.ports(), key.protocol, seed)
    }

    #[inline(always)]
    fn is_of(entry: &FastEntry4, key: &Key<u32>) -> bool {
        entry.source_port == key.source_port
            && entry.destination_port == key.destination_port
            && entry.state.protocol as u32 == key.protocol
            && entry.source == key.source
            && entry.destination == key.destination
    }

    #[inline(always)]
    fn entry(key: &Key<u32>, state: &FastState) -> FastEntry4 {
        FastEntry4 {
            source: key.source,
            destination: key.destination,
            source_port: key.source_port,
            destination_port: key.destination_port,
            state: *state,
        }
    }

    #[inline(always)]
    fn state(entry: &FastEntry4) -> &FastState {
        &entry.state
    }

    #[inline(always)]
    fn state_mut(entry: &mut FastEntry4) -> &mut FastState {
        &mut entry.state
    }

    #[inline(always)]
    fn widen(address: &u32) -> Address {
        Address::v4_word(*address)
    }

    #[inline(always)]
    fn narrow(address: &Address) -> u32 {
        address.last()
    }

    #[inline(always)]
    fn address_change(header: &[u32; 5], after: &Key<u32>) -> u32 {
        add(change(header[3], after.source, false), change(header[4], after.destination, false))
    }

    #[inline(always)]
    fn set_frame(frame: &mut Frame4, header: &[u32; 5], after: &Key<u32>, action: &FastAction) {
        let [ttl_protocol, checksum]: [u16; 2] = zerocopy::transmute!(header[2]);
        let lowered = (u16::from_be(ttl_protocol) - 0x0100).to_be();
        let ttl_change = change(ttl_protocol as u32, lowered as u32, false);
        let delta = add(ttl_change, Self::address_change(header, after));
        let checksum = !fold(add(!checksum as u32, delta));
        let third: u32 = zerocopy::transmute!([lowered, checksum]);
        frame.to = action.to;
        frame.from = action.from;
        frame.ethertype = ETHERTYPE4;
        frame.header = [header[0], header[1], third, after.source, after.destination];
        frame.ports = [after.source_port, after.destination_port];
    }
}

/// IPv6.
#[derive(Clone, Copy, Debug)]
pub enum V6 {}

/// Rewritten headers of an IPv6 packet. The frame begins at `to`; the padding keeps the words aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Frame6 {
    pub _pad: u16,
    pub to: Mac,
    pub from: Mac,
    pub ethertype: u16,
    pub first: [u32; 2],
    pub source: Address,
    pub destination: Address,
    pub ports: [u16; 2],
}

impl Family for V6 {
    type Address = Address;
    type Entry = FastEntry6;
    type Header = [u32; 10];
    type Frame = Frame6;
    const IPV6: bool = true;
    const LENGTH: usize = 40;

    #[inline(always)]
    fn parse(header: &[u32; 10], head: &mut Head) -> bool {
        head.first = header[0];
        let second = u32::from_be(header[1]);
        let payload = second >> 16;
        head.length = 40 + payload;
        head.identification = 0;
        head.protocol = (second >> 8) as u8;
        head.hop_limit = second as u8;
        // A length of zero is a jumbogram.
        u32::from_be(header[0]) >> 28 == 6 && payload >= 8
    }

    #[inline(always)]
    fn addresses(header: &[u32; 10]) -> (Address, Address) {
        let [_, _, a, b, c, d, e, f, g, h] = *header;
        (Address([a, b, c, d]), Address([e, f, g, h]))
    }

    #[inline(always)]
    fn hash(key: &Key<Address>, seed: u32) -> u64 {
        hash::of_words6(&key.source, &key.destination, key.ports(), key.protocol, seed)
    }

    #[inline(always)]
    fn is_of(entry: &FastEntry6, key: &Key<Address>) -> bool {
        entry.source_port == key.source_port
            && entry.destination_port == key.destination_port
            && entry.state.protocol as u32 == key.protocol
            && is_equal(&entry.source, &key.source)
            && is_equal(&entry.destination, &key.destination)
    }

    #[inline(always)]
    fn entry(key: &Key<Address>, state: &FastState) -> FastEntry6 {
        FastEntry6 {
            source: key.source,
            destination: key.destination,
            source_port: key.source_port,
            destination_port: key.destination_port,
            state: *state,
            _pad: [0; 2],
        }
    }

    #[inline(always)]
    fn state(entry: &FastEntry6) -> &FastState {
        &entry.state
    }

    #[inline(always)]
    fn state_mut(entry: &mut FastEntry6) -> &mut FastState {
        &mut entry.state
    }

    #[inline(always)]
    fn widen(address: &Address) -> Address {
        *address
    }

    #[inline(always)]
    fn narrow(address: &Address) -> Address {
        *address
    }

    #[inline(always)]
    fn address_change(header: &[u32; 10], after: &Key<Address>) -> u32 {
        let (source, destination) = (after.source.0, after.destination.0);
        let mut delta = 0;
        for index in 0..4 {
            delta = add(delta, change(header[2 + index], source[index], false));
            delta = add(delta, change(header[6 + index], destination[index], false));
        }
        delta
    }

    #[inline(always)]
    fn set_frame(frame: &mut Frame6, header: &[u32; 10], after: &Key<Address>, action: &FastAction) {
        frame.to = action.to;
        frame.from = action.from;
        frame.ethertype = ETHERTYPE6;
        frame.first = [header[0], (u32::from_be(header[1]) - 1).to_be()];
        frame.source = after.source;
        frame.destination = after.destination;
        frame.ports = [after.source_port, after.destination_port];
    }
}

/// Word by word, because the kernel programs have no function that compares bytes.
#[inline(always)]
pub(super) const fn is_equal(a: &Address, b: &Address) -> bool {
    a.0[0] == b.0[0] && a.0[1] == b.0[1] && a.0[2] == b.0[2] && a.0[3] == b.0[3]
}

#[cfg(test)]
pub(super) mod tests;

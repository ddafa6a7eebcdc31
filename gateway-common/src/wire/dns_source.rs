//! Identity of the host that sent a query to the resolver, as the ingress program saw it in the packet.
//!
//! A socket shows the address of a query, not its MAC address. The neighbour table may have no entry for the address, or
//! that of another host. So the ingress program notes each packet that it gives to the resolver, and the resolver reads the
//! note. A note is found by what the socket shows of the packet.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::flow::{join, mix};
use super::{Address, Mac};

/// Number of notes: an array by [`DnsSourceKey::index`]. A power of two.
pub const DNS_SOURCES: u32 = 65_536;

/// Key of a note: the packet as the socket of the resolver shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsSourceKey {
    pub address: Address,
    pub port: u16,
    /// Message id of a query over UDP, in network byte order. A host that forges a note must guess it.
    pub id: u16,
    pub kind: DnsSourceKind,
}

/// Packets that a note is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DnsSourceKind {
    /// Query over UDP.
    Query = 1,
    /// Queries of one port that the network card or the kernel merged: only the id of the first is in the headers.
    MergedQueries = 2,
    /// Connection over TCP, by its SYN.
    Connection = 3,
    /// Any packet of the address that is redirected from another resolver. The redirection may change the port.
    Redirected = 4,
}

/// Note of the packet with a key. Other packets overwrite it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsSource {
    pub address: Address,
    pub port: u16,
    pub id: u16,
    /// [`DnsSourceKind`] as a number.
    pub kind: u32,
    pub host: Mac,
    pub vlan: u16,
    pub interface: u32,
    /// Time of the packet in ticks of the flow table.
    pub time: u32,
    /// Other than 0: hosts with different MAC addresses sent packets with this key.
    pub contested: u32,
    /// Hash of all other fields. A note that is overwritten during a read has another one.
    pub check: u32,
}

impl DnsSourceKey {
    #[inline(always)]
    pub const fn index(&self) -> u32 {
        let hash = self.hash();
        ((hash >> 40) as u32) & (DNS_SOURCES - 1)
    }

    #[inline(always)]
    const fn hash(&self) -> u64 {
        let [a, b, c, d] = self.address.0;
        let hash = mix(self.kind as u64, join(a, b));
        let hash = mix(hash, join(c, d));
        mix(hash, self.port as u64 | (self.id as u64) << 16)
    }

    /// Ticks for which a second host with the key is a contest: those for which the first packet may wait for the
    /// resolver. The kernel repeats its answer to a SYN for 63 seconds at most (`tcp_synack_retries`).
    #[inline(always)]
    const fn contest_ticks(&self) -> u32 {
        match self.kind {
            DnsSourceKind::Connection => 64,
            _ => 4,
        }
    }
}

impl DnsSource {
    /// Returns the note of a packet, which replaces the note `before`.
    #[inline(always)]
    pub fn new(key: &DnsSourceKey, host: Mac, vlan: u16, interface: u32, time: u32, before: &Self) -> Self {
        let follows = before.is_of(key) && time.wrapping_sub(before.time) <= key.contest_ticks();
        let contested = follows
            && (before.contested != 0
                || before.host != host
                || before.interface != interface
                || before.vlan != vlan);
        let note = DnsSource {
            address: key.address,
            port: key.port,
            id: key.id,
            kind: key.kind as u32,
            host,
            vlan,
            interface,
            time,
            contested: contested as u32,
            check: 0,
        };
        DnsSource { check: note.checksum(), ..note }
    }

    /// Reports whether this is the note of packets with the key.
    #[inline(always)]
    pub fn is_of(&self, key: &DnsSourceKey) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.address.0, key.address.0);
        let differs = (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) | (self.kind ^ key.kind as u32);
        differs | (self.port ^ key.port) as u32 | (self.id ^ key.id) as u32 == 0
    }

    /// Reports whether the note was written as a whole.
    #[inline(always)]
    pub const fn is_whole(&self) -> bool {
        self.check == self.checksum()
    }

    #[inline(always)]
    const fn checksum(&self) -> u32 {
        let [a, b, c, d] = self.address.0;
        let [m0, m1, m2] = self.host.0;
        let hash = mix(self.kind as u64, join(a, b));
        let hash = mix(hash, join(c, d));
        let hash = mix(hash, join(self.port as u32 | (self.id as u32) << 16, self.interface));
        let hash = mix(hash, join(m0 as u32 | (m1 as u32) << 16, m2 as u32 | (self.vlan as u32) << 16));
        mix(hash, join(self.time, self.contested)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: DnsSourceKey =
        DnsSourceKey { address: Address::v4([192, 0, 2, 1]), port: 5353, id: 7, kind: DnsSourceKind::Query };

    fn note(key: &DnsSourceKey, last: u8, time: u32, before: &DnsSource) -> DnsSource {
        DnsSource::new(key, Mac::new([2, 0, 0, 0, 0, last]), 0, 3, time, before)
    }

    #[test]
    fn packets_of_two_hosts_with_one_key_contest_it() {
        let first = note(&KEY, 1, 100, &DnsSource::default());
        assert!(first.is_of(&KEY) && first.is_whole() && first.contested == 0);
        assert_eq!(note(&KEY, 1, 101, &first).contested, 0, "a repetition");
        let second = note(&KEY, 2, 101, &first);
        assert_ne!(second.contested, 0);
        assert_ne!(note(&KEY, 2, 102, &second).contested, 0, "repetitions of the second host");
        assert_eq!(note(&KEY, 2, 106, &second).contested, 0, "long after the first host");
        let other_interface = DnsSource::new(&KEY, first.host, 0, 4, 101, &first);
        assert_ne!(other_interface.contested, 0);
    }

    #[test]
    fn every_part_of_the_key_distinguishes_notes() {
        let first = note(&KEY, 1, 100, &DnsSource::default());
        let address = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1]);
        for other in [
            DnsSourceKey { address, ..KEY },
            DnsSourceKey { port: 5354, ..KEY },
            DnsSourceKey { id: 8, ..KEY },
            DnsSourceKey { kind: DnsSourceKind::Redirected, ..KEY },
        ] {
            assert!(!first.is_of(&other), "{other:?}");
            assert_eq!(note(&other, 2, 100, &first).contested, 0, "{other:?}");
        }
        assert!(!DnsSource::default().is_of(&DnsSourceKey {
            address: Address([0; 4]),
            port: 0,
            id: 0,
            ..KEY
        }));
    }

    #[test]
    fn a_mixture_of_two_notes_is_not_whole() {
        let (a, b) = (note(&KEY, 1, 100, &DnsSource::default()), note(&KEY, 2, 200, &DnsSource::default()));
        assert!(!DnsSource { host: b.host, ..a }.is_whole());
        assert!(!DnsSource { contested: 1, ..a }.is_whole());
        assert!(!DnsSource { interface: 9, ..a }.is_whole());
    }

    #[test]
    fn the_ids_of_a_port_are_spread_over_the_notes() {
        let mut indexes: std::vec::Vec<u32> =
            (0..4096).map(|id| DnsSourceKey { id, ..KEY }.index()).collect();
        indexes.sort_unstable();
        indexes.dedup();
        assert!(indexes.len() > 3900, "{}", indexes.len());
    }
}

//! Addresses as the maps hold them: in memory order, in words, because the kernel program copies
//! words and would copy single bytes from arrays of them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An IPv6 address, or an IPv4 address mapped into one (RFC 4291, 2.5.5.2).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Address(pub [u32; 4]);

const MAPPED: u32 = u32::from_ne_bytes([0, 0, 0xff, 0xff]);

impl Address {
    pub const fn v6(octets: [u8; 16]) -> Address {
        let o = octets;
        Address([
            u32::from_ne_bytes([o[0], o[1], o[2], o[3]]),
            u32::from_ne_bytes([o[4], o[5], o[6], o[7]]),
            u32::from_ne_bytes([o[8], o[9], o[10], o[11]]),
            u32::from_ne_bytes([o[12], o[13], o[14], o[15]]),
        ])
    }

    pub const fn v4(octets: [u8; 4]) -> Address {
        Address::v4_word(u32::from_ne_bytes(octets))
    }

    /// From an IPv4 address in memory order.
    #[inline(always)]
    pub const fn v4_word(word: u32) -> Address {
        Address([0, 0, MAPPED, word])
    }

    /// The last word: the IPv4 address, if it is one.
    #[inline(always)]
    pub const fn last(&self) -> u32 {
        self.0[3]
    }

    /// `0.0.0.0` or `::`.
    #[inline(always)]
    pub const fn is_unspecified(&self) -> bool {
        self.0[0] == 0 && self.0[1] == 0 && (self.0[2] == 0 || self.0[2] == MAPPED) && self.0[3] == 0
    }

    #[inline(always)]
    pub const fn is_mapped(&self) -> bool {
        self.unmapped_bits() == 0
    }

    /// Returns the bits in which the prefix differs from that of an IPv4 address. One comparison instead of three is
    /// one path for the verifier.
    #[inline(always)]
    pub const fn unmapped_bits(&self) -> u32 {
        self.0[0] | self.0[1] | (self.0[2] ^ MAPPED)
    }

    pub const fn octets(&self) -> [u8; 16] {
        let [a, b, c, d] = [
            self.0[0].to_ne_bytes(),
            self.0[1].to_ne_bytes(),
            self.0[2].to_ne_bytes(),
            self.0[3].to_ne_bytes(),
        ];
        [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3]]
    }
}

impl From<core::net::IpAddr> for Address {
    fn from(address: core::net::IpAddr) -> Address {
        match address {
            core::net::IpAddr::V4(v4) => Address::v4(v4.octets()),
            core::net::IpAddr::V6(v6) => Address::v6(v6.octets()),
        }
    }
}

impl From<Address> for core::net::IpAddr {
    fn from(address: Address) -> core::net::IpAddr {
        core::net::Ipv6Addr::from(address.octets()).to_canonical()
    }
}

/// A MAC address in memory order.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Mac(pub [u16; 3]);

impl Mac {
    pub const fn new(o: [u8; 6]) -> Mac {
        Mac([
            u16::from_ne_bytes([o[0], o[1]]),
            u16::from_ne_bytes([o[2], o[3]]),
            u16::from_ne_bytes([o[4], o[5]]),
        ])
    }

    pub const fn octets(&self) -> [u8; 6] {
        let [a, b, c] = [self.0[0].to_ne_bytes(), self.0[1].to_ne_bytes(), self.0[2].to_ne_bytes()];
        [a[0], a[1], b[0], b[1], c[0], c[1]]
    }
}

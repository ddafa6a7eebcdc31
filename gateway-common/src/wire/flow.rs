//! The flow table: the verdict each flow got, for as long as it lives.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// One direction of a conversation as it enters from the LAN. The sender's MAC address is part of
/// it, so that no other host can ride on a flow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FlowKey {
    pub source: Address,
    pub destination: Address,
    pub interface: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub mac: Mac,
    pub vlan: u16,
    pub protocol: u8,
    /// [`Fragment`] as a number.
    pub fragment: u8,
    pub _pad: [u8; 2],
}

/// Whether a packet is a piece of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fragment {
    #[default]
    Whole = 0,
    /// Has the transport header.
    First = 1,
    /// Has no ports: judged by its addresses only.
    Later = 2,
}

/// How the clock of the flow table ticks: in units of 2^30 nanoseconds, 1.07 s.
pub const MOMENT_SHIFT: u32 = 30;

/// An entry with its header in the kernel takes two cache lines with either key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlowValue {
    /// When a recent packet was seen, in [`MOMENT_SHIFT`] units.
    pub seen: u32,
    pub generation: u32,
    /// Mark the packets bear; meaningless when `action` drops.
    pub mark: u32,
    pub policy: u32,
    pub device: u32,
    /// [`crate::verdict::Action`] as a number.
    pub action: u8,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// Leg of the flow, 0 without one.
    pub leg: u8,
    /// 1 when a TCP connection has got beyond its opening segments.
    pub established: u8,
}

/// The key of an IPv4 flow in less than half the space: hashing and comparing it is what a known flow costs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ShortFlowKey {
    /// In memory order.
    pub source: u32,
    /// In memory order.
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub mac: Mac,
    /// VLAN id, and from bit 12 on the fragment.
    pub vlan: u16,
    /// Protocol, and from bit 8 on the interface.
    pub interface: u32,
}

const INTERFACE_LIMIT: u32 = 1 << 24;
const VLAN_LIMIT: u16 = 1 << 12;

impl FlowKey {
    /// The short form, which loses nothing; IPv6 and numbers that are out of its range have none.
    #[inline(always)]
    pub const fn short(&self) -> Option<ShortFlowKey> {
        let fits = self.interface < INTERFACE_LIMIT && self.vlan < VLAN_LIMIT;
        if !(fits && self.source.is_mapped() && self.destination.is_mapped()) {
            return None;
        }
        Some(ShortFlowKey {
            source: self.source.last(),
            destination: self.destination.last(),
            source_port: self.source_port,
            destination_port: self.destination_port,
            mac: self.mac,
            vlan: self.vlan | (self.fragment as u16) << 12,
            interface: self.interface << 8 | self.protocol as u32,
        })
    }
}

impl From<ShortFlowKey> for FlowKey {
    fn from(key: ShortFlowKey) -> FlowKey {
        FlowKey {
            source: Address::v4_word(key.source),
            destination: Address::v4_word(key.destination),
            interface: key.interface >> 8,
            source_port: key.source_port,
            destination_port: key.destination_port,
            mac: key.mac,
            vlan: key.vlan & (VLAN_LIMIT - 1),
            protocol: key.interface as u8,
            fragment: (key.vlan >> 12) as u8,
            _pad: [0; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> FlowKey {
        FlowKey {
            source: Address::v4([10, 1, 2, 3]),
            destination: Address::v4([198, 18, 0, 1]),
            interface: INTERFACE_LIMIT - 1,
            source_port: 0xfffe,
            destination_port: 443,
            mac: Mac::new([2, 3, 4, 5, 6, 7]),
            vlan: VLAN_LIMIT - 1,
            protocol: 255,
            fragment: Fragment::Later as u8,
            _pad: [0; 2],
        }
    }

    #[test]
    fn the_short_form_loses_nothing() {
        for fragment in [Fragment::Whole, Fragment::First, Fragment::Later] {
            let key = FlowKey { fragment: fragment as u8, ..key() };
            assert_eq!(FlowKey::from(key.short().unwrap()), key);
        }
    }

    #[test]
    fn what_does_not_fit_has_no_short_form() {
        let six = Address::v6([0xfd; 16]);
        for key in [
            FlowKey { interface: INTERFACE_LIMIT, ..key() },
            FlowKey { vlan: VLAN_LIMIT, ..key() },
            FlowKey { source: six, ..key() },
            FlowKey { destination: six, ..key() },
        ] {
            assert_eq!(key.short(), None, "{key:?}");
        }
    }
}

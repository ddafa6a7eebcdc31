//! Keys and values of the policy maps. Each belongs to one generation of a plan.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac, Slot};

/// Header of a plan, at the index of its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PlanValue {
    /// Flows of another generation are evaluated again.
    pub generation: u32,
    /// Rank of the best policy for all traffic.
    pub all: u32,
    /// Bits of [`plan_flags`].
    pub flags: u32,
    /// Sampling interval: one of this many new flows is reported; 0 reports none.
    pub sample_every: u32,
    /// Secret of this boot that digests of flow records begin with. The loader sets it.
    pub seed: u32,
    /// TCP port of the API, 0 if LAN hosts cannot reach it anyway.
    pub admin_port: u32,
    /// One more than the rank of the action for traffic by the default route; 0 if the main routing table decides.
    pub direct: u32,
}

/// Bits of [`PlanValue::flags`].
pub mod plan_flags {
    /// Traffic that no policy matches is rejected instead of going the default route.
    pub const UNMATCHED_REJECT: u32 = 1;
    /// Policies match by domain, so DNS-learned addresses are looked up.
    pub const DOMAINS: u32 = 2;
    /// DNS queries of all hosts are redirected to the resolver of the gateway.
    pub const FORCED_DNS: u32 = 4;
    /// Names of servers matter, so the daemon gets copies of Initial packets of QUIC.
    pub const SERVER_NAMES: u32 = 8;
    /// Hosts that are no device may not administer the gateway.
    pub const NO_ADMIN: u32 = 16;
    /// NTP queries of all hosts are redirected to the time server of the gateway.
    pub const FORCED_NTP: u32 = 32;
    /// The flow log has the names of servers, so the daemon gets copies of the segments and Initial packets with a ClientHello.
    pub const LOGGED_NAMES: u32 = 1 << 12;
    /// First of two bits with the [`super::device_flags`] of hosts that are no device: `NO_INTERNET` and `NO_LAN`.
    pub const UNKNOWN_SHIFT: u32 = 16;

    // The blocks of all hosts are in the same field.
    const _: () = {
        let all = [UNMATCHED_REJECT, DOMAINS, FORCED_DNS, SERVER_NAMES, NO_ADMIN, FORCED_NTP, LOGGED_NAMES];
        let mut taken = super::block_flags::ALL | 3 << UNKNOWN_SHIFT;
        let mut index = 0;
        while index < all.len() {
            assert!(all[index].is_power_of_two() && taken & all[index] == 0, "two flags have one bit");
            taken |= all[index];
            index += 1;
        }
    };
}

/// An interface, or a VLAN on it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InterfaceKey {
    pub slot: u32,
    pub index: u32,
    /// VLAN id of the outermost tag, 0 without one.
    pub vlan: u16,
    pub _pad: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterfaceValue {
    pub rank: u32,
    /// VLAN id of frames that arrive untagged here because the interface itself is a VLAN.
    pub vlan: u16,
    /// Index of the interface's set of source prefixes: see [`SourceKind`]. [`OWN_INTERFACE`] for a VLAN whose packets
    /// the programs of its parent leave alone.
    pub scope: u16,
    /// Bits of [`device_flags`] for all hosts of the interface, whatever their trust class.
    pub flags: u16,
    /// Bits of [`device_flags`] for its hosts that have no trust class of their own.
    pub default_flags: u16,
}

/// Scope of a tag of a parent, for which a VLAN has an interface with programs of its own. Those of the parent leave its
/// packets alone. The scope contains no source prefix: a packet of it that is evaluated at the parent nevertheless, below
/// a priority tag, is spoofed.
pub const OWN_INTERFACE: u16 = u16::MAX - 1;

/// Kind of a source address on the ingress LAN interface of a packet. A source without an entry does not belong to
/// that LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SourceKind {
    /// An address of this host, or a broadcast address: no host of the LAN sends from it.
    Denied = 0,
    /// An address of a network that the interface leads to.
    Lan = 1,
    /// Link-local: reaches this host and no further.
    LinkLocal = 2,
    /// The unspecified address, of a host that has none yet.
    Unspecified = 3,
}

impl SourceKind {
    pub const fn from_wire(value: u32) -> SourceKind {
        match value {
            1 => SourceKind::Lan,
            2 => SourceKind::LinkLocal,
            3 => SourceKind::Unspecified,
            _ => SourceKind::Denied,
        }
    }
}

/// Returns the slot field in keys of source prefixes. Each LAN interface has its own set.
pub const fn slot_of_scope(slot: Slot, scope: u16) -> u32 {
    slot | (scope as u32) << 2
}

/// Slot and scope of the key of a source prefix.
pub const fn scope_of_slot(slot: u32) -> (Slot, u16) {
    (slot & 3, (slot >> 2) as u16)
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct VlanKey {
    pub slot: u32,
    pub vlan: u16,
    pub _pad: u16,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MacKey {
    pub slot: u16,
    pub mac: Mac,
}

/// A single address, IPv4 mapped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct AddressKey {
    pub slot: u32,
    pub address: Address,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DeviceValue {
    /// Rank of the best policy for the device or a group of it.
    pub rank: u32,
    /// Number of the device: index of its counters. 0 is no device.
    pub number: u32,
    /// Bits of [`device_flags`]; above [`LIST_SHIFT`] the number of the device's own list of destinations, 0 without one.
    pub flags: u32,
    /// End of the first exception of the device as a [`super::deadline`], 0 without one. After it, `rank_after` replaces
    /// `rank`, and the list of destinations does not apply.
    pub until: u32,
    /// Rank of the best policy for the device without its exceptions.
    pub rank_after: u32,
}

/// See [`DeviceValue::flags`].
pub const LIST_SHIFT: u32 = 16;

/// Maximum number of lists in a plan. The list index and the slot share 16 bits.
pub const LISTS: u32 = (1 << 14) - 1;

/// Returns the slot field in keys of destinations. The own list of a device is a separate set within the plan.
pub const fn slot_of_list(slot: Slot, list: u32) -> u32 {
    slot | list << 2
}

/// Slot and list of the key of a destination.
pub const fn list_of_slot(slot: u32) -> (Slot, u32) {
    (slot & 3, slot >> 2)
}

/// Bits of [`DeviceValue::flags`], from the device's trust class and status.
pub mod device_flags {
    /// Nothing leaves the LAN.
    pub const NO_INTERNET: u32 = 1;
    /// Only the gateway is reachable, no other LAN network.
    pub const NO_LAN: u32 = 2;
    /// Traffic that no policy matches is rejected.
    pub const POLICY_ONLY: u32 = 4;
    /// Everything is dropped except address configuration.
    pub const BLOCKED: u32 = 8;
    /// DNS queries of the device are redirected to the resolver of the gateway.
    pub const FORCED_DNS: u32 = 16;
    /// The device is an upstream resolver of the gateway, so its queries are not redirected.
    pub const RESOLVER: u32 = 32;
    /// The device may not administer the gateway.
    pub const NO_ADMIN: u32 = 4096;
    /// NTP queries of the device are redirected to the time server of the gateway.
    pub const FORCED_NTP: u32 = 8192;
    /// First of two bits with the failure policy floor of the device: 0 for fail-open, 1 for fail-degraded, 2 for
    /// fail-closed.
    pub const FLOOR_SHIFT: u32 = 14;
    pub const FLOOR: u32 = 3 << FLOOR_SHIFT;
    /// The device has a trust class of its own or by a group, so that of its segment is not for it. Above the number of the
    /// list.
    pub const OWN_CLASS: u32 = 1 << 30;
}

/// Blocks of privacy classes: bits of [`DeviceValue::flags`], and for all hosts of [`PlanValue::flags`].
pub mod block_flags {
    /// DNS over HTTPS to known public resolvers.
    pub const DOH: u32 = 64;
    /// DNS over TLS (RFC 7858) and QUIC (RFC 9250).
    pub const DOT: u32 = 128;
    pub const QUIC: u32 = 256;
    /// IPv6 to addresses outside the LAN, and IPv6 in IPv4.
    pub const IPV6: u32 = 512;
    /// STUN (RFC 8489) and TURN (RFC 8656).
    pub const STUN: u32 = 1024;
    /// STUN and TURN by the default route.
    pub const STUN_DIRECT: u32 = 2048;
    pub const ALL: u32 = DOH | DOT | QUIC | IPV6 | STUN | STUN_DIRECT;
}

/// Bits of slot, or of slot and port, before the address in the keys of the prefix tries.
pub const PREFIX_BASE: u32 = 32;

/// Key of the IPv4 prefix tries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Prefix4 {
    pub slot: u32,
    /// In memory order.
    pub address: u32,
}

/// Key of the IPv6 prefix tries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Prefix6 {
    pub slot: u32,
    pub address: Address,
}

/// Key of the IPv4 tries of destination port and prefix: slot and port are matched whole.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PortPrefix4 {
    pub slot: u16,
    pub port: u16,
    /// In memory order.
    pub address: u32,
}

/// Key of the IPv6 tries of destination port and prefix: slot and port are matched whole.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PortPrefix6 {
    pub slot: u16,
    pub port: u16,
    pub address: Address,
}

/// A destination that no policy routes, or only to one leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LocalValue {
    /// [`LocalKind`] as a number.
    pub kind: u16,
    /// The first leg whose interface has the address or network, 0 if it is none of a leg. Further ones have a
    /// [`SharedAddressKey`].
    pub leg: u16,
}

/// Key of an address that the interfaces of several legs have, for each leg but the first. VPN providers give the same
/// address to all their customers, so it does not identify a tunnel.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SharedAddressKey {
    pub slot: u32,
    pub leg: u32,
    pub address: Address,
}

/// Reason for which policies do not route a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum LocalKind {
    /// Address of the gateway that LAN hosts may not use. Unknown numbers mean the same.
    Forbidden = 0,
    /// The gateway itself.
    Own = 1,
    /// A network of a LAN interface.
    Lan = 2,
    /// Multicast, broadcast and link-local destinations: the kernel does not forward them.
    Link = 3,
    /// A network of an uplink. Policies route it; by the default route its leg is the only one that leads there.
    Uplink = 4,
}

impl LocalValue {
    /// Address that the plan does not contain. It is a value instead of an `Option`, because LLVM leaves the fields
    /// of `None` undefined and the verifier rejects reading them.
    pub const NONE: LocalValue = LocalValue { kind: u16::MAX, leg: 0 };

    pub const fn is_none(&self) -> bool {
        self.kind == u16::MAX
    }

    /// Reports whether the address has this kind. False if it is unknown.
    pub const fn is(&self, kind: LocalKind) -> bool {
        self.kind == kind as u16
    }

    pub const fn new(kind: LocalKind) -> LocalValue {
        LocalValue { kind: kind as u16, leg: 0 }
    }

    /// An address of the interface of a leg.
    pub const fn of_leg(kind: LocalKind, leg: u8) -> LocalValue {
        LocalValue { kind: kind as u16, leg: leg as u16 }
    }

    pub const fn kind(&self) -> LocalKind {
        match self.kind {
            1 => LocalKind::Own,
            2 => LocalKind::Lan,
            3 => LocalKind::Link,
            4 => LocalKind::Uplink,
            _ => LocalKind::Forbidden,
        }
    }
}

/// Source addresses of an interface that a fwmark may use as egress. After masquerading, packets have one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EgressAllowValue {
    /// In memory order, 0 without one.
    pub v4: u32,
    /// Unspecified without one.
    pub v6: Address,
}

impl EgressAllowValue {
    /// Replies of hosts that are not masqueraded: every source but addresses of this host. No interface has the broadcast address.
    pub const REPLIES: EgressAllowValue = EgressAllowValue { v4: u32::MAX, v6: Address([0; 4]) };
}

/// Fwmark and an egress interface that it may use.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EgressAllowKey {
    pub mark: u32,
    pub index: u32,
}

//! Flow table: the verdict of each flow.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// One direction of a flow from the LAN. The source MAC address is part of the key, so that no other host can use
/// the flow.
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

/// Fragment state of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fragment {
    #[default]
    Whole = 0,
    /// Has the transport header.
    First = 1,
    /// Has no ports: evaluated by its addresses only.
    Later = 2,
}

/// Tick of the flow table's clock: 2^30 nanoseconds, 1.07 s.
pub const FLOW_TICK_SHIFT: u32 = 30;

/// Tick of deadlines on the boot clock (`CLOCK_BOOTTIME`): 2^26 nanoseconds, 67 ms. Deadlines overflow after nine
/// years of uptime.
pub const DEADLINE_SHIFT: u32 = 26;

/// Returns the deadline at this many nanoseconds after boot, rounded up. Never 0, which means no deadline.
pub const fn deadline(nanoseconds: u64) -> u32 {
    let ticks = nanoseconds.div_ceil(1 << DEADLINE_SHIFT);
    if ticks > u32::MAX as u64 {
        u32::MAX
    } else if ticks == 0 {
        1
    } else {
        ticks as u32
    }
}

/// Returns the earlier of two deadlines; 0 means none.
#[inline(always)]
pub const fn earlier(a: u32, b: u32) -> u32 {
    if b == 0 || (a != 0 && a < b) { a } else { b }
}

/// Record of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlowValue {
    /// Time of a recent packet, in [`FLOW_TICK_SHIFT`] units.
    pub seen: u32,
    pub generation: u32,
    /// Fwmark of the packets; undefined if `action` drops.
    pub mark: u32,
    pub policy: u32,
    pub device: u32,
    /// [`crate::verdict::Action`] as a number.
    pub action: u8,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// Leg of the flow, 0 without one.
    pub leg: u8,
    /// Bits of [`flow_flags`].
    pub shown: u8,
    /// End of the verdict as a [`deadline`], 0 without an end.
    pub until: u32,
    /// [`FlowValue::digest_for`] of the key it was written under. Another processor may write it during a read; the
    /// result of such a read has another digest. It does not cover `seen`, which changes in place.
    pub digest: u32,
}

/// Bits of [`FlowValue::shown`]: facts that the packets of a flow have shown.
pub mod flow_flags {
    /// A TCP connection has sent more than its SYN.
    pub const ESTABLISHED: u8 = 1;
    /// A flow has carried a STUN message (RFC 8489).
    pub const STUN: u8 = 2;
    /// A UDP flow has carried an Initial packet of QUIC (RFC 9000).
    pub const QUIC: u8 = 4;
    /// A TCP connection has sent a whole ClientHello of TLS. For QUIC, the daemon notes it.
    pub const HELLO: u8 = 8;
    /// A TCP connection has sent the beginning of a ClientHello. A flow of QUIC is held until the daemon has read it.
    pub const HELLO_OPEN: u8 = 16;
    /// The name in the ClientHello is that of a public resolver. For QUIC, the daemon notes it.
    pub const DOH_NAME: u8 = 32;
    /// A privacy class evaluates the payload of each packet. No packet shows it: it is a property of the verdict.
    pub const INSPECTED: u8 = 64;
    /// A UDP flow has carried a packet with a long header of a QUIC version that the daemon cannot decrypt.
    pub const QUIC_OTHER: u8 = 128;
}

/// 2^64 divided by the golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
pub(super) const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}

#[inline(always)]
pub(super) const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl FlowValue {
    /// A digest of the hash of the key, and of all other fields but the time.
    #[inline(always)]
    pub const fn digest_for(&self, hash: u64) -> u32 {
        let last = [self.action, self.reason, self.leg, self.shown];
        let hash = mix(hash, join(self.generation, self.mark));
        let hash = mix(hash, join(self.policy, self.device));
        mix(hash, join(self.until, u32::from_le_bytes(last))) as u32
    }

    /// The value with its digest.
    #[inline(always)]
    pub const fn sealed(self, hash: u64) -> FlowValue {
        FlowValue { digest: self.digest_for(hash), ..self }
    }

    /// Reports whether the value was written under the key with this hash.
    #[inline(always)]
    pub const fn is_of(&self, hash: u64) -> bool {
        self.digest == self.digest_for(hash)
    }
}

impl ShortFlowKey {
    #[inline(always)]
    const fn hash(&self, seed: u32) -> u64 {
        let [m0, m1, m2] = self.mac.0;
        let mut hash = mix(seed as u64, join(self.source, self.destination));
        hash = mix(
            hash,
            join(
                self.source_port as u32 | (self.destination_port as u32) << 16,
                m0 as u32 | (m1 as u32) << 16,
            ),
        );
        mix(hash, join(m2 as u32 | (self.vlan as u32) << 16, self.interface))
    }
}

/// Compact key of an IPv4 flow. Hashing and comparing the key dominates the cost of a known flow.
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

const INTERFACE_BITS: u32 = 24;
const VLAN_BITS: u32 = 12;

impl FlowKey {
    /// Hash of the key and a secret: of the short form, if there is one.
    #[inline(always)]
    pub const fn hash(&self, seed: u32) -> u64 {
        match self.short() {
            Some(short) => short.hash(seed),
            None => self.long_hash(seed),
        }
    }

    #[inline(always)]
    const fn long_hash(&self, seed: u32) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.source.0, self.destination.0);
        let [m0, m1, m2] = self.mac.0;
        let mut hash = mix(seed as u64, join(a, b));
        hash = mix(hash, join(c, d));
        hash = mix(hash, join(e, f));
        hash = mix(hash, join(g, h));
        hash =
            mix(hash, join(self.interface, self.source_port as u32 | (self.destination_port as u32) << 16));
        hash = mix(hash, join(m0 as u32 | (m1 as u32) << 16, m2 as u32 | (self.vlan as u32) << 16));
        mix(hash, self.protocol as u64 | (self.fragment as u64) << 8)
    }

    /// Returns the lossless short form; `None` for IPv6 and for numbers out of its range.
    #[inline(always)]
    pub const fn short(&self) -> Option<ShortFlowKey> {
        let surplus = self.interface >> INTERFACE_BITS | (self.vlan >> VLAN_BITS) as u32;
        // One comparison is one path for the verifier.
        if surplus | self.source.unmapped_bits() | self.destination.unmapped_bits() != 0 {
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
            vlan: key.vlan & ((1 << VLAN_BITS) - 1),
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
            interface: (1 << INTERFACE_BITS) - 1,
            source_port: 0xfffe,
            destination_port: 443,
            mac: Mac::new([2, 3, 4, 5, 6, 7]),
            vlan: (1 << VLAN_BITS) - 1,
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
    fn a_record_read_under_another_key_is_refused() {
        let long = FlowKey { source: Address::v6([0xfd; 16]), ..key() };
        for key in [key(), long] {
            let hash = key.hash(9);
            let value = FlowValue { mark: 0x4700_0010, policy: 7, ..FlowValue::default() }.sealed(hash);
            assert!(value.is_of(hash));
            assert!(!value.is_of(FlowKey { source_port: 1, ..key }.hash(9)), "another flow");
            assert!(!value.is_of(key.hash(10)), "another secret");
            for torn in [
                FlowValue { generation: 1, ..value },
                FlowValue { mark: 0x4700_8000, ..value },
                FlowValue { policy: 8, ..value },
                FlowValue { device: 1, ..value },
                FlowValue { action: 1, ..value },
                FlowValue { reason: 1, ..value },
                FlowValue { leg: 1, ..value },
                FlowValue { shown: 1, ..value },
                FlowValue { until: 1, ..value },
            ] {
                assert!(!torn.is_of(hash), "a mixture: {torn:?}");
            }
            assert!(FlowValue { seen: 1, ..value }.is_of(hash), "the time changes in place");
        }
    }

    #[test]
    fn deadlines_round_up_and_the_earlier_one_holds() {
        assert_eq!(deadline(0), 1);
        assert_eq!(deadline(1 << DEADLINE_SHIFT), 1);
        assert_eq!(deadline((1 << DEADLINE_SHIFT) + 1), 2);
        assert_eq!(deadline(u64::MAX), u32::MAX);
        assert_eq!(
            (earlier(0, 0), earlier(0, 5), earlier(5, 0), earlier(5, 3), earlier(3, 5)),
            (0, 5, 5, 3, 3)
        );
    }

    #[test]
    fn keys_that_do_not_fit_have_no_short_form() {
        let six = Address::v6([0xfd; 16]);
        for key in [
            FlowKey { interface: 1 << INTERFACE_BITS, ..key() },
            FlowKey { vlan: 1 << VLAN_BITS, ..key() },
            FlowKey { source: six, ..key() },
            FlowKey { destination: six, ..key() },
        ] {
            assert_eq!(key.short(), None, "{key:?}");
        }
    }
}

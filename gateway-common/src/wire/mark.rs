//! The packet mark: the stamp by which ingress tells routing and the guard what was decided.

/// A mark of the gateway. Other programs' marks never have its upper sixteen bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Mark(pub u32);

impl Mark {
    /// All marks of LAN traffic have these upper bits.
    pub const PREFIX: u32 = 0x4700_0000;
    pub const PREFIX_MASK: u32 = 0xffff_0000;
    /// The default route: the main routing table, out of an uplink.
    pub const DIRECT: Mark = Mark(0x4700_8000);
    /// To the gateway itself or to another LAN network; never out of an uplink.
    pub const LOCAL: Mark = Mark(0x4700_8001);
    /// To a table whose only routes are `unreachable`: the kernel answers with ICMP.
    pub const REJECT: Mark = Mark(0x4700_8002);
    /// Default deny: local delivery works, nothing is forwarded.
    pub const BLOCK: Mark = Mark(0x4700_8003);
    /// TCP of a flow that has lost its leg, or that is stopped: to this host, where our table answers with a reset.
    pub const RESET: Mark = Mark(0x4700_8004);
    /// A question for a resolver elsewhere: our table hands it to the one here, and it goes nowhere else.
    pub const FORCED_DNS: Mark = Mark(0x4700_8005);
    /// An NTP query for a server elsewhere: our table hands it to the one here, and it goes nowhere else.
    pub const FORCED_NTP: Mark = Mark(0x4700_8006);
    /// Stopped by a privacy class or a block. No rule routes it, so the last rule of its LAN interface prohibits it, and
    /// the kernel answers with ICMP (RFC 1812, section 5.2.7.1, code 13; RFC 4443, section 3.1, code 1).
    pub const PROHIBIT: Mark = Mark(0x4700_8007);
    /// Offsets from [`Mark::DIRECT`] of the marks of packets that are denied.
    const REFUSALS: u32 = 1 << (Mark::REJECT.0 - Mark::DIRECT.0)
        | 1 << (Mark::BLOCK.0 - Mark::DIRECT.0)
        | 1 << (Mark::RESET.0 - Mark::DIRECT.0)
        | 1 << (Mark::PROHIBIT.0 - Mark::DIRECT.0);
    /// Queries of the resolver by the default route. It is no mark of the gateway for routing and guard, which treat
    /// such packets like unmarked ones. Only the redirection of DNS queries of this host exempts it.
    pub const OWN_QUERY: Mark = Mark(0x4653_0000);
    /// Outer packets of tunnels and other traffic of the daemon itself.
    pub const OWN: Mark = Mark(0x4701_0000);
    /// Outer packets of a tunnel whose carrier is missing: rejected like those of [`Mark::REJECT`].
    pub const OWN_NOWHERE: Mark = Mark(0x4701_8002);

    /// Packets received on an uplink or a tunnel, with the leg. Replies of the kernel itself inherit the mark
    /// (`fwmark_reflect`), so they leave by the same leg or not at all.
    pub const ARRIVAL: Mark = Mark(0x4704_0000);
    /// The upper byte of all marks of the gateway.
    pub const OURS: u32 = 0x4700_0000;
    pub const OURS_MASK: u32 = 0xff00_0000;

    /// Bits of the number of a leg in a mark that has one.
    pub const LEG_MASK: u32 = 0xff;

    /// LAN traffic for a proxy: then the proxy's number, then the leg that carries the relay's connection to it.
    pub const PROXY: u32 = 0x4702_0000;
    /// In a proxy's mark: the host does not reply while no relay takes the packet.
    pub const PROXY_SILENT: u32 = 0x0001_0000;
    /// In a proxy's mark, set by the rule that found the relay's socket: only then the packet is delivered.
    pub const PROXY_TAKEN: u32 = 0x0004_0000;
    /// The bits in which all marks for proxies agree.
    pub const PROXY_MASK: u32 = Self::PREFIX_MASK & !Self::PROXY_SILENT & !Self::PROXY_TAKEN;

    /// The mark of traffic that a proxy takes.
    pub const fn proxy(number: u8, leg: u8, silent: bool) -> Mark {
        let base = if silent { Self::PROXY | Self::PROXY_SILENT } else { Self::PROXY };
        Mark(base | (number as u32) << 8 | leg as u32)
    }

    /// The proxy a mark stands for, and the leg to it.
    pub const fn as_proxy(self) -> Option<(u8, u8)> {
        if self.0 & Self::PROXY_MASK == Self::PROXY {
            Some(((self.0 >> 8) as u8, self.0 as u8))
        } else {
            None
        }
    }

    /// The mark of outer packets that a leg carries; 0 is the default route.
    pub const fn carried_by(leg: u8) -> Mark {
        Mark(Self::OWN.0 | leg as u32)
    }

    /// The mark of what came in by a leg.
    pub const fn arrived_by(leg: u8) -> Mark {
        Mark(Self::ARRIVAL.0 | leg as u32)
    }

    /// The mark of a leg.
    pub const fn leg(number: u8) -> Mark {
        Mark(Self::PREFIX | number as u32)
    }

    /// The leg a mark stands for.
    pub const fn as_leg(self) -> Option<u8> {
        if self.0 & !0xff == Self::PREFIX { Some(self.0 as u8) } else { None }
    }
}

impl Mark {
    /// Reports whether a packet from the LAN with this mark is denied: rejected, or not forwarded.
    #[inline(always)]
    pub const fn is_refusal(self) -> bool {
        let offset = self.0.wrapping_sub(Mark::DIRECT.0);
        offset < u32::BITS && Mark::REFUSALS >> offset & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_distinguished() {
        for silent in [false, true] {
            let mark = Mark::proxy(7, 16, silent);
            assert_eq!(mark.as_proxy(), Some((7, 16)));
            assert_eq!(Mark(mark.0 | Mark::PROXY_TAKEN).as_proxy(), Some((7, 16)));
            assert_eq!(mark.as_leg(), None);
            assert_ne!(mark.0 & Mark::PREFIX_MASK, Mark::PREFIX, "no guard lets it pass");
        }
        for other in [
            Mark::leg(16),
            Mark::DIRECT,
            Mark::LOCAL,
            Mark::REJECT,
            Mark::PROHIBIT,
            Mark::RESET,
            Mark::BLOCK,
            Mark::carried_by(16),
            Mark::arrived_by(16),
            Mark(0),
        ] {
            assert_eq!(other.as_proxy(), None, "{other:?}");
        }
    }
}

//! The packet mark: the stamp by which ingress tells routing and the guard what was decided.

/// A mark of ours. Other programs' marks never have its upper sixteen bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Mark(pub u32);

impl Mark {
    /// All marks of LAN traffic have these upper bits.
    pub const PREFIX: u32 = 0x4700_0000;
    pub const PREFIX_MASK: u32 = 0xffff_0000;
    /// The default way: the main routing table, out of an uplink.
    pub const DIRECT: Mark = Mark(0x4700_8000);
    /// To the gateway itself or to another LAN network; never out of an uplink.
    pub const LOCAL: Mark = Mark(0x4700_8001);
    /// To a table whose only routes are `unreachable`: the kernel answers with ICMP.
    pub const REJECT: Mark = Mark(0x4700_8002);
    /// The resting state: local delivery works, nothing is forwarded.
    pub const BLOCK: Mark = Mark(0x4700_8003);
    /// Outer packets of tunnels and other traffic of the daemon itself.
    pub const OWN: Mark = Mark(0x4701_0000);
    /// Outer packets of a tunnel whose carrier is missing: rejected like those of [`Mark::REJECT`].
    pub const OWN_NOWHERE: Mark = Mark(0x4701_8002);

    /// The mark of a leg.
    pub const fn leg(number: u8) -> Mark {
        Mark(Self::PREFIX | number as u32)
    }

    /// The leg a mark stands for.
    pub const fn as_leg(self) -> Option<u8> {
        if self.0 & !0xff == Self::PREFIX { Some(self.0 as u8) } else { None }
    }
}

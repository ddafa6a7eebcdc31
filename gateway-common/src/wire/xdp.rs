//! XDP: the fast path in the driver of an interface. The maps of this module end with the daemon.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Mac;

/// Size of the array of interfaces.
pub const XDP_LINK_COUNT: u32 = 1024;

/// Returns the element of an interface in the array. Of two interfaces with the same element, one has no XDP.
#[inline(always)]
pub const fn xdp_link_index(interface: u32) -> u32 {
    interface % XDP_LINK_COUNT
}

/// An interface whose packets the XDP program may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct XdpLink {
    /// Its index, 0 in an unused element.
    pub interface: u32,
    /// Its MAC address. Frames for others are not of this host.
    pub mac: Mac,
    /// [`XdpSide`] as a number.
    pub side: u16,
    /// 1 if XDP may send packets of other interfaces to it.
    pub sends: u16,
    /// [`XdpAnswers`] as a number.
    pub answers: u16,
}

/// Way of the DNS answers at XDP on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum XdpAnswers {
    /// The tcx program answers.
    #[default]
    None = 0,
    /// The driver sends the frame back (`XDP_TX`).
    Transmit = 1,
    /// The frame is redirected to the interface itself. A veth sends back at once only what is redirected, unless its peer
    /// has a program as well (`veth_xdp_flush` in drivers/net/veth.c).
    Redirect = 2,
}

/// Side of the gateway on which an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum XdpSide {
    Lan = 1,
    /// An uplink: what leaves passes the egress guard.
    Uplink = 2,
}

/// Interface that XDP may send packets to, and the program behind the redirect (`struct bpf_devmap_val`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct XdpPort {
    pub interface: u32,
    /// Descriptor of the program on writes, its identifier on reads.
    pub program: u32,
}

/// Metadata of a redirected packet for the egress guard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct XdpMetadata {
    /// Epoch of the fast path in which the packet was rewritten.
    pub epoch: u32,
    /// Fwmark of the entry.
    pub mark: u32,
}

/// Index of a counter of XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum XdpCounter {
    /// Packets from the LAN that left in the driver.
    Forwarded = 0,
    /// Replies that left in the driver.
    Replied = 1,
    /// Redirected packets that the egress guard dropped.
    Prevented = 2,
    /// Redirected packets that were dropped because the epoch or the interfaces had changed before they left.
    Outdated = 3,
    /// Packets of entries that the IP stack got because their checksum is not yet computed.
    Unsummed = 4,
    /// DNS queries that the driver answered.
    Answered = 5,
}

impl XdpCounter {
    pub const ALL: [XdpCounter; 6] = [
        XdpCounter::Forwarded,
        XdpCounter::Replied,
        XdpCounter::Prevented,
        XdpCounter::Outdated,
        XdpCounter::Unsummed,
        XdpCounter::Answered,
    ];

    /// Returns the name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            XdpCounter::Forwarded => "forwarded",
            XdpCounter::Replied => "replied",
            XdpCounter::Prevented => "prevented",
            XdpCounter::Outdated => "outdated",
            XdpCounter::Unsummed => "unsummed",
            XdpCounter::Answered => "answered",
        }
    }
}

//! Hosts that exist only as frames, their flows, and the ends of the network at which packets arrive.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// End of the network at which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Lan,
    /// Second network of the LAN.
    Segment,
    Uplink,
    ExitA,
    ExitB,
}

impl End {
    pub(super) const ALL: [End; 5] = [End::Lan, End::Segment, End::Uplink, End::ExitA, End::ExitB];

    /// Reports whether sources are translated on the way to it.
    pub(super) fn is_translated(self) -> bool {
        matches!(self, End::Uplink | End::ExitA | End::ExitB)
    }
}

/// Host without a device record and a policy: it uses the uplink.
pub(super) const FREE: u8 = 0;
/// Host with a device record and no policy.
pub(super) const KNOWN: u8 = 1;
/// Host with a policy: tunnel to exit A, fail-closed.
pub(super) const BOUND: u8 = 2;
/// Host with a policy: tunnel to exit A, or else to exit B.
pub(super) const FAILOVER: u8 = 3;
/// Hosts whose packets are compared.
pub(super) const COMPARED: u8 = 4;
/// Host that sends all the time, also during changes. Its policy is that of [`BOUND`].
pub(super) const LOAD: u8 = 4;
pub(super) const HOSTS: u8 = 5;

/// MAC addresses of hosts that send with the addresses of others: one that has no record and no address, and [`FREE`]. The
/// policy of their packets is that of the address.
pub(super) const CLAIMANTS: [[u8; 6]; 2] = [[2, 0, 0, 0x10, 9, 9], [2, 0, 0, 0x10, 1, FREE]];

/// MAC address of the host of the second network to which hosts of the first send.
pub(super) const SEGMENT_MAC: [u8; 6] = [2, 0, 0, 0x20, 0, 0x77];
const PORT: u16 = 4433;

/// Returns the address of a host.
pub(super) fn address(host: u8, ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0x100 + u16::from(host)).into()
    } else {
        Ipv4Addr::new(192, 168, 10, 100 + host).into()
    }
}

pub(super) fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0x10, 1, host]
}

pub(super) fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Destination of the compared packets: in networks of the internet that no other traffic uses, or in the second network
/// of the LAN.
pub(super) fn destination(ipv6: bool, is_local: bool) -> SocketAddr {
    let address: IpAddr = match (is_local, ipv6) {
        (false, false) => Ipv4Addr::new(198, 18, 7, 1).into(),
        (false, true) => Ipv6Addr::new(0x2001, 0xdb8, 0x18, 7, 0, 0, 0, 1).into(),
        (true, false) => Ipv4Addr::new(192, 168, 20, 0x77).into(),
        (true, true) => Ipv6Addr::new(0xfd00, 0x20, 0, 0, 0, 0, 0, 0x77).into(),
    };
    SocketAddr::new(address, PORT)
}

/// Reports whether an address is one of [`destination`].
pub(super) fn is_destination(address: IpAddr) -> bool {
    [false, true].iter().any(|local| address == destination(address.is_ipv6(), *local).ip())
}

/// A flow. All hosts use the same ports, so that translations conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub host: u8,
    pub ipv6: bool,
    pub tcp: bool,
    /// To the second network of the LAN.
    pub is_local: bool,
    pub port: u16,
}

impl Flow {
    /// Returns all compared flows.
    pub(super) fn all() -> Vec<Flow> {
        let mut flows = Vec::new();
        for host in 0..COMPARED {
            for (ipv6, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
                let flow = |is_local, port| Flow { host, ipv6, tcp, is_local, port };
                flows.extend([flow(false, 40_000), flow(false, 40_001)]);
                // Policies do not decide on the LAN, trust classes do.
                if host <= KNOWN {
                    flows.push(flow(true, 40_002));
                }
            }
        }
        flows
    }

    pub(super) fn source(self) -> SocketAddr {
        SocketAddr::new(address(self.host, self.ipv6), self.port)
    }

    pub(super) fn destination(self) -> SocketAddr {
        destination(self.ipv6, self.is_local)
    }
}

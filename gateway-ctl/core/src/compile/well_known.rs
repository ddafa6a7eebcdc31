//! Networks and addresses that are the same everywhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

pub(super) fn net4(address: Ipv4Addr, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(address, length).expect("a length of at most 32"))
}

pub(super) fn net6(address: Ipv6Addr, length: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new(address, length).expect("a length of at most 128"))
}

/// Prefixes of the addresses in meshes.
pub(super) fn mesh_prefixes() -> [IpNet; 2] {
    let ipv6 = Ipv6Addr::new(0xfd7a, 0x115c, 0xa1e0, 0, 0, 0, 0, 0);
    [net4(Ipv4Addr::new(100, 64, 0, 0), 10), net6(ipv6, 48)]
}

pub(super) fn default4() -> IpNet {
    net4(Ipv4Addr::UNSPECIFIED, 0)
}

pub(super) fn default6() -> IpNet {
    net6(Ipv6Addr::UNSPECIFIED, 0)
}

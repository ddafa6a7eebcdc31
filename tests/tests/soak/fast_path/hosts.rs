//! Hosts of the LAN that exist only as frames, their flows, and the ends of the network at which packets arrive.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// End of the network at which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Lan,
    Uplink,
    ExitA,
    ExitB,
}

impl End {
    pub const ALL: [End; 4] = [End::Lan, End::Uplink, End::ExitA, End::ExitB];
}

/// Host without a policy: it uses the uplink.
pub const FREE: u8 = 0;
/// Host with a device record and no policy.
pub const KNOWN: u8 = 1;
/// Host with a policy: tunnel to exit A, fail-closed.
pub const BOUND: u8 = 2;
/// Host with a policy: tunnel to exit A, or else to exit B.
pub const FAILOVER: u8 = 3;
/// Hosts whose packets are compared.
pub const COMPARED: u8 = 4;
/// Host that sends all the time, also during changes. Its policy is that of [`BOUND`].
pub const LOAD: u8 = 4;
pub const HOSTS: u8 = 5;

/// Address of a host, by its last number.
pub fn address(host: u8, ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0x100 + u16::from(host)).into()
    } else {
        Ipv4Addr::new(192, 168, 10, 100 + host).into()
    }
}

pub fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0x10, 1, host]
}

pub fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Destination of the compared packets, in networks that no other traffic uses.
pub fn destination(ipv6: bool) -> SocketAddr {
    let address: IpAddr = if ipv6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0x18, 7, 0, 0, 0, 1).into()
    } else {
        Ipv4Addr::new(198, 18, 7, 1).into()
    };
    SocketAddr::new(address, 4433)
}

/// Reports whether an address is one of [`destination`].
pub fn is_destination(address: IpAddr) -> bool {
    address == destination(false).ip() || address == destination(true).ip()
}

/// A flow. All hosts use the same ports, so that translations conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    pub host: u8,
    pub ipv6: bool,
    pub tcp: bool,
    pub port: u16,
}

impl Flow {
    pub fn source(self) -> SocketAddr {
        SocketAddr::new(address(self.host, self.ipv6), self.port)
    }
}

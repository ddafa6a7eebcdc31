//! Socket for router advertisements that the gateway sends (packet(7)).

use std::io;

use socket2::{Domain, Protocol, Socket, Type};

use super::egress_tap::host_address;

const IPV6: u16 = libc::ETH_P_IPV6 as u16;

pub(crate) struct RouterSocket(Socket);

impl RouterSocket {
    pub(crate) fn open() -> io::Result<RouterSocket> {
        // Without a protocol it receives nothing, and costs no packet.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), Some(Protocol::from(0)))?;
        Ok(RouterSocket(socket))
    }

    /// Sends a packet, from its IPv6 header on, to a host of the interface with this index.
    pub(crate) fn send(&self, packet: &[u8], interface: u32, mac: [u8; 6]) -> io::Result<()> {
        let to = host_address(IPV6, interface, mac)?;
        self.0.send_to(packet, &to).map(drop)
    }
}

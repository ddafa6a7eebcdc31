//! Who is behind an address, asked of the kernel's table of neighbours at once: for whoever cannot wait until it has been
//! observed.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::NeighbourMessage;
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use super::observe;

/// The kernel's messages of a dump are no longer.
const LONGEST: usize = 32 * 1024;

/// A host on a link of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub mac: [u8; 6],
    /// Index of the interface.
    pub interface: u32,
}

/// None if the kernel knows nobody there.
pub fn at(address: IpAddr) -> Option<Neighbour> {
    look(address).inspect_err(|error| tracing::warn!(%error, "cannot read the neighbours")).ok().flatten()
}

fn look(address: IpAddr) -> io::Result<Option<Neighbour>> {
    let socket: OwnedFd =
        socket_with(net::AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut question = NeighbourMessage::default();
    question.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetNeighbour(question));
    message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    net::send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; LONGEST];
    let mut found = None;
    loop {
        let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(LONGEST)];
        while !rest.is_empty() {
            let message =
                NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
            let taken = usize::try_from(message.header.length).unwrap_or(usize::MAX);
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry)) => {
                    let known = observe::neighbour(&entry).filter(|(_, known)| *known == address);
                    found =
                        found.or(known.map(|(mac, _)| Neighbour { mac, interface: entry.header.ifindex }));
                }
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::Done(_) => return Ok(found),
                _ => {}
            }
            rest = rest.get(taken.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_behind_an_address_of_nowhere() {
        for address in ["192.0.2.254", "2001:db8::254"] {
            let looked = look(address.parse().expect("an address"));
            assert_eq!(looked.expect("the kernel answers"), None, "{address}");
        }
    }
}

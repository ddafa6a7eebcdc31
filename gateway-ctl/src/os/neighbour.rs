//! Immediate lookup in the kernel's neighbour table, for callers that cannot wait for an observation.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use super::observe;

/// Longest netlink message of the kernel.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// A host that is on-link on one of the gateway's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub mac: [u8; 6],
    /// Index of the interface.
    pub interface: u32,
}

/// Looks up the entry of an address on each of these links. Returns `None` if the kernel knows no host there.
pub fn at(address: IpAddr, links: &[u32]) -> Option<Neighbour> {
    query_kernel(address, links)
        .inspect_err(|error| tracing::warn!(%error, "failed to read the neighbours"))
        .ok()
        .flatten()
}

/// Sends one request per link instead of a dump. The table may have thousands of entries, and a dump holds a kernel
/// lock.
fn query_kernel(address: IpAddr, links: &[u32]) -> io::Result<Option<Neighbour>> {
    let socket: OwnedFd =
        socket_with(net::AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut buffer = vec![0; MAX_MESSAGE_BYTES];
    for link in links {
        net::send(&socket, &request(address, *link), SendFlags::empty())?;
        let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let answer =
            NetlinkMessage::<RouteNetlinkMessage>::deserialize(&buffer[..length.min(MAX_MESSAGE_BYTES)])
                .map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry)) => {
                let known = observe::neighbour(&entry).filter(|(_, known)| *known == address);
                if let Some((mac, _)) = known {
                    return Ok(Some(Neighbour { mac, interface: entry.header.ifindex }));
                }
            }
            NetlinkPayload::Error(error) => match error.to_io() {
                // No entry, or the link no longer exists.
                error if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {}
                error => return Err(error),
            },
            _ => {}
        }
    }
    Ok(None)
}

fn request(address: IpAddr, link: u32) -> Vec<u8> {
    let mut entry = NeighbourMessage::default();
    entry.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    entry.header.ifindex = link;
    entry.attributes.push(NeighbourAttribute::Destination(match address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    }));
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetNeighbour(entry));
    message.header.flags = NLM_F_REQUEST;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspecified_address_has_no_neighbour() {
        for address in ["192.0.2.254", "2001:db8::254"] {
            // The loopback link, and one that does not exist.
            let looked = query_kernel(address.parse().expect("an address"), &[1, 0x7fff_fff0]);
            assert_eq!(looked.expect("the kernel answers"), None, "{address}");
        }
    }
}

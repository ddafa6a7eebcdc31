//! The kernel's neighbour table: immediate lookup for callers that cannot wait for an observation, the whole table with
//! the age of its entries, and probes of entries.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

use super::observe;

/// Longest netlink message of the kernel.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// A host that is on-link on one of the gateway's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub mac: [u8; 6],
    /// Index of the interface.
    pub interface: u32,
}

/// Looks up the entry of an address on each of these links. Returns `None` if the kernel knows no host there.
pub(crate) fn at(address: IpAddr, links: &[u32]) -> Option<Neighbour> {
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
    serialized(RouteNetlinkMessage::GetNeighbour(entry_of(address, link)), NLM_F_REQUEST)
}

fn entry_of(address: IpAddr, link: u32) -> NeighbourMessage {
    let mut entry = NeighbourMessage::default();
    entry.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    entry.header.ifindex = link;
    entry.attributes.push(NeighbourAttribute::Destination(match address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    }));
    entry
}

fn serialized(message: RouteNetlinkMessage, flags: u16) -> Vec<u8> {
    let mut message = NetlinkMessage::from(message);
    message.header.flags = flags;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    request
}

/// Entry of the table with a hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub address: IpAddr,
    pub mac: [u8; 6],
    /// Index of the interface.
    pub interface: u32,
    /// The host has answered within the last minute.
    pub is_reachable: bool,
    /// Time since the last answer. Of an entry that another host's message created, some more than its age.
    pub age: Duration,
}

/// Returns the entries of both families that have a hardware address, static ones left out: nothing was observed of their
/// hosts.
pub(crate) fn table() -> io::Result<Vec<TableEntry>> {
    let mut entries = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let socket: OwnedFd =
            socket_with(net::AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let mut message = NeighbourMessage::default();
        message.header.family = family;
        let request = serialized(RouteNetlinkMessage::GetNeighbour(message), NLM_F_REQUEST | NLM_F_DUMP);
        net::send(&socket, &request, SendFlags::empty())?;
        while read_part(&socket, &mut entries)? {}
    }
    Ok(entries)
}

/// Reads one datagram of a dump. Returns `false` after the last.
fn read_part(socket: &OwnedFd, entries: &mut Vec<TableEntry>) -> io::Result<bool> {
    let mut buffer = vec![0; MAX_MESSAGE_BYTES];
    let (length, _) = net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
    let mut rest = &buffer[..length.min(MAX_MESSAGE_BYTES)];
    while !rest.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
        let step = (message.header.length as usize).next_multiple_of(4).max(4);
        match message.payload {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry)) => {
                entries.extend(table_entry(&entry));
            }
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    Ok(length > 0)
}

fn table_entry(message: &NeighbourMessage) -> Option<TableEntry> {
    /// Ticks a second in the times of the kernel's interfaces (USER_HZ).
    const TICKS: u64 = 100;
    if message.header.state == NeighbourState::Permanent {
        return None;
    }
    let (mac, address) = observe::neighbour(message)?;
    let confirmed = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::CacheInfo(info) => Some(info.confirmed),
        _ => None,
    });
    Some(TableEntry {
        address,
        mac,
        interface: message.header.ifindex,
        is_reachable: message.header.state == NeighbourState::Reachable,
        age: Duration::from_millis(u64::from(confirmed?) * 1000 / TICKS),
    })
}

/// Asks the kernel to probe an entry as if a packet were sent to its host.
pub(crate) fn probe(address: IpAddr, link: u32) -> io::Result<()> {
    let mut entry = entry_of(address, link);
    entry.header.flags = NeighbourFlags::Use;
    // Without a state of its own, which would replace that of the entry.
    entry.header.state = NeighbourState::None;
    let socket: OwnedFd =
        socket_with(net::AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let request = serialized(RouteNetlinkMessage::NewNeighbour(entry), NLM_F_REQUEST | NLM_F_ACK);
    net::send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; MAX_MESSAGE_BYTES];
    let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
    let reply = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&buffer[..length.min(MAX_MESSAGE_BYTES)])
        .map_err(io::Error::other)?;
    match reply.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => match error.to_io() {
            // The entry has gone meanwhile.
            error if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
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

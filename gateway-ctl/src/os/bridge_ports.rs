//! Ports of bridges behind which hosts are, from the forwarding tables of the kernel's bridges.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::{NeighbourAttribute, NeighbourMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// Longest netlink message of the kernel.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// Returns the index of the port by MAC address. Blocks on the kernel.
pub(crate) fn by_mac() -> io::Result<BTreeMap<[u8; 6], u32>> {
    let socket: OwnedFd =
        socket_with(net::AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    net::send(&socket, &request(), SendFlags::empty())?;
    let (mut buffer, mut ports) = (vec![0; MAX_MESSAGE_BYTES], BTreeMap::new());
    loop {
        let (length, _) = net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(MAX_MESSAGE_BYTES)];
        while !rest.is_empty() {
            let message =
                NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
            let length = usize::try_from(message.header.length).map_err(io::Error::other)?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(ports),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(entry)) => {
                    ports.extend(port(&entry));
                }
                _ => {}
            }
            rest = rest.get(length.max(1).next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn port(entry: &NeighbourMessage) -> Option<([u8; 6], u32)> {
    let mac = entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => <[u8; 6]>::try_from(bytes.as_slice()).ok(),
        _ => None,
    })?;
    (entry.header.family == AddressFamily::Bridge).then_some((mac, entry.header.ifindex))
}

fn request() -> Vec<u8> {
    let mut entry = NeighbourMessage::default();
    entry.header.family = AddressFamily::Bridge;
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetNeighbour(entry));
    message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_tables_are_read_to_their_end() {
        by_mac().expect("the kernel answers");
    }
}

//! The card behind an address, asked of the kernel's table of neighbours (rtnetlink(7), `RTM_GETNEIGH`) at once: for
//! whoever cannot wait until it has been observed.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const HEADER: usize = 16;
const NDMSG: usize = 12;

/// The MAC address of an address on a link of this host; none if the kernel knows none.
pub fn card_of(address: IpAddr) -> Option<[u8; 6]> {
    look(address).inspect_err(|error| tracing::debug!(%error, "cannot read the neighbours")).ok().flatten()
}

fn look(address: IpAddr) -> io::Result<Option<[u8; 6]>> {
    let socket: OwnedFd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let family: u8 = if address.is_ipv4() { 2 } else { 10 };
    let mut request = [0; HEADER + NDMSG];
    request[..4].copy_from_slice(&u32::try_from(HEADER + NDMSG).unwrap_or(0).to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETNEIGH.to_ne_bytes());
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request[HEADER] = family;
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; 32 * 1024];
    let mut found = None;
    loop {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(buffer.len())];
        if rest.is_empty() {
            return Ok(found);
        }
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                NLMSG_DONE | NLMSG_ERROR => return Ok(found),
                RTM_NEWNEIGH => found = found.or_else(|| neighbour(body, address)),
                _ => {}
            }
            rest = next;
        }
    }
}

/// Type, body, and what follows.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The card of a neighbour, if it has this address.
fn neighbour(body: &[u8], wanted: IpAddr) -> Option<[u8; 6]> {
    let mut attributes = body.get(NDMSG..)?;
    let (mut same, mut card) = (false, None);
    while let Some((kind, value, next)) = attribute(attributes) {
        match kind {
            NDA_DST => {
                same = match wanted {
                    IpAddr::V4(wanted) => value == wanted.octets(),
                    IpAddr::V6(wanted) => value == wanted.octets(),
                };
            }
            NDA_LLADDR => card = <[u8; 6]>::try_from(value).ok(),
            _ => {}
        }
        attributes = next;
    }
    card.filter(|_| same)
}

fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
    let value = bytes.get(4..length)?;
    Some((kind, value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(address: &[u8], card: &[u8]) -> Vec<u8> {
        let mut body = vec![0; NDMSG];
        for (kind, value) in [(NDA_DST, address), (NDA_LLADDR, card)] {
            let length = u16::try_from(4 + value.len()).expect("short");
            body.extend(length.to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body
    }

    #[test]
    fn a_neighbour_is_read_by_its_address() {
        let body = entry(&[192, 0, 2, 7], &[2, 0, 0, 0, 0, 7]);
        assert_eq!(neighbour(&body, "192.0.2.7".parse().expect("an address")), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!(neighbour(&body, "192.0.2.8".parse().expect("an address")), None);
        assert_eq!(neighbour(&entry(&[192, 0, 2, 7], &[]), "192.0.2.7".parse().expect("an address")), None);
        for length in 0..body.len() {
            neighbour(&body[..length], "192.0.2.7".parse().expect("an address"));
        }
    }

    #[test]
    fn nobody_is_behind_an_address_of_nowhere() {
        assert_eq!(card_of("192.0.2.254".parse().expect("an address")), None);
        assert_eq!(card_of("2001:db8::254".parse().expect("an address")), None);
    }
}

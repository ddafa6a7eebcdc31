//! Conntrack entries over ctnetlink: those that lack address translation, and how many each host holds.

pub(crate) mod connections;
pub(crate) mod usage;

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use gateway_core::evaluate::live_flow::LiveFlow;
use rtnetlink::sys::protocols::NETLINK_NETFILTER;
use rtnetlink::sys::{Socket, SocketAddr};

/// Sizes of `struct nlmsghdr` and `struct nfgenmsg`.
const HEADER: usize = 16;
const FAMILY_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// Flags of an attribute's type: nested, and in network byte order.
const TYPE_MASK: u16 = 0x3fff;
const NESTED: u16 = 0x8000;
/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET`, and `…_DELETE`.
const GET: u16 = 0x0101;
const DELETE: u16 = 0x0102;
const DUMP: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
const REQUEST: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
// Attributes (include/uapi/linux/netfilter/nfnetlink_conntrack.h).
const TUPLE_ORIG: u16 = 1;
const STATUS: u16 = 3;
const ID: u16 = 12;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTO: u16 = 2;
const IP_V6_SRC: u16 = 3;
const IP_V6_DST: u16 = 4;
const PROTO_NUM: u16 = 1;
const PROTO_SRC_PORT: u16 = 2;
const PROTO_DST_PORT: u16 = 3;
/// `IPS_SRC_NAT | IPS_DST_NAT`.
const TRANSLATED: u32 = 1 << 4 | 1 << 5;

/// Entry of an IPv6 flow whose addresses are not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UntranslatedEntry {
    pub flow: LiveFlow,
    /// Attributes that identify the entry to the kernel, including its id. A newer entry of the same flow is not
    /// deleted.
    key: Vec<u8>,
}

/// Lists the entries of IPv6 flows without a translated address. Blocks on the kernel.
pub(crate) fn list_untranslated() -> io::Result<Vec<UntranslatedEntry>> {
    let socket = open()?;
    socket.send(&request(GET, DUMP, libc::AF_INET6, &[]), 0)?;
    let mut entries = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for (kind, body) in messages(&datagram) {
            match kind {
                DONE => return Ok(entries),
                ERROR => return Err(error(body).unwrap_or_else(|| io::ErrorKind::InvalidData.into())),
                _ => entries.extend(body.get(FAMILY_HEADER..).and_then(read)),
            }
        }
    }
}

/// Deletes an entry. An entry that is already gone is no error. Blocks on the kernel.
pub(crate) fn delete(entry: &UntranslatedEntry) -> io::Result<()> {
    let socket = open()?;
    socket.send(&request(DELETE, REQUEST, libc::AF_INET6, &entry.key), 0)?;
    let (datagram, _) = socket.recv_from_full()?;
    let answer = messages(&datagram).find(|(kind, _)| *kind == ERROR);
    match answer.and_then(|(_, body)| error(body)) {
        Some(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
        _ => Ok(()),
    }
}

fn open() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn request(kind: u16, flags: u16, family: libc::c_int, attributes: &[u8]) -> Vec<u8> {
    let length = HEADER + FAMILY_HEADER + attributes.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number and port. Each socket has one request.
    bytes.extend([0; 8]);
    bytes.extend([family as u8, 0, 0, 0]);
    bytes.extend(attributes);
    bytes
}

/// Returns the error of an `NLMSG_ERROR`, or `None` if it is an acknowledgement.
fn error(body: &[u8]) -> Option<io::Error> {
    let code = i32::from_ne_bytes(*body.first_chunk()?);
    (code != 0).then(|| io::Error::from_raw_os_error(-code))
}

fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, l2, l3, t0, t1, ..] = *datagram.first_chunk::<HEADER>()?;
        let length = (u32::from_ne_bytes([l0, l1, l2, l3]) as usize).clamp(HEADER, datagram.len());
        let body = &datagram[HEADER..length];
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]), body))
    })
}

/// Returns the attributes of a message or of a nest: type, content, and both with the header.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8], &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, t0, t1] = *bytes.first_chunk::<ATTRIBUTE_HEADER>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1])).clamp(ATTRIBUTE_HEADER, bytes.len());
        let whole = &bytes[..length];
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]) & TYPE_MASK, &whole[ATTRIBUTE_HEADER..], whole))
    })
}

fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(found, content, _)| (found == kind).then_some(content))
}

fn read(message: &[u8]) -> Option<UntranslatedEntry> {
    let status = u32::from_be_bytes(*attribute(message, STATUS)?.first_chunk()?);
    let tuple = attribute(message, TUPLE_ORIG)?;
    let (addresses, protocol) = (attribute(tuple, TUPLE_IP)?, attribute(tuple, TUPLE_PROTO)?);
    let address = |kind| Some(IpAddr::V6(Ipv6Addr::from(*attribute(addresses, kind)?.first_chunk::<16>()?)));
    let port = |kind| Some(u16::from_be_bytes(*attribute(protocol, kind)?.first_chunk()?));
    let flow = LiveFlow {
        source: address(IP_V6_SRC)?,
        destination: address(IP_V6_DST)?,
        protocol: *attribute(protocol, PROTO_NUM)?.first()?,
        source_port: port(PROTO_SRC_PORT).unwrap_or(0),
        destination_port: port(PROTO_DST_PORT).unwrap_or(0),
    };
    (status & TRANSLATED == 0).then_some(UntranslatedEntry { flow, key: key(message)? })
}

/// Returns the attributes that identify an entry.
fn key(message: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (kind, content, _) in attributes(message).filter(|(kind, ..)| [TUPLE_ORIG, ID].contains(kind)) {
        let flags = if kind == TUPLE_ORIG { NESTED } else { 0 };
        key.extend(u16::try_from(ATTRIBUTE_HEADER + content.len()).ok()?.to_ne_bytes());
        key.extend((kind | flags).to_ne_bytes());
        key.extend(content);
        key.resize(key.len().next_multiple_of(4), 0);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (ATTRIBUTE_HEADER + content.len()) as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn entry(status: u32) -> Vec<u8> {
        let addresses = [attribute(IP_V6_SRC, &[1; 16]), attribute(IP_V6_DST, &[2; 16])].concat();
        let ports = [
            attribute(PROTO_NUM, &[17]),
            attribute(PROTO_SRC_PORT, &5000_u16.to_be_bytes()),
            attribute(PROTO_DST_PORT, &53_u16.to_be_bytes()),
        ];
        let tuple =
            [attribute(NESTED | TUPLE_IP, &addresses), attribute(NESTED | TUPLE_PROTO, &ports.concat())];
        [
            attribute(NESTED | TUPLE_ORIG, &tuple.concat()),
            attribute(NESTED | 2, &tuple.concat()),
            attribute(STATUS, &status.to_be_bytes()),
            attribute(ID, &[9; 4]),
        ]
        .concat()
    }

    #[test]
    fn entry_is_read_and_named_by_its_tuple_and_id() {
        let bytes = entry(0x0e);
        let read = read(&bytes).expect("an entry");
        let flow = LiveFlow {
            source: Ipv6Addr::from([1; 16]).into(),
            destination: Ipv6Addr::from([2; 16]).into(),
            protocol: 17,
            source_port: 5000,
            destination_port: 53,
        };
        assert_eq!(read.flow, flow);
        let kinds: Vec<u16> = attributes(&read.key).map(|(kind, ..)| kind).collect();
        assert_eq!(kinds, [TUPLE_ORIG, ID]);
    }

    #[test]
    fn translated_entries_and_broken_messages_are_left_out() {
        assert_eq!((read(&entry(1 << 4)), read(&entry(1 << 5))), (None, None));
        let whole = entry(0);
        for length in 0..whole.len() - 8 {
            assert_eq!(read(&whole[..length]), None, "{length} bytes");
        }
        assert!(messages(&[255; 40]).count() <= 1);
    }
}

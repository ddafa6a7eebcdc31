//! Messages of clients, and those of other servers.
//!
//! Read from the borrowed view of dhcproto: header fields, and options as bytes. Its typed options stop at the first
//! one that is not well-formed, so a host name in Latin-1 hides the identifier behind it, and the client becomes
//! another one; some lengths panic; and the information of relays, which a reply must repeat unchanged (RFC 3046,
//! section 2.2), is rewritten. Here a broken option costs that option. A new option that the server must understand
//! needs a line here.

use std::net::Ipv4Addr;

use dhcproto::v4::borrowed::{DhcpOptionIterator, Message};
use dhcproto::v4::{MAGIC, Opcode, OptionCode};
use gateway_model::MacAddr;

use super::client_key::{ClientKey, ETHERNET};
use super::lease::host_label;

/// Length of a message up to the options.
pub(super) const HEADER: usize = 240;
/// Fields that may hold options (RFC 2132, section 9.3).
const SERVER_NAME: std::ops::Range<usize> = 44..108;
const FILE: std::ops::Range<usize> = 108..236;
/// Smallest message that every client accepts, without the headers of IP and UDP (RFC 2131, section 2).
pub(super) const MIN_MAX_SIZE: u16 = 548;
/// Largest reply: a packet of Ethernet without the headers of IP and UDP.
const MAX_SIZE: u16 = 1472;
/// Headers of IP and UDP, which a client's size includes.
const IP_AND_UDP: u16 = 28;
const MAX_VENDOR_CLASS: usize = 64;
const MAX_RELAY_INFORMATION: usize = 400;
/// Name in wire format, in a client's domain name (RFC 4702, section 2.1).
const FQDN_IN_WIRE_FORMAT: u8 = 4;
/// Network that a relay selects (RFC 3527).
const LINK_SELECTION: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    Discover,
    Request,
    Decline,
    Release,
    Inform,
}

impl RequestKind {
    fn of(code: u8) -> Option<RequestKind> {
        Some(match code {
            1 => RequestKind::Discover,
            3 => RequestKind::Request,
            4 => RequestKind::Decline,
            7 => RequestKind::Release,
            8 => RequestKind::Inform,
            _ => return None,
        })
    }
}

/// Reason for which a datagram is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Shorter than a header, or without the mark of DHCP.
    Malformed,
    /// A reply, or a BOOTP request.
    OtherMessage,
    /// Not Ethernet, or a group address.
    Hardware,
}

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: RequestKind,
    pub(super) header: Header,
    pub mac: MacAddr,
    pub client_id: Option<Box<[u8]>>,
    /// Address that the client uses.
    pub client_address: Option<Ipv4Addr>,
    /// Address of the relay that forwarded the request.
    pub relay: Option<Ipv4Addr>,
    /// Network that the relay selects instead of its own.
    pub link_selection: Option<Ipv4Addr>,
    pub requested: Option<Ipv4Addr>,
    pub server: Option<Ipv4Addr>,
    pub hostname: Option<String>,
    pub vendor_class: Option<String>,
    /// Codes of the options that the client wants, in its order.
    pub parameters: Option<Box<[u8]>>,
    pub max_size: u16,
    /// Information of the relay, which the reply repeats (RFC 3046).
    pub relay_information: Option<Box<[u8]>>,
}

/// Fields of the header that a reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub xid: [u8; 4],
    pub flags: [u8; 2],
    pub hops: u8,
}

impl Header {
    pub(super) fn is_broadcast(&self) -> bool {
        self.flags[0] & 0x80 != 0
    }
}

/// Options that the server reads.
#[derive(Default)]
struct Options {
    kind: Vec<u8>,
    overload: Vec<u8>,
    client_id: Vec<u8>,
    requested: Vec<u8>,
    server: Vec<u8>,
    hostname: Vec<u8>,
    fqdn: Vec<u8>,
    vendor_class: Vec<u8>,
    parameters: Vec<u8>,
    max_size: Vec<u8>,
    relay_information: Vec<u8>,
    router: Vec<u8>,
}

impl Options {
    fn read(message: &Message<'_>, bytes: &[u8]) -> Options {
        let mut options = Options::default();
        options.take(message.opts());
        let overload = options.overload.first().copied().unwrap_or_default();
        if overload & 1 != 0 {
            options.take(DhcpOptionIterator::new(&bytes[FILE]));
        }
        if overload & 2 != 0 {
            options.take(DhcpOptionIterator::new(&bytes[SERVER_NAME]));
        }
        options
    }

    /// Parts of an option belong together wherever they are (RFC 3396, section 7).
    fn take(&mut self, options: DhcpOptionIterator<'_>) {
        for option in options {
            let value = match option.code() {
                OptionCode::MessageType => &mut self.kind,
                OptionCode::OptionOverload => &mut self.overload,
                OptionCode::ClientIdentifier => &mut self.client_id,
                OptionCode::RequestedIpAddress => &mut self.requested,
                OptionCode::ServerIdentifier => &mut self.server,
                OptionCode::Hostname => &mut self.hostname,
                OptionCode::ClientFQDN => &mut self.fqdn,
                OptionCode::ClassIdentifier => &mut self.vendor_class,
                OptionCode::ParameterRequestList => &mut self.parameters,
                OptionCode::MaxMessageSize => &mut self.max_size,
                OptionCode::RelayAgentInformation => &mut self.relay_information,
                OptionCode::Router => &mut self.router,
                _ => continue,
            };
            value.extend_from_slice(option.data());
        }
    }
}

impl Request {
    pub fn parse(bytes: &[u8]) -> Result<Request, Rejection> {
        let message = message(bytes).ok_or(Rejection::Malformed)?;
        let options = Options::read(&message, bytes);
        let kind = options.kind.first().copied().and_then(RequestKind::of);
        let Some(kind) = kind.filter(|_| message.opcode() == Opcode::BootRequest) else {
            return Err(Rejection::OtherMessage);
        };
        // The library reads an address of any length.
        let mac = MacAddr(*bytes[28..].first_chunk().expect("a header"));
        let is_ethernet = bytes[1] == ETHERNET && bytes[2] == 6;
        if !is_ethernet || mac.is_multicast() || mac.octets() == [0; 6] {
            return Err(Rejection::Hardware);
        }
        let max_size = number(&options.max_size).unwrap_or_default().saturating_sub(IP_AND_UDP);
        Ok(Request {
            kind,
            header: Header {
                xid: message.xid().to_be_bytes(),
                flags: u16::from(message.flags()).to_be_bytes(),
                hops: message.hops(),
            },
            mac,
            client_address: given(message.ciaddr()),
            relay: given(message.giaddr()),
            link_selection: link_selection(&options.relay_information),
            requested: address(&options.requested),
            server: address(&options.server),
            hostname: fqdn(&options.fqdn).or_else(|| host_label(&String::from_utf8_lossy(&options.hostname))),
            vendor_class: printable(&options.vendor_class),
            client_id: boxed(options.client_id, 255),
            parameters: boxed(options.parameters, 255),
            max_size: max_size.clamp(MIN_MAX_SIZE, MAX_SIZE),
            relay_information: boxed(options.relay_information, MAX_RELAY_INFORMATION),
        })
    }

    pub(super) fn key(&self) -> ClientKey {
        ClientKey::new(self.mac, self.client_id.as_deref())
    }
}

/// Message of a server to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerReply {
    pub xid: u32,
    pub server: Ipv4Addr,
    /// Address for the client.
    pub offered: Option<Ipv4Addr>,
    pub router: Option<Ipv4Addr>,
}

impl ServerReply {
    /// Returns the content of an offer or an acknowledgement. `None` for other messages.
    pub fn parse(bytes: &[u8]) -> Option<ServerReply> {
        const OFFER: u8 = 2;
        const ACK: u8 = 5;
        let message = message(bytes)?;
        let options = Options::read(&message, bytes);
        let is_reply =
            message.opcode() == Opcode::BootReply && matches!(options.kind.first(), Some(&OFFER | &ACK));
        Some(ServerReply {
            xid: message.xid(),
            server: address(&options.server)?,
            offered: given(message.yiaddr()),
            router: address(options.router.get(..4).unwrap_or_default()),
        })
        .filter(|_| is_reply)
    }
}

/// Returns a DISCOVER whose answers are broadcast.
pub fn discover(xid: u32, mac: [u8; 6]) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[..4].copy_from_slice(&[1, ETHERNET, 6, 0]);
    message[4..8].copy_from_slice(&xid.to_be_bytes());
    message[10] = 0x80;
    message[28..34].copy_from_slice(&mac);
    message[236..].copy_from_slice(&MAGIC);
    // The kind, the wanted options, and the end.
    message.extend([53, 1, 1, 55, 2, 1, 3, 255]);
    message.resize(dhcproto::v4::MIN_PACKET_SIZE, 0);
    message
}

fn message(bytes: &[u8]) -> Option<Message<'_>> {
    let message = Message::new(bytes).ok()?;
    (bytes[236..HEADER] == MAGIC).then_some(message)
}

fn given(address: Ipv4Addr) -> Option<Ipv4Addr> {
    Some(address).filter(|address| !address.is_unspecified())
}

fn address(value: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = value.try_into().ok()?;
    given(octets.into())
}

fn number(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_be_bytes)
}

fn boxed(value: Vec<u8>, limit: usize) -> Option<Box<[u8]>> {
    (1..=limit).contains(&value.len()).then(|| value.into())
}

/// Returns the label of a client's domain name (RFC 4702, section 2).
fn fqdn(value: &[u8]) -> Option<String> {
    let (head, name) = value.split_first_chunk::<3>()?;
    if head[0] & FQDN_IN_WIRE_FORMAT == 0 {
        return host_label(&String::from_utf8_lossy(name));
    }
    let (length, rest) = name.split_first()?;
    host_label(&String::from_utf8_lossy(rest.get(..usize::from(*length))?))
}

fn printable(value: &[u8]) -> Option<String> {
    let text: String = String::from_utf8_lossy(value)
        .chars()
        .filter(|letter| !letter.is_control() && *letter != char::REPLACEMENT_CHARACTER)
        .take(MAX_VENDOR_CLASS)
        .collect();
    (!text.is_empty()).then_some(text)
}

fn link_selection(mut information: &[u8]) -> Option<Ipv4Addr> {
    while let [code, length, rest @ ..] = information {
        let value = rest.get(..usize::from(*length))?;
        if *code == LINK_SELECTION {
            return address(value);
        }
        information = &rest[value.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(options: &[u8]) -> Vec<u8> {
        let mut message = discover(7, [2, 0, 0, 0, 0, 1]);
        message.truncate(HEADER);
        message.extend(options);
        message
    }

    #[test]
    fn request_shows_what_the_client_sent() {
        let options = [
            &[53, 1, 3, 50, 4, 192, 0, 2, 9, 54, 4, 192, 0, 2, 1, 61, 3, 0, 7, 8, 55, 2, 6, 1][..],
            &[12, 6][..],
            b"TV.lan",
            &[60, 4, b'a', 7, b'b', 0xff, 57, 2, 5, 220, 82, 9, 1, 1, 9, 5, 4, 10, 0, 0, 1, 255][..],
        ]
        .concat();
        let request = Request::parse(&with(&options)).unwrap();
        assert_eq!(request.kind, RequestKind::Request);
        assert_eq!(request.requested, Some(Ipv4Addr::new(192, 0, 2, 9)));
        assert_eq!(request.server, Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(request.client_id.as_deref(), Some(&[0, 7, 8][..]));
        assert_eq!(request.parameters.as_deref(), Some(&[6, 1][..]));
        assert_eq!((request.hostname.as_deref(), request.vendor_class.as_deref()), (Some("tv"), Some("ab")));
        assert_eq!((request.max_size, request.link_selection), (1472, Some(Ipv4Addr::new(10, 0, 0, 1))));
        assert!(request.header.is_broadcast());
    }

    #[test]
    fn options_are_read_from_the_other_fields_and_in_parts() {
        let mut message = with(&[52, 1, 3, 61, 2, 0, 1, 53, 1, 1, 61, 1, 9, 255]);
        message[FILE.start..FILE.start + 7].copy_from_slice(&[50, 4, 192, 0, 2, 5, 255]);
        message[SERVER_NAME.start..SERVER_NAME.start + 5].copy_from_slice(&[12, 2, b'p', b'c', 255]);
        let request = Request::parse(&message).unwrap();
        assert_eq!(request.client_id.as_deref(), Some(&[0, 1, 9][..]));
        assert_eq!(request.requested, Some(Ipv4Addr::new(192, 0, 2, 5)));
        assert_eq!(request.hostname.as_deref(), Some("pc"));
    }

    #[test]
    fn domain_name_of_a_client_wins_over_its_host_name() {
        let request = |fqdn: &[u8]| {
            let length = u8::try_from(fqdn.len()).unwrap();
            let options = [&[53, 1, 1, 12, 1, b'x', 81, length], fqdn, &[255]].concat();
            Request::parse(&with(&options)).unwrap().hostname
        };
        assert_eq!(request(b"\x04\0\0\x02pc\x03lan\0").as_deref(), Some("pc"));
        assert_eq!(request(b"\0\0\0pc.lan").as_deref(), Some("pc"));
        assert_eq!(request(b"\x04\0\0\x09pc").as_deref(), Some("x"), "cut off");
        assert_eq!(request(b"\x04").as_deref(), Some("x"), "too short");
    }

    #[test]
    fn other_messages_are_rejected() {
        let discover = with(&[53, 1, 1, 255]);
        let changed = |at: usize, value: u8| {
            let mut message = discover.clone();
            message[at] = value;
            Request::parse(&message).unwrap_err()
        };
        assert!(Request::parse(&discover).is_ok());
        assert_eq!(Request::parse(&discover[..HEADER - 1]), Err(Rejection::Malformed));
        assert_eq!(changed(236, 0), Rejection::Malformed);
        assert_eq!(changed(0, 2), Rejection::OtherMessage, "a reply");
        assert_eq!(changed(242, 2), Rejection::OtherMessage, "an offer");
        assert_eq!(Request::parse(&with(&[255])), Err(Rejection::OtherMessage), "BOOTP");
        assert_eq!(changed(2, 255), Rejection::Hardware, "an address longer than the field");
        assert_eq!(changed(1, 32), Rejection::Hardware);
        assert_eq!(changed(28, 3), Rejection::Hardware, "a group");
    }

    #[test]
    fn replies_of_servers_are_recognised() {
        let mut offer = with(&[53, 1, 2, 54, 4, 192, 0, 2, 66, 3, 8, 192, 0, 2, 1, 192, 0, 2, 2, 255]);
        assert_eq!(ServerReply::parse(&offer), None, "a request");
        offer[0] = 2;
        offer[16..20].copy_from_slice(&[192, 0, 2, 77]);
        let reply = ServerReply::parse(&offer).unwrap();
        assert_eq!((reply.xid, reply.server), (7, Ipv4Addr::new(192, 0, 2, 66)));
        assert_eq!(reply.offered, Some(Ipv4Addr::new(192, 0, 2, 77)));
        assert_eq!(reply.router, Some(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(ServerReply::parse(&with(&[53, 1, 6, 255])), None);
    }
}

//! Replies to clients.

use std::net::Ipv4Addr;

use dhcproto::Encoder;
use dhcproto::v4::{MAGIC, MIN_PACKET_SIZE, OptionCode, encode_long_opt_bytes};

use super::message::{HEADER, Request};
use super::scope::Scope;

/// Message types (RFC 2132, section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyKind {
    Offer = 2,
    Ack = 5,
    Nak = 6,
}

/// Reply with its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub message: Vec<u8>,
    /// Index of the interface.
    pub interface: u32,
    /// Source address.
    pub server: Ipv4Addr,
    pub to: Destination,
}

/// Destination of a reply (RFC 2131, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Port 67 of the relay.
    Relay(Ipv4Addr),
    /// A client that has its address.
    Client(Ipv4Addr),
    /// A client that has none yet: by its MAC address.
    Hardware([u8; 6], Ipv4Addr),
    Broadcast,
}

/// Content of a reply besides the options of the scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub kind: ReplyKind,
    /// Address for the client.
    pub address: Option<Ipv4Addr>,
    /// Seconds of the lease.
    pub lease_sec: Option<u32>,
    pub hostname: Option<&'a str>,
    pub message: &'a str,
}

const RENEWAL: u8 = 58;
const REBINDING: u8 = 59;
/// Options of fields of the scope, in the order in which clients without a list get them.
const OF_FIELDS: [u8; 6] = [1, 3, 6, 15, 28, 12];
/// Only for clients that ask for it (RFC 8925, section 3.3).
const IPV6_ONLY: u8 = 108;
const CLASSLESS_ROUTES: u8 = 121;
/// RFC 2132, sections 9.4 and 9.5.
const BOOT_SERVER: u8 = 66;
const BOOT_FILE: u8 = 67;
/// A client that refuses an address hears it wherever it is (RFC 2131, section 4.3.2).
const BROADCAST_FLAG: u8 = 0x80;

/// Writes a text that ends with a zero. One that does not fit is left to the option.
fn set_text(field: &mut [u8], text: &[u8]) {
    if text.len() < field.len() {
        field[..text.len()].copy_from_slice(text);
    }
}

impl Scope {
    pub(super) fn reply(&self, request: &Request, terms: Terms<'_>) -> Reply {
        let is_nak = terms.kind == ReplyKind::Nak;
        let to = match (request.relay, request.client_address, terms.address) {
            (Some(relay), ..) => Destination::Relay(relay),
            _ if is_nak => Destination::Broadcast,
            (None, Some(client), _) => Destination::Client(client),
            _ if request.header.is_broadcast() => Destination::Broadcast,
            (None, None, Some(address)) => Destination::Hardware(request.mac.octets(), address),
            (None, None, None) => Destination::Broadcast,
        };
        let mut message = vec![0; HEADER];
        message[..4].copy_from_slice(&[2, super::client_key::ETHERNET, 6, request.header.hops]);
        message[4..8].copy_from_slice(&request.header.xid);
        message[10..12].copy_from_slice(&request.header.flags);
        if is_nak && request.relay.is_some() {
            message[10] |= BROADCAST_FLAG;
        }
        if let Some(client) = request.client_address.filter(|_| !is_nak) {
            message[12..16].copy_from_slice(&client.octets());
        }
        if let Some(address) = terms.address {
            message[16..20].copy_from_slice(&address.octets());
        }
        if let Some(relay) = request.relay {
            message[24..28].copy_from_slice(&relay.octets());
        }
        message[28..34].copy_from_slice(&request.mac.octets());
        if !is_nak {
            self.set_boot_fields(&mut message);
        }
        message[236..].copy_from_slice(&MAGIC);
        self.add_options(&mut message, request, terms);
        message.resize(message.len().max(MIN_PACKET_SIZE), 0);
        Reply { message, interface: self.index, server: self.server, to }
    }

    /// Sets `siaddr`, `sname` and `file` from the options for the boot server and its file: the firmware of many network
    /// cards reads nothing else.
    fn set_boot_fields(&self, message: &mut [u8]) {
        if let Some(server) = self.options.get(&BOOT_SERVER) {
            let address = std::str::from_utf8(server).ok().and_then(|text| text.parse::<Ipv4Addr>().ok());
            if let Some(address) = address {
                message[20..24].copy_from_slice(&address.octets());
            }
            set_text(&mut message[44..108], server);
        }
        if let Some(file) = self.options.get(&BOOT_FILE) {
            set_text(&mut message[108..236], file);
        }
    }

    fn add_options(&self, message: &mut Vec<u8>, request: &Request, terms: Terms<'_>) {
        let relay_information = request.relay_information.as_deref().unwrap_or_default();
        // The end, and the information of the relay before it.
        let reserved = 1 + encoded_length(relay_information);
        let limit = usize::from(request.max_size).saturating_sub(reserved);
        let mut writer = Writer { message, limit };
        writer.add(53, &[terms.kind as u8]);
        writer.add(54, &self.server.octets());
        if let Some(seconds) = terms.lease_sec {
            writer.add(51, &seconds.to_be_bytes());
            let own = |code: u8, seconds: u32| {
                self.options.get(&code).cloned().unwrap_or_else(|| seconds.to_be_bytes().to_vec())
            };
            writer.add(RENEWAL, &own(RENEWAL, seconds / 2));
            writer.add(REBINDING, &own(REBINDING, seconds - seconds / 8));
        }
        // RFC 6842.
        if let Some(identifier) = &request.client_id {
            writer.add(61, identifier);
        }
        if terms.kind == ReplyKind::Nak {
            writer.add(56, terms.message.as_bytes());
        } else {
            for code in self.codes(request) {
                if let Some(value) = self.value(code, request, terms) {
                    writer.add(code, &value);
                }
            }
        }
        writer.limit = usize::MAX;
        writer.add(82, relay_information);
        message.push(255);
    }

    /// Returns the codes of the options to send: those that the client wants, in its order, or all. The mask is first,
    /// as it must be before the router (RFC 2132, section 3.3).
    fn codes(&self, request: &Request) -> Vec<u8> {
        let mut codes = vec![1];
        match &request.parameters {
            Some(wanted) => codes.extend(wanted.iter().copied()),
            None => {
                codes.extend(OF_FIELDS);
                codes.extend(self.options.keys().copied().filter(|code| *code != IPV6_ONLY));
            }
        }
        let mut seen = [false; 256];
        for code in [51, 53, 54, RENEWAL, REBINDING, 61, 82] {
            seen[code as usize] = true;
        }
        codes.retain(|code| !std::mem::replace(&mut seen[usize::from(*code)], true));
        codes
    }

    fn value(&self, code: u8, request: &Request, terms: Terms<'_>) -> Option<Vec<u8>> {
        if let Some(value) = self.options.get(&code) {
            return Some(if code == CLASSLESS_ROUTES { self.routes(value, request) } else { value.clone() });
        }
        match code {
            1 => Some(self.network.netmask().octets().to_vec()),
            3 => self.router_of(request).map(|router| router.octets().to_vec()),
            6 if !self.dns.is_empty() => Some(self.dns.iter().flat_map(Ipv4Addr::octets).collect()),
            12 => terms.hostname.map(|name| name.as_bytes().to_vec()),
            15 if !self.domain.is_empty() => Some(self.domain.as_bytes().to_vec()),
            28 => Some(self.network.broadcast().octets().to_vec()),
            _ => None,
        }
    }

    /// Returns the router of a client. The one of a network without an address of the gateway is the relay.
    fn router_of(&self, request: &Request) -> Option<Ipv4Addr> {
        let relay = request.relay.filter(|relay| self.network.contains(relay));
        self.router.or(if self.on_link { Some(self.server) } else { relay })
    }

    /// Returns the classless routes with a default route: a client that takes them ignores the router (RFC 3442).
    fn routes(&self, value: &[u8], request: &Request) -> Vec<u8> {
        let mut routes = value.to_vec();
        let router = self.router_of(request).filter(|_| !has_default_route(value));
        if let Some(router) = router {
            routes.push(0);
            routes.extend(router.octets());
        }
        routes
    }
}

fn has_default_route(mut routes: &[u8]) -> bool {
    while let [length, rest @ ..] = routes {
        if *length == 0 {
            return true;
        }
        routes = rest.get(usize::from(*length).div_ceil(8) + 4..).unwrap_or_default();
    }
    false
}

/// Options within the size that the client accepts.
struct Writer<'a> {
    message: &'a mut Vec<u8>,
    limit: usize,
}

impl Writer<'_> {
    /// Adds an option, unless it is too long.
    fn add(&mut self, code: u8, value: &[u8]) {
        if self.message.len() + encoded_length(value) > self.limit {
            return;
        }
        let at = self.message.len();
        let mut option = Vec::new();
        encode_long_opt_bytes(OptionCode::from(code), value, &mut Encoder::new(&mut option))
            .expect("a vector grows");
        self.message.extend(option);
        debug_assert!(self.message.len() - at == encoded_length(value));
    }
}

/// Returns the length of an option. A long one has several parts (RFC 3396).
fn encoded_length(value: &[u8]) -> usize {
    value.len() + 2 * value.len().div_ceil(255)
}

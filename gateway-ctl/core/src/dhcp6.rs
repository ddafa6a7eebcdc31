//! Messages of DHCPv6 (RFC 8415), as far as prefix delegation and stateless configuration need them.
//!
//! Decision 0117 says why.

mod delegation;
pub mod stateless;

use std::net::Ipv6Addr;

pub use delegation::{IdentityAssociation, PrefixOption};

/// UDP ports.
pub const CLIENT_PORT: u16 = 546;
pub const SERVER_PORT: u16 = 547;
/// Multicast address of all servers and relay agents of a link.
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Longest identifier (RFC 8415, section 11.1).
const MAX_DUID: usize = 130;

/// Types of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Solicit,
    Advertise,
    Request,
    Renew,
    Rebind,
    Reply,
    Release,
    InformationRequest,
}

const KINDS: [(u8, Kind); 8] = [
    (1, Kind::Solicit),
    (2, Kind::Advertise),
    (3, Kind::Request),
    (5, Kind::Renew),
    (6, Kind::Rebind),
    (7, Kind::Reply),
    (8, Kind::Release),
    (11, Kind::InformationRequest),
];

/// Codes of options.
pub(crate) mod option {
    pub(crate) const CLIENT_ID: u16 = 1;
    pub(crate) const SERVER_ID: u16 = 2;
    pub(crate) const ADDRESSES: u16 = 3;
    pub(crate) const TEMPORARY_ADDRESSES: u16 = 4;
    pub(crate) const REQUESTED: u16 = 6;
    pub(crate) const PREFERENCE: u16 = 7;
    pub(crate) const ELAPSED: u16 = 8;
    pub(crate) const STATUS: u16 = 13;
    pub(crate) const RESOLVERS: u16 = 23;
    pub(crate) const DOMAINS: u16 = 24;
    pub(crate) const PREFIXES: u16 = 25;
    pub(crate) const PREFIX: u16 = 26;
    pub(crate) const REFRESH: u16 = 32;
    pub(crate) const MAX_SOLICIT_INTERVAL: u16 = 82;
}

/// Codes of statuses (RFC 8415, section 21.13). Others are failures, too.
pub(crate) mod status {
    pub(crate) const SUCCESS: u16 = 0;
    pub(crate) const NO_BINDING: u16 = 3;
    pub(crate) const NO_PREFIX: u16 = 6;
}

/// A message between client and server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    /// 24 bits.
    pub transaction: u32,
    pub options: Options,
}

/// Options in their order, each with its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<(u16, Vec<u8>)>);

impl Message {
    pub fn new(kind: Kind, transaction: u32) -> Message {
        Message { kind, transaction: transaction & 0x00ff_ffff, options: Options::default() }
    }

    /// Reads a message. `None` for other types, and if an option is cut off.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let ([kind, transaction @ ..], rest) = bytes.split_first_chunk::<4>()?;
        let kind = KINDS.iter().find(|(code, _)| code == kind)?.1;
        let [high, middle, low] = *transaction;
        let transaction = u32::from_be_bytes([0, high, middle, low]);
        Some(Message { kind, transaction, options: Options::parse(rest)? })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let code = KINDS.iter().find(|(_, kind)| *kind == self.kind).expect("every kind has a code").0;
        let mut bytes = vec![code];
        bytes.extend(&self.transaction.to_be_bytes()[1..]);
        self.options.write(&mut bytes);
        bytes
    }
}

impl Options {
    pub fn parse(mut left: &[u8]) -> Option<Options> {
        let mut options = Vec::new();
        while !left.is_empty() {
            let (head, rest) = left.split_first_chunk::<4>()?;
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let (content, rest) = rest.split_at_checked(length)?;
            options.push((u16::from_be_bytes([head[0], head[1]]), content.to_vec()));
            left = rest;
        }
        Some(Options(options))
    }

    /// Appends an option. One that is too long for the format is left out.
    pub fn push(&mut self, code: u16, content: impl Into<Vec<u8>>) {
        let content = content.into();
        if u16::try_from(content.len()).is_ok() {
            self.0.push((code, content));
        }
    }

    pub fn write(&self, bytes: &mut Vec<u8>) {
        for (code, content) in &self.0 {
            bytes.extend(code.to_be_bytes());
            bytes.extend(u16::try_from(content.len()).expect("checked when it was added").to_be_bytes());
            bytes.extend(content);
        }
    }

    /// Returns the contents of all options with this code.
    pub fn all(&self, code: u16) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(known, _)| *known == code).map(|(_, content)| &content[..])
    }

    /// Returns the content of an option that must occur once. `None` if it occurs several times.
    pub fn one(&self, code: u16) -> Option<&[u8]> {
        let mut all = self.all(code);
        all.next().filter(|_| all.next().is_none())
    }

    /// Returns a valid identifier of a client or a server.
    pub fn duid(&self, code: u16) -> Option<&[u8]> {
        self.one(code).filter(|duid| (3..=MAX_DUID).contains(&duid.len()))
    }

    /// Returns the status code; success without an option.
    pub fn status(&self) -> u16 {
        match self.all(option::STATUS).next() {
            None => status::SUCCESS,
            Some([high, low, ..]) => u16::from_be_bytes([*high, *low]),
            Some(_) => u16::MAX,
        }
    }

    /// Reports whether the client has requested an option.
    pub fn requests(&self, code: u16) -> bool {
        self.all(option::REQUESTED).any(|codes| codes.as_chunks().0.contains(&code.to_be_bytes()))
    }

    /// Returns an option that is a number of 32 bits.
    pub fn number(&self, code: u16) -> Option<u32> {
        self.one(code)?.try_into().ok().map(u32::from_be_bytes)
    }
}

/// Returns the identifier of a host by its MAC address (RFC 8415, section 11.4).
pub fn duid(mac: [u8; 6]) -> Vec<u8> {
    [&[0, 3, 0, 1][..], &mac].concat()
}

#[cfg(test)]
mod tests;

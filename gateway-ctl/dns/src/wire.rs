//! DNS messages on the wire (RFC 1035, RFC 6891). Queries are parsed strictly. Replies of upstreams are encoded again,
//! so that nothing leaves that was not parsed.

pub(crate) mod answer;
pub(crate) mod answer_targets;
pub mod code;
pub(crate) mod compose;
pub(crate) mod name;
pub(crate) mod opt;
pub(crate) mod rdata;
pub(crate) mod record;
pub(crate) mod request;
pub mod stored;
pub(crate) mod svcb;
pub(crate) mod write;

#[cfg(test)]
mod property;

pub use answer::{Answer, RejectedAnswer};
pub use answer_targets::AnswerTargets;
pub use code::{flag, rcode};
pub use compose::Envelope;
pub use gateway_core::dns::rtype;
pub use name::NameBuf;
pub use opt::{Ede, Opt};
pub use record::{RecordRef, Records, Section};
pub use request::{Request, UnusableRequest};
pub use stored::StoredAnswer;
pub use write::Writer;

/// Length of a header.
pub const HEADER: usize = 12;

/// Maximum datagram in either direction, which no path fragments (DNS flag day 2020).
pub const PAYLOAD: usize = 1232;

/// Maximum datagram for clients without EDNS (RFC 1035, section 4.2.1).
pub const PLAIN_PAYLOAD: usize = 512;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

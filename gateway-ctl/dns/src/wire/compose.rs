//! Replies to a client's query from any source. A message that does not fit is truncated to its question with the TC
//! bit (RFC 2181, section 9): a partial answer is none.

use std::net::IpAddr;

use gateway_core::dns::Record;

use super::opt::{Ede, ReplyOpt};
use super::stored::{AnswerAge, StoredAnswer};
use super::{HEADER, Request, Writer, flag, rcode, rtype};

/// Data of a reply besides its records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope<'a> {
    pub rcode: u16,
    pub authoritative: bool,
    /// It was validated.
    pub authentic: bool,
    pub ede: Option<Ede<'a>>,
    /// Maximum size of the message in bytes.
    pub limit: usize,
    /// Idle timeout of the connection in units of 100 ms, for a client that requests it.
    pub keepalive: Option<u16>,
    /// Block length for padding, over encrypted transports only (RFC 8467).
    pub padding: Option<usize>,
}

/// First possible pointer: to the name of the question.
const ASKED: [u8; 2] = [0xc0, HEADER as u8];

impl<'a> Envelope<'a> {
    pub fn with(self, rcode: u16, ede: Option<Ede<'a>>) -> Envelope<'a> {
        Envelope { rcode, ede, authoritative: false, authentic: false, ..self }
    }

    fn begin(&self, out: &mut Vec<u8>, request: &Request<'_>) {
        let mut flags = flag::QR | flag::RA | request.flags & (flag::RD | flag::CD) | self.rcode & 0xf;
        if self.authoritative {
            flags |= flag::AA;
        }
        if self.authentic && request.wants_authentic() {
            flags |= flag::AD;
        }
        out.clear();
        out.extend_from_slice(&request.id.to_be_bytes());
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(request.question);
    }

    fn end(&self, out: &mut Vec<u8>, request: &Request<'_>, counts: [u16; 3]) {
        let opt = request.opt.map(|opt| ReplyOpt {
            rcode: self.rcode,
            dnssec_ok: opt.dnssec_ok,
            ede: self.ede,
            keepalive: self.keepalive.filter(|_| opt.keepalive),
            padding: self.padding.filter(|_| opt.padding),
        });
        let [answers, authorities, additionals] = counts;
        out[6..8].copy_from_slice(&answers.to_be_bytes());
        out[8..10].copy_from_slice(&authorities.to_be_bytes());
        out[10..12].copy_from_slice(&(additionals + u16::from(opt.is_some())).to_be_bytes());
        if let Some(opt) = opt {
            let end = out.len();
            opt.write(out);
            if out.len() > self.limit && opt.padding.is_some() {
                // What fits without padding is not cut for its sake.
                out.truncate(end);
                ReplyOpt { padding: None, ..opt }.write(out);
            }
        }
        if out.len() > self.limit {
            self.truncated(out, request);
        }
    }

    /// No records, but a referral.
    pub fn truncated(&self, out: &mut Vec<u8>, request: &Request<'_>) {
        self.begin(out, request);
        out[2] |= (flag::TC >> 8) as u8;
        let opt = request.opt.map(|opt| ReplyOpt {
            rcode: self.rcode,
            dnssec_ok: opt.dnssec_ok,
            ede: self.ede.map(|ede| Ede { text: "", ..ede }),
            keepalive: None,
            padding: None,
        });
        if let Some(opt) = opt {
            out[11] = 1;
            opt.write(out);
        }
    }

    /// No records.
    pub fn empty(&self, out: &mut Vec<u8>, request: &Request<'_>) {
        self.begin(out, request);
        self.end(out, request, [0; 3]);
    }

    /// Returns the addresses of the queried type. Empty if there are none.
    pub fn addresses(&self, out: &mut Vec<u8>, request: &Request<'_>, addresses: &[IpAddr], ttl: u32) {
        let rtype = |address: &IpAddr| if address.is_ipv4() { rtype::A } else { rtype::AAAA };
        let asked = |address: &&IpAddr| request.qtype == rtype::ANY || request.qtype == rtype(address);
        if !addresses.iter().any(|address| asked(&address)) {
            return self.negative(out, request, ttl);
        }
        self.begin(out, request);
        let mut count = 0;
        for address in addresses.iter().filter(asked) {
            out.extend_from_slice(&ASKED);
            out.extend_from_slice(&rtype(address).to_be_bytes());
            out.extend_from_slice(&[0, 1]);
            out.extend_from_slice(&ttl.to_be_bytes());
            match address {
                IpAddr::V4(address) => {
                    out.extend_from_slice(&[0, 4]);
                    out.extend_from_slice(&address.octets());
                }
                IpAddr::V6(address) => {
                    out.extend_from_slice(&[0, 16]);
                    out.extend_from_slice(&address.octets());
                }
            }
            count += 1;
        }
        self.end(out, request, [count, 0, 0]);
    }

    /// Nothing there, with a SOA record like those of RFC 6303, so that it is remembered for `ttl` (RFC 2308).
    pub fn negative(&self, out: &mut Vec<u8>, request: &Request<'_>, ttl: u32) {
        self.begin(out, request);
        out.extend_from_slice(&ASKED);
        out.extend_from_slice(&[0, rtype::SOA as u8, 0, 1]);
        out.extend_from_slice(&ttl.to_be_bytes());
        let contact = b"\x06nobody\x07invalid\0";
        out.extend_from_slice(&(2 + contact.len() as u16 + 20).to_be_bytes());
        out.extend_from_slice(&ASKED);
        out.extend_from_slice(contact);
        for number in [1, 3600, 1200, 604_800, ttl] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        self.end(out, request, [0, 1, 0]);
    }

    /// Records of the answer, the authority and the additional section.
    pub fn records(&self, out: &mut Vec<u8>, request: &Request<'_>, sections: [&[Record]; 3]) {
        self.begin(out, request);
        let mut writer = Writer::new(out);
        let mut counts = [0u16; 3];
        for (section, count) in sections.into_iter().zip(&mut counts) {
            for record in section {
                if writer.record(record).is_none() {
                    return self.with(rcode::SERVFAIL, self.ede).empty(out, request);
                }
                *count = count.saturating_add(1);
            }
        }
        self.end(out, request, counts);
        let [answers, authorities, additionals] = sections;
        let cut = out[2] & (flag::TC >> 8) as u8 != 0;
        // Additional records are left out first (RFC 2181, section 9); but a referral is none without its glue (RFC 9471).
        if cut && !answers.is_empty() && !additionals.is_empty() {
            self.records(out, request, [answers, authorities, &[]]);
        }
    }

    /// Cached reply, with TTLs reduced by its age.
    pub fn stored(&self, out: &mut Vec<u8>, request: &Request<'_>, stored: &StoredAnswer, age: AnswerAge) {
        self.begin(out, request);
        if out.len() + stored.records().len() > self.limit {
            return self.truncated(out, request);
        }
        stored.append(out, age);
        self.end(out, request, stored.counts());
    }

    /// All types of a name in few words (RFC 8482, section 4.2).
    pub fn any(&self, out: &mut Vec<u8>, request: &Request<'_>) {
        self.begin(out, request);
        out.extend_from_slice(&ASKED);
        out.extend_from_slice(&[0, rtype::HINFO as u8, 0, 1, 0, 0, 14, 16, 0, 9, 7]);
        out.extend_from_slice(b"RFC8482\0");
        self.end(out, request, [1, 0, 0]);
    }
}

/// Reply to an unreadable query: only a header.
pub(crate) fn header_only(out: &mut Vec<u8>, id: u16, flags: u16, rcode: u16) {
    out.clear();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&(flag::QR | flags & (flag::OPCODE | flag::RD) | rcode & 0xf).to_be_bytes());
    out.extend_from_slice(&[0; 8]);
}

//! Queries as sent to upstreams, and the checks of replies before anything reads them.
//!
//! Only these checks decode anything: that the message is a response, that it answers this query, and that it is
//! complete. EDNS without client subnet (RFC 7871), padded on encrypted transports (RFC 8467).

use std::net::IpAddr;
use std::time::Duration;

use gateway_core::dns::{Name, NameRef};

use crate::wire::name::skip;
use crate::wire::opt::{KEEPALIVE, options};
use crate::wire::{HEADER, Records, Section, flag, rtype, u16_at};

/// Answers of this size pass everywhere without fragments (RFC 9715).
pub const UDP_PAYLOAD: u16 = 1232;
/// Queries are padded to a multiple of this (RFC 8467, section 4.1).
const PADDED_TO: usize = 128;

const IN: u16 = 1;
const PADDING: u16 = 12;

pub const NOERROR: u16 = 0;
pub const FORMERR: u16 = 1;
pub const SERVFAIL: u16 = 2;
pub const NXDOMAIN: u16 = 3;

/// Query without its transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamQuery {
    pub name: Name,
    pub qtype: u16,
    /// Recursion desired. Not set for the servers of a zone itself.
    pub recursion: bool,
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
}

/// Form of a query on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryEncoding {
    pub id: u16,
    pub edns: bool,
    pub padded: bool,
    /// Bits for the case of the letters; all zero leaves them small.
    pub case: [u8; 32],
}

impl UpstreamQuery {
    /// The message.
    pub fn message(&self, form: &QueryEncoding) -> Vec<u8> {
        let name = self.name.as_ref().wire();
        let mut out = Vec::with_capacity(PADDED_TO.max(HEADER + name.len() + 4 + 15));
        out.extend_from_slice(&form.id.to_be_bytes());
        out.push(u8::from(self.recursion));
        out.push(u8::from(self.checking_disabled) << 4);
        out.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(form.edns)]);
        mix(name, &form.case, &mut out);
        out.extend_from_slice(&self.qtype.to_be_bytes());
        out.extend_from_slice(&IN.to_be_bytes());
        if form.edns {
            out.push(0);
            out.extend_from_slice(&rtype::OPT.to_be_bytes());
            out.extend_from_slice(&UDP_PAYLOAD.to_be_bytes());
            out.extend_from_slice(&[0, 0, u8::from(self.dnssec_ok) << 7, 0]);
            if form.padded {
                let unpadded = out.len() + 2 + 4;
                let zeros = unpadded.next_multiple_of(PADDED_TO) - unpadded;
                // Both are far below 2^16: a name has at most 255 bytes.
                out.extend_from_slice(&(zeros as u16 + 4).to_be_bytes());
                out.extend_from_slice(&PADDING.to_be_bytes());
                out.extend_from_slice(&(zeros as u16).to_be_bytes());
                out.resize(out.len() + zeros, 0);
            } else {
                out.extend_from_slice(&[0, 0]);
            }
        }
        out
    }
}

/// Letters whose bit is set become large (draft-vixie-dnsext-dns0x20).
fn mix(name: &[u8], case: &[u8; 32], out: &mut Vec<u8>) {
    // Lengths are below 64 and so no letters.
    out.extend(name.iter().enumerate().map(|(at, byte)| {
        let large = case[(at / 8) % case.len()] >> (at % 8) & 1 == 1;
        if large { byte.to_ascii_uppercase() } else { *byte }
    }));
}

/// Returns the question of a message as encoded, with type and class.
pub fn question_of(message: &[u8]) -> Option<&[u8]> {
    let end = skip(message, HEADER)? + 4;
    message.get(HEADER..end)
}

/// Header fields of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader {
    /// With the upper bits from EDNS.
    pub rcode: u16,
    pub truncated: bool,
    pub edns: bool,
    /// Neither answer nor denial: it points to the servers of another zone.
    pub referral: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not a reply to the query.
    Stranger,
    /// It would be one, but for the case of its letters.
    OtherCase,
    /// It is, and cannot be read.
    Broken,
    Fits(ReplyHeader),
}

/// Checks a message against the query.
pub fn check_reply(message: &[u8], sent: &[u8]) -> Verdict {
    let (Some(header), Some(question)) = (message.get(..HEADER), question_of(sent)) else {
        return Verdict::Stranger;
    };
    let response = header[2] & 0x80 != 0;
    let opcode = header[2] >> 3 & 0xf;
    if header[..2] != sent[..2] || !response || opcode != 0 {
        return Verdict::Stranger;
    }
    let questions = u16::from_be_bytes([header[4], header[5]]);
    let rcode = u16::from(header[3] & 0xf);
    if questions == 0 && rcode != NOERROR && rcode != NXDOMAIN && message.len() == HEADER {
        // A server that cannot read a query need not repeat it (FORMERR, RFC 1035, section 4.1.1).
        return Verdict::Fits(ReplyHeader { rcode, truncated: false, edns: false, referral: false });
    }
    let Some(answered) = message.get(HEADER..HEADER + question.len()) else {
        return Verdict::Stranger;
    };
    if questions != 1 || !answered.eq_ignore_ascii_case(question) {
        return Verdict::Stranger;
    }
    // Type and class may have bytes that are letters.
    let name = question.len() - 4;
    if answered[name..] != question[name..] {
        return Verdict::Stranger;
    }
    if answered[..name] != question[..name] {
        return Verdict::OtherCase;
    }
    match read(message, HEADER + question.len(), rcode) {
        Some(head) => Verdict::Fits(head),
        None => Verdict::Broken,
    }
}

/// Walks over the records. A truncated message may end anywhere.
fn read(message: &[u8], at: usize, rcode: u16) -> Option<ReplyHeader> {
    let flags = u16_at(message, 2)?;
    let truncated = flags & flag::TC != 0;
    let mut head = ReplyHeader { rcode, truncated, edns: false, referral: false };
    let (mut answers, mut delegates, mut denies) = (false, false, false);
    for record in Records::from(message, at)? {
        let Ok(record) = record else {
            return truncated.then_some(head);
        };
        match (record.section, record.rtype) {
            (Section::Answer, _) => answers = true,
            (Section::Authority, rtype::NS) => delegates = true,
            (Section::Authority, rtype::SOA) => denies = true,
            (Section::Additional, rtype::OPT) => {
                head.edns = true;
                head.rcode |= (record.ttl >> 24 << 4) as u16;
            }
            _ => {}
        }
    }
    let authoritative = flags & flag::AA != 0;
    head.referral = rcode == NOERROR && delegates && !answers && !denies && !authoritative;
    Some(head)
}

/// Reports whether a reply has an idle timeout for the connection (RFC 7828).
pub fn has_keepalive(message: &[u8]) -> bool {
    let Some(records) = Records::of(message) else {
        return false;
    };
    let mut records = records.map_while(Result::ok).filter(|record| record.rtype == rtype::OPT);
    records.any(|record| options(&message[record.rdata]).flatten().any(|(code, _)| code == KEEPALIVE))
}

/// Restores lower case in the question of a reply: names in the answer point to it.
pub fn unmix(message: &mut [u8]) {
    if let Some(end) = skip(message, HEADER) {
        message[HEADER..end].make_ascii_lowercase();
    }
}

/// Returns the addresses of a reply to `A` or `AAAA`, with the lowest TTL among them. Names of aliases are not checked.
pub fn addresses(message: &[u8], qtype: u16) -> Option<(Vec<IpAddr>, u32)> {
    let (mut found, mut life) = (Vec::new(), u32::MAX);
    for record in Records::of(message)? {
        let record = record.ok()?;
        if record.section != Section::Answer {
            break;
        }
        life = life.min(record.ttl);
        let rdata = &message[record.rdata];
        let four = <[u8; 4]>::try_from(rdata).ok().map(IpAddr::from).filter(|_| qtype == rtype::A);
        let six = <[u8; 16]>::try_from(rdata).ok().map(IpAddr::from).filter(|_| qtype == rtype::AAAA);
        found.extend(four.or(six).filter(|_| record.rtype == qtype));
    }
    Some((found, life))
}

/// Returns the shortest TTL of the answer and authority sections.
pub fn shortest_life(message: &[u8]) -> Option<Duration> {
    let records = Records::of(message)?.map_while(Result::ok);
    let kept = records.filter(|record| record.section != Section::Additional);
    kept.map(|record| Duration::from_secs(record.ttl.into())).min()
}

/// Limits the TTL of all records.
pub fn limit_life(message: &mut [u8], most: u32) {
    let Some(records) = Records::of(message) else {
        return;
    };
    let kept = records.map_while(Result::ok).filter(|record| record.section != Section::Additional);
    let longer: Vec<usize> = kept.filter(|record| record.ttl > most).map(|record| record.ttl_at).collect();
    for at in longer {
        message[at..at + 4].copy_from_slice(&most.to_be_bytes());
    }
}

/// Returns a query that probes whether an upstream replies.
pub fn root_question() -> UpstreamQuery {
    UpstreamQuery {
        name: NameRef::ROOT.to_owned(),
        qtype: rtype::NS,
        recursion: true,
        dnssec_ok: false,
        checking_disabled: false,
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::domain::DomainName;
    use proptest::prelude::*;

    use super::*;

    fn asked(name: &str, qtype: u16) -> UpstreamQuery {
        UpstreamQuery {
            name: Name::from(&DomainName::parse(name).expect("a name")),
            qtype,
            recursion: true,
            dnssec_ok: true,
            checking_disabled: false,
        }
    }

    fn answer(sent: &[u8]) -> Vec<u8> {
        let question = question_of(sent).unwrap();
        let mut out = sent[..2].to_vec();
        out.extend_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        out.extend_from_slice(question);
        out.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
        out
    }

    #[test]
    fn hickory_reads_the_query() {
        let form = QueryEncoding { id: 0x1234, edns: true, padded: true, case: [0xff; 32] };
        let message = asked("www.example.com", 28).message(&form);
        assert_eq!(message.len(), 128);
        let read = hickory_proto::op::Message::from_vec(&message).unwrap();
        assert_eq!(read.id, 0x1234);
        assert!(read.recursion_desired && !read.checking_disabled);
        assert_eq!(read.queries[0].name().to_string(), "WWW.EXAMPLE.COM.");
        let edns = read.edns.as_ref().unwrap();
        assert_eq!(edns.max_payload(), UDP_PAYLOAD);
        assert!(edns.flags().dnssec_ok);
        assert_eq!(edns.options().as_ref().len(), 1, "padding and no client subnet");
    }

    #[test]
    fn only_a_reply_to_the_query_is_accepted() {
        let form = QueryEncoding { id: 7, edns: true, padded: false, case: [0b1010_1010; 32] };
        let sent = asked("www.example.com", 1).message(&form);
        let good = answer(&sent);
        let head = ReplyHeader { rcode: 0, truncated: false, edns: false, referral: false };
        assert_eq!(check_reply(&good, &sent), Verdict::Fits(head));
        let changed = |at: usize, value: u8| {
            let mut message = good.clone();
            message[at] = value;
            check_reply(&message, &sent)
        };
        assert_eq!(changed(1, 8), Verdict::Stranger, "another id");
        assert_eq!(changed(2, 0x01), Verdict::Stranger, "a question");
        assert_eq!(changed(5, 2), Verdict::Stranger, "two questions");
        assert_eq!(changed(13, b'x'), Verdict::Stranger, "another name");
        let end = HEADER + question_of(&sent).unwrap().len();
        assert_eq!(changed(end - 3, 2), Verdict::Stranger, "another type");
        let letter = (13..end).find(|at| good[*at].is_ascii_uppercase()).unwrap();
        assert_eq!(changed(letter, good[letter].to_ascii_lowercase()), Verdict::OtherCase);
        assert_eq!(check_reply(&good[..good.len() - 1], &sent), Verdict::Broken);
        assert_eq!(check_reply(&sent, &sent), Verdict::Stranger);
    }

    #[test]
    fn addresses_are_found_behind_other_records() {
        let sent = asked("a.b", 1).message(&QueryEncoding::default());
        let message = answer(&sent);
        assert_eq!(addresses(&message, 1), Some((vec!["192.0.2.1".parse().unwrap()], 60)));
        assert_eq!(addresses(&message, 28).map(|(found, _)| found.len()), Some(0));
        assert_eq!(shortest_life(&message), Some(Duration::from_secs(60)));
        let mut message = message;
        limit_life(&mut message, 80);
        assert_eq!(shortest_life(&message), Some(Duration::from_secs(60)));
        limit_life(&mut message, 7);
        assert_eq!(shortest_life(&message), Some(Duration::from_secs(7)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_evaluated(bytes in proptest::collection::vec(any::<u8>(), 0..600), tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let sent = asked("www.example.com", 1).message(&QueryEncoding { edns: true, ..QueryEncoding::default() });
            check_reply(&bytes, &sent);
            let mut near = answer(&sent);
            near[6..12].copy_from_slice(&[0, 2, 0, 3, 0, 2]);
            near.extend_from_slice(&tail);
            check_reply(&near, &sent);
            addresses(&near, 1);
            shortest_life(&near);
            shortest_life(&bytes);
            let mut bytes = bytes;
            unmix(&mut bytes);
            limit_life(&mut bytes, 5);
            limit_life(&mut near, 5);
        }

        #[test]
        fn a_fitting_answer_has_its_small_letters_back(case in any::<[u8; 32]>()) {
            let sent = asked("www.example.com", 1).message(&QueryEncoding { case, ..QueryEncoding::default() });
            let mut message = answer(&sent);
            unmix(&mut message);
            prop_assert_eq!(&message[HEADER..HEADER + 17], b"\x03www\x07example\x03com\0");
        }
    }
}

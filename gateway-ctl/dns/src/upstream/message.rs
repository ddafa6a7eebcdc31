//! Questions as they are sent upstream, and what an answer is held against before anybody sees it.
//!
//! Nothing is decoded here beyond what that takes: that the answer is one, that it is to this question, and that it is
//! whole. EDNS without client subnet (RFC 7871), padded where the transport is encrypted (RFC 8467).

use std::net::IpAddr;
use std::time::Duration;

use gateway_core::dns::{Name, NameRef};

/// Answers of this size pass everywhere without fragments (RFC 9715).
pub const UDP_PAYLOAD: u16 = 1232;
/// Queries are padded to a multiple of this (RFC 8467, section 4.1).
const PADDED_TO: usize = 128;
const HEADER: usize = 12;

const OPT: u16 = 41;
const NS: u16 = 2;
const SOA: u16 = 6;
const IN: u16 = 1;
const PADDING: u16 = 12;

pub const NOERROR: u16 = 0;
pub const FORMERR: u16 = 1;
pub const SERVFAIL: u16 = 2;
pub const NXDOMAIN: u16 = 3;

/// What is asked, apart from how it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub name: Name,
    pub qtype: u16,
    /// Wants others to be asked; not set for the servers of a zone itself.
    pub recursion: bool,
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
}

/// How a question is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    pub id: u16,
    pub edns: bool,
    pub padded: bool,
    /// Bits for the case of the letters; all zero leaves them small.
    pub case: [u8; 32],
}

impl Asked {
    /// The message.
    pub fn message(&self, form: &Form) -> Vec<u8> {
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
            out.extend_from_slice(&OPT.to_be_bytes());
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

/// The question of a message as it stands there, with type and class.
pub fn question_of(message: &[u8]) -> Option<&[u8]> {
    let end = skip_name(message, HEADER)? + 4;
    message.get(HEADER..end)
}

/// What an answer says besides its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// With the upper bits from EDNS.
    pub rcode: u16,
    pub truncated: bool,
    pub edns: bool,
    /// Neither answer nor denial: it points to the servers of another zone.
    pub referral: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not an answer to what was asked.
    Stranger,
    /// It would be one, but for the case of its letters.
    OtherCase,
    /// It is, and cannot be read.
    Broken,
    Fits(Head),
}

/// Holds a message against the question that was sent.
pub fn judge(message: &[u8], sent: &[u8]) -> Verdict {
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
        // Who cannot read a question need not repeat it (RFC 1035, section 4.1.1 has FORMERR for that).
        return Verdict::Fits(Head { rcode, truncated: false, edns: false, referral: false });
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
fn read(message: &[u8], mut at: usize, rcode: u16) -> Option<Head> {
    let truncated = message[2] & 0x02 != 0;
    let authoritative = message[2] & 0x04 != 0;
    let count = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let mut head = Head { rcode, truncated, edns: false, referral: false };
    let (mut delegates, mut denies) = (false, false);
    for section in [6, 8, 10] {
        for _ in 0..count(section) {
            let Some((record, next)) = record(message, at) else {
                return truncated.then_some(head);
            };
            at = next;
            match (section, record.rtype) {
                (8, NS) => delegates = true,
                (8, SOA) => denies = true,
                (10, OPT) => {
                    head.edns = true;
                    head.rcode |= ((record.ttl >> 24) as u16) << 4;
                }
                _ => {}
            }
        }
    }
    let answers = count(6);
    head.referral = rcode == NOERROR && answers == 0 && delegates && !denies && !authoritative;
    Some(head)
}

struct Record {
    rtype: u16,
    ttl: u32,
}

fn record(message: &[u8], at: usize) -> Option<(Record, usize)> {
    let at = skip_name(message, at)?;
    let fixed = message.get(at..at + 10)?;
    let rdata = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
    let next = at + 10 + rdata;
    message.get(..next)?;
    let ttl = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    Some((Record { rtype: u16::from_be_bytes([fixed[0], fixed[1]]), ttl }, next))
}

/// Where a name ends that begins here. Pointers lead back, or nowhere.
fn skip_name(message: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let length = *message.get(at)?;
        match length >> 6 {
            0 if length == 0 => return Some(at + 1),
            0 => at += 1 + usize::from(length),
            3 => {
                let to = usize::from(length & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                return (to < start && to >= HEADER).then_some(at + 2);
            }
            _ => return None,
        }
        if at - start > 255 {
            return None;
        }
    }
}

/// Brings the letters of an answer's question back to small ones: names in the answer point there.
pub fn unmix(message: &mut [u8]) {
    if let Some(end) = skip_name(message, HEADER) {
        message[HEADER..end].make_ascii_lowercase();
    }
}

/// The addresses of an answer to `A` or `AAAA`, with the shortest life among them; names on the way are not looked at.
pub fn addresses(message: &[u8], qtype: u16) -> Option<(Vec<IpAddr>, u32)> {
    let mut at = HEADER + question_of(message)?.len();
    let mut found = Vec::new();
    let mut life = u32::MAX;
    for _ in 0..u16::from_be_bytes([*message.get(6)?, *message.get(7)?]) {
        let (record, next) = record(message, at)?;
        let rdata_at = skip_name(message, at)? + 10;
        let rdata = message.get(rdata_at..next)?;
        let address = match (record.rtype == qtype, rdata.len()) {
            (true, 4) => <[u8; 4]>::try_from(rdata).ok().map(IpAddr::from),
            (true, 16) => <[u8; 16]>::try_from(rdata).ok().map(IpAddr::from),
            _ => None,
        };
        found.extend(address);
        life = life.min(record.ttl);
        at = next;
    }
    Some((found, life))
}

/// How long all of the answer and its authorities may be kept.
pub fn shortest_life(message: &[u8]) -> Option<Duration> {
    let mut at = HEADER + question_of(message)?.len();
    let mut life = None::<u32>;
    let count = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
    for _ in 0..usize::from(count(6)?) + usize::from(count(8)?) {
        let (record, next) = record(message, at)?;
        life = Some(life.unwrap_or(u32::MAX).min(record.ttl));
        at = next;
    }
    life.map(|seconds| Duration::from_secs(seconds.into()))
}

/// What is asked to see whether anybody is there.
pub fn root_question() -> Asked {
    Asked {
        name: NameRef::ROOT.to_owned(),
        qtype: NS,
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

    fn asked(name: &str, qtype: u16) -> Asked {
        Asked {
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
    fn a_question_is_what_hickory_reads() {
        let form = Form { id: 0x1234, edns: true, padded: true, case: [0xff; 32] };
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
    fn only_the_answer_to_this_question_fits() {
        let form = Form { id: 7, edns: true, padded: false, case: [0b1010_1010; 32] };
        let sent = asked("www.example.com", 1).message(&form);
        let good = answer(&sent);
        let head = Head { rcode: 0, truncated: false, edns: false, referral: false };
        assert_eq!(judge(&good, &sent), Verdict::Fits(head));
        let changed = |at: usize, value: u8| {
            let mut message = good.clone();
            message[at] = value;
            judge(&message, &sent)
        };
        assert_eq!(changed(1, 8), Verdict::Stranger, "another id");
        assert_eq!(changed(2, 0x01), Verdict::Stranger, "a question");
        assert_eq!(changed(5, 2), Verdict::Stranger, "two questions");
        assert_eq!(changed(13, b'x'), Verdict::Stranger, "another name");
        let end = HEADER + question_of(&sent).unwrap().len();
        assert_eq!(changed(end - 3, 2), Verdict::Stranger, "another type");
        let letter = (13..end).find(|at| good[*at].is_ascii_uppercase()).unwrap();
        assert_eq!(changed(letter, good[letter].to_ascii_lowercase()), Verdict::OtherCase);
        assert_eq!(judge(&good[..good.len() - 1], &sent), Verdict::Broken);
        assert_eq!(judge(&sent, &sent), Verdict::Stranger);
    }

    #[test]
    fn a_pointer_that_leads_forward_is_broken() {
        let sent = asked("a.b", 1).message(&Form::default());
        let mut message = answer(&sent);
        let at = HEADER + question_of(&sent).unwrap().len();
        message[at + 1] = at as u8;
        assert_eq!(judge(&message, &sent), Verdict::Broken);
    }

    #[test]
    fn addresses_are_found_behind_other_records() {
        let sent = asked("a.b", 1).message(&Form::default());
        let message = answer(&sent);
        assert_eq!(addresses(&message, 1), Some((vec!["192.0.2.1".parse().unwrap()], 60)));
        assert_eq!(addresses(&message, 28).map(|(found, _)| found.len()), Some(0));
        assert_eq!(shortest_life(&message), Some(Duration::from_secs(60)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..600), tail in proptest::collection::vec(any::<u8>(), 0..200)) {
            let sent = asked("www.example.com", 1).message(&Form { edns: true, ..Form::default() });
            judge(&bytes, &sent);
            let mut near = answer(&sent);
            near[6..12].copy_from_slice(&[0, 2, 0, 3, 0, 2]);
            near.extend_from_slice(&tail);
            judge(&near, &sent);
            addresses(&near, 1);
            shortest_life(&near);
            shortest_life(&bytes);
            let mut bytes = bytes;
            unmix(&mut bytes);
        }

        #[test]
        fn a_fitting_answer_has_its_small_letters_back(case in any::<[u8; 32]>()) {
            let sent = asked("www.example.com", 1).message(&Form { case, ..Form::default() });
            let mut message = answer(&sent);
            unmix(&mut message);
            prop_assert_eq!(&message[HEADER..HEADER + 17], b"\x03www\x07example\x03com\0");
        }
    }
}

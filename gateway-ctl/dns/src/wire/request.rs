//! Query of a client: a header, exactly one question, perhaps an OPT record.

use gateway_core::dns::{NameRef, Question};

use super::name::NameBuf;
use super::record::{Records, Section};
use super::{HEADER, Opt, PAYLOAD, PLAIN_PAYLOAD, flag, rcode, rtype, u16_at};

/// Opcode 4, at its bit offset.
pub(crate) const NOTIFY: u16 = 4 << 11;

/// A query that can be answered; it borrows its message.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub id: u16,
    pub flags: u16,
    /// Question as sent, with the case of its letters. Type and class are the last four bytes.
    pub question: &'a [u8],
    pub qtype: u16,
    pub qclass: u16,
    pub opt: Option<Opt>,
    name: NameBuf,
}

/// Reason for which a message has no reply by its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableRequest {
    /// Not a query: nothing is sent back, or two servers might answer one another for ever.
    Silent,
    /// Not a query: a NOTIFY of a zone change (RFC 1996).
    Notify,
    /// Only a header is sent back.
    Reply { id: u16, flags: u16, rcode: u16 },
}

impl<'a> Request<'a> {
    pub fn read(message: &'a [u8]) -> Result<Request<'a>, UnusableRequest> {
        let (Some(id), Some(flags), true) = (u16_at(message, 0), u16_at(message, 2), message.len() >= HEADER)
        else {
            return Err(UnusableRequest::Silent);
        };
        if flags & flag::QR != 0 {
            return Err(UnusableRequest::Silent);
        }
        if flags & flag::OPCODE == NOTIFY {
            return Err(UnusableRequest::Notify);
        }
        if flags & flag::OPCODE != 0 {
            return Err(UnusableRequest::Reply { id, flags, rcode: rcode::NOTIMP });
        }
        Self::body(message, id, flags).ok_or(UnusableRequest::Reply { id, flags, rcode: rcode::FORMERR })
    }

    fn body(message: &'a [u8], id: u16, flags: u16) -> Option<Request<'a>> {
        if u16_at(message, 4)? != 1 {
            return None;
        }
        let (name, end) = NameBuf::read(message, HEADER)?;
        // Nothing precedes it that a pointer could lead to.
        if end - HEADER != name.wire().len() {
            return None;
        }
        let question = message.get(HEADER..end + 4)?;
        let mut request = Request {
            id,
            flags,
            question,
            qtype: u16_at(message, end)?,
            qclass: u16_at(message, end + 2)?,
            opt: None,
            name,
        };
        for record in Records::from(message, end + 4)? {
            let record = record.ok()?;
            if record.rtype != rtype::OPT {
                continue;
            }
            if record.section != Section::Additional || message[record.name_at] != 0 || request.opt.is_some()
            {
                return None;
            }
            request.opt = Some(Opt::read(record.class, record.ttl, &message[record.rdata])?);
        }
        Some(request)
    }

    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref().expect("it was read in lower case")
    }

    pub fn asked(&self) -> Question<'_> {
        Question { name: self.name(), qtype: self.qtype }
    }

    pub fn dnssec_ok(&self) -> bool {
        self.opt.is_some_and(|opt| opt.dnssec_ok)
    }

    pub fn checking_disabled(&self) -> bool {
        self.flags & flag::CD != 0
    }

    /// Reports whether the client wants the AD bit (RFC 6840, section 5.7).
    pub fn wants_authentic(&self) -> bool {
        self.flags & flag::AD != 0 || self.dnssec_ok()
    }

    /// Returns the maximum size of a UDP reply.
    pub fn payload(&self) -> usize {
        self.opt.map_or(PLAIN_PAYLOAD, |opt| usize::from(opt.payload).clamp(PLAIN_PAYLOAD, PAYLOAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &[u8] = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x03wWw\x02ab\0\0\x01\0\x01";

    fn with_opt(version: u8, options: &[u8]) -> Vec<u8> {
        let mut message = QUERY.to_vec();
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 0x10, 0, 0, version, 0x80, 0, 0, options.len() as u8]);
        message.extend_from_slice(options);
        message
    }

    #[test]
    fn a_query_is_parsed_in_lower_case_and_stored_as_sent() {
        let request = Request::read(QUERY).expect("a query");
        assert_eq!(request.name().wire(), b"\x03www\x02ab\0");
        assert_eq!(request.question, b"\x03wWw\x02ab\0\0\x01\0\x01");
        assert_eq!((request.id, request.qtype, request.qclass, request.payload()), (0x1234, 1, 1, 512));
    }

    #[test]
    fn responses_are_ignored_and_malformed_queries_get_formerr() {
        let mut response = QUERY.to_vec();
        response[2] |= 0x80;
        assert_eq!(Request::read(&response).err(), Some(UnusableRequest::Silent));
        assert_eq!(Request::read(&QUERY[..11]).err(), Some(UnusableRequest::Silent));
        let error = |message: &[u8]| match Request::read(message) {
            Err(UnusableRequest::Reply { rcode, .. }) => rcode,
            other => panic!("{other:?}"),
        };
        let mut update = QUERY.to_vec();
        update[2] |= 5 << 3;
        assert_eq!(error(&update), rcode::NOTIMP);
        for (at, value) in [(5, 0), (5, 2), (7, 1), (12, 0xc0), (12, 0x40)] {
            let mut message = QUERY.to_vec();
            message[at] = value;
            assert_eq!(error(&message), rcode::FORMERR, "{at} is {value}");
        }
        assert_eq!(error(&QUERY[..QUERY.len() - 1]), rcode::FORMERR);
    }

    #[test]
    fn edns_is_read_once_and_whole() {
        let message = with_opt(0, &[0, 11, 0, 0, 0, 12, 0, 1, 0]);
        let opt = Request::read(&message).expect("a query").opt.expect("EDNS");
        assert_eq!(opt, Opt { payload: 4096, version: 0, dnssec_ok: true, padding: true, keepalive: true });
        assert_eq!(Request::read(&message).expect("a query").payload(), 1232);
        assert_eq!(Request::read(&with_opt(1, &[])).expect("a query").opt.expect("EDNS").version, 1);
        assert!(Request::read(&with_opt(0, &[0, 8, 0, 9, 1])).is_err(), "an option longer than its record");
        let mut twice = with_opt(0, &[]);
        twice[11] = 2;
        twice.extend_from_slice(&[0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Request::read(&twice).is_err(), "two OPT records");
    }
}

//! A transfer as it comes, message by message (RFC 5936, sections 2.2 and 3).
//!
//! A transfer begins and ends with the same SOA record. Records outside of the zone are ignored, invalid transfers are
//! refused; data of unknown types is kept unchanged (RFC 3597).

use gateway_core::dns::{Name, NameRef, Record};

use crate::wire::{HEADER, NameBuf, RecordRef, Records, Section, flag, rcode, rdata, rtype, u16_at};

/// Largest zone.
pub(crate) const RECORDS: usize = 500_000;
pub(crate) const BYTES: usize = 64 << 20;

const IN: u16 = 1;
/// Types that occur in question and additional sections only (RFC 6895, section 3.1).
const META: std::ops::RangeInclusive<u16> = 128..=255;

/// Reason for which messages are not a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferFault {
    #[error("malformed message: sections do not match the header")]
    MalformedMessage,
    #[error("message does not answer the query")]
    Stranger,
    #[error("the server answers {}", rcode::text(*.0))]
    Code(u16),
    #[error("truncated message")]
    Truncated,
    #[error("transfer does not begin with the SOA record of the zone")]
    Start,
    #[error("transfer ends with another SOA record than it began with")]
    Changed,
    #[error("data after the end of the message")]
    Surplus,
    #[error("message without records")]
    Empty,
    #[error("record of a type or class that zones cannot have")]
    Meta,
    #[error("malformed RDATA")]
    Data,
    #[error("the zone is larger than {RECORDS} records or 64 MiB")]
    TooLarge,
}

#[derive(Debug)]
pub(crate) struct Reader {
    apex: Name,
    id: u16,
    /// The SOA record first; none before it came.
    records: Vec<Record>,
    bytes: usize,
    whole: bool,
    /// Records that are not of the zone.
    pub strangers: usize,
}

impl Reader {
    /// Reads messages that answer the query with this id.
    pub(crate) fn new(apex: Name, id: u16) -> Reader {
        Reader { apex, id, records: Vec::new(), bytes: 0, whole: false, strangers: 0 }
    }

    /// Takes in a message. True when it was the last one.
    pub(crate) fn push(&mut self, message: &[u8]) -> Result<bool, TransferFault> {
        if self.whole {
            return Err(TransferFault::Surplus);
        }
        self.bytes = self.bytes.saturating_add(message.len());
        let first = self.records.is_empty();
        let records = open(message, self.id, self.apex.as_ref(), rtype::AXFR, first)?;
        let mut some = false;
        for record in records {
            let record = record.map_err(|_| TransferFault::MalformedMessage)?;
            if record.section == Section::Answer {
                some = true;
                self.take(message, &record)?;
            }
        }
        if some { Ok(self.whole) } else { Err(TransferFault::Empty) }
    }

    fn take(&mut self, message: &[u8], at: &RecordRef) -> Result<(), TransferFault> {
        if self.whole {
            return Err(TransferFault::Surplus);
        }
        if at.class != IN || at.rtype == 0 || at.rtype == rtype::OPT || META.contains(&at.rtype) {
            return Err(TransferFault::Meta);
        }
        let record = read(message, at)?;
        let is_start = record.rtype == rtype::SOA && record.name == self.apex;
        match self.records.first() {
            None if is_start => {}
            None => return Err(TransferFault::Start),
            Some(start) if is_start => {
                self.whole = is_same_start(&start.rdata, &record.rdata);
                return if self.whole { Ok(()) } else { Err(TransferFault::Changed) };
            }
            // A zone has one start.
            Some(_) if record.rtype == rtype::SOA => return Err(TransferFault::Changed),
            Some(_) if !record.name.as_ref().is_within(self.apex.as_ref()) => {
                self.strangers += 1;
                return if self.bytes > BYTES { Err(TransferFault::TooLarge) } else { Ok(()) };
            }
            Some(_) => {}
        }
        // As data without pointers may be longer than it came.
        self.bytes = self.bytes.saturating_add(record.rdata.len().saturating_sub(at.rdata.len()));
        if self.records.len() == RECORDS || self.bytes > BYTES {
            return Err(TransferFault::TooLarge);
        }
        self.records.push(record);
        Ok(())
    }

    /// The records of the zone, the SOA record first; none before the end came.
    pub(crate) fn finish(self) -> Option<Vec<Record>> {
        self.whole.then_some(self.records)
    }
}

/// Names are the same in any case; the numbers at the end are not letters.
fn is_same_start(one: &[u8], other: &[u8]) -> bool {
    let split = |data: &[u8]| data.len().checked_sub(20);
    match (split(one), split(other)) {
        (Some(at), Some(other_at)) => {
            one[at..] == other[other_at..] && one[..at].eq_ignore_ascii_case(&other[..other_at])
        }
        _ => false,
    }
}

/// Returns the records of a reply to the query for this name and type. Except for the `first` message, the question
/// section may be empty.
pub(crate) fn open<'a>(
    message: &'a [u8],
    id: u16,
    name: NameRef<'_>,
    qtype: u16,
    first: bool,
) -> Result<Records<'a>, TransferFault> {
    let flags =
        u16_at(message, 2).filter(|_| message.len() >= HEADER).ok_or(TransferFault::MalformedMessage)?;
    if u16_at(message, 0) != Some(id) || flags & flag::QR == 0 || flags & flag::OPCODE != 0 {
        return Err(TransferFault::Stranger);
    }
    if flags & 0xf != rcode::NOERROR {
        return Err(TransferFault::Code(flags & 0xf));
    }
    if flags & flag::TC != 0 {
        return Err(TransferFault::Truncated);
    }
    let at = match u16_at(message, 4) {
        Some(0) if !first => HEADER,
        Some(1) => {
            let (asked, end) = NameBuf::read(message, HEADER).ok_or(TransferFault::MalformedMessage)?;
            if asked.as_ref() != Some(name) || u16_at(message, end) != Some(qtype) {
                return Err(TransferFault::Stranger);
            }
            if u16_at(message, end + 2) != Some(IN) {
                return Err(TransferFault::Stranger);
            }
            end + 4
        }
        _ => return Err(TransferFault::Stranger),
    };
    Records::from(message, at).ok_or(TransferFault::MalformedMessage)
}

/// A record with its data in full, its owner in lower case.
pub(crate) fn read(message: &[u8], at: &RecordRef) -> Result<Record, TransferFault> {
    let (name, _) = NameBuf::read(message, at.name_at).ok_or(TransferFault::MalformedMessage)?;
    let rdata = rdata::expand(message, at.rtype, at.rdata.clone()).ok_or(TransferFault::Data)?;
    Ok(Record {
        name: name.to_name().ok_or(TransferFault::MalformedMessage)?,
        rtype: at.rtype,
        // The highest bit of a TTL is ignored (RFC 2181, section 8).
        ttl: if at.ttl > i32::MAX as u32 { 0 } else { at.ttl },
        rdata: rdata.into(),
    })
}

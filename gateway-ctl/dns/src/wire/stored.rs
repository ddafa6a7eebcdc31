//! Answer as cached: a whole message to the question in lower case. A reply is a copy of it with another header, a
//! question of the same length, and other TTLs.

use std::net::IpAddr;

use gateway_core::dns::{Name, Question, Record};

use super::{Answer, AnswerTargets, HEADER, Writer, rtype, u16_at, u32_at};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    message: Box<[u8]>,
    /// Offset of the records.
    records_at: usize,
    ttls: Box<[u16]>,
    /// Names that it leads through.
    pub names: Box<[Name]>,
    /// Addresses in it, with their TTLs.
    pub addresses: Box<[(IpAddr, u32)]>,
}

/// Age of a cached answer, for its TTLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerAge {
    /// Fresh; the value is the age in seconds.
    Fresh(u32),
    /// It has expired; the TTLs are so many seconds.
    Stale(u32),
}

impl AnswerAge {
    pub fn left(self, ttl: u32) -> u32 {
        match self {
            AnswerAge::Fresh(seconds) => ttl.saturating_sub(seconds),
            AnswerAge::Stale(ttl) => ttl,
        }
    }
}

/// Bounds of TTLs in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub least: u32,
    pub most: u32,
    /// Upper bound of negative answers.
    pub most_negative: u32,
}

impl StoredAnswer {
    /// None when the message would be too long.
    pub fn new(question: Question<'_>, answer: &Answer, bounds: Bounds) -> Option<StoredAnswer> {
        let mut message = Vec::with_capacity(512);
        message.extend_from_slice(&[0; HEADER]);
        message.extend_from_slice(question.name.wire());
        message.extend_from_slice(&question.qtype.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        let records_at = message.len();
        message[5] = 1;
        message[6..8].copy_from_slice(&u16::try_from(answer.answers.len()).ok()?.to_be_bytes());
        message[8..10].copy_from_slice(&u16::try_from(answer.authorities.len()).ok()?.to_be_bytes());
        let facts = AnswerTargets::of(&answer.answers);
        let mut ttls = Vec::with_capacity(answer.answers.len() + answer.authorities.len());
        let mut writer = Writer::new(&mut message);
        for record in answer.answers.iter().chain(&answer.authorities) {
            ttls.push(u16::try_from(writer.record(record)?).ok()?);
        }
        if message.len() > usize::from(u16::MAX) {
            return None;
        }
        for at in &ttls {
            let at = usize::from(*at);
            let ttl = u32_at(&message, at)?;
            let most = if u16_at(&message, at - 4) == Some(rtype::SOA) && question.qtype != rtype::SOA {
                bounds.most_negative.min(bounds.most)
            } else {
                bounds.most
            };
            message[at..at + 4].copy_from_slice(&ttl.max(bounds.least).min(most).to_be_bytes());
        }
        Some(StoredAnswer {
            records_at,
            message: message.into(),
            ttls: ttls.into(),
            names: facts.names.into(),
            addresses: facts
                .addresses
                .iter()
                .map(|(a, ttl)| (*a, (*ttl).max(bounds.least).min(bounds.most)))
                .collect(),
        })
    }

    /// An answer that is nothing but its code.
    pub fn bare(question: Question<'_>) -> StoredAnswer {
        let mut message = vec![0; HEADER];
        message.extend_from_slice(question.name.wire());
        message.extend_from_slice(&question.qtype.to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        StoredAnswer {
            records_at: message.len(),
            message: message.into(),
            ttls: [].into(),
            names: [].into(),
            addresses: [].into(),
        }
    }

    /// The least TTL of its records; none without records.
    pub fn ttl(&self) -> Option<u32> {
        self.ttls.iter().filter_map(|at| u32_at(&self.message, usize::from(*at))).min()
    }

    /// The name that it answers, in lower case.
    pub fn asked(&self) -> &[u8] {
        &self.message[HEADER..self.records_at - 4]
    }

    pub fn records(&self) -> &[u8] {
        &self.message[self.records_at..]
    }

    pub fn counts(&self) -> [u16; 3] {
        [6, 8, 10].map(|at| u16_at(&self.message, at).unwrap_or(0))
    }

    /// Appends the records after a question for the same name.
    pub fn append(&self, out: &mut Vec<u8>, age: AnswerAge) {
        debug_assert_eq!(out.len(), self.records_at);
        let base = out.len() - self.records_at;
        out.extend_from_slice(self.records());
        for at in &self.ttls {
            let at = usize::from(*at) + base;
            let ttl = u32_at(out, at).unwrap_or(0);
            out[at..at + 4].copy_from_slice(&age.left(ttl).to_be_bytes());
        }
    }

    /// The records in full, with TTLs of this age: answers and authorities.
    pub fn unpack(&self, age: AnswerAge) -> [Vec<Record>; 2] {
        let mut sections = [Vec::new(), Vec::new()];
        for record in super::Records::of(&self.message).into_iter().flatten().flatten() {
            let name =
                super::NameBuf::read(&self.message, record.name_at).and_then(|(name, _)| name.to_name());
            let rdata = super::rdata::expand(&self.message, record.rtype, record.rdata.clone());
            if let (Some(name), Some(rdata)) = (name, rdata) {
                let section = &mut sections[usize::from(record.section != super::Section::Answer)];
                let ttl = age.left(record.ttl);
                section.push(Record { name, rtype: record.rtype, ttl, rdata: rdata.into() });
            }
        }
        sections
    }

    /// Bytes of memory that it takes beside itself.
    pub fn weight(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.as_ref().wire().len() + size_of::<Name>()).sum();
        self.message.len() + 2 * self.ttls.len() + names + size_of_val(&*self.addresses)
    }
}

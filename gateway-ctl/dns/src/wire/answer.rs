//! Reply of an upstream, reduced to the answer: the alias chain from the queried name, the records at its end, their
//! DNSSEC records if requested, and the SOA record of a negative answer. The rest is dropped: it was not queried, and
//! not validated.

use gateway_core::dns::{Name, NameRef, Question, Record};

use super::name::NameBuf;
use super::record::{RecordRef, Records, Section};
use super::{flag, opt, rcode, rdata, rtype, u16_at};

/// Longest chain that is followed.
const CHAIN: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub rcode: u16,
    pub answers: Vec<Record>,
    pub authorities: Vec<Record>,
    /// Extended DNS error of the upstream (RFC 8914).
    pub ede: Option<(u16, String)>,
    /// TTL in seconds. `None` if no record has one.
    pub ttl: Option<u32>,
}

/// Reason for which an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectedAnswer {
    #[error("malformed answer: sections do not match the header")]
    MalformedMessage,
    #[error("message is not a response")]
    NoResponse,
    #[error("answer to another question")]
    OtherQuestion,
    #[error("truncated answer")]
    Truncated,
    #[error("malformed RDATA")]
    Data,
    #[error("CNAME loop in the answer")]
    Circle,
}

impl From<super::record::MalformedMessage> for RejectedAnswer {
    fn from(_: super::record::MalformedMessage) -> RejectedAnswer {
        RejectedAnswer::MalformedMessage
    }
}

impl Answer {
    /// DNSSEC records are kept if `dnssec_ok`.
    pub fn read(message: &[u8], question: Question<'_>, dnssec_ok: bool) -> Result<Answer, RejectedAnswer> {
        let flags = u16_at(message, 2).ok_or(RejectedAnswer::MalformedMessage)?;
        if flags & flag::QR == 0 || flags & flag::OPCODE != 0 {
            return Err(RejectedAnswer::NoResponse);
        }
        if flags & flag::TC != 0 {
            return Err(RejectedAnswer::Truncated);
        }
        let records = match u16_at(message, 4) {
            Some(1) => behind_question(message, question)?,
            _ => return Err(RejectedAnswer::OtherQuestion),
        };
        let mut answer = Answer { rcode: flags & 0xf, ..Answer::default() };
        let (mut answers, mut authorities) = (Vec::new(), Vec::new());
        for record in records {
            let record = record?;
            match record.section {
                _ if record.rtype == rtype::OPT => {
                    answer.rcode |= (record.ttl >> 24 << 4) as u16;
                    answer.ede = opt::extended_error(&message[record.rdata]);
                }
                Section::Answer if record.class == 1 => answers.push(read(message, &record)?),
                Section::Authority if record.class == 1 => authorities.push(record),
                _ => {}
            }
        }
        let chain = AliasChain::of(question, &answers)?;
        chain.keep(&mut answers, dnssec_ok);
        let last = chain.names.last().unwrap_or(&chain.first);
        let positive = answers.iter().any(|record| chain.ends(record));
        if matches!(answer.rcode, rcode::NOERROR | rcode::NXDOMAIN) {
            for record in &authorities {
                let proof = matches!(record.rtype, rtype::RRSIG | rtype::NSEC | rtype::NSEC3) && dnssec_ok;
                let negative = record.rtype == rtype::SOA && !positive;
                if proof || negative {
                    let record = read(message, record)?;
                    if !negative || last.as_ref().is_within(record.name.as_ref()) {
                        answer.authorities.push(record);
                    }
                }
            }
            if positive {
                // Signatures of the SOA record that was dropped prove nothing.
                answer.authorities.retain(|record| !covers(record, rtype::SOA));
            }
        }
        answer.answers = answers;
        answer.limit_ttl(positive);
        Ok(answer)
    }

    /// The TTL of the whole: the least of its records, for a negative one that of RFC 2308, section 5.
    fn limit_ttl(&mut self, positive: bool) {
        if !positive {
            for soa in self.authorities.iter_mut().filter(|record| record.rtype == rtype::SOA) {
                let tail = soa.rdata.len().checked_sub(4);
                let minimum = tail.and_then(|at| super::u32_at(&soa.rdata, at)).unwrap_or(0);
                soa.ttl = soa.ttl.min(minimum);
            }
        }
        let negative = self.authorities.iter().any(|record| record.rtype == rtype::SOA);
        let all = self.answers.iter().chain(&self.authorities);
        self.ttl = match positive || negative {
            true => all.map(|record| record.ttl).min(),
            false => None,
        };
    }

    /// Reports whether the answer is negative.
    pub fn is_negative(&self) -> bool {
        self.rcode == rcode::NXDOMAIN || self.authorities.iter().any(|record| record.rtype == rtype::SOA)
    }
}

fn behind_question<'a>(message: &'a [u8], question: Question<'_>) -> Result<Records<'a>, RejectedAnswer> {
    let (name, end) = NameBuf::read(message, super::HEADER).ok_or(RejectedAnswer::MalformedMessage)?;
    let qtype = u16_at(message, end).ok_or(RejectedAnswer::MalformedMessage)?;
    if name.wire() != question.name.wire() || qtype != question.qtype || u16_at(message, end + 2) != Some(1) {
        return Err(RejectedAnswer::OtherQuestion);
    }
    Records::from(message, end + 4).ok_or(RejectedAnswer::MalformedMessage)
}

fn read(message: &[u8], record: &RecordRef) -> Result<Record, RejectedAnswer> {
    let (name, _) = NameBuf::read(message, record.name_at).ok_or(RejectedAnswer::MalformedMessage)?;
    let rdata = rdata::expand(message, record.rtype, record.rdata.clone()).ok_or(RejectedAnswer::Data)?;
    Ok(Record {
        name: name.to_name().ok_or(RejectedAnswer::MalformedMessage)?,
        rtype: record.rtype,
        // The highest bit of a TTL is ignored (RFC 2181, section 8).
        ttl: if record.ttl > i32::MAX as u32 { 0 } else { record.ttl },
        rdata: rdata.into(),
    })
}

/// The type that a signature is for.
fn covers(record: &Record, rtype: u16) -> bool {
    record.rtype == rtype::RRSIG && u16_at(&record.rdata, 0) == Some(rtype)
}

struct AliasChain {
    qtype: u16,
    first: Name,
    /// The aliases' targets, in turn.
    names: Vec<Name>,
}

impl AliasChain {
    fn of(question: Question<'_>, answers: &[Record]) -> Result<AliasChain, RejectedAnswer> {
        let mut chain =
            AliasChain { qtype: question.qtype, first: question.name.to_owned(), names: Vec::new() };
        if matches!(question.qtype, rtype::CNAME | rtype::ANY) {
            return Ok(chain);
        }
        loop {
            let last = chain.names.last().unwrap_or(&chain.first);
            let Some(alias) = answers.iter().find(|r| r.rtype == rtype::CNAME && r.name == *last) else {
                return Ok(chain);
            };
            let target = NameBuf::read(&alias.rdata, 0).and_then(|(name, _)| name.to_name());
            let target = target.ok_or(RejectedAnswer::Data)?;
            if chain.index(target.as_ref()).is_some() || chain.names.len() == CHAIN {
                return Err(RejectedAnswer::Circle);
            }
            chain.names.push(target);
        }
    }

    fn index(&self, name: NameRef<'_>) -> Option<usize> {
        std::iter::once(&self.first).chain(&self.names).position(|there| there.as_ref() == name)
    }

    /// Reports whether the record answers the question.
    fn ends(&self, record: &Record) -> bool {
        (record.rtype == self.qtype || self.qtype == rtype::ANY)
            && self.index(record.name.as_ref()) == Some(self.names.len())
    }

    /// Drops records outside of the chain and orders the rest.
    fn keep(&self, answers: &mut Vec<Record>, dnssec_ok: bool) {
        let mut aliases = vec![false; self.names.len()];
        let mut kept: Vec<(usize, Record)> = Vec::with_capacity(answers.len());
        for record in answers.drain(..) {
            let index = self.index(record.name.as_ref());
            let index = match (index, record.rtype) {
                (Some(_), _) if self.ends(&record) => index,
                (Some(index), rtype::CNAME) if index < self.names.len() && !aliases[index] => {
                    aliases[index] = true;
                    Some(index)
                }
                (Some(index), rtype::RRSIG) if dnssec_ok => Some(index),
                // A DNAME applies to all names below it (RFC 6672); the synthesised alias is in the chain.
                (_, rtype::DNAME) => self.below(&record),
                (_, rtype::RRSIG) if dnssec_ok && covers(&record, rtype::DNAME) => self.below(&record),
                _ => None,
            };
            kept.extend(index.map(|index| (index, record)));
        }
        kept.sort_by_key(|(index, _)| *index);
        kept.dedup_by(|(_, a), (_, b)| a == b);
        answers.extend(kept.into_iter().map(|(_, record)| record));
    }

    /// The first name of the chain that an alias of a whole domain leads on.
    fn below(&self, alias: &Record) -> Option<usize> {
        let mut owners = std::iter::once(&self.first).chain(&self.names).take(self.names.len());
        owners.position(|name| *name != alias.name && name.as_ref().is_within(alias.name.as_ref()))
    }
}

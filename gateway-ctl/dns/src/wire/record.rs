//! Records of a message, one after the other.

use std::ops::Range;

use super::name::skip;
use super::{HEADER, u16_at, u32_at};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Answer,
    Authority,
    Additional,
}

/// Position of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRef {
    pub section: Section,
    pub name_at: usize,
    pub rtype: u16,
    pub class: u16,
    pub ttl: u32,
    pub ttl_at: usize,
    pub rdata: Range<usize>,
}

/// Iterates over the records after the question section. Ends with an error if the message does not match its header.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    message: &'a [u8],
    at: usize,
    counts: [u16; 3],
    failed: bool,
}

/// The message ends early, or a name of it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: fewer records than the header counts")]
pub struct MalformedMessage;

impl<'a> Records<'a> {
    /// `None` without a header, or if the question section is malformed.
    pub fn of(message: &'a [u8]) -> Option<Records<'a>> {
        let mut at = HEADER;
        for _ in 0..u16_at(message, 4)? {
            at = skip(message, at)? + 4;
        }
        Self::from(message, at)
    }

    /// Iterates like `of`, with the known end of the question section.
    pub fn from(message: &'a [u8], at: usize) -> Option<Records<'a>> {
        let counts = [u16_at(message, 6)?, u16_at(message, 8)?, u16_at(message, 10)?];
        Some(Records { message, at, counts, failed: at > message.len() })
    }

    fn read(&self, section: Section) -> Option<RecordRef> {
        let name_at = self.at;
        let at = skip(self.message, name_at)?;
        let length = usize::from(u16_at(self.message, at + 8)?);
        self.message.get(at + 10..at + 10 + length)?;
        Some(RecordRef {
            section,
            name_at,
            rtype: u16_at(self.message, at)?,
            class: u16_at(self.message, at + 2)?,
            ttl: u32_at(self.message, at + 4)?,
            ttl_at: at + 4,
            rdata: at + 10..at + 10 + length,
        })
    }
}

impl Iterator for Records<'_> {
    type Item = Result<RecordRef, MalformedMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.counts.iter().position(|count| *count > 0)?;
        if self.failed {
            return None;
        }
        let section = [Section::Answer, Section::Authority, Section::Additional][index];
        match self.read(section) {
            Some(record) => {
                self.counts[index] -= 1;
                self.at = record.rdata.end;
                Some(Ok(record))
            }
            None => {
                self.failed = true;
                Some(Err(MalformedMessage))
            }
        }
    }
}

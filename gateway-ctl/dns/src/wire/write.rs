//! Encodes records after a question, with compressed names where allowed (RFC 1035, section 4.1.4).

use gateway_core::dns::Record;

use super::{HEADER, rdata};

/// Maximum number of remembered offsets. Later names are written in full.
const MAX_POINTER_TARGETS: usize = 64;
/// Pointers reach no further.
const REACH: usize = 0x3fff;

/// Appends to a message that begins at the start of its buffer and holds header and question.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    offsets: [u16; MAX_POINTER_TARGETS],
    used: usize,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        let mut writer = Writer { out, offsets: [0; MAX_POINTER_TARGETS], used: 0 };
        writer.remember(HEADER);
        writer
    }

    /// Remembers the name at `at` and its parents, as far as they are written in full.
    fn remember(&mut self, mut at: usize) {
        while let Some(length @ 1..=63) = self.out.get(at).copied() {
            if self.used == MAX_POINTER_TARGETS || at > REACH {
                return;
            }
            self.offsets[self.used] = at as u16;
            self.used += 1;
            at += 1 + usize::from(length);
        }
    }

    /// Encodes the record and returns the offset of its TTL. `None` if its data does not match its type.
    pub fn record(&mut self, record: &Record) -> Option<usize> {
        let pieces = match rdata::compressible(record.rtype) {
            true => Some(rdata::pieces(record.rtype, &record.rdata)?),
            false => None,
        };
        self.name(record.name.as_ref().wire());
        let ttl_at = self.out.len() + 4;
        self.out.extend_from_slice(&record.rtype.to_be_bytes());
        self.out.extend_from_slice(&[0, 1]);
        self.out.extend_from_slice(&record.ttl.to_be_bytes());
        let length_at = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        match pieces {
            None => self.out.extend_from_slice(&record.rdata),
            Some(pieces) => {
                for (named, piece) in pieces {
                    match named {
                        true => self.name(piece),
                        false => self.out.extend_from_slice(piece),
                    }
                }
            }
        }
        let length = u16::try_from(self.out.len() - length_at - 2).ok()?;
        self.out[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        Some(ttl_at)
    }

    fn name(&mut self, name: &[u8]) {
        let start = self.out.len();
        let mut at = 0;
        while let Some(length @ 1..) = name.get(at).map(|length| usize::from(*length)) {
            let rest = &name[at..];
            let offset =
                self.offsets[..self.used].iter().find(|offset| self.matches_at(usize::from(**offset), rest));
            if let Some(offset) = offset.copied() {
                self.out.extend_from_slice(&(0xc000 | offset).to_be_bytes());
                self.remember(start);
                return;
            }
            self.out.extend_from_slice(&name[at..(at + 1 + length).min(name.len())]);
            at += 1 + length;
        }
        self.out.push(0);
        self.remember(start);
    }

    /// Compares a name with the one at an offset, case-insensitively.
    fn matches_at(&self, mut at: usize, name: &[u8]) -> bool {
        let mut used = 0;
        // Places hold names that were written here: their pointers lead backwards.
        loop {
            match self.out.get(at).map(|length| usize::from(*length)) {
                Some(0) => return name.get(used) == Some(&0) && used + 1 == name.len(),
                Some(length @ 1..=63) => {
                    let end = used + 1 + length;
                    match (self.out.get(at..at + 1 + length), name.get(used..end)) {
                        (Some(here), Some(there)) if here.eq_ignore_ascii_case(there) => {}
                        _ => return false,
                    }
                    (at, used) = (at + 1 + length, end);
                }
                Some(high @ 0xc0..) => match self.out.get(at + 1) {
                    Some(low) => at = (high & 0x3f) << 8 | usize::from(*low),
                    None => return false,
                },
                _ => return false,
            }
        }
    }
}

//! Records of the history of plans, as bytes.

use jiff::Timestamp;

use super::parts::Part;

/// Length of a header.
const HEADER: usize = 52;
const VERSION: u8 = 1;
/// Maximum length of a payload, in bytes. Inputs are never larger; a larger record is damaged.
pub const MAX_PAYLOAD: u32 = 1 << 28;
/// Length that says that a part is gone.
const GONE: u32 = u32::MAX;

/// Content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// All inputs of a plan.
    Whole,
    /// Inputs that changed since the record before.
    Change,
    /// From here on it is not known which plan was in force, until the next record.
    Unknown,
}

/// Fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub content: Content,
    /// Generation of the plan in force.
    pub generation: u32,
    /// Time from which it was in force with these inputs.
    pub at: Timestamp,
    /// Time at which the plan was compiled.
    pub compiled_at: Timestamp,
    /// Revision of the state.
    pub revision: u64,
    /// Digest of the plan.
    pub digest: u64,
}

/// Record that is read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRecord<'a> {
    pub header: RecordHeader,
    /// Parts, as the writer has compressed them.
    pub payload: &'a [u8],
}

impl Content {
    const fn code(self) -> u8 {
        match self {
            Content::Whole => 1,
            Content::Change => 2,
            Content::Unknown => 3,
        }
    }

    fn of_code(code: u8) -> Option<Content> {
        [Content::Whole, Content::Change, Content::Unknown].into_iter().find(|content| content.code() == code)
    }
}

impl<'a> PlanRecord<'a> {
    /// Returns the number of bytes of the record.
    pub fn length(&self) -> usize {
        HEADER + self.payload.len()
    }

    /// Writes the record. `None` if its payload is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let length = u32::try_from(self.payload.len()).ok().filter(|length| *length <= MAX_PAYLOAD)?;
        let RecordHeader { content, generation, at, compiled_at, revision, digest } = self.header;
        let mut bytes = Vec::with_capacity(self.length());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&[VERSION, content.code(), 0, 0]);
        bytes.extend_from_slice(&generation.to_le_bytes());
        bytes.extend_from_slice(&nanoseconds(at)?.to_le_bytes());
        bytes.extend_from_slice(&nanoseconds(compiled_at)?.to_le_bytes());
        bytes.extend_from_slice(&revision.to_le_bytes());
        bytes.extend_from_slice(&digest.to_le_bytes());
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(self.payload);
        Some(bytes)
    }

    /// Reads the first record of these bytes. `None` if they do not begin with one.
    pub fn decode(bytes: &'a [u8]) -> Option<PlanRecord<'a>> {
        let header = bytes.get(..HEADER)?;
        let u32_at = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let u64_at = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let time_at = |at| Timestamp::from_nanosecond(u64_at(at).cast_signed().into()).ok();
        if header[4] != VERSION || u32_at(44) != checksum(&header[..44]) || u32_at(0) > MAX_PAYLOAD {
            return None;
        }
        let length = usize::try_from(u32_at(0)).ok()?;
        Some(PlanRecord {
            header: RecordHeader {
                content: Content::of_code(header[5])?,
                generation: u32_at(8),
                at: time_at(12)?,
                compiled_at: time_at(20)?,
                revision: u64_at(28),
                digest: u64_at(36),
            },
            payload: bytes.get(HEADER..)?.get(..length)?,
        })
    }
}

/// Returns the checksum of a header: what follows a record that is not whole is no header.
fn checksum(header: &[u8]) -> u32 {
    crc32fast::hash(header)
}

fn nanoseconds(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// Writes a part. `None` if it is too long.
pub fn encode_part(part: &Part) -> Option<Vec<u8>> {
    let value = part.value.as_deref();
    let length =
        value.map_or(Some(GONE), |value| u32::try_from(value.len()).ok().filter(|length| *length < GONE))?;
    let mut bytes = u16::try_from(part.key.len()).ok()?.to_le_bytes().to_vec();
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(part.key.as_bytes());
    bytes.extend_from_slice(value.unwrap_or_default());
    Some(bytes)
}

/// Reads parts that follow each other. `None` if the bytes are anything else.
pub fn decode_parts(mut bytes: &[u8]) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (key_length, rest) = bytes.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(u16::from_le_bytes(*key_length).into())?;
        let key = str::from_utf8(key).ok()?.to_owned();
        let value = match u32::from_le_bytes(*length) {
            GONE => {
                bytes = rest;
                None
            }
            length => {
                let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                bytes = rest;
                Some(value.to_vec())
            }
        };
        parts.push(Part { key, value });
    }
    Some(parts)
}

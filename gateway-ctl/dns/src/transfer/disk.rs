//! Last good transfer of a zone on disk: a line of metadata, then the records.

use std::fs;
use std::io;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::zones::{Copy, Times, numbers};
use gateway_core::dns::{Name, NameRef, Record};
use gateway_core::hexadecimal;
use gateway_model::Id;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::reader::{BYTES, RECORDS};
use crate::downloads::DiskCache;
use crate::hooks::Secondary;
use crate::wire::{u16_at, u32_at};

pub(super) const COPIES: DiskCache = DiskCache("zone");
/// Longest file: each record has its name and ten bytes.
const MAX_FILE_BYTES: u64 = BYTES as u64 + RECORDS as u64 * (255 + 10) + 4096;

/// Metadata of a zone on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ZoneHeader {
    zone: String,
    /// The server that gave it.
    by: String,
    pub fetched: Timestamp,
    /// SHA-256 of the records: a disk may give back something else.
    digest: String,
}

impl ZoneHeader {
    pub(super) fn new(zone: &Name, by: &str, fetched: Timestamp, body: &[u8]) -> ZoneHeader {
        ZoneHeader { zone: zone.to_string(), by: by.to_owned(), fetched, digest: digest_of(body) }
    }

    /// Reports whether it is of the zone, by one of its primaries.
    pub(super) fn is_of(&self, zone: &Secondary) -> bool {
        self.zone == zone.zone.to_string() && zone.servers.iter().any(|server| *server.shown == *self.by)
    }
}

/// A zone with its refresh timers.
#[derive(Debug)]
pub(super) struct CompleteZone {
    pub head: ZoneHeader,
    pub copy: Copy,
    pub times: Times,
}

fn digest_of(body: &[u8]) -> String {
    hexadecimal::hex(digest(&SHA256, body).as_ref())
}

/// Records, the SOA record first: name, type, TTL, length, data.
pub(super) fn body(records: &[Record]) -> Vec<u8> {
    let mut body = Vec::with_capacity(records.iter().map(|record| record.rdata.len() + 40).sum());
    for record in records {
        body.extend_from_slice(record.name.as_ref().wire());
        body.extend_from_slice(&record.rtype.to_be_bytes());
        body.extend_from_slice(&record.ttl.to_be_bytes());
        // Data came in a message.
        body.extend_from_slice(&(record.rdata.len() as u16).to_be_bytes());
        body.extend_from_slice(&record.rdata);
    }
    body
}

fn records(body: &[u8]) -> Option<Vec<Record>> {
    let (mut records, mut at) = (Vec::new(), 0);
    while at < body.len() {
        let end = crate::wire::name::skip(body, at)?;
        let name = NameRef::new(body.get(at..end)?)?.to_owned();
        let (rtype, ttl) = (u16_at(body, end)?, u32_at(body, end + 2)?);
        at = end + 8 + usize::from(u16_at(body, end + 6)?);
        records.push(Record { name, rtype, ttl, rdata: body.get(end + 8..at)?.into() });
    }
    Some(records)
}

/// Returns the cached zone and the time of its last confirmation. `None` if there is none, or if the file is of another
/// zone.
pub(super) fn read(
    folder: &Path,
    zone: &Secondary,
    key: Key,
) -> io::Result<Option<(CompleteZone, Timestamp)>> {
    let path = COPIES.path(folder, zone.id);
    let about = match fs::metadata(&path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "it is not what was written");
    if about.len() > MAX_FILE_BYTES {
        return Err(broken());
    }
    let file = fs::read(&path)?;
    let line = file.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
    let head: ZoneHeader = serde_json::from_slice(&file[..line])?;
    if !head.is_of(zone) {
        return Ok(None);
    }
    let body = &file[line + 1..];
    if digest_of(body) != head.digest {
        return Err(broken());
    }
    let records = records(body).ok_or_else(broken)?;
    let times = records.first().and_then(|soa| numbers(&soa.rdata)).ok_or_else(broken)?;
    let copy = Copy::new(&zone.zone, records, key).map_err(io::Error::other)?;
    let checked = Timestamp::try_from(about.modified()?).unwrap_or(head.fetched);
    Ok(Some((CompleteZone { head, copy, times }, checked)))
}

pub(super) fn write(folder: &Path, id: Id, head: &ZoneHeader, body: &[u8]) -> io::Result<()> {
    let mut draft = COPIES.draft(folder, id, head)?;
    draft.write(body)?;
    draft.keep()
}

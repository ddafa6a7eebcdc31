//! Disk cache of the last good download of a list: a line with its source, then the list unchanged.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::lists::{List, Reader};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::subscription::Subscription;
use crate::downloads::DiskCache;

pub(super) const COPIES: DiskCache = DiskCache("list");
/// Maximum length of the first line, in bytes.
const MAX_HEAD_BYTES: u64 = 16 * 1024;
const PIECE: usize = 64 * 1024;

/// Metadata of a download: its URL, the validators that the server sent, and the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListHeader {
    pub url: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub fetched: Timestamp,
}

pub(super) struct Copy {
    pub head: ListHeader,
    pub list: List,
    pub checked: Timestamp,
}

/// Reads the cached list. Returns `None` if there is none, or if it has another URL.
pub(super) fn read(folder: &Path, subscription: &Subscription, key: Key) -> io::Result<Option<Copy>> {
    let file = match File::open(COPIES.path(folder, subscription.id)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let checked = file.metadata()?.modified()?;
    let mut file = BufReader::with_capacity(PIECE, file);
    let mut line = Vec::new();
    file.by_ref().take(MAX_HEAD_BYTES).read_until(b'\n', &mut line)?;
    let head: ListHeader = serde_json::from_slice(&line)?;
    if head.url != subscription.url {
        return Ok(None);
    }
    // The bound may have been lowered since the list was fetched.
    let max_entries = subscription.limits.max_entries;
    let too_many = || io::Error::other(Error::TooManyEntries(max_entries).to_string());
    let mut reader = Reader::new(subscription.format, key).keeping_servers(subscription.keeps_servers);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        reader.push(piece);
        if reader.taken() > max_entries {
            return Err(too_many());
        }
        let length = piece.len();
        file.consume(length);
    }
    let checked = Timestamp::try_from(checked).unwrap_or(head.fetched);
    let list = reader.finish();
    if list.report.taken > max_entries {
        return Err(too_many());
    }
    // Earlier versions stored pages that have a name on a line.
    if list.report.page.is_page(list.report.taken, false) {
        return Err(io::Error::other(Error::Page.to_string()));
    }
    Ok(Some(Copy { head, list, checked }))
}

//! Published lists of names and addresses: hosts files, plain names, the part of adblock syntax that applies to DNS,
//! response policy zones, addresses.
//!
//! A list is parsed as it arrives, in chunks of any size; its text is not kept. Lines that cannot be parsed are
//! counted, and the first few are reported with line and reason.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::address_set::{NetCollector, Nets};
use super::domain_set::{Key, NameCollector, Names};
use crate::doh_servers::FeedServers;

mod adblock;
mod detect;
mod entries;
mod format;
mod page;
mod plain;
mod read_name;
mod rpz;
#[cfg(test)]
mod tests;

use entries::ListCollector;
pub use entries::{Answer, ListRule, ListRuleEffect, Note, Reason, ReasonCount, Report};
pub use format::Format;
pub use page::PageSigns;

/// Parsed list.
#[derive(Clone, Debug)]
pub struct List {
    pub format: Format,
    pub names: Names,
    /// Entries that are more than a name.
    pub rules: Vec<ListRule>,
    /// Networks that addresses of answers are checked against.
    pub nets: Nets,
    pub report: Report,
    /// Blocked names and networks as text, if the reader was to keep them.
    pub servers: Option<FeedServers>,
}

/// Line of a page, in which words are no entries.
const MARKUP: Reason = Cow::Borrowed("markup of a page");
const TOO_LONG: Reason = Cow::Borrowed("the line is too long");
/// Maximum length of a line, in bytes; RPZ has long ones.
const MAX_LINE: usize = 16 * 1024;
/// Bytes at the beginning of a list from which its format is detected.
const DETECTION_BYTES: usize = 64 * 1024;

/// Parser of one list.
#[derive(Debug)]
pub struct Reader {
    format: Option<Format>,
    /// The beginning, until the format is known; then the incomplete line.
    rest: Vec<u8>,
    skipping: bool,
    zone: rpz::Zone,
    into: ListCollector,
}

impl Reader {
    /// Without a format, the reader detects it from the first lines.
    pub fn new(format: Option<Format>, key: Key) -> Reader {
        let into = ListCollector {
            names: NameCollector::new(key),
            rules: Vec::new(),
            nets: NetCollector::default(),
            report: Report::default(),
            servers: None,
            disabled: BTreeMap::new(),
        };
        Reader { format, rest: Vec::new(), skipping: false, zone: rpz::Zone::default(), into }
    }

    /// Also keeps names and networks as text: the list is one of public resolvers.
    #[must_use]
    pub fn keeping_servers(mut self, keeps: bool) -> Reader {
        self.into.servers = keeps.then(FeedServers::default);
        self
    }

    /// Parses a whole list.
    pub fn read(format: Option<Format>, key: Key, text: &[u8]) -> List {
        let mut reader = Reader::new(format, key);
        reader.push(text);
        reader.finish()
    }

    /// Parses the next chunk.
    pub fn push(&mut self, piece: &[u8]) {
        if self.format.is_none() {
            self.rest.extend_from_slice(&piece[..piece.len().min(DETECTION_BYTES)]);
            if self.rest.len() < DETECTION_BYTES {
                return;
            }
            self.format = Some(detect::format(&self.rest));
            let head = std::mem::take(&mut self.rest);
            self.lines(&head);
            return self.lines(&piece[piece.len().min(DETECTION_BYTES)..]);
        }
        self.lines(piece);
    }

    /// Returns the number of entries parsed so far.
    pub fn taken(&self) -> u64 {
        self.into.report.taken
    }

    pub fn finish(mut self) -> List {
        let format = self.format.unwrap_or_else(|| detect::format(&self.rest));
        if self.format.is_none() {
            self.format = Some(format);
            let head = std::mem::take(&mut self.rest);
            self.lines(&head);
        }
        let last = std::mem::take(&mut self.rest);
        if !last.is_empty() && !self.skipping {
            self.line(&last);
        }
        self.into.remove_disabled();
        let ListCollector { names, mut rules, nets, report, servers, .. } = self.into;
        rules.shrink_to_fit();
        List { format, names: names.finish(), rules, nets: nets.finish(), report, servers }
    }

    fn lines(&mut self, mut piece: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, after) = (&piece[..end], &piece[end + 1..]);
            if self.skipping {
                self.skipping = false;
            } else if self.rest.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole);
                whole.clear();
                self.rest = whole;
            }
            piece = after;
        }
        if self.skipping {
            return;
        }
        self.rest.extend_from_slice(piece);
        if self.rest.len() > MAX_LINE {
            self.skipping = true;
            self.into.report.lines += 1;
            let is_markup = self.into.report.page.line(&self.rest);
            self.rest.clear();
            self.into.ignore(if is_markup { MARKUP } else { TOO_LONG });
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.into.report.lines += 1;
        if line.len() > MAX_LINE {
            self.into.report.page.line(line);
            return self.into.ignore(TOO_LONG);
        }
        let line = if self.into.report.lines == 1 {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if self.into.report.page.line(line) {
            return self.into.ignore(MARKUP);
        }
        match self.format {
            Some(Format::Rpz) => self.zone.line(line, &mut self.into),
            Some(Format::Ip) => plain::net(line.trim_ascii(), &mut self.into),
            format => plain::line(line.trim_ascii(), format == Some(Format::Adblock), &mut self.into),
        }
    }
}

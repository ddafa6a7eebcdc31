//! Lists of names and addresses as they are published: hosts files, plain names, the part of adblock syntax that a
//! resolver can obey, response policy zones, addresses.
//!
//! A list is read as it arrives, in pieces of any size; its text is not kept. What was not understood is counted, the
//! first few with line and reason.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::kinds::threat_feed::FeedFormat;
use gateway_model::pattern::AdblockRule;

use super::name::Name;
use super::nets::{CollectNets, Nets};
use super::table::{Collect, Effect, Form, Key, Names};

mod adblock;
mod detect;
mod plain;
mod rpz;
#[cfg(test)]
mod tests;

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Hosts,
    Domains,
    Adblock,
    Rpz,
    Ip,
}

impl From<FeedFormat> for Format {
    fn from(format: FeedFormat) -> Format {
        match format {
            FeedFormat::Hosts => Format::Hosts,
            FeedFormat::Domains => Format::Domains,
            FeedFormat::Adblock => Format::Adblock,
            FeedFormat::Rpz => Format::Rpz,
            FeedFormat::Ip => Format::Ip,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Hosts => "hosts",
            Format::Domains => "domains",
            Format::Adblock => "adblock",
            Format::Rpz => "rpz",
            Format::Ip => "ip",
        })
    }
}

/// A list that was read.
#[derive(Clone, Debug)]
pub struct List {
    pub format: Format,
    pub names: Names,
    /// What is more than a name.
    pub rules: Vec<ListRule>,
    /// Of answers.
    pub nets: Nets,
    pub report: Report,
}

/// An entry that is more than a name.
#[derive(Clone, Debug)]
pub struct ListRule {
    /// As it is written.
    pub text: Arc<str>,
    pub says: Says,
}

#[derive(Clone, Debug)]
pub enum Says {
    /// With wildcards, an expression or modifiers; none of them is for certain clients.
    Adblock(Box<AdblockRule>),
    /// Local data of a response policy zone.
    Answer { name: Name, form: Form, answer: Answer },
}

/// What a response policy zone answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Address(IpAddr),
    Name(Name),
}

/// What became of the lines of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub lines: u64,
    /// Entries that were understood, those given twice included.
    pub taken: u64,
    /// Entries that were not.
    pub ignored: u64,
    /// The first of those ignored.
    pub notes: Vec<Note>,
}

/// Why a line was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// From 1.
    pub line: u64,
    pub reason: Reason,
}

pub type Reason = Cow<'static, str>;

const NOTES: usize = 10;
const TOO_LONG: Reason = Cow::Borrowed("the line is too long");
const TOO_MANY: Reason = Cow::Borrowed("there are too many rules with wildcards, expressions or modifiers");

/// Longest line; RPZ has long ones.
const MAX_LINE: usize = 16 * 1024;
/// Most entries of a list that are more than a name: each is compiled.
const MAX_RULES: usize = 20_000;
/// So much of a list is looked at to tell how it is written.
const HEAD: usize = 64 * 1024;

/// Reads one list.
#[derive(Debug)]
pub struct Reader {
    format: Option<Format>,
    /// The beginning, until the format is known; then the line that is not complete.
    rest: Vec<u8>,
    skipping: bool,
    zone: rpz::Zone,
    into: Into,
}

/// What the formats put their entries into.
#[derive(Debug)]
struct Into {
    names: Collect,
    rules: Vec<ListRule>,
    nets: CollectNets,
    report: Report,
}

impl Into {
    fn rule(&mut self, text: &str, says: Says) {
        if self.rules.len() < MAX_RULES {
            self.rules.push(ListRule { text: text.into(), says });
            self.report.taken += 1;
        } else {
            self.ignore(TOO_MANY);
        }
    }

    fn net(&mut self, net: ipnet::IpNet, effect: Effect) {
        if net.prefix_len() == 0 {
            self.ignore("all addresses are no entry of a list".into());
        } else {
            self.nets.add(net, effect);
            self.report.taken += 1;
        }
    }

    fn ignore(&mut self, reason: Reason) {
        self.report.ignored += 1;
        if self.report.notes.len() < NOTES {
            self.report.notes.push(Note { line: self.report.lines, reason });
        }
    }
}

impl Reader {
    /// Without a format it is told from the first lines.
    pub fn new(format: Option<Format>, key: Key) -> Reader {
        let into = Into {
            names: Collect::new(key),
            rules: Vec::new(),
            nets: CollectNets::default(),
            report: Report::default(),
        };
        Reader { format, rest: Vec::new(), skipping: false, zone: rpz::Zone::default(), into }
    }

    /// Reads a whole list.
    pub fn read(format: Option<Format>, key: Key, text: &[u8]) -> List {
        let mut reader = Reader::new(format, key);
        reader.push(text);
        reader.finish()
    }

    /// The next piece.
    pub fn push(&mut self, piece: &[u8]) {
        if self.format.is_none() {
            self.rest.extend_from_slice(&piece[..piece.len().min(HEAD)]);
            if self.rest.len() < HEAD {
                return;
            }
            self.format = Some(detect::format(&self.rest));
            let head = std::mem::take(&mut self.rest);
            self.lines(&head);
            return self.lines(&piece[piece.len().min(HEAD)..]);
        }
        self.lines(piece);
    }

    /// Entries that were understood so far.
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
        let Into { names, mut rules, nets, report } = self.into;
        rules.shrink_to_fit();
        List { format, names: names.finish(), rules, nets: nets.finish(), report }
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
            self.rest.clear();
            self.into.report.lines += 1;
            self.into.ignore(TOO_LONG);
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.into.report.lines += 1;
        if line.len() > MAX_LINE {
            return self.into.ignore(TOO_LONG);
        }
        let line = if self.into.report.lines == 1 {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        match self.format {
            Some(Format::Rpz) => self.zone.line(line, &mut self.into),
            Some(Format::Ip) => plain::net(line.trim_ascii(), &mut self.into),
            _ => plain::line(line.trim_ascii(), &mut self.into),
        }
    }
}

//! One record: its format in buffers, memory and files, and how it is read.
//!
//! The answer is kept as it was sent: question, code and records are parsed on demand.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use gateway_core::dns::{Cause, Name};
use gateway_model::Id;
use jiff::Timestamp;

use super::{ClientFilter, DomainFilter, Filter};
use crate::hooks::{Client, Logged};
use crate::serve::{Status, Trace, Transport};
use crate::wire::{NameBuf, Records, Section, rtype, u16_at};

/// An answered query, as it is logged.
#[derive(Clone, Copy, Debug)]
pub struct QueryRecord<'a> {
    pub time: Timestamp,
    pub elapsed: Duration,
    pub from: IpAddr,
    pub client: &'a Client,
    pub transport: Transport,
    pub trace: &'a Trace,
    /// The answer as it was sent.
    pub message: &'a [u8],
}

/// Property for finding the records of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientKey {
    Number(u64),
    Address(IpAddr),
    Device(Id),
}

/// A record for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayRecord {
    /// Grows with each record; unique.
    pub id: u64,
    pub time: Timestamp,
    /// `None` for an anonymous client.
    pub client: Option<RecordClient>,
    pub name: Name,
    pub qtype: u16,
    pub status: Status,
    /// Cause of the decision: its kind, its text, and the id of the rule, list or feed.
    pub reason: Option<Cause>,
    pub rule: Option<String>,
    pub list: Option<Id>,
    /// Name that was evaluated, if it is not the queried name.
    pub through: Option<String>,
    pub upstream: Option<String>,
    /// Display name of the egress by which the query went to the upstream. `None` if no query was sent.
    pub egress: Option<String>,
    /// No query was sent, because the route of the client was blocked. False in records of earlier versions.
    pub blocked: bool,
    pub rcode: u16,
    /// Type and data of each record of the answer, in text form.
    pub answers: Vec<(u16, String)>,
    /// Time from reading the query to writing the reply. Zero on the fast path.
    pub elapsed: Duration,
    pub transport: Transport,
    /// Validated; none where nothing validates.
    pub secure: Option<bool>,
    /// Code of RFC 8914; `wire::code::ede::text` is its text.
    pub ede: Option<u16>,
    /// Cause of a failure in words. `None` for an anonymous client.
    pub detail: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordClient {
    pub number: u64,
    pub address: IpAddr,
    pub device: Option<Id>,
    pub name: Option<String>,
}

/// Maximum stored part of a reply: its first records.
pub(super) const ANSWER: usize = 512;

/// Flags for the variable part.
mod has {
    pub(super) const V4: u16 = 1;
    pub(super) const V6: u16 = 2;
    pub(super) const DEVICE: u16 = 4;
    pub(super) const NAME: u16 = 8;
    pub(super) const CAUSE: u16 = 16;
    pub(super) const ID: u16 = 32;
    pub(super) const THROUGH: u16 = 64;
    pub(super) const UPSTREAM: u16 = 128;
    pub(super) const EDE: u16 = 256;
    pub(super) const SECURE: u16 = 512;
    pub(super) const BOGUS: u16 = 1024;
    pub(super) const EGRESS: u16 = 2048;
    pub(super) const DETAIL: u16 = 4096;
    pub(super) const BLOCKED: u16 = 8192;
}

const CAUSES: [Cause; 8] = [
    Cause::Rule,
    Cause::Allowlist,
    Cause::Blocklist,
    Cause::Feed,
    Cause::Rewrite,
    Cause::Canary,
    Cause::Privacy,
    Cause::Rebinding,
];

/// Length of the part that each record has, the two bytes of the length not counted.
const FIXED: usize = 8 + 4 + 8 + 2 + 1 + 1 + 1 + 2;

/// Appends a record: its length, the fixed part, the parts named by its bits, and the answer.
pub(crate) fn encode(out: &mut Vec<u8>, query: &QueryRecord<'_>) {
    let (client, trace) = (query.client, query.trace);
    let named = client.logged == Logged::Full;
    let start = out.len();
    let mut bits = 0;
    let mut bit = |on: bool, bit: u16| bits |= if on { bit } else { 0 };
    bit(named && query.from.is_ipv4(), has::V4);
    bit(named && query.from.is_ipv6(), has::V6);
    let device = client.asker.device.filter(|_| named);
    bit(device.is_some(), has::DEVICE);
    let name = client.name.as_deref().filter(|_| named);
    bit(name.is_some(), has::NAME);
    let because = trace.because.as_ref();
    bit(because.is_some(), has::CAUSE);
    let id = because.and_then(|because| because.id);
    bit(id.is_some(), has::ID);
    let through = because.and_then(|because| because.through.as_deref());
    bit(through.is_some(), has::THROUGH);
    bit(trace.upstream.is_some(), has::UPSTREAM);
    bit(trace.egress.is_some(), has::EGRESS);
    bit(trace.blocked, has::BLOCKED);
    bit(trace.ede.is_some(), has::EDE);
    // It names a policy, which may have the name of its device.
    let detail = trace.detail.as_deref().filter(|_| named);
    bit(detail.is_some(), has::DETAIL);
    bit(trace.secure == Some(true), has::SECURE);
    bit(trace.secure == Some(false), has::BOGUS);
    let cause = because.and_then(|because| CAUSES.iter().position(|cause| *cause == because.cause));
    let nanoseconds = i64::try_from(query.time.as_nanosecond()).unwrap_or(i64::MAX);
    let elapsed = u32::try_from(query.elapsed.as_micros()).unwrap_or(u32::MAX);

    let mut fixed = [0; 2 + FIXED];
    fixed[2..10].copy_from_slice(&nanoseconds.to_le_bytes());
    fixed[10..14].copy_from_slice(&elapsed.to_le_bytes());
    fixed[14..22].copy_from_slice(&if named { client.number } else { 0 }.to_le_bytes());
    fixed[22..24].copy_from_slice(&bits.to_le_bytes());
    fixed[24] = trace.status as u8;
    fixed[25] = query.transport as u8;
    fixed[26] = cause.unwrap_or(0) as u8;
    fixed[27..29].copy_from_slice(&trace.ede.unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&fixed);
    match query.from {
        IpAddr::V4(address) if named => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) if named => out.extend_from_slice(&address.octets()),
        _ => {}
    }
    device.iter().chain(id.iter()).for_each(|id| out.extend_from_slice(id.as_bytes()));
    let rule = because.map(|because| &*because.rule);
    let sent = [trace.upstream.as_deref(), trace.egress.as_deref(), detail];
    for text in [name, rule, through].into_iter().chain(sent).flatten() {
        let text = &text[..text.floor_char_boundary(255)];
        out.push(text.len() as u8);
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&query.message[..query.message.len().min(ANSWER)]);
    let length = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&length.to_le_bytes());
}

/// Nanoseconds since 1970, in the record that this begins with.
pub(super) fn set_time(record: &mut [u8], nanoseconds: i64) {
    if let Some(place) = record.get_mut(2..10) {
        place.copy_from_slice(&nanoseconds.to_le_bytes());
    }
}

/// Clears the message id in the record of a message of this length.
pub(super) fn clear_id(record: &mut [u8], length: usize) {
    let at = record.len().saturating_sub(length.min(ANSWER));
    if let Some(id) = record.get_mut(at..at + 2) {
        id.fill(0);
    }
}

/// Record that is read in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordView<'a>(&'a [u8]);

/// The records of a buffer, one after the other.
pub(crate) fn views(bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        let view = RecordView(rest.get(2..2 + length).filter(|record| record.len() >= FIXED)?);
        rest = &rest[2 + length..];
        Some(view)
    })
}

/// Variable part after the fixed part.
#[derive(Default)]
struct VariablePart<'a> {
    address: Option<IpAddr>,
    device: Option<Id>,
    name: Option<&'a [u8]>,
    id: Option<Id>,
    rule: Option<&'a [u8]>,
    through: Option<&'a [u8]>,
    upstream: Option<&'a [u8]>,
    egress: Option<&'a [u8]>,
    detail: Option<&'a [u8]>,
    message: &'a [u8],
}

impl<'a> RecordView<'a> {
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.0[at..at + N]);
        array
    }

    /// Bytes that it takes in a buffer.
    pub(crate) fn length(&self) -> usize {
        2 + self.0.len()
    }

    /// Nanoseconds since 1970.
    pub(crate) fn time(&self) -> i64 {
        i64::from_le_bytes(self.array(0))
    }

    pub(crate) fn client(&self) -> u64 {
        u64::from_le_bytes(self.array(12))
    }

    fn bits(&self) -> u16 {
        u16::from_le_bytes(self.array(20))
    }

    pub(crate) fn named(&self) -> bool {
        self.bits() & (has::V4 | has::V6) != 0
    }

    pub(crate) fn status(&self) -> Option<Status> {
        Status::ALL.get(usize::from(self.0[22])).copied()
    }

    /// Returns the answer, as far as it was stored.
    pub(super) fn message(&self) -> Option<&'a [u8]> {
        Some(self.rest()?.message)
    }

    fn rest(&self) -> Option<VariablePart<'a>> {
        let bits = self.bits();
        let mut left = &self.0[FIXED..];
        let mut rest = VariablePart::default();
        if bits & has::V4 != 0 {
            rest.address = Some(IpAddr::from(*left.split_off(..4)?.first_chunk::<4>()?));
        } else if bits & has::V6 != 0 {
            rest.address = Some(IpAddr::from(*left.split_off(..16)?.first_chunk::<16>()?));
        }
        for (bit, id) in [(has::DEVICE, &mut rest.device), (has::ID, &mut rest.id)] {
            if bits & bit != 0 {
                *id = Some(Id::from_bytes(*left.split_off(..16)?.first_chunk::<16>()?));
            }
        }
        let texts = [
            (has::NAME, &mut rest.name),
            (has::CAUSE, &mut rest.rule),
            (has::THROUGH, &mut rest.through),
            (has::UPSTREAM, &mut rest.upstream),
            (has::EGRESS, &mut rest.egress),
            (has::DETAIL, &mut rest.detail),
        ];
        for (bit, text) in texts {
            if bits & bit != 0 {
                let length = usize::from(*left.split_off_first()?);
                *text = Some(left.split_off(..length)?);
            }
        }
        rest.message = left;
        Some(rest)
    }

    /// Returns the properties for finding the client. Empty for an anonymous client.
    pub(crate) fn marks(&self) -> impl Iterator<Item = ClientKey> + use<> {
        let rest = self.rest().filter(|_| self.named());
        let number = rest.is_some().then(|| ClientKey::Number(self.client()));
        let address = rest.as_ref().and_then(|rest| rest.address).map(ClientKey::Address);
        let device = rest.and_then(|rest| rest.device).map(ClientKey::Device);
        [number, address, device].into_iter().flatten()
    }

    /// Returns the queried name.
    pub(crate) fn name(&self) -> Option<NameBuf> {
        NameBuf::read(self.rest()?.message, crate::wire::HEADER).map(|(name, _)| name)
    }

    /// Returns the client: address, device and name.
    pub(crate) fn client_of_record(&self) -> Option<RecordClient> {
        let rest = self.rest()?;
        let (number, name) = (self.client(), rest.name.map(text));
        Some(RecordClient { number, address: rest.address?, device: rest.device, name })
    }

    /// Microseconds from reading the query to writing the reply.
    fn elapsed(&self) -> u32 {
        u32::from_le_bytes(self.array(8))
    }

    /// Returns the queried type.
    fn qtype(&self) -> Option<u16> {
        let message = self.rest()?.message;
        let (_, end) = NameBuf::read(message, crate::wire::HEADER)?;
        u16_at(message, end)
    }

    /// Reports whether the record meets all conditions but those on the time.
    pub(crate) fn matches(&self, filter: &Filter) -> bool {
        if filter.status.is_some_and(|status| self.status() != Some(status))
            || filter.cached.is_some_and(|cached| (self.status() == Some(Status::Cached)) != cached)
            || filter.slower_than.is_some_and(|limit| u128::from(self.elapsed()) <= limit.as_micros())
        {
            return false;
        }
        if filter.except.iter().any(|except| self.matches(except)) {
            return false;
        }
        self.is_of(filter.client.as_ref())
            && filter.list.is_none_or(|list| self.rest().is_some_and(|rest| rest.id == Some(list)))
            && filter.qtype.is_none_or(|qtype| self.qtype() == Some(qtype))
            && filter.upstream.as_ref().is_none_or(|text| self.was_sent_to(text))
            && filter
                .egress
                .as_ref()
                .is_none_or(|name| self.rest().is_some_and(|rest| rest.egress == Some(name.as_bytes())))
            && filter.domain.as_ref().is_none_or(|domain| self.is_about(domain))
    }

    fn is_of(&self, client: Option<&ClientFilter>) -> bool {
        match client {
            None => true,
            Some(ClientFilter::Number(number)) => self.named() && self.client() == *number,
            Some(ClientFilter::Address(address)) => {
                self.rest().is_some_and(|rest| rest.address == Some(*address))
            }
            Some(ClientFilter::Device(device)) => {
                self.rest().is_some_and(|rest| rest.device == Some(*device))
            }
        }
    }

    /// Reports whether the name of the upstream contains a text.
    fn was_sent_to(&self, part: &str) -> bool {
        self.rest().and_then(|rest| rest.upstream).is_some_and(|upstream| text(upstream).contains(part))
    }

    fn is_about(&self, domain: &DomainFilter) -> bool {
        let name = self.name();
        let name = name.as_ref().and_then(NameBuf::as_ref);
        name.is_some_and(|name| match domain {
            DomainFilter::Contains(text) => name.to_string().contains(text.as_str()),
            DomainFilter::Within(zone) => name.is_within(zone.as_ref()),
        })
    }

    pub(crate) fn row(&self, id: u64) -> Option<DisplayRecord> {
        let rest = self.rest()?;
        let (bits, message) = (self.bits(), rest.message);
        let (name, end) = NameBuf::read(message, crate::wire::HEADER)?;
        let flags = u16_at(message, 2)?;
        let secure = bits & (has::SECURE | has::BOGUS);
        Some(DisplayRecord {
            id,
            time: Timestamp::from_nanosecond(i128::from(self.time())).ok()?,
            client: self.client_of_record(),
            name: name.to_name()?,
            qtype: u16_at(message, end)?,
            status: self.status()?,
            reason: CAUSES.get(usize::from(self.0[24])).copied().filter(|_| bits & has::CAUSE != 0),
            rule: rest.rule.map(text),
            list: rest.id,
            through: rest.through.map(text),
            upstream: rest.upstream.map(text),
            egress: rest.egress.map(text),
            blocked: bits & has::BLOCKED != 0,
            rcode: flags & 0xf | high_code(message),
            answers: answers(message),
            elapsed: Duration::from_micros(self.elapsed().into()),
            transport: match self.0[23] {
                0 => Transport::Udp,
                1 => Transport::Tcp,
                2 => Transport::Tls,
                _ => Transport::Https,
            },
            secure: (secure != 0).then_some(secure == has::SECURE),
            ede: (bits & has::EDE != 0).then(|| u16::from_le_bytes(self.array(25))),
            detail: rest.detail.map(|detail| text(detail).chars().filter(|c| !c.is_control()).collect()),
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the part of the response code in the OPT record.
fn high_code(message: &[u8]) -> u16 {
    let opt = Records::of(message).into_iter().flatten().flatten().find(|record| record.rtype == rtype::OPT);
    opt.map_or(0, |opt| (opt.ttl >> 24 << 4) as u16)
}

/// Returns the number of records that were stored completely.
fn answers(message: &[u8]) -> Vec<(u16, String)> {
    let records = Records::of(message).into_iter().flatten().map_while(Result::ok);
    let records = records.take_while(|record| record.section == Section::Answer);
    records.map(|record| (record.rtype, data(message, record.rtype, record.rdata).into_owned())).collect()
}

fn data(message: &[u8], rtype: u16, at: std::ops::Range<usize>) -> Cow<'static, str> {
    let bytes = &message[at.clone()];
    let name = |offset: usize| {
        let (name, _) = NameBuf::expand(message, at.start + offset)?;
        Some(crate::wire::name::display(name.wire()))
    };
    let presentation = match rtype {
        rtype::A => <[u8; 4]>::try_from(bytes).ok().map(|octets| IpAddr::from(octets).to_string()),
        rtype::AAAA => <[u8; 16]>::try_from(bytes).ok().map(|octets| IpAddr::from(octets).to_string()),
        rtype::CNAME | rtype::NS | rtype::PTR | rtype::DNAME => name(0),
        rtype::MX => u16_at(bytes, 0).zip(name(2)).map(|(preference, name)| format!("{preference} {name}")),
        rtype::SRV => (|| {
            let [priority, weight, port] = [u16_at(bytes, 0)?, u16_at(bytes, 2)?, u16_at(bytes, 4)?];
            Some(format!("{priority} {weight} {port} {}", name(6)?))
        })(),
        rtype::SVCB | rtype::HTTPS => {
            u16_at(bytes, 0).zip(name(2)).map(|(priority, name)| format!("{priority} {name}"))
        }
        rtype::TXT => {
            let mut left = bytes;
            let strings = std::iter::from_fn(|| {
                let length = usize::from(*left.split_off_first()?);
                left.split_off(..length).map(|string| format!("\"{}\"", string.escape_ascii()))
            });
            Some(strings.collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    presentation.map_or_else(|| format!("\\# {}", bytes.len()).into(), Cow::from)
}

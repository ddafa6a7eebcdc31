//! Domain lists and zones: published lists, user-defined zones, and the answers that result from them.

use std::collections::{BTreeMap, BTreeSet};

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::{Canaries, Filter, Lists, Options};
use gateway_core::dns::lists::{Format, List, Reader};
use gateway_core::dns::zones::{self, Host, Zones};
use gateway_core::dns::{ClientIdentity, Decision, Local, Name, NameRef, Question};
use gateway_model::State;
use gateway_model::domain::DomainName;
use gateway_model::kinds::{DnsRecord, DnsZone, ThreatFeed};
use jiff::Timestamp;
use jiff::tz::TimeZone;

const KEY: Key = Key::new(2026);
const FORMATS: [Option<Format>; 6] = [
    None,
    Some(Format::Hosts),
    Some(Format::Domains),
    Some(Format::Adblock),
    Some(Format::Rpz),
    Some(Format::Ip),
];
const TYPES: [u16; 10] = [1, 2, 5, 6, 15, 28, 43, 65, 255, 257];

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// Checks that a list parses the same for any chunking, and that parsed entries are counted and the rest has a reason.
/// Queries for its own names and others are decided, for the first of the given reasons.
pub fn lists(data: &[u8]) {
    let Some((head, text)) = data.split_first_chunk::<2>() else { return };
    let format = FORMATS[usize::from(head[0]) % FORMATS.len()];
    let list = Reader::read(format, KEY, text);
    let mut pieces = Reader::new(format, KEY);
    text.chunks(usize::from(head[1]) + 1).for_each(|piece| pieces.push(piece));
    let pieces = pieces.finish();
    assert_eq!((list.format, &list.names, &list.report), (pieces.format, &pieces.names, &pieces.report));
    counted(&list, text);
    let mut state = State::new(now()).begin(now());
    let feed = ThreatFeed {
        name: "fuzz".to_owned(),
        url: "https://lists.example/".to_owned(),
        ..Default::default()
    };
    let id = state.create(feed).expect("a feed").0.meta.id;
    let mut lists = Lists::new(KEY);
    let names = list.names.len();
    lists.put(id, list).expect("there is room for one");
    assert_eq!(lists.names(), names);
    let filter = Filter::new(&state, &lists, Options { zone: TimeZone::UTC, canaries: Canaries::default() });
    let asker = ClientIdentity::default();
    for name in words(text) {
        for name in [name.as_ref(), name.as_ref().parent().unwrap_or(NameRef::ROOT)] {
            let asked = Question { name, qtype: TYPES[usize::from(head[1]) % TYPES.len()] };
            let decision = filter.decide(&asker, asked, now());
            let explained = filter.explain(&asker, asked, now());
            assert_eq!(explained.first().unwrap_or(&Decision::PASS), &decision);
            if let Some(because) = &decision.because {
                assert!(because.id == Some(id) || because.id.is_none(), "another entry decided");
                assert!(!because.rule.is_empty(), "a reason without a rule");
            }
            filter.inspect_name(&asker, asked, name, now());
        }
    }
}

fn counted(list: &List, text: &[u8]) {
    let report = &list.report;
    let entries = list.names.len() + list.rules.len() + list.nets.len();
    assert!(entries as u64 <= report.taken, "more entries than were counted");
    assert!(report.lines <= text.iter().filter(|b| **b == b'\n').count() as u64 + 1);
    assert!(report.notes.len() as u64 <= report.ignored);
    for note in &report.notes {
        assert!((1..=report.lines).contains(&note.line) && !note.reason.is_empty());
    }
}

/// Returns names of the text, and one subdomain of each.
fn words(text: &[u8]) -> Vec<Name> {
    let text = String::from_utf8_lossy(text);
    let inside = text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
    let inside: BTreeSet<&str> = inside.filter(|word| word.contains('.')).take(40).collect();
    let names = inside.into_iter().flat_map(|word| [word.to_owned(), format!("x.{word}")]);
    names.filter_map(|text| Some(Name::from(&DomainName::parse(&text).ok()?))).collect()
}

/// Checks lines of `name type value` as records of a zone. Each query has one complete answer, aliases lead on or end,
/// and no existing name is denied.
pub fn zone(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut state = State::new(now()).begin(now());
    let zone = DnsZone { name: "example".parse().expect("a name"), ..Default::default() };
    state.create(zone).expect("a zone");
    let mut asked =
        vec!["example".to_owned(), "a.b.example".to_owned(), "a.lan".to_owned(), "a.test".to_owned()];
    for line in text.lines().take(40) {
        let mut parts = line.splitn(3, ' ');
        let (Some(name), Some(kind), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Ok(r#type) = kind.parse() else { continue };
        let record = DnsRecord {
            zone: "example".to_owned(),
            name: name.to_owned(),
            r#type,
            value: value.to_owned(),
            ..Default::default()
        };
        if let Ok((record, _)) = state.create(record) {
            asked.push(record.full_name());
            asked.push(format!("x.{}", record.full_name()));
            asked.push(record.full_name().replacen('*', "y", 1));
        }
    }
    let host = Host { name: "a".to_owned(), addresses: vec!["192.0.2.1".parse().expect("an address")] };
    let domain = "lan".parse().expect("a name");
    let options = zones::Options {
        key: KEY,
        domain,
        hosts: vec![host],
        host_ttl: 10,
        mesh: None,
        copies: BTreeMap::new(),
        signer: None,
    };
    let zones = Zones::new(&state, &options);
    for text in asked {
        let wire: Vec<u8> = text
            .split('.')
            .filter(|label| !label.is_empty())
            .flat_map(|label| [&[u8::try_from(label.len()).unwrap_or(64)], label.as_bytes()].concat())
            .chain([0])
            .collect();
        let Some(name) = NameRef::new(&wire) else { continue };
        for qtype in TYPES {
            let question = Question { name, qtype };
            let local = zones.answer(question, false).expect("all of these are answered here");
            assert_eq!(zones.answer(question, true).as_ref(), Some(&local), "nothing is signed");
            whole(&local, name, qtype);
        }
    }
}

fn whole(local: &Local, asked: NameRef<'_>, qtype: u16) {
    assert!(matches!(local.rcode, 0 | 2 | 3));
    match local.answers.first() {
        Some(first) => assert_eq!(first.name.as_ref(), asked),
        None => {
            assert!(local.rcode == 2 || !local.authorities.is_empty(), "an empty answer without a reason")
        }
    }
    for pair in local.answers.windows(2).filter(|pair| pair[0].rtype == 5 && pair[0].name != pair[1].name) {
        assert_eq!(*pair[0].rdata, *pair[1].name.as_ref().wire(), "an alias that leads elsewhere");
    }
    for record in local.answers.iter().chain(&local.authorities).chain(&local.additionals) {
        let length = record.rdata.len();
        match record.rtype {
            1 => assert_eq!(length, 4),
            28 => assert_eq!(length, 16),
            2 | 5 | 12 => assert!(NameRef::new(&record.rdata).is_some()),
            15 => assert!(record.rdata.get(2..).and_then(NameRef::new).is_some()),
            33 => assert!(record.rdata.get(6..).and_then(NameRef::new).is_some()),
            16 => strings(&record.rdata),
            64 | 65 => params(&record.rdata),
            _ => assert!(length <= 65_535),
        }
    }
    if local.goes_on.is_some() {
        assert!(qtype != 5 && local.answers.last().is_some_and(|last| last.rtype == 5));
    }
}

fn strings(mut rdata: &[u8]) {
    assert!(!rdata.is_empty(), "a text has at least one string");
    while let Some((length, rest)) = rdata.split_first() {
        rdata = rest.get(usize::from(*length)..).expect("a string is whole");
    }
}

/// Checks RFC 9460, section 2.2: keys ascend, and each value has its declared length.
fn params(rdata: &[u8]) {
    let name = (3..=rdata.len()).find(|end| NameRef::new(&rdata[2..*end]).is_some()).expect("a target");
    let (mut rest, mut before) = (&rdata[name..], None);
    while !rest.is_empty() {
        let (head, after) = rest.split_first_chunk::<4>().expect("a key and a length");
        let key = u16::from_be_bytes([head[0], head[1]]);
        assert!(before.is_none_or(|before| before < key), "keys do not ascend");
        before = Some(key);
        rest = after.get(usize::from(u16::from_be_bytes([head[2], head[3]]))..).expect("a value is whole");
    }
}
